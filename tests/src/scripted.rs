//! A supervisor's surroundings with scripted models: a folder, model files whose names are `bad_worker`'s scripts, and
//! the signs of life that it leaves beside them.

use crate::binaries::program as program_of;
use std::{
    collections::HashMap,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tierbar_core::{
    Code, Error, ModelId, ModelKind, TierId, TierKind,
    budget::{Budget, LoadPlan, Placement},
    config::{Engine, TierConfig},
    fit::{Line, LineKind},
    lease::BoxFuture,
};
use tierbar_supervisor::{ForeignCommand, LoadSettings, LoadSpec, ModelSource, Options, TierSpec};

/// The budget of [`options`] in bytes; one tier at a time.
pub const BUDGET: u64 = 10;
/// The context of every tier.
pub const CONTEXT: u32 = 512;

/// The script that each tier loads, and its planned bytes.
#[derive(Debug)]
pub struct Scripted {
    dir: PathBuf,
    scripts: Mutex<HashMap<String, (String, u64)>>,
    /// The command of tiers whose scripts are `foreign…`.
    command: Mutex<Option<Box<ForeignCommand>>>,
}

impl Scripted {
    #[must_use]
    pub fn new(dir: &Path) -> Self {
        Self {
            dir: dir.join("models"),
            scripts: Mutex::default(),
            command: Mutex::default(),
        }
    }

    /// From now on, tiers whose scripts are `foreign…` run the worker as a command, with these further keys of an engine.
    ///
    /// # Panics
    /// If that is no engine.
    pub fn foreign(&self, program: &Path, arguments: &[&str], keys: serde_json::Value) -> Engine {
        let program = program.to_str().expect("a path in UTF-8");
        let command = [&[program], arguments].concat();
        let mut engine = serde_json::json!({"command": command, "memory": "1MiB", "health": "/"});
        for (key, value) in keys.as_object().expect("keys") {
            engine[key] = value.clone();
        }
        let engine = serde_json::from_value(engine).expect("an engine");
        if let Engine::Command(engine) = &engine {
            let command = ForeignCommand {
                engine: engine.clone(),
                remote_model: None,
                process_guard: program_of("tierbar-guard"),
            };
            let command = Some(Box::new(command));
            *self.command.lock().unwrap_or_else(PoisonError::into_inner) = command;
        }
        engine
    }

    /// From now on `tier` loads a model with this script, planned at `bytes`.
    pub fn script(&self, tier: &str, behaviour: &str, bytes: u64) {
        let mut scripts = self.scripts.lock().unwrap_or_else(PoisonError::into_inner);
        scripts.insert(tier.to_owned(), (behaviour.to_owned(), bytes));
    }

    /// From now on `tier` has no model.
    pub fn forget(&self, tier: &str) {
        let mut scripts = self.scripts.lock().unwrap_or_else(PoisonError::into_inner);
        scripts.remove(tier);
    }
}

impl ModelSource for Scripted {
    fn prepare(&self, tier: &TierId) -> BoxFuture<'_, Result<LoadSpec, Error>> {
        let scripts = self.scripts.lock().unwrap_or_else(PoisonError::into_inner);
        let script = scripts.get(tier.as_str()).cloned();
        drop(scripts);
        let command = self.command.lock().unwrap_or_else(PoisonError::into_inner);
        let command = command.clone();
        Box::pin(async move {
            let Some((behaviour, bytes)) = script else {
                return Err(Error::new(Code::TierFailed, "no model is chosen for it"));
            };
            Ok(LoadSpec {
                model: ModelId(behaviour.clone()),
                path: self.dir.join(&behaviour).with_extension("gguf"),
                projector: None,
                settings: settings(),
                draft_model: None,
                command: command.filter(|_| behaviour.starts_with("foreign")),
                plan: LoadPlan {
                    placement: Placement::Resident,
                    lines: vec![Line {
                        what: LineKind::DenseWeights,
                        bytes,
                    }],
                    context_tokens: CONTEXT,
                    kind: TierKind::Generative,
                },
            })
        })
    }
}

fn settings() -> LoadSettings {
    LoadSettings {
        context: CONTEXT,
        ..LoadSettings::from(&TierConfig::default())
    }
}

/// A tier as configured.
///
/// # Panics
/// If `tier` cannot name one.
#[must_use]
pub fn tier_spec(tier: &str, behaviour: &str) -> TierSpec {
    TierSpec {
        id: TierId::new(tier).expect("a tier's name"),
        engine: Engine::Embedded,
        remote_model: None,
        model: Some(ModelId(behaviour.to_owned())),
        aliases: Vec::new(),
        kind: ModelKind::Chat,
        path: None,
        projector: None,
        input_modalities: Vec::new(),
        settings: settings(),
        draft_model: None,
        keep: None,
        pinned: false,
    }
}

/// One tier at a time, and everything in `dir`.
#[must_use]
pub fn options(
    dir: &Path,
    worker: PathBuf,
    source: Arc<Scripted>,
    tiers: Vec<TierSpec>,
) -> Options {
    let budget = Budget {
        total_bytes: BUDGET,
        max_loaded: 1,
        paging: tierbar_core::config::Paging::Mmap,
        embedder_bytes: 0,
    };
    // The workers sign in here.
    let _ = fs::create_dir_all(&source.dir);
    Options {
        tiers,
        loads_file: Some(dir.join("loads.json")),
        load_silence: Duration::from_secs(60),
        // A worker that ignores the request to end hangs the test.
        stop_deadline: Duration::from_secs(3600),
        ..Options::new(budget, source, worker, dir.join("run"), dir.join("logs"))
    }
}

/// The locks that scripted workers have left in `dir`, one per process that ever was.
///
/// # Errors
/// If the folder cannot be read.
pub fn workers(dir: &Path) -> io::Result<Vec<Sign>> {
    let signs = fs::read_dir(dir.join("models"))?.filter_map(|entry| {
        let path = entry.ok()?.path();
        let sign = path.extension()? == "alive";
        sign.then_some(Sign(path))
    });
    Ok(signs.collect())
}

/// Whether two scripted workers in `dir` have ever lived at once.
#[must_use]
pub fn overlapped(dir: &Path) -> bool {
    dir.join("models").join("overlap").exists()
}

/// A worker's sign of life.
#[derive(Debug)]
pub struct Sign(PathBuf);

impl Sign {
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.0.file_stem()?.to_str()?.parse().ok()
    }

    /// # Errors
    /// If the file cannot be opened.
    pub fn alive(&self) -> io::Result<bool> {
        Ok(File::open(&self.0)?.try_lock().is_err())
    }

    /// Blocks until the process is gone.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn wait(&self) -> io::Result<()> {
        File::open(&self.0)?.lock()
    }
}
