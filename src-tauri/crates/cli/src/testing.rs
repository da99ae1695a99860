//! What tests of several commands begin with.

use serde_json::{Value, json};
use tierbar_core::status::TierStatus;

/// A stopped tier with these fields.
pub(crate) fn tier_status(fields: &Value) -> TierStatus {
    let mut tier = json!({
        "engine": "embedded", "state": "stopped", "is_starter": false, "aliases": [], "kind": "chat", "context_tokens": 4096,
        "kv_cache": "f16", "input_modalities": [],
    });
    for (name, value) in fields.as_object().unwrap() {
        tier[name] = value.clone();
    }
    serde_json::from_value(tier).unwrap()
}
