//! A request to the model in OpenAI's form.

use super::{Message, ModelRequest};
use serde_json::{Map, Value, json};

impl ModelRequest {
    /// The fields of a chat's request but for its model. `earlier`: the messages of the chat before this turn, in OpenAI's form; a system
    /// message among them stands before ours.
    ///
    /// Neighbors of one role become one message, because some templates take turns only.
    pub fn fields(&self, earlier: &[Value]) -> Map<String, Value> {
        let mut messages = vec![json!({ "role": "system", "content": self.system })];
        for message in earlier {
            if message["role"] == "system" {
                let text = message["content"].as_str().unwrap_or_default();
                messages[0]["content"] = format!("{text}\n\n{}", self.system).into();
            } else {
                messages.push(message.clone());
            }
        }
        for message in &self.messages {
            let next = wire(message);
            let last = messages.last_mut();
            match (last, &next["content"]) {
                (Some(last), Value::String(more)) if joins(last, &next) => {
                    let before = last["content"].as_str().unwrap_or_default();
                    last["content"] = format!("{before}\n\n{more}").into();
                }
                _ => messages.push(next),
            }
        }
        let mut fields = Map::new();
        fields.insert("messages".to_owned(), messages.into());
        fields.insert("max_tokens".to_owned(), self.max_tokens.into());
        if !self.is_answer {
            // The likeliest step, as it is measured.
            fields.insert("temperature".to_owned(), 0.into());
        }
        if !self.tools.is_empty() {
            fields.insert("tools".to_owned(), self.tools.clone().into());
        }
        if let Some(grammar) = &self.grammar {
            fields.insert("grammar".to_owned(), grammar.clone().into());
            // Its one word is the answer.
            fields.insert("think".to_owned(), false.into());
        }
        fields
    }
}

fn joins(last: &Value, next: &Value) -> bool {
    let plain = |message: &Value| {
        message["role"] != "tool"
            && message["tool_calls"].is_null()
            && message["content"].is_string()
    };
    last["role"] == next["role"] && plain(last) && plain(next)
}

fn wire(message: &Message) -> Value {
    match message {
        Message::User(text) => json!({ "role": "user", "content": text }),
        Message::Assistant { text, calls } if calls.is_empty() => {
            json!({ "role": "assistant", "content": text })
        }
        Message::Assistant { text, calls } => {
            let calls: Vec<_> = calls
                .iter()
                .map(|call| {
                    let function = json!({ "name": call.name, "arguments": call.arguments });
                    json!({ "id": call.id, "type": "function", "function": function })
                })
                .collect();
            json!({ "role": "assistant", "content": text, "tool_calls": calls })
        }
        Message::Observation {
            call: Some(call),
            text,
        } => json!({ "role": "tool", "tool_call_id": call, "content": text }),
        Message::Observation { call: None, text } => json!({ "role": "user", "content": text }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::Call;

    fn ask(messages: Vec<Message>) -> ModelRequest {
        ModelRequest {
            system: "rules".into(),
            messages,
            tools: Vec::new(),
            grammar: None,
            max_tokens: 100,
            is_answer: true,
        }
    }

    #[test]
    fn calls_and_their_answers_are_openais() {
        let call = Call {
            id: "1".into(),
            name: "read_file".into(),
            arguments: "{}".into(),
        };
        let ask = ask(vec![
            Message::User("q".into()),
            Message::Assistant {
                text: String::new(),
                calls: vec![call],
            },
            Message::Observation {
                call: Some("1".into()),
                text: "found".into(),
            },
        ]);
        let earlier = [
            json!({ "role": "system", "content": "be brief" }),
            json!({ "role": "user", "content": "before" }),
            json!({ "role": "assistant", "content": "answer" }),
        ];
        let fields = ask.fields(&earlier);
        let messages = fields["messages"].as_array().unwrap();
        let roles: Vec<_> = messages.iter().map(|message| &message["role"]).collect();
        assert_eq!(
            roles,
            ["system", "user", "assistant", "user", "assistant", "tool"]
        );
        assert_eq!(messages[0]["content"], "be brief\n\nrules");
        assert_eq!(
            messages[4]["tool_calls"][0]["function"]["name"],
            "read_file"
        );
        assert_eq!(messages[5]["tool_call_id"], "1");
        assert!(!fields.contains_key("tools") && !fields.contains_key("grammar"));
    }

    #[test]
    fn a_small_models_messages_take_turns() {
        let mut ask = ask(vec![
            Message::User("q".into()),
            Message::Assistant {
                text: "shell: ls".into(),
                calls: Vec::new(),
            },
            Message::Observation {
                call: None,
                text: "a b".into(),
            },
            Message::User("What next?".into()),
        ]);
        ask.grammar = Some("root ::= \"a\"".into());
        let fields = ask.fields(&[]);
        let messages = fields["messages"].as_array().unwrap();
        assert_eq!(messages.len(), 4);
        assert_eq!(messages[3]["content"], "a b\n\nWhat next?");
        assert_eq!(fields["think"], false);
        assert!(!fields.contains_key("temperature"));
        ask.is_answer = false;
        assert_eq!(ask.fields(&[])["temperature"], 0);
    }
}
