//! The services of a host that a test changes.

use serde_json::Value;
use std::{
    collections::BTreeMap,
    fs::File,
    io::Read,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};
use tempfile::TempDir;
use tierbar_core::{
    Code, Config, Error,
    config::McpServerConfig,
    documents::FileText,
    history::{History, Point},
    journal::Entry,
    lease::BoxFuture,
    paging::PagingStatus,
    policy::Stance,
    status::{GuardStatus, RefusedOrigin, Status},
};
use tierbar_inference::services::{SandboxPlace, Services};
use tierbar_measure::diagnosis::{HostFigures, MachineFigures};
use tokio::sync::{broadcast, watch};

#[derive(Debug)]
pub(super) struct Home {
    pub(super) folder: TempDir,
    pub(super) status: watch::Sender<Arc<Status>>,
    pub(super) log: broadcast::Sender<Entry>,
    pub(super) config: Arc<Mutex<Config>>,
}

impl Services for Home {
    fn status(&self) -> Arc<Status> {
        self.status.borrow().clone()
    }
    fn watch(&self) -> watch::Receiver<Arc<Status>> {
        self.status.subscribe()
    }
    fn history(&self, minutes: u64) -> BoxFuture<'_, Result<History, Error>> {
        let history = History {
            step_seconds: minutes,
            points: [60, 120]
                .map(|at| Point {
                    at,
                    ..Point::default()
                })
                .into(),
        };
        Box::pin(async move { Ok(history) })
    }
    fn paging(&self) -> BoxFuture<'_, PagingStatus> {
        Box::pin(async { PagingStatus::default() })
    }
    fn pause(&self, length: Option<Duration>) -> Arc<Status> {
        self.status.send_modify(|status| {
            let guard = &mut Arc::make_mut(status).guard;
            guard.stance = Stance::Paused;
            guard.why = Some(format!("{length:?}"));
        });
        self.status()
    }
    fn resume(&self) -> Arc<Status> {
        self.status
            .send_modify(|status| Arc::make_mut(status).guard = GuardStatus::default());
        self.status()
    }
    fn log(&self) -> broadcast::Receiver<Entry> {
        self.log.subscribe()
    }
    fn config(&self) -> Arc<Config> {
        Arc::new(self.config.lock().unwrap().clone())
    }
    fn config_path(&self) -> &Path {
        self.folder.path()
    }
    /// Fails for the MCP server `unwritable`.
    fn patch_config(&self, patch: Value) -> BoxFuture<'_, Result<Arc<Config>, Error>> {
        Box::pin(async move {
            if patch["mcp"].get("unwritable").is_some() {
                return Err(Error::new(Code::Storage, "the disk is full"));
            }
            let config = self.preview_config(patch).await?;
            *self.config.lock().unwrap() = Config::clone(&config);
            Ok(config)
        })
    }
    /// Of MCP servers alone; any other change is written down in its refusal.
    fn preview_config(&self, patch: Value) -> BoxFuture<'_, Result<Arc<Config>, Error>> {
        Box::pin(async move {
            let Some(servers) = patch.get("mcp") else {
                return Err(Error::new(Code::BadRequest, patch.to_string()));
            };
            let servers: BTreeMap<String, McpServerConfig> =
                serde_json::from_value(servers.clone()).unwrap();
            let mut config = self.config.lock().unwrap().clone();
            config.mcp.extend(servers);
            Ok(Arc::new(config))
        })
    }
    fn refuse_origin(&self, origin: &str) {
        self.status.send_modify(|status| {
            Arc::make_mut(status).refused_origins.push(RefusedOrigin {
                origin: origin.to_owned(),
                since_ms: 7,
            });
        });
    }
    fn set_origin(
        &self,
        origin: String,
        allowed: bool,
    ) -> BoxFuture<'_, Result<Arc<Config>, Error>> {
        self.status.send_modify(|status| {
            let refused = &mut Arc::make_mut(status).refused_origins;
            refused.retain(|refused| refused.origin != origin);
        });
        let origins = &mut self.config.lock().unwrap().allowed_origins;
        origins.retain(|other| *other != origin);
        origins.extend(Some(origin).filter(|_| allowed));
        let config = Config {
            allowed_origins: origins.clone(),
            ..Config::default()
        };
        Box::pin(async move { Ok(Arc::new(config)) })
    }
    fn found_clients(&self) -> BoxFuture<'_, Vec<&'static str>> {
        Box::pin(async { vec!["codex"] })
    }
    fn mcp_command(&self) -> BoxFuture<'_, Vec<String>> {
        Box::pin(async { vec!["/bin/tierbar".to_owned(), "mcp".to_owned()] })
    }
    fn sandbox(&self) -> Result<SandboxPlace, Error> {
        Ok(SandboxPlace {
            launcher: self.folder.path().join("tierbar-sandbox"),
            protected: vec![self.folder.path().to_owned()],
        })
    }
    /// Refuses what has a zero in it.
    fn read_file(&self, mut file: File, name: String) -> BoxFuture<'_, Result<FileText, Error>> {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        let text = format!("{name} of {} bytes", bytes.len());
        let read = match bytes.contains(&0) {
            true => Err(Error::new(Code::BadRequest, format!("{name} is no text"))),
            false => Ok(FileText {
                text,
                notice: Some("1 of 2 pages is damaged.".to_owned()),
            }),
        };
        Box::pin(async { read })
    }
    fn figures(&self) -> BoxFuture<'_, (MachineFigures, HostFigures)> {
        Box::pin(async { (MachineFigures::default(), HostFigures::default()) })
    }
}
