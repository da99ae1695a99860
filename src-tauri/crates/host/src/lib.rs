//! Combines the parts: one host per data folder, in the app or under `tierbar serve`.
//!
//! It owns the data folder, the configuration file, the status and the server's life. Answering requests is the
//! gateway's work, worker processes are the supervisor's.

mod address;
mod app_lock;
mod awake;
pub mod clients;
mod config;
mod documents;
mod examine;
mod figures;
mod folder;
mod history;
mod journal;
pub mod launchd;
mod library;
mod live_config;
mod log;
mod machine;
mod measure;
mod measured;
mod memory_guard;
mod models;
pub mod named;
mod notices;
mod notifications;
mod ollama;
mod own_data;
mod ownership;
mod paging;
mod platform;
mod remote;
mod room;
mod schedules;
mod serve;
mod services;
mod sources;
mod start;
mod status;
mod tls;
mod unused_memory;
mod volume;
pub mod whole_file;
mod worker;

pub use app_lock::{AppLock, ask_app};
pub use documents::text::read_file;
pub use examine::{Finding, examine};
pub use folder::data_folder;
pub use journal::past_log;
pub use log::log_to_folder;
pub use ownership::{RunningHost, find_running_host, wait_until_released};
pub use remote::HostEvent;
pub use tierbar_edge::openapi::API_DESCRIPTION;

use live_config::LiveConfig;
use services::Admin;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use tierbar_core::{Config, Error, lease::BoxFuture};
use tokio::sync::watch;

/// What runs a host; a second host that wants the same data folder reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HostKind {
    /// The menu-bar app.
    App,
    /// `tierbar serve`.
    Serve,
    /// A command that needed a host for as long as it runs.
    Cli,
}

/// How to start a host. Each `None` stands for the configured or default value.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// The data folder.
    pub home: Option<PathBuf>,
    /// Address to listen on instead of the configured one; port 0 takes a free one.
    pub listen: Option<String>,
    /// The `tierbar-worker` to run.
    pub worker: Option<PathBuf>,
    pub kind: HostKind,
}

/// A running host. Dropping it does not end it; [`Host::shutdown`] does.
#[derive(Debug)]
pub struct Host {
    kind: HostKind,
    config: Arc<LiveConfig>,
    admin: Arc<Admin>,
    server: start::Server,
}

impl Host {
    /// Starts the API and returns once it listens. Must be called within a tokio runtime, which then runs the host.
    ///
    /// # Errors
    /// `AlreadyRunning`, `PortTaken`, `ConfigInvalid` or `Storage`, each with what to do about it; `Internal` if the
    /// worker's program is missing. Nothing is left running or locked.
    pub fn start(options: HostOptions) -> BoxFuture<'static, Result<Self, Error>> {
        // Boxed here, all that a host does is compiled with this crate, and not once more with each program.
        Box::pin(start::start(options))
    }

    /// Returns the base address of the API, such as `http://127.0.0.1:11435`.
    pub fn url(&self) -> &str {
        &self.server.url
    }

    /// Returns the SHA-256 fingerprint of the server's certificate, if it uses TLS.
    pub fn fingerprint(&self) -> Option<&str> {
        self.server.fingerprint.as_deref()
    }

    pub fn token(&self) -> &str {
        self.server.token.as_str()
    }

    pub fn token_file(&self) -> &Path {
        self.server.token.path()
    }

    /// The data folder.
    pub fn home(&self) -> &Path {
        self.config.home()
    }

    /// Returns how to reach it, as [`find_running_host`] does in other processes.
    pub fn running(&self) -> RunningHost {
        RunningHost {
            token: self.token().to_owned(),
            ..RunningHost::this(self.url(), self.kind)
        }
    }

    /// Returns the notices about `config.toml`, such as those of unknown keys, with their lines.
    pub fn config_notices(&self) -> Vec<String> {
        self.config.file.notices()
    }

    /// Returns the current configuration as it changes.
    pub fn config(&self) -> watch::Receiver<Arc<Config>> {
        self.config.in_force.subscribe()
    }

    /// Stops accepting, lets answers finish briefly, ends the workers, gives the data folder back. Safe to call
    /// twice: both calls return once it is done.
    pub fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.server.shutdown(
            &self.config.queue,
            &self.config.supervisor,
            &self.admin.journal,
        ))
    }
}
