//! Request bodies: limited, and refused with a reason if they are not the expected JSON.

use bytes::Bytes;
use http::{HeaderMap, header};
use http_body::Body;
use http_body_util::{BodyExt, Collected};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::{fmt::Display, time::Duration};
use tierbar_core::{Code, Error, bad_request, json::values_memory};
use tierbar_request_fields::wrong_field::{self, describe};
use tokio::time::{Instant, timeout};

/// Enough for a prompt of any local model's context, with images. Three copies of it leave room for its values in
/// [`MOST_MEMORY`].
pub const INFERENCE_LIMIT: usize = 30 << 20;
/// Enough for the longest answer in a chat.
pub const ADMIN_LIMIT: usize = 8 << 20;

/// The most memory that one request may take, besides the bytes of its body: for copies of its text, and for its values once they
/// are parsed.
const MOST_MEMORY: usize = 96 << 20;
/// How often a body's text is in memory at most, besides the body itself: parsed, and in the form that a server gets, of which a chain
/// may ask two at a time.
const COPIES: usize = 3;

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
pub async fn read<B>(body: B, limit: usize) -> Result<Bytes, Error>
where
    B: Body<Data = Bytes, Error: Display> + Unpin,
{
    collect(body, limit, |_| Ok(())).await
}

/// Returns a body that was already read: the same bytes, without a copy.
///
/// # Errors
/// `BadRequest` if it was not, and the connection broke.
pub async fn read_again<B>(body: B) -> Result<Bytes, Error>
where
    B: Body<Data = Bytes, Error: Display>,
{
    let read = body.collect().await;
    read.map(Collected::to_bytes)
        .map_err(|error| bad_request(format!("the body ended early: {error}")))
}

/// Like [`read`]; `grows` may refuse each further part. A refused body is read to its end and dropped, as one beyond the limit.
pub async fn collect<B>(
    mut body: B,
    limit: usize,
    mut grows: impl FnMut(usize) -> Result<(), Error>,
) -> Result<Bytes, Error>
where
    B: Body<Data = Bytes, Error: Display> + Unpin,
{
    let expected = body
        .size_hint()
        .exact()
        .and_then(|all| usize::try_from(all).ok());
    // A body of one part, such as one that was read before, is not copied.
    let (mut first, mut bytes, mut length) = (Bytes::new(), Vec::new(), 0usize);
    let mut refused = None;
    let begun = Instant::now();
    while let Some(frame) = timeout(SILENCE, body.frame())
        .await
        .map_err(|_| too_slow(length, begun))?
    {
        let allowed = WHOLE + Duration::from_secs(length as u64 / BYTES_PER_SECOND);
        if begun.elapsed() > allowed {
            return Err(too_slow(length, begun));
        }
        let frame = frame.map_err(|error| bad_request(format!("the body ended early: {error}")))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        length = length.saturating_add(data.len());
        if length <= limit && refused.is_none() {
            refused = grows(data.len()).err();
        }
        if length <= limit && refused.is_none() {
            if length == data.len() {
                first = data;
            } else {
                let first = std::mem::take(&mut first);
                let more = first.len() + data.len();
                if bytes.capacity() - bytes.len() < more {
                    // Doubling could take twice what is charged.
                    let rest = expected.map(|all| all.min(limit).saturating_sub(bytes.len()));
                    bytes.reserve_exact(rest.unwrap_or(bytes.len() / 8).max(more));
                }
                bytes.extend_from_slice(&first);
                bytes.extend_from_slice(&data);
            }
        } else {
            (first, bytes) = (Bytes::new(), Vec::new());
        }
        if length > limit.saturating_mul(8) {
            break;
        }
    }
    if let Some(refused) = refused {
        return Err(refused);
    }
    if length <= limit {
        if bytes.is_empty() {
            return Ok(first);
        }
        bytes.shrink_to_fit();
        return Ok(bytes.into());
    }
    let message = format!("the body is larger than {} MiB", limit >> 20);
    Err(Error::new(Code::PayloadTooLarge, message)
        .hint("send a shorter prompt, or fewer or smaller images")
        .detail("limit_bytes", limit))
}

fn too_slow(length: usize, begun: Instant) -> Error {
    let seconds = begun.elapsed().as_secs();
    let message = format!("only {length} bytes of the body arrived in {seconds} s");
    Error::new(Code::RequestTimeout, message).hint("send the request again")
}

/// Returns the memory that a body takes while it is answered, besides its own bytes.
///
/// `is_lines`: it is not one JSON document but many, which are parsed one at a time.
///
/// # Errors
/// `PayloadTooLarge` for more than any request needs.
pub fn memory_of(body: &[u8], is_lines: bool) -> Result<usize, Error> {
    let values = if is_lines { 0 } else { values_memory(body) };
    let memory = body.len() * COPIES + values;
    check_values(memory)?;
    Ok(memory)
}

/// Whether a body is JSON lines, by what the client says.
pub fn is_lines(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    [
        "application/x-ndjson",
        "application/ndjson",
        "application/jsonl",
        "application/x-jsonlines",
        "text/plain",
    ]
    .iter()
    .any(|lines| kind.eq_ignore_ascii_case(lines))
}

/// Checks that what is made of a body fits into memory, by the memory of its values: no request needs more.
pub(crate) fn check_values(memory: usize) -> Result<(), Error> {
    if memory <= MOST_MEMORY {
        return Ok(());
    }
    let message = format!(
        "the request would take {} MiB of memory beside its body and can take {} MiB",
        memory >> 20,
        MOST_MEMORY >> 20
    );
    Err(Error::new(Code::PayloadTooLarge, message)
        .hint("send less at a time: fewer messages, images or texts, or shorter lists"))
}

/// Reads a request for inference, and parses it.
///
/// # Errors
/// Those of [`read`] and [`parse`].
pub async fn request<T, B>(body: B) -> Result<T, Error>
where
    T: DeserializeOwned,
    B: Body<Data = Bytes, Error: Display> + Unpin,
{
    parse(&read(body, INFERENCE_LIMIT).await?)
}

/// Parses the body as a JSON object. An empty body counts as `{}`.
pub async fn object<T, B>(body: B) -> Result<T, Error>
where
    T: DeserializeOwned,
    B: Body<Data = Bytes, Error: Display> + Unpin,
{
    object_of(&read(body, ADMIN_LIMIT).await?)
}

/// Like [`object`], for a body that was read.
pub fn object_of<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    if bytes.trim_ascii().is_empty() {
        parse(b"{}")
    } else {
        parse(bytes)
    }
}

/// # Errors
/// `BadRequest` with the place, if it is not JSON, not an object, or a field is of the wrong type. Those of [`check_values`].
pub fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    check_values(values_memory(bytes))?;
    // A derived struct would accept an array of its fields in order.
    match bytes.trim_ascii_start().first() {
        Some(b'{') => serde_json::from_slice(bytes).map_err(|error| match describe::<T>(bytes) {
            Some(wrong) => invalid(&wrong),
            None => not_json(error),
        }),
        None => Err(bad_request("the body is empty; send a JSON object")),
        Some(_) => {
            serde_json::from_slice::<serde::de::IgnoredAny>(bytes).map_err(not_json)?;
            Err(bad_request("the body is not a JSON object"))
        }
    }
}

/// Like [`parse`], for JSON that was already parsed.
///
/// # Errors
/// `BadRequest` if a field is of the wrong type.
pub fn of_value<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    wrong_field::read(value).map_err(|wrong| invalid(&wrong))
}

pub(crate) fn not_json(error: serde_json::Error) -> Error {
    if error.is_data() {
        return invalid(&error.to_string());
    }
    bad_request(format!("the body is not JSON: {error}"))
}

pub(crate) fn invalid(wrong: &str) -> Error {
    bad_request(format!("the request is not valid: {wrong}"))
}

#[cfg(test)]
mod tests;
