//! The keys of the configuration, with their types, defaults and descriptions: those of the API's description, which is made of the
//! types and their comments.

use serde_json::{Map, Value};
use std::iter;

/// Stands for the name of a tier, chain, schedule or MCP server in a key, as in `tiers.NAME.model`.
pub const NAME: &str = "NAME";

/// One key of the configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// With the tables that it is in, such as `policy.home`.
    pub name: String,
    pub accepts: Accepts,
    /// What it is for, and how its value is written.
    pub about: String,
    /// `None` for a key that has none.
    pub default: Option<Value>,
}

/// The types of JSON that a value may have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Accepts {
    /// Texts, if only some are possible.
    pub choices: Vec<String>,
    pub text: bool,
    pub boolean: bool,
    pub integer: bool,
    pub number: bool,
    /// What a number counts, where its type says it.
    pub unit: Option<&'static str>,
    pub list: bool,
    pub table: bool,
}

/// Types of numbers, and what these count.
const UNITS: [(&str, &str); 2] = [("Dollars", "US dollars"), ("Watts", "watts")];

type Schemas = Map<String, Value>;

/// Returns all keys, sorted by name, from the description of the API (`docs/openapi.json`).
pub fn keys(api: &str) -> Vec<Key> {
    let mut api: Value = serde_json::from_str(api).unwrap_or_default();
    let mut keys = Vec::new();
    if let Value::Object(named) = api["components"]["schemas"].take()
        && let Some(config) = named.get("Config")
    {
        collect("", config, &named, &mut keys);
    }
    keys.sort_by(|one, other| one.name.cmp(&other.name));
    keys
}

impl Key {
    /// Returns a typed value as JSON. What is of no type of the key is a text, which the configuration refuses with its own words.
    pub fn value(&self, text: &str) -> Value {
        let accepts = &self.accepts;
        let json = || serde_json::from_str::<Value>(text.trim()).ok();
        let is_accepted = |value: &Value| match value {
            Value::Bool(_) => accepts.boolean,
            Value::Number(number) => accepts.number || accepts.integer && !number.is_f64(),
            Value::Array(_) => accepts.list,
            Value::Object(_) => accepts.table,
            Value::Null | Value::String(_) => false,
        };
        if let Some(value) = json().filter(is_accepted) {
            return value;
        }
        match text.trim() {
            "on" | "yes" if accepts.boolean => return true.into(),
            "off" | "no" if accepts.boolean => return false.into(),
            _ => {}
        }
        if accepts.list {
            let items = text.split(',').map(str::trim);
            return items.filter(|item| !item.is_empty()).collect();
        }
        text.into()
    }
}

impl Accepts {
    /// Returns what can be written, such as `auto or a whole number`.
    pub fn words(&self) -> String {
        let number: &str = match self.unit {
            Some(unit) => &format!("a number of {unit}"),
            None => "a number",
        };
        let mut words: Vec<&str> = self.choices.iter().map(String::as_str).collect();
        let kinds = [
            (self.boolean, "true"),
            (self.boolean, "false"),
            (self.number, number),
            (self.integer && !self.number, "a whole number"),
            (self.text, "text"),
            (self.list, "a list, separated by commas"),
            (self.table, "a table, as JSON"),
        ];
        words.extend(kinds.iter().filter(|(is, _)| *is).map(|(_, word)| *word));
        match words.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
            Some((last, _)) => (*last).to_owned(),
            None => "text".to_owned(),
        }
    }

    fn add(&mut self, schema: &Value, named: &Schemas) {
        let units = UNITS
            .iter()
            .find(|(name, _)| referred(schema) == Some(name));
        self.unit = self.unit.or(units.map(|(_, unit)| *unit));
        let schema = resolved(schema, named);
        for of in ["oneOf", "anyOf", "allOf"] {
            for one in schema[of].as_array().into_iter().flatten() {
                self.add(one, named);
            }
        }
        if let Some(choices) = schema["enum"].as_array() {
            let choices = choices.iter().filter_map(Value::as_str);
            self.choices.extend(choices.map(str::to_owned));
            return;
        }
        let types = match &schema["type"] {
            Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
            one => Vec::from_iter(one.as_str()),
        };
        for kind in types {
            match kind {
                "boolean" => self.boolean = true,
                "integer" => self.integer = true,
                "number" => self.number = true,
                "string" => self.text = true,
                "array" => self.list = true,
                "object" => self.table = true,
                _ => {}
            }
        }
    }
}

fn referred(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}

/// Returns the schema that a reference means, or the one given.
fn resolved<'a>(schema: &'a Value, named: &'a Schemas) -> &'a Value {
    referred(schema)
        .and_then(|name| named.get(name))
        .unwrap_or(schema)
}

fn collect(table: &str, schema: &Value, named: &Schemas, keys: &mut Vec<Key>) {
    let properties = resolved(schema, named)["properties"].as_object();
    for (name, schema) in properties.into_iter().flatten() {
        let name = if table.is_empty() {
            name.clone()
        } else {
            format!("{table}.{name}")
        };
        let inner = resolved(schema, named);
        if inner["properties"].is_object() {
            collect(&name, inner, named, keys);
        } else if inner["additionalProperties"].is_object() {
            let each = &inner["additionalProperties"];
            collect(&format!("{name}.{NAME}"), each, named, keys);
        } else {
            let mut accepts = Accepts::default();
            accepts.add(schema, named);
            keys.push(Key {
                name,
                accepts,
                about: describe_key(schema, named),
                default: schema
                    .get("default")
                    .cloned()
                    .filter(|default| !default.is_null()),
            });
        }
    }
}

/// Returns what a key is for, and, if its type says it, how its value is written.
fn describe_key(schema: &Value, named: &Schemas) -> String {
    // A key that may be missing has its description at the type that it has otherwise.
    let alternatives = schema["oneOf"].as_array().into_iter().flatten();
    let parts: Vec<&Value> = iter::once(schema).chain(alternatives).collect();
    let text = |schema: &Value| {
        schema["description"]
            .as_str()
            .unwrap_or_default()
            .replace('\n', " ")
    };
    let own = parts
        .iter()
        .map(|part| text(part))
        .find(|text| !text.is_empty());
    let form = parts
        .iter()
        .map(|part| text(resolved(part, named)))
        .find(|text| !text.is_empty());
    match (own.unwrap_or_default(), form.unwrap_or_default()) {
        (own, form) if own.is_empty() => form,
        // How a span of time or a size is written.
        (own, form) if own != form && form.starts_with(['`', '"']) => {
            format!("{own} Written as {form}")
        }
        (own, _) => own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn all() -> Vec<Key> {
        keys(include_str!("../../../../../docs/openapi.json"))
    }

    fn key(name: &str) -> Key {
        let found = all().into_iter().find(|key| key.name == name);
        found.unwrap_or_else(|| panic!("there is no key {name}"))
    }

    #[test]
    fn keys_have_types_defaults_and_descriptions() {
        for (name, words, default) in [
            ("listen", "text", json!("127.0.0.1:11435")),
            ("policy.battery_below", "a whole number", json!(20)),
            ("policy.step_down", "true or false", json!(true)),
            ("policy.max_loaded", "auto or a whole number", json!("auto")),
            ("menu_bar.text", "none, speed or memory", json!("none")),
            ("notifications.downloads", "true or false", json!(false)),
            ("library.folders", "a list, separated by commas", json!([])),
            (
                "tiers.NAME.kv_cache",
                "auto, f16, q8_0 or q4_0",
                json!(null),
            ),
            ("tiers.NAME.sampling.temperature", "a number", json!(null)),
            ("chains.NAME.cost", "a number of US dollars", json!(0.0)),
            ("costs.kwh_price", "a number of US dollars", json!(null)),
            ("costs.idle_watts", "a number of watts", json!(null)),
        ] {
            let key = key(name);
            assert_eq!(key.accepts.words(), words, "{name}");
            assert_eq!(key.default.unwrap_or_default(), default, "{name}");
        }
        assert!(key("policy.quiet_hours").about.contains("22:00-07:30"));
        // What a price or a power is measured in.
        let costs = all()
            .into_iter()
            .filter(|key| key.name.starts_with("costs."));
        for Key {
            name,
            accepts,
            about,
            ..
        } in costs
        {
            assert!(
                accepts.unit.is_some_and(|unit| about.contains(unit)),
                "{name}: {about}"
            );
        }
        for Key { name, about, .. } in all() {
            assert!(!about.is_empty() && !about.contains('\n'), "{name}");
        }
    }

    #[test]
    fn text_becomes_a_value_of_the_keys_type() {
        for (name, text, value) in [
            ("listen", "127.0.0.1:1", json!("127.0.0.1:1")),
            ("policy.home", "5", json!("5")),
            ("policy.battery_below", "30", json!(30)),
            ("policy.battery_below", "many", json!("many")),
            ("policy.step_down", "false", json!(false)),
            ("policy.step_down", "on", json!(true)),
            ("policy.step_down", "perhaps", json!("perhaps")),
            ("policy.max_loaded", "auto", json!("auto")),
            ("policy.max_loaded", "2", json!(2)),
            ("library.folders", "/a, ~/b", json!(["/a", "~/b"])),
            ("library.folders", "[\"/a,b\"]", json!(["/a,b"])),
            ("library.folders", "", json!([])),
            ("tiers.NAME.sampling.temperature", "0.7", json!(0.7)),
            ("menu_bar.click", "popover", json!("popover")),
        ] {
            assert_eq!(key(name).value(text), value, "{name} {text}");
        }
    }
}
