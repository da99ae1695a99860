//! A browser's session, and the request to show the app's window.

use crate::{Gateway, error::Failure, guard::SESSION_COOKIE};
use axum::{
    extract::State,
    http::{HeaderName, StatusCode, header},
};
use std::sync::Arc;
use tierbar_core::{Code, Error};

/// As long as browsers keep a cookie.
const SESSION_SECONDS: u32 = 400 * 24 * 3600;

type Cookie = (StatusCode, [(HeaderName, String); 1]);

pub(crate) async fn begin(State(gateway): State<Arc<Gateway>>) -> Cookie {
    cookie(gateway.token.session(), SESSION_SECONDS)
}

pub(crate) async fn end() -> Cookie {
    cookie("", 0)
}

fn cookie(value: &str, seconds: u32) -> Cookie {
    let cookie =
        format!("{SESSION_COOKIE}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}");
    (StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)])
}

pub(crate) async fn raise(State(gateway): State<Arc<Gateway>>) -> Result<StatusCode, Failure> {
    if gateway.services.raise() {
        return Ok(StatusCode::NO_CONTENT);
    }
    Err(Error::new(Code::NotFound, "no app with windows runs in this host").into())
}
