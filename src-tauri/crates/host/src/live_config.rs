//! The current configuration: the one place where a change takes effect.

use crate::{
    config::{ConfigFile, ConfigWatch},
    folder::Folder,
    memory_guard::GuardRunner,
    models::{Models, Trial, refuse_new_commands},
    notices::{Notices, Topic},
    schedules,
    status::StatusBoard,
};
use serde_json::{Map, Value};
use std::{path::Path, sync::Arc};
use tierbar_core::{Config, Error, TierId, lease::Tiers, status::TierStatus};
use tierbar_fetch::{Queue, blocking};
use tierbar_library::LibraryWatch;
use tierbar_supervisor::{Handle, TierSpec};
use tokio::{
    sync::{Mutex, watch},
    task::spawn_blocking,
};
use tokio_util::sync::CancellationToken;

/// Applies `config.toml` to every part of the host, and so holds them.
#[derive(Debug)]
pub(crate) struct LiveConfig {
    pub(crate) folder: Folder,
    pub(crate) file: Arc<ConfigFile>,
    /// Set last, once a configuration has reached every part.
    pub(crate) in_force: watch::Sender<Arc<Config>>,
    pub(crate) models: Arc<Models>,
    /// Follows the library of `models`.
    pub(crate) watch: Arc<LibraryWatch>,
    pub(crate) queue: Queue,
    pub(crate) supervisor: Handle,
    pub(crate) memory_guard: Arc<GuardRunner>,
    pub(crate) board: Arc<StatusBoard>,
    pub(crate) notices: Notices,
    /// Changes are applied one after another.
    pub(crate) applying: Mutex<()>,
}

impl LiveConfig {
    pub(crate) fn home(&self) -> &Path {
        self.folder.home()
    }

    pub(crate) fn get(&self) -> Arc<Config> {
        Arc::clone(&self.in_force.borrow())
    }

    /// Applies changes made to the file by hand, until `closing`.
    pub(crate) async fn follow_file(
        self: Arc<Self>,
        watching: ConfigWatch,
        closing: CancellationToken,
    ) {
        loop {
            tokio::select! {
                () = closing.cancelled() => return,
                () = watching.next() => self.reload().await,
            }
        }
    }

    /// Applies a change of the file by hand.
    async fn reload(&self) {
        let _turn = self.applying.lock().await;
        let config = Arc::clone(&self.file);
        if spawn_blocking(move || config.reload())
            .await
            .unwrap_or(false)
        {
            self.apply().await;
        }
    }

    /// Applies the configuration of the file, and returns when the tiers show it.
    async fn apply(&self) {
        let config = self.file.config();
        let changed = **self.in_force.borrow() != *config;
        if changed {
            let before = self.models.budget();
            self.models.configure(Arc::clone(&config));
            self.watch.follow(self.models.library());
            let limits = &config.downloads;
            self.queue.configure(limits.rate_limit, limits.at_once);
            self.supervisor.set_rules(self.models.rules());
            self.memory_guard.reconsider();
            self.folder.apply_conversations(&config.policy).await;
            let tiers = self.set_tiers().await;
            if self.models.budget() != before {
                self.supervisor.set_budget(self.models.budget());
            }
            // The router uses the shown tiers. An error means that the owner is ending.
            let _ = self
                .supervisor
                .watch()
                .wait_for(|shown| shows(shown, &tiers))
                .await;
            tracing::info!("the configuration has changed");
        }
        self.publish_notices(&config);
        self.in_force.send_replace(config);
        if changed {
            self.board.config_changed();
        }
    }

    /// Writes a change to the file when its turn comes, and applies it.
    pub(crate) async fn change_config(
        &self,
        change: impl FnOnce(&Config) -> Map<String, Value>,
    ) -> Result<Arc<Config>, Error> {
        let _turn = self.applying.lock().await;
        let config = Arc::clone(&self.file);
        let before = config.config();
        let patch = change(&before);
        let check = self.check_of(before);
        let write = move || config.patch(&patch, check);
        blocking("writing config.toml", write).await?;
        self.apply().await;
        Ok(self.file.config())
    }

    /// Returns the configuration as a change would leave it, which is not made.
    pub(crate) async fn preview_config(
        &self,
        patch: Map<String, Value>,
    ) -> Result<Arc<Config>, Error> {
        let config = Arc::clone(&self.file);
        let check = self.check_of(config.config());
        blocking("reading config.toml", move || config.preview(&patch, check)).await
    }

    /// What a change by the API must keep to.
    fn check_of(&self, before: Arc<Config>) -> impl FnOnce(&Config) -> Result<(), Error> + use<> {
        let models = Arc::clone(&self.models);
        move |changed: &Config| {
            refuse_new_commands(&before, changed)?;
            schedules::check_changes(&before, changed)?;
            models.check_pins(changed)
        }
    }

    /// Follows changes in the models' folders, until `closing`.
    pub(crate) async fn follow_models(self: Arc<Self>, closing: CancellationToken) {
        let (mut scans, mut downloads) = (self.watch.snapshot(), self.queue.notices());
        let mut never_ended = self.supervisor.never_ended();
        loop {
            tokio::select! {
                () = closing.cancelled() => return,
                Ok(()) = never_ended.changed() => {}
                Ok(()) = downloads.changed() => {}
                Ok(()) = scans.changed() => {
                    scans.mark_unchanged();
                    // A name may now mean another file.
                    let _turn = self.applying.lock().await;
                    self.set_tiers().await;
                    self.board.models_changed();
                }
            }
            self.publish_notices(&self.models.config());
        }
    }

    /// Passes the tiers to the supervisor, with the file that each model's name means now.
    async fn set_tiers(&self) -> Vec<TierSpec> {
        let models = Arc::clone(&self.models);
        match spawn_blocking(move || models.tiers_and_notice()).await {
            Ok((tiers, notice)) => {
                self.notices.set(Topic::Pins, Vec::from_iter(notice));
                self.supervisor.set_tiers(tiers.clone());
                tiers
            }
            Err(ended) => {
                tracing::error!("looking for the tiers' models: {ended}");
                Vec::new()
            }
        }
    }

    pub(crate) fn publish_notices(&self, config: &Config) {
        self.board.forget_origins(&config.allowed_origins);
        self.board.notice(self.notices.collect(self, config));
    }

    /// Publishes the notices of a topic in place of its last ones.
    pub(crate) fn report(&self, topic: Topic, notices: Vec<String>) {
        if self.notices.set(topic, notices) {
            self.publish_notices(&self.models.config());
        }
    }

    /// Gives the tier settings that are in no configuration, until [`Self::end_trial`].
    pub(crate) async fn begin_trial(&self, tier: &TierId, trial: Trial) {
        let _turn = self.applying.lock().await;
        self.models.set_trial(Some((tier.clone(), trial)));
        self.set_tiers().await;
    }

    /// Gives the tier its configured settings again.
    pub(crate) async fn end_trial(&self, tier: &TierId) {
        {
            let _turn = self.applying.lock().await;
            if !self.models.set_trial(None) {
                return;
            }
            self.set_tiers().await;
        }
        // The last candidate must not stay in memory. If another tier has replaced it, it is already gone.
        let status = self.supervisor.snapshot();
        let loaded = status
            .iter()
            .any(|status| status.id == *tier && status.state.holds_memory());
        if loaded {
            let (supervisor, tier) = (self.supervisor.clone(), tier.clone());
            tokio::spawn(async move {
                if let Err(error) = supervisor.start(&tier).await {
                    tracing::info!(%tier, "not loaded again: {error}");
                }
            });
        }
    }
}

/// Returns whether the tiers are the configured ones, except those that are finishing their answers.
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
