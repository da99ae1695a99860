//! `tierbar tune`: finds the fastest settings for a tier.

use crate::measure::{
    self, Common, format_bytes, format_milliseconds, render_table, repeated_runs,
};
use serde::Serialize;
use serde_json::json;
use std::path::PathBuf;
use tierbar_core::Error;
use tierbar_measure::{
    bench::Figure,
    tune::{Outcome, TuneReport, TuneRequest, TuneRow},
};

// The fields are those of `TuneRequest`.
#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    #[serde(skip)]
    common: Common,
    /// Report the settings without saving them
    #[arg(long)]
    dry_run: bool,
    /// Also try smaller KV cache types, which are less accurate
    #[arg(long)]
    kv_cache: bool,
    /// Thread counts to try [default: near the current number, never all cores]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    threads: Option<Vec<u16>>,
    /// Batch sizes to try [default: 128 to 2048, up to the prompt length]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    batch: Option<Vec<u32>>,
    /// Numbers of GPU layers to try [default: all that fit, half of them and none, if there is a GPU]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    gpu_layers: Option<Vec<u32>>,
    /// Context before each test, in tokens
    #[arg(long, value_name = "N", default_value_t = TuneRequest::default().depth)]
    depth: u32,
    /// Prompt length, in tokens
    #[arg(long = "prompt", value_name = "N", default_value_t = TuneRequest::default().prompt_tokens)]
    prompt_tokens: u32,
    /// Answer length, in tokens
    #[arg(long = "answer", value_name = "N", default_value_t = TuneRequest::default().answer_tokens)]
    answer_tokens: u32,
    /// Runs per test; the median counts
    #[arg(long, value_name = "N", default_value_t = TuneRequest::default().runs)]
    runs: u32,
}

pub(crate) async fn run(home: Option<PathBuf>, args: Args) -> Result<(), Error> {
    let request = json!(args);
    measure::run(home, "tune", args.common, request, render_report).await
}

fn render_report(report: &TuneReport) -> String {
    let headings = ["request", "prefill", "decode", "memory", "settings", ""];
    let mut rows = vec![headings.map(str::to_owned)];
    rows.extend(report.rows.iter().map(cells));
    let mut text = format!(
        "{}: {}, {} tokens of context\n{}, Tierbar {}\n\n{}\n",
        report.tier,
        report.model,
        report.context_tokens,
        report.taken_at,
        report.version,
        render_table(&rows, &[0, 1, 2, 3]),
    );
    text += &format!(
        "Each request has {} tokens of context, {} of prompt and {} of answer. Medians of {} runs; prefill and decode in tok/s.\n",
        report.depth, report.prompt_tokens, report.answer_tokens, report.runs
    );
    text += &repeated_runs(report.disturbed);
    text + &report.summary + "\n"
}

fn cells(row: &TuneRow) -> [String; 6] {
    let rate = |rate: Option<f64>| rate.map_or_else(|| "–".to_owned(), |rate| format!("{rate:.1}"));
    let mark = match row.outcome {
        Outcome::Faster => "✓ ",
        Outcome::Failed => "✗ ",
        Outcome::Base | Outcome::NotFaster | Outcome::Told => "",
    };
    let missing = || "–".to_owned();
    let time = |figure: Figure| format_milliseconds(figure.median);
    [
        row.request_ms.map_or_else(missing, time),
        rate(row.prefill),
        rate(row.decode),
        format_bytes(row.memory.map(|memory| memory.total_bytes())),
        TuneRow::named(row.settings),
        format!("{mark}{}", row.reason),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_shows_each_trial_and_the_outcome() {
        let settings = json!({"threads": 0, "batch": 512, "gpu_layers": null, "kv_cache": "f16"});
        let other = json!({"threads": 2, "batch": 512, "gpu_layers": null, "kv_cache": "f16"});
        let report: TuneReport = serde_json::from_value(json!({
            "version": "0.1.0", "taken_at": "2026-11-21T20:00:00Z", "tier": "fast", "model": "m",
            "context_tokens": 2048, "depth": 512, "prompt_tokens": 1024, "answer_tokens": 64, "runs": 3,
            "rows": [
                {"knob": "start", "settings": settings, "outcome": "base", "reason": "as configured",
                 "request_ms": {"median": 4000.0, "low": 3990.0, "high": 4010.0}, "prefill": 400.0, "decode": 41.0,
                 "load_ms": 200.0, "memory": {"weights_mapped_bytes": 104_857_600, "weights_bytes": 0, "kv_bytes": 0,
                 "compute_bytes": 0, "footprint_bytes": null}},
                {"knob": "threads", "settings": other, "outcome": "failed", "reason": "it crashed",
                 "request_ms": null, "prefill": null, "decode": null, "load_ms": null, "memory": null}
            ],
            "before": settings, "after": settings, "gain": 0.0, "written": false, "disturbed": 0,
            "summary": "Nothing is faster."
        }))
        .unwrap();
        assert_eq!(
            render_report(&report),
            "fast: m, 2048 tokens of context\n2026-11-21T20:00:00Z, Tierbar 0.1.0\n\n\
             request  prefill  decode   memory  settings\n\
             4000 ms    400.0    41.0  100 MiB  automatic threads, batch 512, f16  as configured\n      –        –       –        –  2 threads, batch 512, f16          ✗ it crashed\n\n\
             Each request has 512 tokens of context, 1024 of prompt and 64 of answer. Medians of 3 runs; prefill and decode in tok/s.\n\
             Nothing is faster.\n"
        );
    }
}
