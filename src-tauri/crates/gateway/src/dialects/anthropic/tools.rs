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

    /// Whether it can be made among these, as [`offered`] gives them.
    pub(super) fn is_of(&self, offered: &Value) -> bool {
        let mut offered = offered.as_array().into_iter().flatten();
        let mut named = |name: &str| offered.any(|tool| tool["function"]["name"] == name);
        self.name.as_deref().is_none_or(&mut named)
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
