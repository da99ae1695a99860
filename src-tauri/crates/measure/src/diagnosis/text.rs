//! A diagnosis as one text, to be pasted into a report.

use super::{BenchFigures, Diagnosis, HostFigures, MachineFigures, TierFigures};
use crate::bench::{BenchRow, Figure};
use std::fmt;
use tierbar_core::{
    budget::{LoadPlan, gib},
    units::file_size,
};

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Tierbar {}", self.version)?;
        machine(f, &self.machine)?;
        writeln!(
            f,
            "memory: {} of {} available, pressure {}, swap {} used and {} a minute",
            gib(self.ram.available_bytes),
            gib(self.ram.total_bytes),
            wire_name(&self.ram.pressure),
            gib(self.swap.used_bytes),
            change(self.swap.growth_bytes_per_minute),
        )?;
        writeln!(
            f,
            "models may use {}, are planned to use {}; alarm {}, stance {}",
            gib(self.budget.total_bytes),
            gib(self.budget.planned_bytes),
            wire_name(&self.alarm),
            wire_name(&self.stance),
        )?;
        host(f, &self.tierbar)?;
        if !self.events.is_empty() {
            let events = self.events.iter();
            let events: Vec<String> = events
                .map(|(kind, count)| format!("{kind} {count}"))
                .collect();
            writeln!(f, "events of the last day: {}", events.join(", "))?;
        }
        for figures in &self.tiers {
            tier(f, figures)?;
        }
        Ok(())
    }
}

fn machine(f: &mut fmt::Formatter<'_>, machine: &MachineFigures) -> fmt::Result {
    write!(
        f,
        "{} on {}, {}; {} cores",
        machine.system, machine.architecture, machine.processor, machine.cores
    )?;
    if let Some(fast) = machine.fast_cores {
        write!(f, ", {fast} of them fast")?;
    }
    writeln!(f)?;
    let rate = |rate: Option<u64>| {
        rate.map_or_else(
            || "not measured".to_owned(),
            |rate| format!("{} a second", file_size(rate)),
        )
    };
    writeln!(
        f,
        "bandwidth: memory {}, disk {}",
        rate(machine.memory_bytes_per_second),
        rate(machine.disk_bytes_per_second)
    )?;
    if let Some(bytes) = machine.working_set_bytes {
        writeln!(f, "GPU's working set: {}", gib(bytes))?;
    }
    if let Some(bytes) = machine.disk_free_bytes {
        writeln!(f, "disk: {} free", file_size(bytes))?;
    }
    if let Some(ms) = machine.sync_ms {
        writeln!(f, "a write is safe on disk after {ms:.1} ms")?;
    }
    Ok(())
}

fn host(f: &mut fmt::Formatter<'_>, host: &HostFigures) -> fmt::Result {
    let kind = if host.app { "the app" } else { "the host" };
    write!(f, "{kind} has run for {} s", host.uptime_seconds)?;
    if let Some(bytes) = host.footprint_bytes {
        write!(f, ", uses {}", gib(bytes))?;
    }
    if let Some(ms) = host.cpu_ms {
        write!(f, ", and has computed for {:.1} s", ms as f64 / 1000.0)?;
    }
    writeln!(f)
}

fn tier(f: &mut fmt::Formatter<'_>, tier: &TierFigures) -> fmt::Result {
    writeln!(f)?;
    writeln!(
        f,
        "{}: {}, engine {}, context {} tokens",
        tier.tier,
        wire_name(&tier.state),
        wire_name(&tier.engine),
        tier.context_tokens
    )?;
    if let Some(model) = &tier.model {
        write!(
            f,
            "  model: {} {}, {}, {:.1} billion parameters, {} layers",
            model.architecture,
            model.quant,
            file_size(model.file_bytes),
            model.parameters as f64 / 1e9,
            model.layers
        )?;
        if model.experts > 0 {
            write!(f, ", {} of {} experts", model.experts_used, model.experts)?;
        }
        writeln!(f)?;
    }
    if let Some(settings) = &tier.settings {
        let layers = settings.gpu_layers;
        writeln!(
            f,
            "  settings: threads {}, batch {}, GPU layers {}, KV cache {}, paging {}",
            settings.threads,
            settings.batch,
            layers.map_or_else(|| "auto".to_owned(), |layers| layers.to_string()),
            wire_name(&settings.kv_cache),
            tier.paging
                .map_or_else(|| "auto".to_owned(), |paging| wire_name(&paging)),
        )?;
    }
    if let Some(plan) = &tier.plan {
        planned(f, plan)?;
    }
    if let Some(bytes) = tier.footprint_bytes {
        writeln!(f, "  worker uses {}", gib(bytes))?;
    }
    if !tier.loads_seconds.is_empty() {
        let seconds = tier.loads_seconds.iter();
        let seconds: Vec<String> = seconds.map(|seconds| format!("{seconds:.1}")).collect();
        writeln!(f, "  loads of the last day: {} s", seconds.join(", "))?;
    }
    tier.bench.iter().try_for_each(|bench| measured(f, bench))
}

fn planned(f: &mut fmt::Formatter<'_>, plan: &LoadPlan) -> fmt::Result {
    let lines = plan.lines.iter();
    let lines: Vec<String> = lines
        .map(|line| format!("{} {}", wire_name(&line.what), gib(line.bytes)))
        .collect();
    writeln!(
        f,
        "  plan: {}, {}: {}",
        plan.placement.as_str(),
        gib(plan.total_bytes()),
        lines.join(", ")
    )
}

fn measured(f: &mut fmt::Formatter<'_>, bench: &BenchFigures) -> fmt::Result {
    let threads = bench.threads_used;
    let plural = if threads == 1 { "" } else { "s" };
    write!(f, "  measured with {threads} thread{plural}")?;
    if let Some(ms) = bench.load_ms {
        write!(f, ", loaded in {:.1} s", ms / 1000.0)?;
    }
    writeln!(f)?;
    let measured = |row: &&BenchRow| row.prefill.is_some() || row.decode.is_some();
    for row in bench.rows.iter().filter(measured) {
        let rate = |figure: &Option<Figure>| {
            figure.map_or_else(
                || "–".to_owned(),
                |figure| {
                    format!(
                        "{:.1} [{:.1}–{:.1}]",
                        figure.median, figure.low, figure.high
                    )
                },
            )
        };
        writeln!(
            f,
            "    depth {}: prefill {} tok/s, decode {} tok/s, first token after {} ms",
            row.depth,
            rate(&row.prefill),
            rate(&row.decode),
            rate(&row.first_token_ms)
        )?;
    }
    Ok(())
}

fn change(bytes: i64) -> String {
    let sign = if bytes < 0 { '−' } else { '+' };
    format!("{sign}{}", gib(bytes.unsigned_abs()))
}

/// The wire's word for a value.
fn wire_name(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        // No value here is written as anything else.
        other => format!("{other:?}"),
    }
}
