//! The arguments of a call, as a model writes them and its tool's schema takes them.

use serde_json::Value;
use tierbar_core::json;

/// How many braces too many are taken off the end of arguments.
const EXTRA_BRACES: usize = 3;
/// Up to here, each whole number is one of those with a point.
const MOST_EXACT: f64 = 9_007_199_254_740_992.0;

/// Reads the arguments of a call, which are an object; some models write it as JSON in a string once more.
///
/// # Errors
/// What is wrong, for the model.
pub fn parse_arguments(text: &str) -> Result<Value, String> {
    let wrong = |error| format!("the arguments are not valid JSON: {error}");
    let text = if text.trim().is_empty() { "{}" } else { text };
    let mut value = read_value(text).map_err(wrong)?;
    if let Value::String(inner) = &value {
        value = read_value(inner).map_err(wrong)?;
    }
    if value.is_object() {
        Ok(value)
    } else {
        Err("the arguments are not an object".to_owned())
    }
}

/// Reads JSON. A whole object with a brace or two behind it means itself.
fn read_value(text: &str) -> Result<Value, serde_json::Error> {
    let read = json::read(text.as_bytes());
    let mut rest = text.trim_end();
    for _ in 0..EXTRA_BRACES {
        let Some(shorter) = rest.strip_suffix('}').filter(|_| read.is_err()) else {
            break;
        };
        rest = shorter.trim_end();
        if let Ok(value @ Value::Object(_)) = json::read(rest.as_bytes()) {
            return Ok(value);
        }
    }
    read
}

/// Returns the first argument that a schema requires and that is missing.
pub fn missing_argument<'a>(arguments: &Value, schema: &'a Value) -> Option<&'a str> {
    let required = schema["required"].as_array().into_iter().flatten();
    let mut names = required.filter_map(Value::as_str);
    names.find(|name| arguments.get(name).is_none())
}

/// Gives values the types that a schema takes: what it has as a number, a truth value, a list or an object may stand in a string.
pub fn to_wanted_types(arguments: &mut Value, schema: &Value) {
    for (name, value) in arguments.as_object_mut().into_iter().flatten() {
        to_wanted_type(value, &schema["properties"][name]);
    }
}

/// Replaces a string by what is written in it, if the schema takes that and no string, and a number by the whole one that it is.
fn to_wanted_type(value: &mut Value, schema: &Value) {
    let types = types(schema);
    if types.contains(&"string") {
        return;
    }
    if let Value::String(text) = &*value {
        let text = match text.trim() {
            // Python's words.
            "True" | "TRUE" => "true",
            "False" | "FALSE" => "false",
            text => text,
        };
        let inner = json::read::<Value>(text.as_bytes()).ok();
        let inner = inner.filter(|inner| types.iter().any(|wanted| fits(inner, wanted)));
        if let Some(inner) = inner {
            *value = inner;
        }
    }
    if types.contains(&"integer")
        && let Some(whole) = whole(value)
    {
        *value = whole.into();
    }
}

/// The types that a schema names; none if it takes any.
fn types(schema: &Value) -> Vec<&str> {
    let own = match &schema["type"] {
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        one => Vec::from_iter(one.as_str()),
    };
    let branches = ["anyOf", "oneOf"].into_iter();
    let branches = branches
        .filter_map(|name| schema[name].as_array())
        .flatten();
    let branches = branches.filter_map(|branch| branch["type"].as_str());
    own.into_iter().chain(branches).collect()
}

fn fits(value: &Value, wanted: &str) -> bool {
    match wanted {
        "integer" => value.is_i64() || value.is_u64() || whole(value).is_some(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => false,
    }
}

/// A whole number that is written with a point.
fn whole(value: &Value) -> Option<i64> {
    let number = value.as_f64().filter(|_| value.is_f64())?;
    (number.fract() == 0.0 && number.abs() < MOST_EXACT).then_some(number as i64)
}
