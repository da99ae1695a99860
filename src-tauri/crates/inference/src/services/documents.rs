//! What the API asks the host about documents: what is added, and how far the index is.

use std::fmt;
use tierbar_core::{
    Error,
    documents::{DocumentSource, Documents},
    lease::BoxFuture,
};

/// The index of documents. Owned by the host.
pub trait DocumentIndex: Send + Sync + fmt::Debug {
    /// What is added, and what the indexer does.
    ///
    /// # Errors
    /// `Storage` if what is kept of them cannot be read.
    fn status(&self) -> BoxFuture<'_, Result<Documents, Error>>;

    /// Adds a file or folder, by its full path or one that begins with `~/`, and begins to read it.
    ///
    /// # Errors
    /// `BadRequest` for a path or a name that cannot be, `NotFound` if nothing is there, `Conflict` for one that is added already.
    fn add(
        &self,
        path: String,
        collection: Option<String>,
    ) -> BoxFuture<'_, Result<DocumentSource, Error>>;

    /// Forgets a file or folder, which stays where it is.
    ///
    /// # Errors
    /// `NotFound`.
    fn remove(&self, source: u64) -> BoxFuture<'_, Result<(), Error>>;

    /// Sets whether a model writes down the text of pages that are pictures, in the files of a source.
    ///
    /// # Errors
    /// `NotFound`.
    fn read_pictures(&self, source: u64, read: bool) -> BoxFuture<'_, Result<(), Error>>;

    /// Stops reading once the file that is being read is done, or goes on.
    fn set_paused(&self, paused: bool);
}
