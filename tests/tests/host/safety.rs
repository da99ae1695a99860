//! A host beyond loopback, over TLS, and with hostile clients: the real host, real sockets, real clients.

mod command;
mod lan;
mod network;
mod offline;
mod prompts;
mod slow;
mod users;

use axum::{Json, Router, body::Bytes, http::header, response::IntoResponse, routing::post};
use serde_json::{Value, json};
use std::{fmt::Write, net::SocketAddr};
use tempfile::TempDir;
use tierbar_core::Error;
use tierbar_host::{Host, HostKind, HostOptions};
use tokio::net::TcpListener;

const ANSWER: &str = "An answer of the model";

/// A model's server: it answers at once, whole or in a stream. A prompt with `refuse` in it is refused and quoted.
async fn model() -> SocketAddr {
    let answer = |body: Bytes| async move {
        let request: Value = serde_json::from_slice(&body).unwrap();
        let text = request["messages"][0]["content"]
            .as_str()
            .unwrap_or_default();
        if text.contains("refuse") {
            let error = json!({"error": {"message": format!("cannot do {text}"), "code": 400}});
            return (axum::http::StatusCode::BAD_REQUEST, Json(error)).into_response();
        }
        let usage = json!({"prompt_tokens": 6, "completion_tokens": 4, "total_tokens": 10});
        if request["stream"] != true {
            let message = json!({"role": "assistant", "content": ANSWER});
            return Json(json!({"choices": [{"message": message}], "usage": usage}))
                .into_response();
        }
        let mut events = String::new();
        for word in ANSWER.split(' ') {
            let event = json!({"choices": [{"delta": {"content": word}}]});
            write!(events, "data: {event}\n\n").unwrap();
        }
        write!(
            events,
            "data: {}\n\ndata: [DONE]\n\n",
            json!({"choices": [], "usage": usage})
        )
        .unwrap();
        ([(header::CONTENT_TYPE, "text/event-stream")], events).into_response()
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let routes = Router::new().route("/v1/chat/completions", post(answer));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    address
}

/// A host with one tier, `fast`, that is such a server.
struct Serving {
    host: Host,
    data: TempDir,
    http: reqwest::Client,
}

impl Serving {
    /// `config` goes before the tier.
    async fn start(listen: &str, config: &str) -> Result<Self, Error> {
        let data = tempfile::tempdir().unwrap();
        let endpoint = model().await;
        let tier = format!("[tiers.fast]\nengine = {{ endpoint = \"http://{endpoint}\" }}\n");
        std::fs::write(data.path().join("config.toml"), format!("{config}\n{tier}")).unwrap();
        let host = Host::start(HostOptions {
            home: Some(data.path().to_owned()),
            listen: Some(listen.to_owned()),
            // No tier of it has a worker.
            worker: Some(std::env::current_exe().unwrap()),
            kind: HostKind::Cli,
        })
        .await?;
        let http = tierbar_fetch::loopback().build().unwrap();
        Ok(Self { host, data, http })
    }

    fn port(&self) -> u16 {
        let url: url::Url = self.host.url().parse().unwrap();
        url.port().unwrap()
    }

    async fn key(&self, wanted: Value) -> String {
        let made = self
            .http
            .post(format!("{}/tierbar/v1/keys", self.host.url()))
            .bearer_auth(self.host.token())
            .json(&wanted);
        let made = made.send().await.unwrap();
        assert_eq!(made.status(), 201);
        let made: Value = made.json().await.unwrap();
        made["key"].as_str().unwrap().to_owned()
    }
}

fn chat(text: &str) -> Value {
    json!({"model": "fast", "messages": [{"role": "user", "content": text}]})
}
