//! The memory policy: which tier is loaded, ended or granted next, as a pure function of what is true now.
//!
//! [`plan`] is level-triggered: the owner of the tiers calls it after every event, carries out the steps, tells
//! the policy what they changed, and calls it again until there are none. It keeps nothing between two calls.
//!
//! What it holds to:
//! - The plans of the tiers that hold memory never sum over the budget, and never more than `max_loaded` hold any.
//! - Nothing is loaded while another tier starts or stops: its memory must be back first.
//! - A leased tier is never ended without [`StopWish::Force`].
//! - Waiters are served oldest first. A tier that an older waiter needs ended grants nothing to a younger one.
//! - No more tiers are ended than needed: idle ones first, the least recently used of them first.

use crate::{TierId, budget::Budget};

/// Everything that a decision depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State {
    pub budget: Budget,
    pub tiers: Vec<TierView>,
    /// Requests without a lease, oldest first.
    pub queue: Vec<Waiting>,
}

/// One tier, as far as memory is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TierView {
    pub id: TierId,
    pub phase: Phase,
    /// What the tier takes while it holds memory, or would take when stopped. `None` until its model has been
    /// read; a tier without a plan is not loaded.
    pub plan_bytes: Option<u64>,
    /// Requests that use the tier now.
    pub leases: u32,
    /// When it was last granted, or fell idle; larger is more recent. A counter, because clocks step. It does not
    /// move while a lease among several ends, or the tier that has to drain would change with every release.
    pub last_used: u64,
    pub stop: Option<StopWish>,
}

/// Whether a process of the tier exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Stopped,
    Starting,
    Ready,
    Stopping,
}

/// Somebody wants the tier to end. Until it has, it grants nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopWish {
    /// When its leases have ended.
    Drain,
    /// Now, whoever uses it.
    Force,
}

/// A request that waits for a tier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    pub request: u64,
    pub tier: TierId,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Start a stopped tier's process.
    Start(TierId),
    /// End a tier's process. `force`: although it is leased.
    Stop { tier: TierId, force: bool },
    /// Give the request a lease on its tier.
    Grant(u64),
}

/// Whether a plan fits the budget when nothing else is loaded. One that does not is never started: whoever
/// waits for it has to be refused.
#[must_use]
pub fn fits_alone(budget: &Budget, plan_bytes: u64) -> bool {
    budget.max_loaded > 0 && plan_bytes <= budget.total_bytes
}

/// The steps that are due now, in the order to carry them out.
#[must_use]
pub fn plan(state: &State) -> Vec<Step> {
    let mut seats = Seats::new(state);
    seats.carry_out_wishes();
    // A budget that was lowered may be exceeded by what is loaded already.
    seats.make_room(0, 0);

    // Set once an older waiter needs memory: younger ones may use what is loaded, but load nothing.
    let mut memory_claimed = false;
    for waiting in &state.queue {
        let Some(index) = state.tiers.iter().position(|tier| tier.id == waiting.tier) else {
            continue;
        };
        let seat = &seats.seats[index];
        match seat.phase {
            // Whoever wished it away lifts the wish when it is gone.
            Phase::Stopped if seat.view.stop.is_some() => {}
            Phase::Stopped => match seat.view.plan_bytes {
                Some(bytes) if !fits_alone(&state.budget, bytes) => {}
                Some(bytes) if !memory_claimed => {
                    memory_claimed = true;
                    seats.make_room(bytes, 1);
                    seats.start_if_settled(index, bytes);
                }
                _ => memory_claimed = true,
            },
            // It will need memory again once it has left.
            _ if seat.leaving() => memory_claimed = true,
            Phase::Ready => seats.grant(index, waiting.request),
            Phase::Starting | Phase::Stopping => seats.seats[index].wanted = true,
        }
    }
    seats.steps
}

/// A tier with what this call has already decided about it.
struct Seat<'a> {
    view: &'a TierView,
    phase: Phase,
    leases: u32,
    /// An older waiter waits for it to become ready.
    wanted: bool,
    /// It has to end for an older waiter, as soon as its leases have.
    claimed: bool,
}

impl Seat<'_> {
    /// Its memory is on its way back, or will be once its leases have ended.
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

struct Seats<'a> {
    budget: Budget,
    seats: Vec<Seat<'a>>,
    steps: Vec<Step>,
}

impl<'a> Seats<'a> {
    fn new(state: &'a State) -> Self {
        let seat = |view: &'a TierView| Seat {
            view,
            phase: view.phase,
            leases: view.leases,
            wanted: false,
            claimed: false,
        };
        Self {
            budget: state.budget,
            seats: state.tiers.iter().map(seat).collect(),
            steps: Vec::new(),
        }
    }

    fn carry_out_wishes(&mut self) {
        for index in 0..self.seats.len() {
            let seat = &self.seats[index];
            let Some(wish) = seat.view.stop else { continue };
            let free = seat.leases == 0 || wish == StopWish::Force;
            if matches!(seat.phase, Phase::Starting | Phase::Ready) && free {
                self.stop(index, wish == StopWish::Force);
            }
        }
    }

    /// Ends idle tiers, and claims leased ones, until `bytes` in `slots` tiers more would fit.
    fn make_room(&mut self, bytes: u64, slots: usize) {
        let staying = |seats: &[Seat<'_>], without: &[usize]| {
            let stays = |(index, seat): &(usize, &Seat<'_>)| {
                seat.holds_memory() && !seat.leaving() && !without.contains(index)
            };
            let staying = || seats.iter().enumerate().filter(stays);
            let sum = staying().fold(bytes, |sum, (_, seat)| sum.saturating_add(seat.bytes()));
            sum <= self.budget.total_bytes && staying().count() + slots <= self.budget.max_loaded
        };

        let mut order: Vec<usize> = (0..self.seats.len())
            .filter(|&index| self.seats[index].holds_memory() && !self.seats[index].leaving())
            .collect();
        order.sort_by_key(|&index| {
            let seat = &self.seats[index];
            (!seat.idle(), seat.view.last_used, index)
        });

        let mut victims = Vec::new();
        for index in order {
            if staying(&self.seats, &victims) {
                break;
            }
            victims.push(index);
        }
        // A large victim may have made the smaller ones before it needless: spare the busiest and latest used first.
        for position in (0..victims.len()).rev() {
            let mut fewer = victims.clone();
            fewer.remove(position);
            if staying(&self.seats, &fewer) {
                victims = fewer;
            }
        }
        for index in victims {
            self.seats[index].claimed = true;
            if self.seats[index].idle() {
                self.stop(index, false);
            }
        }
    }

    fn stop(&mut self, index: usize, force: bool) {
        let seat = &mut self.seats[index];
        seat.phase = Phase::Stopping;
        self.steps.push(Step::Stop {
            tier: seat.view.id.clone(),
            force,
        });
    }

    fn grant(&mut self, index: usize, request: u64) {
        self.seats[index].leases += 1;
        self.steps.push(Step::Grant(request));
    }

    /// Starts the tier if no process is on its way in or out and its plan fits beside what is loaded.
    fn start_if_settled(&mut self, index: usize, bytes: u64) {
        let settled = self
            .seats
            .iter()
            .all(|seat| matches!(seat.phase, Phase::Stopped | Phase::Ready));
        let held = || self.seats.iter().filter(|seat| seat.holds_memory());
        let sum = held().fold(bytes, |sum, seat| sum.saturating_add(seat.bytes()));
        if settled && sum <= self.budget.total_bytes && held().count() < self.budget.max_loaded {
            self.seats[index].phase = Phase::Starting;
            self.steps
                .push(Step::Start(self.seats[index].view.id.clone()));
        }
    }
}

#[cfg(test)]
mod tests;
