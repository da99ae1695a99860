//! The arguments of a call, as a model writes them and its tool's schema takes them.

use serde_json::Value;
use tierbar_core::json;

/// How many braces too many are taken off the end of arguments.
const EXTRA_BRACES: usize = 3;

pub(super) struct Arguments<'a> {
    tool: &'a str,
    /// An object.
    pub(super) values: Value,
}

impl<'a> Arguments<'a> {
    /// Reads arguments. What the schema has as a number, a truth value, a list or an object may stand in a string.
    ///
    /// # Errors
    /// What is wrong, for the model.
    pub(super) fn read(tool: &'a str, text: &str, schema: &Value) -> Result<Self, String> {
        let mut values = parse_arguments(text)?;
        for (name, value) in values.as_object_mut().into_iter().flatten() {
            unquote(value, &schema["properties"][name]["type"]);
        }
        Ok(Self { tool, values })
    }

    pub(super) fn text(&self, field: &str) -> Result<String, String> {
        match &self.values[field] {
            Value::String(text) => Ok(text.clone()),
            Value::Null => Err(format!("{} needs \"{field}\"", self.tool)),
            _ => Err(format!("\"{field}\" of {} is no string", self.tool)),
        }
    }

    /// Reads the number of a line; 1 without one.
    pub(super) fn line(&self, field: &str) -> Result<usize, String> {
        let value = &self.values[field];
        if value.is_null() {
            return Ok(1);
        }
        let line = value.as_u64().and_then(|line| usize::try_from(line).ok());
        line.ok_or_else(|| format!("\"{field}\" of {} is no whole number", self.tool))
    }

    /// Reads a truth value; false without one.
    pub(super) fn flag(&self, field: &str) -> Result<bool, String> {
        match &self.values[field] {
            Value::Bool(flag) => Ok(*flag),
            Value::Null => Ok(false),
            _ => Err(format!(
                "\"{field}\" of {} is neither true nor false",
                self.tool
            )),
        }
    }
}

/// Arguments are an object; some models write it as JSON in a string once more.
pub(super) fn parse_arguments(text: &str) -> Result<Value, String> {
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

/// Replaces a string by what is written in it, if that is of the type that is wanted and not a string.
fn unquote(value: &mut Value, wanted: &Value) {
    let (Value::String(text), Some(wanted)) = (&*value, wanted.as_str()) else {
        return;
    };
    let text = match wanted {
        "boolean" => text.trim().to_ascii_lowercase(),
        _ => text.trim().to_owned(),
    };
    let Ok(inner) = json::read::<Value>(text.as_bytes()) else {
        return;
    };
    let fits = match wanted {
        "integer" => inner.is_i64() || inner.is_u64(),
        "number" => inner.is_number(),
        "boolean" => inner.is_boolean(),
        "array" => inner.is_array(),
        "object" => inner.is_object(),
        _ => false,
    };
    if fits {
        *value = inner;
    }
}
