//! Models on this machine: listed, verified, imported, removed.

use super::{
    disks::disks,
    marks::{StoredMark, marks_of},
};
use crate::{
    folder::MARKS,
    live_config::LiveConfig,
    machine::ThisMachine,
    measured,
    models::{companion_models, draft_model},
    sources::expanded,
};
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};
use tierbar_core::{
    Code, Config, Error, Modality, ModelAccount, TierId, TierState,
    catalog::OfferedProjector,
    fit::{
        ContextChoice, DecodeRate, Keeper, LibraryModel, Machine, ProfileFit, Verdict, profiles,
        verdict_with,
    },
    judgment::Mark,
    lease::Tiers,
    sampling::{ModelSampling, Sampling},
    status::TierStatus,
};
use tierbar_fetch::blocking;
use tierbar_inference::{
    services::models::{ModelList, ModelVerification},
    speed::SpeedMeter,
};
use tierbar_library::{Entry, Library, Projector, catalog::catalog, model_id};
use tierbar_supervisor::TierSpec;
use tokio_util::sync::CancellationToken;

/// The models in the library's folders, and how they run on this machine.
#[derive(Debug)]
pub(crate) struct LocalModels {
    pub(crate) machine: Arc<ThisMachine>,
    pub(crate) speed: SpeedMeter,
    /// Imported folders are added to it.
    pub(crate) config: Arc<LiveConfig>,
}

impl LocalModels {
    /// Lists the models on disk now, without waiting for the next scan, so that a client sees its own change.
    pub(crate) async fn list(&self) -> Result<ModelList, Error> {
        let (library, entries) = self.entries().await?;
        let tiers = self.tiers_by_path().await;
        let machine = self.machine_for(&entries).await;
        let config = self.config.models.config();
        let drafts = self.draft_models(Arc::clone(&config)).await;
        let marks = self.config.folder.file(MARKS);
        let marks: Vec<StoredMark> = blocking("reading what models can do", move || {
            Ok(measured::read(&marks))
        })
        .await?;
        let model = |entry: &Entry| {
            let tiers = tiers.get(&entry.path).cloned().unwrap_or_default();
            let used_by = tiers.first();
            let tier = used_by.and_then(|tier| config.tiers.get(tier));
            let choice = tier.map(ContextChoice::from).unwrap_or_default();
            let draft = used_by.and_then(|tier| drafts.get(tier));
            let beside = companion_models(entry.projector.as_ref(), draft);
            let (fit, profiles) = match &entry.account {
                Ok(account) => {
                    let fit = verdict_with(account, beside, choice, &machine, &[]);
                    let fit = self.with_measured(fit, &entry.id);
                    (Some(fit), profiles(account, beside, choice, &machine))
                }
                Err(_) => (None, Vec::new()),
            };
            let mut model = to_library_model(entry, tiers, fit, profiles);
            model.marks = marks_of(&marks, entry.identity());
            let thinks = tier.is_some_and(|tier| tier.thinking)
                && entry.account.as_ref().is_ok_and(|account| account.thinking);
            let is_of_other = |mark: &Mark| {
                let steps = mark.first_steps;
                steps.is_some_and(|steps| steps.thinking != thinks)
            };
            model.marks.sort_by_key(is_of_other);
            model
        };
        let models_dir = library.models_dir().to_owned();
        let (dir, stored) = (models_dir.clone(), entries.clone());
        let disks = blocking("looking at the disks", move || Ok(disks(&dir, &stored))).await?;
        Ok(ModelList {
            models_dir,
            disks,
            models: entries.iter().map(model).collect(),
        })
    }

    /// Removes a model; returns whether it went to the Trash.
    pub(crate) async fn remove(&self, model: String, permanently: bool) -> Result<bool, Error> {
        // A process keeps a file that is deleted or moved, so a tier that starts meanwhile is not harmed: a snapshot is
        // enough to refuse.
        let running = loaded_tiers(&self.config.supervisor.snapshot());
        let tiers = self.tiers().await.into_iter();
        let held: Vec<(TierId, PathBuf)> = tiers
            .filter(|tier| running.contains(&tier.id))
            .filter_map(|tier| Some((tier.id, tier.path?)))
            .collect();
        let library = self.config.models.library();
        let removal = blocking("removing the model", move || {
            let in_use: Vec<_> = held.iter().map(|(_, path)| path.clone()).collect();
            library
                .remove(&model, permanently, &in_use)
                .map_err(|error| naming_tiers(error, &library, &model, &held))
        });
        let removed = removal.await;
        // Also after a failure, since some parts may be gone.
        self.config.watch.look();
        removed
    }

    pub(crate) async fn verify(&self, model: String) -> Result<ModelVerification, Error> {
        let library = self.config.models.library();
        // Cancels the read when the client has gone.
        let cancel = CancellationToken::new();
        let _waiting = cancel.clone().drop_guard();
        let verification = blocking("verifying the model", move || {
            library.verify(&model, &cancel)
        })
        .await?;
        Ok(ModelVerification {
            sha256: verification.sha256(),
            expected: verification.expected(),
            matches: verification.matches(),
            damaged: verification
                .damaged()
                .into_iter()
                .map(Path::to_owned)
                .collect(),
        })
    }

    pub(crate) async fn import(&self, path: String) -> Result<Vec<LibraryModel>, Error> {
        let library = self.config.models.library();
        let folder = blocking("looking for the folder", move || folder_of(&path)).await?;
        let known = |known: &Path| folder.starts_with(known);
        let options = library.options();
        if !known(&options.models_dir) && !options.folders.iter().any(|folder| known(folder)) {
            let Some(folder) = folder.to_str() else {
                let message = format!("the name {} is not valid UTF-8", folder.display());
                return Err(Error::new(Code::BadRequest, message));
            };
            // Another one may be added at the same time.
            let add = |config: &Config| {
                let mut folders = config.library.folders.clone();
                if !folders.iter().any(|known| known == folder) {
                    folders.push(folder.to_owned());
                }
                serde_json::Map::from_iter([(
                    "library".to_owned(),
                    serde_json::json!({"folders": folders}),
                )])
            };
            self.config.change_config(add).await?;
        }
        let mut models = self.list().await?.models;
        models.retain(|model| Path::new(&model.path).starts_with(&folder));
        Ok(models)
    }

    pub(crate) async fn entries(&self) -> Result<(Arc<Library>, Vec<Entry>), Error> {
        let library = self.config.models.library();
        blocking("listing the models", move || {
            let entries = library.list()?;
            Ok((library, entries))
        })
        .await
    }

    /// Returns the models that can be listed: without any, offers and figures are as true.
    pub(crate) async fn readable(&self) -> Vec<Entry> {
        let all = self.entries().await;
        all.map_or_else(|_| Vec::new(), |(_, entries)| entries)
    }

    /// Returns the tiers in reading order.
    async fn tiers(&self) -> Vec<TierSpec> {
        let models = Arc::clone(&self.config.models);
        let tiers = blocking("looking for the tiers' models", move || Ok(models.tiers()));
        tiers.await.unwrap_or_default()
    }

    /// Returns the tiers of each file, in reading order.
    pub(crate) async fn tiers_by_path(&self) -> HashMap<PathBuf, Vec<TierId>> {
        let mut by_path: HashMap<PathBuf, Vec<TierId>> = HashMap::new();
        for tier in self.tiers().await {
            if let Some(path) = tier.path {
                by_path.entry(path).or_default().push(tier.id);
            }
        }
        by_path
    }

    /// Returns the draft models of tiers that have one which can be read.
    pub(super) async fn draft_models(&self, config: Arc<Config>) -> HashMap<TierId, ModelAccount> {
        let library = self.config.models.library();
        let read = move || {
            let tiers = config.tiers.iter();
            let drafts = tiers.filter_map(|(id, tier)| {
                let (_, account) = draft_model(tier, &library).ok()??;
                Some((id.clone(), account))
            });
            Ok(drafts.collect())
        };
        let found = blocking("reading the draft models", read).await;
        found.unwrap_or_default()
    }

    /// Returns this machine, for a verdict.
    pub(crate) async fn machine_for(&self, entries: &[Entry]) -> Machine {
        let config: Arc<Config> = self.config.models.config();
        let folder = self.config.models.library().models_dir().to_owned();
        let computes =
            |tier: &TierStatus| matches!(tier.state, TierState::Starting | TierState::Busy);
        let busy = self.config.supervisor.snapshot().iter().any(computes);
        let (max_loaded, decode) = (config.policy.max_loaded, self.decode_rate(entries));
        let machine = &self.machine;
        Machine {
            embedder_bytes: self.config.models.embedder_bytes(),
            ..machine
                .with_bandwidths(max_loaded, &folder, busy, decode)
                .await
        }
    }

    /// Returns the best rate of the models that have answered.
    fn decode_rate(&self, entries: &[Entry]) -> Option<DecodeRate> {
        let rates = entries.iter().filter_map(|entry| {
            DecodeRate::from_measured(entry.account.as_ref().ok()?, self.speed.usual(&entry.id)?)
        });
        rates.max_by_key(|rate| rate.bytes_per_second)
    }

    /// Adds the measured speed of the model's last answers to the verdict.
    pub(crate) fn with_measured(
        &self,
        mut verdict: Verdict,
        model: &tierbar_core::ModelId,
    ) -> Verdict {
        if let (Some(speed), Some(measured)) = (verdict.speed, self.speed.usual(model)) {
            verdict.speed = Some(speed.with_measured(measured));
        }
        verdict
    }
}

fn loaded_tiers(tiers: &[TierStatus]) -> Vec<TierId> {
    let held = tiers
        .iter()
        .filter(|tier| tier.pid.is_some() || tier.state.holds_memory());
    held.map(|tier| tier.id.clone()).collect()
}

fn naming_tiers(error: Error, library: &Library, model: &str, held: &[(TierId, PathBuf)]) -> Error {
    let Some(path) = library
        .resolve(model)
        .ok()
        .filter(|_| error.code == Code::ModelInUse)
    else {
        return error;
    };
    let tiers: Vec<_> = held
        .iter()
        .filter(|(_, held)| *held == path)
        .map(|(tier, _)| tier.as_str())
        .collect();
    if tiers.is_empty() {
        return error;
    }
    let named = tiers.join(" and ");
    let message = format!(
        "{} is loaded by {named} and cannot be deleted now",
        model_id(model)
    );
    Error::new(Code::ModelInUse, message).hint(format!("stop {named}, then delete it"))
}

/// Returns the full path of a folder that files can be written to.
///
/// # Errors
/// `BadRequest` with what is wrong, and what to do.
pub(super) fn writable_folder(path: &str) -> Result<PathBuf, Error> {
    let folder = folder_of(path)
        .map_err(|error| error.hint("create the folder, or give the full path of another one"))?;
    let wrong = |why: &str, hint: &str| {
        let message = format!("{} {why}", folder.display());
        Err(Error::new(Code::BadRequest, message).hint(hint))
    };
    if path.to_ascii_lowercase().ends_with(".gguf") && !Path::new(path).is_dir() {
        return wrong("is the folder of that file", "give the folder itself");
    }
    if let Err(error) = rustix::fs::access(&folder, rustix::fs::Access::WRITE_OK) {
        let why = format!("cannot be written: {error}");
        return wrong(&why, "choose another folder, or change its permissions");
    }
    Ok(folder)
}

fn folder_of(path: &str) -> Result<PathBuf, Error> {
    let wrong = |why: &str| {
        Error::new(Code::BadRequest, format!("{path} {why}"))
            .hint("give the full path of a folder or of a model in it")
    };
    let full = expanded(path);
    if !full.is_absolute() {
        return Err(wrong("is not a full path"));
    }
    let found = full
        .canonicalize()
        .map_err(|error| wrong(&format!("cannot be used: {error}")))?;
    if found.is_dir() {
        return Ok(found);
    }
    // A link counts by its own name, as in a folder's list.
    let is_model = full
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("gguf"));
    if !is_model {
        return Err(wrong("is neither a folder nor a .gguf file"));
    }
    full.parent()
        .and_then(|folder| folder.canonicalize().ok())
        .ok_or_else(|| wrong("is in no folder"))
}

/// Returns the catalog's projector for a model that was downloaded from the catalog's repository.
fn offer(entry: &Entry) -> Option<OfferedProjector> {
    let reference = entry
        .reference()
        .filter(|_| entry.keeper == Keeper::Tierbar)?;
    let (repository, _) = reference.rsplit_once([':', '/'])?;
    let mut models = catalog().models.iter();
    let known = models.find(|model| model.repository == repository)?;
    Some(known.projector.as_ref()?.offer())
}

fn to_library_model(
    entry: &Entry,
    tiers: Vec<TierId>,
    fit: Option<Verdict>,
    profiles: Vec<ProfileFit>,
) -> LibraryModel {
    let account = entry.account.as_ref().ok();
    let record = entry.record.as_ref();
    let projector = entry.projector.as_ref();
    let usable = projector.filter(|projector| projector.account.is_ok());
    LibraryModel {
        id: entry.id.clone(),
        path: entry.path.display().to_string(),
        size_bytes: entry.size_bytes,
        keeper: entry.keeper,
        account: account.cloned(),
        error: entry.account.as_ref().err().map(ToString::to_string),
        reference: entry.reference().map(str::to_owned),
        sha256: record.and_then(|record| record.last_sha256().map(str::to_owned)),
        projector: usable.map(|projector| projector.path.display().to_string()),
        projector_bytes: usable.map(|projector| projector.size_bytes),
        projector_error: projector
            .and_then(|projector| projector.account.as_ref().err())
            .map(ToString::to_string),
        projector_offer: usable.is_none().then(|| offer(entry)).flatten(),
        input_modalities: projector
            .map_or_else(|| vec![Modality::Text], Projector::input_modalities),
        tiers,
        fit,
        profiles,
        sampling: account
            .map(|account| ModelSampling::for_model(Sampling::default(), account))
            .unwrap_or_default(),
        marks: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_found_by_itself_or_a_model_in_it() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path().canonicalize().unwrap();
        let models = home.join("models");
        std::fs::create_dir_all(home.join("blobs")).unwrap();
        std::fs::create_dir(&models).unwrap();
        std::fs::write(home.join("blobs/abc"), "").unwrap();
        std::fs::write(models.join("notes.txt"), "").unwrap();
        std::os::unix::fs::symlink("../blobs/abc", models.join("linked.GGUF")).unwrap();
        let of = |name: &str| folder_of(home.join(name).to_str().unwrap());
        assert_eq!(of("models").unwrap(), models);
        assert_eq!(of("models/linked.GGUF").unwrap(), models);
        for (name, why) in [
            ("models/notes.txt", "neither a folder nor a .gguf file"),
            ("models/gone.gguf", "cannot be used"),
        ] {
            let error = of(name).unwrap_err();
            assert_eq!(error.code, Code::BadRequest);
            assert!(error.message.contains(why), "{error}");
        }
        let file = models.join("linked.GGUF");
        let error = writable_folder(file.to_str().unwrap()).unwrap_err();
        assert!(error.message.contains("folder of that file"), "{error}");
        assert_eq!(writable_folder(models.to_str().unwrap()).unwrap(), models);
        assert!(
            folder_of("models")
                .unwrap_err()
                .message
                .contains("full path")
        );
    }
}
