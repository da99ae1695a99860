//! What the host offers to the API, as traits that it implements.

pub mod documents;
pub mod measures;
pub mod models;
pub mod schedules;

use serde_json::Value;
use std::{
    fmt,
    fs::File,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tierbar_core::{
    Config, Error, documents::FileText, history::History, journal::Entry, lease::BoxFuture,
    paging::PagingStatus, status::Status,
};
use tierbar_measure::diagnosis::{HostFigures, MachineFigures};
use tokio::sync::{broadcast, watch};

/// The most bytes of a text that [`Services::read_file`] returns as it is: as many as a chat takes of one file.
pub const LARGEST_TEXT: u64 = 2 << 20;

/// What an agent's commands run with.
#[derive(Debug, Clone)]
pub struct SandboxPlace {
    /// The program `tierbar-sandbox`.
    pub launcher: PathBuf,
    /// What no command may see: the data folder.
    pub protected: Vec<PathBuf>,
}

/// What the host offers to the API beside the tiers and the store.
pub trait Services: Send + Sync + fmt::Debug {
    /// The status as it is at this moment.
    fn status(&self) -> Arc<Status>;

    /// The status as it changes. A living receiver counts as a watcher.
    fn watch(&self) -> watch::Receiver<Arc<Status>>;

    /// The readings of the last minutes, up to now: at most as many points as seconds in ten minutes, or a few more.
    ///
    /// # Errors
    /// `Storage` if what is kept cannot be read.
    fn history(&self, minutes: u64) -> BoxFuture<'_, Result<History, Error>>;

    /// Which experts of the loaded models are in memory, and what the disks do.
    fn paging(&self) -> BoxFuture<'_, PagingStatus>;

    /// Refuses requests and unloads idle tiers for this long, or until [`Self::resume`]. Returns the new status.
    fn pause(&self, length: Option<Duration>) -> Arc<Status>;

    fn resume(&self) -> Arc<Status>;

    /// The log's entries from now on. By then they are in the store, if that takes any.
    fn log(&self) -> broadcast::Receiver<Entry>;

    fn config(&self) -> Arc<Config>;

    fn config_path(&self) -> &Path;

    /// Merges a partial configuration into the file and applies it.
    ///
    /// # Errors
    /// `BadRequest` or `ConfigInvalid` naming the key; `Storage` if the file cannot be written.
    fn patch_config(&self, patch: Value) -> BoxFuture<'_, Result<Arc<Config>, Error>>;

    /// Returns the configuration as [`Self::patch_config`] would leave it, and changes nothing.
    ///
    /// # Errors
    /// Those of [`Self::patch_config`].
    fn preview_config(&self, patch: Value) -> BoxFuture<'_, Result<Arc<Config>, Error>>;

    /// Remembers that pages of an origin were refused, if the owner may allow it with a click.
    fn refuse_origin(&self, origin: &str);

    /// Adds an origin to `allowed_origins` or removes it, and forgets that its pages were refused.
    ///
    /// # Errors
    /// Those of [`Self::patch_config`].
    fn set_origin(
        &self,
        origin: String,
        allowed: bool,
    ) -> BoxFuture<'_, Result<Arc<Config>, Error>>;

    /// The ids of the known clients that are installed on this machine.
    fn found_clients(&self) -> BoxFuture<'_, Vec<&'static str>>;

    /// The command with which other programs start Tierbar as an MCP server, the program first.
    fn mcp_command(&self) -> BoxFuture<'_, Vec<String>>;

    /// What an agent's commands run with.
    ///
    /// # Errors
    /// `Internal` if the program is not there.
    fn sandbox(&self) -> Result<SandboxPlace, Error>;

    /// The text of an open file for a model: as it is, or that of the document that it is. `name` tells kinds of text apart.
    ///
    /// # Errors
    /// `BadRequest` with the reason for what cannot be read, `PayloadTooLarge` for what is too large.
    fn read_file(&self, file: File, name: String) -> BoxFuture<'_, Result<FileText, Error>>;

    /// What the machine is, and what Tierbar itself uses of it.
    fn figures(&self) -> BoxFuture<'_, (MachineFigures, HostFigures)>;
}
