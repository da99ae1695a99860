//! Two schemas that both hold, as one.

use super::{Fields, SchemaWalk, properties_of};
use serde_json::{Map, Value, json};
use tierbar_core::Error;

impl SchemaWalk<'_> {
    pub(super) fn merge(&mut self, one: Fields, other: Fields, at: &str) -> Result<Fields, Error> {
        if one.is_empty() || one == other {
            return Ok(other);
        }
        if other.is_empty() {
            return Ok(one);
        }
        let mut merged = self.resolve_reference(one, at)?;
        let other = self.resolve_reference(other, at)?;
        if !(leaves_room(&merged, &other) && leaves_room(&other, &merged)) {
            let why = "beside `properties` of another part is not supported";
            self.refuse(at, "additionalProperties", why)?;
        }
        for (key, value) in other {
            let known = match merged.get(&key) {
                Some(known) if *known == value => continue,
                Some(known) => known.clone(),
                None => {
                    merged.insert(key, value);
                    continue;
                }
            };
            match merged_value(&key, known, value) {
                Some(both) if key == "type" && both == json!([]) => {
                    return Err(self.wrong(at, "contradicts itself: nothing has all of its types"));
                }
                Some(both) => {
                    merged.insert(key, both);
                }
                None => {
                    let why = "differs between two parts that both hold, which is not supported";
                    self.refuse(at, &key, why)?;
                }
            }
        }
        Ok(merged)
    }
}

/// Whether all properties of another schema are among those of one that says what others are.
fn leaves_room(limits: &Fields, other: &Fields) -> bool {
    let is_open = |rest: &Value| *rest == json!(true) || *rest == json!({});
    if limits.get("additionalProperties").is_none_or(is_open) {
        return true;
    }
    let known = properties_of(limits);
    let mut others = properties_of(other).into_iter().flat_map(Map::keys);
    others.all(|name| known.is_some_and(|known| known.contains_key(name)))
}

/// What two values of a keyword say together; `None` for what no single value says.
fn merged_value(key: &str, one: Value, other: Value) -> Option<Value> {
    match key {
        "type" => Some(json!(shared_types(&one, &other))),
        "required" => {
            let (mut one, other) = (one.as_array()?.clone(), other.as_array()?);
            one.extend(other.iter().cloned());
            Some(Value::Array(one))
        }
        "enum" => {
            let other = other.as_array()?;
            let values = one.as_array()?.iter();
            let shared = values.filter(|value| other.contains(value));
            Some(shared.cloned().collect())
        }
        "properties" => Some(Value::Object(merged_properties(one, other)?)),
        "items" => {
            let is_schema = one.is_object() && other.is_object();
            is_schema.then(|| json!({"allOf": [one, other]}))
        }
        "additionalProperties" => match (one, other) {
            (Value::Bool(true), rest) | (rest, Value::Bool(true)) => Some(rest),
            (Value::Bool(false), _) | (_, Value::Bool(false)) => Some(json!(false)),
            (one, other) => Some(json!({"allOf": [one, other]})),
        },
        "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => {
            let is_tighter = one.as_f64()? > other.as_f64()?;
            Some(if is_tighter { one } else { other })
        }
        "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => {
            let is_tighter = one.as_f64()? < other.as_f64()?;
            Some(if is_tighter { one } else { other })
        }
        "uniqueItems" => Some(json!(true)),
        _ => None,
    }
}

fn shared_types(one: &Value, other: &Value) -> Vec<Value> {
    let list = |types: &Value| match types {
        Value::Array(types) => types.clone(),
        one => vec![one.clone()],
    };
    let (ones, others) = (list(one), list(other));
    let mut shared = Vec::new();
    for one in &ones {
        for other in &others {
            let number = |kind: &Value| *kind == "number" || *kind == "integer";
            let kind = if one == other {
                one.clone()
            } else if number(one) && number(other) {
                json!("integer")
            } else {
                continue;
            };
            if !shared.contains(&kind) {
                shared.push(kind);
            }
        }
    }
    shared
}

fn merged_properties(one: Value, other: Value) -> Option<Map<String, Value>> {
    let (Value::Object(mut properties), Value::Object(others)) = (one, other) else {
        return None;
    };
    for (name, schema) in others {
        let schema = match properties.get(&name) {
            Some(known) if *known != schema => json!({"allOf": [known, schema]}),
            _ => schema,
        };
        properties.insert(name, schema);
    }
    Some(properties)
}
