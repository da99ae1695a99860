//! The call of a worker, or of an endpoint in its place, over a connection of its own. Dropping the answer closes the connection, at
//! which the worker stops.

use super::{
    TOKENS,
    clouds::anthropic,
    content::Content,
    route,
    upstream::{Broken, Upstream},
};
use http_body_util::BodyExt;
use hyper::{HeaderMap, header};
use secrecy::SecretString;
use serde_json::{Map, Value};
use tierbar_core::{
    config::Dialect,
    lease::{Address, Endpoint, Foreign},
};
use tierbar_fetch::Remote;
use tokio::net::{TcpStream, UnixStream};

/// Posts the request and waits for the head of the answer.
///
/// # Errors
/// If the connection cannot be made or breaks before the head is there.
pub(crate) async fn send(
    endpoint: &Endpoint,
    path: &'static str,
    content: Content,
    remote: &Remote,
    key: Option<&SecretString>,
) -> Result<Upstream, Broken> {
    let upstream = begin(endpoint, path, content, remote, key).await?;
    let status = upstream.head.status;
    // The client asked for neither another protocol nor another place.
    if status.is_informational() || status.is_redirection() {
        return Err(format!("returned {status}, which is not an answer").into());
    }
    Ok(upstream)
}

async fn begin(
    endpoint: &Endpoint,
    path: &'static str,
    content: Content,
    remote: &Remote,
    key: Option<&SecretString>,
) -> Result<Upstream, Broken> {
    let Foreign { at, model, dialect } = match endpoint {
        Endpoint::Unix(socket) => {
            let bytes = content.into_bytes();
            let stream = UnixStream::connect(socket).await?;
            return Upstream::over(stream, path, bytes).await;
        }
        Endpoint::Foreign(foreign) => foreign,
    };
    let cloud =
        matches!(at, Address::Url(url) if *dialect == Dialect::OpenAi && !Remote::is_near(url));
    let request = asking_for(model.as_deref(), cloud, content.into_object());
    match at {
        Address::Unix(socket) => {
            Upstream::over(
                UnixStream::connect(socket).await?,
                path,
                json(&request).into(),
            )
            .await
        }
        Address::Port(port) => {
            let stream = TcpStream::connect(("127.0.0.1", *port)).await?;
            stream.set_nodelay(true)?;
            Upstream::over(stream, path, json(&request).into()).await
        }
        Address::Url(url) => {
            if *dialect == Dialect::Anthropic {
                return anthropic::post(remote, url, path, key, request).await;
            }
            if path == TOKENS {
                return Ok(Upstream::refusing(&route::not_counted(url)));
            }
            let mut headers = HeaderMap::new();
            if let Some(key) = key {
                headers.insert(header::AUTHORIZATION, Remote::key("Bearer", key)?);
            }
            let answer = remote.post(url, path, headers, json(&request)).await?;
            let (head, body) = answer.into_parts();
            Ok(Upstream::new(
                head,
                body.map_err(Broken::from).boxed_unsync(),
            ))
        }
    }
}

const NOT_FOR_CLOUDS: [&str; 7] = [
    "add_generation_prompt",
    "continue_final_message",
    "think",
    "thinking_budget_tokens",
    "dry_multiplier",
    "dry_allowed_length",
    "dry_penalty_last_n",
];

/// The request with the name that the server knows its model by, or with none: our names mean nothing to it, and some servers
/// load what they are asked for. Clouds refuse fields that are not OpenAI's: those that say whether to think, to go on with the last
/// message, or not to repeat a sentence, stay here, since servers of this machine and network know them.
fn asking_for(
    model: Option<&str>,
    cloud: bool,
    mut request: Map<String, Value>,
) -> Map<String, Value> {
    // Ours alone.
    request.shift_remove("keep_alive");
    if cloud {
        for field in NOT_FOR_CLOUDS {
            request.shift_remove(field);
        }
    }
    // Most of these know it by that name.
    if let (false, Some(&Value::Bool(think))) = (cloud, request.get("think")) {
        let named = request.entry("chat_template_kwargs");
        if let Value::Object(named) = named.or_insert_with(|| Map::new().into()) {
            named.entry("enable_thinking").or_insert(think.into());
        }
    }
    match model {
        Some(model) => {
            request.insert("model".to_owned(), model.into());
        }
        None => {
            request.shift_remove("model");
        }
    }
    request
}

fn json(request: &Map<String, Value>) -> Vec<u8> {
    serde_json::to_vec(request).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_local_servers_get_our_own_fields() {
        let ask = br#"{"model":"fast","keep_alive":5,"continue_final_message":true,"think":true,"thinking_budget_tokens":9,"dry_multiplier":1,"reasoning_effort":"low"}"#;
        let object = |json: &[u8]| serde_json::from_slice::<Map<String, Value>>(json).unwrap();
        let sent = |cloud| {
            let request = asking_for(Some("m"), cloud, object(ask));
            String::from_utf8(json(&request)).unwrap()
        };
        assert_eq!(sent(true), r#"{"model":"m","reasoning_effort":"low"}"#);
        assert_eq!(
            sent(false),
            r#"{"model":"m","continue_final_message":true,"think":true,"thinking_budget_tokens":9,"dry_multiplier":1,"reasoning_effort":"low","chat_template_kwargs":{"enable_thinking":true}}"#
        );
        let own = br#"{"model":"m","think":false,"chat_template_kwargs":{"enable_thinking":true}}"#;
        assert_eq!(json(&asking_for(Some("m"), false, object(own))), &own[..]);
        for near in [
            "http://127.0.0.1:1",
            "http://gpubox:80",
            "http://[::1]",
            "http://a.local",
        ] {
            assert!(Remote::is_near(near), "{near}");
        }
        assert!(!Remote::is_near("https://api.openai.com"));
        assert!(!Remote::is_near("http://8.8.8.8"));
    }
}
