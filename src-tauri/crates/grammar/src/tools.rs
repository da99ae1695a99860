//! The functions that a chat offers, in OpenAI's placeholders, and whether one must be called.

use crate::{
    Placeholders, bad, check_extent,
    schema::{translate_schema, with_named_root},
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tierbar_core::Error;

/// Coding agents send some tens of kilobytes.
const LONGEST: usize = 1 << 20;
const LONGEST_NAME: usize = 256;

/// What may be called.
#[derive(Debug, PartialEq)]
pub struct OfferedTools {
    /// OpenAI's functions, without what says nothing.
    pub offered: Vec<Value>,
    /// `auto`, `none` or `required`.
    pub choice: &'static str,
    /// Whether an answer may have several calls.
    pub parallel: bool,
}

impl OfferedTools {
    /// # Errors
    /// `BadRequest` naming the field: for what is no function, a name that comes twice, and a choice of what is not offered.
    pub fn read(
        tools: &[Value],
        choice: Option<&Value>,
        parallel: Option<bool>,
    ) -> Result<Self, Error> {
        check_extent("`tools`", &json!(tools).to_string(), LONGEST)?;
        let offered: Result<Vec<_>, _> = tools.iter().enumerate().map(read_function).collect();
        let mut offered = offered?;
        let mut names = BTreeSet::new();
        if let Some(twice) = offered.iter().find(|tool| !names.insert(name_of(tool))) {
            let name = name_of(twice);
            return Err(bad(format!("`tools` has two functions named \"{name}\"")));
        }
        let choice = ToolChoice::read(choice)?;
        if let Some(names) = &choice.only {
            for name in names {
                if !offered.iter().any(|tool| name_of(tool) == name) {
                    return Err(bad(format!(
                        "`tool_choice` names \"{name}\", which is not among the `tools`"
                    ))
                    .hint("name one of the `tools`"));
                }
            }
            offered.retain(|tool| names.iter().any(|name| name_of(tool) == name));
        }
        if offered.is_empty() && choice.mode == "required" {
            return Err(if choice.only.is_some() {
                bad("`tool_choice.allowed_tools` requires a call, but its `tools` is empty")
                    .hint("name a function, or use the mode auto")
            } else {
                bad("`tool_choice` requires a call, but `tools` has no function")
                    .hint("send a function in `tools`, or set `tool_choice` to auto")
            });
        }
        Ok(Self {
            offered,
            choice: choice.mode,
            // A small model that has to call goes on calling for as long as it may.
            parallel: parallel.unwrap_or(choice.mode != "required"),
        })
    }

    /// Whether the answer may have calls.
    pub fn may_be_called(&self) -> bool {
        !self.offered.is_empty() && self.choice != "none"
    }

    /// Whether a function asks for calls that follow its schema to the letter.
    pub fn are_strict(&self) -> bool {
        self.offered.iter().any(is_strict)
    }

    /// Returns the functions with the schemas that their calls are held to. What no grammar holds is a hint, unless the function is
    /// `strict`.
    ///
    /// # Errors
    /// `BadRequest` naming the function, for a schema that no call can follow where one must.
    pub fn with_followed_schemas(
        &self,
        placeholders: &mut Placeholders,
    ) -> Result<Vec<Value>, Error> {
        let translate = |tool: &Value| {
            let mut translated = tool.clone();
            let Some(schema) = translated["function"].get_mut("parameters") else {
                return Ok(tool.clone());
            };
            let what = parameters_of(tool);
            if let Some(fields) = schema.as_object_mut() {
                if fields.is_empty() {
                    // No arguments, as llama.cpp has it too.
                    return Ok(tool.clone());
                }
                // A call's arguments are an object.
                fields.entry("type").or_insert_with(|| "object".into());
            }
            match translate_schema(schema, &what, is_strict(tool), placeholders) {
                Ok(followed) => *schema = followed,
                Err(error) if is_strict(tool) || self.choice == "required" => return Err(error),
                Err(_) => return Ok(tool.clone()),
            }
            Ok(translated)
        };
        self.offered.iter().map(translate).collect()
    }

    /// Returns an error that names the first function whose schema `write_grammar` refuses.
    pub fn refused_schema(
        &self,
        write_grammar: impl Fn(&str) -> Result<String, Error>,
    ) -> Option<Error> {
        self.offered.iter().find_map(|tool| {
            let schema = tool["function"].get("parameters")?;
            let text = schema.to_string();
            let error = write_grammar(&text).err()?;
            let message = format!("{}: {}", parameters_of(tool), error.message);
            let hint = format!("send a simpler schema: this one has {} bytes", text.len());
            Some(bad(message).hint(hint))
        })
    }
}

fn is_strict(tool: &Value) -> bool {
    tool["function"]["strict"] == true
}

/// The name of a function's schema, in messages.
fn parameters_of(tool: &Value) -> String {
    format!(
        "`parameters` of the function \"{}\" in `tools`",
        name_of(tool)
    )
}

/// What `tool_choice` says.
struct ToolChoice {
    mode: &'static str,
    /// The names of those that may be called; `None` for all.
    only: Option<Vec<String>>,
}

impl ToolChoice {
    fn read(choice: Option<&Value>) -> Result<Self, Error> {
        let all = |mode| Self { mode, only: None };
        match choice {
            None | Some(Value::Null) => Ok(all("auto")),
            Some(Value::String(mode)) => Ok(all(call_mode(mode)?)),
            Some(choice) if choice["type"] == "allowed_tools" => {
                // Chats have them in an object of its own, responses beside the type.
                let nested = choice.get("allowed_tools").unwrap_or(choice);
                let (mode, tools) = (&nested["mode"], nested["tools"].as_array());
                let (Some(mode), Some(tools)) = (mode.as_str(), tools) else {
                    return Err(bad(
                        "`tool_choice.allowed_tools` needs a `mode` and `tools`",
                    ));
                };
                let names: Option<Vec<_>> = tools.iter().map(chosen_name).collect();
                let names =
                    names.ok_or_else(|| bad("`tool_choice.allowed_tools` names no function"))?;
                Ok(Self {
                    only: Some(names),
                    ..all(call_mode(mode)?)
                })
            }
            Some(one) => {
                let name = chosen_name(one).ok_or_else(|| {
                    bad("`tool_choice` names no function")
                        .hint("use auto, none, required, or {\"type\": \"function\", \"function\": {\"name\": …}}")
                })?;
                Ok(Self {
                    mode: "required",
                    only: Some(vec![name]),
                })
            }
        }
    }
}

fn call_mode(mode: &str) -> Result<&'static str, Error> {
    match mode {
        "auto" => Ok("auto"),
        "none" => Ok("none"),
        "required" | "any" => Ok("required"),
        other => Err(bad(format!(
            "`tool_choice` is \"{other}\": use auto, none, required or a function"
        ))),
    }
}

fn chosen_name(choice: &Value) -> Option<String> {
    let name = choice.pointer("/function/name").or(choice.get("name"));
    name.and_then(Value::as_str).map(str::to_owned)
}

fn name_of(tool: &Value) -> &str {
    tool["function"]["name"].as_str().unwrap_or_default()
}

/// A function without fields that are null, which templates would show.
fn read_function((index, tool): (usize, &Value)) -> Result<Value, Error> {
    let kind = tool["type"].as_str();
    if kind.is_some_and(|kind| kind != "function") {
        let kind = kind.unwrap_or_default();
        return Err(bad(format!(
            "`tools[{index}].type` is \"{kind}\"; send \"function\""
        ))
        .hint("only functions that the client runs can be offered to a local model"));
    }
    let Some(sent) = tool["function"].as_object() else {
        return Err(bad(format!("`tools[{index}].function` is missing")));
    };
    let named = |name: &&str| {
        let plain = |c: char| !c.is_control() && !matches!(c, '"' | '\\' | '<' | '>');
        !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(plain)
    };
    let name = sent.get("name").and_then(Value::as_str);
    if name.filter(named).is_none() {
        return Err(bad(format!(
            "`tools[{index}].function.name` must be a name of 1 to {LONGEST_NAME} letters, digits, `_` and `-`"
        )));
    }
    for (key, is_valid) in [
        ("parameters", Value::is_object as fn(&Value) -> bool),
        ("description", Value::is_string),
    ] {
        let value = sent.get(key).filter(|value| !value.is_null());
        if value.is_some_and(|value| !is_valid(value)) {
            return Err(bad(format!(
                "`tools[{index}].function.{key}` has the wrong type"
            )));
        }
    }
    let mut kept = sent.clone();
    kept.retain(|_, value| !value.is_null());
    if let Some(schema) = kept.get_mut("parameters") {
        *schema = with_named_root(schema.take());
    }
    Ok(json!({"type": "function", "function": kept}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered() -> Vec<Value> {
        ["look", "wait"]
            .map(
                |name| json!({"type": "function", "function": {"name": name, "description": null}}),
            )
            .to_vec()
    }

    fn read(choice: Value, parallel: Option<bool>) -> Result<OfferedTools, Error> {
        OfferedTools::read(&offered(), Some(&choice), parallel)
    }

    fn names(tools: &OfferedTools) -> Vec<&str> {
        tools.offered.iter().map(name_of).collect()
    }

    #[test]
    fn each_form_of_a_choice_is_read() {
        let function = |name: &str| json!({"type": "function", "function": {"name": name}});
        let allowed = json!({"mode": "required", "tools": [function("wait")]});
        let cases = [
            (json!(null), "auto", 2, true),
            (json!("auto"), "auto", 2, true),
            (json!("none"), "none", 2, true),
            (json!("any"), "required", 2, false),
            (json!("required"), "required", 2, false),
            (function("wait"), "required", 1, false),
            (
                json!({"type": "function", "name": "wait"}),
                "required",
                1,
                false,
            ),
            (
                json!({"type": "allowed_tools", "allowed_tools": allowed}),
                "required",
                1,
                false,
            ),
            (
                json!({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "wait"}]}),
                "auto",
                1,
                true,
            ),
        ];
        for (choice, mode, count, parallel) in cases {
            let tools = read(choice.clone(), None).unwrap();
            let found = (tools.choice, names(&tools).len(), tools.parallel);
            assert_eq!(found, (mode, count, parallel), "{choice}");
            assert!(!read(choice, Some(false)).unwrap().parallel);
        }
        for choice in [function("wait"), json!("required")] {
            assert!(read(choice, Some(true)).unwrap().parallel);
        }
    }

    #[test]
    fn a_wrong_choice_or_function_is_named() {
        for (choice, part) in [
            (json!("some"), "\"some\""),
            (json!({"function": {"name": "gone"}}), "\"gone\""),
            (json!({"type": "function"}), "names no function"),
            (json!({"type": "allowed_tools"}), "needs a `mode`"),
            (
                json!({"type": "allowed_tools", "mode": "auto", "tools": [{"name": "gone"}]}),
                "\"gone\"",
            ),
        ] {
            let error = read(choice.clone(), None).unwrap_err();
            assert!(error.message.contains(part), "{choice}: {error}");
        }
        let function = |function: Value| json!({"type": "function", "function": function});
        for (tool, part) in [
            (json!({"type": "custom"}), "`tools[0].type`"),
            (json!({"type": "function"}), "`tools[0].function`"),
            (json!("look"), "`tools[0].function`"),
            (function(json!({})), "`tools[0].function.name`"),
            (
                function(json!({"name": "a\"b"})),
                "`tools[0].function.name`",
            ),
            (
                function(json!({"name": "a", "parameters": []})),
                "`tools[0].function.parameters`",
            ),
            (
                function(json!({"name": "a", "description": 7})),
                "`tools[0].function.description`",
            ),
        ] {
            let error = OfferedTools::read(std::slice::from_ref(&tool), None, None).unwrap_err();
            assert!(error.message.contains(part), "{tool}: {error}");
        }
        let twice = [offered(), offered()].concat();
        let error = OfferedTools::read(&twice, None, None).unwrap_err();
        assert!(
            error.message.contains("two functions named \"look\""),
            "{error}"
        );
        let none = OfferedTools::read(&[], Some(&json!("required")), None).unwrap_err();
        assert!(none.message.contains("`tools` has no function"), "{none}");
        let none = json!({"type": "allowed_tools", "mode": "required", "tools": []});
        let none = read(none, None).unwrap_err();
        assert!(
            none.message.contains("`tool_choice.allowed_tools`"),
            "{none}"
        );
    }

    #[test]
    fn the_function_whose_schema_is_refused_is_named() {
        let function = |name: &str, parameters: Value| json!({"type": "function", "function": {"name": name, "parameters": parameters}});
        let sent = [
            function("look", json!({"type": "object"})),
            function("wait", json!({"type": "array"})),
        ];
        let tools = OfferedTools::read(&sent, None, None).unwrap();
        let refused = tools.refused_schema(|schema| match schema.contains("array") {
            true => Err(bad("no grammar")),
            false => Ok(String::new()),
        });
        assert_eq!(
            refused.unwrap().message,
            "`parameters` of the function \"wait\" in `tools`: no grammar"
        );
        assert!(tools.refused_schema(|_| Ok(String::new())).is_none());
    }
}
