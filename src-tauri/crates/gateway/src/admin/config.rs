//! The configuration.

use crate::admin::Admin;
use axum::{Extension, Json, body::Body, extract::State};
use serde::Serialize;
use serde_json::{Map, Value};
use std::{path::PathBuf, sync::Arc};
use tierbar_core::Config;
use tierbar_edge::sessions::{self, SessionMark};
use tierbar_http::{error::Failure, schema::Errors};
use tierbar_inference::body;
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
    session: Option<Extension<SessionMark>>,
    body: Body,
) -> Result<Json<ConfigAnswer>, Failure> {
    let patch: Map<String, Value> = body::object(body).await?;
    if let Some(setting) = widening_setting(&patch) {
        sessions::check_fresh(session, &format!("change {setting}"))?;
    }
    let config = admin.services.patch_config(Value::Object(patch)).await?;
    Ok(answer(&admin, &config))
}

/// Returns a setting of the patch that decides who gets in, or where prompts go.
fn widening_setting(patch: &Map<String, Value>) -> Option<&'static str> {
    let sections = [
        ("listen", "listen"),
        ("server", "[server]"),
        ("allowed_origins", "allowed_origins"),
        ("log", "[log]"),
        ("contexts", "[contexts]"),
        ("mcp", "an MCP server"),
    ];
    let has = |section: &str, setting: &str| {
        let section = patch.get(section);
        section.is_some_and(|section| section.get(setting).is_some())
    };
    let tiers = patch.get("tiers").and_then(Value::as_object);
    let has_engine = |tier: &Value| tier.get("engine").is_some();
    let schedules = patch.get("schedules").and_then(Value::as_object);
    let is_set = |schedule: &Value| !schedule.is_null();
    if let Some((_, shown)) = sections.iter().find(|(name, _)| patch.contains_key(*name)) {
        Some(shown)
    } else if has("queue", "webhook_hosts") {
        Some("webhook_hosts")
    } else if tiers.is_some_and(|tiers| tiers.values().any(has_engine)) {
        Some("an endpoint")
    } else if schedules.is_some_and(|schedules| schedules.values().any(is_set)) {
        Some("a schedule")
    } else {
        None
    }
}

fn answer(admin: &Admin, config: &Config) -> Json<ConfigAnswer> {
    Json(ConfigAnswer {
        path: admin.services.config_path().to_owned(),
        config: config.clone(),
    })
}
