//! Threads that read experts, the ones that are waited for first.

use crate::{layout::Unit, platform::Source};
use std::{collections::VecDeque, ops::Range};

/// A run of a file, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    /// The number of the area that it lies in.
    pub(crate) area: usize,
    pub(crate) bytes: Range<u64>,
}

/// Pages of an expert that goes, for one that comes.
#[derive(Debug)]
pub(crate) struct Move {
    pub(crate) unit: Unit,
    pub(crate) from: Run,
    pub(crate) to: Run,
}

/// One matrix of an expert to be read.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) unit: Unit,
    pub(crate) recycled: Option<Move>,
    pub(crate) run: Run,
    /// How far the file must reach at least.
    pub(crate) end: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Jobs {
    urgent: VecDeque<Job>,
    ahead: VecDeque<Job>,
}

impl Jobs {
    pub(crate) fn push(&mut self, job: Job, urgent: bool) {
        if urgent {
            self.urgent.push_back(job);
        } else {
            self.ahead.push_back(job);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Job> {
        self.urgent.pop_front().or_else(|| self.ahead.pop_front())
    }

    /// Puts the reads of these units before all that no thread waits for.
    pub(crate) fn hurry(&mut self, is_needed: impl Fn(Unit) -> bool) {
        let waiting = std::mem::take(&mut self.ahead);
        for job in waiting {
            let urgent = is_needed(job.unit);
            self.push(job, urgent);
        }
    }
}

/// What a file was when it was opened.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    length: u64,
    modified: Option<std::time::SystemTime>,
}

impl Identity {
    pub(crate) fn of(source: &Source) -> std::io::Result<Self> {
        let metadata = source.file.metadata()?;
        Ok(Self {
            length: metadata.len(),
            modified: metadata.modified().ok(),
        })
    }
}
