//! The configuration.

use crate::{
    admin::Admin,
    edge::origin::BySession,
    http::{body, error::Failure},
};
use axum::{Extension, Json, body::Body, extract::State};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tierbar_core::{Code, Config, Error};

pub(crate) async fn get(State(admin): State<Arc<Admin>>) -> Json<Value> {
    answer(&admin, &admin.services.config())
}

pub(crate) async fn patch(
    State(admin): State<Arc<Admin>>,
    session: Option<Extension<BySession>>,
    body: Body,
) -> Result<Json<Value>, Failure> {
    let patch: Map<String, Value> = body::object(body).await?;
    // Who else gets in is for whoever holds the token itself, not for a page that a browser has open.
    if session.is_some() && patch.contains_key("server") {
        return Err(
            Error::new(Code::Forbidden, "a browser session cannot change [server]")
                .hint("change it in config.toml, or send the token itself")
                .into(),
        );
    }
    let config = admin.services.patch_config(Value::Object(patch)).await?;
    Ok(answer(&admin, &config))
}

fn answer(admin: &Admin, config: &Config) -> Json<Value> {
    Json(json!({"path": admin.services.config_path(), "config": config}))
}
