//! The question to a model.

use super::schema;
use crate::delimited::delimited;
use serde_json::{Value, json};

/// What a model is told to do, with an example of each type.
pub const INSTRUCTIONS: &str = include_str!("../triage.md");
/// The object, with room for spaces.
pub const ANSWER_TOKENS: u32 = 64;
/// The characters at the start and at the end of a longer message that a model reads for a chain.
const HEAD: usize = 1200;
const TAIL: usize = 600;

/// Returns the user's part of the question, with the message as data.
#[must_use]
pub fn user_message(message: &str) -> String {
    format!("Message:\n{}", delimited(message))
}

/// Returns the whole question as the body of a chat completion. Of a long message, the middle is left out.
#[must_use]
pub fn question(message: &str) -> Value {
    json!({
        "messages": [
            {"role": "system", "content": INSTRUCTIONS},
            {"role": "user", "content": user_message(&excerpt(message))},
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

fn excerpt(message: &str) -> String {
    let count = message.chars().count();
    if count <= HEAD + TAIL {
        return message.to_owned();
    }
    let head = message.chars().take(HEAD);
    let tail = message.chars().skip(count - TAIL);
    head.chain("\n…\n".chars()).chain(tail).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
        for (_, name) in super::super::MessageType::ALL {
            let line = format!("\n{name}: ");
            let example = format!("{{\"type\": \"{name}\", \"urgency\": ");
            assert!(INSTRUCTIONS.contains(&line), "{name}");
            assert!(INSTRUCTIONS.contains(&example), "{name}");
        }
    }
}
