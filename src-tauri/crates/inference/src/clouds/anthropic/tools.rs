//! Tools as Anthropic offers them.

use super::conversation::CACHE;
use serde_json::{Map, Value, json};
use tierbar_core::{Error, bad_request};

/// What a request may call.
#[derive(Debug, Default)]
pub(super) struct Tools {
    offered: Vec<Value>,
    choice: Option<Value>,
}

impl Tools {
    /// `called` are those that the conversation speaks of.
    pub(super) fn read(
        offered: Option<Vec<Value>>,
        choice: Option<&Value>,
        parallel: Option<bool>,
        called: Vec<String>,
    ) -> Result<Self, Error> {
        let mut offered: Vec<_> = offered
            .unwrap_or_default()
            .iter()
            .map(tool)
            .collect::<Result<_, _>>()?;
        if offered.is_empty() {
            return Ok(Self::forgotten(called));
        }
        let allowed = choice.and_then(|choice| choice.get("allowed_tools"));
        if let Some(tools) = allowed.and_then(|allowed| allowed["tools"].as_array()) {
            let is_allowed = |offered: &Value| {
                let mut names = tools.iter().map(|tool| &tool["function"]["name"]);
                names.any(|name| *name == offered["name"])
            };
            offered.retain(is_allowed);
            if offered.is_empty() {
                return Err(bad_request("`tool_choice` allows none of the `tools`"));
            }
        }
        let choice = allowed.map_or(choice, |allowed| Some(&allowed["mode"]));
        let mut choice = choice.map(self::choice).transpose()?;
        if parallel == Some(false) {
            let choice = choice.get_or_insert_with(|| json!({"type": "auto"}));
            if choice["type"] != "none" {
                choice["disable_parallel_tool_use"] = true.into();
            }
        }
        Ok(Self { offered, choice })
    }

    /// A conversation about tools is refused without them, which OpenAI's clients may leave out once they want words.
    fn forgotten(mut called: Vec<String>) -> Self {
        called.sort_unstable();
        called.dedup();
        let schema = json!({"type": "object"});
        Self {
            choice: (!called.is_empty()).then(|| json!({"type": "none"})),
            offered: called
                .into_iter()
                .map(|name| json!({"name": name, "input_schema": schema}))
                .collect(),
        }
    }

    pub(super) fn are_forced(&self) -> bool {
        let kind = self
            .choice
            .as_ref()
            .and_then(|choice| choice["type"].as_str());
        matches!(kind, Some("any" | "tool"))
    }

    pub(super) fn put(self, request: &mut Map<String, Value>) {
        if !self.offered.is_empty() {
            request.insert("tools".to_owned(), self.offered.into());
        }
        if let Some(choice) = self.choice {
            request.insert("tool_choice".to_owned(), choice);
        }
    }
}

fn tool(tool: &Value) -> Result<Value, Error> {
    let function = &tool["function"];
    let Some(name) = function["name"].as_str() else {
        return Err(bad_request("a tool must be a function with a name"));
    };
    let mut schema = match &function["parameters"] {
        Value::Object(schema) => schema.clone(),
        _ => Map::new(),
    };
    schema.entry("type").or_insert_with(|| "object".into());
    let mut offered = json!({"name": name, "input_schema": schema});
    if let description @ Value::String(_) = &function["description"] {
        offered["description"] = description.clone();
    }
    let cache = tool.get(CACHE).or(function.get(CACHE));
    if let Some(cache) = cache.filter(|cache| !cache.is_null()) {
        offered[CACHE] = cache.clone();
    }
    Ok(offered)
}

fn choice(choice: &Value) -> Result<Value, Error> {
    let name = choice.pointer("/function/name").and_then(Value::as_str);
    match (choice.as_str(), name) {
        (Some("auto" | "none"), _) => Ok(json!({"type": choice})),
        (Some("required"), _) => Ok(json!({"type": "any"})),
        (_, Some(name)) => Ok(json!({"type": "tool", "name": name})),
        _ => Err(bad_request(
            "`tool_choice` must be auto, none, required or a function by name",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_core::Code;

    fn converted(
        tools: Value,
        choice: Option<Value>,
        parallel: Option<bool>,
    ) -> Result<Value, Error> {
        let tools = tools.as_array().cloned();
        let tools = Tools::read(tools, choice.as_ref(), parallel, vec!["look".to_owned()])?;
        let mut request = Map::new();
        tools.put(&mut request);
        Ok(request.into())
    }

    #[test]
    fn functions_are_offered_and_chosen_by_their_names() {
        let look = json!([{"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": {"properties": {}}}}]);
        let offered = json!([{"name": "look", "input_schema": {"properties": {}, "type": "object"}, "description": "Looks."}]);
        let chosen = |choice: Value, parallel| {
            let asked = converted(look.clone(), Some(choice), parallel).unwrap();
            assert_eq!(asked["tools"], offered);
            asked["tool_choice"].clone()
        };
        assert_eq!(chosen(json!("auto"), None), json!({"type": "auto"}));
        assert_eq!(chosen(json!("none"), Some(false)), json!({"type": "none"}));
        assert_eq!(
            chosen(json!("required"), Some(false)),
            json!({"type": "any", "disable_parallel_tool_use": true})
        );
        let named = json!({"type": "function", "function": {"name": "look"}});
        assert_eq!(chosen(named, None), json!({"type": "tool", "name": "look"}));
        let parallel = converted(look.clone(), None, Some(false)).unwrap();
        assert_eq!(parallel["tool_choice"]["type"], "auto");
        let allowed = |name: &str| {
            let tool = json!({"type": "function", "function": {"name": name}});
            json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [tool]}})
        };
        assert_eq!(chosen(allowed("look"), None), json!({"type": "any"}));
        let gone = converted(look.clone(), Some(allowed("gone")), None);
        assert_eq!(gone.unwrap_err().code, Code::BadRequest);
        let wrong = converted(look, Some(json!("some")), None);
        assert_eq!(wrong.unwrap_err().code, Code::BadRequest);
        assert!(converted(json!([{"type": "custom"}]), None, None).is_err());
    }

    #[test]
    fn a_called_tool_is_defined_but_not_callable() {
        let asked = converted(Value::Null, Some(json!("auto")), None).unwrap();
        assert_eq!(
            asked,
            json!({
                "tools": [{"name": "look", "input_schema": {"type": "object"}}],
                "tool_choice": {"type": "none"},
            })
        );
    }
}
