//! Alternatives of which only one may hold: whether an answer by one can be valid by another.

use super::{Fields, SchemaWalk, TYPES, implied_type, properties_of, values::has_type};
use serde_json::{Value, json};

impl SchemaWalk<'_> {
    /// Whether no answer that is written by the first schema is valid by the second.
    pub(super) fn never_both(&mut self, written: &Fields, other: &Fields, at: &str) -> bool {
        let (ones, others) = (listed_values(written), listed_values(other));
        match (ones, others) {
            (Some(ones), Some(others)) => return ones.iter().all(|one| !others.contains(one)),
            (Some(ones), None) => return ones.iter().all(|one| !may_have(one, other, false)),
            (None, Some(others)) => return others.iter().all(|one| !may_have(one, written, true)),
            (None, None) => {}
        }
        let (ones, others) = (possible_types(written, true), possible_types(other, false));
        let is_number = |kind: &str| kind == "number" || kind == "integer";
        let shared = |one: &&'static str| {
            let mut others = others.iter();
            others.any(|other| one == other || (is_number(one) && is_number(other)))
        };
        let are_numbers = ones.iter().all(|kind| is_number(kind));
        let apart = are_numbers && (are_apart(written, other) || are_apart(other, written));
        if apart || !ones.iter().any(shared) {
            return true;
        }
        ones == ["object"] && self.objects_never_both(written, other, at)
    }

    fn objects_never_both(&mut self, written: &Fields, other: &Fields, at: &str) -> bool {
        let required = |fields: &Fields| {
            let names = fields.get("required").and_then(Value::as_array);
            names.cloned().unwrap_or_default()
        };
        let has = |properties: &Fields, name: &Value| {
            let name = name.as_str();
            name.is_some_and(|name| properties.contains_key(name))
        };
        let (ones, others) = (properties_of(written), properties_of(other));
        let (always, wanted) = (required(written), required(other));
        // The grammar adds no properties unless the schema says so.
        let is_closed = match written.get("additionalProperties") {
            None => !ones.is_empty(),
            Some(rest) => *rest == json!(false),
        };
        let lacks = |name: &Value| !has(&ones, name) && !always.contains(name);
        if is_closed && wanted.iter().any(lacks) {
            return true;
        }
        let refuses = other.get("additionalProperties") == Some(&json!(false));
        if refuses && always.iter().any(|name| !has(&others, name)) {
            return true;
        }
        let shared = ones
            .iter()
            .filter(|(name, _)| always.iter().any(|known| known == name.as_str()));
        for (name, one) in shared {
            let Some(other) = others.get(name) else {
                continue;
            };
            let mut read = |schema: &Value| {
                let fields = self.flatten_parts(schema, at)?;
                self.resolve_reference(fields, at)
            };
            let (Ok(one), Ok(other)) = (read(one), read(other)) else {
                continue;
            };
            let differ = self.descend(at, |walk| Ok(walk.never_both(&one, &other, at)));
            if differ.unwrap_or(false) {
                return true;
            }
        }
        false
    }
}

fn listed_values(fields: &Fields) -> Option<Vec<Value>> {
    if let Some(only) = fields.get("const") {
        return Some(vec![only.clone()]);
    }
    fields.get("enum").and_then(Value::as_array).cloned()
}

/// The types that an answer may have. `written`: an answer of the grammar, which has one type where the schema leaves it open.
fn possible_types(fields: &Fields, written: bool) -> Vec<&'static str> {
    match fields.get("type") {
        Some(Value::Array(names)) => {
            let is_named = |kind: &&'static str| names.iter().any(|name| name == *kind);
            TYPES.into_iter().filter(is_named).collect()
        }
        Some(name) => TYPES.into_iter().filter(|kind| name == *kind).collect(),
        None => {
            let has_ways = fields.contains_key("anyOf") || fields.contains_key("oneOf");
            let one = implied_type(fields).filter(|_| written && !has_ways);
            one.map_or_else(|| TYPES.to_vec(), |kind| vec![kind])
        }
    }
}

/// Whether a value may be an answer, by its type.
fn may_have(value: &Value, fields: &Fields, written: bool) -> bool {
    let kinds = possible_types(fields, written);
    kinds.iter().any(|kind| has_type(value, kind))
}

/// Whether all numbers of one are below those of the other.
fn are_apart(below: &Fields, above: &Fields) -> bool {
    let bound = |fields: &Fields, key: &str| fields.get(key).and_then(Value::as_f64);
    let high = bound(below, "maximum").or(bound(below, "exclusiveMaximum"));
    let low = bound(above, "minimum").or(bound(above, "exclusiveMinimum"));
    high.zip(low).is_some_and(|(high, low)| high < low)
}
