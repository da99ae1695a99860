//! JSON schemas as llama.cpp takes them.

use serde_json::{Value, json};

/// The name that a schema's own root gets among its definitions.
const ROOT: &str = "root";

/// Returns a schema whose references to itself, `#`, are to a definition: llama.cpp knows no others.
pub(crate) fn with_named_root(schema: Value) -> Value {
    let name = || {
        let free = |name: &String| schema["$defs"].get(name).is_none();
        let mut names = (0..).map(|number| format!("{ROOT}{number}"));
        names.find(free)
    };
    if !refers_to_root(&schema, false) {
        return schema;
    }
    let Some(name) = name() else {
        return schema;
    };
    let mut named = schema;
    point_root_to(&mut named, &format!("#/$defs/{name}"), false);
    let mut root = named.clone();
    if let Some(root) = root.as_object_mut() {
        root.shift_remove("$defs");
        root.shift_remove("definitions");
    }
    if let Some(fields) = named.as_object_mut() {
        let definitions = fields.entry("$defs").or_insert_with(|| json!({}));
        if let Some(definitions) = definitions.as_object_mut() {
            definitions.insert(name, root);
        }
    }
    named
}

/// The fields of a schema whose values are data, where a `$ref` is a word like any other.
const DATA: [&str; 4] = ["const", "enum", "default", "examples"];
/// Those whose own fields are names that the author chose, each with a schema.
const NAMED: [&str; 5] = [
    "properties",
    "patternProperties",
    "dependentSchemas",
    "$defs",
    "definitions",
];

/// What a field of an object in a schema is. `in_names`: the object's fields are names.
fn place_of_field(key: &str, in_names: bool) -> Place {
    match key {
        _ if in_names => Place::Schema,
        "$ref" => Place::Reference,
        key if DATA.contains(&key) => Place::Data,
        key if NAMED.contains(&key) => Place::Names,
        _ => Place::Schema,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Schema,
    Names,
    Data,
    Reference,
}

fn refers_to_root(schema: &Value, in_names: bool) -> bool {
    match schema {
        Value::Object(fields) => fields.iter().any(|(key, value)| {
            let place = place_of_field(key, in_names);
            match place {
                Place::Data => false,
                Place::Reference => value == "#",
                Place::Schema | Place::Names => refers_to_root(value, place == Place::Names),
            }
        }),
        Value::Array(items) => items.iter().any(|item| refers_to_root(item, false)),
        _ => false,
    }
}

fn point_root_to(schema: &mut Value, definition: &str, in_names: bool) {
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields {
                let place = place_of_field(key, in_names);
                match place {
                    Place::Reference if value == "#" => *value = definition.into(),
                    Place::Reference | Place::Data => {}
                    Place::Schema | Place::Names => {
                        point_root_to(value, definition, place == Place::Names);
                    }
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                point_root_to(item, definition, false);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_to_the_root_are_to_a_definition() {
        let plain = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {}}});
        assert_eq!(with_named_root(plain.clone()), plain);
        let tree =
            |child: &str| json!({"type": "object", "properties": {"child": {"$ref": child}}});
        let mut expected = tree("#/$defs/root0");
        expected["$defs"] = json!({"root0": tree("#/$defs/root0")});
        assert_eq!(with_named_root(tree("#")), expected);
        let mut taken = tree("#");
        taken["$defs"] = json!({"root0": {"type": "string"}});
        let named = with_named_root(taken);
        assert_eq!(named["$defs"]["root0"], json!({"type": "string"}));
        assert_eq!(named["$defs"]["root1"], tree("#/$defs/root1"));
    }

    #[test]
    fn data_is_left_as_it_is() {
        let link = json!({"$ref": "#"});
        let plain = json!({"const": link, "enum": [link], "default": link, "examples": [link]});
        assert_eq!(with_named_root(plain.clone()), plain);
        // A property may have such a name.
        let named = with_named_root(json!({"properties": {"default": link}, "default": link}));
        assert_eq!(
            named["properties"]["default"],
            json!({"$ref": "#/$defs/root0"})
        );
        assert_eq!(named["default"], link);
    }
}
