//! How long to wait after what went wrong, and when waiting is of no use.

use super::{Terms, source::Trouble};
use std::time::Duration;
use tierbar_core::Error;

/// Wrong answers in a row, without a byte of progress, after which a server is taken at its word.
const WRONG_ANSWERS: u32 = 5;
/// A server may ask for patience, not for ever.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(15 * 60);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Failures since the last progress.
#[derive(Debug, Default)]
pub(super) struct Weather {
    failures: u32,
    wrong: u32,
    reason: String,
}

impl Weather {
    /// Why nothing arrives, in one sentence.
    pub(super) fn reason(&self) -> String {
        self.reason.clone()
    }

    pub(super) fn cleared(&mut self) {
        self.failures = 0;
        self.wrong = 0;
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
        self.backoff(terms).max(asked)
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
                Ok(self.backoff(terms))
            }
            Trouble::Wrong(error) => {
                self.wrong += 1;
                if self.wrong >= WRONG_ANSWERS {
                    return Err(error);
                }
                self.reason = error.message;
                Ok(self.backoff(terms))
            }
            // The caller's: they do not mean another try of the same.
            Trouble::Changed | Trouble::Whole(_) | Trouble::Beyond(_) => Ok(Duration::ZERO),
        }
    }

    /// Doubles from try to try; a random part, so that the connections of many do not come back at once.
    fn backoff(&mut self, terms: &Terms) -> Duration {
        let doubled = terms.first_wait * 2u32.saturating_pow(self.failures.min(16));
        self.failures += 1;
        let most = doubled.min(LONGEST_WAIT);
        most / 2 + most.mul_f64(random() / 2.0)
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

    #[test]
    fn waits_double_up_to_half_a_minute_and_never_become_an_error() {
        let (mut weather, terms) = (Weather::default(), Terms::default());
        let waits: Vec<_> = (0..100)
            .map(|_| weather.note(passing(), &terms).unwrap())
            .collect();
        for (tries, wait) in waits.iter().enumerate() {
            let most = (terms.first_wait * 2u32.pow(tries.min(16) as u32)).min(LONGEST_WAIT);
            assert!((most / 2..=most).contains(wait), "{tries}: {wait:?}");
        }
        assert!(waits[99] > waits[0]);
        weather.cleared();
        assert!(weather.note(passing(), &terms).unwrap() <= terms.first_wait);
    }

    #[test]
    fn a_server_that_only_answers_wrongly_is_given_up_unless_it_gets_on() {
        let (mut weather, terms) = (Weather::default(), Terms::default());
        for _ in 0..3 {
            for _ in 1..WRONG_ANSWERS {
                weather.note(wrong(), &terms).unwrap();
            }
            weather.cleared();
        }
        for _ in 1..WRONG_ANSWERS {
            weather.note(wrong(), &terms).unwrap();
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
