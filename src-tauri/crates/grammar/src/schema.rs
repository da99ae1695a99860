//! A JSON schema in the part of the language that llama.cpp's grammars hold.
//!
//! llama.cpp leaves out what it has no grammar for. Here each keyword that says something about an answer is kept, rewritten in
//! others, held by a grammar of ours, or refused. Where a schema allows more than the result, answers are still valid by it.
//!
//! Source: JSON Schema 2020-12, Core and Validation, with the older forms of tuples, definitions and exclusive bounds.
//!
//! # Why not llguidance
//!
//! llama-cpp-2 has it as a feature. Tried on 2026-11-28 (1.9.1): it follows 70 of this crate's 123 test schemas, this module 61. But tools
//! come from llama.cpp's chat templates as GBNF, so all of this would stay. It accepts schemas without a finite answer, a million
//! `minItems`, and patterns that it gives up in the middle of an answer, which llama-cpp-2's sampler ignores. Its masks take a hundredth
//! of the instructions, but the sampler checks the chosen token first, and masks only if that is refused. It adds 15 crates and 2.6 MB
//! of code to the worker. Worth another look once llama.cpp's templates write grammars for it, or if masks show up in a profile.

mod array;
mod disjoint;
mod finite;
mod merge;
mod numbers;
mod object;
mod placeholders;
mod root;
mod text;
mod values;

pub use placeholders::{Placeholders, replace_placeholders};
pub(crate) use root::with_named_root;

use crate::{bad, pattern::MOST_ALTERNATIVES};
use finite::has_finite_answer;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use tierbar_core::Error;

type Fields = Map<String, Value>;

/// llama.cpp's limit of repetitions.
const MOST_REPEATS: u64 = 2000;
/// What no context holds.
const BEYOND: u64 = 10_000_000;
/// References and `allOf` within one another.
const DEEPEST: usize = 96;
/// Parts of schemas that are looked at: alternatives of alternatives are many.
const MOST_STEPS: usize = 50_000;

const TYPES: [&str; 7] = [
    "object", "array", "string", "number", "integer", "boolean", "null",
];

/// What says something about an answer, whatever its type.
const KEYWORDS: [&str; 13] = [
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "allOf",
    "anyOf",
    "const",
    "else",
    "enum",
    "if",
    "not",
    "oneOf",
    "then",
    "type",
];

/// Returns a schema that llama.cpp's grammars follow, with constants that stand for the grammars in `placeholders`. `what`: the name of
/// the schema in messages. `strict`: whether what cannot be held is refused; otherwise it is left out.
///
/// # Errors
/// `BadRequest` naming the keyword and its place, for what is no schema, allows no answer, or cannot be held.
pub fn translate_schema(
    schema: &Value,
    what: &str,
    strict: bool,
    placeholders: &mut Placeholders,
) -> Result<Value, Error> {
    let mut walk = SchemaWalk {
        root: schema,
        what,
        strict,
        placeholders,
        names: BTreeMap::new(),
        waiting: Vec::new(),
        depth: 0,
        steps: 0,
    };
    let mut held = walk.translate_node(schema, "#")?;
    let mut definitions = Map::new();
    while let Some((reference, name)) = walk.waiting.pop() {
        let target = walk.reference_target(&json!(reference), &reference)?;
        let definition = walk.translate_node(target, &reference)?;
        definitions.insert(name, definition);
    }
    if !has_finite_answer(&held, &definitions) {
        return Err(
            bad(format!("{what} has no finite answer: it requires itself"))
                .hint("make the property that leads back optional, or allow null"),
        );
    }
    if held == json!({}) {
        held = json!({"type": TYPES});
    }
    if !definitions.is_empty() {
        held["$defs"] = Value::Object(definitions);
    }
    Ok(held)
}

struct SchemaWalk<'a> {
    root: &'a Value,
    what: &'a str,
    strict: bool,
    placeholders: &'a mut Placeholders,
    /// The definition of each reference.
    names: BTreeMap<String, String>,
    /// References whose definitions are not written yet.
    waiting: Vec<(String, String)>,
    depth: usize,
    steps: usize,
}

impl<'a> SchemaWalk<'a> {
    fn translate_node(&mut self, schema: &Value, at: &str) -> Result<Value, Error> {
        let fields = self.flatten_parts(schema, at)?;
        self.translate_fields(fields, at)
    }

    /// Returns what a schema says, with the parts of `allOf` as one, and a reference only alone.
    fn flatten_parts(&mut self, schema: &Value, at: &str) -> Result<Fields, Error> {
        self.descend(at, |walk| walk.flatten_fields(schema, at))
    }

    fn flatten_fields(&mut self, schema: &Value, at: &str) -> Result<Fields, Error> {
        let fields = match schema {
            Value::Object(fields) => fields,
            Value::Bool(true) => return Ok(Map::new()),
            Value::Bool(false) => return Err(self.wrong(at, "is `false`, which allows no answer")),
            _ => return Err(self.wrong(at, "is not a schema")),
        };
        // The others are notes, or say nothing without one of these.
        let is_keyword = |key: &str| KEYWORDS.contains(&key) || keyword_type(key).is_some();
        let says = |(key, value): &(&String, &Value)| {
            is_keyword(key) && (!value.is_null() || *key == "const")
        };
        let said = fields.iter().filter(says);
        let mut own: Fields = said
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        for key in ["not", "$dynamicRef", "$recursiveRef"] {
            if own.shift_remove(key).is_some() {
                self.refuse(at, key, "is not supported")?;
            }
        }
        let follows = ["then", "else"].map(|key| own.shift_remove(key).is_some());
        if own.shift_remove("if").is_some() && follows.contains(&true) {
            self.refuse(at, "if", "is not supported")?;
        }
        if let Some(parts) = own.shift_remove("allOf") {
            for (nth, part) in self.list(&parts, "allOf", at)?.iter().enumerate() {
                let part = self.flatten_parts(part, &format!("{at}/allOf/{nth}"))?;
                own = self.merge(own, part, at)?;
            }
        }
        if own.len() > 1 {
            return self.resolve_reference(own, at);
        }
        Ok(own)
    }

    /// Returns fields with what their reference says in its place.
    fn resolve_reference(&mut self, mut fields: Fields, at: &str) -> Result<Fields, Error> {
        let Some(reference) = fields.shift_remove("$ref") else {
            return Ok(fields);
        };
        self.descend(at, |walk| {
            let target = walk.reference_target(&reference, at)?;
            let place = reference.as_str().unwrap_or(at);
            let target = walk.flatten_parts(target, place)?;
            let target = walk.resolve_reference(target, at)?;
            walk.merge(fields, target, at)
        })
    }

    /// Returns what a schema says, with what its reference says in its place.
    fn resolve_parts(&mut self, schema: &Value, at: &str) -> Result<Fields, Error> {
        let fields = self.flatten_parts(schema, at)?;
        self.resolve_reference(fields, at)
    }

    fn descend<T>(
        &mut self,
        at: &str,
        look: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.steps += 1;
        if self.depth == DEEPEST || self.steps > MOST_STEPS {
            return Err(self.wrong(at, "refers to itself without an end, or is too large"));
        }
        self.depth += 1;
        let found = look(self);
        self.depth -= 1;
        found
    }

    fn reference_target(&self, reference: &Value, at: &str) -> Result<&'a Value, Error> {
        let reference = reference.as_str().unwrap_or_default();
        let pointer = reference.strip_prefix('#');
        let found = pointer.and_then(|pointer| self.root.pointer(pointer));
        found.ok_or_else(|| {
            let why = format!("has the `$ref` \"{reference:.80}\", which is not in the schema");
            self.wrong(at, &why)
        })
    }

    fn translate_fields(&mut self, mut fields: Fields, at: &str) -> Result<Value, Error> {
        if let Some(reference) = fields.get("$ref") {
            self.reference_target(reference, at)?;
            let reference = reference.as_str().unwrap_or_default().to_owned();
            return Ok(json!({"$ref": format!("#/$defs/{}", self.definition_name(reference))}));
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(ways) = fields.shift_remove(key) {
                return self.descend(at, |walk| {
                    walk.translate_alternatives(key, &ways, &fields, at)
                });
            }
        }
        if fields.contains_key("const") || fields.contains_key("enum") {
            return self.translate_values(&fields, at);
        }
        let types = self.types(&fields, at)?;
        if types.is_empty() {
            return Ok(json!({}));
        }
        let types = types.into_iter();
        any_of(types.map(|kind| self.translate_type(kind, &fields, at)))
    }

    fn definition_name(&mut self, reference: String) -> String {
        if let Some(name) = self.names.get(&reference) {
            return name.clone();
        }
        // Of all schemas of a request: llama.cpp takes two definitions of the same name for one.
        let name = format!("d{}x", self.placeholders.definitions);
        self.placeholders.definitions += 1;
        self.names.insert(reference.clone(), name.clone());
        self.waiting.push((reference, name.clone()));
        name
    }

    fn translate_alternatives(
        &mut self,
        key: &str,
        ways: &Value,
        others: &Fields,
        at: &str,
    ) -> Result<Value, Error> {
        let ways = self.list(ways, key, at)?;
        let mut flat = Vec::new();
        for (nth, way) in ways.iter().enumerate() {
            let place = format!("{at}/{key}/{nth}");
            let way = self.flatten_parts(way, &place);
            let way = way.and_then(|way| self.merge(others.clone(), way, &place));
            flat.push((place, way));
        }
        // A hint is not refused. Comparing its alternatives would only take the steps of what follows.
        if key == "oneOf" && self.strict && !self.are_disjoint(&flat, at)? {
            let why = match self.steps > MOST_STEPS {
                true => "has alternatives that are too many or too large to compare; use anyOf",
                false => {
                    "has alternatives that may hold at once, which is not supported; use anyOf"
                }
            };
            self.refuse(at, key, why)?;
        }
        // Values are one alternative, however many ways list them.
        let (mut held, mut values, mut place_of_values) = (Vec::new(), Vec::new(), 0);
        for (place, way) in flat {
            let way = match way {
                Ok(way) if is_list_of_values(&way) => match self.allowed_values(&way, &place) {
                    Ok(more) => {
                        values.extend(more);
                        continue;
                    }
                    Err(error) => Err(error),
                },
                way => way.and_then(|way| self.translate_fields(way, &place)),
            };
            if values.is_empty() {
                place_of_values += 1;
            }
            held.push(way);
        }
        // Those that cannot be held are left out.
        let count = held.iter().filter(|way| way.is_ok()).count();
        self.check_alternatives(count, key, at)?;
        if !values.is_empty() {
            held.insert(place_of_values, Ok(self.one_of(values)));
        }
        any_of(held.into_iter())
    }

    /// Refuses more alternatives that are not values than are supported.
    fn check_alternatives(&self, count: usize, key: &str, at: &str) -> Result<(), Error> {
        if count <= MOST_ALTERNATIVES {
            return Ok(());
        }
        let why = format!(
            "has {count} alternatives that are not values, of which {MOST_ALTERNATIVES} are supported"
        );
        self.refuse(at, key, &why)
    }

    /// The types that are named, or the one that the other keywords are about; none for any.
    fn types(&self, fields: &Fields, at: &str) -> Result<Vec<&'static str>, Error> {
        let named = match fields.get("type") {
            None => return Ok(implied_type(fields).into_iter().collect()),
            Some(Value::Array(named)) if !named.is_empty() => named.clone(),
            Some(one) => vec![one.clone()],
        };
        let mut types = Vec::new();
        for name in named {
            let Some(known) = TYPES.into_iter().find(|known| name == **known) else {
                let message = format!("has the unknown `type` {name}");
                return Err(self.wrong(at, &message));
            };
            if !types.contains(&known) {
                types.push(known);
            }
        }
        Ok(types)
    }

    fn translate_type(
        &mut self,
        kind: &'static str,
        fields: &Fields,
        at: &str,
    ) -> Result<Value, Error> {
        self.descend(at, |walk| match kind {
            "object" => walk.translate_object(fields, at),
            "array" => walk.translate_array(fields, at),
            "string" => walk.translate_string(fields, at),
            "number" | "integer" => walk.translate_number(kind, fields, at),
            other => Ok(json!({"type": other})),
        })
    }

    /// The fewest and the most, of which a grammar counts up to `limit`.
    fn counted_bounds(
        &self,
        fields: &Fields,
        (least, largest): (&str, &str),
        limit: u64,
        at: &str,
    ) -> Result<(u64, Option<u64>), Error> {
        let (fewest, most) = self.counts(fields, least, largest, at)?;
        let most = most.filter(|most| *most < BEYOND);
        if fewest > MOST_REPEATS {
            let message = format!("is more than {MOST_REPEATS}, which is not supported");
            self.refuse(at, least, &message)?;
        }
        if most.is_some_and(|most| most > limit) {
            let message = format!("is more than {limit}, which is not supported");
            self.refuse(at, largest, &message)?;
        }
        Ok((fewest.min(MOST_REPEATS), most.filter(|most| *most <= limit)))
    }

    fn counts(
        &self,
        fields: &Fields,
        least: &str,
        largest: &str,
        at: &str,
    ) -> Result<(u64, Option<u64>), Error> {
        let count = |key: &str| match fields.get(key) {
            None => Ok(None),
            Some(value) => value.as_u64().map(Some).ok_or_else(|| {
                let message = format!("has `{key}` {value}, which is not a count");
                self.wrong(at, &message)
            }),
        };
        let (fewest, most) = (count(least)?.unwrap_or(0), count(largest)?);
        if most.is_some_and(|most| most < fewest) {
            let message = format!("contradicts itself: `{least}` is more than `{largest}`");
            return Err(self.wrong(at, &message));
        }
        Ok((fewest, most))
    }

    fn list<'v>(&self, value: &'v Value, key: &str, at: &str) -> Result<&'v [Value], Error> {
        match value {
            Value::Array(list) if !list.is_empty() => Ok(list),
            _ => Err(self.wrong(at, &format!("has `{key}` that is not a list of schemas"))),
        }
    }

    /// The error for a keyword that cannot be held, unless it is a hint.
    fn refuse(&self, at: &str, key: &str, why: &str) -> Result<(), Error> {
        if !self.strict {
            return Ok(());
        }
        let message = format!("`{key}` at `{at}` of {} {why}", self.what);
        Err(bad(message).hint("leave it out, and check the answer yourself"))
    }

    /// The error for what is no schema, or allows no answer.
    fn wrong(&self, at: &str, why: &str) -> Error {
        bad(format!("`{at}` of {} {why}", self.what)).hint("correct the schema")
    }
}

/// What is left of alternatives without those that cannot be held: an answer by the others is valid too. That null is left alone
/// would be a surprise.
fn any_of(ways: impl Iterator<Item = Result<Value, Error>>) -> Result<Value, Error> {
    let mut held = Vec::new();
    let mut refused = None;
    for way in ways {
        match way {
            Ok(way) => held.push(way),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    let is_null = |way: &Value| way["type"] == "null";
    match refused {
        Some(error) if held.iter().all(is_null) => Err(error),
        _ if held.len() == 1 => Ok(held.swap_remove(0)),
        _ => Ok(json!({"anyOf": held})),
    }
}

fn is_list_of_values(fields: &Fields) -> bool {
    let has = |key: &str| fields.contains_key(key);
    (has("const") || has("enum")) && !["$ref", "anyOf", "oneOf"].into_iter().any(has)
}

/// The type that the keywords are about, where none is named.
fn implied_type(fields: &Fields) -> Option<&'static str> {
    let about = |kind: &&'static str| fields.keys().any(|key| keyword_type(key) == Some(*kind));
    TYPES.into_iter().find(about)
}

fn properties_of(fields: &Fields) -> Option<&Fields> {
    fields.get("properties")?.as_object()
}

/// The type that a keyword is about.
fn keyword_type(key: &str) -> Option<&'static str> {
    Some(match key {
        "additionalProperties"
        | "dependencies"
        | "dependentRequired"
        | "dependentSchemas"
        | "maxProperties"
        | "minProperties"
        | "patternProperties"
        | "properties"
        | "propertyNames"
        | "required"
        | "unevaluatedProperties" => "object",
        "additionalItems" | "contains" | "items" | "maxItems" | "minItems" | "prefixItems"
        | "unevaluatedItems" | "uniqueItems" => "array",
        "format" | "maxLength" | "minLength" | "pattern" => "string",
        "exclusiveMaximum" | "exclusiveMinimum" | "maximum" | "minimum" | "multipleOf" => "number",
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
