//! A chat's messages as OpenAI's. Its calls of tools have no ids and their arguments are objects.

use super::images;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tierbar_core::{Error, bad_request};
use utoipa::ToSchema;

/// A message of a chat in Ollama's form.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = OllamaMessage)]
pub(super) struct Message {
    /// `system`, `user`, `assistant` or `tool`.
    role: String,
    content: Option<String>,
    /// The assistant's thoughts.
    thinking: Option<String>,
    /// In base64: PNG, JPEG, GIF, BMP or WebP.
    images: Option<Vec<String>>,
    /// The assistant's calls of tools.
    #[schema(value_type = Option<Vec<Object>>)]
    tool_calls: Option<Vec<Call>>,
    /// The tool whose result this message is.
    tool_name: Option<String>,
    tool_call_id: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Call {
    id: Option<String>,
    function: Function,
}

#[derive(Debug, Deserialize)]
struct Function {
    name: String,
    #[serde(default)]
    arguments: Value,
}

pub(super) fn openai(messages: Vec<Message>) -> Result<Vec<Value>, Error> {
    let mut calls = Calls::default();
    messages
        .into_iter()
        .map(|message| calls.message(message))
        .collect()
}

/// The calls so far, and those whose result has not come.
#[derive(Debug, Default)]
struct Calls {
    made: usize,
    /// Their ids and functions, in order.
    open: Vec<(String, String)>,
}

impl Calls {
    fn message(&mut self, message: Message) -> Result<Value, Error> {
        let text = message.content.unwrap_or_default();
        let images = message.images.unwrap_or_default();
        let content = images::content(&text, &images)?;
        let mut rendered = Map::new();
        rendered.insert("role".to_owned(), message.role.as_str().into());
        rendered.insert("content".to_owned(), content);
        if let Some(thinking) = message.thinking.filter(|thinking| !thinking.is_empty()) {
            rendered.insert("reasoning_content".to_owned(), thinking.into());
        }
        if let Some(calls) = message.tool_calls.filter(|calls| !calls.is_empty()) {
            let calls: Result<Vec<_>, _> = calls.into_iter().map(|call| self.call(call)).collect();
            rendered.insert("tool_calls".to_owned(), calls?.into());
        }
        if message.role == "tool" {
            let id = self.answered(message.tool_call_id, message.tool_name.as_deref());
            rendered.insert("tool_call_id".to_owned(), id.into());
            if let Some(name) = message.tool_name {
                rendered.insert("name".to_owned(), name.into());
            }
        }
        Ok(rendered.into())
    }

    fn call(&mut self, call: Call) -> Result<Value, Error> {
        let Function { name, arguments } = call.function;
        let arguments = match arguments {
            Value::Null => "{}".to_owned(),
            // As OpenAI writes them.
            Value::String(json) => json,
            Value::Object(_) => arguments.to_string(),
            _ => {
                return Err(bad_request(format!(
                    "the arguments of the call of {name} are not an object"
                )));
            }
        };
        let id = self.id(call.id);
        self.open.push((id.clone(), name.clone()));
        Ok(
            json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}),
        )
    }

    /// Which call this is the result of: the one that it names, else the first open one of its function, else the first.
    fn answered(&mut self, id: Option<String>, name: Option<&str>) -> String {
        if let Some(id) = id.filter(|id| !id.is_empty()) {
            self.open.retain(|(open, _)| *open != id);
            return id;
        }
        let of_it = self
            .open
            .iter()
            .position(|(_, of)| Some(of.as_str()) == name);
        if self.open.is_empty() {
            return self.id(None);
        }
        self.open.remove(of_it.unwrap_or(0)).0
    }

    fn id(&mut self, given: Option<String>) -> String {
        self.made += 1;
        given
            .filter(|id| !id.is_empty())
            .unwrap_or_else(|| format!("call_{}", self.made))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(messages: Value) -> Result<Value, Error> {
        let messages: Vec<Message> = serde_json::from_value(messages).unwrap();
        openai(messages).map(Value::Array)
    }

    #[test]
    fn words_and_thoughts_pass() {
        let messages = json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi", "images": []},
            {"role": "assistant", "content": null, "thinking": "hm"},
        ]);
        assert_eq!(
            converted(messages).unwrap(),
            json!([
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": "", "reasoning_content": "hm"},
            ])
        );
    }

    #[test]
    fn calls_get_ids_by_which_their_results_find_them() {
        let call = |name: &str, arguments: Value| json!({"function": {"name": name, "arguments": arguments}});
        let messages = json!([
            {"role": "assistant", "tool_calls": [call("look", json!({"at": 1})), call("ask", json!({})), call("look", json!(null))]},
            {"role": "tool", "tool_name": "ask", "content": "yes"},
            {"role": "tool", "tool_name": "look", "content": "a"},
            {"role": "tool", "content": "b"},
            {"role": "tool", "tool_call_id": "mine", "content": "c"},
            {"role": "tool", "content": "of nothing"},
        ]);
        let reply = converted(messages).unwrap();
        assert_eq!(
            reply[0]["tool_calls"],
            json!([
                {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{\"at\":1}"}},
                {"id": "call_2", "type": "function", "function": {"name": "ask", "arguments": "{}"}},
                {"id": "call_3", "type": "function", "function": {"name": "look", "arguments": "{}"}},
            ])
        );
        let ids: Vec<_> = (1..=5)
            .map(|at| reply[at]["tool_call_id"].clone())
            .collect();
        assert_eq!(ids, ["call_2", "call_1", "call_3", "mine", "call_4"]);
        assert_eq!(reply[1]["name"], "ask");
    }

    #[test]
    fn arguments_are_an_object() {
        let wrong = json!([{"role": "assistant", "tool_calls": [{"function": {"name": "look", "arguments": [1]}}]}]);
        assert!(
            converted(wrong)
                .unwrap_err()
                .message
                .contains("call of look")
        );
    }
}
