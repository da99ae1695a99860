//! Downloads of models: from a request to a download, and from a downloaded file to a model.

use super::{
    local::{LocalModels, Measure},
    offers::{self, Offers},
};
use crate::{blocking::blocking, volume::Volume};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};
use tierbar_core::{
    Code, Error,
    budget::Placement,
    download::{DownloadState, DownloadStatus},
    fit::Verdict,
};
use tierbar_fetch::{Fetched, FileSpec, Job, OnComplete, Queue};
use tierbar_gateway::{DownloadChange, Pull};
use tierbar_library::{Library, LibraryWatch, Origin};

/// The requested downloads.
pub(crate) struct Downloads {
    pub(crate) local: Arc<LocalModels>,
    pub(crate) offers: Arc<Offers>,
    pub(crate) queue: Queue,
}

impl Downloads {
    pub(crate) fn list(&self) -> Vec<DownloadStatus> {
        self.queue.watch().borrow().to_vec()
    }

    pub(crate) async fn remove(&self, id: String) -> Result<(), Error> {
        self.queue.remove(&id).await
    }

    /// Returns the download, and whether it is new.
    pub(crate) async fn add(&self, pull: Pull) -> Result<(DownloadStatus, bool), Error> {
        // A running download is returned without the network.
        if let Some(known) = self.unfinished(&pull.reference) {
            return self.again(known, &pull).await;
        }
        let unknown = Error::new(
            Code::ModelUnknown,
            format!("\"{}\" is not in the catalog", shown(&pull.reference)),
        )
        .hint("name a model as owner/repo:quant, as the URL of a .gguf file, or as listed by `tierbar models search`");
        let reference = offers::parse(&pull.reference, unknown)?;
        let (library, entries) = self.local.entries().await?;
        let machine = self.local.machine_for(&entries, Measure::First).await;
        let suit = offers::suit(&reference, machine, None, None);
        let resolved = self.offers.resolve(&reference, &suit, &entries).await?;
        if let Some(known) = self.unfinished(&resolved.reference) {
            return self.again(known, &pull).await;
        }
        let mut warnings = Vec::new();
        match offers::judge(&resolved, &suit) {
            Ok(verdict) if verdict.placement == Placement::Refused => {
                if !pull.anyway {
                    return Err(over_budget(&verdict));
                }
                warnings.push(verdict.summary);
            }
            Ok(verdict) => warnings.extend(verdict.warning),
            Err(error) if pull.anyway => warnings.push(error.message),
            Err(error) => return Err(error),
        }
        let folder = library.models_dir().to_owned();
        let files = resolved.specs(&folder);
        let room = {
            let files = files.clone();
            let missing = move || files.iter().map(FileSpec::missing).sum::<Option<u64>>();
            blocking("looking for room", move || match missing() {
                Some(bytes) if bytes > 0 => Volume::of(&folder)?.take(&folder, bytes),
                _ => Ok(None),
            })
        };
        warnings.extend(room.await?);
        self.offers.pin(&resolved).await;
        let job = Job {
            reference: resolved.reference,
            files,
            priority: pull.priority,
            warnings,
        };
        self.queue.add(job).await
    }

    pub(crate) async fn change(
        &self,
        id: String,
        change: DownloadChange,
    ) -> Result<DownloadStatus, Error> {
        // Checked before anything is changed.
        if let Some(state) = change.state
            && !matches!(state, DownloadState::Paused | DownloadState::Queued)
        {
            return Err(Error::new(
                Code::BadRequest,
                "a download can be set to paused or queued; Tierbar sets the other states",
            ));
        }
        let mut changed = None;
        if let Some(priority) = change.priority {
            changed = Some(self.queue.prioritise(&id, priority).await?);
        }
        match change.state {
            Some(DownloadState::Paused) => changed = Some(self.queue.pause(&id).await?),
            Some(_) => changed = Some(self.queue.resume(&id).await?),
            None => {}
        }
        changed.ok_or_else(|| Error::new(Code::BadRequest, "give a new state or a new priority"))
    }

    /// Returns an unfinished download of the reference.
    fn unfinished(&self, reference: &str) -> Option<DownloadStatus> {
        let downloads = self.queue.watch().borrow().clone();
        let mut downloads = downloads.iter();
        downloads
            .find(|known| known.reference == reference && known.state != DownloadState::Done)
            .cloned()
    }

    async fn again(
        &self,
        known: DownloadStatus,
        pull: &Pull,
    ) -> Result<(DownloadStatus, bool), Error> {
        let mut now = known;
        if now.priority < pull.priority {
            now = self.queue.prioritise(&now.id, pull.priority).await?;
        }
        if !now.state.is_under_way() {
            now = self.queue.resume(&now.id).await?;
        }
        Ok((now, false))
    }
}

fn over_budget(verdict: &Verdict) -> Error {
    let hint = match &verdict.instead {
        Some(instead) => format!("choose {} instead", instead.reference),
        None => "choose a smaller model or a smaller quant of this one".to_owned(),
    };
    Error::new(Code::OverBudget, verdict.summary.clone())
        .hint(format!("{hint}; to download it anyway, use --anyway"))
        .detail("needed_bytes", verdict.total_bytes)
        .detail("budget_bytes", verdict.budget_bytes)
}

fn shown(reference: &str) -> String {
    reference.chars().take(100).collect()
}

/// Makes a downloaded file a model: deletes it if it is none, or else records its source.
pub(crate) fn on_complete(
    library: impl Fn() -> Arc<Library> + Send + Sync + 'static,
    watch: Arc<LibraryWatch>,
) -> OnComplete {
    Arc::new(move |job, fetched| {
        let library = library();
        let origins: Vec<_> = job
            .files
            .iter()
            .zip(fetched)
            .map(|(spec, fetched)| (spec.dest.clone(), origin(job, spec, fetched)))
            .collect();
        let watch = Arc::clone(&watch);
        Box::pin(async move {
            let outcome =
                blocking("taking the model over", move || settle(&library, origins)).await;
            watch.look();
            outcome
        })
    })
}

fn origin(job: &Job, spec: &FileSpec, fetched: &Fetched) -> Origin {
    Origin {
        reference: job.reference.clone(),
        url: spec.url.clone(),
        sha256: fetched.sha256.clone(),
    }
}

fn settle(library: &Library, origins: Vec<(PathBuf, Origin)>) -> Result<(), Error> {
    let Some((first, _)) = origins.first() else {
        return Ok(());
    };
    match library.account(first) {
        Ok(_) => {}
        // Complete by its hash, but not a model: a web page, or a file broken by its publisher.
        Err(error) if error.code == Code::ModelInvalid => {
            for (path, _) in &origins {
                discard(path);
            }
            return Err(Error::new(
                Code::Corrupt,
                format!("the downloaded file is not a model and was deleted: {error}"),
            )
            .hint("the published file is damaged: choose another one"));
        }
        // A valid file that this engine cannot run, such as a projector.
        Err(error) => tracing::info!("{} was fetched: {error}", first.display()),
    }
    for (path, origin) in origins {
        if let Err(error) = library.record(&path, origin) {
            // The model is complete; only its source is not recorded.
            tracing::warn!("{error}");
        }
    }
    Ok(())
}

fn discard(path: &Path) {
    if let Err(error) = fs::remove_file(path) {
        tracing::warn!("{} cannot be deleted: {error}", path.display());
    }
}
