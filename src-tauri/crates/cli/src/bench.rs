//! `tierbar bench`: how fast a tier reads and writes.

use crate::measure::{self, Common, again, bytes, milliseconds, rate, table};
use serde_json::json;
use std::path::PathBuf;
use tierbar_core::{
    Error,
    bench::{BenchAsk, BenchReport},
    tune::TuneRow,
};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    common: Common,
    /// How many tokens stand before those that are measured
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = BenchAsk::default().depths)]
    depths: Vec<u32>,
    /// Tokens to read
    #[arg(long, value_name = "N", default_value_t = BenchAsk::default().prompt_tokens)]
    prompt: u32,
    /// Tokens to write
    #[arg(long, value_name = "N", default_value_t = BenchAsk::default().answer_tokens)]
    answer: u32,
    /// Runs of each, of which the median counts
    #[arg(long, value_name = "N", default_value_t = BenchAsk::default().runs)]
    runs: u32,
}

pub(crate) async fn run(home: Option<PathBuf>, args: Args) -> Result<(), Error> {
    let ask = BenchAsk {
        depths: args.depths,
        prompt_tokens: args.prompt,
        answer_tokens: args.answer,
        runs: args.runs,
    };
    measure::run(home, "bench", args.common, json!(ask), text).await
}

fn text(report: &BenchReport) -> String {
    let mut rows = vec![vec![
        "depth".to_owned(),
        format!("reading {}, tok/s", report.prompt_tokens),
        format!("writing {}, tok/s", report.answer_tokens),
        "first token".to_owned(),
    ]];
    let mut skipped = String::new();
    for row in &report.rows {
        match &row.skipped {
            Some(why) => skipped += &format!("Depth {} was not measured: {why}.\n", row.depth),
            None => rows.push(vec![
                row.depth.to_string(),
                rate(row.prefill),
                rate(row.decode),
                row.first_token_ms
                    .map_or_else(String::new, |figure| milliseconds(figure.median)),
            ]),
        }
    }
    let memory = &report.memory;
    let load = report.load_ms.map_or_else(String::new, |ms| {
        format!(", loaded in {}", milliseconds(ms))
    });
    let mut text = format!(
        "{}: {}, a context of {} tokens, {} ({} computing)\n{} with Tierbar {}\n\n{}\n{skipped}",
        report.tier,
        report.model,
        report.context_tokens,
        TuneRow::named(report.settings),
        report.threads_used,
        report.taken_at,
        report.version,
        table(&rows, &[0, 1, 2, 3]),
    );
    text += &format!(
        "Memory: weights {} mapped and {} beside, KV cache {}, compute buffers {}; the process {}{load}.\n",
        bytes(Some(memory.weights_mapped_bytes)),
        bytes(Some(memory.weights_bytes)),
        bytes(Some(memory.kv_bytes)),
        bytes(Some(memory.compute_bytes)),
        bytes(memory.footprint_bytes),
    );
    text += &format!(
        "Medians of {} runs; ± is half of how far they lie apart.\n",
        report.runs
    );
    text += &again(report.disturbed);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_reads_as_a_table_with_what_was_not_measured_below_it() {
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
            text(&report),
            "fast: m, a context of 2048 tokens, usual threads, batch 512, f16 (3 computing)\n\
             2026-11-21T20:00:00Z with Tierbar 0.1.0\n\n\
             depth  reading 512, tok/s  writing 64, tok/s  first token\n    0            420 ±5 %          41.2 ±1 %      1219 ms\n\n\
             Depth 4096 was not measured: needs a context of 4672 tokens, and the tier has 2048.\n\
             Memory: weights 100 MiB mapped and 0 MiB beside, KV cache 45 MiB, compute buffers 20 MiB; the process –, loaded in 250 ms.\n\
             Medians of 3 runs; ± is half of how far they lie apart.\n\
             One run was made again: the tier answered others beside it.\n"
        );
    }
}
