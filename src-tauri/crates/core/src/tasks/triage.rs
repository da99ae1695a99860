//! The kind of a message, and what it needs.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageType {
    Question,
    Request,
    Idea,
    Greeting,
    /// For information; needs nothing.
    Fyi,
}

impl MessageType {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Question, "question"),
        (Self::Request, "request"),
        (Self::Idea, "idea"),
        (Self::Greeting, "greeting"),
        (Self::Fyi, "fyi"),
    ];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Triage {
    #[serde(rename = "type")]
    pub kind: MessageType,
    /// 0 for any time, 1 for this week, 2 for today, 3 for now.
    pub urgency: u8,
    /// Whether a small model would do it badly.
    pub needs_cloud: bool,
}

pub const MOST_URGENT: u8 = 3;

/// Returns the schema for engines that follow one.
#[must_use]
pub fn schema() -> Value {
    let kinds = MessageType::ALL.map(|(_, name)| name);
    json!({
        "type": "object",
        "properties": {
            "type": {"type": "string", "enum": kinds},
            "urgency": {"type": "integer", "enum": [0, 1, 2, 3]},
            "needs_cloud": {"type": "boolean"},
        },
        "required": ["type", "urgency", "needs_cloud"],
        "additionalProperties": false,
    })
}

impl Triage {
    /// Reads an answer that may not follow the schema to the letter: a number as text, `"Question"`, `"yes"`. Returns
    /// `None` for values out of bounds or of another kind.
    #[must_use]
    pub fn read(answer: &Map<String, Value>) -> Option<Self> {
        let name = answer.get("type")?.as_str()?.trim().to_ascii_lowercase();
        let (kind, _) = MessageType::ALL.into_iter().find(|(_, is)| *is == name)?;
        let urgency = match answer.get("urgency")? {
            Value::Number(number) => number.as_u64()?,
            Value::String(text) => text.trim().parse().ok()?,
            _ => return None,
        };
        let urgency = u8::try_from(urgency).ok().filter(|is| *is <= MOST_URGENT)?;
        let needs_cloud = match answer.get("needs_cloud")? {
            Value::Bool(truth) => *truth,
            Value::String(text) => match text.trim().to_ascii_lowercase().as_str() {
                "true" | "yes" => true,
                "false" | "no" => false,
                _ => return None,
            },
            _ => return None,
        };
        Some(Self {
            kind,
            urgency,
            needs_cloud,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(answer: Value) -> Option<Triage> {
        Triage::read(answer.as_object().unwrap())
    }

    #[test]
    fn an_answer_with_slightly_wrong_types_is_read() {
        let triage = Triage {
            kind: MessageType::Request,
            urgency: 2,
            needs_cloud: false,
        };
        for answer in [
            json!({"type": "request", "urgency": 2, "needs_cloud": false}),
            json!({"type": " Request", "urgency": "2", "needs_cloud": "no", "why": "x"}),
        ] {
            assert_eq!(read(answer), Some(triage));
        }
        let wire = json!({"type": "request", "urgency": 2, "needs_cloud": false});
        assert_eq!(serde_json::to_value(triage).unwrap(), wire);
    }

    #[test]
    fn an_answer_out_of_bounds_is_refused() {
        for answer in [
            json!({}),
            json!({"type": "question", "urgency": 4, "needs_cloud": true}),
            json!({"type": "question", "urgency": -1, "needs_cloud": true}),
            json!({"type": "question", "urgency": 1.5, "needs_cloud": true}),
            json!({"type": "spam", "urgency": 1, "needs_cloud": true}),
            json!({"type": "question", "urgency": 1, "needs_cloud": "maybe"}),
            json!({"type": "question", "urgency": 1}),
        ] {
            assert_eq!(read(answer.clone()), None, "{answer}");
        }
    }
}
