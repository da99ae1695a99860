//! Alternatives of which only one may hold: whether an answer by one can be valid by another.

use super::{Fields, SchemaWalk, TYPES, implied_type, properties_of, values::has_type};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    slice,
};
use tierbar_core::Error;

impl SchemaWalk<'_> {
    /// Whether no answer by one of the alternatives is valid by another, as far as that can be told.
    pub(super) fn are_disjoint(
        &mut self,
        ways: &[(String, Result<Fields, Error>)],
        at: &str,
    ) -> Result<bool, Error> {
        let mut all = Vec::new();
        for (_, way) in ways {
            let way = way.clone()?;
            all.push(self.resolve_reference(way, at)?);
        }
        let (mut listed, mut count, mut open) = (HashSet::new(), 0, Vec::new());
        for fields in &all {
            let Some(values) = listed_values(fields) else {
                open.push(fields);
                continue;
            };
            let values: HashSet<&Value> = values.iter().collect();
            count += values.len();
            listed.extend(values);
        }
        if listed.len() < count {
            return Ok(false);
        }
        // More are not held, however they differ.
        self.check_alternatives(open.len(), "oneOf", at)?;
        let has_kind = |kind: &&'static str| listed.iter().any(|value| has_type(value, kind));
        let kinds: Vec<_> = TYPES.into_iter().filter(has_kind).collect();
        let numbered = open.iter().copied().enumerate();
        let objects: BTreeMap<usize, &Fields> = numbered
            .filter(|(_, fields)| possible_types(fields, true) == ["object"])
            .collect();
        let distinct = self.distinct_objects(&objects, at);
        let are_distinct = |one: usize, other: usize| {
            let are_objects = objects.contains_key(&one) && objects.contains_key(&other);
            are_objects && (distinct.contains(&one) || distinct.contains(&other))
        };
        for (nth, one) in open.iter().enumerate() {
            let may_be = possible_types(one, false);
            if may_be.iter().any(|kind| kinds.contains(kind)) {
                return Ok(false);
            }
            for (other, fields) in open.iter().enumerate() {
                let is_known = nth == other || are_distinct(nth, other);
                if !is_known && !self.never_both(one, fields, at) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The objects that hold with none of the others, by a property such as a discriminator: all require it and list its values, and no
    /// other has theirs. Comparing each pair would take too many steps.
    fn distinct_objects(
        &mut self,
        objects: &BTreeMap<usize, &Fields>,
        at: &str,
    ) -> BTreeSet<usize> {
        let mut distinct = BTreeSet::new();
        let Some(first) = objects.values().next() else {
            return distinct;
        };
        for name in required_of(first) {
            let Some(listed) = self.listed_in_all(name, objects, at) else {
                continue;
            };
            let mut owners: HashMap<&Value, usize> = HashMap::new();
            let mut shared: BTreeSet<usize> = BTreeSet::new();
            for (nth, property) in &listed {
                for value in listed_values(property).into_iter().flatten() {
                    let owner = *owners.entry(value).or_insert(*nth);
                    if owner != *nth {
                        shared.extend([owner, *nth]);
                    }
                }
            }
            distinct.extend(listed.keys().filter(|nth| !shared.contains(*nth)));
        }
        distinct
    }

    /// What a property's schema is in each of some objects, if all require it and list its values.
    fn listed_in_all(
        &mut self,
        name: &str,
        objects: &BTreeMap<usize, &Fields>,
        at: &str,
    ) -> Option<BTreeMap<usize, Fields>> {
        let mut listed = BTreeMap::new();
        for (nth, fields) in objects {
            if !required_of(fields).any(|known| known == name) {
                return None;
            }
            let property = properties_of(fields)?.get(name)?;
            let property = self.resolve_parts(property, at).ok()?;
            listed_values(&property)?;
            listed.insert(*nth, property);
        }
        Some(listed)
    }

    /// Whether no answer that is written by the first schema is valid by the second.
    fn never_both(&mut self, written: &Fields, other: &Fields, at: &str) -> bool {
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
        let (ones, others) = (properties_of(written), properties_of(other));
        let has = |properties: Option<&Fields>, name: &str| {
            properties.is_some_and(|properties| properties.contains_key(name))
        };
        // The grammar adds no properties unless the schema says so.
        let is_closed = match written.get("additionalProperties") {
            None => ones.is_some_and(|ones| !ones.is_empty()),
            Some(rest) => *rest == json!(false),
        };
        let lacks =
            |name: &str| !has(ones, name) && !required_of(written).any(|known| known == name);
        if is_closed && required_of(other).any(lacks) {
            return true;
        }
        let refuses = other.get("additionalProperties") == Some(&json!(false));
        if refuses && required_of(written).any(|name| !has(others, name)) {
            return true;
        }
        let (Some(ones), Some(others)) = (ones, others) else {
            return false;
        };
        for name in required_of(written) {
            let (Some(one), Some(other)) = (ones.get(name), others.get(name)) else {
                continue;
            };
            let differ = self.descend(at, |walk| {
                let one = walk.resolve_parts(one, at)?;
                let other = walk.resolve_parts(other, at)?;
                Ok(walk.never_both(&one, &other, at))
            });
            if differ.unwrap_or(false) {
                return true;
            }
        }
        false
    }
}

fn required_of(fields: &Fields) -> impl Iterator<Item = &str> {
    let names = fields.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str)
}

fn listed_values(fields: &Fields) -> Option<&[Value]> {
    if let Some(only) = fields.get("const") {
        return Some(slice::from_ref(only));
    }
    fields.get("enum")?.as_array().map(Vec::as_slice)
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
