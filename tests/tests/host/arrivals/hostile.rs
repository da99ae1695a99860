//! A server that answers what it is told to.

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::Request,
    http::{Uri, header},
    response::Response,
};
use serde_json::{Value, json};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};
use tokio::net::TcpListener;

/// What the server answers to anything.
#[derive(Debug, Clone, Default)]
pub(super) struct Reply {
    status: u16,
    kind: &'static str,
    pub(super) body: Bytes,
}

/// A server that answers what it is told to.
#[derive(Debug, Default)]
pub(super) struct Hostile {
    pub(super) reply: Mutex<Reply>,
    /// How often the answer was fetched.
    pub(super) requests: AtomicUsize,
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
        let Reply { status, kind, body } = match preamble(&head.uri, &body) {
            Some(reply) => reply,
            None => {
                self.requests.fetch_add(1, Ordering::Relaxed);
                self.reply.lock().unwrap().clone()
            }
        };
        let response = Response::builder().status(status);
        let response = response.header(header::CONTENT_TYPE, kind);
        response.body(Body::from(body)).unwrap()
    }

    pub(super) fn will_answer(&self, status: u16, kind: &'static str, body: String) {
        let body = Bytes::from(body);
        *self.reply.lock().unwrap() = Reply { status, kind, body };
    }
}

/// What comes before the answer that counts: how MCP begins, and a repository before its files.
fn preamble(uri: &Uri, body: &[u8]) -> Option<Reply> {
    let reply = |status, body: Value| Reply {
        status,
        kind: "application/json",
        body: body.to_string().into(),
    };
    let message: Value = serde_json::from_slice(body).unwrap_or_default();
    match (uri.path(), message["method"].as_str()) {
        (_, Some("initialize")) => Some(reply(200, initialized(&message["id"]))),
        (_, Some(method)) if method.starts_with("notifications/") => Some(reply(202, Value::Null)),
        ("/api/models/a/tree", _) => Some(reply(200, json!({"sha": "0".repeat(40)}))),
        _ => None,
    }
}

pub(super) fn initialized(id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "hostile", "version": "1"}
    }})
}
