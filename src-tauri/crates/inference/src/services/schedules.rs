//! What the API asks the host about schedules.

use std::fmt;
use tierbar_core::{Error, lease::BoxFuture, schedule::ScheduleStatus};

/// The host's schedules. Owned by the host.
pub trait Schedules: Send + Sync + fmt::Debug {
    /// The configured ones, by name.
    ///
    /// # Errors
    /// `Storage` if what is kept of them cannot be read.
    fn list(&self) -> BoxFuture<'_, Result<Vec<ScheduleStatus>, Error>>;

    /// Runs one now, behind the one that runs, beside its turns. What came of it, in one sentence, once it is done.
    ///
    /// # Errors
    /// `NotFound`; `Overloaded` if too many wait; what its source, its task or its target has failed with.
    fn run(&self, name: String) -> BoxFuture<'_, Result<String, Error>>;
}
