//! A real `tierbar-worker` process and a client on its socket.

pub(crate) mod group;
pub(crate) mod projector;
pub(crate) mod qwen;
pub(crate) mod sound;
pub(crate) mod weights;

use futures_util::StreamExt;
use serde_json::Value;
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use tempfile::TempDir;
use tierbar_core::worker::{Handshake, WorkerReady};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, ChildStdin, Command},
};

pub(crate) const SMOLLM: &str = "SmolLM2-135M-Instruct.Q4_1.gguf";
/// SmolLM2's first layers, with its tokenizer and its template: far faster, and its words mean nothing.
pub(crate) const SHALLOW: &str = "SmolLM2's first layers";
pub(crate) const GEMMA: &str = "gemma-3-270m-q4_k_m.gguf";
const MINILM: &str = "all-MiniLM-L6-v2.F32.gguf";

/// Only to turn a hang into a failure.
pub(crate) const HANG: Duration = Duration::from_secs(300);

pub(crate) fn model(name: &str) -> PathBuf {
    if name == SHALLOW {
        return tierbar_mixture::shallow(&model(SMOLLM)).unwrap();
    }
    let path = models().join(name);
    assert!(
        path.is_file(),
        "{} is missing: run `make setup`",
        path.display()
    );
    path
}

/// [`MINILM`]'s path; if a package of it is gone, why a test of it is skipped.
pub(crate) fn minilm() -> Result<PathBuf, String> {
    tierbar_skip::gone(&models().join(MINILM)).map_or_else(|| Ok(model(MINILM)), Err)
}

fn models() -> PathBuf {
    std::env::var_os("TIERBAR_TEST_MODELS")
        .map(PathBuf::from)
        .unwrap_or_else(|| {
            PathBuf::from(std::env::var_os("HOME").unwrap()).join(".cache/tierbar/models")
        })
}

/// What upstream's llama-server answered, recorded by `tests/bench/engine --record`.
pub(crate) fn oracle() -> Value {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../tests/fixtures/llama-server.json"
    );
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Runs what writes the files that llama-server was recorded with, by `tests/fixtures/record-media` into `TIERBAR_MEDIA`.
///
/// # Panics
/// If it writes other files the second time: a recording would not be of what the tests use.
pub(crate) fn write_recorded_media(write: impl Fn(&Path)) {
    if let Some(folder) = std::env::var_os("TIERBAR_MEDIA") {
        return write(Path::new(&folder));
    }
    let [first, second] = [(); 2].map(|()| {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path());
        let files = std::fs::read_dir(folder.path()).unwrap();
        files
            .map(|file| file.unwrap())
            .map(|file| (file.file_name(), std::fs::read(file.path()).unwrap()))
            .collect::<BTreeMap<_, _>>()
    });
    assert!(!first.is_empty());
    for (name, bytes) in first {
        assert!(second[&name] == bytes, "{name:?} differs");
    }
}

/// Of it, what it answered on the model.
pub(crate) fn recorded(model: &str) -> Value {
    oracle()["models"][model].clone()
}

/// Of it, prompts and what it wrote behind each, where every token led all others by so much, in log units: another order of
/// computing has been seen to move that by 0.9.
pub(crate) fn completions(model: &str, lead: f64) -> Vec<(String, Value)> {
    let recorded = recorded(model);
    let completions = recorded["completions"].as_object().unwrap().iter();
    completions
        .filter(|(_, recorded)| recorded["margin"].as_f64().unwrap() >= lead)
        .map(|(prompt, recorded)| (prompt.clone(), recorded.clone()))
        .collect()
}

/// Numbers, those from `from` up to the one before `to`: what a model writes behind them is far from a tie.
pub(crate) fn numbers(from: u32, to: u32) -> String {
    let numbers: Vec<String> = (from..to).map(|number| number.to_string()).collect();
    numbers.join(", ") + ","
}

/// One of the chat templates that llama.cpp comes with.
pub(crate) fn template(name: &str) -> PathBuf {
    let home = PathBuf::from(std::env::var_os("HOME").unwrap());
    let path = home.join(".cache/tierbar/templates").join(name);
    assert!(
        path.is_file(),
        "{} is missing: run `make setup`",
        path.display()
    );
    path
}

pub(crate) const WORKER: &str = env!("CARGO_BIN_EXE_tierbar-worker");

pub(crate) struct Worker {
    pub(crate) child: Child,
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) socket: PathBuf,
    pub(crate) handshake: Handshake,
    /// The percentages reported while it loaded.
    pub(crate) loaded: Vec<u8>,
    client: reqwest::Client,
    _folder: TempDir,
}

impl Worker {
    pub(crate) async fn start(model: &Path, extra: &[&str]) -> Self {
        Self::start_as(Command::new(WORKER), model, extra).await
    }

    /// The command ends in the worker's program, or runs it with its arguments.
    pub(crate) async fn start_as(mut command: Command, model: &Path, extra: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("w.sock");
        let mut child = command
            .arg("--model")
            .arg(model)
            .arg("--socket")
            .arg(&socket)
            .args(extra)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut loaded = Vec::new();
        let handshake = loop {
            let mut line = String::new();
            let read = tokio::time::timeout(HANG, stdout.read_line(&mut line));
            read.await.expect("no handshake").unwrap();
            match serde_json::from_str(&line) {
                Ok(Handshake::Loading(percent)) => loaded.push(percent),
                Ok(handshake) => break handshake,
                Err(error) => panic!("{error}: {line:?}"),
            }
        };
        let client = tierbar_fetch::loopback()
            .unix_socket(socket.clone())
            .build()
            .unwrap();
        Self {
            child,
            stdin,
            socket,
            handshake,
            loaded,
            client,
            _folder: folder,
        }
    }

    /// A worker of the starter model with a small context.
    pub(crate) async fn smollm() -> Self {
        Self::small(SMOLLM).await
    }

    /// The same of its first layers.
    pub(crate) async fn shallow() -> Self {
        Self::small(SHALLOW).await
    }

    async fn small(name: &str) -> Self {
        let worker = Self::start(&model(name), &["--context", "1024"]).await;
        worker.ready();
        worker
    }

    pub(crate) fn ready(&self) -> &WorkerReady {
        match &self.handshake {
            Handshake::Ready(ready) => ready,
            failed => panic!("{failed:?}"),
        }
    }

    pub(crate) fn failure(&self) -> &tierbar_core::Error {
        match &self.handshake {
            Handshake::Failed(error) => error,
            started => panic!("{started:?}"),
        }
    }

    pub(crate) async fn send(
        &self,
        path: &str,
        body: impl Into<reqwest::Body>,
    ) -> reqwest::Response {
        let request = self
            .client
            .post(format!("http://worker{path}"))
            .body(body)
            .send();
        tokio::time::timeout(HANG, request)
            .await
            .expect("no answer")
            .unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let response = self.send(path, body.to_string()).await;
        (response.status().as_u16(), response.json().await.unwrap())
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.client
            .get(format!("http://worker{path}"))
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap()
    }

    /// Every `data:` line of a streamed answer, the last being `[DONE]` if it ended well.
    pub(crate) async fn stream(&self, path: &str, body: &Value) -> Vec<String> {
        let response = self.send(path, body.to_string()).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let text = tokio::time::timeout(HANG, response.text())
            .await
            .expect("no end")
            .unwrap();
        text.split_terminator("\n\n")
            .map(|line| line.strip_prefix("data: ").unwrap().to_owned())
            .collect()
    }

    /// The exit status, once the process has ended.
    pub(crate) async fn exit(&mut self) -> std::process::ExitStatus {
        tokio::time::timeout(HANG, self.child.wait())
            .await
            .expect("it does not end")
            .unwrap()
    }
}

/// Reads a stream until its first text, and leaves the rest unread.
pub(crate) async fn first_chunk(
    response: reqwest::Response,
) -> impl futures_util::Stream<Item = reqwest::Result<axum::body::Bytes>> + Unpin {
    let mut body = response.bytes_stream();
    let first = tokio::time::timeout(HANG, body.next())
        .await
        .expect("no first chunk");
    first.unwrap().unwrap();
    body
}
