//! The arguments of a call, as a model writes them and its tool's schema takes them.

use crate::marking::has_mark;
use serde_json::Value;
use tierbar_chats::written_calls::{missing_argument, parse_arguments};
use tierbar_core::json;

/// Up to here, each whole number is one of those with a point.
const MOST_EXACT: f64 = 9_007_199_254_740_992.0;

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
    pub(super) fn parse(tool: &'a str, text: &str, schema: &Value) -> Result<Self, String> {
        let mut values = parse_arguments(text)?;
        for (name, value) in values.as_object_mut().into_iter().flatten() {
            if value.as_str().is_some_and(has_mark) {
                let message =
                    format!("\"{name}\" has a line around data in it; leave such lines out");
                return Err(message);
            }
            to_wanted_type(value, &schema["properties"][name]);
        }
        if let Some(missing) = missing_argument(&values, schema) {
            return Err(format!("{tool} needs \"{missing}\""));
        }
        Ok(Self { tool, values })
    }

    pub(super) fn text(&self, field: &str) -> Result<String, String> {
        match &self.values[field] {
            Value::String(text) => Ok(text.clone()),
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
