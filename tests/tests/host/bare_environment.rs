//! A host as launchd and the Finder start it: with the system's four folders as `PATH`, no language, no terminal, the root as
//! folder, few files, and a stdin that is empty or not there at all.

use crate::{Events, FAST};
use axum::{
    Router,
    body::Bytes,
    http::header,
    response::IntoResponse,
    routing::{get, post},
};
use reqwest::{Method, Response};
use serde_json::{Value, json};
use std::path::Path;
use tierbar_host::RunningHost;
use tierbar_skip::skip;
use tierbar_tests::{
    binaries::program,
    serving::Data,
    wait::{until, within},
};
use tokio::{
    net::{TcpStream, UnixListener},
    process::{Child, Command},
};

const PATH: &str = "/usr/bin:/bin:/usr/sbin:/sbin";
/// What a process has of its standard streams.
const STREAMS: [&str; 2] = ["</dev/null >/dev/null 2>&1", "<&- >&- 2>&-"];

/// Says how many characters an `ä` has, where programs are found, and what of stdin there is.
const COMMAND: &str = "printf ä | wc -m; echo \"path $PATH\"; cat; pwd";

/// Plays a model that wants a command to be run, and repeats what that has written.
async fn complete(body: Bytes) -> impl IntoResponse {
    let request: Value = serde_json::from_slice(&body).unwrap();
    let last = request["messages"].as_array().unwrap().last().unwrap();
    let (delta, finish) = if last["role"] == "tool" {
        (json!({"content": "Done."}), "stop")
    } else {
        let arguments = json!({"command": COMMAND}).to_string();
        let function = json!({"name": "run_command", "arguments": arguments});
        let call = json!({"index": 0, "id": "a", "type": "function", "function": function});
        (json!({"tool_calls": [call]}), "tool_calls")
    };
    let chunk = json!({"choices": [{"index": 0, "delta": delta}]});
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]});
    let events = format!("data: {chunk}\n\ndata: {end}\n\ndata: [DONE]\n\n");
    ([(header::CONTENT_TYPE, "text/event-stream")], events)
}

/// A host with a tier of our worker, and one whose command is found by its name.
struct Bare {
    /// Its folder, for as long as it runs.
    _data: Data,
    child: Child,
    running: RunningHost,
    http: reqwest::Client,
}

impl Bare {
    async fn start(streams: &str) -> Self {
        let data = Data::new("");
        let socket = data.path().join("model.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let routes = Router::new()
            .route("/health", get(|| async {}))
            .route("/v1/chat/completions", post(complete));
        tokio::spawn(async move { axum::serve(listener, routes).await });
        let script = "ln -sf \"$0\" \"$1\" && exec tail -f /dev/null";
        let command = json!(["sh", "-c", script, socket, "{socket}"]);
        data.configure(&format!(
            "{FAST}[tiers.primary]\nengine = {{ command = {command}, memory = \"64MiB\" }}\n"
        ));
        let script =
            format!("cd / && ulimit -S -n 256 && exec \"$0\" serve --listen 127.0.0.1:0 {streams}");
        let mut shell = Command::new("/bin/sh");
        let shell = shell.args(["-c", &script]).arg(program("tierbar"));
        let shell = shell
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", data.path().join("home"))
            .env("TIERBAR_HOME", data.path())
            .env("TIERBAR_SECRETS", "file")
            .env("HF_ENDPOINT", "http://127.0.0.1:9")
            .kill_on_drop(true);
        let child = shell.spawn().unwrap();
        let running = until("a host", async || {
            tierbar_host::find_running_host(Some(data.path()))
        })
        .await;
        let http = tierbar_fetch::loopback().build().unwrap();
        Self {
            _data: data,
            child,
            running,
            http,
        }
    }

    async fn post(&self, path: &str, body: &Value) -> Response {
        let url = format!("{}{path}", self.running.url);
        let request = self.http.request(Method::POST, url);
        let request = request.bearer_auth(&self.running.token).json(body);
        within("an answer", request.send()).await.unwrap()
    }

    /// Runs an agent in a folder, allows what it asks for, and returns what its command has written.
    async fn command(&self, folder: &Path) -> String {
        let body = json!({"model": "primary", "input": "Q", "folder": folder, "stream": true, "way": "calls"});
        let mut events = Events::of(self.post("/v1/agent", &body).await);
        let run = events.next_json().await["run"].clone();
        loop {
            let event = events.next_json().await;
            match event["type"].as_str().unwrap() {
                "consent" => {
                    let allow = json!({"id": event["question"]["id"], "allow": "once"});
                    let path = format!("/v1/agent/{}/consent", run.as_str().unwrap());
                    assert_eq!(self.post(&path, &allow).await.status(), 204);
                }
                "tool_result" => return event["text"].as_str().unwrap().to_owned(),
                "failed" | "finished" => panic!("{event}"),
                _ => {}
            }
        }
    }
}

#[tokio::test]
async fn a_host_serves_with_what_launchd_gives() {
    for streams in STREAMS {
        let mut bare = Bare::start(streams).await;
        // More than it may open at its start.
        let address = bare.running.url.strip_prefix("http://").unwrap();
        let mut idle = Vec::new();
        for _ in 0..300 {
            idle.push(TcpStream::connect(address).await.unwrap());
        }
        let question = json!({"role": "user", "content": "Hello"});
        let body = json!({"model": "fast", "max_tokens": 4, "messages": [question]});
        let answer = bare.post("/v1/chat/completions", &body).await;
        assert_eq!(answer.status(), 200, "{streams}");
        let answer: Value = answer.json().await.unwrap();
        assert!(
            answer["choices"][0]["message"]["content"].is_string(),
            "{streams}: {answer}"
        );
        bare.child.kill().await.unwrap();
    }
}

#[tokio::test]
async fn an_agents_command_runs_with_what_launchd_gives() {
    if let Err(error) = tierbar_sandbox::enforcement() {
        return skip(&error.to_string());
    }
    for streams in STREAMS {
        let mut bare = Bare::start(streams).await;
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let written = bare.command(&folder).await;
        let mut lines = written.lines().map(str::trim);
        assert_eq!(lines.next(), Some("1"), "{streams}: {written}");
        let path = lines.next().unwrap();
        assert!(
            path.starts_with(&format!("path {PATH}")),
            "{streams}: {written}"
        );
        if Path::new("/usr/local/bin").is_dir() {
            assert!(path.ends_with(":/usr/local/bin"), "{streams}: {written}");
        }
        assert_eq!(lines.next(), folder.to_str(), "{streams}: {written}");
        bare.child.kill().await.unwrap();
    }
}
