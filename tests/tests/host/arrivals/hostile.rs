//! A server that answers what it is told to.

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::Request,
    http::{Uri, header},
    response::Response,
};
use futures_util::{StreamExt, future::ready, stream};
use serde_json::{Value, json};
use std::{
    convert::Infallible,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};
use tokio::net::TcpListener;

/// What the server answers to anything.
#[derive(Debug, Clone, Default)]
pub(super) struct Reply {
    status: u16,
    kind: &'static str,
    pub(super) body: Bytes,
}

impl Reply {
    fn into_result_of(self, id: &Value) -> Self {
        let head = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":");
        let body = [head.as_bytes(), &self.body[..], &b"}"[..]].concat().into();
        Self { body, ..self }
    }
}

/// A server that answers what it is told to.
#[derive(Debug, Default)]
pub(super) struct Hostile {
    pub(super) reply: Mutex<Reply>,
    /// How often the answer was fetched.
    pub(super) requests: AtomicUsize,
    /// What it answers does not end.
    pub(super) stalls: AtomicBool,
}

impl Hostile {
    pub(super) async fn start() -> (Arc<Self>, String) {
        let hostile = Arc::new(Self::default());
        let answers = Arc::clone(&hostile);
        let routes = Router::new().fallback(move |request: Request| {
            let hostile = Arc::clone(&answers);
            async move { hostile.answer(request).await }
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, routes).await });
        (hostile, format!("http://{address}"))
    }

    async fn answer(&self, request: Request) -> Response {
        let (head, body) = request.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
        let Reply { status, kind, body } = match preamble(&head.uri, &message) {
            Some(reply) => reply,
            None => {
                self.requests.fetch_add(1, Ordering::Relaxed);
                let reply = self.reply.lock().unwrap().clone();
                match message["method"].as_str() {
                    Some("tools/call") => reply.into_result_of(&message["id"]),
                    _ => reply,
                }
            }
        };
        let response = Response::builder().status(status);
        let response = response.header(header::CONTENT_TYPE, kind);
        let body = match self.stalls.load(Ordering::Relaxed) {
            true => {
                let sent = stream::once(ready(Ok::<_, Infallible>(body)));
                Body::from_stream(sent.chain(stream::pending()))
            }
            false => Body::from(body),
        };
        response.body(body).unwrap()
    }

    pub(super) fn will_answer(&self, status: u16, kind: &'static str, body: String) {
        let body = Bytes::from(body);
        *self.reply.lock().unwrap() = Reply { status, kind, body };
    }
}

/// What comes before the answer that counts: how MCP begins, a repository before its files, and what an agent's model wants.
fn preamble(uri: &Uri, message: &Value) -> Option<Reply> {
    let reply = |status, body: Value| Reply {
        status,
        kind: "application/json",
        body: body.to_string().into(),
    };
    match (uri.path(), message["method"].as_str()) {
        _ if message["tools"].is_array() => Some(agents_step(message)),
        (_, Some("initialize")) => Some(reply(200, initialized(&message["id"]))),
        (_, Some(method)) if method.starts_with("notifications/") => Some(reply(202, Value::Null)),
        ("/calls", Some("tools/list")) => {
            let (id, result) = (&message["id"], one_tool());
            let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
            Some(reply(200, answer))
        }
        ("/api/models/a/tree", _) => Some(reply(200, json!({"sha": "0".repeat(40)}))),
        _ => None,
    }
}

/// A list of one tool.
pub(super) fn one_tool() -> Value {
    json!({"tools": [{"name": "use", "inputSchema": {"type": "object"}}]})
}

/// The one tool that it is offered is called, and the result answered with a word.
fn agents_step(request: &Value) -> Reply {
    let last = request["messages"].as_array().and_then(|all| all.last());
    let (delta, finish) = if last.is_some_and(|last| last["role"] == "tool") {
        (json!({"content": "Done."}), "stop")
    } else {
        let name = &request["tools"][0]["function"]["name"];
        let arguments = json!({"url": "http://page.example/", "query": "words"}).to_string();
        let function = json!({"name": name, "arguments": arguments});
        let call = json!({"index": 0, "id": "1", "type": "function", "function": function});
        (json!({"tool_calls": [call]}), "tool_calls")
    };
    let chunk = |choice: Value| format!("data: {}\n\n", json!({"choices": [choice]}));
    let begins = chunk(json!({"index": 0, "delta": delta}));
    let ends = chunk(json!({"index": 0, "delta": {}, "finish_reason": finish}));
    Reply {
        status: 200,
        kind: "text/event-stream",
        body: format!("{begins}{ends}data: [DONE]\n\n").into(),
    }
}

pub(super) fn initialized(id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "hostile", "version": "1"}
    }})
}
