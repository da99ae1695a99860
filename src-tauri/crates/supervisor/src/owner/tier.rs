//! The owner's state of one tier and its worker.

mod view;
mod worker;

pub(super) use worker::Worker;

use super::{Reply, endpoint::EndpointLeases, log::RefusalLog, words};
use crate::{
    LoadSpec, TierSpec,
    backoff::{Backoff, RetryDelay},
    process::WorkerFailure,
    safe_mode::{BegunLoad, LoadRecord},
};
use std::{mem, time::Duration};
use tierbar_core::{
    Code, Error, TierKind,
    budget::gib,
    journal::Kind,
    policy::{Holding, Phase, StopRequest},
    reclaim::{MissingMemory, PATIENCE},
};
use tokio::time::Instant;

/// A worker that has run this long is sound.
const SETTLED: Duration = Duration::from_secs(60);

/// A worker beyond its plan by this much, and by half the plan, has a leak.
const LEAKED: u64 = 1 << 30;

#[derive(Debug)]
pub(super) struct Tier {
    pub(super) spec: TierSpec,
    /// Whether it is gone from the configuration; it stays here until its worker has ended.
    pub(super) removed: bool,
    pub(super) worker: Option<Worker>,
    pub(super) preparation: Preparation,
    pub(super) last_used: u64,
    /// It was unloaded because it was idle, and since then no tier was loaded, and none ended for another reason.
    pub(super) idled_out: bool,
    /// It loads only on request: its last load failed, it crashed soon after, or it was stopped.
    pub(super) rests: bool,
    /// A smaller tier stands in for it until then.
    pub(super) down_until: Option<Duration>,
    /// Replies to those who wait for its end.
    pub(super) stoppers: Vec<Reply<()>>,
    /// The request to end it, with the error for its leases.
    pub(super) stop: Option<(StopRequest, Error)>,
    /// When a drain is enforced.
    drain_until: Option<Duration>,
    pub(super) failure: Option<Error>,
    /// Why it was stopped, if not on request.
    why: Option<String>,
    backoff: Backoff,
    /// The leases on an endpoint, which has no worker.
    pub(super) remote: EndpointLeases,
    pub(super) refusals: RefusalLog,
}

/// Whether the model that would be loaded has been read.
#[derive(Debug)]
pub(super) enum Preparation {
    None,
    Pending(u64),
    Done(Box<LoadSpec>),
}

impl Preparation {
    pub(super) fn take(&mut self) -> Option<LoadSpec> {
        match mem::replace(self, Self::None) {
            Self::Done(spec) => Some(*spec),
            Self::None | Self::Pending(_) => None,
        }
    }
}

/// The end of a worker, for those it concerns.
#[derive(Debug)]
pub(super) struct EndedWorker {
    pub(super) end: Error,
    pub(super) kind: Kind,
    /// As it was last.
    pub(super) worker: Worker,
    pub(super) refused: bool,
}

impl Tier {
    pub(super) fn new(spec: TierSpec) -> Self {
        Self {
            spec,
            removed: false,
            worker: None,
            preparation: Preparation::None,
            last_used: 0,
            idled_out: false,
            rests: false,
            down_until: None,
            stoppers: Vec::new(),
            stop: None,
            drain_until: None,
            failure: None,
            why: None,
            backoff: Backoff::default(),
            remote: EndpointLeases::default(),
            refusals: RefusalLog::default(),
        }
    }

    /// Returns its worker, if it still is this one.
    pub(super) fn worker_mut(&mut self, id: u64) -> Option<&mut Worker> {
        self.worker.as_mut().filter(|worker| worker.id == id)
    }

    /// Returns its worker, unless that has ended and only its memory is not freed.
    pub(super) fn living(&self) -> Option<&Worker> {
        self.worker.as_ref().filter(|worker| !worker.gone)
    }

    /// The configuration has changed since its worker was started.
    pub(super) fn stale(&self) -> bool {
        self.worker
            .as_ref()
            .is_some_and(|worker| !loads_the_same(&worker.spec, &self.spec))
    }

    /// Whether a request may start it: not while it rests after crashes.
    pub(super) fn rested(&self, now: Instant) -> Result<(), Error> {
        let rest = self.backoff.rest(now);
        if rest == RetryDelay::None || self.living().is_some() {
            return Ok(());
        }
        let crashes = self.backoff.crashes;
        let reason = self
            .failure
            .as_ref()
            .map_or("its worker crashed", |failure| &failure.message);
        let error = |then: &str| {
            let what = format!("{reason}; after {crashes} failures in a row {then}");
            Error::new(Code::TierFailed, what)
        };
        let RetryDelay::For(left) = rest else {
            return Err(error("Tierbar stopped trying").hint(
                "choose another model or other settings for the tier, or stop the tier to try again",
            ));
        };
        let seconds = left.as_secs_f64().ceil();
        Err(error(&format!("the next attempt is in {seconds} s"))
            .hint("stop the tier to try again now")
            .detail("retry_after_seconds", seconds))
    }

    pub(super) fn forgive(&mut self) {
        self.failure = None;
        self.why = None;
        self.backoff = Backoff::default();
    }

    /// Records that its worker has completed a request, and so is sound.
    pub(super) fn served(&mut self) {
        self.backoff = Backoff::default();
    }

    pub(super) fn fail(&mut self, error: &Error) {
        tracing::warn!(tier = %self.spec.id, code = error.code.as_str(), "{error}");
        self.failure = Some(error.clone());
        self.rests = true;
    }

    /// Returns the unfinished load of its model, if there is one.
    pub(super) fn never_ended(&self, loads: &LoadRecord) -> Option<BegunLoad> {
        loads.begun_load(self.spec.model.as_ref()?)
    }

    /// Requests the end of its worker; its leases get `reason`, and it may drain until `until`.
    pub(super) fn end(&mut self, stop: StopRequest, reason: &Error, until: Option<Duration>) {
        if self.worker.is_some() {
            self.stop = Some((stop, reason.clone()));
            self.drain_until = until;
        }
    }

    /// Ends a worker at once that is already ending.
    pub(super) fn hasten(&self) {
        if let Some(worker) = self
            .living()
            .filter(|worker| worker.phase == Phase::Stopping)
        {
            worker.stop.request(true);
        }
    }

    /// Records the memory of its worker. One that leaks is replaced when its answers have ended.
    pub(super) fn weighed(&mut self, bytes: u64) {
        let Some(worker) = self.worker.as_mut().filter(|worker| !worker.gone) else {
            return;
        };
        let exceeded = worker.exceeds().is_some();
        worker.footprint_bytes = Some(bytes);
        if let Some(what) = worker.exceeds().filter(|_| !exceeded) {
            tracing::warn!(tier = %self.spec.id, "{what}");
        }
        // The plan of a command is declared, not measured: the next process would use as much.
        if worker.load.command.is_some() {
            return;
        }
        let planned = worker.load.plan.total_bytes();
        let most = planned.saturating_add(LEAKED.max(planned / 2));
        // A load uses more for a moment.
        if bytes > most && self.stop.is_none() && worker.phase == Phase::Ready {
            let (held, planned) = (gib(bytes), gib(planned));
            let what = format!(
                "{} was unloaded because it used {held} and {planned} was planned",
                self.spec.id
            );
            tracing::warn!(tier = %self.spec.id, %held, %planned, "a worker uses far more memory than planned");
            self.end(
                StopRequest::Drain,
                &Error::new(Code::TierStopped, what),
                None,
            );
        }
    }

    /// Cancels a drain because the tier was started again; returns the replies of those who requested it.
    pub(super) fn keep(&mut self) -> Vec<Reply<()>> {
        let drains = self.drain_until.is_some()
            && self
                .living()
                .is_some_and(|worker| worker.phase != Phase::Stopping);
        if !drains {
            return Vec::new();
        }
        (self.stop, self.drain_until) = (None, None);
        mem::take(&mut self.stoppers)
    }

    /// Returns when a drain is enforced.
    pub(super) fn drain_until(&self) -> Option<Duration> {
        self.drain_until.filter(|_| self.living().is_some())
    }

    pub(super) fn started(&mut self, worker: Worker) {
        // The path of the load is newer than the configured one.
        self.spec.path = worker.spec.path.clone();
        self.failure = None;
        self.why = None;
        self.worker = Some(worker);
    }

    pub(super) fn stopping(&mut self, why: String, at_once: bool) {
        self.why = Some(why);
        if let Some(worker) = &mut self.worker {
            worker.phase = Phase::Stopping;
            worker.stop.request(at_once);
        }
    }

    /// Records the end of its worker's process, and returns whom it concerns.
    pub(super) fn ended(
        &mut self,
        failure: Option<WorkerFailure>,
        now: Instant,
    ) -> Option<EndedWorker> {
        let worker = self.worker.as_mut()?;
        tracing::info!(tier = %self.spec.id, pid = worker.pid, "gone");
        let last = worker.clone();
        let phase = mem::replace(&mut worker.phase, Phase::Stopping);
        let (ready_since, served) = (worker.ready_since, worker.served);
        (worker.gone, worker.pid, worker.footprint_bytes) = (true, None, None);
        self.drain_until = None;
        let mut gone = EndedWorker {
            kind: Kind::Unload,
            end: match self.stop.take() {
                Some((_, reason)) => reason,
                None => {
                    let why = self.why.as_deref().unwrap_or("stopped");
                    Error::new(Code::TierStopped, format!("{} was {why}", self.spec.id))
                }
            },
            refused: false,
            worker: last,
        };
        if let Some(failure) = failure.filter(|_| phase != Phase::Stopping) {
            gone.kind = if failure.crashed {
                Kind::Crash
            } else {
                Kind::Failure
            };
            self.fail(&failure.error);
            // A pinned tier that crashes soon after each load is not loaded again by itself.
            self.rests = ready_since.is_none_or(|since| now.duration_since(since) < SETTLED);
            gone.refused = phase == Phase::Starting;
            if failure.crashed && !served {
                self.backoff.crashed(now);
            }
            gone.end = failure.error;
        }
        Some(gone)
    }

    /// Removes its worker once its memory is freed; returns the replies of those who wait for its end.
    pub(super) fn back(&mut self) -> Vec<Reply<()>> {
        (self.worker, self.stop, self.drain_until) = (None, None, None);
        mem::take(&mut self.stoppers)
    }

    /// The same when the wait is given up, or a request needs less than is available.
    pub(super) fn given_up(&mut self, missing: &MissingMemory, waited: Duration) -> Vec<Reply<()>> {
        if waited >= PATIENCE {
            self.why = Some(words::not_back(self.why.as_deref(), missing, true));
        }
        self.back()
    }

    /// Whether it is loaded into the embedder's slot.
    pub(super) fn is_embedder(&self) -> bool {
        let holding = self.holding();
        holding.is_some_and(|holding| holding.kind == TierKind::Embedder)
    }

    /// Returns what its next worker will hold, once that is known.
    pub(super) fn next_holding(&self) -> Option<Holding> {
        match &self.preparation {
            Preparation::Done(spec) => Some(Holding::from(&spec.plan)),
            Preparation::None | Preparation::Pending(_) => None,
        }
    }

    pub(super) fn holding(&self) -> Option<Holding> {
        Some(Holding::from(&self.worker.as_ref()?.load.plan))
    }
}

/// Returns whether a worker of one serves the other: how long a tier stays, and how it is called, do not concern its worker. Of a
/// model whose file is gone, nothing else is known any more.
fn loads_the_same(one: &TierSpec, other: &TierSpec) -> bool {
    let is_gone = other.model.is_some() && other.remote_model.is_none() && other.path.is_none();
    let mut other = TierSpec {
        keep: one.keep,
        pinned: one.pinned,
        aliases: one.aliases.clone(),
        input_modalities: one.input_modalities.clone(),
        ..other.clone()
    };
    if is_gone {
        other.kind = one.kind;
        other.projector.clone_from(&one.projector);
    }
    *one == other
}
