//! Threads that read experts, the ones that are waited for first.

use crate::{layout::ExpertIndex, platform::WeightFile};
use std::{collections::VecDeque, ops::Range};

/// A run of a file, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileRange {
    /// The number of the area that it lies in.
    pub(crate) area: usize,
    pub(crate) bytes: Range<u64>,
}

/// Pages of an expert that goes, for one that comes.
#[derive(Debug)]
pub(crate) struct PageMove {
    pub(crate) unit: ExpertIndex,
    pub(crate) from: FileRange,
    pub(crate) to: FileRange,
}

/// One matrix of an expert to be read.
#[derive(Debug)]
pub(crate) struct ReadJob {
    pub(crate) unit: ExpertIndex,
    pub(crate) recycled: Option<PageMove>,
    pub(crate) run: FileRange,
    /// How far the file must reach at least.
    pub(crate) end: u64,
}

#[derive(Debug, Default)]
pub(crate) struct ReadQueue {
    urgent: VecDeque<ReadJob>,
    ahead: VecDeque<ReadJob>,
}

impl ReadQueue {
    pub(crate) fn push(&mut self, job: ReadJob, urgent: bool) {
        if urgent {
            self.urgent.push_back(job);
        } else {
            self.ahead.push_back(job);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<ReadJob> {
        self.urgent.pop_front().or_else(|| self.ahead.pop_front())
    }

    /// Puts the reads of these units before all that no thread waits for.
    pub(crate) fn hurry(&mut self, is_needed: impl Fn(ExpertIndex) -> bool) {
        let waiting = std::mem::take(&mut self.ahead);
        for job in waiting {
            let urgent = is_needed(job.unit);
            self.push(job, urgent);
        }
    }
}

/// What a file was when it was opened.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    length: u64,
    modified: Option<std::time::SystemTime>,
}

impl FileIdentity {
    pub(crate) fn of(source: &WeightFile) -> std::io::Result<Self> {
        let metadata = source.file.metadata()?;
        Ok(Self {
            length: metadata.len(),
            modified: metadata.modified().ok(),
        })
    }
}
