//! Objects: their properties, and how many of them.

use super::{Fields, SchemaWalk};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use tierbar_core::Error;

/// llama.cpp writes a rule for each with all that follow.
const MOST_OPTIONAL: usize = 256;

impl SchemaWalk<'_> {
    pub(super) fn translate_object(&mut self, fields: &Fields, at: &str) -> Result<Value, Error> {
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
        let any = |rest: &Value| match rest {
            rest if *rest == json!({}) => json!(true),
            rest => rest.clone(),
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
            let place = format!("{at}/properties/{}", escape_pointer(&name));
            let held = self.translate_node(&schema, &place)?;
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
                schema => self.translate_node(&schema, &format!("{at}/additionalProperties"))?,
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
            if !names.all(|name| required.iter().any(|known| name == known)) {
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
        let names = self.resolve_parts(schema, &place)?;
        let says_more = |(key, value): (&String, &Value)| key != "type" || value != "string";
        if !names.iter().any(says_more) {
            return Ok(None);
        }
        if names.contains_key("enum") || names.contains_key("const") {
            let values = self.allowed_values(&names, &place)?;
            let texts = values.iter().filter_map(Value::as_str).map(str::to_owned);
            return Ok(Some(texts.collect()));
        }
        self.refuse(at, key, "is supported only with `enum` or `const`")?;
        Ok(None)
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
}

fn escape_pointer(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
