//! How long to wait after what went wrong, and when waiting is of no use.

use super::{Terms, source::Trouble};
use std::time::Duration;
use tierbar_core::Error;
use tokio::time::Instant;

/// Wrong answers, each after a wait and without a byte of progress, after which a server is taken at its word.
const WRONG_ANSWERS: u32 = 5;
/// A server may ask for patience, not for ever.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(15 * 60);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Failures since the last progress. The connections of a transfer fail together: what fails before the wait after a
/// failure is over is part of it.
#[derive(Debug, Default)]
pub(super) struct Weather {
    failures: u32,
    wrong: u32,
    reason: String,
    waits_until: Option<Instant>,
    /// How far streams came that cannot be resumed.
    farthest: u64,
}

impl Weather {
    /// Why nothing arrives, in one sentence.
    pub(super) fn reason(&self) -> String {
        self.reason.clone()
    }

    pub(super) fn cleared(&mut self) {
        self.failures = 0;
        self.wrong = 0;
        self.waits_until = None;
    }

    /// How long to leave a server alone that asked for it.
    pub(super) fn busy(
        &mut self,
        error: Error,
        after: Option<Duration>,
        terms: &Terms,
    ) -> Duration {
        self.reason = error.message;
        let asked = after.unwrap_or_default().min(LONGEST_RETRY_AFTER);
        self.fail(false, terms).max(asked)
    }

    /// How long to wait after an answer that cannot be right; `None` once there were too many.
    pub(super) fn doubt(&mut self, why: &str, terms: &Terms) -> Option<Duration> {
        why.clone_into(&mut self.reason);
        let wait = self.fail(true, terms);
        (self.wrong < WRONG_ANSWERS).then_some(wait)
    }

    /// What it means that a stream broke off which cannot be resumed: one that never comes further than the one before
    /// would be fetched for ever.
    pub(super) fn broke_off(&mut self, at: u64, error: Error) -> Trouble {
        if at > self.farthest {
            self.farthest = at;
            self.cleared();
            return Trouble::Passing(error);
        }
        let hint = "The server sends the file only from its beginning, and does not come to its end. Try another source.";
        Trouble::Wrong(error.hint(hint))
    }

    /// How long to wait before the next try.
    ///
    /// # Errors
    /// What waiting does not mend.
    pub(super) fn note(&mut self, trouble: Trouble, terms: &Terms) -> Result<Duration, Error> {
        match trouble {
            Trouble::Fatal(error) => Err(error),
            Trouble::Busy(error, after) => Ok(self.busy(error, after, terms)),
            Trouble::Passing(error) => {
                self.reason = error.message;
                Ok(self.fail(false, terms))
            }
            Trouble::Wrong(error) => self.doubt(&error.message, terms).ok_or(error),
            // The caller's: they do not mean another try of the same.
            Trouble::Changed | Trouble::Whole(_) | Trouble::Beyond(_) => Ok(Duration::ZERO),
        }
    }

    /// The wait doubles from failure to failure; a random part, so that the connections of many do not come back at
    /// once.
    fn fail(&mut self, wrong: bool, terms: &Terms) -> Duration {
        let now = Instant::now();
        let another = self.waits_until.is_none_or(|until| now >= until);
        if another {
            self.failures += 1;
            self.wrong += u32::from(wrong);
        }
        let doublings = self.failures.saturating_sub(1).min(16);
        let most = (terms.first_wait * 2u32.pow(doublings)).min(LONGEST_WAIT);
        let wait = most / 2 + most.mul_f64(random() / 2.0);
        if another {
            self.waits_until = Some(now + wait);
        }
        wait
    }
}

/// In 0..1.
fn random() -> f64 {
    f64::from(uuid::Uuid::new_v4().as_fields().0) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_core::Code;

    fn passing() -> Trouble {
        Trouble::Passing(Error::new(Code::Unreachable, "no network"))
    }

    fn wrong() -> Trouble {
        Trouble::Wrong(Error::new(Code::Corrupt, "wrong"))
    }

    /// Every wait is waited for.
    async fn waited(weather: &mut Weather, trouble: Trouble) -> Duration {
        let wait = weather.note(trouble, &Terms::default()).unwrap();
        tokio::time::sleep(wait).await;
        wait
    }

    #[tokio::test(start_paused = true)]
    async fn waits_double_up_to_half_a_minute_and_never_become_an_error() {
        let (mut weather, terms) = (Weather::default(), Terms::default());
        for tries in 0..100 {
            let wait = waited(&mut weather, passing()).await;
            let most = (terms.first_wait * 2u32.pow(tries.min(16))).min(LONGEST_WAIT);
            assert!((most / 2..=most).contains(&wait), "{tries}: {wait:?}");
        }
        weather.cleared();
        assert!(weather.note(passing(), &terms).unwrap() <= terms.first_wait);
    }

    #[tokio::test(start_paused = true)]
    async fn what_fails_at_once_on_all_connections_is_one_failure() {
        let (mut weather, terms) = (Weather::default(), Terms::default());
        for failures in 0..3 {
            let waits: Vec<_> = (0..2 * WRONG_ANSWERS)
                .map(|_| weather.note(wrong(), &terms).unwrap())
                .collect();
            let most = terms.first_wait * 2u32.pow(failures);
            assert!(waits.iter().all(|wait| *wait <= most), "{waits:?}");
            tokio::time::sleep(most).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_only_answers_wrongly_is_given_up_unless_it_gets_on() {
        let (mut weather, terms) = (Weather::default(), Terms::default());
        for _ in 0..3 {
            for _ in 1..WRONG_ANSWERS {
                waited(&mut weather, wrong()).await;
            }
            weather.cleared();
        }
        for _ in 1..WRONG_ANSWERS {
            waited(&mut weather, wrong()).await;
        }
        assert_eq!(weather.note(wrong(), &terms).unwrap_err().message, "wrong");
    }

    #[test]
    fn a_server_that_asks_for_patience_gets_it_up_to_a_quarter_of_an_hour() {
        let (mut weather, terms) = (Weather::default(), Terms::default());
        let mut wait = |seconds| {
            let error = Error::new(Code::Unreachable, "busy");
            weather.busy(error, Some(Duration::from_secs(seconds)), &terms)
        };
        assert_eq!(wait(120), Duration::from_secs(120));
        assert_eq!(wait(1_000_000), LONGEST_RETRY_AFTER);
    }
}
