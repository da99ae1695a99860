//! Puts the parts together: one host per data folder, in the app or under `tierbar serve`.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};
use tierbar_core::{Config, Error, lease::Tiers, status::Status};
use tokio::sync::watch;

/// What runs a host; told to a second one that wants the same data folder.
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

/// How to start a host. Every `None` takes the configured or usual value.
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
#[derive(Debug, Clone)]
pub struct Host(Arc<()>);

impl Host {
    /// Starts the API and returns once it listens.
    pub async fn start(options: HostOptions) -> Result<Self, Error> {
        let _ = options;
        Ok(Self(Arc::new(())))
    }
    /// Base address of the API, such as `http://127.0.0.1:11435`.
    #[must_use]
    pub fn url(&self) -> &str {
        ""
    }
    #[must_use]
    pub fn token(&self) -> &str {
        ""
    }
    #[must_use]
    pub fn token_file(&self) -> &Path {
        Path::new("")
    }
    /// The data folder.
    #[must_use]
    pub fn home(&self) -> &Path {
        Path::new("")
    }
    /// The status as it changes. While a receiver lives, readings are taken every second.
    #[must_use]
    pub fn status(&self) -> watch::Receiver<Arc<Status>> {
        loop {}
    }
    #[must_use]
    pub fn tiers(&self) -> Arc<dyn Tiers> {
        loop {}
    }
    #[must_use]
    pub fn config(&self) -> watch::Receiver<Arc<Config>> {
        loop {}
    }
    /// Called when somebody asks the app to show its chat window (`POST /tierbar/v1/raise`).
    pub fn on_raise(&self, raise: impl Fn() + Send + Sync + 'static) {
        let _ = raise;
    }
    /// Stops accepting, lets answers finish briefly, ends the workers. Safe to call twice.
    pub async fn shutdown(&self) {}
}

/// The data folder that is used when none is given: `TIERBAR_HOME`, else the system's usual place. For the shell, which
/// shows it when the host could not start.
#[must_use]
pub fn data_folder() -> PathBuf {
    PathBuf::new()
}

/// A host that owns a data folder now.
#[derive(Debug, Clone)]
pub struct Running {
    pub pid: u32,
    pub url: String,
    pub token: String,
    pub kind: HostKind,
}

/// The host that owns the data folder `home` (the usual one if `None`), if one runs.
#[must_use]
pub fn running(home: Option<&Path>) -> Option<Running> {
    let _ = home;
    None
}

impl Running {
    /// Asks the app to show its chat window.
    ///
    /// # Errors
    /// `NotFound` if the host has no windows.
    pub async fn raise(&self) -> Result<(), Error> {
        Ok(())
    }
}
