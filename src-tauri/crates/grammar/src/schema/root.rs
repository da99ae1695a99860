//! JSON schemas as llama.cpp takes them.

use serde_json::{Value, json};

/// The name that a schema's own root gets among its definitions.
const ROOT: &str = "root";

/// Returns a schema whose references to itself, `#`, are to a definition: llama.cpp knows no others.
pub(crate) fn with_named_root(mut schema: Value) -> Value {
    let mut names = (0..).map(|number| format!("{ROOT}{number}"));
    let is_free = |name: &String| schema["$defs"].get(name).is_none();
    let Some(name) = names.find(is_free) else {
        return schema;
    };
    if !point_root_to(&mut schema, &format!("#/$defs/{name}"), false) {
        return schema;
    }
    let mut root = schema.clone();
    if let Some(root) = root.as_object_mut() {
        root.shift_remove("$defs");
        root.shift_remove("definitions");
    }
    if let Some(fields) = schema.as_object_mut() {
        let definitions = fields.entry("$defs").or_insert_with(|| json!({}));
        if let Some(definitions) = definitions.as_object_mut() {
            definitions.insert(name, root);
        }
    }
    schema
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

/// Has each reference to the root lead to a definition, and returns whether there was any. `in_names`: an object's fields are names.
fn point_root_to(schema: &mut Value, definition: &str, in_names: bool) -> bool {
    let mut found = false;
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields {
                let key = key.as_str();
                if !in_names && key == "$ref" {
                    if value == "#" {
                        (*value, found) = (definition.into(), true);
                    }
                } else if in_names || !DATA.contains(&key) {
                    let has_names = !in_names && NAMED.contains(&key);
                    found |= point_root_to(value, definition, has_names);
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                found |= point_root_to(item, definition, false);
            }
        }
        _ => {}
    }
    found
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
