//! What a set-up proposes for this machine.

use super::models::read_query;
use crate::{
    admin::Admin,
    http::{error::Failure, schema::Errors},
};
use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
};
use serde::Deserialize;
use std::sync::Arc;
use tierbar_core::setup::SetupPlan;

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Planned {
    /// RAM of a Mac to plan for, such as `16GiB`; without it, this machine.
    ram: Option<String>,
}

/// Proposes a model for each tier of this machine. Download each with its `reference` and `tier`.
#[utoipa::path(
    get,
    path = "/tierbar/v1/setup",
    tag = "owner",
    operation_id = "planSetup",
    security(("token" = [])),
    params(Planned),
    responses((status = 200, description = "The plan", body = SetupPlan), Errors),
)]
pub(crate) async fn plan(
    State(admin): State<Arc<Admin>>,
    query: Result<Query<Planned>, QueryRejection>,
) -> Result<Json<SetupPlan>, Failure> {
    let Planned { ram } = read_query(query)?;
    let mut plan = admin.models.plan_setup(ram.clone()).await?;
    if ram.is_none() {
        let status = admin.services.status();
        let own = status.tiers.iter().filter_map(|tier| tier.footprint_bytes);
        let used = status
            .ram
            .total_bytes
            .saturating_sub(status.ram.available_bytes);
        plan.count_others(used.saturating_sub(own.sum()));
    }
    Ok(Json(plan))
}
