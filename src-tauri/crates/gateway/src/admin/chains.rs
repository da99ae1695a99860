//! The chains, and which of their endpoints may be asked now.

use crate::Gateway;
use axum::{Json, extract::State};
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) async fn list(State(gateway): State<Arc<Gateway>>) -> Json<Value> {
    Json(json!({"chains": gateway.chain_status()}))
}
