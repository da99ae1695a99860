//! The catalog as this machine has it: the built-in one, with what the hub said of its files. That is asked for only on request,
//! and kept in a file of the data folder.

use crate::{measured::now, whole_file};
use futures_util::{StreamExt, stream};
use parking_lot::RwLock;
use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};
use tierbar_core::{
    Code, Error,
    catalog::{CatalogRefresh, RefreshFailure},
    lease::BoxFuture,
};
use tierbar_fetch::blocking;
use tierbar_library::{
    catalog::{Catalog, Entry, HubFigures, KnownFile, catalog},
    hub::{Hub, HubFiles, ResolvedReference},
    reference::Repository,
};

const AT_ONCE: usize = 4;

type EntryFiles = (&'static Entry, Result<HubFiles, Error>);

/// Owns the file.
#[derive(Debug)]
pub(crate) struct CatalogList {
    path: PathBuf,
    current: RwLock<CurrentFigures>,
    /// Held while the figures change, so that no change is lost.
    changing: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct CurrentFigures {
    figures: HubFigures,
    catalog: Arc<Catalog>,
}

impl CurrentFigures {
    fn new(figures: HubFigures) -> Self {
        let catalog = Arc::new(catalog().with(&figures));
        Self { figures, catalog }
    }
}

impl CatalogList {
    /// A file that cannot be used is ignored: the built-in catalog is complete without it. Blocking.
    pub(crate) fn open(path: PathBuf) -> Self {
        Self {
            current: RwLock::new(CurrentFigures::new(read_figures(&path))),
            path,
            changing: tokio::sync::Mutex::default(),
        }
    }

    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.current.read().catalog)
    }

    /// When the whole list was last updated, RFC 3339.
    pub(crate) fn refreshed(&self) -> Option<String> {
        self.current.read().figures.refreshed.clone()
    }

    /// Asks the hub for the current files of all models.
    ///
    /// # Errors
    /// The first failure if no repository can be read; [`Code::Storage`].
    pub(crate) async fn refresh(&self, hub: &Hub) -> Result<CatalogRefresh, Error> {
        let _changing = self.changing.lock().await;
        let asked = catalog().models.iter();
        let asked: Vec<_> = asked.map(|entry| files(hub, entry)).collect();
        let mut answers = stream::iter(asked).buffered(AT_ONCE);
        let mut figures = self.current.read().figures.clone();
        let refreshed = now();
        let (mut updated, mut failed, mut first) = (Vec::new(), Vec::new(), None);
        while let Some((entry, answer)) = answers.next().await {
            match answer {
                Ok(files) => {
                    figures.update(entry, &files, &refreshed);
                    updated.push(entry.id.clone());
                }
                Err(error) => {
                    failed.push(RefreshFailure {
                        id: entry.id.clone(),
                        name: entry.name.clone(),
                        repository: entry.repository.clone(),
                        reason: error.message.clone(),
                    });
                    first.get_or_insert(error);
                }
            }
        }
        if let Some(error) = first.filter(|_| updated.is_empty()) {
            return Err(error);
        }
        figures.refreshed = Some(refreshed.clone());
        self.set(figures).await?;
        Ok(CatalogRefresh {
            refreshed,
            updated,
            failed,
        })
    }

    /// Notes what the hub said of a file whose hash was not known, so that another download has to be the same.
    pub(crate) async fn pin(&self, id: &str, quant: &str, resolved: &ResolvedReference) {
        let ([file], Some(revision)) = (resolved.files.as_slice(), &resolved.revision) else {
            return;
        };
        let (Some(path), Some(size_bytes), Some(_)) = (&file.path, file.size, &file.sha256) else {
            return;
        };
        let _changing = self.changing.lock().await;
        let mut figures = self.current.read().figures.clone();
        let known = KnownFile {
            quant: quant.to_owned(),
            file: path.clone(),
            size_bytes,
            sha256: file.sha256.clone(),
            revision: revision.clone(),
            seen: now(),
        };
        figures.keep(id, known);
        if let Err(error) = self.set(figures).await {
            tracing::warn!("{error}");
        }
    }

    async fn set(&self, figures: HubFigures) -> Result<(), Error> {
        let (path, stored) = (self.path.clone(), figures.clone());
        blocking("storing the list of models", move || {
            let stored = serde_json::to_vec_pretty(&stored).map_err(io::Error::from);
            let written = stored.and_then(|json| whole_file::write_private(&path, &json, false));
            written.map_err(|error| {
                let message = format!("{} cannot be written: {error}", path.display());
                Error::new(Code::Storage, message)
            })
        })
        .await?;
        *self.current.write() = CurrentFigures::new(figures);
        Ok(())
    }
}

fn files<'a>(hub: &'a Hub, entry: &'static Entry) -> BoxFuture<'a, EntryFiles> {
    Box::pin(async move {
        let files = match Repository::new(&entry.repository) {
            Ok(repository) => hub.repository(&repository, None).await,
            Err(error) => Err(error),
        };
        (entry, files)
    })
}

fn read_figures(path: &Path) -> HubFigures {
    let ignored = |why: &dyn std::fmt::Display| {
        tracing::warn!("{} is ignored: {why}", path.display());
        HubFigures::default()
    };
    match fs::read(path) {
        Ok(text) => HubFigures::parse(&text).unwrap_or_else(|why| ignored(&why)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => HubFigures::default(),
        Err(error) => ignored(&error),
    }
}
