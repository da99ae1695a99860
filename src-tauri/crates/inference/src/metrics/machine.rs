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
    bytes(
        &mut all,
        "ram_total",
        "The machine's memory",
        ram.total_bytes,
    );
    bytes(
        &mut all,
        "ram_available",
        "Memory available without swapping",
        ram.available_bytes,
    );
    bytes(&mut all, "swap_used", "Swap in use", swap.used_bytes);
    bytes(
        &mut all,
        "budget_total",
        "Memory that all models together may use",
        budget.total_bytes,
    );
    bytes(
        &mut all,
        "budget_planned",
        "Plans of the tiers that hold memory",
        budget.planned_bytes,
    );
    let plain = |all: &mut Registry, name, help, value| all.register(name, help, gauge(value));
    plain(
        &mut all,
        "swap_growth_bytes_per_minute",
        "Change of swap over the last minute",
        swap.growth_bytes_per_minute,
    );
    plain(
        &mut all,
        "ram_pressure",
        "The kernel's: 0 normal, 1 warning, 2 critical",
        ram.pressure as i64,
    );
    plain(
        &mut all,
        "memory_alarm",
        "The memory guard's: 0 none, 1 no new requests, 2 idle tiers are unloaded, 3 all tiers are",
        status.guard.alarm as i64,
    );
    tiers(&mut all, &status.tiers);
    all
}

fn tiers(all: &mut Registry, tiers: &[TierStatus]) {
    let states = Family::<StateLabels, Gauge>::default();
    let (footprint, planned) = (
        Family::<TierLabels, Gauge>::default(),
        Family::<TierLabels, Gauge>::default(),
    );
    for tier in tiers {
        for state in STATES {
            let labels = StateLabels {
                tier: tier.id.to_string(),
                state: state.to_string(),
            };
            states
                .get_or_create(&labels)
                .set(i64::from(tier.state == state));
        }
        let of = TierLabels::from(&tier.id);
        footprint
            .get_or_create(&of)
            .set(signed(tier.footprint_bytes.unwrap_or(0)));
        let plan = tier.plan.as_ref().map_or(0, |plan| plan.total_bytes());
        planned.get_or_create(&of).set(signed(plan));
    }
    all.register("tier_state", "1 for the state that a tier is in", states);
    all.register_with_unit(
        "tier_footprint",
        "Memory of a tier's process",
        Unit::Bytes,
        footprint,
    );
    all.register_with_unit(
        "tier_planned",
        "Planned memory of a tier's load",
        Unit::Bytes,
        planned,
    );
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
