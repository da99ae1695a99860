//! `tierbar bench`: measures prefill, decode and the time to first token.

use crate::measure::{
    self, Common, format_bytes, format_milliseconds, format_rate, render_table, repeated_runs,
};
use serde::Serialize;
use serde_json::json;
use std::path::PathBuf;
use tierbar_core::{Error, units::file_size};
use tierbar_measure::{
    bench::{BenchReport, BenchRequest},
    tune::TuneRow,
};

// The fields are those of `BenchRequest`.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    #[serde(skip)]
    common: Common,
    /// Context before each test, in tokens
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = BenchRequest::default().depths)]
    depths: Vec<u32>,
    /// Prompt length, in tokens
    #[arg(long = "prompt", value_name = "N", default_value_t = BenchRequest::default().prompt_tokens)]
    prompt_tokens: u32,
    /// Answer length, in tokens
    #[arg(long = "answer", value_name = "N", default_value_t = BenchRequest::default().answer_tokens)]
    answer_tokens: u32,
    /// Runs per test; the median is reported
    #[arg(long, value_name = "N", default_value_t = BenchRequest::default().runs)]
    runs: u32,
    /// Measure each way to run a model that is larger than memory
    #[arg(long)]
    paging: bool,
}

pub(crate) async fn run(home: Option<PathBuf>, args: Args) -> Result<(), Error> {
    let request = json!(args);
    measure::run(home, "bench", args.common, request, render_report).await
}

fn render_report(report: &BenchReport) -> String {
    let mut rows = vec![vec![
        "context".to_owned(),
        format!("prefill {}, tok/s", report.prompt_tokens),
        format!("decode {}, tok/s", report.answer_tokens),
        "first token".to_owned(),
    ]];
    let mut skipped = String::new();
    for row in &report.rows {
        match &row.skipped {
            Some(why) => {
                let depth = row.depth;
                skipped += &format!("A context of {depth} tokens was not measured: {why}.\n");
            }
            None => rows.push(vec![
                row.depth.to_string(),
                format_rate(row.prefill),
                format_rate(row.decode),
                row.first_token_ms
                    .map_or_else(String::new, |figure| format_milliseconds(figure.median)),
            ]),
        }
    }
    let memory = &report.memory;
    let load = report.load_ms.map_or_else(String::new, |ms| {
        format!(" Load time: {}.", format_milliseconds(ms))
    });
    let figures = if report.rows.is_empty() {
        String::new()
    } else {
        format!("\n{}", render_table(&rows, &[0, 1, 2, 3]))
    };
    let mut text = format!(
        "{}: {}, {} tokens of context, {} ({} in use)\n{}, Tierbar {}\n{figures}\n{skipped}",
        report.tier,
        report.model,
        report.context_tokens,
        TuneRow::named(report.settings),
        report.threads_used,
        report.taken_at,
        report.version,
    );
    text += &paging_text(report);
    text += &format!(
        "Memory: {} of mapped weights, {} of other weights, KV cache {}, compute buffers {}; process {}.{load}\n",
        format_bytes(Some(memory.weights_mapped_bytes)),
        format_bytes(Some(memory.weights_bytes)),
        format_bytes(Some(memory.kv_bytes)),
        format_bytes(Some(memory.compute_bytes)),
        format_bytes(memory.footprint_bytes),
    );
    text += &format!(
        "Medians of {} runs; ± is half of their range.\n",
        report.runs
    );
    text += &repeated_runs(report.disturbed);
    text
}

/// The ways to run a model that is larger than memory, if they were measured.
fn paging_text(report: &BenchReport) -> String {
    if report.paging.is_empty() {
        return String::new();
    }
    let mut rows = vec![vec![
        "paging".to_owned(),
        format!("prefill {}, tok/s", report.prompt_tokens),
        format!("decode {}, tok/s", report.answer_tokens),
        "in memory".to_owned(),
        "read per token".to_owned(),
        "wait per token".to_owned(),
    ]];
    let mut skipped = String::new();
    for row in &report.paging {
        let name = serde_json::to_value(row.paging).unwrap_or_default();
        let name = name.as_str().unwrap_or("?").to_owned();
        if let Some(why) = &row.skipped {
            skipped += &format!("\"{name}\" was not measured: {why}.\n");
            continue;
        }
        let missing = || "–".to_owned();
        let part = |rate: f64| format!("{:.0} %", (rate * 100.0).floor());
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "bytes of a token"
        )]
        let bytes = |bytes: f64| file_size(bytes as u64);
        rows.push(vec![
            name,
            format_rate(row.prefill),
            format_rate(row.decode),
            row.hit_rate.map_or_else(missing, part),
            row.read_bytes_per_token.map_or_else(missing, bytes),
            row.wait_ms_per_token
                .map_or_else(missing, format_milliseconds),
        ]);
    }
    if rows.len() == 1 {
        return skipped;
    }
    format!(
        "{}\n{skipped}Choose one with the tier's `paging`; \"auto\" lets Tierbar choose.\n",
        render_table(&rows, &[1, 2, 3, 4, 5])
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_lists_skipped_contexts_below_the_table() {
        let report: BenchReport = serde_json::from_value(json!({
            "version": "0.1.0", "taken_at": "2026-11-21T20:00:00Z", "tier": "fast", "model": "m",
            "context_tokens": 2048, "threads_used": 3, "prompt_tokens": 512, "answer_tokens": 64, "runs": 3,
            "settings": {"threads": 0, "batch": 512, "gpu_layers": null, "kv_cache": "f16"},
            "rows": [
                {"depth": 0, "prefill": {"median": 420.0, "low": 400.0, "high": 442.0},
                 "decode": {"median": 41.25, "low": 41.0, "high": 41.5},
                 "first_token_ms": {"median": 1219.0, "low": 1.0, "high": 2.0}, "skipped": null},
                {"depth": 4096, "prefill": null, "decode": null, "first_token_ms": null,
                 "skipped": "needs a context of 4672 tokens, and the tier has 2048"}
            ],
            "load_ms": 250.0, "disturbed": 1,
            "memory": {"weights_mapped_bytes": 104_857_600, "weights_bytes": 0, "kv_bytes": 47_185_920,
                       "compute_bytes": 20_971_520, "footprint_bytes": null}
        }))
        .unwrap();
        assert_eq!(
            render_report(&report),
            "fast: m, 2048 tokens of context, automatic threads, batch 512, f16 (3 in use)\n\
             2026-11-21T20:00:00Z, Tierbar 0.1.0\n\n\
             context  prefill 512, tok/s  decode 64, tok/s  first token\n      0            420 ±5 %         41.2 ±1 %      1219 ms\n\n\
             A context of 4096 tokens was not measured: needs a context of 4672 tokens, and the tier has 2048.\n\
             Memory: 100 MiB of mapped weights, 0 MiB of other weights, KV cache 45 MiB, compute buffers 20 MiB; process –. Load time: 250 ms.\n\
             Medians of 3 runs; ± is half of their range.\n\
             Repeated 1 run that shared the tier with other requests.\n"
        );
    }
}
