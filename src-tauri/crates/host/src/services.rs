//! What the host offers to the gateway, and the one place where a configuration takes effect.

use crate::{board::Board, config::ConfigFile, folder::Folder, models::Models};
use parking_lot::Mutex;
use serde_json::Value;
use std::{fmt, path::Path, sync::Arc};
use tierbar_core::{
    Code, Config, Error,
    lease::BoxFuture,
    status::{Status, TierStatus},
};
use tierbar_gateway::Services;
use tierbar_library::Library;
use tierbar_supervisor::{Handle, TierSpec};
use tokio::{sync::watch, task::spawn_blocking};

type Raise = Arc<dyn Fn() + Send + Sync>;

pub(crate) struct Shared {
    pub(crate) folder: Folder,
    pub(crate) config: Arc<ConfigFile>,
    /// Set last, once a configuration has reached everybody.
    pub(crate) in_force: watch::Sender<Arc<Config>>,
    pub(crate) models: Arc<Models>,
    pub(crate) supervisor: Handle,
    pub(crate) board: Board,
    /// Shows the app's window, in an app.
    pub(crate) raise: Mutex<Option<Raise>>,
    /// The address that was configured when the host started, which is the one that is told as changed.
    pub(crate) started_with: String,
    /// Changes are applied one after another.
    pub(crate) applying: tokio::sync::Mutex<()>,
    /// Why changes of the file are not noticed, if they are not.
    pub(crate) unwatched: Option<String>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

impl Shared {
    pub(crate) fn home(&self) -> &Path {
        self.folder.home()
    }

    /// Takes over what has been written to the file by hand.
    pub(crate) async fn reload(&self) {
        let _turn = self.applying.lock().await;
        let config = Arc::clone(&self.config);
        if spawn_blocking(move || config.reload())
            .await
            .unwrap_or(false)
        {
            self.apply().await;
        }
    }

    /// Lets the configuration in the file take effect, and returns when the tiers show it.
    async fn apply(&self) {
        let config = self.config.config();
        if **self.in_force.borrow() != *config {
            let before = self.models.budget();
            self.models.configure(Arc::clone(&config));
            let tiers = self.set_tiers().await;
            if self.models.budget() != before {
                self.supervisor.set_budget(self.models.budget());
            }
            // The router chooses by what the tiers show. An error means that the owner is ending.
            let _ = self
                .supervisor
                .watch()
                .wait_for(|shown| shows(shown, &tiers))
                .await;
            tracing::info!("the configuration has changed");
        }
        self.board.notice(self.notices(&config));
        self.in_force.send_replace(config);
    }

    /// Tells the supervisor what each tier is, and which file its model's name means now.
    async fn set_tiers(&self) -> Vec<TierSpec> {
        let models = Arc::clone(&self.models);
        match spawn_blocking(move || models.tiers()).await {
            Ok(tiers) => {
                self.supervisor.set_tiers(tiers.clone());
                tiers
            }
            Err(ended) => {
                tracing::error!("looking for the tiers' models: {ended}");
                Vec::new()
            }
        }
    }

    pub(crate) fn notices(&self, config: &Config) -> Vec<String> {
        let mut notices = self.config.notices();
        if config.listen != self.started_with {
            notices.push(format!(
                "Tierbar listens on {} from its next start on",
                config.listen
            ));
        }
        notices.extend(self.unwatched.clone());
        notices
    }
}

/// Whether the tiers are the configured ones, but for those that only finish their answers.
fn shows(shown: &[TierStatus], configured: &[TierSpec]) -> bool {
    let is_shown = |spec: &TierSpec| {
        shown
            .iter()
            .any(|tier| tier.id == spec.id && tier.model == spec.model)
    };
    let is_configured =
        |tier: &TierStatus| tier.pid.is_some() || configured.iter().any(|spec| spec.id == tier.id);
    configured.iter().all(is_shown) && shown.iter().all(is_configured)
}

impl Services for Shared {
    fn status(&self) -> Arc<Status> {
        self.board.now()
    }

    fn watch(&self) -> watch::Receiver<Arc<Status>> {
        self.board.watch()
    }

    fn config(&self) -> Arc<Config> {
        Arc::clone(&self.in_force.borrow())
    }

    fn config_path(&self) -> &Path {
        self.config.path()
    }

    fn patch_config(&self, patch: Value) -> BoxFuture<'_, Result<Arc<Config>, Error>> {
        Box::pin(async move {
            let Value::Object(patch) = patch else {
                return Err(Error::new(
                    Code::BadRequest,
                    "a partial configuration is a JSON object",
                ));
            };
            let _turn = self.applying.lock().await;
            let config = Arc::clone(&self.config);
            let written = spawn_blocking(move || config.patch(&patch)).await;
            written.unwrap_or_else(|ended| {
                Err(Error::new(
                    Code::Internal,
                    format!("writing config.toml: {ended}"),
                ))
            })?;
            self.apply().await;
            Ok(self.config.config())
        })
    }

    fn library(&self) -> Arc<Library> {
        self.models.library()
    }

    fn raise(&self) -> bool {
        // Called without the lock: what it shows may ask us something.
        let raise = self.raise.lock().clone();
        raise.is_some_and(|raise| {
            raise();
            true
        })
    }
}
