//! Tools as a chat offers them.

use serde_json::{Map, Value, json};
use tierbar_core::{Error, bad_request};

/// The client's functions. Tools that OpenAI's servers would run, and those without a schema, cannot be called here:
/// they are not offered to the model, and the response names them.
#[derive(Debug)]
pub(super) struct Tools {
    /// As a chat has them.
    pub(super) offered: Vec<Value>,
    /// The same as the client sent them.
    pub(super) kept: Vec<Value>,
    /// As a chat has it; `null` for none.
    pub(super) choice: Value,
    pub(super) choice_echo: Value,
    pub(super) left_out: Vec<String>,
    /// Whether `file_search` has run for this request, before the model is asked.
    searches: bool,
}

impl Tools {
    /// `searches`: whether `file_search` has run.
    pub(super) fn read(
        sent: Vec<Value>,
        choice: Option<Value>,
        searches: bool,
    ) -> Result<Self, Error> {
        let choice = choice.filter(|choice| !choice.is_null());
        let mut tools = Self {
            offered: Vec::new(),
            kept: Vec::new(),
            choice: Value::Null,
            choice_echo: choice.clone().unwrap_or_else(|| json!("auto")),
            left_out: Vec::new(),
            searches,
        };
        for (index, tool) in sent.into_iter().enumerate() {
            match kind(&tool) {
                "function" => {
                    let offered = function(index, &tool)?;
                    tools.kept.push(with_defaults(tool, &offered));
                    tools.offered.push(offered);
                }
                "file_search" if searches => tools.kept.push(tool),
                other => tools.left_out.push(left_out("tools", index, other)),
            }
        }
        if let Some(choice) = choice {
            tools.choose(choice)?;
        }
        Ok(tools)
    }

    fn choose(&mut self, choice: Value) -> Result<(), Error> {
        self.choice = match kind(&choice) {
            _ if choice.is_string() => choice,
            "file_search" if self.searches => Value::Null,
            "function" => {
                let name = self.named(&choice)?;
                json!({"type": "function", "function": {"name": name}})
            }
            "allowed_tools" => {
                let mode = choice["mode"].clone();
                let allowed = choice["tools"].as_array().map_or(&[][..], Vec::as_slice);
                let functions = allowed.iter().filter(|tool| kind(tool) == "function");
                let names = functions.map(|tool| self.named(tool));
                let names: Vec<_> = names.collect::<Result<_, _>>()?;
                self.offered
                    .retain(|tool| names.iter().any(|name| tool["function"]["name"] == *name));
                if self.offered.is_empty() && !self.searches {
                    return Err(
                        bad_request("`tool_choice.tools` has no function of `tools`")
                            .hint("name at least one, or set `tool_choice` to none"),
                    );
                }
                // The template is offered nothing that it could choose from.
                match self.offered.is_empty() {
                    true => Value::Null,
                    false => mode,
                }
            }
            other => {
                return Err(bad_request(format!(
                    "`tool_choice` names \"{other}\", which does not run here"
                ))
                .hint("use auto, none, required, or one of the functions in `tools`"));
            }
        };
        // The search is the call.
        if self.searches && self.choice == "required" {
            self.choice = Value::Null;
        }
        if self.choice == "required" && self.offered.is_empty() {
            let message = match self.left_out.is_empty() {
                true => "`tool_choice` requires a call, and `tools` has no function".to_owned(),
                false => format!(
                    "`tool_choice` requires a call, and nothing here runs what `tools` has: {}",
                    self.left_out.join(", ")
                ),
            };
            return Err(bad_request(message)
                .hint("send a function in `tools`, or set `tool_choice` to auto"));
        }
        Ok(())
    }

    fn named(&self, choice: &Value) -> Result<Value, Error> {
        let name = &choice["name"];
        if self.kept.iter().any(|tool| tool["name"] == *name) {
            return Ok(name.clone());
        }
        Err(bad_request(format!(
            "`tool_choice` names {name}, which is not in `tools`"
        )))
    }
}

fn function(index: usize, tool: &Value) -> Result<Value, Error> {
    if !tool["name"].is_string() {
        return Err(bad_request(format!(
            "`tools[{index}]` is a function without a `name`"
        )));
    }
    let mut function = Map::new();
    for key in ["name", "description", "parameters", "strict"] {
        if !tool[key].is_null() {
            function.insert(key.to_owned(), tool[key].clone());
        }
    }
    // Templates read it.
    function
        .entry("parameters")
        .or_insert_with(|| json!({"type": "object", "properties": {}}));
    Ok(json!({"type": "function", "function": function}))
}

/// The tool as the response repeats it, with what it is offered with where the request does not say.
fn with_defaults(mut tool: Value, offered: &Value) -> Value {
    for (key, value) in [
        ("description", Value::Null),
        ("parameters", offered["function"]["parameters"].clone()),
        ("strict", json!(false)),
    ] {
        if tool[key].is_null() {
            tool[key] = value;
        }
    }
    tool
}

pub(super) fn kind(value: &Value) -> &str {
    value["type"].as_str().unwrap_or_default()
}

/// How a response names what it did without.
pub(super) fn left_out(list: &str, index: usize, kind: &str) -> String {
    format!("{list}[{index}]: {kind:.100}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look() -> Value {
        json!({"type": "function", "name": "look", "description": "Looks.", "parameters": {"type": "object"}, "strict": true})
    }

    #[test]
    fn functions_are_offered_and_what_runs_elsewhere_is_named() {
        let sent = vec![
            json!({"type": "web_search", "search_context_size": "low"}),
            look(),
            json!({"type": "custom", "name": "patch"}),
            json!({"type": "function", "name": "now", "parameters": null}),
        ];
        let tools = Tools::read(sent.clone(), None, false).unwrap();
        let function = json!({"name": "look", "description": "Looks.", "parameters": {"type": "object"}, "strict": true});
        let now = json!({"name": "now", "parameters": {"type": "object", "properties": {}}});
        assert_eq!(
            tools.offered,
            [
                json!({"type": "function", "function": function}),
                json!({"type": "function", "function": now})
            ]
        );
        let now = json!({"type": "function", "name": "now", "description": null,
            "parameters": {"type": "object", "properties": {}}, "strict": false});
        assert_eq!(tools.kept, [sent[1].clone(), now]);
        assert_eq!(tools.left_out, ["tools[0]: web_search", "tools[2]: custom"]);
        assert_eq!(
            (tools.choice, tools.choice_echo),
            (Value::Null, json!("auto"))
        );
        let nameless = Tools::read(vec![json!({"type": "function"})], None, false).unwrap_err();
        assert!(nameless.message.contains("tools[0]"), "{nameless}");
    }

    #[test]
    fn a_choice_is_renamed_and_may_narrow_what_is_offered() {
        let now = json!({"type": "function", "name": "now"});
        let read = |choice: Value| Tools::read(vec![look(), now.clone()], Some(choice), false);
        assert_eq!(read(json!("required")).unwrap().choice, "required");
        let one = read(json!({"type": "function", "name": "now"})).unwrap();
        assert_eq!(
            one.choice,
            json!({"type": "function", "function": {"name": "now"}})
        );
        assert_eq!(one.choice_echo, json!({"type": "function", "name": "now"}));
        let allowed = json!({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "now"}]});
        let narrowed = read(allowed).unwrap();
        assert_eq!(narrowed.choice, "required");
        assert_eq!(narrowed.offered.len(), 1);
        assert_eq!(narrowed.kept.len(), 2);
        for choice in [
            json!({"type": "function", "name": "gone"}),
            json!({"type": "web_search"}),
            json!({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "gone"}]}),
            json!({"type": "allowed_tools", "mode": "required", "tools": []}),
            json!(7),
        ] {
            assert!(read(choice.clone()).is_err(), "{choice}");
        }
    }

    #[test]
    fn a_required_call_needs_a_function() {
        let refused = |tools: Vec<Value>, choice: Value| {
            let error = Tools::read(tools, Some(choice), false).unwrap_err();
            error.message
        };
        let search = json!({"type": "web_search"});
        assert_eq!(
            refused(vec![search.clone()], json!("required")),
            "`tool_choice` requires a call, and nothing here runs what `tools` has: tools[0]: web_search"
        );
        assert_eq!(
            refused(Vec::new(), json!("required")),
            "`tool_choice` requires a call, and `tools` has no function"
        );
        let none = json!({"type": "allowed_tools", "mode": "auto", "tools": []});
        assert_eq!(
            refused(vec![look()], none),
            "`tool_choice.tools` has no function of `tools`"
        );
        let tools = Tools::read(vec![search], Some(json!("auto")), false).unwrap();
        assert_eq!(tools.left_out, ["tools[0]: web_search"]);
    }

    #[test]
    fn a_search_that_has_run_is_the_call_that_is_required() {
        let search = json!({"type": "file_search", "vector_store_ids": ["vs_a"]});
        let read = |tools: Vec<Value>, choice: Value| Tools::read(tools, Some(choice), true);
        let allowed = json!({"type": "allowed_tools", "mode": "required", "tools": [{"type": "file_search"}]});
        for choice in [json!("required"), json!({"type": "file_search"}), allowed] {
            let tools = read(vec![search.clone(), look()], choice.clone()).unwrap();
            assert_eq!(tools.choice, Value::Null, "{choice}");
            assert_eq!(tools.kept.len(), 2);
            assert!(tools.left_out.is_empty());
        }
        assert_eq!(
            read(vec![search, look()], json!("auto")).unwrap().choice,
            "auto"
        );
    }
}
