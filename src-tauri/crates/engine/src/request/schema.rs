//! JSON schemas as llama.cpp takes them.

use serde_json::{Value, json};

/// The name that a schema's own root gets among its definitions.
const ROOT: &str = "root";

/// Returns a schema whose references to itself, `#`, are to a definition: llama.cpp knows no others.
pub(super) fn with_named_root(schema: Value) -> Value {
    let name = || {
        let free = |name: &String| schema["$defs"].get(name).is_none();
        let mut names = (0..).map(|number| format!("{ROOT}{number}"));
        names.find(free)
    };
    if !refers_to_root(&schema) {
        return schema;
    }
    let Some(name) = name() else {
        return schema;
    };
    let mut named = schema;
    point_root_to(&mut named, &format!("#/$defs/{name}"));
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

fn refers_to_root(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => fields
            .iter()
            .any(|(key, value)| (key == "$ref" && value == "#") || refers_to_root(value)),
        Value::Array(items) => items.iter().any(refers_to_root),
        _ => false,
    }
}

fn point_root_to(schema: &mut Value, definition: &str) {
    match schema {
        Value::Object(fields) => {
            for (key, value) in fields {
                if key == "$ref" && value == "#" {
                    *value = definition.into();
                } else {
                    point_root_to(value, definition);
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                point_root_to(item, definition);
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
}
