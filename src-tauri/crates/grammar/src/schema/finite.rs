//! Whether a schema has an answer that ends.

use super::Fields;
use serde_json::Value;
use std::collections::BTreeSet;

/// Whether an answer can be complete without a definition within itself.
pub(super) fn has_finite_answer(held: &Value, definitions: &Fields) -> bool {
    let mut finite = BTreeSet::new();
    loop {
        let before = finite.len();
        for (name, definition) in definitions {
            if !finite.contains(name.as_str()) && is_finite(definition, &finite) {
                finite.insert(name.as_str());
            }
        }
        if finite.len() == before {
            return is_finite(held, &finite);
        }
    }
}

fn is_finite(held: &Value, finite: &BTreeSet<&str>) -> bool {
    if let Some(reference) = held["$ref"].as_str() {
        let name = reference.rsplit('/').next();
        return name.is_some_and(|name| finite.contains(name));
    }
    if let Some(ways) = held["anyOf"].as_array() {
        return ways.iter().any(|way| is_finite(way, finite));
    }
    let required = held["required"].as_array().into_iter().flatten();
    let mut properties = required
        .filter_map(Value::as_str)
        .map(|name| &held["properties"][name]);
    let mut items = held["prefixItems"].as_array().into_iter().flatten();
    let some = held["minItems"].as_u64().is_some_and(|fewest| fewest > 0);
    properties.all(|property| is_finite(property, finite))
        && items.all(|item| is_finite(item, finite))
        && (!some || is_finite(&held["items"], finite))
}
