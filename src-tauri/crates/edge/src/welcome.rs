//! `GET /` for a program, such as curl: what is here, in a few lines. A browser gets the page.

use crate::origin::TlsMark;
use axum::{
    body::Body,
    http::{Method, Request, header},
    response::{IntoResponse, Response},
};

/// Returns whether a request wants text and not the page, which browsers name in `Accept`.
pub(crate) fn is_wanted(request: &Request<Body>) -> bool {
    let mut accepted = request.headers().get_all(header::ACCEPT).iter();
    [Method::GET, Method::HEAD].contains(request.method())
        && request.uri().path() == "/"
        && !accepted.any(|accepted| {
            let accepted = String::from_utf8_lossy(accepted.as_bytes());
            accepted.to_ascii_lowercase().contains("text/html")
        })
}

/// Returns the addresses for each kind of client, as this request reached the server.
pub(crate) fn answer(request: &Request<Body>) -> Response {
    let scheme = match request.extensions().get::<TlsMark>() {
        Some(TlsMark) => "https",
        None => "http",
    };
    let host = request.headers().get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok());
    let authority = request.uri().authority().map(|found| found.as_str());
    let host = authority.or(host).unwrap_or("localhost");
    let base = format!("{scheme}://{host}");
    let version = env!("CARGO_PKG_VERSION");
    let text = format!(
        "Tierbar {version} is running.

  OpenAI clients      {base}/v1
  Anthropic clients   {base}
  Ollama clients      {base}

  models              GET /v1/models
  every route         GET /openapi.json
  window              open {base} in a browser
  a client's settings tierbar connect

Try it:
  curl {base}/v1/chat/completions -d '{{\"model\": \"auto\", \"messages\": [{{\"role\": \"user\", \"content\": \"Hello\"}}]}}'
"
    );
    ([(header::VARY, "accept")], text).into_response()
}
