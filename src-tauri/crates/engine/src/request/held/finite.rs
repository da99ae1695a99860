//! Whether a schema has an answer that ends.

use super::Fields;
use serde_json::Value;
use std::collections::BTreeSet;

/// Whether an answer can be complete without a definition within itself.
pub(super) fn can_end(held: &Value, definitions: &Fields) -> bool {
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
