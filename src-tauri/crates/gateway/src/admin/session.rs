//! Browsers' sessions.

use crate::admin::{Admin, AdminState};
use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderMap, HeaderName, StatusCode, header},
    response::IntoResponse,
};
use serde::Serialize;
use tierbar_edge::{
    now_ms,
    origin::TlsMark,
    sessions::{self, HALF, IDLE_MS, SessionMark},
    sign_in,
};
use tierbar_http::{Answer, error::Failure};
use utoipa::ToSchema;

/// As long as browsers keep a cookie; the host ends a session earlier.
const COOKIE_SECONDS: u32 = 400 * 24 * 3600;

/// Exchanges the token, or a one-time code, for a session: a cookie, and a header whose value the page keeps and sends.
#[utoipa::path(
    post,
    path = "/tierbar/v1/session",
    operation_id = "beginSession",
    reach(SignIn, Opens),
    responses((status = 204, description = "The session has begun")),
)]
pub(crate) async fn begin(
    State(admin): AdminState,
    tls: Option<Extension<TlsMark>>,
) -> Result<impl IntoResponse, Failure> {
    let halves = sessions::begin(&admin.edge).await?;
    let cookie = cookie(&admin, &halves.cookie, COOKIE_SECONDS, tls.is_some());
    Ok((
        StatusCode::NO_CONTENT,
        [cookie, (HALF.clone(), halves.page)],
    ))
}

/// A code that begins one session.
#[derive(Serialize, ToSchema)]
pub(crate) struct SignInCode {
    /// To be sent once to `POST /tierbar/v1/session`, in place of the token.
    code: String,
    /// How long it may be used.
    expires_in_seconds: u64,
}

/// Creates a one-time code that signs a browser in. The page takes it from its address: `/#code=CODE`.
#[utoipa::path(
    post,
    path = "/tierbar/v1/session/code",
    operation_id = "createSignInCode",
    reach(Token, Opens),
    responses((status = 201, description = "The code, which is shown this once", body = SignInCode)),
)]
pub(crate) async fn create_code(
    State(admin): AdminState,
) -> Result<(StatusCode, Json<SignInCode>), Failure> {
    let code = SignInCode {
        code: admin.edge.codes.create()?,
        expires_in_seconds: sign_in::LIFE.as_secs(),
    };
    Ok((StatusCode::CREATED, Json(code)))
}

/// Ends the browser's session.
#[utoipa::path(
    delete,
    path = "/tierbar/v1/session",
    operation_id = "endSession",
    reach(Owner, Writes),
    responses((status = 204, description = "The session has ended")),
)]
pub(crate) async fn end(
    State(admin): AdminState,
    headers: HeaderMap,
    tls: Option<Extension<TlsMark>>,
) -> Result<impl IntoResponse, Failure> {
    sessions::end(&admin.edge, &headers).await?;
    let cookie = cookie(&admin, "", 0, tls.is_some());
    Ok((StatusCode::NO_CONTENT, [cookie]))
}

/// Browsers that are signed in, the last used first.
#[derive(Serialize, ToSchema)]
pub(crate) struct SessionList {
    sessions: Vec<BrowserSession>,
}

/// A browser that is signed in.
#[derive(Serialize, ToSchema)]
pub(crate) struct BrowserSession {
    created_ms: u64,
    /// To the hour.
    used_ms: u64,
}

/// Lists the sessions of browsers. One ends after 14 days without use.
#[utoipa::path(
    get,
    path = "/tierbar/v1/sessions",
    operation_id = "listSessions",
    reach(Owner, Reads),
    responses((status = 200, description = "The sessions", body = SessionList)),
)]
pub(crate) async fn list(State(admin): AdminState) -> Answer<SessionList> {
    let sessions = admin.store.sessions(IDLE_MS, now_ms()).await?.into_iter();
    let sessions = sessions.map(|(created_ms, used_ms)| BrowserSession {
        created_ms,
        used_ms,
    });
    let sessions = sessions.collect();
    Ok(Json(SessionList { sessions }))
}

/// Ends the sessions of all browsers, except the one that sends this request.
#[utoipa::path(
    delete,
    path = "/tierbar/v1/sessions",
    operation_id = "endSessions",
    reach(Owner, Writes),
    responses((status = 204, description = "The sessions have ended")),
)]
pub(crate) async fn end_all(
    State(admin): AdminState,
    session: Option<Extension<SessionMark>>,
) -> Result<StatusCode, Failure> {
    let kept = session.map(|Extension(session)| session.hash);
    admin.edge.codes.clear();
    admin.store.end_sessions(kept).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn cookie(admin: &Admin, value: &str, seconds: u32, over_tls: bool) -> (HeaderName, String) {
    let name = sessions::cookie_name(&admin.edge);
    // What came over TLS never goes without.
    let secure = if over_tls { "; Secure" } else { "" };
    let cookie =
        format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
    (header::SET_COOKIE, cookie)
}
