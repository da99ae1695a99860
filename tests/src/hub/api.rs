//! The hub's own server: the API, and the redirects to the large files.

use super::{Fault, HubRepository, Server, State, TOKEN, locked, repository::HubFile, storage};
use axum::{
    Router,
    body::Body,
    extract::Request,
    http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
    routing::get,
};
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering},
};

pub(super) fn routes(state: Arc<State>) -> Router {
    let answer = move |request: Request| {
        let state = Arc::clone(&state);
        async move {
            let (parts, _) = request.into_parts();
            let (sent, fault) = state.arrived(Server::Hub, &parts).await;
            let response = match fault {
                Some(Fault::WebPage) => web_page(),
                Some(Fault::Status {
                    status,
                    retry_after,
                }) => broken(status, retry_after),
                Some(Fault::CutAfter(_) | Fault::IgnoreRange) | None => respond(&state, &parts),
            };
            let length = response.headers().get(header::CONTENT_LENGTH);
            let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
            sent.store(length.unwrap_or(0), Ordering::Relaxed);
            response
        }
    };
    Router::new().fallback(get(answer))
}

fn respond(state: &State, request: &Parts) -> Response {
    let path = decoded(request.uri.path());
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let query: HashMap<String, String> =
        url::form_urlencoded::parse(request.uri.query().unwrap_or_default().as_bytes())
            .into_owned()
            .collect();
    let authorization = request.headers.get(header::AUTHORIZATION);
    let authorization = authorization.map(|value| value.to_str().unwrap_or_default());
    let known = authorization == Some(&format!("Bearer {TOKEN}"));
    if authorization.is_some() && !known {
        return refused(401, None, "Invalid credentials in Authorization header");
    }
    match parts[..] {
        ["api", "models"] => search(state, &query),
        ["api", "models", owner, name] => {
            with(state, owner, name, known, |found| json_of(&found.info()))
        }
        ["api", "models", owner, name, "revision", revision] => {
            with(state, owner, name, known, |found| {
                at(found, revision, |found| json_of(&found.info()))
            })
        }
        ["api", "models", owner, name, "tree", revision] => {
            with(state, owner, name, known, |found| {
                at(found, revision, |found| {
                    tree(state, found, revision, &query)
                })
            })
        }
        [owner, name, "resolve", revision, ref file @ ..] if !file.is_empty() => {
            with(state, owner, name, known, |found| {
                at(found, revision, |found| {
                    if found.gated && !known {
                        let message = format!(
                            "Access to model {} is restricted. You must be authenticated to access it.",
                            found.id
                        );
                        return refused(401, Some("GatedRepo"), &message);
                    }
                    let path = file.join("/");
                    match found.files.iter().find(|file| file.path == path) {
                        Some(file) => resolve(state, found, file),
                        None => refused(404, Some("EntryNotFound"), "Entry not found"),
                    }
                })
            })
        }
        _ => refused(
            404,
            None,
            "Sorry, we can't find the page you are looking for.",
        ),
    }
}

/// Returns a repository. To strangers, a missing one looks like a private one.
fn with(
    state: &State,
    owner: &str,
    name: &str,
    known: bool,
    then: impl FnOnce(&HubRepository) -> Response,
) -> Response {
    let id = format!("{owner}/{name}");
    match locked(&state.repositories)
        .iter()
        .find(|found| found.id == id)
    {
        Some(found) => then(found),
        None if known => refused(404, Some("RepoNotFound"), "Repository not found"),
        None => refused(401, Some("RepoNotFound"), "Invalid username or password."),
    }
}

fn at(
    found: &HubRepository,
    revision: &str,
    then: impl FnOnce(&HubRepository) -> Response,
) -> Response {
    if revision == "main" || revision == found.commit() {
        then(found)
    } else {
        refused(
            404,
            Some("RevisionNotFound"),
            &format!("Invalid rev id: {revision}"),
        )
    }
}

fn search(state: &State, query: &HashMap<String, String>) -> Response {
    let words = query
        .get("search")
        .map(|words| words.to_lowercase())
        .unwrap_or_default();
    let limit = query
        .get("limit")
        .and_then(|limit| limit.parse().ok())
        .unwrap_or(1000);
    let gguf = query.get("filter").is_none_or(|filter| filter == "gguf");
    let repositories = locked(&state.repositories);
    let mut found: Vec<_> = repositories
        .iter()
        .filter(|found| {
            gguf && words
                .split_whitespace()
                .all(|word| found.id.to_lowercase().contains(word))
        })
        .collect();
    if query.get("sort").is_some_and(|by| by == "downloads") {
        found.sort_by_key(|found| std::cmp::Reverse(found.downloads));
    }
    json_of(
        &found
            .into_iter()
            .take(limit)
            .map(HubRepository::summary)
            .collect(),
    )
}

/// One page of a tree. Without `recursive`, what lies at the top.
fn tree(
    state: &State,
    found: &HubRepository,
    revision: &str,
    query: &HashMap<String, String>,
) -> Response {
    let recursive = query
        .get("recursive")
        .is_some_and(|value| matches!(value.as_str(), "true" | "1" | "True"));
    let top = |entry: &Value| {
        entry["path"]
            .as_str()
            .is_none_or(|path| !path.contains('/'))
    };
    let entries: Vec<Value> = found
        .tree()
        .into_iter()
        .filter(|entry| recursive || top(entry))
        .collect();
    let start = query
        .get("cursor")
        .and_then(|cursor| cursor.parse().ok())
        .unwrap_or(0);
    let end = entries.len().min(start + state.page);
    let Some(page) = entries.get(start..end) else {
        return refused(400, None, "Invalid cursor");
    };
    let mut response = json_of(&Value::from(page));
    if end < entries.len() {
        let next = format!(
            "<http://{}/api/models/{}/tree/{revision}?recursive={recursive}&cursor={end}>; rel=\"next\"",
            state.hub, found.id
        );
        response.headers_mut().insert(header::LINK, text(&next));
    }
    response
}

/// A small file as it is, of a large one where it lies.
fn resolve(state: &State, found: &HubRepository, file: &HubFile) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert("x-repo-commit", text(&found.commit()));
    headers.insert(header::ACCEPT_RANGES, text("bytes"));
    let etag = format!("\"{}\"", file.sha256);
    if let (super::Content::Memory(bytes), false) = (&file.content, file.is_large()) {
        headers.insert(header::ETAG, text(&etag));
        headers.insert(header::CONTENT_TYPE, text("text/plain; charset=utf-8"));
        return (headers, bytes.to_vec()).into_response();
    }
    let location = storage::signed(state, &file.sha256);
    headers.insert("x-linked-size", text(&file.content.size().to_string()));
    headers.insert("x-linked-etag", text(&etag));
    headers.insert(header::LOCATION, text(&location));
    headers.insert(header::CONTENT_TYPE, text("text/plain; charset=utf-8"));
    let body = format!("Found. Redirecting to {location}");
    (StatusCode::FOUND, headers, body).into_response()
}

fn json_of(value: &Value) -> Response {
    axum::Json(value).into_response()
}

fn refused(status: u16, code: Option<&str>, message: &str) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
    let mut response = (status, axum::Json(json!({"error": message}))).into_response();
    response
        .headers_mut()
        .insert("x-error-message", text(message));
    if let Some(code) = code {
        response.headers_mut().insert("x-error-code", text(code));
    }
    response
}

pub(super) fn broken(status: u16, retry_after: Option<u64>) -> Response {
    let mut response = refused(status, None, "The service is not available now");
    if let Some(seconds) = retry_after {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, text(&seconds.to_string()));
    }
    response
}

pub(super) fn web_page() -> Response {
    let page = "<!DOCTYPE html>\n<html><head><title>Welcome to our network</title></head><body>Sign in</body></html>\n";
    (
        [(header::CONTENT_TYPE, "text/html; charset=utf-8")],
        Body::from(page),
    )
        .into_response()
}

pub(super) fn text(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap_or(HeaderValue::from_static(""))
}

fn decoded(path: &str) -> String {
    percent_encoding::percent_decode_str(path)
        .decode_utf8_lossy()
        .into_owned()
}
