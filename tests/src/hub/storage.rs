//! The second server, on which the large files lie: signed addresses that expire, byte ranges, validators.

use super::{
    Content, Fault, Server, State,
    api::{broken, text, web_page},
    locked,
};
use axum::{
    Router,
    body::{Body, Bytes},
    extract::Request,
    http::{HeaderMap, Method, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
    routing::get,
};
use data_encoding::HEXLOWER;
use futures_util::stream;
use sha2::{Digest, Sha256};
use std::{
    io::{self, SeekFrom},
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};
use tokio::io::{AsyncReadExt, AsyncSeekExt};

/// The address of a content, good for a while.
pub(super) fn signed(state: &State, sha256: &str) -> String {
    let expires = now() + state.lifetime.as_millis();
    format!(
        "http://{}/xet-bridge-us/{sha256}?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Expires={expires}&X-Amz-Signature={}",
        state.storage,
        signature(sha256, expires),
    )
}

fn signature(sha256: &str, expires: u128) -> String {
    HEXLOWER.encode(&Sha256::digest(format!("stand-in {sha256} {expires}")))
}

/// In milliseconds, so that a test can have addresses that are good for less than a second.
fn now() -> u128 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_millis()
}

pub(super) fn routes(state: Arc<State>) -> Router {
    let answer = move |request: Request| {
        let state = Arc::clone(&state);
        async move {
            let (parts, _) = request.into_parts();
            let (sent, fault) = state.arrived(Server::Storage, &parts).await;
            match fault {
                Some(Fault::WebPage) => web_page(),
                Some(Fault::Status {
                    status,
                    retry_after,
                }) => broken(status, retry_after),
                Some(Fault::CutAfter(bytes)) => respond(&state, &parts, sent, Some(bytes), true),
                Some(Fault::IgnoreRange) => respond(&state, &parts, sent, None, false),
                None => respond(&state, &parts, sent, None, true),
            }
        }
    };
    Router::new().fallback(get(answer))
}

fn respond(
    state: &Arc<State>,
    request: &Parts,
    sent: Arc<AtomicU64>,
    cut: Option<u64>,
    ranges: bool,
) -> Response {
    let Some(sha256) = permitted(request) else {
        let denied = "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>";
        return (
            StatusCode::FORBIDDEN,
            [(header::CONTENT_TYPE, "application/xml")],
            denied,
        )
            .into_response();
    };
    let content = locked(&state.repositories)
        .iter()
        .flat_map(|repository| &repository.files)
        .find(|file| file.sha256 == sha256)
        .map(|file| file.content.clone());
    let Some(content) = content else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let size = content.size();
    let etag = format!("\"{sha256}\"");
    let mut headers = HeaderMap::new();
    headers.insert(header::ETAG, text(&etag));
    headers.insert(header::LAST_MODIFIED, text("Thu, 15 Jan 2026 12:00:00 GMT"));
    headers.insert(header::CONTENT_TYPE, text("application/octet-stream"));
    if ranges {
        headers.insert(header::ACCEPT_RANGES, text("bytes"));
    }
    let unchanged = request
        .headers
        .get(header::IF_RANGE)
        .is_none_or(|validator| *validator == *etag);
    let requested = request
        .headers
        .get(header::RANGE)
        .filter(|_| ranges && unchanged);
    let requested = requested.and_then(|range| range_of(range.to_str().ok()?, size));
    let (status, range) = match requested {
        Some(Some(range)) => {
            headers.insert(
                header::CONTENT_RANGE,
                text(&format!("bytes {}-{}/{size}", range.start, range.end - 1)),
            );
            (StatusCode::PARTIAL_CONTENT, range)
        }
        Some(None) => {
            headers.insert(header::CONTENT_RANGE, text(&format!("bytes */{size}")));
            return (StatusCode::RANGE_NOT_SATISFIABLE, headers).into_response();
        }
        None => (StatusCode::OK, 0..size),
    };
    headers.insert(
        header::CONTENT_LENGTH,
        text(&(range.end - range.start).to_string()),
    );
    if request.method == Method::HEAD {
        return (status, headers).into_response();
    }
    (
        status,
        headers,
        body(Arc::clone(state), content, range, cut, sent),
    )
        .into_response()
}

/// The content that the address is for, if it is signed and has not expired.
fn permitted(request: &Parts) -> Option<String> {
    let sha256 = request.uri.path().strip_prefix("/xet-bridge-us/")?;
    let query = request.uri.query()?.as_bytes();
    let value = |name: &str| {
        let mut pairs = url::form_urlencoded::parse(query);
        pairs.find_map(|(key, value)| (key == name).then(|| value.into_owned()))
    };
    let expires: u128 = value("X-Amz-Expires")?.parse().ok()?;
    let valid = value("X-Amz-Signature")? == signature(sha256, expires) && now() <= expires;
    valid.then(|| sha256.to_owned())
}

/// One range of the `Range` header; `Some(None)` for one outside the file, `None` for what servers ignore.
fn range_of(text: &str, size: u64) -> Option<Option<Range<u64>>> {
    let (first, last) = text.strip_prefix("bytes=")?.split_once('-')?;
    let range = match (first, last) {
        ("", count) => size.saturating_sub(count.parse().ok()?)..size,
        (first, "") => first.parse().ok()?..size,
        (first, last) => {
            let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
            if last < first {
                return None;
            }
            first..size.min(last.saturating_add(1))
        }
    };
    Some((range.start < range.end).then_some(range))
}

fn body(
    state: Arc<State>,
    content: Content,
    range: Range<u64>,
    cut: Option<u64>,
    sent: Arc<AtomicU64>,
) -> Body {
    struct Progress {
        file: Option<tokio::fs::File>,
        at: u64,
        cut: Option<u64>,
    }
    let start = Progress {
        file: None,
        at: range.start,
        cut,
    };
    let chunks = stream::try_unfold(start, move |mut progress| {
        let (state, content, sent) = (Arc::clone(&state), content.clone(), Arc::clone(&sent));
        async move {
            if progress.cut == Some(0) {
                // What was sent before leaves first.
                tokio::task::yield_now().await;
                return Err(io::Error::other("the connection breaks here"));
            }
            let left = (range.end - progress.at).min(progress.cut.unwrap_or(u64::MAX));
            if left == 0 {
                return Ok(None);
            }
            let length = usize::try_from(left)
                .unwrap_or(usize::MAX)
                .min(state.limit.chunk());
            state.limit.pass(length).await;
            let chunk = match &content {
                Content::Memory(bytes) => {
                    let at = usize::try_from(progress.at).unwrap_or(usize::MAX);
                    Bytes::copy_from_slice(&bytes[at..at + length])
                }
                Content::Disk(path) => {
                    let mut file = match progress.file.take() {
                        Some(file) => file,
                        None => {
                            let mut file = tokio::fs::File::open(path).await?;
                            file.seek(SeekFrom::Start(progress.at)).await?;
                            file
                        }
                    };
                    let mut chunk = vec![0; length];
                    file.read_exact(&mut chunk).await?;
                    progress.file = Some(file);
                    chunk.into()
                }
            };
            progress.at += length as u64;
            progress.cut = progress.cut.map(|cut| cut - length as u64);
            sent.fetch_add(length as u64, Ordering::Relaxed);
            Ok(Some((chunk, progress)))
        }
    });
    Body::from_stream(chunks)
}
