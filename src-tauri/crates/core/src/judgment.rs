//! What a model is trusted with once it has passed an examination, and how it did.

use crate::{FileIdentity, ModelId, first_steps::FirstSteps};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;

/// How long a chain waits for triage.
pub const TRIAGE_WAIT: Duration = Duration::from_secs(1);

/// What a model judges for Tierbar.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Judgment {
    /// It sorts messages, for chains and for `/v1/triage`.
    Triage,
    /// It rates how hard a request is, for `auto`.
    Routing,
    /// It shortens texts, for `/v1/summarize`, `/v1/compress`, schedules and long chats.
    Summaries,
    /// It cites the passages of documents that it answers from.
    Citations,
    /// It chooses an agent's first step, by tool calls and by text commands.
    Agent,
}

impl Judgment {
    /// Those that models are examined in without a request for it.
    pub const TESTED: [Self; 4] = [
        Self::Triage,
        Self::Routing,
        Self::Summaries,
        Self::Citations,
    ];

    /// What it is, as lists name it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Triage => "Triage",
            Self::Routing => "Auto",
            Self::Summaries => "Summaries",
            Self::Citations => "Citations",
            Self::Agent => "Agent",
        }
    }
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
    /// When the file was changed last, in seconds since 1970, if that was known.
    pub modified: Option<u64>,
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
    /// How an agent's first steps were in each way.
    #[serde(default)]
    pub first_steps: Option<FirstSteps>,
}

impl Mark {
    /// Returns the file that was examined.
    pub fn file(&self) -> FileIdentity<'_> {
        FileIdentity {
            model: &self.model,
            size_bytes: self.size_bytes,
            modified: self.modified,
            sha256: self.sha256.as_deref(),
        }
    }

    /// What was examined, as lists name it. A file has one mark of each.
    pub fn title(&self) -> &'static str {
        let thinks = self.first_steps.is_some_and(|steps| steps.thinking);
        match self.judgment {
            Judgment::Agent if thinks => "Agent, thinking",
            judgment => judgment.title(),
        }
    }

    /// What follows from it, in one sentence beside its title.
    pub fn sentence(&self) -> String {
        let (right, of) = (self.right, self.of);
        if let Some(steps) = self.first_steps {
            return steps.sentence(of);
        }
        let time = self.milliseconds.map(Duration::from_millis);
        match time.filter(|time| self.judgment == Judgment::Triage && *time > TRIAGE_WAIT) {
            Some(time) if self.passed => {
                let seconds = time.as_secs_f64();
                format!("Off in chains: {seconds:.1} s for a message ({right} of {of} correct).")
            }
            _ if self.passed => format!("On: {right} of {of} correct."),
            _ => format!("Off: {right} of {of} correct. A rule stands in."),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::first_steps::tests::steps;

    pub(crate) fn mark(judgment: Judgment, right: u32, of: u32, passed: bool) -> Mark {
        Mark {
            judgment,
            version: "1".to_owned(),
            taken_at: "2026-11-26T12:00:00Z".to_owned(),
            model: ModelId("small".to_owned()),
            size_bytes: 100,
            modified: None,
            sha256: None,
            right,
            of,
            passed,
            milliseconds: None,
            first_steps: None,
        }
    }

    #[test]
    fn a_mark_has_every_field_that_its_description_requires() {
        let written = serde_json::to_value(mark(Judgment::Triage, 14, 16, true)).unwrap();
        assert_eq!(written.get("first_steps"), Some(&Value::Null));
        let mut earlier = written;
        earlier.as_object_mut().unwrap().remove("first_steps");
        let read: Mark = serde_json::from_value(earlier).unwrap();
        assert_eq!(read.first_steps, None);
    }

    #[test]
    fn the_sentence_says_what_the_model_is_trusted_with() {
        let on = "On: 14 of 16 correct.";
        let off = "Off: 7 of 16 correct. A rule stands in.";
        let slow = "Off in chains: 1.4 s for a message (14 of 16 correct).";
        for (judgment, right, passed, milliseconds, sentence) in [
            (Judgment::Triage, 14, true, Some(1000), on),
            (Judgment::Triage, 14, true, Some(1400), slow),
            (Judgment::Triage, 7, false, Some(1400), off),
            (Judgment::Routing, 14, true, None, on),
            (Judgment::Routing, 14, true, Some(1400), on),
            (Judgment::Routing, 7, false, None, off),
            (Judgment::Summaries, 14, true, None, on),
            (Judgment::Summaries, 7, false, None, off),
            (Judgment::Citations, 14, true, None, on),
            (Judgment::Citations, 7, false, None, off),
        ] {
            let mark = Mark {
                milliseconds,
                ..mark(judgment, right, 16, passed)
            };
            assert_eq!(mark.sentence(), sentence, "{judgment:?} {milliseconds:?}");
        }
        for (calls, text, sentence) in [
            (4, 9, "Uses text commands (9 of 12 correct; tool calls: 4)."),
            (9, 4, "Uses tool calls (9 of 12 correct; text commands: 4)."),
            (
                2,
                3,
                "Too small to act as an agent (tool calls: 2 of 12 correct; text commands: 3).",
            ),
        ] {
            let mark = Mark {
                first_steps: Some(steps(calls, text)),
                ..mark(Judgment::Agent, calls.max(text), 12, calls.max(text) >= 6)
            };
            assert_eq!(mark.sentence(), sentence);
        }
    }
}
