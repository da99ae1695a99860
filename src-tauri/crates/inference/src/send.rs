//! The call of a worker, or of an endpoint in its place, over a connection of its own. Dropping the answer closes the connection, at
//! which the worker stops.

use super::{
    CHAT, Inference, TOKENS,
    clouds::anthropic,
    content::Content,
    hints::{OPENAI_BETA, pick_headers},
    original::{Form, Original},
    route,
    upstream::{ConnectionFailure, Upstream},
};
use http_body_util::BodyExt;
use hyper::{HeaderMap, header};
use secrecy::SecretString;
use serde_json::{Map, Value};
use tierbar_core::{
    config::Dialect,
    json,
    json_edit::{self, Change},
    lease::{Address, Endpoint, Foreign, Lease},
};
use tierbar_fetch::{Remote, RemoteAnswer};
use tokio::net::{TcpStream, UnixStream};

/// Posts the request and waits for the head of the answer. `headers`: those that belong to the client's dialect.
pub(crate) async fn send(
    endpoint: &Endpoint,
    path: &'static str,
    content: Content,
    headers: &HeaderMap,
    remote: &Remote,
    key: Option<&SecretString>,
) -> Result<Upstream, ConnectionFailure> {
    let posted = match endpoint {
        Endpoint::Unix(socket) => {
            let bytes = content.into_bytes();
            let stream = UnixStream::connect(socket).await?;
            Upstream::over(stream, path, bytes).await
        }
        Endpoint::Foreign(foreign) => post_to(foreign, path, content, headers, remote, key).await,
    };
    check_status(posted?)
}

/// An answer of a few tokens with their alternatives has some ten KiB.
const LONGEST_REPLY: usize = 1 << 20;

/// Puts a question of ours to a leased worker, or says why there is no answer. It is not an answer to a client, so it is counted neither
/// in the metrics nor in the model's speed.
pub(crate) async fn ask(
    inference: &Inference,
    lease: &dyn Lease,
    question: Value,
) -> Result<Value, String> {
    let (content, _) = Content::from_fields(question).map_err(|error| error.message)?;
    let (headers, remote) = (HeaderMap::new(), &inference.remote);
    let answer = match send(lease.endpoint(), CHAT, content, &headers, remote, None).await {
        Ok(mut upstream) => upstream.whole(LONGEST_REPLY).await,
        Err(broken) => Err(broken),
    };
    let answer = answer.map_err(|broken| broken.to_string())?;
    json::read(&answer).map_err(|error| error.to_string())
}

/// Posts a request as its client sent it to a server that speaks its dialect, but for the model's name and what policy has changed.
pub(crate) async fn send_original(
    url: &str,
    model: Option<&str>,
    original: &Original,
    headers: &HeaderMap,
    remote: &Remote,
    key: Option<&SecretString>,
) -> Result<Upstream, ConnectionFailure> {
    let headers = match original.form {
        Form::Messages => anthropic::headers(headers, key)?,
        Form::Chat | Form::Responses => openai_headers(headers, key)?,
    };
    let changes = [("model", model.map(Value::from)), ("keep_alive", None)];
    let json = json_edit::edit(original.bytes(), &changes);
    let answer = remote.post(url, original.path, headers, json).await?;
    check_status(into_upstream(answer))
}

/// Returns whether a server is sent files. Servers of this machine and network refuse all of a request that has one.
pub(crate) fn takes_files(endpoint: &Endpoint) -> bool {
    let Endpoint::Foreign(Foreign {
        at: Address::Url(url),
        ..
    }) = endpoint
    else {
        return false;
    };
    !Remote::is_near(url)
}

fn check_status(upstream: Upstream) -> Result<Upstream, ConnectionFailure> {
    let status = upstream.head.status;
    // The client asked for neither another protocol nor another place.
    if status.is_informational() || status.is_redirection() {
        return Err(format!("returned {status}, which is not an answer").into());
    }
    Ok(upstream)
}

async fn post_to(
    Foreign { at, model, dialect }: &Foreign,
    path: &'static str,
    content: Content,
    headers: &HeaderMap,
    remote: &Remote,
    key: Option<&SecretString>,
) -> Result<Upstream, ConnectionFailure> {
    let model = model.as_deref();
    let json = |cloud| {
        let changes = changes_for(model, cloud, content.fields());
        content.edited(&changes)
    };
    match at {
        Address::Unix(socket) => {
            let stream = UnixStream::connect(socket).await?;
            Upstream::over(stream, path, json(false).into()).await
        }
        Address::Port(port) => {
            let stream = TcpStream::connect(("127.0.0.1", *port)).await?;
            stream.set_nodelay(true)?;
            Upstream::over(stream, path, json(false).into()).await
        }
        Address::Url(url) if *dialect == Dialect::Anthropic => {
            let mut chat = content.into_object();
            chat.insert("model".to_owned(), model.into());
            anthropic::post(remote, url, path, key, chat).await
        }
        Address::Url(url) if path == TOKENS => Ok(Upstream::refusing(&route::not_counted(url))),
        Address::Url(url) => {
            let headers = openai_headers(headers, key)?;
            let json = json(!Remote::is_near(url));
            let answer = remote.post(url, path, headers, json).await?;
            Ok(into_upstream(answer))
        }
    }
}

fn into_upstream(answer: RemoteAnswer) -> Upstream {
    let (head, body) = answer.into_parts();
    Upstream::new(head, body.map_err(ConnectionFailure::from).boxed_unsync())
}

fn openai_headers(
    of_dialect: &HeaderMap,
    key: Option<&SecretString>,
) -> Result<HeaderMap, ConnectionFailure> {
    let mut headers = pick_headers(of_dialect, &[OPENAI_BETA]);
    if let Some(key) = key {
        headers.insert(header::AUTHORIZATION, Remote::key("Bearer", key)?);
    }
    Ok(headers)
}

const NOT_FOR_CLOUDS: [&str; 8] = [
    "add_generation_prompt",
    "continue_final_message",
    "think",
    "thinking_budget_tokens",
    "dry_multiplier",
    "dry_allowed_length",
    "dry_penalty_last_n",
    "truncate_prompt_tokens",
];

/// The changes that give a request the name that the server knows its model by, or none: our names mean nothing to it, and some
/// servers load what they are asked for. Clouds refuse fields that are not OpenAI's: those that say whether to think, to go on with the
/// last message, or not to repeat a sentence, stay here, since servers of this machine and network know them.
fn changes_for(model: Option<&str>, cloud: bool, request: &Value) -> Vec<Change> {
    // The latter is ours alone.
    let mut changes = vec![("model", model.map(Value::from)), ("keep_alive", None)];
    if cloud {
        changes.extend(NOT_FOR_CLOUDS.map(|field| (field, None)));
    }
    // Most of these know it by that name.
    if let (false, Value::Bool(think)) = (cloud, &request["think"]) {
        let mut named = match request.get("chat_template_kwargs") {
            None => Map::new(),
            Some(Value::Object(named)) => named.clone(),
            Some(_) => return changes,
        };
        if !named.contains_key("enable_thinking") {
            named.insert("enable_thinking".to_owned(), (*think).into());
            changes.push(("chat_template_kwargs", Some(named.into())));
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_local_servers_get_our_own_fields() {
        let ask = br#"{"model":"fast","keep_alive":5,"continue_final_message":true,"think":true,"thinking_budget_tokens":9,"dry_multiplier":1,"reasoning_effort":"low"}"#;
        let send = |json: &'static [u8], cloud| {
            let (content, _) = Content::read(json.into()).unwrap();
            let changes = changes_for(Some("m"), cloud, content.fields());
            String::from_utf8(json_edit::edit(content.bytes(), &changes)).unwrap()
        };
        let sent = |cloud| send(ask, cloud);
        assert_eq!(sent(true), r#"{"model":"m","reasoning_effort":"low"}"#);
        assert_eq!(
            sent(false),
            r#"{"model":"m","continue_final_message":true,"think":true,"thinking_budget_tokens":9,"dry_multiplier":1,"reasoning_effort":"low","chat_template_kwargs":{"enable_thinking":true}}"#
        );
        let own = br#"{"model":"m","think":false,"chat_template_kwargs":{"enable_thinking":true}}"#;
        assert_eq!(send(own, false).as_bytes(), own);
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

    #[test]
    fn only_clouds_are_sent_files() {
        let foreign = |at| {
            Endpoint::Foreign(Foreign {
                at,
                model: None,
                dialect: Dialect::OpenAi,
            })
        };
        let url = |url: &str| foreign(Address::Url(url.to_owned()));
        assert!(takes_files(&url("https://api.openai.com")));
        for near in [
            url("http://127.0.0.1:1"),
            foreign(Address::Port(1)),
            Endpoint::Unix("/worker.sock".into()),
        ] {
            assert!(!takes_files(&near), "{near:?}");
        }
    }
}
