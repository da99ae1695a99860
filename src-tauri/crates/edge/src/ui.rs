//! `GET /`: the UI's files, which are built into the program; and for a program, such as curl, what is here in a few lines.

use crate::{
    nearest::{method_not_allowed, no_such_path},
    origin::address_of,
};
use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header},
    response::{IntoResponse, Response},
};
use data_encoding::HEXLOWER;
use rust_embed::{EmbeddedFile, RustEmbed};
use tierbar_http::error::Failure;

#[derive(RustEmbed)]
#[folder = "../../../ui/dist"]
struct Dist;

/// Only our own files, and requests to this server alone.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const NOT_BUILT: &str = "<!doctype html><meta charset=utf-8><title>Tierbar</title>\
    <h1>Tierbar is running</h1><p>This build has no user interface in it. Build one with \
    <code>npm ci &amp;&amp; npm run build</code> in <code>ui/</code>, then build Tierbar again. \
    The API answers all the same.</p>";

/// Everything that no route takes: a file of the UI, or nothing.
pub async fn asset(request: Request<Body>) -> Response {
    if wants_text(&request) {
        return welcome(&request);
    }
    let (uri, method, headers) = (request.uri(), request.method(), request.headers());
    let path = uri.path().trim_start_matches('/');
    let path = if path.is_empty() { "index.html" } else { path };
    let Some(file) = Dist::get(path) else {
        if path == "index.html" {
            return page(
                StatusCode::NOT_FOUND,
                NOT_BUILT.as_bytes().to_vec(),
                "text/html; charset=utf-8",
            );
        }
        return Failure(no_such_path(uri.path())).into_response();
    };
    if method != Method::GET && method != Method::HEAD {
        return method_not_allowed(method.clone(), uri.clone())
            .await
            .into_response();
    }
    serve(path, file, headers)
}

fn serve(path: &str, file: EmbeddedFile, headers: &HeaderMap) -> Response {
    let tag = etag(&file);
    if headers.get(header::IF_NONE_MATCH) == Some(&tag) {
        return (StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response();
    }
    let kind = match file.metadata.mimetype() {
        // Without the charset a browser may guess another one.
        text if text.starts_with("text/") => format!("{text}; charset=utf-8"),
        other => other.to_owned(),
    };
    let mut response = page(StatusCode::OK, file.data.into_owned(), &kind);
    let cache = match path {
        html if html.ends_with(".html") => "no-store",
        // Vite names these by their content.
        hashed if hashed.starts_with("assets/") => "public, max-age=31536000, immutable",
        _ => "no-cache",
    };
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    response.headers_mut().insert(header::ETAG, tag);
    response
}

fn etag(file: &EmbeddedFile) -> HeaderValue {
    let hash = file.metadata.sha256_hash();
    let tag = HEXLOWER.encode(&hash[..12]);
    HeaderValue::try_from(format!("\"{tag}\"")).unwrap_or_else(|_| HeaderValue::from_static("\"\""))
}

fn page(status: StatusCode, content: Vec<u8>, kind: &str) -> Response {
    let mut response = (status, content).into_response();
    let headers = response.headers_mut();
    if let Ok(kind) = HeaderValue::try_from(kind) {
        headers.insert(header::CONTENT_TYPE, kind);
    }
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Returns whether a request wants text and not the page, which browsers name in `Accept`.
fn wants_text(request: &Request<Body>) -> bool {
    let mut accepted = request.headers().get_all(header::ACCEPT).iter();
    [Method::GET, Method::HEAD].contains(request.method())
        && request.uri().path() == "/"
        && !accepted.any(|accepted| {
            let accepted = String::from_utf8_lossy(accepted.as_bytes());
            accepted.to_ascii_lowercase().contains("text/html")
        })
}

/// Returns the addresses for each kind of client, as this request reached the server.
fn welcome(request: &Request<Body>) -> Response {
    let base = address_of(request).unwrap_or_else(|| "http://localhost".to_owned());
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
