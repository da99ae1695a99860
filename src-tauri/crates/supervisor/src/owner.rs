//! The one task that owns all tiers: it takes events, asks the policy, and carries out its steps.

mod endpoint;
mod log;
mod reclaim;
mod requests;
mod snapshot;
mod step_down;
mod steps;
mod tier;
mod words;

use crate::{
    LoadSpec, Options, Rules, TierSpec,
    handle::{Handle, SharedHandle, shutting_down},
    predecessors::PredecessorLock,
    process::ProcessReport,
    safe_mode::LoadRecord,
    sockets::{self, Sockets},
};
use std::{mem, sync::Arc, time::Duration};
use tierbar_core::{
    Code, Error, TierId,
    budget::{Budget, gib},
    config::Engine,
    lease::{KeepAlive, Purpose},
    policy::{self, Alarm, Phase, Stance, StopRequest},
    status::{BudgetStatus, TierStatus},
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep_until},
};

pub(crate) use requests::TierRequest;
use requests::WaitingRequest;
use tier::{EndedWorker, Preparation, Tier, Worker};
use words::GuardReasons;

pub(crate) type Reply<T> = oneshot::Sender<Result<T, Error>>;

type OwnerCall = Box<dyn FnOnce(&mut Supervisor) + Send>;

/// Calls the owner in its task, one call after another. Once it has ended, there is nothing left to change, and calls are lost.
#[derive(Debug, Clone)]
pub(crate) struct OwnerCalls(mpsc::UnboundedSender<OwnerCall>);

impl OwnerCalls {
    pub(crate) fn send(&self, call: impl FnOnce(&mut Supervisor) + Send + 'static) {
        let _ = self.0.send(Box::new(call));
    }
}

/// The owner of the tiers. When it replies, the snapshot is at least as new as the reply.
#[derive(Debug)]
pub struct Supervisor {
    options: Options,
    /// The start of its clock.
    started: Instant,
    alarm: Alarm,
    /// When it was raised.
    alarm_since: Duration,
    stance: Stance,
    causes: GuardReasons,
    sockets: Sockets,
    predecessors: Arc<PredecessorLock>,
    loads: Arc<LoadRecord>,
    tiers: Vec<Tier>,
    queue: Vec<WaitingRequest>,
    /// Memory not yet freed, and of which worker.
    missing: Option<(u64, policy::MissingTierMemory)>,
    /// Numbers requests, preparations, workers and uses, which only have to differ and grow.
    counter: u64,
    closing: bool,
    closed: Vec<oneshot::Sender<()>>,
    calls: OwnerCalls,
    tiers_seen: watch::Sender<Vec<TierStatus>>,
    budget_seen: watch::Sender<BudgetStatus>,
}

impl Supervisor {
    /// Starts the owner's task, with nothing loaded. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`Code::Storage`] if the sockets' folder cannot be made.
    pub fn start(options: Options) -> Result<Handle, Error> {
        let (calls, inbox) = mpsc::unbounded_channel();
        let owner = Self {
            sockets: Sockets::open(&options.run_dir)?,
            predecessors: Arc::new(PredecessorLock::new(&options.run_dir)),
            loads: LoadRecord::open(options.loads_file.clone()),
            tiers: options.tiers.iter().cloned().map(Tier::new).collect(),
            stance: options.stance,
            options,
            started: Instant::now(),
            alarm: Alarm::None,
            alarm_since: Duration::ZERO,
            causes: GuardReasons::default(),
            queue: Vec::new(),
            missing: None,
            counter: 0,
            closing: false,
            closed: Vec::new(),
            calls: OwnerCalls(calls),
            tiers_seen: watch::Sender::default(),
            budget_seen: watch::Sender::default(),
        };
        owner.publish();
        let shared = Arc::new(SharedHandle {
            owner: owner.calls.clone(),
            tiers: owner.tiers_seen.subscribe(),
            budget: owner.budget_seen.subscribe(),
            never_ended: owner.loads.never_ended(),
        });
        tokio::spawn(owner.run(inbox));
        Ok(Handle { shared })
    }

    async fn run(mut self, mut inbox: mpsc::UnboundedReceiver<OwnerCall>) {
        loop {
            let look = self.advance().into_iter().chain(self.steps_end()).min();
            let look = look.map(|at| self.started + at);
            self.publish();
            if self.closing && self.tiers.iter().all(|tier| tier.living().is_none()) {
                break;
            }
            tokio::select! {
                call = inbox.recv() => match call {
                    // What callers that have gone wanted is removed after every call.
                    Some(call) => call(&mut self),
                    None => break,
                },
                () = sleep_until(look.unwrap_or(self.started)), if look.is_some() => {}
            }
        }
        for closed in self.closed.drain(..) {
            let _ = closed.send(());
        }
    }

    pub(crate) fn want(&mut self, tier: TierId, want: TierRequest) {
        match self.admit(&tier) {
            Ok(()) if self.is_endpoint(&tier) => match self.stance {
                Stance::Paused => want.refuse(words::paused_error(&self.causes)),
                _ => self.grant_endpoint(tier, want),
            },
            Ok(()) => self.enqueue(tier, want),
            Err(error) => {
                // An unknown tier is the client's mistake, not a decision of the policy.
                if error.code != Code::TierUnknown && !want.is_ahead() {
                    self.log_refusal(&tier, 1, &error);
                }
                want.refuse(error);
            }
        }
    }

    pub(crate) fn keep(&mut self, id: &TierId, worker: u64, keep: KeepAlive) {
        let tier = self.tier(id);
        if let Some(worker) = tier.and_then(|tier| tier.worker_mut(worker)) {
            worker.keep = Some(keep);
        }
    }

    pub(crate) fn set_budget(&mut self, budget: Budget) {
        self.options.budget = budget;
        for tier in &mut self.tiers {
            tier.preparation = Preparation::None;
        }
    }

    pub(crate) fn set_rules(&mut self, rules: Rules) {
        self.options.rules = rules;
    }

    pub(crate) fn set_alarm(&mut self, alarm: Alarm, why: String) {
        if self.alarm == Alarm::None {
            self.alarm_since = self.started.elapsed();
        }
        (self.alarm, self.causes.alarm) = (alarm, why);
        if alarm > Alarm::None {
            self.step_down();
            self.trim();
        }
        if alarm >= Alarm::Unload {
            self.tiers.iter().for_each(Tier::hasten);
        }
    }

    pub(crate) fn set_stance(&mut self, stance: Stance, why: String) {
        (self.stance, self.causes.stance) = (stance, why);
    }

    pub(crate) fn set_footprints(&mut self, footprints: Vec<(TierId, u64)>) {
        for (id, bytes) in footprints {
            if let Some(tier) = self.tier(&id) {
                tier.weighed(bytes);
            }
        }
    }

    pub(crate) fn close(&mut self, closed: Option<oneshot::Sender<()>>) {
        self.closing = true;
        self.closed.extend(closed);
        for id in self.ids() {
            self.refuse(&id, &shutting_down());
        }
        for tier in &mut self.tiers {
            tier.remote.cut(&shutting_down());
            tier.end(StopRequest::Force, &shutting_down(), None);
        }
    }

    pub(crate) fn released(&mut self, id: &TierId, worker: u64, purpose: Purpose, held: Duration) {
        if worker == endpoint::REMOTE {
            return self.released_endpoint(id);
        }
        let (use_number, now) = (self.next(), self.started.elapsed());
        if let Some(tier) = self.tier(id)
            && let Some(worker) = tier.worker_mut(worker)
        {
            worker.released(purpose, held, now);
            let (idle, lives) = (worker.leases == 0, !worker.gone);
            worker.served |= lives;
            if idle {
                worker.idle_since = Some(now);
                tier.last_used = use_number;
            }
            if lives {
                tier.served();
            }
        }
    }

    pub(crate) fn stop(&mut self, id: &TierId, force: bool, reply: Reply<()>) {
        let until = self.started.elapsed() + self.options.drain_deadline;
        let Some(tier) = self.tier(id) else {
            let _ = reply.send(Err(self.unknown(id)));
            return;
        };
        let stopped = Error::new(Code::TierStopped, format!("{id} was stopped"))
            .hint("send another request to load it again");
        tier.forgive();
        tier.rests = true;
        if force {
            tier.remote.cut(&stopped);
        }
        if tier.worker.is_some() {
            let stop = if force {
                tier.hasten();
                StopRequest::Force
            } else {
                StopRequest::Drain
            };
            tier.end(stop, &stopped, Some(until));
            tier.stoppers.push(reply);
        } else {
            self.publish();
            let _ = reply.send(Ok(()));
        }
        self.refuse(id, &stopped);
    }

    fn prepared(&mut self, id: &TierId, preparation: u64, result: Result<LoadSpec, Error>) {
        let budget = self.options.budget;
        let Some(tier) = self.tier(id) else { return };
        if !matches!(tier.preparation, Preparation::Pending(current) if current == preparation) {
            return;
        }
        match result.and_then(|spec| check_fits(spec, &budget)) {
            Ok(spec) => tier.preparation = Preparation::Done(Box::new(spec)),
            Err(error) => {
                // A tier without a model has not failed.
                let failed = tier.living().is_none() && tier.spec.model.is_some();
                if failed {
                    tier.fail(&error);
                }
                let refused = self.refuse(id, &error);
                if failed && refused == 0 {
                    self.log_failure(id, &error);
                }
            }
        }
    }

    fn reported(&mut self, id: &TierId, worker: u64, report: ProcessReport) {
        match report {
            ProcessReport::Missing(missing, waited) => {
                return self.missed(id, worker, missing, waited);
            }
            ProcessReport::Back(available) => return self.back(id, worker, available),
            _ => {}
        }
        let (use_number, now) = (self.next(), self.started.elapsed());
        let Some(tier) = self.tier(id) else { return };
        let Some(running) = tier.worker_mut(worker) else {
            return;
        };
        match report {
            ProcessReport::Spawned(pid) => running.pid = Some(pid),
            ProcessReport::Loading(percent) => running.loaded_percent = Some(percent),
            ProcessReport::Ready(_) if running.phase != Phase::Starting => {}
            ProcessReport::Ready(ready) => {
                running.phase = Phase::Ready;
                running.idle_since = Some(now);
                running.ready_since = Some(Instant::now());
                running.context_tokens = ready.context_tokens;
                tracing::info!(tier = %id, pid = running.pid, context = ready.context_tokens, "ready");
                tier.last_used = use_number;
                self.log_ready(id, &ready.memory);
            }
            ProcessReport::Ended(failure) => {
                sockets::remove(&running.socket);
                if let Some(gone) = tier.ended(failure, Instant::now()) {
                    self.log_end(id, &gone);
                    self.end_leases(id, gone);
                }
            }
            ProcessReport::Missing(..) | ProcessReport::Back(_) => {}
        }
    }

    fn end_leases(&mut self, id: &TierId, gone: EndedWorker) {
        self.publish();
        if gone.refused {
            self.refuse(id, &gone.end);
        }
        // Without leases there is no receiver.
        gone.worker.ended.send_replace(Some(gone.end));
    }

    pub(crate) fn set_tiers(&mut self, specs: Vec<TierSpec>) {
        let until = self.started.elapsed() + self.options.drain_deadline;
        let mut before = mem::take(&mut self.tiers);
        for mut spec in specs {
            let known = before.iter().position(|tier| tier.spec.id == spec.id);
            let mut tier = match known {
                Some(index) => before.remove(index),
                None => Tier::new(spec.clone()),
            };
            tier.removed = false;
            if spec.path.is_none() && spec.model == tier.spec.model {
                spec.path.clone_from(&tier.spec.path);
            }
            if tier.spec != spec {
                if matches!(spec.engine, Engine::Endpoint(_)) {
                    let what = format!("{} {}", spec.id, words::CHANGED);
                    tier.end(
                        StopRequest::Drain,
                        &Error::new(Code::TierStopped, what),
                        Some(until),
                    );
                }
                tier.spec = spec;
                tier.preparation = Preparation::None;
                tier.rests = false;
                tier.forgive();
            }
            self.tiers.push(tier);
        }
        self.grant_to_endpoints();
        for mut tier in before {
            let gone = Error::new(
                Code::TierUnknown,
                format!("{} was removed from the configuration", tier.spec.id),
            );
            self.refuse(&tier.spec.id, &gone);
            tier.remote.cut(&gone);
            if tier.worker.is_some() {
                tier.removed = true;
                tier.end(StopRequest::Drain, &gone, Some(until));
                self.tiers.push(tier);
            }
        }
    }

    fn ids(&self) -> Vec<TierId> {
        let ids = self.tiers.iter().map(|tier| tier.spec.id.clone());
        ids.collect()
    }

    fn tier(&mut self, id: &TierId) -> Option<&mut Tier> {
        self.tiers.iter_mut().find(|tier| tier.spec.id == *id)
    }

    fn next(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }
}

/// The host plans against a budget that may be older than this one.
fn check_fits(spec: LoadSpec, budget: &Budget) -> Result<LoadSpec, Error> {
    let needed = spec.plan.total_bytes();
    if policy::fits_alone(budget, needed) {
        return Ok(spec);
    }
    let total = budget.total_bytes;
    let what = format!(
        "{} needs {}, and the budget for models is {}",
        spec.model,
        gib(needed),
        gib(total)
    );
    Err(Error::new(Code::OverBudget, what)
        .hint("choose a smaller model or a smaller context")
        .detail("needed_bytes", needed)
        .detail("budget_bytes", total))
}
