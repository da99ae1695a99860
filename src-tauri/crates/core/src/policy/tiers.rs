//! The tiers, with what one call of the policy has decided about them.

use super::{
    Alarm, Missing, Phase, Refusal, Stance, State, Step, StopRequest, TierView, Waiting, Why,
    fits_alone,
};
use crate::TierId;

struct Tier<'a> {
    view: &'a TierView,
    phase: Phase,
    leases: u32,
    /// An older waiter waits for it to become ready.
    wanted: bool,
    /// A waiter needs it.
    queued: bool,
    /// A waiter or a preload needs it.
    expected: bool,
    /// It must end for an older waiter as soon as its leases have ended.
    claimed: bool,
}

impl Tier<'_> {
    /// Returns whether its memory is being freed, or will be once its leases have ended.
    fn leaving(&self) -> bool {
        self.phase == Phase::Stopping || self.claimed || self.view.stop.is_some()
    }

    fn holds_memory(&self) -> bool {
        self.phase != Phase::Stopped
    }

    fn idle(&self) -> bool {
        self.leases == 0 && !self.wanted
    }

    fn bytes(&self) -> u64 {
        self.view.plan_bytes.unwrap_or(0)
    }
}

/// How much a waiter may take from others.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// Idle tiers without waiters.
    Idle,
    /// Leased tiers as well, once their leases have ended.
    All,
}

pub(super) struct Tiers<'a> {
    state: &'a State,
    tiers: Vec<Tier<'a>>,
    /// Set once an older waiter needs memory: newer ones may use loaded tiers, but load nothing.
    memory_claimed: bool,
    pub(super) steps: Vec<Step>,
}

impl<'a> Tiers<'a> {
    pub(super) fn new(state: &'a State) -> Self {
        let waits_for = |id: &TierId, ahead: bool| {
            let mut those = state.queue.iter().filter(|waiting| waiting.tier == *id);
            those.any(|waiting| ahead || !waiting.ahead)
        };
        let tier = |view: &'a TierView| Tier {
            view,
            phase: view.phase,
            leases: view.leases,
            wanted: false,
            queued: waits_for(&view.id, false),
            expected: waits_for(&view.id, true),
            claimed: false,
        };
        Self {
            state,
            tiers: state.tiers.iter().map(tier).collect(),
            memory_claimed: false,
            steps: Vec::new(),
        }
    }

    pub(super) fn carry_out_stop_requests(&mut self) {
        for index in 0..self.tiers.len() {
            let tier = &self.tiers[index];
            let Some(stop) = tier.view.stop else { continue };
            if self.lives(index) && (tier.leases == 0 || stop == StopRequest::Force) {
                self.stop(index, stop == StopRequest::Force, Why::Requested);
            }
        }
    }

    pub(super) fn heed_alarm(&mut self) {
        let alarm = self.state.alarm;
        if alarm < Alarm::Unload {
            return;
        }
        for index in 0..self.tiers.len() {
            let leased = self.tiers[index].leases > 0;
            if self.lives(index) && (!leased || alarm == Alarm::Critical) {
                self.stop(index, leased, Why::Alarm(alarm));
            }
        }
    }

    pub(super) fn end_idle(&mut self) {
        for index in 0..self.tiers.len() {
            let Tier {
                view,
                phase,
                leases,
                expected,
                ..
            } = self.tiers[index];
            let paused = self.state.stance == Stance::Paused;
            if leases > 0 || !self.lives(index) || expected && !paused {
                continue;
            }
            let idle = view.idle_since.map(|at| self.state.now.saturating_sub(at));
            let keeps = view.keep.filter(|_| !view.pinned);
            match (idle, self.state.keep_of(view)) {
                _ if paused && phase == Phase::Starting => {
                    self.stop(index, false, Why::Stance(Stance::Paused));
                }
                (Some(idle), Some(keep)) if phase == Phase::Ready && idle >= keep => {
                    let of_itself = keeps.is_some_and(|keeps| idle >= keeps);
                    let why = if of_itself {
                        Why::Idle(idle)
                    } else {
                        Why::Stance(self.state.stance)
                    };
                    self.stop(index, false, why);
                }
                _ => {}
            }
        }
    }

    pub(super) fn end_excess(&mut self) {
        self.make_room(0, 0, Claim::All, &Why::Budget);
    }

    /// Plans what can be done for a waiter now.
    pub(super) fn serve(&mut self, waiting: &Waiting) {
        let Some(index) = self.index_of(waiting) else {
            return;
        };
        let tier = &self.tiers[index];
        match tier.phase {
            // The stop request is lifted when the tier has ended.
            Phase::Stopped if tier.view.stop.is_some() => {}
            Phase::Stopped => match tier.view.plan_bytes {
                Some(bytes) if !fits_alone(&self.state.budget, bytes) => {}
                Some(bytes) if !self.fits_beside_pinned(index, bytes) => {
                    let why = Refusal::Pinned(self.pinned(index));
                    self.refuse(waiting, why);
                }
                Some(bytes) if !self.memory_claimed => {
                    self.memory_claimed = true;
                    let patient = self.state.now < self.state.patience_ends(waiting);
                    let claim = if patient { Claim::Idle } else { Claim::All };
                    if let Some(missing) = self.load(index, bytes, claim) {
                        self.memory_claimed = false;
                        let why = Refusal::Missing(missing, bytes);
                        self.refuse(waiting, why);
                    }
                }
                _ => self.memory_claimed = true,
            },
            // It needs memory again once it has ended.
            _ if tier.leaving() => self.memory_claimed = true,
            Phase::Ready => self.grant(index, waiting.request),
            Phase::Starting | Phase::Stopping => self.tiers[index].wanted = true,
        }
    }

    /// The same for a preload.
    pub(super) fn serve_ahead(&mut self, waiting: &Waiting) {
        let Some(index) = self.index_of(waiting) else {
            return;
        };
        let tier = &self.tiers[index];
        match (tier.phase, tier.view.plan_bytes) {
            (Phase::Ready, _) if !tier.leaving() => self.grant(index, waiting.request),
            (Phase::Stopped, Some(bytes))
                if tier.view.stop.is_none()
                    && !self.memory_claimed
                    && self.state.stance == Stance::Open
                    && fits_alone(&self.state.budget, bytes)
                    && self.fits_beside_pinned(index, bytes) =>
            {
                self.memory_claimed = true;
                self.load(index, bytes, Claim::Idle);
            }
            _ => {}
        }
    }

    /// Returns the missing memory that prevents a plan, if any.
    fn missing_for(&self, bytes: u64) -> Option<Missing> {
        let missing = self.state.missing.as_ref();
        missing
            .filter(|missing| !missing.memory.allows(bytes))
            .cloned()
    }

    /// Refuses requests that have waited too long for an alarm to end.
    pub(super) fn refuse_the_late(&mut self) {
        for waiting in &self.state.queue {
            if self.state.now >= self.state.patience_ends(waiting) {
                self.refuse(waiting, Refusal::Alarm(self.state.alarm));
            }
        }
    }

    pub(super) fn refuse_all(&mut self) {
        for waiting in &self.state.queue {
            self.refuse(waiting, Refusal::Paused);
        }
    }

    fn index_of(&self, waiting: &Waiting) -> Option<usize> {
        let of = |tier: &Tier<'_>| tier.view.id == waiting.tier;
        self.tiers.iter().position(of)
    }

    /// Returns whether it has a process that is not ending.
    fn lives(&self, index: usize) -> bool {
        matches!(self.tiers[index].phase, Phase::Starting | Phase::Ready)
    }

    /// Returns the other pinned tiers that are loaded.
    fn pinned(&self, but: usize) -> Vec<TierId> {
        self.staying_pinned(but)
            .map(|tier| tier.view.id.clone())
            .collect()
    }

    fn fits_beside_pinned(&self, index: usize, bytes: u64) -> bool {
        let sum = self
            .staying_pinned(index)
            .fold(bytes, |sum, tier| sum.saturating_add(tier.bytes()));
        let count = self.staying_pinned(index).count() + 1;
        sum <= self.state.budget.total_bytes && count <= self.state.budget.max_loaded
    }

    fn staying_pinned(&self, but: usize) -> impl Iterator<Item = &Tier<'a>> {
        let others = self.tiers.iter().enumerate();
        others
            .filter(move |(index, tier)| {
                *index != but && tier.view.pinned && tier.holds_memory() && !tier.leaving()
            })
            .map(|(_, tier)| tier)
    }

    /// Returns the missing memory if there would be room without it.
    fn load(&mut self, index: usize, bytes: u64, claim: Claim) -> Option<Missing> {
        let why = Why::RoomFor(self.tiers[index].view.id.clone());
        self.make_room(bytes, 1, claim, &why);
        if !self.is_settled_for(bytes) {
            return None;
        }
        let missing = self.missing_for(bytes);
        if missing.is_none() {
            self.tiers[index].phase = Phase::Starting;
            let tier = self.tiers[index].view.id.clone();
            self.steps.push(Step::Start(tier));
        }
        missing
    }

    /// Ends idle tiers, and claims leased ones if it may, until `bytes` in `slots` tiers more would fit.
    fn make_room(&mut self, bytes: u64, slots: usize, claim: Claim, why: &Why) {
        let budget = self.state.budget;
        let fits = |tiers: &[Tier<'_>], without: &[usize]| {
            let stays = |(index, tier): &(usize, &Tier<'_>)| {
                tier.holds_memory() && !tier.leaving() && !without.contains(index)
            };
            let staying = || tiers.iter().enumerate().filter(stays);
            let sum = staying().fold(bytes, |sum, (_, tier)| sum.saturating_add(tier.bytes()));
            sum <= budget.total_bytes && staying().count() + slots <= budget.max_loaded
        };
        let mut order: Vec<usize> = (0..self.tiers.len()).collect();
        order.sort_by_key(|&index| {
            let tier = &self.tiers[index];
            // Waiters count only for idle tiers: the draining tier must not change with each new one.
            let free = tier.idle() && !tier.queued;
            let pinned = tier.view.pinned;
            // Whoever is served fits beside the pinned ones: only a lowered budget gets as far as them.
            (pinned, !free, !tier.idle(), tier.view.last_used, index)
        });

        let mut victims = Vec::new();
        for index in order {
            if fits(&self.tiers, &victims) {
                break;
            }
            victims.push(index);
        }
        // A large tier may make evicting the smaller ones before it unnecessary: spare the busiest and latest used first.
        // What holds no memory, or leaves already, is always spared.
        for position in (0..victims.len()).rev() {
            let mut fewer = victims.clone();
            fewer.remove(position);
            if fits(&self.tiers, &fewer) {
                victims = fewer;
            }
        }
        let free = |index: &usize| self.tiers[*index].idle() && !self.tiers[*index].queued;
        if claim == Claim::Idle && !victims.iter().all(free) {
            return;
        }
        for index in victims {
            self.tiers[index].claimed = true;
            if self.tiers[index].idle() {
                self.stop(index, false, why.clone());
            }
        }
    }

    fn stop(&mut self, index: usize, force: bool, why: Why) {
        let tier = &mut self.tiers[index];
        tier.phase = Phase::Stopping;
        let tier = tier.view.id.clone();
        self.steps.push(Step::Stop { tier, force, why });
    }

    fn grant(&mut self, index: usize, request: u64) {
        self.tiers[index].leases += 1;
        self.steps.push(Step::Grant(request));
    }

    fn refuse(&mut self, waiting: &Waiting, why: Refusal) {
        let request = waiting.request;
        self.steps.push(Step::Refuse { request, why });
    }

    /// Returns whether no process is starting or ending, and the plan fits beside what is loaded.
    fn is_settled_for(&self, bytes: u64) -> bool {
        let settled = self
            .tiers
            .iter()
            .all(|tier| matches!(tier.phase, Phase::Stopped | Phase::Ready));
        let held = || self.tiers.iter().filter(|tier| tier.holds_memory());
        let sum = held().fold(bytes, |sum, tier| sum.saturating_add(tier.bytes()));
        let budget = &self.state.budget;
        settled && sum <= budget.total_bytes && held().count() < budget.max_loaded
    }
}
