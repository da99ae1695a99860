//! The index of documents. One task owns it: it looks for files, has each read in a process of its own, has an embedder read the
//! passages, and stores them; others hold a handle.

mod embed;
mod extract;
mod eyes;
mod files;
mod indexer;
pub(crate) mod text;

pub(crate) use indexer::Indexer;

use crate::sources;
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};
use tierbar_core::{
    Code, Error,
    documents::{DEFAULT_COLLECTION, DocumentSource, Documents, Indexing, IndexingState},
    lease::{BoxFuture, Tiers},
};
use tierbar_fetch::blocking;
use tierbar_store::Store;
use tokio::sync::watch;

const LONGEST_NAME: usize = 80;

/// What the indexer is doing, for the status.
#[derive(Debug, Default)]
struct State {
    paused: bool,
    /// The file that is being read.
    file: Option<String>,
    done: u64,
    problem: Option<String>,
    /// What is not searched of a folder, by the source's id.
    left_out: HashMap<u64, String>,
}

/// The handle.
#[derive(Debug)]
pub(crate) struct DocumentIndex {
    store: Store,
    tiers: Arc<dyn Tiers>,
    /// Rings when there may be something to do.
    bell: watch::Sender<()>,
    state: Arc<Mutex<State>>,
}

impl DocumentIndex {
    pub(crate) fn new(store: Store, tiers: Arc<dyn Tiers>) -> Self {
        Self {
            store,
            tiers,
            bell: watch::Sender::new(()),
            state: Arc::default(),
        }
    }

    async fn documents(&self) -> Result<Documents, Error> {
        let embedder = embed::embedder(&*self.tiers).map(|(_, model)| model);
        let mut sources = self.store.document_sources(embedder.as_deref()).await?;
        let waiting: u64 = sources.iter().map(|source| source.waiting).sum();
        let mut sources = blocking("a look at the documents", move || {
            for source in &mut sources {
                match sources::look(Path::new(&source.path)) {
                    Ok(_) => {}
                    Err(error) if error.code == Code::NotFound => source.is_missing = true,
                    Err(error) => source.problem = Some(error.to_text("; ")),
                }
            }
            Ok(sources)
        })
        .await?;
        let state = self.state.lock();
        for source in &mut sources {
            source.left_out = state.left_out.get(&source.id).cloned();
        }
        let now = if state.paused {
            IndexingState::Paused
        } else if waiting > 0 || state.file.is_some() {
            IndexingState::Indexing
        } else {
            IndexingState::Idle
        };
        Ok(Documents {
            sources,
            indexing: Indexing {
                state: now,
                file: state.file.clone(),
                done: state.done,
                waiting,
                embedder,
                problem: state.problem.clone(),
            },
        })
    }
}

impl tierbar_inference::services::documents::DocumentIndex for DocumentIndex {
    fn status(&self) -> BoxFuture<'_, Result<Documents, Error>> {
        Box::pin(self.documents())
    }

    fn add(
        &self,
        path: String,
        collection: Option<String>,
    ) -> BoxFuture<'_, Result<DocumentSource, Error>> {
        Box::pin(async move {
            let name = collection_name(collection)?;
            let look = move || real_path(&path);
            let (path, is_folder) = blocking("a look at the file", look).await?;
            let added = self.store.add_document_source(&path, &name, is_folder);
            let source = added.await?;
            self.bell.send_replace(());
            Ok(source)
        })
    }

    fn remove(&self, source: u64) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            self.store.remove_document_source(source).await?;
            self.bell.send_replace(());
            Ok(())
        })
    }

    fn read_pictures(&self, source: u64, read: bool) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(async move {
            self.store.set_read_pictures(source, read).await?;
            self.bell.send_replace(());
            Ok(())
        })
    }

    fn set_paused(&self, paused: bool) {
        self.state.lock().paused = paused;
        self.bell.send_replace(());
    }
}

fn collection_name(name: Option<String>) -> Result<String, Error> {
    let name = name.unwrap_or_default();
    let name = name.trim();
    if name.chars().count() > LONGEST_NAME || name.chars().any(char::is_control) {
        let message =
            format!("a collection's name is one line of at most {LONGEST_NAME} characters");
        return Err(Error::new(Code::BadRequest, message));
    }
    Ok(match name {
        "" => DEFAULT_COLLECTION.to_owned(),
        name => name.to_owned(),
    })
}

/// Returns the real path, which is what is agreed to, and whether it is a folder.
fn real_path(path: &str) -> Result<(String, bool), Error> {
    let given = sources::expanded(path);
    if !given.is_absolute() {
        let message = format!("\"{path}\" is not a full path");
        return Err(Error::new(Code::BadRequest, message).hint("begin the path with / or ~/"));
    }
    let real = given.canonicalize();
    let real: PathBuf = real.map_err(|error| sources::unreadable(&given, &error))?;
    let found = sources::look(&real)?;
    if real.parent().is_none() {
        let message = "the whole disk is too much to search";
        return Err(Error::new(Code::BadRequest, message).hint("add a folder of documents"));
    }
    if !found.is_folder && !found.is_file {
        let message = format!("{path} is neither a file nor a folder");
        return Err(Error::new(Code::BadRequest, message));
    }
    let Some(text) = real.to_str() else {
        let message = format!("{path} has a name that is not UTF-8");
        return Err(Error::new(Code::BadRequest, message).hint("rename it"));
    };
    Ok((text.to_owned(), found.is_folder))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A program that does what a script says instead of reading the file.
    pub(crate) fn program(folder: &Path, script: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.join("extract");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    #[test]
    fn only_a_file_or_folder_that_is_there_can_be_added() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.md");
        std::fs::write(&file, "x").unwrap();
        let real = folder.path().canonicalize().unwrap();
        assert_eq!(
            real_path(real.to_str().unwrap()).unwrap(),
            (real.to_str().unwrap().to_owned(), true)
        );
        assert!(!real_path(file.to_str().unwrap()).unwrap().1);
        for (path, code) in [
            ("a.md", Code::BadRequest),
            ("/", Code::BadRequest),
            ("/dev/null", Code::BadRequest),
            ("/no/such/file", Code::NotFound),
        ] {
            assert_eq!(real_path(path).unwrap_err().code, code, "{path}");
        }
    }

    #[test]
    fn tierbars_own_data_cannot_be_added() {
        let home = tempfile::tempdir().unwrap();
        for name in ["tierbar.db", "token", "secrets.json"] {
            std::fs::write(home.path().join(name), "x").unwrap();
        }
        for path in [home.path().to_owned(), home.path().join("secrets.json")] {
            let error = real_path(path.to_str().unwrap()).unwrap_err();
            assert_eq!(error.code, Code::BadRequest, "{error}");
        }
    }

    #[test]
    fn a_collection_has_a_name_of_one_line() {
        assert_eq!(collection_name(None).unwrap(), "Documents");
        assert_eq!(
            collection_name(Some(" Papers ".to_owned())).unwrap(),
            "Papers"
        );
        assert!(collection_name(Some("a\nb".to_owned())).is_err());
        assert!(collection_name(Some("a".repeat(81))).is_err());
    }
}
