//! The tiers, with what one call of the policy has decided about them.

use super::{
    Alarm, Holding, Holdings, MissingTierMemory, Phase, Refusal, Stance, State, Step, StopRequest,
    TierView, UnloadReason, WaitingRequest, fits_alone,
};
use crate::{TierId, TierKind, lease::Purpose};
use std::time::Duration;

struct Tier<'a> {
    view: &'a TierView,
    phase: Phase,
    leases: u32,
    /// Of them, brief ones.
    brief: u32,
    /// Of them, those that are neither brief nor in the background.
    lasting: u32,
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

    fn is_embedder(&self) -> bool {
        self.view.kind == TierKind::Embedder
    }

    fn stays(&self) -> bool {
        self.holds_memory() && !self.leaving()
    }

    fn holding(&self) -> Holding {
        Holding::from(self.view)
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
    /// The tiers for which older waiters need memory: newer ones may use loaded tiers, but load nothing, except
    /// generative tiers past embedders, and embedders that fit beside all.
    claims: Vec<usize>,
    pub(super) steps: Vec<Step>,
}

impl<'a> Tiers<'a> {
    pub(super) fn new(state: &'a State) -> Self {
        let waits_for = |id: &TierId, any: bool| {
            let mut those = state.queue.iter().filter(|waiting| waiting.tier == *id);
            those.any(|waiting| any || !(waiting.ahead || state.gives_way(waiting)))
        };
        let tier = |view: &'a TierView| Tier {
            view,
            phase: view.phase,
            leases: view.leases,
            brief: view.brief,
            lasting: view.leases.saturating_sub(view.brief + view.background),
            wanted: false,
            queued: waits_for(&view.id, false),
            expected: waits_for(&view.id, true),
            claimed: false,
        };
        Self {
            state,
            tiers: state.tiers.iter().map(tier).collect(),
            claims: Vec::new(),
            steps: Vec::new(),
        }
    }

    pub(super) fn carry_out_stop_requests(&mut self) {
        for index in 0..self.tiers.len() {
            let tier = &self.tiers[index];
            let Some(stop) = tier.view.stop else { continue };
            if self.lives(index) && (tier.leases == 0 || stop == StopRequest::Force) {
                self.stop(index, stop == StopRequest::Force, UnloadReason::Requested);
            }
        }
    }

    pub(super) fn heed_alarm(&mut self) {
        let alarm = self.state.alarm;
        for index in 0..self.tiers.len() {
            let leased = self.tiers[index].leases > 0;
            let unloads = if self.tiers[index].is_embedder() {
                Alarm::Hold
            } else {
                Alarm::Unload
            };
            let ends = alarm >= if leased { Alarm::Critical } else { unloads };
            if self.lives(index) && ends {
                self.stop(index, leased, UnloadReason::Alarm(alarm));
            }
        }
    }

    pub(super) fn end_idle(&mut self) {
        let mut ends: Vec<(usize, UnloadReason)> = (0..self.tiers.len())
            .filter_map(|index| Some((index, self.ends_idle(index)?)))
            .collect();
        // An embedder does not outlast the tiers that it was loaded beside.
        let idles_out = |(index, why): &(usize, UnloadReason)| {
            matches!(why, UnloadReason::Idle(_)) && !self.tiers[*index].is_embedder()
        };
        if ends.iter().any(idles_out) {
            let mut follow: Vec<_> = (0..self.tiers.len())
                .filter(|index| !ends.iter().any(|(ends, _)| ends == index))
                .filter_map(|index| Some((index, UnloadReason::Idle(self.idle_embedder(index)?))))
                .collect();
            follow.append(&mut ends);
            ends = follow;
        }
        for (index, why) in ends {
            self.stop(index, false, why);
        }
    }

    /// Returns since how long an embedder that may end has been idle.
    fn idle_embedder(&self, index: usize) -> Option<Duration> {
        let tier = &self.tiers[index];
        let ends = tier.is_embedder() && tier.phase == Phase::Ready && !tier.expected;
        let stays = tier.view.pinned || tier.view.keep.is_none();
        tier.view
            .idle_since
            .filter(|_| ends && tier.leases == 0 && !stays)
            .map(|at| self.state.now.saturating_sub(at))
    }

    /// Returns why the tier ends if it has been idle for too long.
    fn ends_idle(&self, index: usize) -> Option<UnloadReason> {
        let Tier {
            view,
            phase,
            leases,
            expected,
            ..
        } = self.tiers[index];
        let paused = self.state.stance == Stance::Paused;
        if leases > 0 || !self.lives(index) || expected && !paused {
            return None;
        }
        if paused && phase == Phase::Starting {
            return Some(UnloadReason::Stance(Stance::Paused));
        }
        let idle = self.state.now.saturating_sub(view.idle_since?);
        let keep = self.state.keep_of(view)?;
        if phase != Phase::Ready || idle < keep {
            return None;
        }
        let keeps = view.keep.filter(|_| !view.pinned);
        let of_itself = keeps.is_some_and(|keeps| idle >= keeps);
        Some(if of_itself {
            UnloadReason::Idle(idle)
        } else {
            UnloadReason::Stance(self.state.stance)
        })
    }

    pub(super) fn end_excess(&mut self) {
        self.make_room(None, Claim::All, &UnloadReason::Budget);
    }

    pub(super) fn serve(&mut self, waiting: &WaitingRequest) {
        let Some(index) = self.index_of(waiting) else {
            return;
        };
        let tier = &self.tiers[index];
        match tier.phase {
            // The stop request is lifted when the tier has ended.
            Phase::Stopped if tier.view.stop.is_some() => {}
            Phase::Stopped => match tier.view.plan_bytes {
                Some(bytes) if !fits_alone(&self.state.budget, bytes) => {}
                Some(_) if !self.fits_beside_kept(index) => {
                    let why = self.kept_from(index);
                    self.refuse(waiting, why);
                }
                Some(bytes) if self.may_load(index) => {
                    self.claims.push(index);
                    let patient = self.state.now < self.state.patience_ends(waiting);
                    let claim = if patient { Claim::Idle } else { Claim::All };
                    if let Some(missing) = self.load(index, bytes, claim) {
                        self.claims.pop();
                        let why = Refusal::Missing(missing, bytes);
                        self.refuse(waiting, why);
                    }
                }
                _ => self.claims.push(index),
            },
            // It needs memory again once it has ended.
            _ if tier.leaving() && !self.lets_pass(tier, waiting) => self.claims.push(index),
            Phase::Ready if self.state.gives_way(waiting) && self.is_claimed_by_older(index) => {}
            Phase::Ready => self.grant(index, waiting),
            Phase::Starting | Phase::Stopping => self.tiers[index].wanted = true,
        }
    }

    /// The same for a preload.
    pub(super) fn serve_ahead(&mut self, waiting: &WaitingRequest) {
        let Some(index) = self.index_of(waiting) else {
            return;
        };
        let tier = &self.tiers[index];
        match (tier.phase, tier.view.plan_bytes) {
            (Phase::Ready, _) if !tier.leaving() => self.grant(index, waiting),
            (Phase::Stopped, Some(bytes))
                if tier.view.stop.is_none()
                    && self.may_load(index)
                    && self.state.stance == Stance::Open
                    && fits_alone(&self.state.budget, bytes)
                    && self.fits_beside_kept(index) =>
            {
                self.claims.push(index);
                self.load(index, bytes, Claim::Idle);
            }
            _ => {}
        }
    }

    /// Returns whether a tier that must end grants the request nevertheless: a longer answer keeps it loaded anyway, and has
    /// it to itself for at least as long as brief ones share it.
    fn lets_pass(&self, tier: &Tier<'_>, waiting: &WaitingRequest) -> bool {
        waiting.purpose == Purpose::Brief
            && tier.phase == Phase::Ready
            && tier.view.stop.is_none()
            && tier.lasting > 0
            && tier.brief == 0
            && self.state.now >= tier.view.brief_after
    }

    /// Returns the missing memory that prevents a plan, if any.
    fn missing_for(&self, bytes: u64) -> Option<MissingTierMemory> {
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

    fn index_of(&self, waiting: &WaitingRequest) -> Option<usize> {
        let of = |tier: &Tier<'_>| tier.view.id == waiting.tier;
        self.tiers.iter().position(of)
    }

    /// Returns whether it has a process that is not ending.
    fn lives(&self, index: usize) -> bool {
        matches!(self.tiers[index].phase, Phase::Starting | Phase::Ready)
    }

    /// Returns whether no older waiter needs the memory that the tier would take.
    fn may_load(&self, index: usize) -> bool {
        let own = &self.tiers[index];
        let claims = || self.claims.iter().map(|claim| &self.tiers[*claim]);
        // Otherwise it would have to end again before it has served a request.
        let beside_them = || {
            let staying = self.tiers.iter().filter(|tier| tier.stays());
            let all: Holdings = staying.chain(claims()).map(Tier::holding).collect();
            all.with(own.holding()).fit(&self.state.budget)
        };
        let known = |tier: &Tier<'_>| !tier.is_embedder() && tier.view.plan_bytes.is_some();
        !self.is_claimed_by_older(index)
            || (own.is_embedder() && claims().all(known) && beside_them())
    }

    /// Returns whether an older waiter may need the memory that the tier uses or would take. None that waits for an embedder
    /// needs a generative tier's.
    fn is_claimed_by_older(&self, index: usize) -> bool {
        let any = self.tiers[index].is_embedder();
        let mut claims = self.claims.iter().map(|claim| &self.tiers[*claim]);
        claims.any(|tier| any || !tier.is_embedder())
    }

    fn fits_beside_kept(&self, index: usize) -> bool {
        let kept: Holdings = self.kept(index).map(Tier::holding).collect();
        kept.with(self.tiers[index].holding())
            .fit(&self.state.budget)
    }

    /// Returns what the tier is refused for if it does not fit beside those that are kept.
    fn kept_from(&self, index: usize) -> Refusal {
        let ids = self.kept(index).map(|tier| tier.view.id.clone());
        let ids = ids.collect();
        if self.tiers[index].is_embedder() {
            Refusal::Slot(ids)
        } else {
            Refusal::Pinned(ids)
        }
    }

    /// The other tiers that stay loaded whatever this one needs: pinned ones, and beside an embedder the generative ones.
    fn kept(&self, but: usize) -> impl Iterator<Item = &Tier<'a>> {
        let for_embedder = self.tiers[but].is_embedder();
        let others = self.tiers.iter().enumerate();
        others
            .filter(move |(index, tier)| {
                let kept = tier.view.pinned || (for_embedder && !tier.is_embedder());
                *index != but && kept && tier.stays()
            })
            .map(|(_, tier)| tier)
    }

    /// Returns the missing memory if there would be room without it.
    fn load(&mut self, index: usize, bytes: u64, claim: Claim) -> Option<MissingTierMemory> {
        let why = UnloadReason::RoomFor(self.tiers[index].view.id.clone());
        self.make_room(Some(index), claim, &why);
        if !self.is_settled_for(index) {
            return None;
        }
        let missing = self.missing_for(bytes);
        if missing.is_none() {
            self.tiers[index].phase = Phase::Starting;
            self.tiers[index].wanted = true;
            let tier = self.tiers[index].view.id.clone();
            self.steps.push(Step::Start(tier));
        }
        missing
    }

    /// Ends idle tiers, and claims leased ones if it may, until the tier would fit too.
    fn make_room(&mut self, load: Option<usize>, claim: Claim, why: &UnloadReason) {
        let budget = self.state.budget;
        let loaded = load.map(|index| self.tiers[index].holding());
        let fits = |tiers: &[Tier<'_>], without: &[usize]| {
            let stays =
                |(index, tier): &(usize, &Tier<'_>)| tier.stays() && !without.contains(index);
            let staying = tiers.iter().enumerate().filter(stays);
            let staying = staying.map(|(_, tier)| tier.holding());
            staying.chain(loaded).collect::<Holdings>().fit(&budget)
        };
        // No generative tier ends for an embedder.
        let of_embedder = loaded.is_some_and(|load| load.kind == TierKind::Embedder);
        let mut order: Vec<usize> = (0..self.tiers.len())
            .filter(|index| !of_embedder || self.tiers[*index].is_embedder())
            .collect();
        order.sort_by_key(|&index| {
            let tier = &self.tiers[index];
            // Waiters count only for idle tiers: the draining tier must not change with each new one.
            let free = tier.idle() && !tier.queued;
            let pinned = tier.view.pinned;
            let use_order = (!tier.is_embedder(), tier.view.last_used, index);
            // A tier being served fits beside the pinned ones: only a lowered budget reaches those.
            (pinned, !free, !tier.idle(), use_order)
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
            let tier = &mut self.tiers[index];
            tier.claimed = true;
            if tier.idle() {
                self.stop(index, false, why.clone());
            } else if tier.lasting == 0 && tier.view.background > 0 {
                let (tier, why) = (tier.view.id.clone(), why.clone());
                self.steps.push(Step::Revoke { tier, why });
            }
        }
    }

    fn stop(&mut self, index: usize, force: bool, why: UnloadReason) {
        let tier = &mut self.tiers[index];
        tier.phase = Phase::Stopping;
        let tier = tier.view.id.clone();
        self.steps.push(Step::Stop { tier, force, why });
    }

    fn grant(&mut self, index: usize, waiting: &WaitingRequest) {
        let tier = &mut self.tiers[index];
        tier.leases += 1;
        tier.brief += u32::from(waiting.purpose == Purpose::Brief);
        tier.lasting += u32::from(waiting.purpose == Purpose::Answer);
        self.steps.push(Step::Grant(waiting.request));
    }

    fn refuse(&mut self, waiting: &WaitingRequest, why: Refusal) {
        let request = waiting.request;
        self.steps.push(Step::Refuse { request, why });
    }

    /// Returns whether no process is starting or ending, and the tier fits beside what is loaded.
    fn is_settled_for(&self, index: usize) -> bool {
        let mut tiers = self.tiers.iter();
        let settled = tiers.all(|tier| matches!(tier.phase, Phase::Stopped | Phase::Ready));
        let held = self.tiers.iter().filter(|tier| tier.holds_memory());
        let held: Holdings = held.map(Tier::holding).collect();
        let with = held.with(self.tiers[index].holding());
        settled && with.fit(&self.state.budget)
    }
}
