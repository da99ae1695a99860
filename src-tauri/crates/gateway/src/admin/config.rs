//! The configuration.

use crate::{
    admin::Admin,
    edge::origin::BySession,
    http::{body, error::Failure, schema::Errors},
};
use axum::{Extension, Json, body::Body, extract::State};
use serde::Serialize;
use serde_json::{Map, Value};
use std::{path::PathBuf, sync::Arc};
use tierbar_core::{Code, Config, Error};
use utoipa::ToSchema;

/// The configuration, and where its file is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConfigAnswer {
    #[schema(value_type = String)]
    path: PathBuf,
    config: Config,
}

/// Returns the configuration.
#[utoipa::path(
    get,
    path = "/tierbar/v1/config",
    tag = "owner",
    operation_id = "config",
    security(("token" = [])),
    responses((status = 200, description = "The configuration", body = ConfigAnswer), Errors),
)]
pub(crate) async fn get(State(admin): State<Arc<Admin>>) -> Json<ConfigAnswer> {
    answer(&admin, &admin.services.config())
}

/// Changes settings. Comments and order of the file stay.
#[utoipa::path(
    patch,
    path = "/tierbar/v1/config",
    tag = "owner",
    operation_id = "changeConfig",
    security(("token" = [])),
    request_body(content = BTreeMap<String, Value>, description = "The settings to change, in the form of the configuration; `null` removes one"),
    responses((status = 200, description = "The configuration", body = ConfigAnswer), Errors),
)]
pub(crate) async fn patch(
    State(admin): State<Arc<Admin>>,
    session: Option<Extension<BySession>>,
    body: Body,
) -> Result<Json<ConfigAnswer>, Failure> {
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

fn answer(admin: &Admin, config: &Config) -> Json<ConfigAnswer> {
    Json(ConfigAnswer {
        path: admin.services.config_path().to_owned(),
        config: config.clone(),
    })
}
