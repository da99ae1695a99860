//! How well a model chose its first steps as an agent, and which way that speaks for.

use crate::judgment::{ExamOutcome, Judgment, Mark};
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AgentScore {
    /// Prompts whose first step was right.
    pub right: u32,
    /// For all prompts.
    pub milliseconds: u64,
}

/// The first steps of a model for fixed prompts, in both ways. None was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct FirstSteps {
    /// Whether the model thought before it answered.
    pub thinking: bool,
    pub calls: AgentScore,
    pub text: AgentScore,
}

impl FirstSteps {
    /// Returns how the model did in `of` prompts: as in its better way.
    pub fn outcome(self, of: u32) -> ExamOutcome {
        ExamOutcome {
            judgment: Judgment::Agent,
            right: self.calls.right.max(self.text.right),
            of,
            passed: self.way(of).is_some(),
            milliseconds: None,
            result: serde_json::to_value(self).unwrap_or_default(),
        }
    }

    /// Returns the better way, by how many of `of` first steps were right in each; tool calls if both are equal, because they take
    /// fewer requests and MCP servers need them. `None` if less than half was right in both.
    ///
    /// With five tools to choose from, guessing gets half of twelve right in 2 of 100 measurements, and one answer to everything
    /// never does.
    pub fn way(self, of: u32) -> Option<AgentWay> {
        let (calls, text) = (self.calls.right, self.text.right);
        if calls.max(text).saturating_mul(2) < of.max(1) {
            return None;
        }
        Some(if text > calls {
            AgentWay::Text
        } else {
            AgentWay::Calls
        })
    }

    /// The result in one sentence.
    pub(crate) fn sentence(self, of: u32) -> String {
        let (calls, text) = (self.calls.right, self.text.right);
        match self.way(of) {
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

/// Returns the way that was measured for a model that thinks, or does not; `None` if it was not, or came to nothing.
pub fn measured_way(marks: &[Mark], thinking: bool) -> Option<AgentWay> {
    let mut measured = marks
        .iter()
        .filter_map(|mark| Some((mark.first_steps?, mark.of)));
    let (steps, of) = measured.find(|(steps, _)| steps.thinking == thinking)?;
    steps.way(of)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::judgment::tests::mark;

    pub(crate) fn steps(calls: u32, text: u32) -> FirstSteps {
        let score = |right| AgentScore {
            right,
            milliseconds: 4000,
        };
        FirstSteps {
            thinking: false,
            calls: score(calls),
            text: score(text),
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
            assert_eq!(steps(calls, text).way(12), way, "{calls} {text}");
            let outcome = steps(calls, text).outcome(12);
            assert_eq!(outcome.passed, way.is_some(), "{calls} {text}");
            assert_eq!(outcome.right, calls.max(text), "{calls} {text}");
        }
        assert_eq!(steps(0, 0).way(0), None);
    }

    #[test]
    fn a_model_is_measured_thinking_or_not() {
        let mark = |calls, text, thinking| Mark {
            first_steps: Some(FirstSteps {
                thinking,
                ..steps(calls, text)
            }),
            ..mark(Judgment::Agent, calls.max(text), 12, true)
        };
        let marks = [mark(9, 3, false), mark(3, 9, true)];
        assert_eq!(measured_way(&marks, false), Some(AgentWay::Calls));
        assert_eq!(measured_way(&marks, true), Some(AgentWay::Text));
        assert_eq!(measured_way(&marks[..1], true), None);
        assert_eq!(measured_way(&[mark(1, 2, false)], false), None);
    }
}
