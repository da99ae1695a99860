//! Origins whose pages may call, and those that were refused.

use crate::admin::{Admin, AdminState};
use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use tierbar_core::{
    Code, Error, bad_request,
    origin::{self, PROGRAM_SCHEMES},
    status::RefusedOrigin,
};
use tierbar_http::{
    Answer,
    request::{JsonBody, QueryFields},
};
use utoipa::{IntoParams, ToSchema};

/// Who may call from a page, and who was refused.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OriginList {
    /// Those of `allowed_origins` in the configuration.
    allowed: Vec<String>,
    /// Those of this machine and its network that were refused since the host's start, oldest first.
    refused: Vec<RefusedOrigin>,
    /// The schemes of installed programs, whose pages may always use the models.
    program_schemes: Vec<&'static str>,
}

/// An origin. Unknown fields are refused.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OriginRequest {
    /// Such as `http://localhost:3000`.
    origin: String,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct OriginQuery {
    /// Such as `http://localhost:3000`.
    origin: String,
}

/// Lists the origins whose pages may call, and those that were refused.
#[utoipa::path(
    get,
    path = "/tierbar/v1/origins",
    operation_id = "listOrigins",
    reach(Owner, Reads),
    responses((status = 200, description = "The origins", body = OriginList)),
)]
pub(crate) async fn list(State(admin): AdminState) -> Json<OriginList> {
    let allowed = admin.services.config().allowed_origins.clone();
    answer(&admin, allowed)
}

/// Lets the pages of an origin call the API. The rest of the configuration file stays as it is.
#[utoipa::path(
    post,
    path = "/tierbar/v1/origins",
    operation_id = "allowOrigin",
    reach(Owner, Writes, Opens),
    request_body = OriginRequest,
    responses((status = 200, description = "The origins", body = OriginList)),
)]
pub(crate) async fn allow(
    State(admin): AdminState,
    JsonBody(OriginRequest { origin }): JsonBody<OriginRequest>,
) -> Answer<OriginList> {
    let config = admin
        .services
        .set_origin(parse_origin(&origin)?, true)
        .await?;
    Ok(answer(&admin, config.allowed_origins.clone()))
}

/// Refuses the pages of an origin again, or forgets that they were refused.
#[utoipa::path(
    delete,
    path = "/tierbar/v1/origins",
    operation_id = "revokeOrigin",
    reach(Owner, Writes),
    params(OriginQuery),
    responses((status = 200, description = "The origins", body = OriginList)),
)]
pub(crate) async fn revoke(
    State(admin): AdminState,
    QueryFields(OriginQuery { origin }): QueryFields<OriginQuery>,
) -> Answer<OriginList> {
    let origin = parse_origin(&origin)?;
    let status = admin.services.status();
    let was_refused = status
        .refused_origins
        .iter()
        .any(|refused| refused.origin == origin);
    if !was_refused && !admin.services.config().allowed_origins.contains(&origin) {
        let message = format!("{origin} is neither allowed nor was it refused");
        return Err(Error::new(Code::NotFound, message)
            .hint("`tierbar origins` lists both")
            .into());
    }
    let config = admin.services.set_origin(origin, false).await?;
    Ok(answer(&admin, config.allowed_origins.clone()))
}

fn parse_origin(typed: &str) -> Result<String, Error> {
    origin::normalize(typed).map_err(bad_request)
}

fn answer(admin: &Admin, allowed: Vec<String>) -> Json<OriginList> {
    Json(OriginList {
        allowed,
        refused: admin.services.status().refused_origins.clone(),
        program_schemes: PROGRAM_SCHEMES.to_vec(),
    })
}
