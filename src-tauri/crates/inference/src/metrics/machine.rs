//! The status as gauges: the machine's memory, and each tier's.

use super::{PREFIX, TierLabels};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge, info::Info},
    registry::{Registry, Unit},
};
use tierbar_core::{
    TierState,
    status::{Status, TierStatus},
};

const ALARM: &str =
    "The memory guard's: 0 none, 1 no new requests, 2 idle tiers are unloaded, 3 all tiers are";
const STATES: [TierState; 6] = [
    TierState::Stopped,
    TierState::Starting,
    TierState::Ready,
    TierState::Busy,
    TierState::Stopping,
    TierState::Failed,
];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    tier: String,
    state: String,
}

pub(super) fn gauges(status: &Status) -> Registry {
    let mut all = Registry::with_prefix(PREFIX);
    let version = Info::new([("version", status.version.clone())]);
    all.register("build", "The program", version);
    let Status {
        ram, swap, budget, ..
    } = status;
    for (name, help, value) in [
        ("ram_total", "The machine's memory", ram.total_bytes),
        (
            "ram_available",
            "Memory available without swapping",
            ram.available_bytes,
        ),
        ("swap_used", "Swap in use", swap.used_bytes),
        (
            "budget_total",
            "Memory that all models together may use",
            budget.total_bytes,
        ),
        (
            "budget_planned",
            "Plans of the tiers that hold memory",
            budget.planned_bytes,
        ),
    ] {
        bytes(&mut all, name, help, value);
    }
    let growth = swap.growth_bytes_per_minute;
    let (pressure, alarm) = (ram.pressure as i64, status.guard.alarm as i64);
    for (name, help, value) in [
        (
            "swap_growth_bytes_per_minute",
            "Change of swap over the last minute",
            growth,
        ),
        (
            "ram_pressure",
            "The kernel's: 0 normal, 1 warning, 2 critical",
            pressure,
        ),
        ("memory_alarm", ALARM, alarm),
    ] {
        all.register(name, help, gauge(value));
    }
    tiers(&mut all, &status.tiers);
    all
}

fn tiers(all: &mut Registry, tiers: &[TierStatus]) {
    let states = Family::<StateLabels, Gauge>::default();
    let footprint = Family::<TierLabels, Gauge>::default();
    let planned = Family::<TierLabels, Gauge>::default();
    for tier in tiers {
        for state in STATES {
            let labels = StateLabels {
                tier: tier.id.to_string(),
                state: state.to_string(),
            };
            let is_in_it = i64::from(tier.state == state);
            states.get_or_create(&labels).set(is_in_it);
        }
        let of = TierLabels::from(&tier.id);
        let held = signed(tier.footprint_bytes.unwrap_or(0));
        footprint.get_or_create(&of).set(held);
        let plan = tier.plan.as_ref().map_or(0, |plan| plan.total_bytes());
        planned.get_or_create(&of).set(signed(plan));
    }
    all.register("tier_state", "1 for the state that a tier is in", states);
    for (name, help, family) in [
        ("tier_footprint", "Memory of a tier's process", footprint),
        ("tier_planned", "Planned memory of a tier's load", planned),
    ] {
        all.register_with_unit(name, help, Unit::Bytes, family);
    }
}

pub(super) fn bytes(all: &mut Registry, name: &str, help: &str, value: u64) {
    all.register_with_unit(name, help, Unit::Bytes, gauge(signed(value)));
}

fn gauge(value: i64) -> Gauge {
    let gauge: Gauge = Gauge::default();
    gauge.set(value);
    gauge
}

pub(super) fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
