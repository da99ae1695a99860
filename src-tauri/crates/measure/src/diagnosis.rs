//! The figures of a machine and of its tiers, for a report about Tierbar.
//!
//! It holds what is listed here and nothing else: no text that a user, a model or a server has written, and so no prompt, key,
//! path, or name of a model, a chat or a tier of the user's own.

mod architectures;
mod text;

use crate::bench::{BenchReport, BenchRow, Settings};
use architectures::ARCHITECTURES;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tierbar_core::{
    TierId, TierState,
    budget::LoadPlan,
    config::{Config, Paging},
    fit::LibraryModel,
    journal::{Entry, Kind},
    policy::{Alarm, Stance},
    status::{BudgetStatus, EngineKind, Ram, Status, Swap, TierStatus},
};

/// The answer of `GET /tierbar/v1/diagnosis`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Diagnosis {
    pub version: String,
    pub machine: MachineFigures,
    pub tierbar: HostFigures,
    pub ram: Ram,
    pub swap: Swap,
    pub budget: BudgetStatus,
    pub alarm: Alarm,
    pub stance: Stance,
    pub tiers: Vec<TierFigures>,
    /// The events of the last day, by kind.
    pub events: BTreeMap<String, u32>,
}

/// What the machine is. Sizes in bytes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct MachineFigures {
    /// Such as `macOS 26.1`.
    pub system: String,
    /// What programs are compiled for, such as `aarch64`.
    pub architecture: String,
    pub processor: String,
    /// All cores, with those of hyper-threading.
    pub cores: u32,
    /// Physical performance cores; without a difference, all physical cores.
    pub fast_cores: Option<u32>,
    /// What Metal recommends to use of the memory; `null` without a GPU that shares it.
    pub working_set_bytes: Option<u64>,
    /// `null` until measured.
    pub memory_bytes_per_second: Option<u64>,
    /// Of the disk with the models; `null` until measured.
    pub disk_bytes_per_second: Option<u64>,
    pub disk_free_bytes: Option<u64>,
    /// The median time until 4 KiB are safe on the disk of the data folder, in milliseconds.
    pub sync_ms: Option<f64>,
}

/// What Tierbar itself uses, without its workers.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HostFigures {
    /// The app with its menu; otherwise the command line or a service.
    pub app: bool,
    pub uptime_seconds: u64,
    pub footprint_bytes: Option<u64>,
    /// CPU time since its start.
    pub cpu_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TierFigures {
    /// `fast`, `primary` or `heavy`; any other is `tier` with its place in the list.
    pub tier: String,
    pub state: TierState,
    pub engine: EngineKind,
    pub model: Option<ModelFigures>,
    pub context_tokens: u32,
    /// `null` for a tier that was removed from the configuration a moment ago.
    pub settings: Option<Settings>,
    pub paging: Option<Paging>,
    pub footprint_bytes: Option<u64>,
    /// While it has a process.
    pub plan: Option<LoadPlan>,
    /// Seconds from the start of a load to its end, of the last day, oldest first.
    pub loads_seconds: Vec<f64>,
    /// The last measurement with this model.
    pub bench: Option<BenchFigures>,
}

/// What a model's file says of its shape.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ModelFigures {
    pub architecture: String,
    pub quant: String,
    pub file_bytes: u64,
    pub parameters: u64,
    pub layers: u32,
    pub experts: u32,
    pub experts_used: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct BenchFigures {
    pub threads_used: u16,
    pub load_ms: Option<f64>,
    pub rows: Vec<BenchRow>,
}

/// What a diagnosis is made of.
#[derive(Debug)]
pub struct Sources<'a> {
    pub machine: MachineFigures,
    pub tierbar: HostFigures,
    pub status: &'a Status,
    pub config: &'a Config,
    pub models: &'a [LibraryModel],
    pub benches: &'a BTreeMap<TierId, BenchReport>,
    /// The newest first.
    pub log: &'a [Entry],
}

const DAY_MS: u64 = 24 * 3600 * 1000;
/// Digits of a model's size that are passed on: all of them would name its file.
const SIZE_DIGITS: u32 = 3;

impl Diagnosis {
    /// `now_ms`: milliseconds since 1970.
    pub fn from_sources(sources: Sources<'_>, now_ms: u64) -> Self {
        let status = sources.status;
        let recent: Vec<&Entry> = sources
            .log
            .iter()
            .filter(|entry| entry.at_ms.saturating_add(DAY_MS) >= now_ms)
            .collect();
        let mut events = BTreeMap::new();
        for entry in &recent {
            *events
                .entry(entry.what.kind.as_str().to_owned())
                .or_default() += 1;
        }
        let tiers = status.tiers.iter().zip(1..);
        let tiers = tiers.map(|(tier, place)| tier_figures(tier, place, &sources, &recent));
        Self {
            version: status.version.clone(),
            ram: status.ram,
            swap: status.swap,
            budget: status.budget,
            alarm: status.guard.alarm,
            stance: status.guard.stance,
            tiers: tiers.collect(),
            events,
            tierbar: sources.tierbar,
            machine: MachineFigures {
                system: without_controls(&sources.machine.system),
                processor: without_controls(&sources.machine.processor),
                ..sources.machine
            },
        }
    }
}

fn tier_figures(
    tier: &TierStatus,
    place: usize,
    sources: &Sources<'_>,
    recent: &[&Entry],
) -> TierFigures {
    let name = match tier.id.as_str() {
        name @ ("fast" | "primary" | "heavy") => name.to_owned(),
        _ => format!("tier {place}"),
    };
    let config = sources.config.tiers.get(&tier.id);
    let own = tier.engine == EngineKind::Embedded;
    let model = tier.model.as_ref().filter(|_| own);
    let bench = sources.benches.get(&tier.id);
    let bench = bench.filter(|report| tier.model.as_ref() == Some(&report.model));
    TierFigures {
        tier: name,
        state: tier.state,
        engine: tier.engine,
        model: model.and_then(|id| {
            let found = sources.models.iter().find(|model| model.id == *id)?;
            model_figures(found)
        }),
        context_tokens: tier.context_tokens,
        settings: config.filter(|_| own).map(Settings::for_tier),
        paging: config.filter(|_| own).map(|config| config.paging),
        footprint_bytes: tier.footprint_bytes,
        plan: tier.plan.clone(),
        loads_seconds: load_seconds(&tier.id, recent),
        bench: bench.map(bench_figures),
    }
}

fn model_figures(model: &LibraryModel) -> Option<ModelFigures> {
    let account = model.account.as_ref()?;
    Some(ModelFigures {
        architecture: known_architecture(&account.architecture),
        quant: account.quant.clone(),
        file_bytes: round(account.file_bytes),
        parameters: round(account.parameters),
        layers: account.layers,
        experts: account.experts,
        experts_used: account.experts_used,
    })
}

/// Returns the architecture if it is a known one. A file can name any, and others could reveal private work.
fn known_architecture(name: &str) -> String {
    let known = ARCHITECTURES.binary_search(&name);
    known.map_or("unknown", |_| name).to_owned()
}

fn round(size: u64) -> u64 {
    let unit = 10u64.pow((size.max(1).ilog10() + 1).saturating_sub(SIZE_DIGITS));
    (size + unit / 2) / unit * unit
}

/// A line of the system's, without what would be more than text.
fn without_controls(line: &str) -> String {
    line.chars().filter(|char| !char.is_control()).collect()
}

fn bench_figures(report: &BenchReport) -> BenchFigures {
    let row = |row: &BenchRow| BenchRow {
        // Its sentence has nothing that the figures do not show.
        skipped: None,
        ..row.clone()
    };
    BenchFigures {
        threads_used: report.threads_used,
        load_ms: report.load_ms,
        rows: report.rows.iter().map(row).collect(),
    }
}

/// Pairs each load of a tier with the moment in which it was ready.
fn load_seconds(tier: &TierId, recent: &[&Entry]) -> Vec<f64> {
    let mut seconds = Vec::new();
    let mut begun = None;
    let of_tier = |entry: &&&Entry| entry.what.tier.as_ref() == Some(tier);
    for entry in recent.iter().rev().filter(of_tier) {
        match (entry.what.kind, begun) {
            (Kind::Load, _) => begun = Some(entry.at_ms),
            (Kind::Ready, Some(since)) => {
                seconds.push(entry.at_ms.saturating_sub(since) as f64 / 1000.0);
                begun = None;
            }
            (Kind::Failure | Kind::Crash | Kind::Unload, _) => begun = None,
            _ => {}
        }
    }
    seconds
}

#[cfg(test)]
mod tests;
