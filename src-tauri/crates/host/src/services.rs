//! What the host offers to the gateway's administration.

use crate::{
    HostKind, clients, documents::text, journal::Ledger, library::LocalModels,
    live_config::LiveConfig, paging, worker,
};
use serde_json::{Map, Value, json};
use std::{
    fs::File,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};
use tierbar_core::{
    Code, Config, Error, documents::FileText, history::History, journal::Entry, lease::BoxFuture,
    paging::PagingStatus, status::Status,
};
use tierbar_inference::services::{LARGEST_TEXT, SandboxPlace, Services};
use tierbar_measure::diagnosis::{HostFigures, MachineFigures};
use tokio::sync::{broadcast, watch};

/// Status, paging, configuration, event log and pause.
#[derive(Debug)]
pub(crate) struct Admin {
    pub(crate) config: Arc<LiveConfig>,
    pub(crate) journal: Arc<Ledger>,
    pub(crate) local: Arc<LocalModels>,
    pub(crate) kind: HostKind,
    pub(crate) begun: Instant,
}

impl Services for Admin {
    fn status(&self) -> Arc<Status> {
        self.config.board.now()
    }

    fn watch(&self) -> watch::Receiver<Arc<Status>> {
        self.config.board.watch()
    }

    fn history(&self, minutes: u64) -> BoxFuture<'_, Result<History, Error>> {
        Box::pin(self.config.board.past.last(minutes))
    }

    fn paging(&self) -> BoxFuture<'_, PagingStatus> {
        Box::pin(paging::read(&self.config))
    }

    fn log(&self) -> broadcast::Receiver<Entry> {
        self.journal.watch()
    }

    fn config(&self) -> Arc<Config> {
        self.config.get()
    }

    fn config_path(&self) -> &Path {
        self.config.file.path()
    }

    fn patch_config(&self, patch: Value) -> BoxFuture<'_, Result<Arc<Config>, Error>> {
        Box::pin(async move {
            let patch = partial(patch)?;
            self.config.change_config(|_| patch).await
        })
    }

    fn preview_config(&self, patch: Value) -> BoxFuture<'_, Result<Arc<Config>, Error>> {
        Box::pin(async move { self.config.preview_config(partial(patch)?).await })
    }

    fn refuse_origin(&self, origin: &str) {
        self.config.board.refuse_origin(origin);
    }

    fn set_origin(
        &self,
        origin: String,
        allowed: bool,
    ) -> BoxFuture<'_, Result<Arc<Config>, Error>> {
        Box::pin(async move {
            let changed = self.config.change_config(|config| {
                let mut origins = config.allowed_origins.clone();
                origins.retain(|other| *other != origin);
                if allowed {
                    origins.push(origin.clone());
                }
                Map::from_iter([("allowed_origins".to_owned(), json!(origins))])
            });
            let config = changed.await?;
            self.config.board.forget_origins(&[origin]);
            self.status();
            Ok(config)
        })
    }

    fn found_clients(&self) -> BoxFuture<'_, Vec<&'static str>> {
        Box::pin(async {
            let found = tokio::task::spawn_blocking(clients::installed_clients).await;
            found.unwrap_or_default()
        })
    }

    fn mcp_command(&self) -> BoxFuture<'_, Vec<String>> {
        let home = self.config.home().to_owned();
        Box::pin(async move {
            let command = tokio::task::spawn_blocking(move || clients::mcp_command(&home)).await;
            command.unwrap_or_default()
        })
    }

    fn pause(&self, length: Option<Duration>) -> Arc<Status> {
        self.config.memory_guard.pause(length);
        self.status()
    }

    fn resume(&self) -> Arc<Status> {
        self.config.memory_guard.resume();
        self.status()
    }

    fn sandbox(&self) -> Result<SandboxPlace, Error> {
        Ok(SandboxPlace {
            launcher: worker::find("sandbox", None)?,
            protected: vec![self.config.home().to_owned()],
        })
    }

    fn read_file(&self, file: File, name: String) -> BoxFuture<'_, Result<FileText, Error>> {
        Box::pin(async move { text::read_file(file, &name, LARGEST_TEXT).await })
    }

    fn figures(&self) -> BoxFuture<'_, (MachineFigures, HostFigures)> {
        Box::pin(self.read_figures())
    }
}

fn partial(config: Value) -> Result<Map<String, Value>, Error> {
    match config {
        Value::Object(config) => Ok(config),
        _ => Err(Error::new(
            Code::BadRequest,
            "a partial configuration must be a JSON object",
        )),
    }
}
