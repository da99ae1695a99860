//! A simulated machine that follows the policy, driven by random events.

use super::*;
use crate::reclaim;
use proptest::prelude::*;
use std::collections::BTreeSet;

#[derive(Debug, Clone, Copy)]
enum Event {
    Arrive(usize, Purpose),
    /// A request for the tier is announced.
    Announce(usize),
    /// A request leaves the queue.
    Cancel(usize),
    Release(usize),
    /// The tier's model has been read.
    Read(usize),
    /// The tier's worker is ready.
    Loaded(usize),
    /// The tier's worker has ended, on request or by a crash.
    Exited(usize),
    /// Its memory is back.
    Back(usize),
    /// The wait for its memory was given up, with this much available.
    GivenUp(usize, u64),
    /// The missing memory is back, or no longer counts.
    Found,
    Stop(usize, StopRequest),
    Pass(Duration),
    Alarm(Alarm),
    Stance(Stance),
    Budget {
        total_bytes: u64,
        max_loaded: usize,
    },
}

struct Tier {
    view: TierView,
    bytes: u64,
    /// Why it was last ended.
    why: Option<UnloadReason>,
    /// It has no process.
    exited: bool,
}

impl Tier {
    fn holding(&self) -> Holding {
        Holding {
            bytes: self.bytes,
            ..Holding::from(&self.view)
        }
    }
}

/// A plan's bytes, those left to the slot, the kind, whether it is pinned, and how many seconds it is kept.
type Shape = (u64, u64, TierKind, bool, Option<u64>);

struct Machine {
    now: Duration,
    budget: Budget,
    patience: Duration,
    alarm: Alarm,
    alarm_since: Duration,
    stance: Stance,
    tiers: Vec<Tier>,
    queue: Vec<WaitingRequest>,
    /// The tier of each lease, and when it was granted.
    leases: Vec<(usize, Purpose, Duration)>,
    clock: u64,
    requests: u64,
    /// The owner's own preloads.
    own: Vec<u64>,
    missing: Option<MissingTierMemory>,
    granted: BTreeSet<u64>,
    refused: BTreeSet<u64>,
    loads: usize,
    budget_moved: bool,
}

impl Machine {
    fn new(max_loaded: usize, patience: Duration, tiers: &[Shape]) -> Self {
        let tier = |(index, &(bytes, reserved, kind, pinned, keep)): (usize, &Shape)| Tier {
            view: TierView {
                kind,
                plan_bytes: None,
                reserved_bytes: reserved,
                pinned,
                keep: keep.map(Duration::from_secs),
                ..super::tier(&format!("t{index}"), Stopped, 0)
            },
            bytes,
            why: None,
            exited: true,
        };
        Self {
            now: Duration::ZERO,
            budget: Budget {
                total_bytes: 10,
                max_loaded,
                paging: crate::run::Paging::Mmap,
                embedder_bytes: 0,
            },
            patience,
            alarm: Alarm::None,
            alarm_since: Duration::ZERO,
            stance: Stance::Open,
            tiers: tiers.iter().enumerate().map(tier).collect(),
            queue: Vec::new(),
            leases: Vec::new(),
            clock: 0,
            requests: 0,
            own: Vec::new(),
            missing: None,
            granted: BTreeSet::new(),
            refused: BTreeSet::new(),
            loads: 0,
            budget_moved: false,
        }
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn waits(&self, request: u64) -> bool {
        self.queue.iter().any(|waiting| waiting.request == request)
    }

    fn handle(&mut self, event: Event) {
        let tiers = self.tiers.len();
        match event {
            Event::Arrive(tier, purpose) => {
                let view = &mut self.tiers[tier % tiers].view;
                view.rests = false;
                let id = view.id.clone();
                self.enqueue(id, purpose, false);
            }
            Event::Announce(tier) => {
                let id = self.tiers[tier % tiers].view.id.clone();
                self.enqueue(id, Purpose::Answer, true);
            }
            Event::Cancel(at) if !self.queue.is_empty() => {
                self.queue.remove(at % self.queue.len());
            }
            Event::Release(at) if !self.leases.is_empty() => self.release(at % self.leases.len()),
            Event::Read(tier) => {
                let tier = &mut self.tiers[tier % tiers];
                tier.view.plan_bytes = Some(tier.bytes);
            }
            Event::Loaded(tier) => {
                let view = &mut self.tiers[tier % tiers].view;
                if view.phase == Starting {
                    view.phase = Ready;
                    view.idle_since = Some(self.now);
                }
            }
            Event::Exited(tier) => self.exited(tier % tiers),
            Event::Back(tier) => drop(self.back(tier % tiers)),
            Event::GivenUp(tier, available_bytes) => {
                if let Some(of) = self.back(tier % tiers) {
                    let memory = reclaim::MissingMemory {
                        bytes: 1,
                        available_bytes,
                        held: false,
                    };
                    self.missing = Some(MissingTierMemory { of, memory });
                }
            }
            Event::Found => self.missing = None,
            Event::Stop(tier, stop) => {
                let view = &mut self.tiers[tier % tiers].view;
                if view.phase != Stopped {
                    view.stop = Some(stop);
                }
            }
            Event::Budget {
                total_bytes,
                max_loaded,
            } => {
                self.budget = Budget {
                    total_bytes,
                    max_loaded,
                    paging: crate::run::Paging::Mmap,
                    embedder_bytes: 0,
                };
                self.budget_moved = true;
            }
            Event::Pass(time) => self.now += time,
            Event::Alarm(alarm) => {
                if self.alarm == Alarm::None {
                    self.alarm_since = self.now;
                }
                self.alarm = alarm;
            }
            Event::Stance(stance) => self.stance = stance,
            Event::Cancel(_) | Event::Release(_) => {}
        }
        self.refuse_what_never_fits();
        // As its owner does.
        let gone = withdrawn_requests(&self.state(), &self.own);
        self.queue
            .retain(|waiting| !gone.contains(&waiting.request));
        self.settle();
        let mut returns = 0;
        while let Some(id) = tier_to_preload(&self.state()) {
            returns += 1;
            assert!(returns <= tiers, "{id:?} returns again and again");
            let tier = &self.tiers[self.index(&id)];
            assert!(!self.is_awaited(tier), "{id:?} returns twice");
            assert_eq!(tier.view.phase, Stopped, "{id:?} returns while loaded");
            assert!(!tier.view.rests, "{id:?} returns unasked");
            let now = (self.stance, self.alarm);
            assert_eq!(now, (Stance::Open, Alarm::None), "{id:?} returns");
            self.enqueue(id, Purpose::Answer, true);
            self.own.push(self.requests);
            self.settle();
        }
    }

    fn release(&mut self, at: usize) {
        let (tier, purpose, since) = self.leases.remove(at);
        let view = &mut self.tiers[tier].view;
        view.leases -= 1;
        match purpose {
            Purpose::Answer => {}
            Purpose::Brief => {
                view.brief -= 1;
                view.brief_after = self.now + (self.now - since).min(Purpose::BRIEF);
            }
            Purpose::Background => view.background = view.background.saturating_sub(1),
        }
        if self.tiers[tier].view.leases == 0 {
            self.tiers[tier].view.last_used = self.tick();
            self.tiers[tier].view.idle_since = Some(self.now);
        }
    }

    fn enqueue(&mut self, tier: TierId, purpose: Purpose, ahead: bool) {
        self.requests += 1;
        self.queue.push(WaitingRequest {
            request: self.requests,
            tier,
            since: self.now,
            purpose,
            ahead,
        });
    }

    fn state(&self) -> State {
        State {
            now: self.now,
            budget: self.budget,
            patience: self.patience,
            alarm: self.alarm,
            alarm_since: self.alarm_since,
            stance: self.stance,
            home: Some(id("t0")),
            missing: self.missing.clone(),
            tiers: self.tiers.iter().map(|tier| tier.view.clone()).collect(),
            queue: self.queue.clone(),
        }
    }

    fn exited(&mut self, tier: usize) {
        let Tier {
            view, why, exited, ..
        } = &mut self.tiers[tier];
        if view.phase != Stopped && !*exited {
            // It crashed, or was stopped on request.
            view.rests |= view.phase != Stopping || view.stop.is_some();
            view.phase = Stopping;
            view.idle_since = None;
            let disused = why.take().is_some_and(|why| why.is_disuse());
            view.idled_out = disused && view.kind == TierKind::Generative;
            *exited = true;
        }
    }

    /// Returns its name, if its memory was waited for.
    fn back(&mut self, tier: usize) -> Option<TierId> {
        let Tier { view, exited, .. } = &mut self.tiers[tier];
        (view.phase == Stopping && *exited).then(|| {
            view.phase = Stopped;
            view.plan_bytes = None;
            (view.leases, view.brief, view.background) = (0, 0, 0);
            view.stop = None;
            self.leases.retain(|&(leased, ..)| leased != tier);
            view.id.clone()
        })
    }

    fn refuse_what_never_fits(&mut self) {
        for tier in &mut self.tiers {
            let plan = tier.view.plan_bytes.filter(|_| tier.view.phase == Stopped);
            if plan.is_some_and(|bytes| !fits_alone(&self.budget, bytes)) {
                tier.view.rests = true;
                let never = |waiting: &mut WaitingRequest| waiting.tier == tier.view.id;
                let refused = self.queue.extract_if(.., never);
                self.refused.extend(refused.map(|waiting| waiting.request));
            }
        }
    }

    /// Carries out steps until there are none, and checks each against the rules.
    fn settle(&mut self) {
        for _ in 0..100 {
            let state = self.state();
            let steps = plan(&state);
            assert_eq!(steps, plan(&state), "equal inputs give equal plans");
            if steps.is_empty() {
                return self.check();
            }
            for step in &steps {
                self.apply(step);
            }
        }
        panic!("the policy never comes to rest");
    }

    fn apply(&mut self, step: &Step) {
        match step {
            Step::Start(id) => self.start(id),
            Step::Stop { tier, force, why } => self.stop(tier, *force, why),
            Step::Revoke { tier, why } => self.revoke(tier, why),
            Step::Grant(request) => {
                let of = |waiting: &WaitingRequest| waiting.request == *request;
                let at = self.queue.iter().position(of).expect("it waits");
                assert_eq!(self.alarm, Alarm::None, "admitted in an alarm");
                assert!(self.stance < Stance::Paused, "admitted in a pause");
                let waiting = self.queue.remove(at);
                self.check_order(&waiting);
                let tier = self.index(&waiting.tier);
                let now = self.tick();
                let view = &mut self.tiers[tier].view;
                assert_eq!((view.phase, view.stop), (Ready, None));
                assert!(self.granted.insert(*request), "granted twice");
                if !waiting.ahead {
                    let purpose = waiting.purpose;
                    if purpose != Purpose::Brief || view.leases == 0 {
                        view.last_used = now;
                    }
                    view.leases += 1;
                    view.brief += u32::from(purpose == Purpose::Brief);
                    view.background += u32::from(purpose == Purpose::Background);
                    view.idle_since = None;
                    self.leases.push((tier, purpose, self.now));
                }
            }
            Step::Refuse { request, why } => self.refuse(*request, why),
        }
    }

    /// With one generative tier at a time, only brief requests pass an older one for another tier that has waited its time;
    /// and they only while a longer answer keeps the tier loaded, one at a time and with pauses.
    fn check_order(&self, granted: &WaitingRequest) {
        let gives_way = |waiting: &WaitingRequest| {
            let ends = waiting.since + BACKGROUND_PATIENCE;
            waiting.purpose == Purpose::Background && self.now < ends
        };
        let goes_before = |waiting: &&WaitingRequest| {
            !waiting.ahead && !gives_way(waiting) && waiting.tier != granted.tier
        };
        let Some(oldest) = self.queue.iter().find(goes_before) else {
            return;
        };
        let view = &self.tiers[self.index(&granted.tier)].view;
        let wanted = &self.tiers[self.index(&oldest.tier)].view;
        let generates = |view: &TierView| view.kind == TierKind::Generative && !view.pinned;
        let fits = |bytes| fits_alone(&self.budget, bytes);
        let claims = self.budget.max_loaded == 1
            && generates(view)
            && generates(wanted)
            && (wanted.phase, wanted.stop) == (Stopped, None)
            && wanted.plan_bytes.is_some_and(fits)
            && self.now >= oldest.since + self.patience;
        let is_older = granted.request < oldest.request && !gives_way(granted);
        if !claims || granted.ahead || is_older {
            return;
        }
        assert_eq!(granted.purpose, Purpose::Brief, "an old request was passed");
        let lasting = view.leases - view.brief - view.background;
        assert!(lasting > 0, "a brief request kept the tier loaded");
        assert_eq!(view.brief, 0, "several brief requests at a time");
        assert!(
            self.now >= view.brief_after,
            "no pause between brief requests"
        );
    }

    fn revoke(&mut self, id: &TierId, why: &UnloadReason) {
        let index = self.index(id);
        let view = &mut self.tiers[index].view;
        assert!(view.background > 0, "revoked twice");
        assert_eq!(
            view.background + view.brief,
            view.leases,
            "an answer goes on"
        );
        view.background = 0;
        if let UnloadReason::RoomFor(by) = why {
            let mut queue = self.queue.iter().filter(|waiting| waiting.tier == *by);
            let late = |waiting: &WaitingRequest| self.now >= waiting.since + self.patience;
            assert!(queue.any(late), "revoked too soon");
        }
    }

    fn stop(&mut self, id: &TierId, force: bool, why: &UnloadReason) {
        let critical = self.alarm == Alarm::Critical;
        let at = self.index(id);
        let view = &mut self.tiers[at].view;
        assert!(matches!(view.phase, Starting | Ready));
        assert!(view.leases == 0 || force, "a leased tier was ended");
        assert!(!force || view.stop == Some(StopRequest::Force) || critical);
        let spared = view.pinned && matches!(why, UnloadReason::RoomFor(_) | UnloadReason::Idle(_));
        assert!(!spared, "a pinned tier was ended: {why:?}");
        view.phase = Stopping;
        let kind = view.kind;
        if let UnloadReason::RoomFor(by) = why
            && self.tiers[self.index(by)].view.kind == TierKind::Embedder
        {
            assert_eq!(kind, TierKind::Embedder, "ended for an embedder");
        }
        self.tiers[at].why = Some(why.clone());
    }

    fn refuse(&mut self, request: u64, why: &Refusal) {
        let of = |waiting: &WaitingRequest| waiting.request == request;
        let at = self.queue.iter().position(of).expect("it waits");
        let waiting = self.queue.remove(at);
        match why {
            Refusal::Pinned(by) | Refusal::Slot(by) => {
                let kept = || by.iter().map(|id| &self.tiers[self.index(id)]);
                let own = &self.tiers[self.index(&waiting.tier)];
                let all: Holdings = kept().chain([own]).map(Tier::holding).collect();
                assert!(!all.fit(&self.budget), "it would have fitted");
                let embeds = own.view.kind == TierKind::Embedder;
                assert_eq!(embeds, matches!(why, Refusal::Slot(_)));
                let generates = |tier: &Tier| embeds && tier.view.kind == TierKind::Generative;
                assert!(kept().all(|tier| tier.view.pinned || generates(tier)));
            }
            Refusal::Paused => assert_eq!(self.stance, Stance::Paused),
            Refusal::Missing(missing, bytes) => {
                assert_eq!(Some(missing), self.missing.as_ref());
                assert_eq!(*bytes, self.tiers[self.index(&waiting.tier)].bytes);
                assert!(!missing.memory.allows(*bytes), "it would have fitted");
            }
            Refusal::Alarm(alarm) => {
                assert_eq!(*alarm, self.alarm);
                assert!(
                    self.now - self.alarm_since >= ALARM_PATIENCE,
                    "a young alarm"
                );
                assert!(
                    self.now - waiting.since >= ALARM_PATIENCE,
                    "refused too soon"
                );
            }
        }
        assert!(self.refused.insert(request), "refused twice");
    }

    fn start(&mut self, id: &TierId) {
        assert_eq!(self.alarm, Alarm::None, "a load in an alarm");
        let settled = |tier: &Tier| matches!(tier.view.phase, Stopped | Ready);
        assert!(
            self.tiers.iter().all(settled),
            "a load before memory is back"
        );
        let mut waiting = self.queue.iter().filter(|waiting| waiting.tier == *id);
        let open = self.stance == Stance::Open;
        let missing = self.missing.take();
        assert!(
            waiting.any(|waiting| open || !waiting.ahead),
            "a load that no request waits for"
        );
        let at = self.index(id);
        let tier = &mut self.tiers[at];
        assert_eq!(tier.view.phase, Stopped);
        assert_eq!(tier.view.plan_bytes, Some(tier.bytes));
        assert!(
            missing.is_none_or(|missing| missing.memory.allows(tier.bytes)),
            "a load into memory that is not there"
        );
        tier.view.phase = Starting;
        tier.exited = false;
        self.loads += 1;
        if tier.view.kind == TierKind::Generative {
            for tier in &mut self.tiers {
                tier.view.idled_out = false;
            }
        }
        self.check_budget();
    }

    fn index(&self, id: &TierId) -> usize {
        let of = |tier: &Tier| tier.view.id == *id;
        self.tiers.iter().position(of).expect("the tier exists")
    }

    fn check(&self) {
        if self.stance == Stance::Paused {
            let uses_nothing = |tier: &Tier| tier.view.leases == 0 && tier.view.phase != Stopping;
            let mut unused = self.tiers.iter().filter(|tier| uses_nothing(tier));
            assert!(
                unused.all(|tier| tier.view.phase == Stopped),
                "kept in a pause"
            );
            assert!(self.queue.is_empty(), "left waiting in a pause");
        }
        // A budget that was lowered is exceeded until leases end; loads are checked always.
        if !self.budget_moved {
            self.check_budget();
        }
    }

    fn check_budget(&self) {
        let held = || self.tiers.iter().filter(|tier| tier.view.phase != Stopped);
        let sum = |kind, of: fn(&Tier) -> u64| {
            let those = held().filter(|tier| tier.view.kind == kind);
            those.map(of).sum::<u64>()
        };
        let left = sum(TierKind::Generative, |tier| tier.view.reserved_bytes);
        let embedders = sum(TierKind::Embedder, |tier| tier.bytes);
        let generative = sum(TierKind::Generative, |tier| tier.bytes);
        assert!(generative + embedders.saturating_sub(left) <= self.budget.total_bytes);
        let those = held().filter(|tier| tier.view.kind == TierKind::Generative);
        assert!(those.count() <= self.budget.max_loaded);
    }

    /// Delivers all pending events except the ends of leases, until there are none.
    fn come_to_rest(&mut self) {
        for _ in 0..100 {
            let mut owed = self.owed().into_iter();
            let owed = owed.find(|event| !matches!(event, Event::Release(_)));
            let Some(owed) = owed else { return };
            self.handle(owed);
        }
        panic!("the machine never comes to rest");
    }

    fn pay(&mut self, which: impl FnOnce(usize) -> usize) {
        let owed = self.owed();
        if !owed.is_empty() {
            self.handle(owed[which(owed.len())]);
        }
    }

    fn is_awaited(&self, tier: &Tier) -> bool {
        let mut queue = self.queue.iter();
        queue.any(|waiting| waiting.tier == tier.view.id)
    }

    /// The events still to come: models are read, loads finish, processes and leases end.
    fn owed(&self) -> Vec<Event> {
        let mut owed: Vec<_> = (0..self.leases.len()).map(Event::Release).collect();
        for (index, tier) in self.tiers.iter().enumerate() {
            match tier.view.phase {
                Stopped if tier.view.plan_bytes.is_none() && self.is_awaited(tier) => {
                    owed.push(Event::Read(index));
                }
                Starting => owed.push(Event::Loaded(index)),
                Stopping if tier.exited => owed.push(Event::Back(index)),
                Stopping => owed.push(Event::Exited(index)),
                Stopped | Ready => {}
            }
        }
        owed
    }
}

fn event() -> impl Strategy<Value = Event> {
    let which = || 0..8_usize;
    let stop = prop_oneof![Just(StopRequest::Drain), Just(StopRequest::Force)];
    let alarm = prop_oneof![
        3 => Just(Alarm::None),
        1 => Just(Alarm::Hold),
        1 => Just(Alarm::Unload),
        1 => Just(Alarm::Critical),
    ];
    let stance = prop_oneof![
        3 => Just(Stance::Open),
        1 => Just(Stance::Defers),
        1 => Just(Stance::Quiet),
        1 => Just(Stance::Paused),
    ];
    prop_oneof![
        6 => (which(), purpose()).prop_map(|(tier, purpose)| Event::Arrive(tier, purpose)),
        1 => which().prop_map(Event::Announce),
        4 => (0..20_u64).prop_map(|seconds| Event::Pass(Duration::from_secs(seconds))),
        1 => alarm.prop_map(Event::Alarm),
        1 => stance.prop_map(Event::Stance),
        1 => which().prop_map(Event::Cancel),
        4 => which().prop_map(Event::Release),
        4 => which().prop_map(Event::Read),
        4 => which().prop_map(Event::Loaded),
        4 => which().prop_map(Event::Exited),
        3 => which().prop_map(Event::Back),
        1 => (which(), 0..12_u64).prop_map(|(tier, available)| Event::GivenUp(tier, available)),
        1 => Just(Event::Found),
        1 => (which(), stop).prop_map(|(tier, stop)| Event::Stop(tier, stop)),
    ]
}

fn purpose() -> impl Strategy<Value = Purpose> {
    prop_oneof![
        3 => Just(Purpose::Answer),
        2 => Just(Purpose::Brief),
        1 => Just(Purpose::Background),
    ]
}

fn event_or_budget() -> impl Strategy<Value = Event> {
    let budget = (1..16_u64, 1..4_usize).prop_map(|(total_bytes, max_loaded)| Event::Budget {
        total_bytes,
        max_loaded,
    });
    prop_oneof![12 => event(), 1 => budget]
}

/// Up to four tiers, of which most fit a budget of 10, alone or together, and some never do; some are embedders, a few are
/// pinned, and most are ended when they have been idle for a while.
fn machine() -> impl Strategy<Value = Machine> {
    let pinned = prop::bool::weighted(0.1);
    let generative = (1..12_u64, 0..3_u64).prop_map(|(bytes, left)| (bytes, left.min(bytes)));
    let generative = generative.prop_map(|(bytes, left)| (bytes, left, TierKind::Generative));
    let embedder = (1..4_u64).prop_map(|bytes| (bytes, 0, TierKind::Embedder));
    let plan = prop_oneof![2 => generative, 1 => embedder];
    let tier = (plan, pinned, prop::option::of(0..40_u64));
    let tier =
        tier.prop_map(|((bytes, left, kind), pinned, keep)| (bytes, left, kind, pinned, keep));
    let tiers = prop::collection::vec(tier, 1..5);
    (1..4_usize, 0..30_u64, tiers).prop_map(|(max_loaded, patience, tiers)| {
        Machine::new(max_loaded, Duration::from_secs(patience), &tiers)
    })
}

impl std::fmt::Debug for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let shape = |tier: &Tier| {
            let TierView {
                reserved_bytes,
                kind,
                pinned,
                keep,
                ..
            } = tier.view;
            let keep = keep.map(|keep| keep.as_secs());
            (tier.bytes, reserved_bytes, kind, pinned, keep)
        };
        let shapes: Vec<Shape> = self.tiers.iter().map(shape).collect();
        let Self {
            budget, patience, ..
        } = self;
        write!(
            f,
            "{shapes:?} in {budget:?}, with a patience of {patience:?}"
        )
    }
}

fn config() -> ProptestConfig {
    // `PROPTEST_CASES` overrides the count.
    let cases = ProptestConfig::default().cases.max(500);
    ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

#[test]
fn requests_in_turn_for_two_tiers_cause_two_loads() {
    let shape = (5, 0, TierKind::Generative, false, None);
    for (third_after, third, loads) in [
        (0, Purpose::Answer, 2),
        (11, Purpose::Answer, 3),
        (11, Purpose::Brief, 2),
    ] {
        let mut machine = Machine::new(1, Duration::from_secs(10), &[shape, shape]);
        let answer = Purpose::Answer;
        for (tier, purpose, after) in [
            (0, answer, 0),
            (1, answer, 0),
            (0, third, third_after),
            (1, answer, 0),
        ] {
            machine.handle(Event::Pass(Duration::from_secs(after)));
            machine.handle(Event::Arrive(tier, purpose));
            machine.come_to_rest();
        }
        while !machine.queue.is_empty() {
            machine.pay(|_| 0);
        }
        assert_eq!(machine.loads, loads, "{third:?} after {third_after} s");
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_sequence_of_events_breaks_a_rule(
        mut machine in machine(),
        events in prop::collection::vec(event(), 0..120),
    ) {
        for event in events {
            machine.handle(event);
        }
    }

    #[test]
    fn a_moving_budget_breaks_no_rule(
        mut machine in machine(),
        events in prop::collection::vec(event_or_budget(), 0..120),
    ) {
        for event in events {
            machine.handle(event);
        }
    }

    #[test]
    fn without_events_the_machine_comes_to_rest(
        mut machine in machine(),
        events in prop::collection::vec(event(), 0..60),
        pauses in prop::collection::vec(0..100_u64, 1..6),
    ) {
        for event in events {
            machine.handle(event);
        }
        for seconds in pauses {
            machine.handle(Event::Pass(Duration::from_secs(seconds)));
            machine.come_to_rest();
        }
    }

    #[test]
    fn no_request_starves_behind_newer_ones(
        mut machine in machine(),
        events in prop::collection::vec(event_or_budget(), 0..40),
        world in prop::collection::vec(any::<prop::sample::Index>(), 16),
        purposes in prop::collection::vec(purpose(), 7),
    ) {
        for event in events {
            machine.handle(event);
        }
        machine.handle(Event::Alarm(Alarm::None));
        let requests = machine.queue.iter().filter(|waiting| !waiting.ahead);
        let mut old: Vec<_> = requests.map(|waiting| waiting.request).collect();
        // The loaded tier never becomes idle: its last lease does not end before the next request.
        for round in 0..1_000 {
            old.retain(|&request| machine.waits(request));
            if old.is_empty() {
                break;
            }
            for tier in 0..machine.tiers.len() {
                let waiting = machine.queue.iter().filter(|w| w.tier == machine.tiers[tier].view.id);
                if waiting.count() < 3 {
                    let purpose = purposes[(round + tier) % purposes.len()];
                    machine.handle(Event::Arrive(tier, purpose));
                }
            }
            machine.handle(Event::Pass(Duration::from_secs(1)));
            // A random pending event, and the oldest lease and the last process, so that none is put off forever.
            prop_assert!(!machine.owed().is_empty(), "stuck with {:?}", machine.queue);
            machine.pay(|owed| world[round % world.len()].index(owed));
            machine.pay(|_| 0);
            machine.pay(|owed| owed - 1);
        }
        prop_assert!(old.is_empty(), "never served: {old:?}");
        let ends = machine.granted.intersection(&machine.refused).count();
        prop_assert_eq!(ends, 0, "a request has one end");
    }
}
