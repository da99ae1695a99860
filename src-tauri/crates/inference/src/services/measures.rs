//! What the API asks the host about measurements: a tier's speed, its fastest settings, and how its model acts.

use serde_json::Value;
use std::fmt;
use tierbar_core::{Error, TierId, lease::BoxFuture};
use tierbar_measure::{
    bench::{BenchReport, BenchRequest, Progress},
    tune::{TuneReport, TuneRequest},
};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::DropGuard;

/// The host's measurements. One at a time; owned by the host.
pub trait Measures: Send + Sync + fmt::Debug {
    /// Begins to measure a tier as it is configured.
    ///
    /// # Errors
    /// `Measuring` while another one runs, `TierUnknown`.
    fn bench(&self, tier: TierId, ask: BenchRequest) -> Result<Measurement, Error>;

    /// Begins to look for a tier's fastest settings.
    ///
    /// # Errors
    /// As [`Measures::bench`].
    fn tune(&self, tier: TierId, ask: TuneRequest) -> Result<Measurement, Error>;

    /// Begins to measure how well a tier's model chooses an agent's first step.
    ///
    /// # Errors
    /// As [`Measures::bench`].
    fn agent(&self, tier: TierId) -> Result<Measurement, Error>;

    /// What the last one told; `None` if there is none.
    ///
    /// # Errors
    /// `TierUnknown`.
    fn last_bench(&self, tier: TierId) -> BoxFuture<'_, Result<Option<BenchReport>, Error>>;

    /// # Errors
    /// `TierUnknown`.
    fn last_tune(&self, tier: TierId) -> BoxFuture<'_, Result<Option<TuneReport>, Error>>;
}

/// A measurement that runs. Dropping it calls it off, and the tier gets its own settings back.
#[derive(Debug)]
pub struct Measurement {
    pub events: UnboundedReceiver<MeasureEvent>,
    pub cancel: DropGuard,
}

/// An event of a measurement. A report or a failure is the last.
#[derive(Debug)]
pub enum MeasureEvent {
    Progress(Progress),
    /// A line of the table: a `BenchRow` or a `TuneRow`.
    Row(Value),
    /// A `BenchReport`, a `TuneReport` or a `Mark`.
    Report(Value),
    Failed(Error),
}

impl MeasureEvent {
    /// The event's name and data.
    pub fn wire(self) -> (&'static str, Value) {
        match self {
            Self::Progress(progress) => (
                "progress",
                serde_json::to_value(progress).unwrap_or_default(),
            ),
            Self::Row(row) => ("row", row),
            Self::Report(report) => ("report", report),
            Self::Failed(error) => ("error", error.openai_body()),
        }
    }
}
