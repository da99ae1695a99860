//! A record of the router's choices, for [`tierbar_paging::simulate`].

use std::{fs::File, io::Write, path::Path};
use tierbar_core::{Code, Error};

/// A file with a line for each use of a layer: its number, and those of the experts.
#[derive(Debug)]
pub(super) struct ExpertTrace(File);

impl ExpertTrace {
    /// # Errors
    /// [`Code::Storage`] if the file cannot be created.
    pub(super) fn create(path: &Path) -> Result<Self, Error> {
        File::create(path).map(Self).map_err(|error| {
            let message = format!("{} could not be created: {error}", path.display());
            Error::new(Code::Storage, message)
        })
    }

    /// Adds a use. What cannot be written is lost: a record is no reason to fail an answer.
    pub(super) fn add(&self, layer: u32, experts: &[u32]) {
        let experts: String = experts.iter().map(|expert| format!(" {expert}")).collect();
        // In one piece, since a worker may be killed.
        let line = format!("{layer}{experts}\n");
        if let Err(error) = (&self.0).write_all(line.as_bytes()) {
            tracing::warn!("a choice of experts was not recorded: {error}");
        }
    }
}
