//! Plays what Macs go through (`tests/macs.toml`) to the memory guard and the policy, second by second.

use super::ReadingJudge;
use crate::figures::{Figures, Ticks, Traffic};
use serde::Deserialize;
use std::time::Duration;
use tierbar_core::{
    TierId,
    budget::Budget,
    config::MaxLoaded,
    lease::Purpose,
    memory_guard::MemoryGuard,
    policy::{Alarm, Phase, Stance, State, Step, TierView, WaitingRequest, plan},
    status::Pressure,
    tier::TierKind,
};

const GIB: f64 = (1_u64 << 30) as f64;
/// The most that swap may grow before the tier is unloaded, in GiB.
const MOST_SWAPPED: f64 = 1.0;

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

    fn at(&self, second: u32) -> Memory {
        let second = f64::from(second);
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

    fn phase(&self, second: u32) -> Phase {
        let second = f64::from(second);
        match self.load {
            Some([from, _]) if second < from => Phase::Stopped,
            Some([_, to]) if second < to => Phase::Starting,
            _ => Phase::Ready,
        }
    }
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
    fn figures(self, gib: f64, pressure: Pressure) -> Figures {
        let bytes = |gib: f64| Some((gib * GIB) as u64);
        let used = self.apps + self.wired + self.compressed;
        assert!(used < gib, "{self:?} is more than {gib} GiB");
        Figures {
            ram_total_bytes: bytes(gib),
            ram_available_bytes: bytes(gib - used),
            pressure: Some(pressure),
            wired_bytes: bytes(self.wired),
            // macOS makes swap files as it needs them.
            swap_total_bytes: bytes(self.swap.floor() + 1.0),
            swap_used_bytes: bytes(self.swap),
            ..Figures::default()
        }
    }
}

/// The one tier, idle or loading.
fn tier(phase: Phase) -> TierView {
    TierView {
        id: TierId::new("tier").unwrap(),
        phase,
        kind: TierKind::Generative,
        plan_bytes: Some(1),
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
fn state(alarm: Alarm, phase: Phase, second: u32) -> State {
    let now = Duration::from_secs(second.into());
    let request = WaitingRequest {
        request: 1,
        tier: TierId::new("tier").unwrap(),
        since: now,
        purpose: Purpose::Answer,
        ahead: false,
    };
    State {
        now,
        budget: Budget::of_machine(16 << 30, MaxLoaded::Auto),
        patience: Duration::ZERO,
        alarm,
        alarm_since: now,
        stance: Stance::Open,
        home: None,
        missing: None,
        tiers: vec![tier(phase)],
        queue: vec![request],
    }
}

/// What happened first that should not, or `None`.
fn fault(trace: &Trace) -> Option<String> {
    let (mut judge, mut guard) = (ReadingJudge::new(true, None), MemoryGuard::default());
    let (mut level, mut slept_ms, mut swapped_out) = (Pressure::Normal, 0, 0);
    let mut before: Option<Memory> = None;
    for second in 0..=trace.seconds() {
        let memory = trace.at(second);
        level = memory.pressure(trace.gib, level);
        let grown = before.map_or(0.0, |before| memory.swap - before.swap);
        swapped_out += (grown.max(0.0) * GIB) as u64;
        before = Some(memory);
        if let Some([at, seconds]) = trace.slept
            && at == u64::from(second)
        {
            slept_ms = seconds * 1000;
        }
        let figures = Figures {
            awake_ms: u64::from(second) * 1000,
            slept_ms,
            traffic: Traffic {
                out_bytes: Some(swapped_out),
                ..Traffic::default()
            },
            cpu: Some(Ticks {
                busy: 0,
                total: 1 + u64::from(second) * 100,
            }),
            ..memory.figures(trace.gib, level)
        };
        let reading = judge.judge(&figures);
        assert_eq!(reading.doubts, [], "{}", trace.name);
        let phase = trace.phase(second);
        let judged = guard.observe(&reading, phase == Phase::Starting);
        let steps = plan(&state(judged.alarm, phase, second));
        let stops = steps.iter().any(|step| matches!(step, Step::Stop { .. }));
        let expected = match phase {
            Phase::Ready => vec![Step::Grant(1)],
            Phase::Stopped => vec![Step::Start(TierId::new("tier").unwrap())],
            _ => vec![],
        };
        let swapped = memory.swap - trace.points[0][4];
        let why = judged.why.unwrap_or_default();
        if trace.acts && stops {
            return None;
        }
        if trace.acts && swapped > MOST_SWAPPED {
            return Some(format!("{second} s: {swapped:.1} GiB were swapped out"));
        }
        if !trace.acts && (steps != expected || judged.alarm > Alarm::None) {
            return Some(format!("{second} s: {:?}, {why}", judged.alarm));
        }
    }
    trace.acts.then(|| "the tier stays loaded".to_owned())
}

#[test]
fn a_tier_survives_what_macs_go_through() {
    let text = include_str!("../../../tests/macs.toml");
    let Traces { trace: traces } = toml::from_str(text).unwrap();
    assert!(traces.len() >= 10);
    for gib in [8.0, 16.0, 24.0] {
        assert!(traces.iter().any(|trace| trace.gib == gib), "{gib} GiB");
    }
    let faults: Vec<_> = traces
        .iter()
        .filter_map(|trace| Some(format!("{}: {}", trace.name, fault(trace)?)))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(traces.iter().all(|trace| !trace.sources.is_empty()));
}
