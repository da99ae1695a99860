//! The owner's state of one tier and its worker.

use super::{Event, Reply, endpoint::Remote, log::Refusals, words};
use crate::{
    LoadSpec, TierSpec,
    backoff::{Backoff, Rest},
    handle::WorkerLease,
    process::{Failure, Stop},
    safe_mode::{BegunLoad, Loads},
};
use std::{mem, path::PathBuf, time::Duration};
use tierbar_core::{
    Code, Error, Modality, TierId, TierKind, TierState,
    budget::gib,
    journal::Kind,
    lease::{Endpoint, KeepAlive},
    policy::{Holding, Phase, StopRequest, TierView},
    reclaim::{Missing, PATIENCE},
    setup::is_starter,
    status::{EngineKind, TierStatus},
};
use tokio::{
    sync::{mpsc, watch},
    time::Instant,
};

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
    stop: Option<(StopRequest, Error)>,
    /// When a drain is enforced.
    drain_until: Option<Duration>,
    failure: Option<Error>,
    /// Why it was stopped, if not on request.
    why: Option<String>,
    backoff: Backoff,
    /// The leases on an endpoint, which has no worker.
    pub(super) remote: Remote,
    pub(super) refusals: Refusals,
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

/// A process of a tier.
#[derive(Debug, Clone)]
pub(super) struct Worker {
    pub(super) id: u64,
    /// Never `Stopped`.
    pub(super) phase: Phase,
    pub(super) pid: Option<u32>,
    pub(super) socket: PathBuf,
    pub(super) leases: u32,
    /// Since when it has been ready without a lease.
    pub(super) idle_since: Option<Duration>,
    /// How long its last request keeps it loaded, if it set that.
    pub(super) keep: Option<KeepAlive>,
    pub(super) begun: Instant,
    /// Whether it has completed a request.
    pub(super) served: bool,
    pub(super) ready_since: Option<Instant>,
    pub(super) context_tokens: u32,
    pub(super) footprint_bytes: Option<u64>,
    pub(super) loaded_percent: Option<u8>,
    /// Its process has ended. It stays here until its memory is back.
    pub(super) gone: bool,
    /// Memory that was not freed at the last check.
    pub(super) missing: Option<Missing>,
    /// The tier as it was configured when this was started.
    spec: TierSpec,
    pub(super) load: LoadSpec,
    endpoint: Endpoint,
    stop: Stop,
    /// The error that its leases get.
    pub(super) ended: watch::Sender<Option<Error>>,
}

impl Worker {
    pub(super) fn new(
        id: u64,
        spec: TierSpec,
        load: LoadSpec,
        socket: PathBuf,
        endpoint: Endpoint,
        stop: Stop,
    ) -> Self {
        let spec = TierSpec {
            path: Some(load.path.clone()),
            ..spec
        };
        Self {
            id,
            phase: Phase::Starting,
            pid: None,
            socket,
            leases: 0,
            idle_since: None,
            keep: None,
            begun: Instant::now(),
            served: false,
            ready_since: None,
            context_tokens: load.plan.context_tokens,
            footprint_bytes: None,
            loaded_percent: None,
            gone: false,
            missing: None,
            spec,
            load,
            endpoint,
            stop,
            ended: watch::Sender::new(None),
        }
    }

    pub(super) fn lease(&self, tier: TierId, events: mpsc::UnboundedSender<Event>) -> WorkerLease {
        WorkerLease {
            tier,
            worker: self.id,
            model: self.load.model.clone(),
            endpoint: self.endpoint.clone(),
            ended: self.ended.subscribe(),
            events,
        }
    }
}

impl Worker {
    /// Returns a sentence if a command uses more memory than declared, on which the plan relies.
    fn exceeds(&self) -> Option<String> {
        self.load.command.as_ref()?;
        let (bytes, planned) = (self.footprint_bytes?, self.load.plan.total_bytes());
        (bytes > planned).then(|| {
            format!(
                "uses {}, more than the {} in its configuration: raise `memory`",
                gib(bytes),
                gib(planned)
            )
        })
    }
}

/// The end of a worker, for those it concerns.
#[derive(Debug)]
pub(super) struct Gone {
    /// Why.
    pub(super) end: Error,
    /// An unload, a failure or a crash.
    pub(super) kind: Kind,
    /// As it was last.
    pub(super) worker: Worker,
    /// Whether to refuse waiting requests.
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
            remote: Remote::default(),
            refusals: Refusals::default(),
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
        if rest == Rest::None || self.living().is_some() {
            return Ok(());
        }
        let crashes = self.backoff.crashes();
        let reason = self
            .failure
            .as_ref()
            .map_or("its worker crashed", |failure| &failure.message);
        let error = |then: &str| {
            let what = format!("{reason}; after {crashes} failures in a row {then}");
            Error::new(Code::TierFailed, what)
        };
        let Rest::For(left) = rest else {
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

    pub(super) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Returns the unfinished load of its model, if there is one.
    pub(super) fn never_ended(&self, loads: &Loads) -> Option<BegunLoad> {
        loads.of(self.spec.model.as_ref()?)
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

    pub(super) fn stop_reason(&self) -> Option<&Error> {
        self.stop.as_ref().map(|(_, reason)| reason)
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
    pub(super) fn ended(&mut self, failure: Option<Failure>, now: Instant) -> Option<Gone> {
        let worker = self.worker.as_mut()?;
        tracing::info!(tier = %self.spec.id, pid = worker.pid, "gone");
        let last = worker.clone();
        let phase = mem::replace(&mut worker.phase, Phase::Stopping);
        let (ready_since, served) = (worker.ready_since, worker.served);
        (worker.gone, worker.pid, worker.footprint_bytes) = (true, None, None);
        self.drain_until = None;
        let mut gone = Gone {
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
    pub(super) fn given_up(&mut self, missing: &Missing, waited: Duration) -> Vec<Reply<()>> {
        if waited >= PATIENCE {
            self.why = Some(words::not_back(self.why.as_deref(), missing));
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

    pub(super) fn view(&self, now: Duration, loads: &Loads) -> TierView {
        let worker = self.worker.as_ref();
        let prepared = self.next_holding();
        let holding = self.holding().or(prepared);
        // A stale worker ends once its successor is known to be loadable.
        let outdated = (self.stale() && prepared.is_some()).then_some(StopRequest::Drain);
        let late = self.drain_until.is_some_and(|until| until <= now);
        let stop = |(stop, _): &(StopRequest, Error)| if late { StopRequest::Force } else { *stop };
        TierView {
            id: self.spec.id.clone(),
            phase: worker.map_or(Phase::Stopped, |worker| worker.phase),
            kind: holding.map(|holding| holding.kind).unwrap_or_default(),
            plan_bytes: holding.map(|holding| holding.bytes),
            reserved_bytes: holding.map_or(0, |holding| holding.reserved_bytes),
            leases: worker.map_or(0, |worker| worker.leases),
            last_used: self.last_used,
            idle_since: worker.and_then(|worker| worker.idle_since),
            keep: worker
                .and_then(|worker| worker.keep)
                .map_or(self.spec.keep, KeepAlive::length),
            pinned: self.spec.pinned && !self.removed,
            idled_out: self.idled_out,
            rests: self.rests || self.spec.model.is_none() || self.never_ended(loads).is_some(),
            stop: self.stop.as_ref().map(stop).or(outdated),
        }
    }

    /// A loaded model without its projector takes text only: there was no room for it.
    fn input_modalities(&self) -> Vec<Modality> {
        let modalities = &self.spec.input_modalities;
        let text_only =
            |worker: &Worker| worker.load.command.is_none() && worker.load.projector.is_none();
        if self.worker.as_ref().is_some_and(text_only) {
            return modalities.iter().copied().take(1).collect();
        }
        modalities.clone()
    }

    /// Returns its status; `waiting` is what its requests wait for.
    pub(super) fn status(&self, waiting: &Option<String>, loads: &Loads) -> TierStatus {
        let worker = self.worker.as_ref();
        let state = match worker.map(|worker| (worker.phase, worker.leases)) {
            Some((Phase::Starting, _)) => TierState::Starting,
            Some((Phase::Stopping, _)) if self.living().is_none() && self.failure.is_some() => {
                TierState::Failed
            }
            Some((Phase::Stopping, _)) => TierState::Stopping,
            Some((_, 1..)) if self.stop.is_some() => TierState::Stopping,
            Some((_, 0)) => TierState::Ready,
            Some(_) => TierState::Busy,
            None if self.is_endpoint() && self.remote.leases > 0 => TierState::Busy,
            None if self.is_endpoint() => TierState::Ready,
            None if self.failure.is_some() => TierState::Failed,
            None => TierState::Stopped,
        };
        let failure = self.failure.as_ref().map(|failure| failure.message.clone());
        let drains = worker.is_some_and(|worker| worker.phase == Phase::Ready)
            && state == TierState::Stopping;
        TierStatus {
            id: self.spec.id.clone(),
            state,
            engine: EngineKind::from(&self.spec.engine),
            model: self.spec.model.clone(),
            is_starter: self
                .spec
                .model
                .as_ref()
                .is_some_and(|model| is_starter(model.as_str())),
            aliases: self.spec.aliases.clone(),
            kind: self.spec.kind,
            pid: worker.and_then(|worker| worker.pid),
            footprint_bytes: worker.and_then(|worker| worker.footprint_bytes),
            plan: worker.map(|worker| worker.load.plan.clone()),
            context_tokens: worker
                .map_or(self.spec.settings.context, |worker| worker.context_tokens),
            kv_cache: worker.map_or(self.spec.settings.kv_cache, |worker| {
                worker.load.settings.kv_cache
            }),
            input_modalities: self.input_modalities(),
            loaded_percent: worker
                .filter(|worker| worker.phase == Phase::Starting)
                .and_then(|worker| worker.loaded_percent),
            reason: failure
                .or_else(|| drains.then(|| "stops when its answers finish".to_owned()))
                .or_else(|| waiting.clone())
                .or_else(|| worker.and_then(Worker::exceeds))
                .or_else(|| match worker.and_then(|worker| worker.missing) {
                    Some(missing) => Some(words::not_yet_back(self.why.as_deref(), &missing)),
                    None => self.why.clone(),
                })
                .or_else(|| {
                    let load = self.never_ended(loads).filter(|_| worker.is_none());
                    load.map(|_| words::NEVER_ENDED.to_owned())
                }),
            unloads_at_ms: None,
            steps_down_to: None,
        }
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
