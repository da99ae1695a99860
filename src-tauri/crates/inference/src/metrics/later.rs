//! Gauges of what cannot be answered now: the endpoints that chains skip, and the queue.

use super::{
    TierLabels,
    machine::{bytes, signed},
};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::{Registry, Unit},
};
use tierbar_core::{
    chain::{ChainStatus, Gate, StepStatus},
    queue::JobState,
};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct GateLabels {
    tier: String,
    gate: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    state: &'static str,
}

/// An endpoint in several chains has one gate.
pub(super) fn chains(all: &mut Registry, chains: &[ChainStatus]) {
    let gates = Family::<GateLabels, Gauge>::default();
    let closed = Family::<TierLabels, Gauge>::default();
    for status in chains.iter().flat_map(|chain| &chain.steps) {
        let StepStatus::Endpoint {
            step, gate: now, ..
        } = status
        else {
            continue;
        };
        for gate in Gate::WORDS {
            let tier = step.to_string();
            let is_so = i64::from(gate == now.as_str());
            gates.get_or_create(&GateLabels { tier, gate }).set(is_so);
        }
        let seconds = signed(now.closed_for().unwrap_or(0));
        closed.get_or_create(&TierLabels::from(step)).set(seconds);
    }
    let help = "1 if a chain may use the endpoint now";
    all.register("endpoint_gate", help, gates);
    all.register_with_unit(
        "endpoint_closed",
        "Time until the endpoint may be used again, if known",
        Unit::Seconds,
        closed,
    );
}

pub(super) fn queue(all: &mut Registry, counts: &[(JobState, u64)], taken: u64) {
    let requests = Family::<StateLabels, Gauge>::default();
    for state in JobState::ALL {
        let count = counts.iter().find(|(of, _)| *of == state);
        let count = signed(count.map_or(0, |(_, count)| *count));
        let state = state.as_str();
        requests.get_or_create(&StateLabels { state }).set(count);
    }
    all.register("queue_requests", "Requests of the queue", requests);
    bytes(all, "queue", "Disk space of the queue", taken);
}
