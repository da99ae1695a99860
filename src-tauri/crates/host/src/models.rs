//! What each tier would load, for the supervisor.

mod foreign;
mod load;
mod pins;

pub(crate) use foreign::{not_measured, refuse_new_commands};
pub(crate) use load::{companion_models, draft_model};

use crate::folder::{Folder, path_variable};
use load::load;
use parking_lot::{Mutex, RwLock};
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tierbar_core::{
    Code, Config, Error, Modality, ModelKind, TierId, TierKind,
    budget::{Budget, EMBEDDER, EMBEDDER_SLOT, Placement},
    config::{Engine, Paging, TierConfig},
    fit::{Machine, gpu_share, settle},
    lease::BoxFuture,
};
use tierbar_fetch::blocking;
use tierbar_library::{Entry, Library, LibraryOptions, catalog::catalog, model_id, modified_at};
use tierbar_measure::{bench::Settings, tune::Limits};
use tierbar_supervisor::{LoadSettings, LoadSpec, ModelSource, Rules, TierSpec};

/// The configured models. The configuration and its library change together.
#[derive(Debug)]
pub(crate) struct Models {
    folder: Folder,
    machine: Machine,
    current: RwLock<ModelsState>,
    /// What generative plans leave to the embedder's slot, as the tiers were last looked for.
    embedder_bytes: AtomicU64,
    /// When each file had been changed last when it was last loaded: a worker keeps one that is replaced.
    loaded: Arc<Mutex<HashMap<PathBuf, Option<u64>>>>,
}

#[derive(Debug, Clone)]
struct ModelsState {
    config: Arc<Config>,
    library: Arc<Library>,
    /// Trial settings of a tier, in place of its configured ones.
    trial: Option<(TierId, Trial)>,
    /// Tiers as they were configured, and what came of them while their models could be read: a loaded model does not change
    /// when its disk is disconnected.
    known: Arc<Mutex<Vec<(TierConfig, TierConfig)>>>,
}

/// More tiers than any real configuration has.
const MOST_KNOWN: usize = 64;

/// What a measurement tries in place of a tier's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trial {
    Settings(Settings),
    Paging(Paging),
}

impl Trial {
    fn on(self, tier: TierConfig) -> TierConfig {
        match self {
            Self::Settings(settings) => settings.on(tier),
            Self::Paging(paging) => TierConfig { paging, ..tier },
        }
    }
}

impl ModelsState {
    /// Returns the tier as it is to be loaded. Blocking: it reads the model's header.
    fn tier(&self, id: &TierId, machine: &Machine) -> Option<TierConfig> {
        let tier = self.settled(self.config.tiers.get(id)?, machine);
        Some(match &self.trial {
            Some((tried, trial)) if tried == id => trial.on(tier),
            _ => tier,
        })
    }

    /// Returns the tier with what its model gets in place of `auto`; as it last was if the model cannot be read now.
    fn settled(&self, tier: &TierConfig, machine: &Machine) -> TierConfig {
        let name = tier.model.trim();
        if tier.foreign_model().is_some() || name.is_empty() {
            return tier.clone();
        }
        let account = self
            .library
            .resolve(name)
            .and_then(|path| Ok((self.library.account(&path)?, path)));
        let mut known = self.known.lock();
        let at = known.iter().position(|(before, _)| before == tier);
        let Ok((account, path)) = account else {
            return at.map_or_else(|| tier.clone(), |at| known[at].1.clone());
        };
        let projector = self.library.projector(&path, &account);
        let draft = draft_model(tier, &self.library).ok().flatten();
        let draft = draft.as_ref().map(|(_, account)| account);
        let beside = companion_models(projector.as_ref(), draft);
        let settled = settle(tier, &account, beside, machine);
        if let Some(at) = at {
            known.remove(at);
        }
        known.insert(0, (tier.clone(), settled.clone()));
        known.truncate(MOST_KNOWN);
        settled
    }

    /// Returns what a generative plan leaves to the slot: what the models there need together, or room for one to come.
    fn embedder_bytes(&self, machine: &Machine) -> u64 {
        let tiers = self.config.tiers.keys();
        let plans = tiers.filter_map(|id| {
            let tier = self.tier(id, machine)?;
            let named = foreign::kind(id) != ModelKind::Chat;
            let path = self.library.resolve(&tier.model).ok();
            if !named && kind(id, &self.library, path.as_deref()) == ModelKind::Chat {
                return None;
            }
            Some(load(id, &tier, &self.library, machine).ok()?.plan)
        });
        let in_slot = plans.filter(|plan| plan.kind == TierKind::Embedder);
        let bytes = in_slot.fold(0, |sum: u64, plan| sum.saturating_add(plan.total_bytes()));
        bytes.clamp(EMBEDDER, EMBEDDER_SLOT)
    }
}

/// Returns what the tier's model is for: what its header says, and of a chat model that it embeds in the tier for that.
fn kind(tier: &TierId, library: &Library, path: Option<&Path>) -> ModelKind {
    let named = foreign::kind(tier);
    match path.map(|path| library.account(path)) {
        None | Some(Err(_)) => named,
        Some(Ok(account)) if account.kind != ModelKind::Chat => account.kind,
        Some(Ok(_)) if named == ModelKind::Reranking => ModelKind::Chat,
        Some(Ok(_)) => named,
    }
}

impl Models {
    pub(crate) fn new(folder: Folder, machine: Machine, config: Arc<Config>) -> Self {
        let library = Arc::new(Library::new(options(&folder, &config)));
        Self {
            folder,
            machine,
            current: RwLock::new(ModelsState {
                config,
                library,
                trial: None,
                known: Arc::default(),
            }),
            embedder_bytes: AtomicU64::new(EMBEDDER),
            loaded: Arc::default(),
        }
    }

    /// Whether the file of a model has been replaced since it was last loaded.
    pub(crate) fn is_replaced(&self, entry: &Entry) -> bool {
        let loaded = self.loaded.lock();
        let then = loaded.get(&entry.path);
        then.is_some_and(|then| *then != entry.modified)
    }

    pub(crate) fn embedder_bytes(&self) -> u64 {
        self.embedder_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn configure(&self, config: Arc<Config>) {
        let options = options(&self.folder, &config);
        let mut current = self.current.write();
        current.library = library_with(&current.library, options);
        current.config = config;
    }

    /// Sets or ends a trial of a tier; returns whether there was one.
    pub(crate) fn set_trial(&self, trial: Option<(TierId, Trial)>) -> bool {
        std::mem::replace(&mut self.current.write().trial, trial).is_some()
    }

    pub(crate) fn library(&self) -> Arc<Library> {
        Arc::clone(&self.current.read().library)
    }

    /// Returns the configuration of the library.
    pub(crate) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.current.read().config)
    }

    pub(crate) fn rules(&self) -> Rules {
        let policy = &self.current.read().config.policy;
        Rules {
            patience: policy.patience.0,
            home: TierId::new(&policy.home).ok(),
            step_down: policy.step_down,
            conversations_mib: policy.conversations(),
        }
    }

    pub(crate) fn budget(&self) -> Budget {
        self.machine().budget()
    }

    /// Returns the tier as it is configured, with what its model gets in place of `auto`. Blocking: it reads the model's header.
    pub(crate) fn settled(&self, tier: &TierConfig) -> TierConfig {
        let current = self.current.read().clone();
        current.settled(tier, &self.machine())
    }

    /// Returns how a tier's model would be held with another way to page it. Blocking.
    ///
    /// # Errors
    /// Those of a load.
    pub(crate) fn placement(&self, tier: &TierId, paging: Paging) -> Result<Placement, Error> {
        let (current, machine) = (self.current.read().clone(), self.machine());
        let config = current
            .tier(tier, &machine)
            .ok_or_else(|| no_longer(tier))?;
        let config = Trial::Paging(paging).on(config);
        Ok(load(tier, &config, &current.library, &machine)?
            .plan
            .placement)
    }

    /// Returns the machine with the configured limit; a load does not depend on bandwidths.
    fn machine(&self) -> Machine {
        self.machine_of(&self.current.read().config)
    }

    fn machine_of(&self, config: &Config) -> Machine {
        Machine {
            max_loaded: config.policy.max_loaded,
            embedder_bytes: self.embedder_bytes(),
            ..self.machine
        }
    }

    /// Finds the model of the first of these tiers that has a file; `None` if that is not in the library. Blocking: it lists the models.
    pub(crate) fn find_entry(
        &self,
        is_wanted: impl Fn(&TierSpec) -> bool,
    ) -> Result<Option<Entry>, Error> {
        let mut wanted = self.tiers().into_iter().filter(is_wanted);
        let Some(path) = wanted.find_map(|spec| spec.path) else {
            return Ok(None);
        };
        let mut entries = self.library().list()?.into_iter();
        Ok(entries.find(|entry| entry.path == path))
    }

    /// Returns the tiers in reading order. Blocking: it looks for their files.
    pub(crate) fn tiers(&self) -> Vec<TierSpec> {
        self.tiers_and_notice().0
    }

    /// Returns the tiers without pins that do not fit, and a notice about those. Blocking.
    pub(crate) fn tiers_and_notice(&self) -> (Vec<TierSpec>, Option<String>) {
        let current = self.current.read().clone();
        let slot = current.embedder_bytes(&self.machine_of(&current.config));
        self.embedder_bytes.store(slot, Ordering::Relaxed);
        let machine = self.machine_of(&current.config);
        let pins = pins::pins_that_fit(&current.config, &current.library, &machine);
        let notice = pins::too_many(&pins, &machine.budget()).map(|error| error.to_string());
        let spec = |id: &TierId| {
            let config = current.tier(id, &machine)?;
            let foreign = config.foreign_model();
            let settings = LoadSettings::from(&config);
            let model = config.model.trim();
            let draft_model = config.draft_model.trim();
            let (remote_model, model, path) = match foreign {
                Some((remote, model)) => (remote, Some(model), None),
                None if model.is_empty() => (None, None, None),
                None => (
                    None,
                    Some(model_id(model)),
                    current.library.resolve(model).ok(),
                ),
            };
            let (projector, input_modalities) = match &path {
                Some(path) => media(&current.library, path),
                None => (None, Vec::new()),
            };
            let kind = kind(id, &current.library, path.as_deref());
            let aliases = model.as_ref().filter(|_| remote_model.is_none());
            let aliases = aliases.map_or_else(Vec::new, |model| catalog().names_of(model));
            Some(TierSpec {
                id: id.clone(),
                engine: config.engine,
                model,
                aliases,
                kind,
                remote_model,
                path,
                projector,
                input_modalities,
                settings,
                draft_model: (!draft_model.is_empty()).then(|| model_id(draft_model)),
                keep: config.idle_unload.keep(),
                pinned: config.pinned && pins.held.contains(id),
            })
        };
        let order = current.config.tier_order();
        (order.into_iter().filter_map(spec).collect(), notice)
    }

    /// Checks that the tier has a model of ours that generates text. Blocking: it reads the model's header.
    ///
    /// # Errors
    /// `BadRequest` if there is nothing to measure.
    pub(crate) fn check_measured(&self, tier: &TierId, config: &TierConfig) -> Result<(), Error> {
        if config.engine != Engine::Embedded {
            return Err(not_measured(tier));
        }
        let library = self.library();
        let path = library.resolve(&config.model).ok();
        let does = match kind(tier, &library, path.as_deref()) {
            ModelKind::Chat => return Ok(()),
            ModelKind::Embedding => "embeds",
            ModelKind::Reranking => "ranks",
        };
        let what = format!("Tierbar measures tiers that generate text, and {tier} {does} texts");
        Err(Error::new(Code::BadRequest, what).hint("measure a tier with a chat model"))
    }

    /// Returns what a tune can try with the tier's model on this machine, and its context. Blocking: it reads the model.
    ///
    /// # Errors
    /// Those of loading it.
    pub(crate) fn limits(&self, tier: &TierId) -> Result<(Limits, u32), Error> {
        let (current, machine) = (self.current.read().clone(), self.machine());
        let config = current
            .tier(tier, &machine)
            .ok_or_else(|| no_longer(tier))?;
        self.check_measured(tier, &config)?;
        let free = TierConfig {
            gpu_layers: None,
            ..config
        };
        let load = load(tier, &free, &current.library, &machine)?;
        let account = current.library.account(&load.path)?;
        let (kv_cache, batch) = (load.settings.kv_cache, load.settings.batch);
        let share = machine
            .gpu_limit
            .map(|limit| gpu_share(&account, &load.plan, kv_cache, batch, limit));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let limits = Limits {
            cores: u16::try_from(cores).unwrap_or(u16::MAX),
            gpu_layers: share.map(|share| share.layers),
            gpu_holds_all: share.is_some_and(|share| share.fewer_layers().is_none()),
        };
        Ok((limits, load.settings.context))
    }
}

/// Returns the model's usable projector, and what it takes.
fn media(library: &Library, model: &Path) -> (Option<PathBuf>, Vec<Modality>) {
    let Ok(account) = library.account(model) else {
        return (None, Vec::new());
    };
    match library.projector(model, &account) {
        Some(projector) if projector.account.is_ok() => {
            let modalities = projector.input_modalities();
            (Some(projector.path), modalities)
        }
        _ => (None, vec![Modality::Text]),
    }
}

/// Returns the library with these options; the same one if it has them.
fn library_with(library: &Arc<Library>, options: LibraryOptions) -> Arc<Library> {
    match *library.options() == options {
        true => Arc::clone(library),
        false => Arc::new(library.with(options)),
    }
}

pub(crate) fn options(folder: &Folder, config: &Config) -> LibraryOptions {
    let home = path_variable("HOME").unwrap_or_default();
    LibraryOptions::new(
        folder.models_dir(&config.models_dir),
        &config.library,
        &home,
    )
}

impl ModelSource for Models {
    fn prepare(&self, tier: &TierId) -> BoxFuture<'_, Result<LoadSpec, Error>> {
        let current = self.current.read().clone();
        let (tier, machine) = (tier.clone(), self.machine());
        let loaded = Arc::clone(&self.loaded);
        let work = move || {
            let config = current
                .tier(&tier, &machine)
                .ok_or_else(|| no_longer(&tier))?;
            load(&tier, &config, &current.library, &machine).inspect(|spec| {
                let modified = modified_at(&spec.path);
                loaded.lock().insert(spec.path.clone(), modified);
            })
        };
        Box::pin(blocking("reading the model", work))
    }
}

fn no_longer(tier: &TierId) -> Error {
    let message = format!("the tier \"{tier}\" no longer exists");
    Error::new(Code::TierUnknown, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn models(toml: &str) -> (tempfile::TempDir, Models) {
        let home = tempfile::tempdir().unwrap();
        let folder = Folder::open(Some(home.path().to_owned())).unwrap();
        let config = Arc::new(toml::from_str(toml).unwrap());
        (
            home,
            Models::new(folder, Machine::new(16 << 30, None), config),
        )
    }

    #[test]
    fn a_file_counts_as_replaced_only_if_it_was_loaded_before() {
        let (_home, models) = models("");
        let entry = |name: &str, modified| Entry {
            id: tierbar_core::ModelId(name.to_owned()),
            path: PathBuf::from(name),
            parts: Vec::new(),
            size_bytes: 1,
            modified,
            keeper: tierbar_core::fit::Keeper::Tierbar,
            projector: None,
            record: None,
            account: Err(Error::new(Code::ModelInvalid, "empty")),
        };
        models.loaded.lock().insert("a.gguf".into(), Some(1));
        for (name, modified, is_replaced) in [
            ("a.gguf", Some(1), false),
            ("a.gguf", Some(2), true),
            ("b.gguf", Some(2), false),
        ] {
            let entry = entry(name, modified);
            assert_eq!(models.is_replaced(&entry), is_replaced, "{entry:?}");
        }
    }

    async fn refused(models: &Models, tier: &str) -> Error {
        models
            .prepare(&TierId::new(tier).unwrap())
            .await
            .unwrap_err()
    }

    #[tokio::test]
    async fn a_tier_that_cannot_be_loaded_has_a_reason() {
        let (home, models) = models(
            "[tiers.fast]\nmodel = \"gone.gguf\"\n[tiers.primary]\nmodel = \"cut.gguf\"\n[tiers.heavy]\nmodel = \"text\"\n[tiers.spare]\n",
        );
        std::fs::write(home.path().join("models/cut.gguf"), b"GGUF\x03\0\0\0\xff").unwrap();
        std::fs::write(
            home.path().join("models/text.gguf"),
            "Once upon a time, there was no model.",
        )
        .unwrap();
        for (tier, code) in [
            ("fast", Code::ModelMissing),
            ("primary", Code::ModelInvalid),
            ("heavy", Code::ModelInvalid),
            ("spare", Code::ModelMissing),
            ("other", Code::TierUnknown),
        ] {
            let error = refused(&models, tier).await;
            assert_eq!(error.code, code, "{tier}: {error}");
        }
        assert_eq!(
            refused(&models, "spare").await.message,
            "the spare tier has no model yet"
        );
    }

    #[test]
    fn a_new_configuration_applies_as_a_whole() {
        let (home, models) = models("[tiers.heavy]\nmodel = \"sub/a.gguf\"\n[tiers.fast]\n");
        let tiers = models.tiers();
        assert_eq!(tiers[0].id.as_str(), "fast");
        assert_eq!(tiers[0].model, None);
        assert_eq!(tiers[1].model.as_ref().unwrap().as_str(), "a");
        assert_eq!(models.budget().max_loaded, 1);
        let config = "models_dir = \"more\"\n[policy]\nmax_loaded = 2\n[tiers.coder]\n";
        models.configure(Arc::new(toml::from_str(config).unwrap()));
        assert_eq!(models.tiers().len(), 1);
        assert_eq!(models.budget().max_loaded, 2);
        assert_eq!(models.library().models_dir(), home.path().join("more"));
    }
}
