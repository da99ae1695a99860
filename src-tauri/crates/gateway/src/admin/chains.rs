//! The chains, and which of their endpoints may be asked now.

use crate::admin::Admin;
use axum::{Json, extract::State};
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) async fn list(State(admin): State<Arc<Admin>>) -> Json<Value> {
    Json(json!({"chains": admin.inference.chain_status()}))
}
