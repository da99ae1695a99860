//! JSON with comments and trailing commas, as editors have it.

use jsonc_parser::{
    ParseOptions,
    cst::{CstInputValue, CstNode, CstObject, CstRootNode},
};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// What Zed, VS Code and their like accept. What goes beyond, such as JSON5, is not touched.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

pub(super) struct Document(CstRootNode);

impl super::Document for Document {
    fn parse(text: &str) -> Result<Self, String> {
        let root = CstRootNode::parse(text, &OPTIONS).map_err(|error| error.to_string())?;
        if root.value().is_some() && root.object_value().is_none() {
            return Err("it is not a JSON object".to_owned());
        }
        if let Some(value) = root.value() {
            check_keys(&value)?;
        }
        Ok(Self(root))
    }

    fn value(&self) -> Value {
        let value = self.0.to_serde_value();
        value.unwrap_or_else(|| Value::Object(Map::new()))
    }

    fn set(&mut self, path: &[String], value: &Value) -> Result<(), String> {
        let Some((name, parents)) = path.split_last() else {
            return Err("it is not a JSON object".to_owned());
        };
        let mut table = self.0.object_value_or_set();
        for key in parents {
            table = table
                .object_value_or_create(key)
                .ok_or_else(|| format!("{key} in it is not an object"))?;
        }
        match table.get(name) {
            Some(property) => property.set_value(input(value)),
            None => {
                table.append(name, input(value));
            }
        }
        Ok(())
    }

    fn remove(&mut self, path: &[String]) {
        let Some((name, parents)) = path.split_last() else {
            return;
        };
        let table = parents
            .iter()
            .try_fold(self.0.object_value(), |table, key| {
                Some(table.and_then(|table: CstObject| table.object_value(key)))
            });
        if let Some(property) = table.flatten().and_then(|table| table.get(name)) {
            property.remove();
        }
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// Of two values with one key, the client may use the other.
fn check_keys(node: &CstNode) -> Result<(), String> {
    let mut keys = BTreeSet::new();
    if let Some(object) = node.as_object() {
        for property in object.properties() {
            let key = property.decoded_name().unwrap_or_default();
            if !keys.insert(key.clone()) {
                return Err(format!("it has the key {key} twice"));
            }
            if let Some(value) = property.value() {
                check_keys(&value)?;
            }
        }
    }
    let elements = node.as_array().map(|array| array.elements());
    elements
        .into_iter()
        .flatten()
        .try_for_each(|element| check_keys(&element))
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(truth) => CstInputValue::Bool(*truth),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(fields) => {
            let fields = fields
                .iter()
                .map(|(key, value)| (key.clone(), input(value)));
            CstInputValue::Object(fields.collect())
        }
    }
}
