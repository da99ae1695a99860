//! One-time codes that a browser exchanges for a session instead of the token: what is in the link that `tierbar serve` prints.
//! They are in memory alone, so that a restart ends them.

use super::random_text;
use parking_lot::Mutex;
use std::{fmt, time::Duration};
use subtle::ConstantTimeEq;
use tierbar_core::Error;
use tierbar_inference::moment::Moment;

/// How long a code may be used.
pub const LIFE: Duration = Duration::from_secs(10 * 60);
/// The most unused codes; the oldest ends for a new one.
const MOST: usize = 16;

#[derive(Default)]
pub struct SignInCodes(Mutex<Vec<Code>>);

struct Code {
    secret: String,
    created: Moment,
}

impl fmt::Debug for SignInCodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SignInCodes").finish_non_exhaustive()
    }
}

impl SignInCodes {
    /// Returns a new code: 256 random bits, as text for addresses.
    ///
    /// # Errors
    /// `Internal` without random numbers from the system.
    pub fn create(&self) -> Result<String, Error> {
        let secret = random_text()?;
        let mut codes = self.0.lock();
        if codes.len() >= MOST {
            codes.remove(0);
        }
        codes.push(Code {
            secret: secret.clone(),
            created: Moment::now(),
        });
        Ok(secret)
    }

    /// Ends all codes.
    pub fn clear(&self) {
        self.0.lock().clear();
    }

    /// Returns whether the code may be used, which it then no longer may.
    pub fn take(&self, given: &str) -> bool {
        self.take_at(given, Moment::now())
    }

    fn take_at(&self, given: &str, now: Moment) -> bool {
        let mut codes = self.0.lock();
        codes.retain(|code| code.created.until(now) < LIFE);
        let before = codes.len();
        // Compares in constant time, so that the time does not reveal a correct prefix.
        codes.retain(|code| !bool::from(code.secret.as_bytes().ct_eq(given.as_bytes())));
        codes.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_code_works_once_and_for_ten_minutes() {
        let codes = SignInCodes::default();
        let (one, two) = (codes.create().unwrap(), codes.create().unwrap());
        assert_ne!(one, two);
        assert!(!codes.take(""));
        assert!(!codes.take(&one[1..]));
        assert!(codes.take(&one));
        assert!(!codes.take(&one));
        tokio::time::advance(LIFE).await;
        assert!(!codes.take(&two));
    }

    #[test]
    fn a_code_does_not_outlast_a_sleep() {
        let codes = SignInCodes::default();
        let code = codes.create().unwrap();
        let now = Moment::now();
        let slept = Moment {
            wall: now.wall + Duration::from_secs(8 * 3600),
            ..now
        };
        assert!(!codes.take_at(&code, slept));
    }

    #[test]
    fn all_codes_end_at_once() {
        let codes = SignInCodes::default();
        let code = codes.create().unwrap();
        codes.clear();
        assert!(!codes.take(&code));
    }

    #[tokio::test(start_paused = true)]
    async fn only_the_newest_codes_are_kept() {
        let codes = SignInCodes::default();
        let first = codes.create().unwrap();
        let rest: Vec<_> = (0..MOST).map(|_| codes.create().unwrap()).collect();
        assert!(!codes.take(&first));
        assert!(rest.iter().all(|code| codes.take(code)));
    }
}
