//! Browsers' sessions, and the request to show the app's window.

use crate::{
    admin::Admin,
    edge::{
        origin::OverTls,
        sessions::{self, COOKIE, HALF},
    },
    http::{error::Failure, schema::Errors},
};
use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, HeaderName, StatusCode, header},
    response::IntoResponse,
};
use std::sync::Arc;
use tierbar_core::{Code, Error};

/// As long as browsers keep a cookie; the host ends a session earlier.
const COOKIE_SECONDS: u32 = 400 * 24 * 3600;

/// Exchanges the token for a session: a cookie, and a header whose value the page keeps and sends.
#[utoipa::path(
    post,
    path = "/tierbar/v1/session",
    tag = "owner",
    operation_id = "beginSession",
    security(("token" = [])),
    responses((status = 204, description = "The session has begun"), Errors),
)]
pub(crate) async fn begin(
    State(admin): State<Arc<Admin>>,
    session: Option<Extension<sessions::BySession>>,
    tls: Option<Extension<OverTls>>,
) -> Result<impl IntoResponse, Failure> {
    if session.is_some() {
        let message = "the token is required to begin a session";
        return Err(Error::new(Code::Unauthorized, message).into());
    }
    let halves = sessions::begin(&admin.edge.store).await?;
    let cookie = cookie(&halves.cookie, COOKIE_SECONDS, tls.is_some());
    Ok((
        StatusCode::NO_CONTENT,
        [cookie, (HALF.clone(), halves.page)],
    ))
}

/// Ends the browser's session.
#[utoipa::path(
    delete,
    path = "/tierbar/v1/session",
    tag = "owner",
    operation_id = "endSession",
    security(("token" = [])),
    responses((status = 204, description = "The session has ended"), Errors),
)]
pub(crate) async fn end(
    State(admin): State<Arc<Admin>>,
    headers: HeaderMap,
    tls: Option<Extension<OverTls>>,
) -> Result<impl IntoResponse, Failure> {
    sessions::end(&admin.edge.store, &headers).await?;
    Ok((StatusCode::NO_CONTENT, [cookie("", 0, tls.is_some())]))
}

/// Ends the sessions of all browsers.
#[utoipa::path(
    delete,
    path = "/tierbar/v1/sessions",
    tag = "owner",
    operation_id = "endSessions",
    security(("token" = [])),
    responses((status = 204, description = "All sessions have ended"), Errors),
)]
pub(crate) async fn end_all(State(admin): State<Arc<Admin>>) -> Result<StatusCode, Failure> {
    admin.store.end_sessions().await?;
    Ok(StatusCode::NO_CONTENT)
}

fn cookie(value: &str, seconds: u32, over_tls: bool) -> (HeaderName, String) {
    // What came over TLS never goes without.
    let secure = if over_tls { "; Secure" } else { "" };
    let cookie =
        format!("{COOKIE}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    (header::SET_COOKIE, cookie)
}

/// Shows the window of the app.
#[utoipa::path(
    post,
    path = "/tierbar/v1/raise",
    tag = "owner",
    operation_id = "raise",
    security(("token" = [])),
    responses((status = 204, description = "The window is shown"), Errors),
)]
pub(crate) async fn raise(State(admin): State<Arc<Admin>>) -> Result<StatusCode, Failure> {
    if admin.services.raise() {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(Error::new(Code::NotFound, "no app with windows is running").into())
}
