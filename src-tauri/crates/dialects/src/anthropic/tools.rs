//! Tools as OpenAI offers them.

use serde::Deserialize;
use serde_json::{Value, json};
use tierbar_core::{Error, bad_request};
use utoipa::ToSchema;

/// Whether the model may, must or must not call tools.
#[derive(Debug, Deserialize, ToSchema)]
pub(super) struct Choice {
    /// `auto`, `any`, `none` or `tool`.
    #[serde(rename = "type")]
    kind: String,
    /// The tool to call.
    name: Option<String>,
    disable_parallel_tool_use: Option<bool>,
}

impl Choice {
    pub(super) fn openai(&self) -> Result<Value, Error> {
        match (self.kind.as_str(), &self.name) {
            ("auto" | "none", _) => Ok(json!(self.kind)),
            ("any", _) => Ok(json!("required")),
            ("tool", Some(name)) => Ok(json!({"type": "function", "function": {"name": name}})),
            _ => Err(bad_request(
                "`tool_choice` must be auto, any, none or a tool by name",
            )),
        }
    }

    /// Refuses a choice of what is not offered, as [`functions`] gives it, and a call where there are none. `sent`: the tools as the client
    /// sent them.
    pub(super) fn check(&self, offered: Option<&Value>, sent: &[Value]) -> Result<(), Error> {
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
        let error = bad_request(message);
        let foreign = sent.iter().filter(|tool| !is_described(tool));
        let foreign: Vec<String> = foreign
            .filter_map(|tool| Some(tool.get("type")?.as_str()?.chars().take(40).collect()))
            .collect();
        Err(match foreign.is_empty() {
            true => error.hint("name one of the `tools`, or send it with an `input_schema`"),
            false => error.hint(format!(
                "tools that Anthropic's servers run do not run here: {}",
                foreign.join(", ")
            )),
        })
    }

    pub(super) fn parallel(&self) -> Option<bool> {
        self.disable_parallel_tool_use.map(|disabled| !disabled)
    }
}

/// What the types of tools begin with that the client runs, but whose schemas only Anthropic's models know. A date follows.
const UNDESCRIBED: [&str; 4] = ["bash_", "text_editor_", "computer_", "memory_"];

/// The tools that the client runs. Those that Anthropic's servers would run have no schema and cannot run here: they are not offered to
/// the model. One that the client runs without an `input_schema` is refused: left out, an agent would wait for calls in vain.
pub(super) fn functions(tools: &[Value]) -> Result<Option<Value>, Error> {
    let mut undescribed = tools.iter().filter(|tool| !is_described(tool));
    if let Some(tool) = undescribed.find(|tool| is_clients(tool)) {
        let named = ["type", "name"].map(|key| tool.get(key).and_then(Value::as_str));
        let shown = named.into_iter().flatten().next().unwrap_or("custom");
        let message = format!("the tool \"{shown:.40}\" in `tools` has no `input_schema`");
        return Err(bad_request(message)
            .hint("send it with a `name`, a `description` and an `input_schema`, as a tool of your own: no model here knows Anthropic's tools"));
    }
    let offered: Vec<_> = tools
        .iter()
        .filter(|tool| is_described(tool))
        .map(|tool| {
            json!({"type": "function", "function": {
                "name": tool["name"],
                "description": tool.get("description").unwrap_or(&json!("")),
                "parameters": tool["input_schema"],
            }})
        })
        .collect();
    Ok((!offered.is_empty()).then(|| offered.into()))
}

/// The tools that [`functions`] leaves out, each by its place and its type.
pub(super) fn left_out(tools: &[Value]) -> Vec<String> {
    let numbered = tools.iter().enumerate();
    let others = numbered.filter(|(_, tool)| !is_described(tool));
    let named = others.map(|(at, tool)| {
        let kind = tool.get("type").and_then(Value::as_str).unwrap_or_default();
        format!("tools[{at}]: {kind:.100}")
    });
    named.collect()
}

fn is_described(tool: &Value) -> bool {
    tool.get("input_schema").is_some()
}

/// Whether the client runs this tool, by its type. Its own tools may have none.
fn is_clients(tool: &Value) -> bool {
    let Some(kind) = tool.get("type").and_then(Value::as_str) else {
        return true;
    };
    kind == "custom"
        || UNDESCRIBED.iter().any(|prefix| {
            let date = kind.strip_prefix(prefix);
            date.is_some_and(|date| date.starts_with(|first: char| first.is_ascii_digit()))
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_core::Code;

    #[test]
    fn only_the_clients_own_tools_are_offered() {
        let own = json!({"name": "look", "description": "Looks.", "input_schema": {"type": "object"}, "cache_control": {}});
        let servers = json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 5});
        let function =
            json!({"name": "look", "description": "Looks.", "parameters": {"type": "object"}});
        assert_eq!(
            functions(&[own, servers.clone()]).unwrap(),
            Some(json!([{"type": "function", "function": function}]))
        );
        assert_eq!(functions(&[servers]).unwrap(), None);
        for kind in [
            "web_fetch_20250910",
            "code_execution_20250825",
            "tool_search_tool_regex_20251119",
        ] {
            let servers = json!({"type": kind, "name": "a"});
            assert_eq!(functions(&[servers]).unwrap(), None, "{kind}");
        }
    }

    #[test]
    fn a_clients_tool_without_a_schema_is_refused_by_its_type() {
        for kind in [
            "bash_20250124",
            "text_editor_20250728",
            "computer_20250124",
            "memory_20250818",
            "custom",
        ] {
            let mut tool = json!({"type": kind, "name": "a"});
            let error = functions(&[tool.clone()]).unwrap_err();
            assert_eq!(error.code, Code::BadRequest);
            assert!(error.message.contains(kind), "{error}");
            assert!(error.hint.unwrap().contains("`input_schema`"));
            tool["input_schema"] = json!({"type": "object"});
            assert!(functions(&[tool]).unwrap().is_some(), "{kind}");
        }
        let error = functions(&[json!({"name": "look"})]).unwrap_err();
        assert!(error.message.contains("\"look\""), "{error}");
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
