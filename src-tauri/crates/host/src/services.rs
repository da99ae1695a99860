//! What the host offers to the gateway, and the one place where a configuration takes effect.

use crate::{
    blocking::blocking,
    config::ConfigFile,
    conversations,
    folder::Folder,
    journal::Ledger,
    machine::ThisMachine,
    memory_guard::GuardRunner,
    models::{Models, refuse_new_commands},
    schedules::{self, Schedules},
    status::StatusBoard,
};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use std::{fmt, path::Path, sync::Arc, time::Duration};
use tierbar_core::{
    Code, Config, Error,
    catalog::{HubModel, HubRepository},
    config::TierConfig,
    download::DownloadStatus,
    fit::{LibraryModel, Verdict},
    history::History,
    journal::Entry,
    lease::BoxFuture,
    status::{Status, TierStatus},
};
use tierbar_fetch::Queue;
use tierbar_gateway::{
    CatalogAnswer, DownloadChange, FitQuestion, Listed, Pull, Services, SpeedMeter, Verified,
};
use tierbar_library::{LibraryWatch, hub::Resolver, model_id};
use tierbar_supervisor::{BegunLoad, Handle, TierSpec};
use tokio::{
    sync::{broadcast, watch},
    task::spawn_blocking,
};

type Raise = Arc<dyn Fn() + Send + Sync>;

pub(crate) struct Shared {
    pub(crate) folder: Folder,
    pub(crate) config: Arc<ConfigFile>,
    /// Set last, once a configuration has reached everybody.
    pub(crate) in_force: watch::Sender<Arc<Config>>,
    pub(crate) models: Arc<Models>,
    /// Follows the library of `models`.
    pub(crate) watch: Arc<LibraryWatch>,
    pub(crate) machine: Arc<ThisMachine>,
    pub(crate) resolver: Resolver,
    pub(crate) queue: Queue,
    pub(crate) speed: SpeedMeter,
    pub(crate) supervisor: Handle,
    pub(crate) memory_guard: Arc<GuardRunner>,
    /// The log of why: whatever decides something tells it.
    pub(crate) journal: Arc<Ledger>,
    pub(crate) board: StatusBoard,
    pub(crate) schedules: Arc<Schedules>,
    /// Shows the app's window, in an app.
    pub(crate) raise: Mutex<Option<Raise>>,
    /// What was configured when the host started: of some of it changes are told, and take effect at the next start.
    pub(crate) started_with: Arc<Config>,
    /// What the user should know of who can reach the server.
    pub(crate) reached: Option<String>,
    /// Changes are applied one after another.
    pub(crate) applying: tokio::sync::Mutex<()>,
    /// Why Tierbar does not act as Ollama although it is to.
    pub(crate) ollama: Mutex<Option<String>>,
    /// What is said of pins that cannot be kept.
    pub(crate) pins: Mutex<Option<String>>,
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
            self.watch.follow(self.models.library());
            let limits = &config.downloads;
            self.queue.configure(limits.rate_limit, limits.at_once);
            self.supervisor.set_rules(self.models.rules());
            self.memory_guard.reconsider();
            conversations::apply(&self.folder, &config.policy).await;
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

    /// Writes a change of the configuration, as it is at its turn, to the file, and applies it.
    pub(crate) async fn change_config(
        &self,
        change: impl FnOnce(&Config) -> Map<String, Value>,
    ) -> Result<Arc<Config>, Error> {
        let _turn = self.applying.lock().await;
        let config = Arc::clone(&self.config);
        let before = config.config();
        let patch = change(&before);
        let models = Arc::clone(&self.models);
        let check = move |changed: &Config| {
            refuse_new_commands(&before, changed)?;
            schedules::refuse_new(&before, changed)?;
            models.check_pins(changed)
        };
        let write = move || config.patch(&patch, check);
        blocking("writing config.toml", write).await?;
        self.apply().await;
        Ok(self.config.config())
    }

    /// Follows what appears and vanishes in the models' folders, until the host ends.
    pub(crate) async fn follow_models(&self) {
        let (mut scans, mut told) = (self.watch.snapshot(), self.queue.notices());
        let mut never_ended = self.supervisor.never_ended();
        loop {
            tokio::select! {
                changed = never_ended.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                changed = scans.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    scans.mark_unchanged();
                    // A name may mean another file now.
                    let _turn = self.applying.lock().await;
                    self.set_tiers().await;
                    self.board.models_changed();
                }
                changed = told.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
            }
            self.board.notice(self.notices(&self.models.config()));
        }
    }

    /// Tells the supervisor what each tier is, and which file its model's name means now.
    pub(crate) async fn set_tiers(&self) -> Vec<TierSpec> {
        let models = Arc::clone(&self.models);
        match spawn_blocking(move || models.tiers_and_notice()).await {
            Ok((tiers, notice)) => {
                *self.pins.lock() = notice;
                self.supervisor.set_tiers(tiers.clone());
                tiers
            }
            Err(ended) => {
                tracing::error!("looking for the tiers' models: {ended}");
                Vec::new()
            }
        }
    }

    pub(crate) fn say_of_ollama(&self, notice: Option<String>) {
        *self.ollama.lock() = notice;
        self.board.notice(self.notices(&self.models.config()));
    }

    pub(crate) fn notices(&self, config: &Config) -> Vec<String> {
        let mut notices = self.config.notices();
        if config.listen != self.started_with.listen {
            notices.push(format!(
                "Tierbar listens on {} from its next start on",
                config.listen
            ));
        }
        let tls = |config: &Config| {
            let server = &config.server;
            (server.tls, server.certificate.clone(), server.key.clone())
        };
        if tls(config) != tls(&self.started_with) {
            notices.push("Changes of TLS take effect at Tierbar's next start".to_owned());
        }
        notices.extend(self.reached.clone());
        notices.extend(self.unwatched.clone());
        notices.extend(self.ollama.lock().clone());
        notices.extend(self.pins.lock().clone());
        notices.extend(self.schedules.notices());
        let never_ended = self.supervisor.never_ended();
        let told = |load: &BegunLoad| never_ended_notice(load, config);
        notices.extend(never_ended.borrow().iter().filter_map(told));
        notices.extend(self.queue.notices().borrow().iter().cloned());
        if let Some(scan) = &*self.watch.snapshot().borrow() {
            notices.extend(scan.notices.iter().cloned());
        }
        notices
    }
}

/// What is said of a load during which a host has died, while a tier has its model.
fn never_ended_notice(load: &BegunLoad, config: &Config) -> Option<String> {
    let BegunLoad { tier, model, at } = load;
    let has_it = |tier: &TierConfig| model_id(tier.model.trim()) == *model;
    config.tiers.values().find(|tier| has_it(tier))?;
    let when = i64::try_from(*at).ok().and_then(|at| {
        let at = jiff::Timestamp::from_second(at).ok()?;
        let at = at.to_zoned(jiff::tz::TimeZone::system());
        Some(at.strftime("on %-d %B %Y at %H:%M").to_string())
    });
    let when = when.unwrap_or_else(|| "before".to_owned());
    Some(format!(
        "Tierbar or this computer stopped {when}, while {model} was being loaded for {tier}: it is no longer loaded by itself, \
         until a load of it succeeds. Start {tier} to try it; if that ends the same way, choose a smaller model or a smaller context"
    ))
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

    fn history(&self, minutes: u64) -> BoxFuture<'_, Result<History, Error>> {
        Box::pin(self.board.history(minutes))
    }

    fn log(&self) -> broadcast::Receiver<Entry> {
        self.journal.watch()
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
            self.change_config(|_| patch).await
        })
    }

    fn pause(&self, length: Option<Duration>) -> Arc<Status> {
        self.memory_guard.pause(length);
        self.board.now()
    }

    fn resume(&self) -> Arc<Status> {
        self.memory_guard.resume();
        self.board.now()
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

impl tierbar_gateway::Models for Shared {
    fn list(&self) -> BoxFuture<'_, Result<Listed, Error>> {
        Box::pin(self.listed())
    }

    fn fit(&self, question: FitQuestion) -> BoxFuture<'_, Result<Verdict, Error>> {
        Box::pin(self.judged(question))
    }

    fn remove(&self, model: String, permanently: bool) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(self.removed(model, permanently))
    }

    fn verify(&self, model: String) -> BoxFuture<'_, Result<Verified, Error>> {
        Box::pin(self.verified(model))
    }

    fn import(&self, path: String) -> BoxFuture<'_, Result<Vec<LibraryModel>, Error>> {
        Box::pin(self.imported(path))
    }

    fn catalog(&self) -> BoxFuture<'_, Result<CatalogAnswer, Error>> {
        Box::pin(self.catalogued())
    }

    fn search(&self, words: String) -> BoxFuture<'_, Result<Vec<HubModel>, Error>> {
        Box::pin(self.found(words))
    }

    fn repository(&self, id: String) -> BoxFuture<'_, Result<HubRepository, Error>> {
        Box::pin(self.offered(id))
    }

    fn downloads(&self) -> Vec<DownloadStatus> {
        self.queue.watch().borrow().to_vec()
    }

    fn download(&self, pull: Pull) -> BoxFuture<'_, Result<(DownloadStatus, bool), Error>> {
        Box::pin(self.pulled(pull))
    }

    fn change_download(
        &self,
        id: String,
        change: DownloadChange,
    ) -> BoxFuture<'_, Result<DownloadStatus, Error>> {
        Box::pin(self.changed(id, change))
    }

    fn remove_download(&self, id: String) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move { self.queue.remove(&id).await })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_core::{ModelId, TierId};

    #[test]
    fn a_load_that_never_ended_is_told_while_a_tier_has_its_model() {
        let load = BegunLoad {
            tier: TierId::new("heavy").unwrap(),
            model: ModelId("big".to_owned()),
            at: 1_790_000_000,
        };
        let told = |toml: &str| never_ended_notice(&load, &toml::from_str(toml).unwrap());
        let said = told("[tiers.heavy]\nmodel = \"big.gguf\"\n").unwrap();
        assert!(
            said.starts_with("Tierbar or this computer stopped on ")
                && said.contains(" September 2026 at "),
            "{said}"
        );
        assert!(
            said.contains("while big was being loaded for heavy"),
            "{said}"
        );
        assert_eq!(told("[tiers.heavy]\nmodel = \"small.gguf\"\n"), None);
    }
}
