//! The configuration.

use crate::admin::{Admin, AdminState};
use axum::{Extension, Json, extract::State};
use serde::Serialize;
use serde_json::{Map, Value};
use std::path::PathBuf;
use tierbar_core::Config;
use tierbar_edge::sessions::{self, SessionMark};
use tierbar_http::{Answer, request::JsonBody};
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
    operation_id = "config",
    reach(Owner, Reads),
    responses((status = 200, description = "The configuration", body = ConfigAnswer)),
)]
pub(crate) async fn get(State(admin): AdminState) -> Json<ConfigAnswer> {
    answer(&admin, &admin.services.config())
}

/// Changes settings. Comments and order of the file stay.
#[utoipa::path(
    patch,
    path = "/tierbar/v1/config",
    operation_id = "changeConfig",
    reach(Owner, Writes, MayOpen),
    request_body(content = BTreeMap<String, Value>, description = "The settings to change, in the form of the configuration; `null` removes one"),
    responses((status = 200, description = "The configuration", body = ConfigAnswer)),
)]
pub(crate) async fn patch(
    State(admin): AdminState,
    session: Option<Extension<SessionMark>>,
    JsonBody(patch): JsonBody<Map<String, Value>>,
) -> Answer<ConfigAnswer> {
    if widens(&patch) {
        sessions::check_fresh(session.as_deref(), "change a setting that widens access")?;
    }
    let config = admin.services.patch_config(Value::Object(patch)).await?;
    Ok(answer(&admin, &config))
}

/// Whether a patch decides who gets in, where prompts go, or what is read or run. A setting that is not listed here counts as such, so
/// that a new one does.
fn widens(patch: &Map<String, Value>) -> bool {
    const OTHERS: [&str; 5] = ["costs", "downloads", "menu_bar", "notifications", "policy"];
    let any = |section: &Value, widens: fn(&Value) -> bool| {
        let settings = section.as_object();
        settings.is_some_and(|settings| settings.values().any(widens))
    };
    patch.iter().any(|(name, section)| match name.as_str() {
        "queue" => section.get("webhook_hosts").is_some(),
        "tiers" => any(section, |tier| tier.get("engine").is_some()),
        // Without it, less happens.
        "schedules" => any(section, |schedule| !schedule.is_null()),
        name => !OTHERS.contains(&name),
    })
}

fn answer(admin: &Admin, config: &Config) -> Json<ConfigAnswer> {
    Json(ConfigAnswer {
        path: admin.services.config_path().to_owned(),
        config: config.clone(),
    })
}
