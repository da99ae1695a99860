//! A browser's session, and the request to show the app's window.

use crate::{
    admin::Admin,
    edge::origin::{OverTls, SESSION_COOKIE},
    http::{error::Failure, schema::Errors},
};
use axum::{
    Extension,
    extract::State,
    http::{HeaderName, StatusCode, header},
};
use std::sync::Arc;
use tierbar_core::{Code, Error};

/// As long as browsers keep a cookie.
const SESSION_SECONDS: u32 = 400 * 24 * 3600;

type Cookie = (StatusCode, [(HeaderName, String); 1]);

/// Exchanges the token for a cookie.
#[utoipa::path(
    post,
    path = "/tierbar/v1/session",
    tag = "owner",
    operation_id = "beginSession",
    security(("token" = [])),
    responses((status = 204, description = "The cookie is set"), Errors),
)]
pub(crate) async fn begin(
    State(admin): State<Arc<Admin>>,
    tls: Option<Extension<OverTls>>,
) -> Cookie {
    cookie(admin.edge.token.session(), SESSION_SECONDS, tls.is_some())
}

/// Removes the cookie.
#[utoipa::path(
    delete,
    path = "/tierbar/v1/session",
    tag = "owner",
    operation_id = "endSession",
    security(("token" = [])),
    responses((status = 204, description = "The cookie is removed"), Errors),
)]
pub(crate) async fn end(tls: Option<Extension<OverTls>>) -> Cookie {
    cookie("", 0, tls.is_some())
}

fn cookie(value: &str, seconds: u32, over_tls: bool) -> Cookie {
    // What came over TLS never goes without.
    let secure = if over_tls { "; Secure" } else { "" };
    let cookie = format!(
        "{SESSION_COOKIE}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}"
    );
    (StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)])
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
