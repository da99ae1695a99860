//! The arguments of a call, as a model writes them and its tool's schema takes them.

use crate::marking::has_mark;
use serde_json::Value;
use tierbar_chats::written_calls::{missing_argument, parse_arguments, to_wanted_types};

pub(super) struct Arguments<'a> {
    tool: &'a str,
    /// An object.
    pub(super) values: Value,
}

impl<'a> Arguments<'a> {
    /// Reads arguments, with values of the types that the schema takes.
    ///
    /// # Errors
    /// What is wrong, for the model.
    pub(super) fn parse(tool: &'a str, text: &str, schema: &Value) -> Result<Self, String> {
        let mut values = parse_arguments(text)?;
        for (name, value) in values.as_object().into_iter().flatten() {
            if value.as_str().is_some_and(has_mark) {
                let message =
                    format!("\"{name}\" has a line around data in it; leave such lines out");
                return Err(message);
            }
        }
        to_wanted_types(&mut values, schema);
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
