//! The kind of a message, and what it needs.

use crate::delimited::delimited;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tierbar_routing::classifier::excerpt;

pub mod exam;
mod need;

pub use need::CloudNeed;

tierbar_core::words! {
    /// The type of a message. One that fits several has the first of them.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub enum MessageType {
        /// Reports that something is broken, wrong or dangerous, or complains.
        Problem = "problem",
        /// Asks to have something done.
        Request = "request",
        /// Proposes, confirms, moves or cancels a time to meet.
        Appointment = "appointment",
        /// Asks to know something.
        Question = "question",
        /// Proposes something to think about.
        Idea = "idea",
        /// Advertises something to many.
        Promotion = "promotion",
        /// For information; needs nothing.
        Fyi = "fyi",
        /// Only greets, thanks or wishes well.
        Greeting = "greeting",
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Triage {
    #[serde(rename = "type")]
    pub kind: MessageType,
    /// 0 for any time, 1 for this week, 2 for today, 3 for now.
    pub urgency: u8,
    /// Whether a small model would do it badly, as the model estimates. [`Triage::cloud_need`] has the rule.
    pub needs_cloud: bool,
}

pub const MOST_URGENT: u8 = 3;

/// Returns the schema for engines that follow one.
pub fn schema() -> Value {
    let kinds = MessageType::ALL.map(MessageType::as_str);
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
    pub fn from_answer(answer: &Map<String, Value>) -> Option<Self> {
        let name = answer.get("type")?.as_str()?.trim().to_ascii_lowercase();
        let kind = MessageType::find(&name)?;
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

/// What a model is told to do, with an example of each type.
pub const INSTRUCTIONS: &str = include_str!("triage.md");
/// The object, with room for spaces.
pub const ANSWER_TOKENS: u32 = 64;
/// The characters at the start and at the end of a longer message that a model reads for a chain.
const HEAD: usize = 1200;
const TAIL: usize = 600;

/// Returns the whole question as the body of a chat completion. Of a long message, the middle is left out.
pub fn question(message: &str) -> Value {
    let message = delimited(&excerpt(message, HEAD, TAIL, "\n…\n"));
    json!({
        "messages": [
            {"role": "system", "content": INSTRUCTIONS},
            {"role": "user", "content": format!("Message:\n{message}")},
        ],
        "max_tokens": ANSWER_TOKENS,
        "temperature": 0,
        "cache_prompt": true,
        "chat_template_kwargs": {"enable_thinking": false},
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": true, "schema": schema()},
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(answer: Value) -> Option<Triage> {
        Triage::from_answer(answer.as_object().unwrap())
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

    #[test]
    fn a_long_message_is_asked_about_by_its_ends() {
        let message = format!("begin {} end", "ä ".repeat(100_000));
        let question = question(&message);
        let content = question["messages"][1]["content"].as_str().unwrap();
        assert!(content.len() < 6000, "{}", content.len());
        assert!(content.contains("begin ä") && content.contains("ä  end"));
    }

    #[test]
    fn the_instructions_name_each_type_with_an_example() {
        for name in MessageType::ALL.map(MessageType::as_str) {
            let line = format!("\n{name}: ");
            let example = format!("{{\"type\": \"{name}\", \"urgency\": ");
            assert!(INSTRUCTIONS.contains(&line), "{name}");
            assert!(INSTRUCTIONS.contains(&example), "{name}");
        }
    }
}
