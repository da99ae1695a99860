//! Request bodies: limited, and refused with a reason if they are not the expected JSON.

use axum::body::{Body, Bytes};
use http_body_util::{BodyExt, Collected};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;
use tierbar_core::{Code, Error};
use tokio::time::{Instant, timeout};

/// Enough for a prompt of any local model's context, with images.
pub(crate) const INFERENCE_LIMIT: usize = 32 << 20;
/// Enough for the longest answer in a chat.
pub(crate) const ADMIN_LIMIT: usize = 8 << 20;

/// The most JSON values in one body: some 100 MB of memory.
const MOST_VALUES: usize = 1 << 20;

/// How long a body may stall,
const SILENCE: Duration = Duration::from_secs(30);
/// and how long it may take in total, with a second more per [`BYTES_PER_SECOND`]: slower than any network in use.
const WHOLE: Duration = Duration::from_secs(60);
const BYTES_PER_SECOND: u64 = 16 << 10;

/// Reads the whole body.
///
/// A body beyond the limit is read to its end and dropped, up to some times the limit: a client that is still sending would
/// take a closed connection for a broken one and never read the refusal.
///
/// # Errors
/// `PayloadTooLarge` beyond `limit` bytes; `BadRequest` if the connection broke; `RequestTimeout` if it is too slow.
pub(crate) async fn read(body: Body, limit: usize) -> Result<Vec<u8>, Error> {
    collect(body, limit, |_| Ok(())).await
}

/// Returns a body that was already read: the same bytes, without a copy.
///
/// # Errors
/// `BadRequest` if it was not, and the connection broke.
pub(crate) async fn again(body: Body) -> Result<Bytes, Error> {
    let read = body.collect().await;
    read.map(Collected::to_bytes)
        .map_err(|error| Error::new(Code::BadRequest, format!("the body ended early: {error}")))
}

/// Like [`read`]; `grows` may refuse each further part.
pub(crate) async fn collect(
    mut body: Body,
    limit: usize,
    mut grows: impl FnMut(usize) -> Result<(), Error>,
) -> Result<Vec<u8>, Error> {
    let (mut bytes, mut length) = (Vec::new(), 0usize);
    let begun = Instant::now();
    while let Some(frame) = timeout(SILENCE, body.frame())
        .await
        .map_err(|_| too_slow(length, begun))?
    {
        let allowed = WHOLE + Duration::from_secs(length as u64 / BYTES_PER_SECOND);
        if begun.elapsed() > allowed {
            return Err(too_slow(length, begun));
        }
        let frame = frame.map_err(|error| {
            Error::new(Code::BadRequest, format!("the body ended early: {error}"))
        })?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        length = length.saturating_add(data.len());
        if length <= limit {
            grows(data.len())?;
            bytes.extend_from_slice(&data);
        } else {
            bytes = Vec::new();
        }
        if length > limit.saturating_mul(8) {
            break;
        }
    }
    if length <= limit {
        return Ok(bytes);
    }
    let message = format!("the body is larger than {} MiB", limit >> 20);
    Err(Error::new(Code::PayloadTooLarge, message).detail("limit_bytes", limit))
}

fn too_slow(length: usize, begun: Instant) -> Error {
    let seconds = begun.elapsed().as_secs();
    let message = format!("only {length} bytes of the body arrived in {seconds} s");
    Error::new(Code::RequestTimeout, message).hint("send the request again")
}

/// Checks that a JSON body fits into memory: each value takes some thirty times as much as the shortest one in text.
///
/// # Errors
/// `PayloadTooLarge` for more values than any request needs.
pub(crate) fn check_values(json: &[u8]) -> Result<(), Error> {
    // So few bytes cannot have too many values.
    if json.len() <= MOST_VALUES {
        return Ok(());
    }
    let (mut values, mut in_text, mut escaped) = (0usize, false, false);
    for &byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b',' | b'[' | b'{' if !in_text => values += 1,
            _ => {}
        }
    }
    if values <= MOST_VALUES {
        return Ok(());
    }
    let message = format!("the body has more than {MOST_VALUES} values");
    Err(Error::new(Code::PayloadTooLarge, message).hint("send a smaller request"))
}

/// Reads a request for inference, and parses it.
///
/// # Errors
/// Those of [`read`] and [`parse`].
pub(crate) async fn request<T: DeserializeOwned>(body: Body) -> Result<T, Error> {
    parse(&read(body, INFERENCE_LIMIT).await?)
}

/// Parses the body as a JSON object. An empty body counts as `{}`.
pub(crate) async fn object<T: DeserializeOwned>(body: Body) -> Result<T, Error> {
    let bytes = read(body, ADMIN_LIMIT).await?;
    if bytes.trim_ascii().is_empty() {
        parse(b"{}")
    } else {
        parse(&bytes)
    }
}

/// # Errors
/// `BadRequest` with the place, if it is not JSON, not an object, or a field is of the wrong type.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    // A derived struct would accept an array of its fields in order.
    match bytes.trim_ascii_start().first() {
        Some(b'{') => serde_json::from_slice(bytes).map_err(not_json),
        None => Err(Error::new(
            Code::BadRequest,
            "the body is empty; send a JSON object",
        )),
        Some(_) => {
            serde_json::from_slice::<serde::de::IgnoredAny>(bytes).map_err(not_json)?;
            Err(Error::new(
                Code::BadRequest,
                "the body is not a JSON object",
            ))
        }
    }
}

/// Like [`parse`], for JSON that was already parsed.
///
/// # Errors
/// `BadRequest` if a field is of the wrong type.
pub(crate) fn of_value<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    serde_json::from_value(value).map_err(not_json)
}

fn not_json(error: serde_json::Error) -> Error {
    let what = if error.is_data() {
        "the request is not valid"
    } else {
        "the body is not JSON"
    };
    Error::new(Code::BadRequest, format!("{what}: {error}"))
}

/// Returns a body of complete bytes.
pub(crate) fn whole(bytes: Vec<u8>) -> Body {
    Body::from(Bytes::from(bytes))
}

#[cfg(test)]
mod tests;
