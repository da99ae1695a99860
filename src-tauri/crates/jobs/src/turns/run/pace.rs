//! How fast an answer comes: how long its first token took, and the tokens since then.

use std::time::Instant;

/// The tokens of one answer of a model.
#[derive(Debug)]
pub(super) struct Pace {
    /// Since when a person waits for the first one.
    since: Instant,
    first: Option<Instant>,
    /// Each comes by itself.
    tokens: u32,
}

impl Pace {
    pub(super) fn new(since: Instant) -> Self {
        Self {
            since,
            first: None,
            tokens: 0,
        }
    }

    /// Counts a token. Returns how many there are, and the milliseconds since the first.
    pub(super) fn note_token(&mut self, at: Instant) -> (u32, u64) {
        self.tokens += 1;
        let first = *self.first.get_or_insert(at);
        let decoded = u64::try_from(at.duration_since(first).as_millis());
        (self.tokens, decoded.unwrap_or(u64::MAX))
    }

    pub(super) fn has_begun(&self) -> bool {
        self.first.is_some()
    }

    /// Milliseconds to the first token.
    pub(super) fn first_ms(&self) -> Option<f64> {
        let waited = self.first?.duration_since(self.since);
        Some(waited.as_secs_f64() * 1000.0)
    }

    /// Seconds since the first token.
    pub(super) fn decoding_seconds(&self, at: Instant) -> Option<f64> {
        Some(at.duration_since(self.first?).as_secs_f64())
    }

    /// Tokens per second.
    pub(super) fn speed(&self, at: Instant) -> Option<f64> {
        let seconds = self.decoding_seconds(at)?;
        // A rate over less than a quarter of a second says little.
        (seconds >= 0.25).then(|| f64::from(self.tokens - 1) / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn an_answer_is_measured_from_its_own_request() {
        let begun = Instant::now();
        let at = |ms| begun + Duration::from_millis(ms);
        let mut pace = Pace::new(begun);
        assert!(!pace.has_begun());
        assert_eq!((pace.first_ms(), pace.speed(at(900))), (None, None));
        assert_eq!(pace.note_token(at(500)), (1, 0));
        assert_eq!(pace.note_token(at(700)), (2, 200));
        assert_eq!(pace.first_ms(), Some(500.0));
        assert_eq!(pace.speed(at(700)), None);
        assert_eq!(pace.note_token(at(1500)), (3, 1000));
        assert_eq!(pace.speed(at(1500)), Some(2.0));
        // A person thought for a minute, and the model was asked again.
        let mut pace = Pace::new(at(60_000));
        assert_eq!(pace.note_token(at(60_250)), (1, 0));
        assert_eq!(pace.first_ms(), Some(250.0));
        assert_eq!(pace.decoding_seconds(at(60_750)), Some(0.5));
    }
}
