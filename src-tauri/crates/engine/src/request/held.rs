//! A JSON schema in the part of the language that llama.cpp's grammars hold.
//!
//! llama.cpp leaves out what it has no grammar for. Here each keyword that says something about an answer is kept, rewritten in
//! others, held by a grammar of ours, or refused. Where a schema allows more than the result, answers are still valid by it.
//!
//! Source: JSON Schema 2020-12, Core and Validation, with the older forms of tuples, definitions and exclusive bounds.
//!
//! # Why not llguidance
//!
//! llama-cpp-2 has it as a feature. Tried on 2026-11-28: llguidance 1.9.1 on a Xeon, beside this module and llama.cpp's grammars.
//!
//! - Tools come from llama.cpp's chat templates as GBNF with the parameters' schemas in it, so all of this would stay, and be second.
//! - Of 123 schemas of this crate's tests it follows 70, this module 61; neither lets an invalid one of 8,000 answers through.
//!   It alone follows `patternProperties`, `minProperties`, `maxProperties`, each `multipleOf`, and patterns with lengths or `\p{L}`.
//!   This module alone follows disjoint values, ranges and required names in `oneOf`, names in `propertyNames`, unknown formats, and
//!   bounds above 64 bits.
//! - It accepts schemas without a finite answer, a million `minItems`, and a pattern that it gives up in the middle of an answer.
//!   llama-cpp-2's sampler ignores such an error, and the rest is unconstrained.
//! - A mask of SmolLM2's 49,152 tokens takes 0.08 to 0.35 million instructions (callgrind, four answers), llama.cpp's 25 to 98 million.
//!   But the sampler checks the chosen token first, for 17,000 to 41,000 and 49,000 to 132,000, and masks only if that is refused.
//!   Its tables of a model's tokens take 0.6 billion instructions, or 3.4 billion for Gemma's 262,144.
//! - It adds 15 crates, 48 CPU seconds of compiling and 2.6 MB of code to the worker.
//!
//! Worth another look once llama.cpp's templates write grammars for it, or if masks show up in a profile.

mod disjoint;
mod merge;
mod numbers;

use super::{bad, regex};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tierbar_core::Error;

type Fields = Map<String, Value>;

/// llama.cpp's limit of repetitions.
const MOST_REPEATS: u64 = 2000;
/// Each of a text's characters is a rule.
const MOST_CHARACTERS: u64 = 20_000;
/// What no context holds.
const BEYOND: u64 = 10_000_000;
/// llama.cpp writes a rule for each with all that follow.
const MOST_OPTIONAL: usize = 256;
/// References and `allOf` within one another.
const DEEPEST: usize = 96;
/// Parts of schemas that are looked at: alternatives of alternatives are many.
const MOST_STEPS: usize = 50_000;

const TYPES: [&str; 7] = [
    "object", "array", "string", "number", "integer", "boolean", "null",
];

/// What says something about an answer. The others are notes, or say nothing without one of these.
const KEYWORDS: [&str; 41] = [
    "$ref",
    "$dynamicRef",
    "$recursiveRef",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "if",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "prefixItems",
    "properties",
    "propertyNames",
    "required",
    "then",
    "type",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];

/// Grammars of ours, and the constants that stand for them in schemas until llama.cpp has written its own.
#[derive(Debug)]
pub(super) struct Forms {
    mark: String,
    /// GBNF by its constant.
    pub(super) grammars: Fields,
    definitions: usize,
}

impl Forms {
    /// `text`: all schemas, none of which has such a constant of its own.
    pub(super) fn beside(text: &str) -> Self {
        let mut marks = (0..).map(|number| format!("tierbar-form-{number}-"));
        let mark = marks.find(|mark| !text.contains(mark));
        Self {
            mark: mark.unwrap_or_default(),
            grammars: Map::new(),
            definitions: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.grammars.is_empty()
    }

    fn constant(&mut self, grammar: String) -> Value {
        let grammar = Value::from(grammar);
        let known = self.grammars.iter().find(|(_, known)| **known == grammar);
        let name = known.map(|(name, _)| name.clone());
        let name = name.unwrap_or_else(|| {
            let name = format!("{}{}", self.mark, self.grammars.len());
            self.grammars.insert(name.clone(), grammar);
            name
        });
        json!({"const": name})
    }
}

/// Returns a schema that llama.cpp's grammar holds, with constants for the grammars in `forms`. `what`: the name of the schema in
/// messages. `strict`: whether what cannot be held is refused; otherwise it is left out.
///
/// # Errors
/// `BadRequest` naming the keyword and its place, for what is no schema, allows no answer, or cannot be held.
pub(super) fn hold(
    schema: &Value,
    what: &str,
    strict: bool,
    forms: &mut Forms,
) -> Result<Value, Error> {
    let mut walk = Walk {
        root: schema,
        what,
        strict,
        forms,
        names: BTreeMap::new(),
        waiting: Vec::new(),
        depth: 0,
        steps: 0,
    };
    let mut held = walk.node(schema, "#")?;
    let mut definitions = Map::new();
    while let Some((reference, name)) = walk.waiting.pop() {
        let target = walk.target(&json!(reference), &reference)?;
        let definition = walk.node(target, &reference)?;
        definitions.insert(name, definition);
    }
    if !can_end(&held, &definitions) {
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

/// Whether an answer can be complete without a definition within itself.
fn can_end(held: &Value, definitions: &Fields) -> bool {
    let mut finite = BTreeSet::new();
    loop {
        let before = finite.len();
        for (name, definition) in definitions {
            if !finite.contains(name.as_str()) && ends(definition, &finite) {
                finite.insert(name.as_str());
            }
        }
        if finite.len() == before {
            return ends(held, &finite);
        }
    }
}

fn ends(held: &Value, finite: &BTreeSet<&str>) -> bool {
    if let Some(reference) = held["$ref"].as_str() {
        let name = reference.rsplit('/').next();
        return name.is_some_and(|name| finite.contains(name));
    }
    if let Some(ways) = held["anyOf"].as_array() {
        return ways.iter().any(|way| ends(way, finite));
    }
    let required = held["required"].as_array().into_iter().flatten();
    let mut properties = required
        .filter_map(Value::as_str)
        .map(|name| &held["properties"][name]);
    let mut items = held["prefixItems"].as_array().into_iter().flatten();
    let some = held["minItems"].as_u64().is_some_and(|fewest| fewest > 0);
    properties.all(|property| ends(property, finite))
        && items.all(|item| ends(item, finite))
        && (!some || ends(&held["items"], finite))
}

struct Walk<'a> {
    root: &'a Value,
    what: &'a str,
    strict: bool,
    forms: &'a mut Forms,
    /// The definition of each reference.
    names: BTreeMap<String, String>,
    /// References whose definitions are not written yet.
    waiting: Vec<(String, String)>,
    depth: usize,
    steps: usize,
}

impl<'a> Walk<'a> {
    fn node(&mut self, schema: &Value, at: &str) -> Result<Value, Error> {
        let fields = self.flat(schema, at)?;
        self.held(fields, at)
    }

    /// Returns what a schema says, with the parts of `allOf` as one, and a reference only alone.
    fn flat(&mut self, schema: &Value, at: &str) -> Result<Fields, Error> {
        self.deeper(at, |walk| walk.flattened(schema, at))
    }

    fn flattened(&mut self, schema: &Value, at: &str) -> Result<Fields, Error> {
        let fields = match schema {
            Value::Object(fields) => fields,
            Value::Bool(true) => return Ok(Map::new()),
            Value::Bool(false) => return Err(self.wrong(at, "is `false`, which allows no answer")),
            _ => return Err(self.wrong(at, "is not a schema")),
        };
        let says = |(key, value): &(&String, &Value)| {
            KEYWORDS.contains(&key.as_str()) && (!value.is_null() || *key == "const")
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
                let part = self.flat(part, &format!("{at}/allOf/{nth}"))?;
                own = self.merge(own, part, at)?;
            }
        }
        if own.len() > 1 {
            return self.resolved(own, at);
        }
        Ok(own)
    }

    /// Returns fields with what their reference says in its place.
    fn resolved(&mut self, mut fields: Fields, at: &str) -> Result<Fields, Error> {
        let Some(reference) = fields.shift_remove("$ref") else {
            return Ok(fields);
        };
        self.deeper(at, |walk| {
            let target = walk.target(&reference, at)?;
            let place = reference.as_str().unwrap_or(at);
            let target = walk.flat(target, place)?;
            let target = walk.resolved(target, at)?;
            walk.merge(fields, target, at)
        })
    }

    fn deeper<T>(
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

    fn target(&self, reference: &Value, at: &str) -> Result<&'a Value, Error> {
        let reference = reference.as_str().unwrap_or_default();
        let pointer = reference.strip_prefix('#');
        let found = pointer.and_then(|pointer| self.root.pointer(pointer));
        found.ok_or_else(|| {
            let shown: String = reference.chars().take(80).collect();
            self.wrong(
                at,
                &format!("has the `$ref` \"{shown}\", which is not in the schema"),
            )
        })
    }

    fn held(&mut self, mut fields: Fields, at: &str) -> Result<Value, Error> {
        if let Some(reference) = fields.get("$ref") {
            self.target(reference, at)?;
            let reference = reference.as_str().unwrap_or_default().to_owned();
            return Ok(json!({"$ref": format!("#/$defs/{}", self.name(reference))}));
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(ways) = fields.shift_remove(key) {
                return self.deeper(at, |walk| walk.alternatives(key, &ways, &fields, at));
            }
        }
        if fields.contains_key("const") || fields.contains_key("enum") {
            return self.values(&fields, at);
        }
        let types = self.types(&fields, at)?;
        if types.is_empty() {
            return Ok(json!({}));
        }
        let mut ways = Vec::new();
        for kind in types {
            ways.push(self.typed(kind, &fields, at));
        }
        either(ways)
    }

    fn name(&mut self, reference: String) -> String {
        if let Some(name) = self.names.get(&reference) {
            return name.clone();
        }
        // Of all schemas of a request: llama.cpp takes two definitions of the same name for one.
        let name = format!("d{}x", self.forms.definitions);
        self.forms.definitions += 1;
        self.names.insert(reference.clone(), name.clone());
        self.waiting.push((reference, name.clone()));
        name
    }

    fn alternatives(
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
            let way = self.flat(way, &place);
            let way = way.and_then(|way| self.merge(others.clone(), way, &place));
            flat.push((place, way));
        }
        if key == "oneOf" && !self.are_disjoint(&flat, at)? {
            self.refuse(
                at,
                key,
                "has alternatives that may hold at once, which is not supported; use anyOf",
            )?;
        }
        let mut held = Vec::new();
        for (place, way) in flat {
            held.push(way.and_then(|way| self.held(way, &place)));
        }
        either(held)
    }

    fn are_disjoint(
        &mut self,
        ways: &[(String, Result<Fields, Error>)],
        at: &str,
    ) -> Result<bool, Error> {
        let mut all = Vec::new();
        for (_, way) in ways {
            let way = way.clone()?;
            all.push(self.resolved(way, at)?);
        }
        for (nth, one) in all.iter().enumerate() {
            for (other, fields) in all.iter().enumerate() {
                if nth != other && !self.never_both(one, fields, at) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// One of some values.
    fn values(&self, fields: &Fields, at: &str) -> Result<Value, Error> {
        let mut values = match fields.get("enum") {
            Some(Value::Array(values)) if !values.is_empty() => values.clone(),
            Some(_) => return Err(self.wrong(at, "has an `enum` without a value")),
            None => Vec::new(),
        };
        if let Some(only) = fields.get("const") {
            if fields.contains_key("enum") {
                values.retain(|value| value == only);
            } else {
                values.push(only.clone());
            }
        }
        if fields.contains_key("type") {
            let types = self.types(fields, at)?;
            values.retain(|value| types.iter().any(|kind| has_type(value, kind)));
        }
        values.retain(|value| is_within(value, fields));
        for key in fields.keys() {
            let applies = |value: &Value| match key.as_str() {
                "pattern" => value.is_string(),
                "multipleOf" => value.is_number(),
                _ => match keyword_type(key) {
                    Some("object") => value.is_object(),
                    Some("array") => value.is_array(),
                    _ => false,
                },
            };
            if values.iter().any(applies) {
                self.refuse(at, key, "beside `enum` or `const` is not supported")?;
            }
        }
        if values.is_empty() {
            return Err(self.wrong(at, "contradicts itself: no value of `enum` or `const` fits"));
        }
        Ok(json!({"enum": values}))
    }

    /// The types that are named, or the one that the other keywords are about; none for any.
    fn types(&self, fields: &Fields, at: &str) -> Result<Vec<&'static str>, Error> {
        let named = match fields.get("type") {
            None => {
                let about = |kind: &&'static str| {
                    let mut keys = fields.keys();
                    keys.any(|key| keyword_type(key) == Some(*kind))
                };
                return Ok(TYPES.into_iter().find(about).into_iter().collect());
            }
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

    fn typed(&mut self, kind: &'static str, fields: &Fields, at: &str) -> Result<Value, Error> {
        self.deeper(at, |walk| match kind {
            "object" => walk.object(fields, at),
            "array" => walk.array(fields, at),
            "string" => walk.string(fields, at),
            "number" | "integer" => walk.number(kind, fields, at),
            other => Ok(json!({"type": other})),
        })
    }

    fn object(&mut self, fields: &Fields, at: &str) -> Result<Value, Error> {
        let mut required = self.names_in(fields, "required", at)?;
        let mut sent = match fields.get("properties") {
            None => Map::new(),
            Some(Value::Object(properties)) => properties.clone(),
            Some(_) => return Err(self.wrong(at, "has `properties` that are not an object")),
        };
        let rest = match fields.get("unevaluatedProperties") {
            Some(rest) if !fields.contains_key("additionalProperties") => Some(rest),
            _ => fields.get("additionalProperties"),
        };
        let any = |rest: &Value| {
            if *rest == json!({}) {
                json!(true)
            } else {
                rest.clone()
            }
        };
        let mut rest = rest.map(any);
        let is_some = |key: &str| fields.get(key).is_some_and(|value| *value != json!({}));
        for key in ["patternProperties", "dependentSchemas", "dependencies"] {
            if is_some(key) {
                self.refuse(at, key, "is not supported")?;
            }
        }
        self.check_dependent(fields, &required, at)?;
        if let Some(names) = self.allowed_names(fields, at)? {
            let other = rest.take().unwrap_or(json!(true));
            let of = |name: String| {
                let schema = sent.get(&name).unwrap_or(&other).clone();
                (name, schema)
            };
            sent = names.into_iter().map(of).collect();
            rest = Some(json!(false));
        }
        for name in &required {
            if !sent.contains_key(name) {
                let schema = rest.clone().unwrap_or(json!(true));
                if schema == json!(false) {
                    let message =
                        format!("requires \"{name}\", which is not among its `properties`");
                    return Err(self.wrong(at, &message));
                }
                sent.insert(name.clone(), schema);
            }
        }
        let mut properties = Map::new();
        for (name, schema) in sent {
            if schema == json!(false) && !required.contains(&name) {
                continue;
            }
            let place = format!("{at}/properties/{}", escaped(&name));
            let held = self.node(&schema, &place)?;
            properties.insert(name, held);
        }
        required.retain(|name| properties.contains_key(name));
        if properties.len() - required.len() > MOST_OPTIONAL {
            let message = format!("has more than {MOST_OPTIONAL} optional `properties`");
            return Err(self.wrong(at, &message));
        }
        let mut held = json!({"type": "object"});
        let closed = match &rest {
            // Any object without more about it; otherwise the properties alone.
            None => !properties.is_empty(),
            Some(rest) => *rest == json!(false),
        };
        self.check_count(fields, (required.len(), properties.len(), closed), at)?;
        if let Some(rest) = rest {
            held["additionalProperties"] = match rest {
                Value::Bool(rest) => json!(rest),
                schema => self.node(&schema, &format!("{at}/additionalProperties"))?,
            };
        }
        if !properties.is_empty() {
            held["properties"] = Value::Object(properties);
            held["required"] = json!(required);
        }
        Ok(held)
    }

    /// `count`: how many properties there must be and may be, and whether there are no others.
    fn check_count(
        &self,
        fields: &Fields,
        (required, known, closed): (usize, usize, bool),
        at: &str,
    ) -> Result<(), Error> {
        let (fewest, most) = self.counts(fields, "minProperties", "maxProperties", at)?;
        if most.is_some_and(|most| most < required as u64) {
            return Err(self.wrong(at, "requires more properties than `maxProperties`"));
        }
        if closed && fewest > known as u64 {
            return Err(self.wrong(at, "has fewer `properties` than `minProperties`"));
        }
        if fewest > required as u64 {
            self.refuse(at, "minProperties", "is not supported")?;
        }
        if most.is_some_and(|most| !closed || most < known as u64) {
            self.refuse(at, "maxProperties", "is not supported")?;
        }
        Ok(())
    }

    fn check_dependent(&self, fields: &Fields, required: &[String], at: &str) -> Result<(), Error> {
        let key = "dependentRequired";
        let dependent = fields.get(key).and_then(Value::as_object);
        for names in dependent.into_iter().flat_map(Map::values) {
            let mut names = names.as_array().into_iter().flatten();
            let follows = |name: &Value| {
                name.as_str()
                    .is_some_and(|name| required.iter().any(|known| known == name))
            };
            if !names.all(follows) {
                return self.refuse(at, key, "is not supported");
            }
        }
        Ok(())
    }

    /// The names of properties, if they are limited to some.
    fn allowed_names(&mut self, fields: &Fields, at: &str) -> Result<Option<Vec<String>>, Error> {
        let key = "propertyNames";
        let Some(schema) = fields.get(key) else {
            return Ok(None);
        };
        let place = format!("{at}/{key}");
        let names = self.flat(schema, &place)?;
        let names = self.resolved(names, &place)?;
        let says_more = names
            .iter()
            .any(|(key, value)| key != "type" || value != "string");
        if !says_more {
            return Ok(None);
        }
        if names.contains_key("enum") || names.contains_key("const") {
            let values = self.values(&names, &place)?;
            let values = values["enum"].as_array().into_iter().flatten();
            let texts = values.filter_map(Value::as_str).map(str::to_owned);
            return Ok(Some(texts.collect()));
        }
        self.refuse(at, key, "is supported only with `enum` or `const`")?;
        Ok(None)
    }

    fn array(&mut self, fields: &Fields, at: &str) -> Result<Value, Error> {
        let (fewest, most) = self.bounds(fields, ("minItems", "maxItems"), MOST_REPEATS, at)?;
        if fields.contains_key("contains") {
            self.refuse(at, "contains", "is not supported")?;
        }
        let unique = fields.get("uniqueItems") == Some(&json!(true));
        if unique && most.is_none_or(|most| most > 1) {
            self.refuse(at, "uniqueItems", "is not supported")?;
        }
        let (first, rest) = match (fields.get("prefixItems"), fields.get("items")) {
            (None, Some(Value::Array(first))) => (first.as_slice(), "additionalItems"),
            (Some(Value::Array(first)), _) => (first.as_slice(), "items"),
            (None, _) => (&[][..], "items"),
            _ => return Err(self.wrong(at, "has `prefixItems` that are not a list")),
        };
        let places: Vec<_> = (0..first.len())
            .map(|nth| match rest {
                "items" => format!("{at}/prefixItems/{nth}"),
                _ => format!("{at}/items/{nth}"),
            })
            .collect();
        let rest_at = format!("{at}/{rest}");
        let rest = fields.get(rest).or(fields.get("unevaluatedItems")).cloned();
        let is_closed = rest == Some(json!(false));
        if is_closed && fewest > first.len() as u64 {
            return Err(self.wrong(at, "has fewer items than `minItems`"));
        }
        if most == Some(0) || (is_closed && first.is_empty()) {
            return Ok(json!({"type": "array", "items": {}, "maxItems": 0}));
        }
        let rest = rest.unwrap_or(json!(true));
        if first.is_empty() {
            let mut held = json!({"type": "array", "items": self.node(&rest, &rest_at)?});
            if fewest > 0 {
                held["minItems"] = json!(fewest);
            }
            if let Some(most) = most {
                held["maxItems"] = json!(most);
            }
            return Ok(held);
        }
        // A form of one length. The shortest that has all of the first.
        let length = (first.len() as u64).max(fewest);
        let length = usize::try_from(most.map_or(length, |most| most.min(length)));
        let length = length.unwrap_or(usize::MAX);
        let mut items = Vec::new();
        for (item, place) in first.iter().zip(&places).take(length) {
            items.push(self.node(item, place)?);
        }
        if length > items.len() {
            let more = self.node(&rest, &rest_at)?;
            items.resize(length, more);
        }
        Ok(json!({"type": "array", "prefixItems": items}))
    }

    fn string(&mut self, fields: &Fields, at: &str) -> Result<Value, Error> {
        let limit = if self.strict {
            MOST_CHARACTERS
        } else {
            MOST_REPEATS
        };
        let (fewest, most) = self.bounds(fields, ("minLength", "maxLength"), limit, at)?;
        let pattern = match fields.get("pattern") {
            None => None,
            Some(Value::String(pattern)) => Some(pattern.as_str()),
            Some(_) => return Err(self.wrong(at, "has a `pattern` that is not a text")),
        };
        let named = fields.get("format").and_then(Value::as_str);
        let format = named.filter(|_| self.strict).and_then(form_of);
        // A format is a note, which a length or a pattern outdoes.
        let has_length = fewest > 0 || most.is_some();
        let narrow = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        if let Some(pattern) = pattern.or(format.filter(|_| !has_length)) {
            match regex::json_string(pattern, narrow(fewest), most.map(narrow)) {
                Ok(grammar) => return Ok(self.forms.constant(grammar)),
                Err(why) => {
                    let shown: String = pattern.chars().take(80).collect();
                    let why = format!("\"{shown}\" cannot be followed: {why}");
                    self.refuse(at, "pattern", &why)?;
                }
            }
        }
        if let Some(most) = most.filter(|most| *most > MOST_REPEATS) {
            let grammar = regex::json_text(narrow(fewest), narrow(most));
            return Ok(self.forms.constant(grammar));
        }
        let mut held = json!({"type": "string"});
        if let Some(named) = named.filter(|_| !self.strict) {
            // llama.cpp knows some.
            held["format"] = json!(named);
        }
        if fewest > 0 {
            held["minLength"] = json!(fewest);
        }
        if let Some(most) = most {
            held["maxLength"] = json!(most);
        }
        Ok(held)
    }

    /// The fewest and the most, of which a grammar counts up to `limit`.
    fn bounds(
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
            Some(value) => match value.as_u64() {
                Some(count) => Ok(Some(count)),
                None => {
                    let message = format!("has `{key}` {value}, which is not a count");
                    Err(self.wrong(at, &message))
                }
            },
        };
        let (fewest, most) = (count(least)?.unwrap_or(0), count(largest)?);
        if most.is_some_and(|most| most < fewest) {
            let message = format!("contradicts itself: `{least}` is more than `{largest}`");
            return Err(self.wrong(at, &message));
        }
        Ok((fewest, most))
    }

    fn names_in(&self, fields: &Fields, key: &str, at: &str) -> Result<Vec<String>, Error> {
        let Some(names) = fields.get(key) else {
            return Ok(Vec::new());
        };
        let names = names.as_array().map(|names| {
            let text = |name: &Value| name.as_str().map(str::to_owned);
            names.iter().map(text).collect::<Option<Vec<_>>>()
        });
        let mut names = names
            .flatten()
            .ok_or_else(|| self.wrong(at, &format!("has `{key}` that is not a list of names")))?;
        let mut known = BTreeSet::new();
        names.retain(|name| known.insert(name.clone()));
        Ok(names)
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
fn either(ways: Vec<Result<Value, Error>>) -> Result<Value, Error> {
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

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
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

fn has_type(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|value| value.fract() == 0.0),
        "boolean" => value.is_boolean(),
        _ => value.is_null(),
    }
}

/// Whether a number or a text is within its bounds.
fn is_within(value: &Value, fields: &Fields) -> bool {
    let bound = |key: &str| fields.get(key).and_then(Value::as_f64);
    match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            bound("minimum").is_none_or(|low| number >= low)
                && bound("maximum").is_none_or(|high| number <= high)
                && bound("exclusiveMinimum").is_none_or(|low| number > low)
                && bound("exclusiveMaximum").is_none_or(|high| number < high)
        }
        Value::String(text) => {
            let count = text.chars().count() as u64;
            let length = |key: &str| fields.get(key).and_then(Value::as_u64);
            length("minLength").is_none_or(|fewest| count >= fewest)
                && length("maxLength").is_none_or(|most| count <= most)
        }
        _ => true,
    }
}

/// A pattern of the texts of a format, or of most of them; `None` for a format that is a note.
fn form_of(format: &str) -> Option<&'static str> {
    // Without the leap days, which are not of every year.
    macro_rules! date {
        () => {
            "[1-9][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
        };
    }
    macro_rules! time {
        () => {
            "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{3})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
        };
    }
    macro_rules! uuid {
        ($version:literal) => {
            concat!(
                "^[0-9a-f]{8}-[0-9a-f]{4}-",
                $version,
                "[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
            )
        };
    }
    Some(match format {
        "date" => concat!("^", date!(), "$"),
        "time" => concat!("^", time!(), "$"),
        "date-time" => concat!("^", date!(), "T", time!(), "$"),
        "duration" => {
            "^P([0-9]{1,3}D(T[0-9]{1,2}H([0-9]{1,2}M)?)?|T[0-9]{1,2}H([0-9]{1,2}M)?|T[0-9]{1,2}M([0-9]{1,2}S)?|T[0-9]{1,2}S)$"
        }
        "email" => {
            "^[A-Za-z0-9]{1,40}([._+-][A-Za-z0-9]{1,40}){0,8}@[A-Za-z0-9]{1,40}([.-][A-Za-z0-9]{1,40}){0,8}\\.[A-Za-z]{2,20}$"
        }
        "hostname" => "^[A-Za-z0-9]{1,40}([.-][A-Za-z0-9]{1,40}){0,8}$",
        "ipv4" => {
            "^((25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\\.){3}(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])$"
        }
        "ipv6" => "^([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}$",
        "uri" => {
            "^https?://[A-Za-z0-9]{1,40}([.-][A-Za-z0-9]{1,40}){0,8}(:[1-9][0-9]{0,3})?(/[A-Za-z0-9._~!$&'()*+,;=:@/-]*)?(\\?[A-Za-z0-9._~!$&'()*+,;=:@/?-]*)?(#[A-Za-z0-9._~-]*)?$"
        }
        "uuid" => uuid!("[1-5]"),
        "uuid1" => uuid!("1"),
        "uuid3" => uuid!("3"),
        "uuid4" => uuid!("4"),
        "uuid5" => uuid!("5"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
