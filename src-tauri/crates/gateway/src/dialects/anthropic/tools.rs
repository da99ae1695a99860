//! Tools as OpenAI offers them.

use serde::Deserialize;
use serde_json::{Value, json};
use tierbar_core::{Code, Error};
use utoipa::ToSchema;

/// Whether the model may, must or must not call tools.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct Choice {
    /// `auto`, `any`, `none` or `tool`.
    #[serde(rename = "type")]
    kind: String,
    /// The tool to call.
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    disable_parallel_tool_use: Option<bool>,
}

impl Choice {
    pub(super) fn openai(&self) -> Result<Value, Error> {
        match (self.kind.as_str(), &self.name) {
            ("auto" | "none", _) => Ok(json!(self.kind)),
            ("any", _) => Ok(json!("required")),
            ("tool", Some(name)) => Ok(json!({"type": "function", "function": {"name": name}})),
            _ => Err(Error::new(
                Code::BadRequest,
                "`tool_choice` must be auto, any, none or a tool by name",
            )),
        }
    }

    /// # Errors
    /// `BadRequest` for a choice of what is not among these, as [`functions`] gives them, or for a call where there are none.
    pub(super) fn check(&self, offered: Option<&Value>) -> Result<(), Error> {
        let mut tools = offered.and_then(Value::as_array).into_iter().flatten();
        let message = match (self.kind.as_str(), self.name.as_deref()) {
            ("tool", Some(name)) if !tools.any(|tool| tool["function"]["name"] == name) => {
                format!(
                    "`tool_choice` names \"{name}\", which is not among the `tools` with an `input_schema`"
                )
            }
            ("any", _) if tools.next().is_none() => {
                "`tool_choice` requires a tool, but `tools` has none with an `input_schema`"
                    .to_owned()
            }
            _ => return Ok(()),
        };
        Err(Error::new(Code::BadRequest, message)
            .hint("tools that Anthropic's servers run, such as web search, do not run here"))
    }

    pub(super) fn parallel(&self) -> Option<bool> {
        self.disable_parallel_tool_use.map(|disabled| !disabled)
    }
}

/// The tools that the client runs. Those that Anthropic's servers would run have no schema, and nobody here to run them: they
/// are not offered to the model.
pub(super) fn functions(tools: &[Value]) -> Option<Value> {
    let offered: Vec<_> = tools
        .iter()
        .filter(|tool| tool.get("input_schema").is_some())
        .map(|tool| {
            json!({"type": "function", "function": {
                "name": tool["name"],
                "description": tool.get("description").unwrap_or(&json!("")),
                "parameters": tool["input_schema"],
            }})
        })
        .collect();
    (!offered.is_empty()).then(|| offered.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_clients_own_tools_are_offered() {
        let own = json!({"name": "look", "description": "Looks.", "input_schema": {"type": "object"}, "cache_control": {}});
        let servers = json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 5});
        let function =
            json!({"name": "look", "description": "Looks.", "parameters": {"type": "object"}});
        assert_eq!(
            functions(&[own, servers.clone()]),
            Some(json!([{"type": "function", "function": function}]))
        );
        assert_eq!(functions(&[servers]), None);
    }

    #[test]
    fn a_choice_is_renamed() {
        let openai = |choice: Value| {
            let choice: Choice = serde_json::from_value(choice).unwrap();
            choice.openai().ok()
        };
        assert_eq!(openai(json!({"type": "any"})), Some(json!("required")));
        assert_eq!(openai(json!({"type": "none"})), Some(json!("none")));
        assert_eq!(
            openai(json!({"type": "tool", "name": "look"})),
            Some(json!({"type": "function", "function": {"name": "look"}}))
        );
        assert_eq!(openai(json!({"type": "tool"})), None);
        assert_eq!(openai(json!({"type": "some"})), None);
    }
}
