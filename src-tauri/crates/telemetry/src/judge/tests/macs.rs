//! Plays what Macs go through (`tests/macs.toml`) to the memory guard and the policy, as the host reads it: once a second, and when
//! the kernel announces another level.

use super::ReadingJudge;
use crate::{
    figures::{Figures, Ticks},
    platform::pages::Pages,
};
use serde::Deserialize;
use std::time::Duration;
use tierbar_core::{
    TierId,
    budget::{Budget, gib},
    config::MaxLoaded,
    lease::Purpose,
    memory_guard::{Judgment, MemoryGuard},
    policy::{Alarm, Phase, Stance, State, Step, TierView, WaitingRequest, plan},
    status::Pressure,
    tier::TierKind,
};

const GIB: f64 = (1_u64 << 30) as f64;
const PAGE: u64 = 16 << 10;
/// The most that swap may grow before the tier is unloaded, in GiB.
const MOST_SWAPPED: f64 = 1.0;
/// Steps of a trace in a second: swap may grow by more than [`MOST_SWAPPED`] from one reading to the next.
const STEPS: u32 = 10;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Traces {
    trace: Vec<Trace>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Trace {
    name: String,
    gib: f64,
    sources: Vec<String>,
    #[serde(default)]
    acts: bool,
    load: Option<[f64; 2]>,
    slept: Option<[u64; 2]>,
    /// Second, apps, wired, compressed, swap.
    points: Vec<[f64; 5]>,
}

/// Memory in GiB.
#[derive(Debug, Clone, Copy)]
struct Memory {
    apps: f64,
    wired: f64,
    compressed: f64,
    swap: f64,
}

impl Trace {
    fn seconds(&self) -> u32 {
        self.points.last().unwrap()[0] as u32
    }

    fn at(&self, step: u32) -> Memory {
        let second = to_seconds(step);
        let next = self.points.iter().position(|point| point[0] >= second);
        let next = next.unwrap();
        let (from, to) = (self.points[next.saturating_sub(1)], self.points[next]);
        let part = if to[0] > from[0] {
            (second - from[0]) / (to[0] - from[0])
        } else {
            1.0
        };
        let [apps, wired, compressed, swap] =
            [1, 2, 3, 4].map(|figure: usize| from[figure] + (to[figure] - from[figure]) * part);
        Memory {
            apps,
            wired,
            compressed,
            swap,
        }
    }

    /// Returns whether anything runs; what changes in the second before a wake has changed in the sleep.
    fn is_awake(&self, step: u32) -> bool {
        let second = to_seconds(step);
        self.slept.is_none_or(|[wake, _]| {
            let wake = wake as f64;
            second <= wake - 1.0 || second >= wake
        })
    }

    fn slept_ms(&self, step: u32) -> u64 {
        match self.slept {
            Some([wake, seconds]) if to_seconds(step) >= wake as f64 => seconds * 1000,
            _ => 0,
        }
    }

    fn phase(&self, step: u32) -> Phase {
        let second = to_seconds(step);
        match self.load {
            Some([from, _]) if second < from => Phase::Stopped,
            Some([_, to]) if second < to => Phase::Starting,
            _ => Phase::Ready,
        }
    }
}

fn to_seconds(step: u32) -> f64 {
    f64::from(step) / f64::from(STEPS)
}

fn to_milliseconds(step: u32) -> u64 {
    u64::from(step) * 1000 / u64::from(STEPS)
}

impl Memory {
    /// Returns the level as xnu grades it: by the part of the memory that is not wired which the compressor leaves, with more needed
    /// to fall than to rise (`VM_PRESSURE_NORMAL_TO_WARNING` and the like in `vm_pageout.c`; of the divisors in `vm_compressor.c`,
    /// those of a Mac: compaction below 1/2, unthrottled swapping below 10/35).
    fn pressure(self, gib: f64, before: Pressure) -> Pressure {
        let pageable = gib - self.wired;
        let left = (pageable - self.compressed) / pageable;
        let (compaction, unthrottled) = (0.5, 10.0 / 35.0);
        match before {
            _ if left < 1.2 * unthrottled => Pressure::Critical,
            Pressure::Critical if left <= 1.4 * unthrottled => Pressure::Critical,
            _ if left < compaction => Pressure::Warning,
            Pressure::Normal => Pressure::Normal,
            _ if left <= 1.2 * compaction => Pressure::Warning,
            _ => Pressure::Normal,
        }
    }

    /// Returns the figures that `platform/macos/machine.rs` would read.
    fn figures(self, gib: f64, pressure: Pressure, swapped_out: u64) -> Figures {
        let bytes = |gib: f64| Some((gib * GIB) as u64);
        let pages = |gib: f64| (gib * GIB) as u64 / PAGE;
        let used = self.apps + self.wired + self.compressed;
        assert!(used < gib, "{self:?} is more than {gib} GiB");
        let mut figures = Figures {
            ram_total_bytes: bytes(gib),
            pressure: Some(pressure),
            // macOS makes swap files as it needs them.
            swap_total_bytes: bytes(self.swap.floor() + 1.0),
            swap_used_bytes: bytes(self.swap),
            ..Figures::default()
        };
        let pages = Pages {
            size: PAGE,
            internal: pages(self.apps),
            wired: pages(self.wired),
            compressor: pages(self.compressed),
            swapped_out: swapped_out / PAGE,
            ..Pages::default()
        };
        pages.fill(&mut figures);
        figures
    }
}

/// Returns the plans that a set-up proposes for the tiers of a Mac, in bytes.
fn plans(gib: f64) -> Vec<u64> {
    let page = include_str!("../../../../../../docs/setup.md");
    let mac = format!("| {gib} GB |");
    let rows = page.lines().filter_map(|line| line.strip_prefix(&mac));
    let plan = |row: &str| {
        let memory = row.split('|').nth(5)?.trim();
        let plan: f64 = memory.strip_suffix(" GiB")?.parse().ok()?;
        Some((plan * GIB) as u64)
    };
    rows.map(|row| plan(row).unwrap()).collect()
}

/// The one tier, idle or loading.
fn tier(phase: Phase, plan_bytes: u64) -> TierView {
    TierView {
        id: TierId::new("tier").unwrap(),
        phase,
        kind: TierKind::Generative,
        plan_bytes: Some(plan_bytes),
        reserved_bytes: 0,
        leases: 0,
        brief: 0,
        background: 0,
        brief_after: Duration::ZERO,
        last_used: 0,
        idle_since: None,
        keep: None,
        pinned: false,
        idled_out: false,
        rests: false,
        stop: None,
    }
}

/// A request for it that has just come.
fn state(trace: &Trace, plan_bytes: u64, alarm: Alarm, step: u32) -> State {
    let now = Duration::from_millis(to_milliseconds(step));
    let request = WaitingRequest {
        request: 1,
        tier: TierId::new("tier").unwrap(),
        since: now,
        purpose: Purpose::Answer,
        ahead: false,
    };
    State {
        now,
        budget: Budget::of_machine((trace.gib * GIB) as u64, MaxLoaded::Auto),
        patience: Duration::ZERO,
        alarm,
        alarm_since: now,
        stance: Stance::Open,
        home: None,
        missing: None,
        tiers: vec![tier(trace.phase(step), plan_bytes)],
        queue: vec![request],
    }
}

/// What the host keeps while it plays a trace.
struct Host {
    judge: ReadingJudge,
    guard: MemoryGuard,
    level: Pressure,
    /// The step of the next reading, unless the kernel announces a level before.
    next: u32,
    swap: f64,
    swapped_out: u64,
}

impl Host {
    fn new(trace: &Trace, first: u32) -> Self {
        Self {
            judge: ReadingJudge::new(true, None),
            guard: MemoryGuard::default(),
            level: Pressure::Normal,
            next: first,
            swap: trace.points[0][4],
            swapped_out: 0,
        }
    }

    /// Returns what the memory guard requires, if there is a reading at this step.
    fn read(&mut self, trace: &Trace, step: u32) -> Option<Judgment> {
        let memory = trace.at(step);
        let grown = (memory.swap - self.swap).max(0.0);
        self.swapped_out += (grown * GIB) as u64;
        self.swap = memory.swap;
        let level = memory.pressure(trace.gib, self.level);
        let awake_ms = to_milliseconds(step);
        if level != self.level {
            self.level = level;
            self.judge.announce(level, awake_ms);
        } else if step < self.next {
            return None;
        }
        self.next = step + STEPS;
        let figures = Figures {
            awake_ms,
            slept_ms: trace.slept_ms(step),
            cpu: Some(Ticks {
                busy: 0,
                total: 1 + awake_ms / 10,
            }),
            ..memory.figures(trace.gib, level, self.swapped_out)
        };
        let reading = self.judge.judge(&figures);
        assert_eq!(reading.doubts, [], "{}", trace.name);
        let loading = trace.phase(step) == Phase::Starting;
        Some(self.guard.observe(&reading, loading))
    }
}

/// What happened first that should not to a tier with this plan, or `None`. `first` is the step of the first reading, and `late` how
/// many steps the tier outlasts the decision to unload it.
fn fault(trace: &Trace, plan_bytes: u64, first: u32, late: u32) -> Option<String> {
    let mut host = Host::new(trace, first);
    let mut unloaded = None;
    let steps = 0..=trace.seconds() * STEPS;
    for step in steps.filter(|step| trace.is_awake(*step)) {
        if let Some(judged) = host.read(trace, step) {
            let steps = plan(&state(trace, plan_bytes, judged.alarm, step));
            let stops = steps.iter().any(|step| matches!(step, Step::Stop { .. }));
            let expected = match trace.phase(step) {
                Phase::Ready => vec![Step::Grant(1)],
                Phase::Stopped => vec![Step::Start(TierId::new("tier").unwrap())],
                _ => vec![],
            };
            if trace.acts && stops {
                unloaded.get_or_insert(step + late);
            }
            if !trace.acts && (steps != expected || judged.alarm > Alarm::None) {
                let (alarm, why) = (judged.alarm, judged.why.unwrap_or_default());
                let at = to_seconds(step);
                return Some(format!("{at} s: {steps:?}, {alarm:?}, {why}"));
            }
        }
        if unloaded.is_some_and(|at| step >= at) {
            let swapped = host.swap - trace.points[0][4];
            let margin = MOST_SWAPPED - swapped;
            let at = to_seconds(step);
            let outcome = format!("unloaded at {at} s, {swapped:.2} GiB swapped out");
            return (margin < 0.0).then(|| format!("{outcome}: {margin:.2} GiB left"));
        }
    }
    trace.acts.then(|| "the tier stays loaded".to_owned())
}

fn traces() -> Vec<Trace> {
    let text = include_str!("../../../tests/macs.toml");
    let Traces { trace: traces } = toml::from_str(text).unwrap();
    traces
}

#[test]
fn a_tier_survives_what_macs_go_through() {
    let traces = traces();
    assert!(traces.len() >= 10);
    for gib in [8.0, 16.0, 24.0] {
        assert!(traces.iter().any(|trace| trace.gib == gib), "{gib} GiB");
    }
    let mut faults = Vec::new();
    for trace in &traces {
        let plans = plans(trace.gib);
        assert_eq!(plans.len(), 3, "{} GiB: {plans:?}", trace.gib);
        for bytes in plans {
            // Readings are once a second from any moment on.
            let mut firsts = (0..STEPS).step_by(3);
            if let Some(why) = firsts.find_map(|first| fault(trace, bytes, first, 0)) {
                faults.push(format!("{}, {}: {why}", trace.name, gib(bytes)));
            }
        }
    }
    assert_eq!(faults, Vec::<String>::new());
    assert!(traces.iter().all(|trace| !trace.sources.is_empty()));
}

#[test]
fn a_memory_guard_that_is_late_by_a_second_is_found() {
    let traces = traces();
    let mut loads = traces.iter().filter(|trace| trace.acts);
    let load = loads.find(|trace| trace.load.is_some()).unwrap();
    for bytes in plans(load.gib) {
        let fault = fault(load, bytes, 0, STEPS).unwrap();
        assert!(fault.ends_with(" GiB left"), "{fault}");
    }
}

#[test]
fn a_tier_larger_than_the_macs_budget_is_found() {
    for trace in traces() {
        let budget = Budget::of_machine((trace.gib * GIB) as u64, MaxLoaded::Auto);
        let found = fault(&trace, budget.total_bytes + 1, 0, 0);
        assert!(trace.acts || found.is_some(), "{}", trace.name);
    }
}
