//! A record of the router's choices, for [`tierbar_paging::simulate`].

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    path::Path,
    sync::{Mutex, PoisonError},
};
use tierbar_core::{Code, Error};

/// A file with a line for each use of a layer: its number, and those of the experts.
#[derive(Debug)]
pub(super) struct ExpertTrace(Mutex<TraceWriter>);

#[derive(Debug)]
struct TraceWriter {
    file: BufWriter<File>,
    last_layer: Option<u32>,
}

impl ExpertTrace {
    /// # Errors
    /// [`Code::Storage`] if the file cannot be created.
    pub(super) fn create(path: &Path) -> Result<Self, Error> {
        let file = File::create(path).map_err(|error| {
            let message = format!("{} could not be created: {error}", path.display());
            Error::new(Code::Storage, message)
        })?;
        Ok(Self(Mutex::new(TraceWriter {
            file: BufWriter::new(file),
            last_layer: None,
        })))
    }

    /// Adds a use. What cannot be written is lost: a record is no reason to fail an answer.
    pub(super) fn add(&self, layer: u32, experts: &[u32]) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = lines.add(layer, experts) {
            tracing::warn!("a choice of experts was not recorded: {error}");
        }
    }
}

impl TraceWriter {
    fn add(&mut self, layer: u32, experts: &[u32]) -> io::Result<()> {
        // Whole tokens, since a worker may be killed.
        if self.last_layer.is_some_and(|last| layer <= last) {
            self.file.flush()?;
        }
        self.last_layer = Some(layer);
        write!(self.file, "{layer}")?;
        for expert in experts {
            write!(self.file, " {expert}")?;
        }
        writeln!(self.file)
    }
}
