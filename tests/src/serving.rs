//! A `tierbar serve` with a data folder of its own, and a client of it.

use crate::{
    binaries::{self, STARTER, program},
    wait::{until, within},
};
use reqwest::{Method, Response};
use serde_json::{Value, json};
use std::{
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Stdio,
};
use tempfile::TempDir;
use tierbar_core::status::{Status, TierStatus};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

/// A data folder, and the environment of what runs on it: a home of its own, so that the user's files do not affect a test,
/// and no hub unless a test provides one.
#[derive(Debug)]
pub struct Data {
    folder: TempDir,
    environment: Vec<(String, String)>,
}

impl Data {
    /// With the starter model in it.
    ///
    /// # Panics
    /// If it cannot be made, or the model has not been fetched.
    #[must_use]
    pub fn new(config: &str) -> Self {
        Self::with_starter(config, &binaries::model(STARTER))
    }

    /// With the starter model's first layers under its name: for tests that do not depend on its words.
    ///
    /// # Panics
    /// If it cannot be made, or the model has not been fetched.
    #[must_use]
    pub fn shallow(config: &str) -> Self {
        Self::with_starter(config, &binaries::shallow_starter())
    }

    fn with_starter(config: &str, model: &Path) -> Self {
        let data = Self::empty(config);
        symlink(model, data.models().join(STARTER)).expect("the starter model");
        data
    }

    /// Without models.
    ///
    /// # Panics
    /// If it cannot be made.
    #[must_use]
    pub fn empty(config: &str) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("tierbar-")
            .tempdir()
            .expect("a folder");
        for name in ["models", "home"] {
            std::fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        let data = Self {
            folder,
            environment: Vec::new(),
        };
        data.configure(config);
        data
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Sets a variable for all that is started from here on.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    #[must_use]
    pub fn models(&self) -> PathBuf {
        self.path().join("models")
    }

    /// Writes the configuration, whole at once: who watches it reads no half of it.
    ///
    /// # Panics
    /// If that fails.
    pub fn configure(&self, config: &str) {
        let (beside, path) = (
            self.path().join("config.toml.new"),
            self.path().join("config.toml"),
        );
        std::fs::write(&beside, config).expect("config.toml.new");
        std::fs::rename(beside, path).expect("config.toml");
    }

    /// The command line on this folder.
    #[must_use]
    pub fn tierbar(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(program("tierbar"));
        for variable in [
            "HF_TOKEN",
            "HUGGING_FACE_HUB_TOKEN",
            "HF_HOME",
            "XDG_DATA_HOME",
        ] {
            command.env_remove(variable);
        }
        command
            .args(arguments)
            .env("TIERBAR_HOME", self.path())
            .env("HOME", self.path().join("home"))
            .env("TIERBAR_SECRETS", "file")
            // The discard port refuses connections.
            .env("HF_ENDPOINT", "http://127.0.0.1:9")
            .envs(self.environment.iter().cloned())
            .env("RUST_LOG", "warn")
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// Runs a command to its end: exit code, stdout, stderr.
    ///
    /// # Panics
    /// If it cannot be run or hangs.
    pub async fn run(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        let output = within("a command", self.tierbar(arguments).output()).await;
        let output = output.expect("a command's output");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    }

    /// Starts the host and returns once it answers.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn serve(&self) -> Serving {
        let mut command = self.tierbar(&["serve", "--json", "--listen", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the host");
        let mut lines = BufReader::new(child.stdout.take().expect("its stdout")).lines();
        let line = within("the host's start", lines.next_line()).await;
        let line = line.expect("a line").expect("a host that starts");
        let ready: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(ready["ready"], true);
        let token = ready["token_file"].as_str().expect("the token's file");
        let token = std::fs::read_to_string(token).expect("the token");
        Serving {
            child,
            url: ready["url"].as_str().expect("the address").to_owned(),
            token: token.trim().to_owned(),
            http: tierbar_fetch::loopback().build().expect("a client"),
        }
    }
}

/// A running host. It is killed when this is dropped.
#[derive(Debug)]
pub struct Serving {
    pub child: Child,
    pub url: String,
    pub token: String,
    pub http: reqwest::Client,
}

impl Serving {
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id().expect("a running host")
    }

    /// Kills it with SIGKILL and waits until it is gone.
    ///
    /// # Panics
    /// If it cannot be killed.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("its end");
    }

    /// Sends a request with the token.
    ///
    /// # Panics
    /// If no answer comes.
    pub async fn send(&self, method: Method, path: &str, body: Option<Value>) -> Response {
        let mut request = self.http.request(method, format!("{}{path}", self.url));
        request = request.bearer_auth(&self.token);
        if let Some(body) = body {
            request = request.json(&body);
        }
        within("an answer", request.send())
            .await
            .expect("a response")
    }

    /// The status and the body of an answer.
    ///
    /// # Panics
    /// If it is not JSON.
    pub async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        let response = self.send(method, path, body).await;
        let status = response.status().as_u16();
        let body = within("a body", response.json()).await.expect("JSON");
        (status, body)
    }

    /// A chat request to the tier, with more fields if any.
    ///
    /// # Panics
    /// If no answer comes.
    pub async fn chat(&self, tier: &str, fields: Value) -> Response {
        let mut body = json!({
            "model": tier, "temperature": 0, "seed": 1,
            "messages": [{"role": "user", "content": "Tell me a long story about the sea."}],
        });
        for (key, value) in fields.as_object().expect("fields") {
            body[key] = value.clone();
        }
        self.send(Method::POST, "/v1/chat/completions", Some(body))
            .await
    }

    /// # Panics
    /// If the host does not answer.
    pub async fn status(&self) -> Status {
        let (_, body) = self.ask(Method::GET, "/tierbar/v1/status", None).await;
        serde_json::from_value(body).expect("a status")
    }

    /// # Panics
    /// If there is no such tier.
    pub async fn tier(&self, id: &str) -> TierStatus {
        let status = self.status().await;
        let mut tiers = status.tiers.into_iter();
        tiers.find(|tier| tier.id.as_str() == id).expect("the tier")
    }

    /// Waits until the tier is as wanted.
    ///
    /// # Panics
    /// If that never comes.
    pub async fn tier_when(&self, id: &str, wanted: impl Fn(&TierStatus) -> bool) -> TierStatus {
        until(&format!("{id} as wanted"), async || {
            let tier = self.tier(id).await;
            wanted(&tier).then_some(tier)
        })
        .await
    }
}

/// Whether a process exists and has not ended.
///
/// # Panics
/// If the system has no `ps`.
#[must_use]
pub fn alive(pid: u32) -> bool {
    let ps = std::process::Command::new("ps")
        .args(["-o", "stat=", "-p", &pid.to_string()])
        .output()
        .expect("ps");
    let state = String::from_utf8_lossy(&ps.stdout);
    !state.trim().is_empty() && !state.trim_start().starts_with('Z')
}
