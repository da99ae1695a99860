//! Arrays: their items, and how many of them.

use super::{Fields, MOST_REPEATS, SchemaWalk};
use serde_json::{Value, json};
use tierbar_core::Error;

impl SchemaWalk<'_> {
    pub(super) fn translate_array(&mut self, fields: &Fields, at: &str) -> Result<Value, Error> {
        let (fewest, most) =
            self.counted_bounds(fields, ("minItems", "maxItems"), MOST_REPEATS, at)?;
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
            let mut held = json!({"type": "array", "items": self.translate_node(&rest, &rest_at)?});
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
            items.push(self.translate_node(item, place)?);
        }
        if length > items.len() {
            let more = self.translate_node(&rest, &rest_at)?;
            items.resize(length, more);
        }
        Ok(json!({"type": "array", "prefixItems": items}))
    }
}
