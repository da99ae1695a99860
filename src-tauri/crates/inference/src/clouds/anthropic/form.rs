//! The form that an answer is to have.

use super::model::Generation;
use serde_json::{Value, json};
use tierbar_core::{Error, bad_request};

/// In the system's words: there is no field for it.
pub(super) const JSON_ALONE: &str = "Answer with one JSON object and nothing else.";

#[derive(Debug, PartialEq)]
pub(super) enum Form {
    Free,
    Json,
    Schema(Value),
}

impl Form {
    /// From OpenAI's `response_format`, or llama-server's `json_schema`.
    pub(super) fn read(
        format: Option<Value>,
        schema: Option<Value>,
        model: Generation,
    ) -> Result<Self, Error> {
        let mut format = format.unwrap_or_default();
        let prescribed = match format["type"].as_str() {
            None if format.is_null() => schema,
            Some("text") => schema,
            Some("json_schema") => Some(format["json_schema"]["schema"].take()),
            Some("json_object") => match format["schema"].take() {
                Value::Null => return Ok(Self::Json),
                schema => Some(schema),
            },
            None | Some(_) => {
                return Err(bad_request(
                    "`response_format` must be text, json_object or json_schema",
                ));
            }
        };
        Ok(match prescribed {
            None | Some(Value::Null) => Self::Free,
            Some(mut schema) => {
                if model != Generation::Other {
                    narrow(&mut schema);
                }
                Self::Schema(json!({"type": "json_schema", "schema": schema}))
            }
        })
    }
}

/// What Claude's servers refuse in a schema.
const REFUSED: [&str; 12] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
];

/// Leaves the shape, which they take: without bounds, and objects closed.
fn narrow(schema: &mut Value) {
    let Value::Object(keys) = schema else { return };
    for key in REFUSED {
        keys.shift_remove(key);
    }
    if keys.contains_key("properties") || keys.get("type") == Some(&json!("object")) {
        keys.insert("additionalProperties".to_owned(), false.into());
    }
    for (key, value) in keys {
        match (key.as_str(), value) {
            ("properties" | "$defs" | "definitions", Value::Object(named)) => {
                named.values_mut().for_each(narrow);
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(several)) => {
                several.iter_mut().for_each(narrow);
            }
            ("items", one) => narrow(one),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_core::Code;

    #[test]
    fn a_schema_keeps_its_shape_and_loses_what_is_refused() {
        let schema = json!({"type": "object", "properties": {
            "minimum": {"type": "integer", "minimum": 0},
            "names": {"type": "array", "maxItems": 3, "items": {"properties": {"a": {"enum": ["x"]}}}},
        }, "required": ["minimum"]});
        let format = json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema}});
        let read = |model| Form::read(Some(format.clone()), None, model).unwrap();
        let narrowed = json!({"type": "object", "properties": {
            "minimum": {"type": "integer"},
            "names": {"type": "array", "items": {"properties": {"a": {"enum": ["x"]}}, "additionalProperties": false}},
        }, "required": ["minimum"], "additionalProperties": false});
        let form = |schema| Form::Schema(json!({"type": "json_schema", "schema": schema}));
        assert_eq!(read(Generation::Adaptive), form(narrowed));
        assert_eq!(read(Generation::Other), form(schema));
    }

    #[test]
    fn other_formats_are_free_json_or_refused() {
        let read = |format: Value| Form::read(Some(format), None, Generation::Other);
        assert_eq!(read(json!({"type": "text"})), Ok(Form::Free));
        assert_eq!(read(json!({"type": "json_object"})), Ok(Form::Json));
        let own = Form::read(None, Some(json!({"type": "string"})), Generation::Other).unwrap();
        assert!(matches!(own, Form::Schema(_)));
        assert_eq!(
            read(json!({"type": "xml"})).unwrap_err().code,
            Code::BadRequest
        );
    }
}
