//! How well a model chose its first steps as an agent on this machine, and which way that speaks for.

use crate::{FileIdentity, ModelId, TierId};
use serde::{Deserialize, Serialize};

/// How the model says what it wants to do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentWay {
    /// The way that was measured to be better on this machine. Without a measurement, `Text` if the model's chat template is known not to
    /// support tools, otherwise `Calls`.
    #[default]
    Auto,
    /// By tool calls.
    Calls,
    /// By one word and one line, for models that cannot call tools.
    Text,
}

/// What one way was measured at.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AgentScore {
    /// Prompts whose first step was right.
    pub right: u32,
    /// For all prompts.
    pub seconds: f64,
}

/// The first steps of one model for fixed prompts, in both ways. Nothing of them was carried out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AgentReport {
    /// Tierbar's.
    pub version: String,
    /// RFC 3339, in UTC.
    pub taken_at: String,
    pub tier: TierId,
    pub model: ModelId,
    pub size_bytes: u64,
    /// The sha256 of the file in lower-case hex, if it was known.
    pub sha256: Option<String>,
    /// Whether the model thought before it answered.
    pub thinking: bool,
    /// How many prompts there were, for each way.
    pub prompts: u32,
    pub calls: AgentScore,
    pub text: AgentScore,
    /// The better way; `null` if the model is too small to act.
    pub way: Option<AgentWay>,
}

impl AgentReport {
    /// Returns the file that was measured.
    pub fn file(&self) -> FileIdentity<'_> {
        FileIdentity {
            model: &self.model,
            size_bytes: self.size_bytes,
            sha256: self.sha256.as_deref(),
        }
    }

    /// The result in one sentence.
    pub fn sentence(&self) -> String {
        let (calls, text, of) = (self.calls.right, self.text.right, self.prompts);
        match self.way {
            Some(AgentWay::Text) => {
                format!("Uses text commands ({text} of {of} correct; tool calls: {calls}).")
            }
            Some(_) => format!("Uses tool calls ({calls} of {of} correct; text commands: {text})."),
            None => format!(
                "Too small to act as an agent (tool calls: {calls} of {of} correct; text commands: {text})."
            ),
        }
    }
}

/// Returns the better way, by how many of `of` first steps were right in each; tool calls if both are equal, because they take fewer
/// requests and MCP servers need them. `None` if less than half was right in both.
///
/// With five tools to choose from, guessing gets half of twelve right in 2 of 100 measurements, and one answer to everything never does.
pub fn choose_way(calls: u32, text: u32, of: u32) -> Option<AgentWay> {
    if calls.max(text).saturating_mul(2) < of.max(1) {
        return None;
    }
    Some(if text > calls {
        AgentWay::Text
    } else {
        AgentWay::Calls
    })
}

/// Returns the way that was measured for a model that thinks, or does not; `None` if it was not, or came to nothing.
pub fn measured_way(reports: &[AgentReport], thinking: bool) -> Option<AgentWay> {
    let report = reports.iter().find(|report| report.thinking == thinking)?;
    report.way
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(calls: u32, text: u32) -> AgentReport {
        let score = |right| AgentScore {
            right,
            seconds: 4.0,
        };
        AgentReport {
            version: "1".to_owned(),
            taken_at: "2026-11-26T12:00:00Z".to_owned(),
            tier: TierId::new("fast").unwrap(),
            model: ModelId("small".to_owned()),
            size_bytes: 100,
            sha256: Some("ab".to_owned()),
            thinking: false,
            prompts: 12,
            calls: score(calls),
            text: score(text),
            way: choose_way(calls, text, 12),
        }
    }

    #[test]
    fn the_better_way_wins_and_calls_win_a_tie() {
        for (calls, text, way) in [
            (12, 11, Some(AgentWay::Calls)),
            (11, 12, Some(AgentWay::Text)),
            (8, 8, Some(AgentWay::Calls)),
            (0, 6, Some(AgentWay::Text)),
            (6, 0, Some(AgentWay::Calls)),
            (5, 5, None),
            (0, 5, None),
            (0, 0, None),
        ] {
            assert_eq!(choose_way(calls, text, 12), way, "{calls} {text}");
        }
        assert_eq!(choose_way(0, 0, 0), None);
    }

    #[test]
    fn a_report_is_of_its_file() {
        let small = ModelId("small".to_owned());
        let moved = ModelId("moved".to_owned());
        let report = report(12, 12);
        let is_of = |model, size_bytes, sha256| {
            report.file().is_same(FileIdentity {
                model,
                size_bytes,
                sha256,
            })
        };
        assert!(is_of(&moved, 100, Some("ab")));
        assert!(!is_of(&small, 100, Some("cd")));
        // Not hashed yet.
        assert!(is_of(&small, 100, None));
        assert!(!is_of(&small, 101, None) && !is_of(&moved, 100, None));
    }

    #[test]
    fn a_model_is_measured_thinking_or_not() {
        let mut thinks = report(3, 9);
        thinks.thinking = true;
        let reports = [report(9, 3), thinks];
        assert_eq!(measured_way(&reports, false), Some(AgentWay::Calls));
        assert_eq!(measured_way(&reports, true), Some(AgentWay::Text));
        assert_eq!(measured_way(&reports[..1], true), None);
        assert_eq!(measured_way(&[report(1, 2)], false), None);
    }

    #[test]
    fn the_sentence_says_what_follows() {
        assert_eq!(
            report(4, 9).sentence(),
            "Uses text commands (9 of 12 correct; tool calls: 4)."
        );
        assert!(
            report(9, 4)
                .sentence()
                .starts_with("Uses tool calls (9 of 12")
        );
        let too_small = report(2, 3).sentence();
        assert!(
            too_small.starts_with("Too small to act as an agent ("),
            "{too_small}"
        );
    }
}
