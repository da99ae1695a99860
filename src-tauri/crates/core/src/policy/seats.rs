//! The tiers, with what one call of the policy has decided about them.

use super::{
    Alarm, Missing, Phase, Refusal, Stance, State, Step, StopRequest, TierView, Waiting, Why,
    fits_alone,
};
use crate::TierId;

struct Seat<'a> {
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

impl Seat<'_> {
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

pub(super) struct Seats<'a> {
    state: &'a State,
    seats: Vec<Seat<'a>>,
    /// Set once an older waiter needs memory: newer ones may use loaded tiers, but load nothing.
    memory_claimed: bool,
    pub(super) steps: Vec<Step>,
}

impl<'a> Seats<'a> {
    pub(super) fn new(state: &'a State) -> Self {
        let waits_for = |id: &TierId, ahead: bool| {
            let mut those = state.queue.iter().filter(|waiting| waiting.tier == *id);
            those.any(|waiting| ahead || !waiting.ahead)
        };
        let seat = |view: &'a TierView| Seat {
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
            seats: state.tiers.iter().map(seat).collect(),
            memory_claimed: false,
            steps: Vec::new(),
        }
    }

    pub(super) fn carry_out_stop_requests(&mut self) {
        for index in 0..self.seats.len() {
            let seat = &self.seats[index];
            let Some(stop) = seat.view.stop else { continue };
            if self.lives(index) && (seat.leases == 0 || stop == StopRequest::Force) {
                self.stop(index, stop == StopRequest::Force, Why::Requested);
            }
        }
    }

    pub(super) fn heed_alarm(&mut self) {
        let alarm = self.state.alarm;
        if alarm < Alarm::Unload {
            return;
        }
        for index in 0..self.seats.len() {
            let leased = self.seats[index].leases > 0;
            if self.lives(index) && (!leased || alarm == Alarm::Critical) {
                self.stop(index, leased, Why::Alarm(alarm));
            }
        }
    }

    pub(super) fn end_idle(&mut self) {
        for index in 0..self.seats.len() {
            let Seat {
                view,
                phase,
                leases,
                expected,
                ..
            } = self.seats[index];
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
        let Some(index) = self.seat_of(waiting) else {
            return;
        };
        let seat = &self.seats[index];
        match seat.phase {
            // The stop request is lifted when the tier has ended.
            Phase::Stopped if seat.view.stop.is_some() => {}
            Phase::Stopped => match seat.view.plan_bytes {
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
            _ if seat.leaving() => self.memory_claimed = true,
            Phase::Ready => self.grant(index, waiting.request),
            Phase::Starting | Phase::Stopping => self.seats[index].wanted = true,
        }
    }

    /// The same for a preload.
    pub(super) fn serve_ahead(&mut self, waiting: &Waiting) {
        let Some(index) = self.seat_of(waiting) else {
            return;
        };
        let seat = &self.seats[index];
        match (seat.phase, seat.view.plan_bytes) {
            (Phase::Ready, _) if !seat.leaving() => self.grant(index, waiting.request),
            (Phase::Stopped, Some(bytes))
                if seat.view.stop.is_none()
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

    fn seat_of(&self, waiting: &Waiting) -> Option<usize> {
        let of = |seat: &Seat<'_>| seat.view.id == waiting.tier;
        self.seats.iter().position(of)
    }

    /// Returns whether it has a process that is not ending.
    fn lives(&self, index: usize) -> bool {
        matches!(self.seats[index].phase, Phase::Starting | Phase::Ready)
    }

    /// Returns the other pinned tiers that are loaded.
    fn pinned(&self, but: usize) -> Vec<TierId> {
        self.staying_pinned(but)
            .map(|seat| seat.view.id.clone())
            .collect()
    }

    fn fits_beside_pinned(&self, index: usize, bytes: u64) -> bool {
        let sum = self
            .staying_pinned(index)
            .fold(bytes, |sum, seat| sum.saturating_add(seat.bytes()));
        let count = self.staying_pinned(index).count() + 1;
        sum <= self.state.budget.total_bytes && count <= self.state.budget.max_loaded
    }

    fn staying_pinned(&self, but: usize) -> impl Iterator<Item = &Seat<'a>> {
        let others = self.seats.iter().enumerate();
        others
            .filter(move |(index, seat)| {
                *index != but && seat.view.pinned && seat.holds_memory() && !seat.leaving()
            })
            .map(|(_, seat)| seat)
    }

    /// Returns the missing memory if there would be room without it.
    fn load(&mut self, index: usize, bytes: u64, claim: Claim) -> Option<Missing> {
        let why = Why::RoomFor(self.seats[index].view.id.clone());
        self.make_room(bytes, 1, claim, &why);
        if !self.is_settled_for(bytes) {
            return None;
        }
        let missing = self.missing_for(bytes);
        if missing.is_none() {
            self.seats[index].phase = Phase::Starting;
            let tier = self.seats[index].view.id.clone();
            self.steps.push(Step::Start(tier));
        }
        missing
    }

    /// Ends idle tiers, and claims leased ones if it may, until `bytes` in `slots` tiers more would fit.
    fn make_room(&mut self, bytes: u64, slots: usize, claim: Claim, why: &Why) {
        let budget = self.state.budget;
        let fits = |seats: &[Seat<'_>], without: &[usize]| {
            let stays = |(index, seat): &(usize, &Seat<'_>)| {
                seat.holds_memory() && !seat.leaving() && !without.contains(index)
            };
            let staying = || seats.iter().enumerate().filter(stays);
            let sum = staying().fold(bytes, |sum, (_, seat)| sum.saturating_add(seat.bytes()));
            sum <= budget.total_bytes && staying().count() + slots <= budget.max_loaded
        };
        let mut order: Vec<usize> = (0..self.seats.len()).collect();
        order.sort_by_key(|&index| {
            let seat = &self.seats[index];
            // Waiters count only for idle tiers: the draining tier must not change with each new one.
            let free = seat.idle() && !seat.queued;
            let pinned = seat.view.pinned;
            // Whoever is served fits beside the pinned ones: only a lowered budget gets as far as them.
            (pinned, !free, !seat.idle(), seat.view.last_used, index)
        });

        let mut victims = Vec::new();
        for index in order {
            if fits(&self.seats, &victims) {
                break;
            }
            victims.push(index);
        }
        // A large tier may make evicting the smaller ones before it unnecessary: spare the busiest and latest used first.
        // What holds no memory, or leaves already, is always spared.
        for position in (0..victims.len()).rev() {
            let mut fewer = victims.clone();
            fewer.remove(position);
            if fits(&self.seats, &fewer) {
                victims = fewer;
            }
        }
        let free = |index: &usize| self.seats[*index].idle() && !self.seats[*index].queued;
        if claim == Claim::Idle && !victims.iter().all(free) {
            return;
        }
        for index in victims {
            self.seats[index].claimed = true;
            if self.seats[index].idle() {
                self.stop(index, false, why.clone());
            }
        }
    }

    fn stop(&mut self, index: usize, force: bool, why: Why) {
        let seat = &mut self.seats[index];
        seat.phase = Phase::Stopping;
        let tier = seat.view.id.clone();
        self.steps.push(Step::Stop { tier, force, why });
    }

    fn grant(&mut self, index: usize, request: u64) {
        self.seats[index].leases += 1;
        self.steps.push(Step::Grant(request));
    }

    fn refuse(&mut self, waiting: &Waiting, why: Refusal) {
        let request = waiting.request;
        self.steps.push(Step::Refuse { request, why });
    }

    /// Returns whether no process is starting or ending, and the plan fits beside what is loaded.
    fn is_settled_for(&self, bytes: u64) -> bool {
        let settled = self
            .seats
            .iter()
            .all(|seat| matches!(seat.phase, Phase::Stopped | Phase::Ready));
        let held = || self.seats.iter().filter(|seat| seat.holds_memory());
        let sum = held().fold(bytes, |sum, seat| sum.saturating_add(seat.bytes()));
        let budget = &self.state.budget;
        settled && sum <= budget.total_bytes && held().count() < budget.max_loaded
    }
}
