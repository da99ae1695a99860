//! From state to steps: it reads models, calls the policy, and carries out its steps.

use super::{Preparation, Supervisor, Tier, TierRequest, WaitingRequest, Worker, words};
use crate::{
    LoadSpec,
    process::{self, LaunchParams, StopSignal, foreign},
};
use std::{net::TcpListener, path::Path, sync::Arc, time::Duration};
use tierbar_core::{
    Code, Error, TierId,
    budget::gib,
    config::Dialect,
    journal::{Kind, LogEvent},
    lease::{Address, Endpoint, Foreign, Purpose},
    policy::{self, Refusal, State, Step, UnloadReason},
};
use tokio::time::timeout;

/// A header is read in milliseconds, in seconds from a disk that sleeps.
const PREPARATION: Duration = Duration::from_secs(30);

impl Supervisor {
    /// Does everything that is due.
    ///
    /// Returns when something becomes due by time alone.
    pub(super) fn advance(&mut self) -> Option<Duration> {
        self.queue.retain(|waiter| !waiter.want.abandoned());
        self.withdraw();
        loop {
            self.prepare();
            let state = self.state();
            let steps = policy::plan(&state);
            if steps.is_empty() {
                match policy::tier_to_preload(&state).filter(|_| !self.closing) {
                    Some(id) => self.enqueue(id, TierRequest::Returning),
                    None => return self.next_look(&state),
                }
            }
            for step in steps {
                match step {
                    Step::Start(id) => self.start_worker(&id),
                    Step::Stop { tier, force, why } => self.stop_worker(&tier, force, &why),
                    Step::Revoke { tier, why } => self.revoke(&tier, &why),
                    Step::Grant(request) => self.grant(request),
                    Step::Refuse { request, why } => self.refuse_one(request, &why),
                }
            }
        }
    }

    fn next_look(&self, state: &State) -> Option<Duration> {
        let drains = self.tiers.iter().filter_map(Tier::drain_until);
        let drains = drains.filter(|until| *until > state.now);
        let expected = self.queue.iter().filter_map(|waiter| match waiter.want {
            TierRequest::Expected(until) => Some(until.saturating_duration_since(self.started)),
            _ => None,
        });
        let own = drains.chain(expected);
        own.chain(policy::next_look(state)).min()
    }

    /// Withdraws preloads that no longer apply.
    fn withdraw(&mut self) {
        let returning = |waiter: &&WaitingRequest| matches!(waiter.want, TierRequest::Returning);
        let own = self.queue.iter().filter(returning);
        let own: Vec<_> = own.map(|waiter| waiter.request).collect();
        if !own.is_empty() {
            let gone = policy::withdrawn_requests(&self.state(), &own);
            self.queue.retain(|waiter| !gone.contains(&waiter.request));
        }
    }

    /// Reads the models of all tiers with waiters that would be loaded.
    fn prepare(&mut self) {
        for index in 0..self.tiers.len() {
            let preparation = self.next();
            let tier = &mut self.tiers[index];
            if !self.queue.iter().any(|waiter| waiter.tier == tier.spec.id) {
                // Read again for the next one: the file may change meanwhile.
                tier.preparation = Preparation::None;
            } else if matches!(tier.preparation, Preparation::None)
                && (tier.living().is_none() || tier.stale())
            {
                tier.preparation = Preparation::Pending(preparation);
                let (source, calls) = (self.options.source.clone(), self.calls.clone());
                let id = tier.spec.id.clone();
                tokio::spawn(async move {
                    let tier = id.clone();
                    let reading = tokio::spawn(async move { source.prepare(&tier).await });
                    let result = match timeout(PREPARATION, reading).await {
                        Ok(Ok(result)) => result,
                        Ok(Err(panic)) => Err(Error::new(
                            Code::Internal,
                            format!("{id} could not be planned: {panic}"),
                        )),
                        Err(_) => Err(Error::new(
                            Code::TierFailed,
                            format!(
                                "reading the model of {id} took more than {} s",
                                PREPARATION.as_secs()
                            ),
                        )
                        .hint("check that the disk that holds it is connected and awake")),
                    };
                    calls.send(move |owner| owner.prepared(&id, preparation, result));
                });
            }
        }
    }

    pub(super) fn state(&self) -> State {
        // A request for a changed tier must not be given the old worker while the new model is being read.
        let undecided = |id: &TierId| {
            let tier = self.tiers.iter().find(|tier| tier.spec.id == *id);
            tier.is_some_and(|tier| {
                tier.stale() && !matches!(tier.preparation, Preparation::Done(_))
            })
        };
        let waiting = |waiter: &WaitingRequest| policy::WaitingRequest {
            request: waiter.request,
            tier: waiter.tier.clone(),
            since: waiter.since,
            purpose: waiter.want.purpose(),
            ahead: waiter.want.is_ahead(),
        };
        let decided = self.queue.iter().filter(|waiter| !undecided(&waiter.tier));
        let now = self.started.elapsed();
        State {
            now,
            budget: self.options.budget,
            patience: self.options.rules.patience,
            alarm: self.alarm,
            alarm_since: self.alarm_since,
            stance: self.stance,
            home: self.options.rules.home.clone(),
            missing: self.missing.as_ref().map(|(_, missing)| missing.clone()),
            tiers: self
                .tiers
                .iter()
                .filter(|tier| tier.worker.is_some() || !tier.is_endpoint())
                .map(|tier| tier.view(now, &self.loads))
                .collect(),
            queue: decided.map(waiting).collect(),
        }
    }

    fn start_worker(&mut self, id: &TierId) {
        let worker = self.next();
        let socket = self.sockets.path(id, worker);
        let (options, calls) = (self.options.clone(), self.calls.clone());
        let (loads, predecessors) = (Arc::clone(&self.loads), Arc::clone(&self.predecessors));
        let Some(tier) = self.tier(id) else { return };
        let Some(spec) = tier.preparation.take() else {
            return;
        };
        let placed = socket.and_then(|socket| Ok((address(id, &spec, &socket)?, socket)));
        let ((address, reserved), socket) = match placed {
            Ok(placed) => placed,
            Err(error) => {
                tier.fail(&error);
                self.refuse(id, &error);
                return;
            }
        };
        tracing::info!(tier = %id, model = %spec.model, planned = %gib(spec.plan.total_bytes()), "loading");
        let launch = LaunchParams {
            tier: id.clone(),
            options,
            spec: spec.clone(),
            socket: socket.clone(),
            address: address.clone(),
            reserved,
            loads,
            predecessors,
        };
        let stop = StopSignal::default();
        let reporter = id.clone();
        process::run_process(launch, stop.clone(), move |report| {
            let id = reporter.clone();
            calls.send(move |owner| owner.reported(&id, worker, report));
        });
        let endpoint = match &spec.command {
            None => Endpoint::Unix(socket.clone()),
            Some(command) => Endpoint::Foreign(Foreign {
                at: address,
                model: command.remote_model.clone(),
                dialect: Dialect::default(),
            }),
        };
        let configured = tier.spec.clone();
        tier.started(Worker::new(
            worker, configured, spec, socket, endpoint, stop,
        ));
        self.log_load(id);
        self.missing = None;
        self.not_for_disuse(id);
    }

    /// A tier is loaded, or ended for another reason than disuse. An embedder changes nothing for the generative tiers.
    fn not_for_disuse(&mut self, id: &TierId) {
        if self.tier(id).is_some_and(|tier| tier.is_embedder()) {
            return;
        }
        for tier in &mut self.tiers {
            tier.idled_out = false;
        }
    }

    fn stop_worker(&mut self, id: &TierId, force: bool, why: &UnloadReason) {
        if !why.is_disuse() {
            self.not_for_disuse(id);
        }
        // Short memory does not wait for conversations to be saved; an ending host does.
        let at_once = (force || matches!(why, UnloadReason::Alarm(_))) && !self.closing;
        let sentence = words::end_reason(why, force, &self.causes);
        let Some(tier) = self.tier(id) else { return };
        tier.idled_out = why.is_disuse() && !tier.is_embedder();
        let why = match (&tier.stop, why) {
            (Some((_, error)), _) => error.message.clone(),
            (None, UnloadReason::Requested) => words::CHANGED.to_owned(),
            (None, _) => sentence,
        };
        tracing::info!(tier = %id, force, why, "stopping");
        tier.stopping(why, at_once);
    }

    fn revoke(&mut self, id: &TierId, why: &UnloadReason) {
        let sentence = words::revoked(id, why);
        let worker = self.tier(id).and_then(|tier| tier.worker.as_mut());
        let Some(worker) = worker else { return };
        let model = worker.load.model.clone();
        worker.revoke(&Error::new(Code::Cancelled, &sentence));
        self.log(LogEvent::for_tier(Kind::Note, id, Some(&model), sentence));
    }

    fn take_request(&mut self, request: u64) -> Option<WaitingRequest> {
        let mut queue = self.queue.iter();
        let at = queue.position(|waiter| waiter.request == request)?;
        Some(self.queue.remove(at))
    }

    fn refuse_one(&mut self, request: u64, why: &Refusal) {
        let Some(WaitingRequest { tier, want, .. }) = self.take_request(request) else {
            return;
        };
        let now = self.started.elapsed();
        let plan = |id: &TierId| {
            let tier = self.tiers.iter().find(|tier| tier.spec.id == *id)?;
            tier.view(now, &self.loads).plan_bytes
        };
        let budget = &self.options.budget;
        let error = words::refusal_error(&tier, why, budget, plan, &self.causes);
        if !want.is_ahead() {
            self.log_refusal(&tier, 1, &error);
        }
        want.refuse(error);
    }

    fn grant(&mut self, request: u64) {
        let Some(WaitingRequest { tier: id, want, .. }) = self.take_request(request) else {
            return;
        };
        let (now, calls) = (self.next(), self.calls.clone());
        let moment = self.started.elapsed();
        let Some(tier) = self.tier(&id) else { return };
        let Some(worker) = &mut tier.worker else {
            return;
        };
        // One that passes others must not change which tier drains.
        let passes = want.purpose() == Purpose::Brief && worker.leases > 0;
        if !want.is_ahead() && !passes {
            tier.last_used = now;
        }
        if worker.leases == 0 {
            worker.idle_since = Some(moment);
        }
        match want {
            TierRequest::Lease(reply, purpose) => {
                let lease = worker.lease(id, purpose, calls);
                self.publish();
                // If the caller has gone, the lease is dropped here and so released.
                let _ = reply.send(Ok(lease));
            }
            TierRequest::Loaded(reply) => {
                self.publish();
                let _ = reply.send(Ok(()));
            }
            TierRequest::Expected(_) | TierRequest::Returning => {}
        }
    }
}

fn address(
    tier: &TierId,
    spec: &LoadSpec,
    socket: &Path,
) -> Result<(Address, Option<TcpListener>), Error> {
    let Some(command) = &spec.command else {
        return Ok((Address::Unix(socket.to_owned()), None));
    };
    foreign::address(&command.engine, socket).map_err(|error| {
        let what = format!("{tier} could not start: there is no free port ({error})");
        Error::new(Code::TierFailed, what)
    })
}
