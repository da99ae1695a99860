//! A tier's server that speaks Anthropic's dialect. Requests and answers are translated to and from OpenAI's.
//!
//! Shapes: Anthropic's API reference, "Messages", "Streaming messages", "Count message tokens" and "Errors"; what a model takes:
//! its migration guides.

pub mod answer;
pub mod body;
mod conversation;
mod document;
pub mod failure;
mod form;
mod model;
mod request;
mod stream;
mod thinking;
mod tools;

pub(crate) use answer::Usage as MessageUsage;
pub use failure::openai as openai_failure;

use crate::{
    hints::{ANTHROPIC_BETA, ANTHROPIC_VERSION, pick_headers},
    upstream::{ConnectionFailure, Upstream},
};
use body::ExpectedAnswer;
use http::{HeaderMap, HeaderName, HeaderValue};
use secrecy::SecretString;
use serde_json::{Map, Value};
use tierbar_core::{Error, bad_request};
use tierbar_fetch::Remote;

/// Paths of Anthropic's API.
pub const MESSAGES: &str = "/v1/messages";
pub const COUNT: &str = "/v1/messages/count_tokens";

static KEY: HeaderName = HeaderName::from_static("x-api-key");
/// The only version since 2023. What is new has fields of its own.
const CURRENT: HeaderValue = HeaderValue::from_static("2023-06-01");

/// Posts a chat of OpenAI's to the server and waits for the head of the answer, whose body is OpenAI's again. What cannot be
/// asked there is refused in its place.
///
/// # Errors
/// As [`Upstream::post`].
pub async fn post(
    remote: &Remote,
    url: &str,
    path: &str,
    key: Option<&SecretString>,
    chat: Map<String, Value>,
) -> Result<Upstream, ConnectionFailure> {
    let (to, request, expected) = match translate(url, path, chat) {
        Ok(translated) => translated,
        Err(error) => return Ok(Upstream::refusing(&error)),
    };
    let headers = headers(&HeaderMap::new(), key)?;
    let answer = remote.post(url, to, headers, request).await?;
    Ok(expected.translate(answer))
}

/// The headers of a request: those of the client that belong to the dialect, and the server's key.
///
/// # Errors
/// If no header can hold the key.
pub fn headers(
    of_client: &HeaderMap,
    key: Option<&SecretString>,
) -> Result<HeaderMap, ConnectionFailure> {
    let mut headers = pick_headers(of_client, &[ANTHROPIC_VERSION, ANTHROPIC_BETA]);
    headers.entry(ANTHROPIC_VERSION).or_insert(CURRENT);
    if let Some(key) = key {
        headers.insert(KEY.clone(), Remote::key("", key)?);
    }
    Ok(headers)
}

/// The path, what is sent there, and how the answer is heard.
fn translate(
    url: &str,
    path: &str,
    chat: Map<String, Value>,
) -> Result<(&'static str, Vec<u8>, ExpectedAnswer), Error> {
    match path {
        crate::CHAT => {
            let (request, usage) = request::message(chat)?;
            Ok((MESSAGES, request, ExpectedAnswer::Message { usage }))
        }
        crate::TOKENS => Ok((COUNT, request::count(chat)?, ExpectedAnswer::Count)),
        _ => {
            let what = format!("{url} uses Anthropic's dialect, which has no equivalent of {path}");
            Err(bad_request(what).hint("send a chat to /v1/chat/completions, or name another tier"))
        }
    }
}
