//! Measurements of tiers: one at a time, canceled when the client disconnects, and the last report of each tier.
//!
//! A measurement is a task of its own. Its caller holds the events; dropping them cancels it. Even then, and if it fails or
//! panics, the tier gets its configured settings back.

mod agent;
mod bench;
mod paging;
mod tune;
mod worker;

use crate::{live_config::LiveConfig, measured};
use parking_lot::Mutex;
use serde::{Serialize, de::DeserializeOwned};
use std::{future::Future, sync::Arc};
use tierbar_core::{
    Code, Error, TierId, TierState,
    lease::{BoxFuture, Tiers},
    status::{Pressure, TierStatus},
};
use tierbar_inference::services::measures::{MeasureEvent, Measurement, Measures};
use tierbar_measure::{
    bench::{BenchReport, BenchRequest, Progress},
    tune::{TuneReport, TuneRequest},
};
use tokio::{
    sync::mpsc::{UnboundedSender, unbounded_channel},
    task::spawn_blocking,
};
use tokio_util::sync::CancellationToken;

/// Kinds of reports, as their files are named.
const BENCH: &str = "bench";
const TUNE: &str = "tune";

/// The host's measurements, one at a time: two would distort each other.
#[derive(Debug)]
pub(crate) struct Measurements {
    pub(crate) host: Arc<LiveConfig>,
    /// The tier that is being measured.
    pub(crate) running: Arc<Mutex<Option<TierId>>>,
}

/// The right to measure.
struct MeasurementPermit(Arc<Mutex<Option<TierId>>>);

impl Drop for MeasurementPermit {
    fn drop(&mut self) {
        *self.0.lock() = None;
    }
}

impl Measurements {
    fn reserve(&self, tier: &TierId) -> Result<MeasurementPermit, Error> {
        let mut running = self.running.lock();
        if let Some(measured) = &*running {
            return Err(
                Error::new(Code::Measuring, format!("{measured} is being measured"))
                    .hint("wait until it ends, or cancel it"),
            );
        }
        *running = Some(tier.clone());
        Ok(MeasurementPermit(Arc::clone(&self.running)))
    }

    /// Runs `work` in a task until it has ended or its caller has gone. `kind`: what its report is kept as, if it does not keep it itself.
    fn begin<T, F>(
        &self,
        kind: Option<&'static str>,
        tier: TierId,
        work: impl FnOnce(Arc<LiveConfig>, TierId, ProgressSender) -> F,
    ) -> Result<Measurement, Error>
    where
        T: Serialize + Send + Sync + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let permit = self.reserve(&tier)?;
        let (events, receiver) = unbounded_channel();
        let cancel = CancellationToken::new();
        let progress = ProgressSender(events.clone());
        let (host, called_off) = (Arc::clone(&self.host), cancel.clone());
        let work = work(Arc::clone(&host), tier.clone(), progress);
        tokio::spawn(async move {
            // A nested task, so that a panic in it does not leave the tier with trial settings.
            let mut working = tokio::spawn(work);
            let outcome = tokio::select! {
                ended = &mut working => ended.unwrap_or_else(|panic| {
                    Err(Error::new(Code::Internal, format!("the measurement failed: {panic}")))
                }),
                () = called_off.cancelled() => {
                    working.abort();
                    // It releases the tier when it ends.
                    let _ = working.await;
                    Err(Error::new(Code::Cancelled, "the measurement was canceled"))
                }
            };
            host.end_trial(&tier).await;
            let last = match outcome {
                Ok(report) => {
                    let json = serde_json::to_value(&report).unwrap_or_default();
                    if let Some(kind) = kind {
                        let path = host.folder.measured(kind, &tier);
                        // A panic in it would only lose a measurement.
                        let _ = spawn_blocking(move || measured::write(&path, &report)).await;
                    }
                    MeasureEvent::Report(json)
                }
                Err(error) => {
                    tracing::info!(%tier, "not measured: {error}");
                    MeasureEvent::Failed(error)
                }
            };
            // The next measurement may start as soon as the end is reported.
            drop(permit);
            let _gone = events.send(last);
        });
        Ok(Measurement {
            events: receiver,
            cancel: cancel.drop_guard(),
        })
    }
}

async fn last<T: DeserializeOwned + Send + 'static>(
    host: &LiveConfig,
    kind: &str,
    tier: &TierId,
) -> Option<T> {
    let path = host.folder.measured(kind, tier);
    let read = spawn_blocking(move || measured::read::<Option<T>>(&path)).await;
    read.ok().flatten()
}

impl Measures for Measurements {
    fn bench(&self, tier: TierId, request: BenchRequest) -> Result<Measurement, Error> {
        self.begin(Some(BENCH), tier, |host, tier, progress| {
            bench::bench(host, tier, request, progress)
        })
    }

    fn tune(&self, tier: TierId, request: TuneRequest) -> Result<Measurement, Error> {
        self.begin(Some(TUNE), tier, |host, tier, progress| {
            tune::tune(host, tier, request, progress)
        })
    }

    fn agent(&self, tier: TierId) -> Result<Measurement, Error> {
        self.begin(None, tier, agent::measure)
    }

    fn last_bench(&self, tier: TierId) -> BoxFuture<'_, Result<Option<BenchReport>, Error>> {
        Box::pin(async move { Ok(last(&self.host, BENCH, &tier).await) })
    }

    fn last_tune(&self, tier: TierId) -> BoxFuture<'_, Result<Option<TuneReport>, Error>> {
        Box::pin(async move { Ok(last(&self.host, TUNE, &tier).await) })
    }
}

#[derive(Debug, Clone)]
struct ProgressSender(UnboundedSender<MeasureEvent>);

impl ProgressSender {
    fn progress(&self, done: usize, of: usize, doing: impl Into<String>) {
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        self.send(MeasureEvent::Progress(Progress {
            done: number(done),
            of: number(of.max(done)),
            doing: doing.into(),
        }));
    }

    fn row(&self, row: &impl Serialize) {
        self.send(MeasureEvent::Row(
            serde_json::to_value(row).unwrap_or_default(),
        ));
    }

    fn send(&self, event: MeasureEvent) {
        // There is no receiver once it is canceled.
        let _gone = self.0.send(event);
    }
}

/// # Errors
/// `Overloaded` if memory pressure is at `limit` or higher.
fn check_pressure(host: &LiveConfig, limit: Pressure) -> Result<(), Error> {
    if host.board.now().ram.pressure < limit {
        return Ok(());
    }
    let message = "the measurement stopped because memory is low";
    Err(Error::new(Code::Overloaded, message).hint("close other programs and try again"))
}

/// Checks that the tier has not been stopped, for a caller that holds a lease on it.
///
/// # Errors
/// `TierStopped` if it is to end.
fn check_not_stopped(host: &LiveConfig, tier: &TierId) -> Result<(), Error> {
    let tiers = host.supervisor.snapshot();
    let stopping = |status: &TierStatus| status.id == *tier && status.state == TierState::Stopping;
    if tiers.iter().any(stopping) {
        let message = format!("{tier} was stopped during the measurement");
        return Err(Error::new(Code::TierStopped, message));
    }
    Ok(())
}
