//! What a model is trusted with once it has passed an examination, and how it did.

use crate::{FileIdentity, ModelId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// How long a chain waits for triage.
pub const TRIAGE_WAIT: Duration = Duration::from_secs(1);

/// What a model judges for Tierbar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Judgment {
    /// It sorts messages, for chains and for `/v1/triage`.
    Triage,
    /// It rates how hard a request is, for `auto`.
    Routing,
}

/// How a model did in an examination.
#[derive(Debug, Clone, PartialEq)]
pub struct ExamOutcome {
    pub judgment: Judgment,
    /// Probes that it judged correctly.
    pub right: u32,
    /// All probes.
    pub of: u32,
    pub passed: bool,
    /// The median time of an answer, if it was measured.
    pub milliseconds: Option<u64>,
    /// The whole result in the examination's own form, from which it is used again.
    pub result: Value,
}

/// How a model's file did in an examination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Mark {
    pub judgment: Judgment,
    /// Tierbar's.
    pub version: String,
    /// RFC 3339, in UTC.
    pub taken_at: String,
    pub model: ModelId,
    pub size_bytes: u64,
    /// The sha256 of the file in lower-case hex, if it was known.
    pub sha256: Option<String>,
    /// Probes that it judged correctly.
    pub right: u32,
    /// All probes.
    pub of: u32,
    /// Whether its judgment counts.
    pub passed: bool,
    /// The median time of an answer, if it was measured. Chains do not triage with a model that takes more than 1000.
    pub milliseconds: Option<u64>,
}

impl Mark {
    /// Returns the file that was examined.
    pub fn file(&self) -> FileIdentity<'_> {
        FileIdentity {
            model: &self.model,
            size_bytes: self.size_bytes,
            sha256: self.sha256.as_deref(),
        }
    }

    /// What follows from it, in one sentence.
    pub fn sentence(&self) -> String {
        let (right, of) = (self.right, self.of);
        let time = self.milliseconds.map(Duration::from_millis);
        match (self.judgment, self.passed) {
            (Judgment::Triage, true) if time > Some(TRIAGE_WAIT) => format!(
                "Triage is off in chains: this model takes {:.1} s for a message ({right} of {of} correct).",
                time.unwrap_or_default().as_secs_f64()
            ),
            (Judgment::Triage, true) => {
                format!("Triage is on: this model sorted {right} of {of} messages correctly.")
            }
            (Judgment::Triage, false) => {
                format!("Triage is off: this model sorted {right} of {of} messages correctly.")
            }
            (Judgment::Routing, true) => format!(
                "Auto asks this model about unclear requests: it rated {right} of {of} requests correctly."
            ),
            (Judgment::Routing, false) => format!(
                "Auto uses its rules alone: this model rated {right} of {of} requests correctly."
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_says_what_the_model_is_trusted_with() {
        let mark = |judgment, right, of, passed| Mark {
            judgment,
            version: "1".to_owned(),
            taken_at: "2026-11-26T12:00:00Z".to_owned(),
            model: ModelId("small".to_owned()),
            size_bytes: 100,
            sha256: None,
            right,
            of,
            passed,
            milliseconds: Some(1000),
        };
        let sentence = |judgment, right, of, passed| mark(judgment, right, of, passed).sentence();
        assert_eq!(
            sentence(Judgment::Triage, 7, 16, false),
            "Triage is off: this model sorted 7 of 16 messages correctly."
        );
        assert!(sentence(Judgment::Triage, 14, 16, true).starts_with("Triage is on: "));
        let slow = Mark {
            milliseconds: Some(1400),
            ..mark(Judgment::Triage, 14, 16, true)
        };
        assert_eq!(
            slow.sentence(),
            "Triage is off in chains: this model takes 1.4 s for a message (14 of 16 correct)."
        );
        assert_eq!(
            sentence(Judgment::Routing, 10, 12, true),
            "Auto asks this model about unclear requests: it rated 10 of 12 requests correctly."
        );
        assert!(sentence(Judgment::Routing, 3, 12, false).starts_with("Auto uses its rules alone"));
    }
}
