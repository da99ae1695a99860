//! Measuring and tuning a tier with its real worker.

use crate::{Events, FAST};
use reqwest::Method;
use serde_json::{Value, json};
use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
};
use tierbar_core::TierState;
use tierbar_measure::{bench::BenchReport, tune::TuneReport};
use tierbar_tests::{
    binaries::program,
    serving::{Data, Serving},
    wait::{until, within},
};

const BENCH: &str = "/tierbar/v1/tiers/fast/bench";
const TUNE: &str = "/tierbar/v1/tiers/fast/tune";

/// Small enough for a test.
fn quick(fields: Value) -> Value {
    let mut ask = json!({"prompt_tokens": 64, "answer_tokens": 4});
    for (key, value) in fields.as_object().unwrap() {
        ask[key] = value.clone();
    }
    ask
}

/// What to try where only the batch is of interest.
fn batches(batches: &[u32]) -> Value {
    quick(
        json!({"threads": [], "gpu_layers": [], "batch": batches, "depth": 0, "prompt_tokens": 32}),
    )
}

pub(crate) async fn begin(host: &Serving, path: &str, ask: Value) -> Events {
    Events::of(host.send(Method::POST, path, Some(ask)).await)
}

/// The report at the end, and the rows before it.
pub(crate) async fn ended(mut events: Events) -> (Value, Vec<Value>) {
    let mut rows = Vec::new();
    loop {
        let event = events.next_json().await;
        assert!(event.get("error").is_none(), "{event}");
        if event.get("taken_at").is_some() {
            assert_eq!(events.next().await, None, "a report is the last");
            return (event, rows);
        }
        if event.get("doing").is_none() {
            rows.push(event);
        }
    }
}

/// Returns the last measurement's report.
async fn last(host: &Serving, path: &str) -> Value {
    let (status, body) = host.ask(Method::GET, path, None).await;
    assert_eq!(status, 200);
    body["report"].clone()
}

/// The arguments of the tier's process.
async fn arguments(host: &Serving) -> String {
    let Some(pid) = host.tier("fast").await.pid else {
        return String::new();
    };
    let ps = Command::new("ps")
        .args(["-ww", "-o", "args=", "-p", &pid.to_string()])
        .output()
        .unwrap();
    String::from_utf8(ps.stdout).unwrap()
}

/// A worker that is slowed down except with a batch of 64, and does not start with a batch of 128.
fn biased_worker(data: &Data) -> String {
    let path = data.path().join("biased-worker");
    let script = format!(
        "#!/bin/sh\n\
         case \"$*\" in\n\
         *\"--batch 128\"*) echo 'out of luck' >&2; exit 3;;\n\
         *\"--batch 64\"*) ;;\n\
         *) (while kill -STOP $$; do sleep 0.03; kill -CONT $$; sleep 0.01; done) >/dev/null 2>&1 </dev/null &;;\n\
         esac\n\
         exec '{}' \"$@\"\n",
        program("tierbar-worker").display()
    )
    .replace("&;;", "& ;;");
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn biased(config: &str) -> Data {
    let data = Data::new(config);
    let worker = biased_worker(&data);
    data.with("TIERBAR_WORKER", &worker)
}

#[tokio::test]
#[ignore = "slow"]
async fn a_bench_measures_each_depth_that_fits_and_is_kept() {
    let data = Data::new(FAST);
    let host = data.serve().await;
    assert!(last(&host, BENCH).await.is_null());
    let ask = quick(json!({"depths": [0, 256, 2048]}));
    let (report, rows) = ended(begin(&host, BENCH, ask).await).await;
    assert_eq!(report["rows"], json!(rows));
    assert_eq!(last(&host, BENCH).await, report);

    let report: BenchReport = serde_json::from_value(report).unwrap();
    assert_eq!(report.context_tokens, 2048);
    assert_eq!(report.settings.batch, 512);
    assert!(report.threads_used >= 1);
    assert!(report.load_ms.unwrap() > 0.0, "it was loaded for this");
    // 2048 cells of 23,040 bytes.
    assert_eq!(report.memory.kv_bytes, 2048 * 23_040);
    assert!(report.memory.footprint_bytes.unwrap() > 1 << 20);
    for row in &report.rows[..2] {
        assert_eq!(row.skipped, None);
        let (prefill, decode) = (row.prefill.unwrap(), row.decode.unwrap());
        assert!(
            prefill.low > 0.0 && prefill.low <= prefill.median && prefill.median <= prefill.high
        );
        assert!(decode.low > 0.0);
        // 64 tokens take as long as the prefill rate implies, plus the way back of the answer.
        let first = row.first_token_ms.unwrap();
        assert!(first.high >= 64.0 / prefill.high * 1e3, "{row:?}");
    }
    let skipped = report.rows[2].skipped.as_deref().unwrap();
    assert_eq!(
        skipped,
        "needs a context of 2116 tokens, and the tier has 2048"
    );

    // The next one finds the tier loaded, also after the host's end.
    let (report, _) = ended(begin(&host, BENCH, quick(json!({"depths": [0]}))).await).await;
    assert!(report["load_ms"].is_null());
    host.kill().await;
    let host = data.serve().await;
    assert_eq!(last(&host, BENCH).await, report);
}

#[tokio::test]
async fn measurements_run_one_at_a_time_and_end_with_the_client() {
    let data = Data::new(FAST);
    let host = data.serve().await;
    let long = quick(json!({"depths": [0], "answer_tokens": 1500, "runs": 50}));
    let mut running = begin(&host, BENCH, long).await;
    running.next().await.unwrap();
    for path in [BENCH, TUNE] {
        let (status, body) = host.ask(Method::POST, path, Some(json!({}))).await;
        assert_eq!(status, 409);
        assert_eq!(body["error"]["message"], "fast is being measured");
    }
    host.tier_when("fast", |tier| tier.state == TierState::Busy)
        .await;
    drop(running);
    host.tier_when("fast", |tier| tier.state == TierState::Ready)
        .await;
    let short = quick(json!({"depths": [0]}));
    let response = until("the end of the first", async || {
        let response = host.send(Method::POST, BENCH, Some(short.clone())).await;
        (response.status() == 200).then_some(response)
    })
    .await;
    ended(Events::of(response)).await;

    let (status, body) = host
        .ask(
            Method::POST,
            "/tierbar/v1/tiers/slow/bench",
            Some(json!({})),
        )
        .await;
    assert_eq!(status, 404);
    assert_eq!(body["error"]["hint"], "the tiers are fast");
}

#[tokio::test]
async fn disturbed_runs_are_repeated_and_reported() {
    let data = Data::new(FAST);
    let host = data.serve().await;
    let ask = quick(json!({"depths": [0], "answer_tokens": 250}));
    let mut events = begin(&host, BENCH, ask).await;
    while !events.next().await.unwrap().contains("measuring decode") {}
    // Answered while the long answer is decoded, by the same worker.
    let answer = host.chat("fast", json!({"max_tokens": 1})).await;
    assert_eq!(answer.status(), 200);
    let (report, _) = ended(events).await;
    let report: BenchReport = serde_json::from_value(report).unwrap();
    assert!(report.disturbed > 0);
    assert_eq!(report.rows[0].skipped, None);
}

/// Returns whether the machine was quiet during the measurement: noisy runs hide a gain.
fn is_quiet(rows: &[Value]) -> bool {
    let of = |figure: &Value, name: &str| figure[name].as_f64().unwrap();
    let decide = rows.iter().filter(|row| row["knob"] != "kv_cache");
    let mut figures = decide.map(|row| &row["request_ms"]);
    figures.all(|figure| {
        figure.is_null() || of(figure, "high") - of(figure, "low") < 0.7 * of(figure, "median")
    })
}

/// `tests/harnesses` runs these tests alone, so that a noisy machine is the exception.
#[tokio::test]
#[ignore = "slow"]
async fn a_tune_writes_faster_settings_with_its_table() {
    let text = format!("# mine\n{FAST}threads = 1 # one\n# the end\n");
    let mut tries = 0;
    let (data, host, report, rows) = loop {
        let data = biased(&text);
        let host = data.serve().await;
        let (report, rows) = ended(begin(&host, TUNE, batches(&[64, 128])).await).await;
        tries += 1;
        if is_quiet(&rows) {
            break (data, host, report, rows);
        }
        assert!(tries < 3, "this machine is never quiet: {rows:?}");
    };
    assert_eq!(report["rows"], json!(rows));
    let report: TuneReport = serde_json::from_value(report).unwrap();
    assert_eq!((report.before.batch, report.after.batch), (512, 64));
    assert!(report.written && report.gain > 0.02, "{}", report.summary);
    assert!(report.summary.starts_with("batch 64 instead of 512: "));

    let outcomes: Vec<_> = rows
        .iter()
        .map(|row| {
            let setting = format!(
                "{} {}",
                row["settings"]["batch"],
                row["settings"]["kv_cache"].as_str().unwrap()
            );
            (
                row["knob"].as_str().unwrap(),
                setting,
                row["outcome"].as_str().unwrap(),
            )
        })
        .collect();
    let outcomes: Vec<_> = outcomes
        .iter()
        .map(|(a, b, c)| (*a, b.as_str(), *c))
        .collect();
    assert_eq!(
        outcomes,
        [
            ("start", "512 f16", "base"),
            ("batch", "64 f16", "faster"),
            ("batch", "128 f16", "failed"),
            ("kv_cache", "64 q8_0", "told"),
            ("kv_cache", "64 q4_0", "told"),
            ("check", "512 f16", "base"),
            ("check", "64 f16", "faster"),
        ]
    );
    let failed = rows[2]["reason"].as_str().unwrap();
    assert!(failed.contains("out of luck"), "{failed}");
    assert!(report.rows[3].memory.unwrap().kv_bytes < report.rows[0].memory.unwrap().kv_bytes);

    let config = fs::read_to_string(data.path().join("config.toml")).unwrap();
    for line in text.lines().chain(["batch = 64"]) {
        assert!(config.contains(&format!("{line}\n")), "{config}");
    }
    assert!(!config.contains("kv_cache"), "{config}");
    assert_eq!(
        host.chat("fast", json!({"max_tokens": 1})).await.status(),
        200
    );
    let loaded = arguments(&host).await;
    assert!(
        loaded.trim_end().ends_with("--threads 1 --batch 64"),
        "{loaded}"
    );
    assert_eq!(last(&host, TUNE).await, json!(report));
}

#[tokio::test]
#[ignore = "slow"]
async fn a_dry_run_or_a_tune_without_gain_changes_nothing() {
    let data = biased(FAST);
    let host = data.serve().await;
    let mut ask = batches(&[64]);
    ask["dry_run"] = json!(true);
    let (report, _) = ended(begin(&host, TUNE, ask).await).await;
    assert_eq!(report["written"], false);
    let (report, _) = ended(begin(&host, TUNE, batches(&[128])).await).await;
    assert_eq!(report["after"], report["before"]);
    let config = fs::read_to_string(data.path().join("config.toml")).unwrap();
    assert_eq!(config, FAST);
    until("the tier as configured", async || {
        let loaded = arguments(&host).await;
        (loaded.contains("--model") && !loaded.contains("--batch") && loaded.contains("f16"))
            .then_some(())
    })
    .await;
}

#[tokio::test]
#[ignore = "slow"]
async fn a_canceled_or_killed_tune_restores_the_tier() {
    let data = biased(FAST);
    let host = data.serve().await;
    let tried = async |host: &Serving, events: &mut Events| {
        while !events.next().await.unwrap().contains("batch 64") {}
        until("a candidate's worker", async || {
            arguments(host).await.contains("--batch 64").then_some(())
        })
        .await;
    };
    let mut events = begin(&host, TUNE, batches(&[64])).await;
    tried(&host, &mut events).await;
    drop(events);
    until("its own settings", async || {
        let loaded = arguments(&host).await;
        (loaded.contains("--model") && !loaded.contains("--batch")).then_some(())
    })
    .await;

    let mut events = until("the end of the first", async || {
        let response = host.send(Method::POST, TUNE, Some(batches(&[64]))).await;
        (response.status() == 200).then(|| Events::of(response))
    })
    .await;
    tried(&host, &mut events).await;
    host.kill().await;
    let config = fs::read_to_string(data.path().join("config.toml")).unwrap();
    assert_eq!(config, FAST);
    let host = data.serve().await;
    host.ask(Method::POST, "/tierbar/v1/tiers/fast/start", None)
        .await;
    let loaded = arguments(&host).await;
    assert!(
        loaded.contains("--model") && !loaded.contains("--batch"),
        "{loaded}"
    );
    assert!(last(&host, TUNE).await.is_null());
}

#[tokio::test]
async fn a_tune_yields_to_changes_and_stops_of_its_tier() {
    let data = biased(FAST);
    let host = data.serve().await;
    let refusal = async |mut events: Events| loop {
        let event = events.next_json().await;
        if let Some(error) = event.get("error") {
            return error.clone();
        }
    };
    let mut events = begin(&host, TUNE, batches(&[64])).await;
    events.next().await.unwrap();
    let patch = json!({"tiers": {"fast": {"batch": 256}}});
    let (status, _) = host
        .ask(Method::PATCH, "/tierbar/v1/config", Some(patch))
        .await;
    assert_eq!(status, 200);
    let error = refusal(events).await;
    assert_eq!(
        error["message"],
        "the settings of fast changed while it was being tuned"
    );
    let config = fs::read_to_string(data.path().join("config.toml")).unwrap();
    assert_eq!(config, format!("{FAST}batch = 256\n"));

    let mut events = begin(&host, TUNE, batches(&[64])).await;
    while !events.next().await.unwrap().contains("batch 64") {}
    host.tier_when("fast", |tier| tier.state == TierState::Busy)
        .await;
    let stopped = host.ask(
        Method::POST,
        "/tierbar/v1/tiers/fast/stop",
        Some(json!({"force": true})),
    );
    assert_eq!(stopped.await.0, 200);
    assert_eq!(refusal(events).await["code"], "tier_stopped");
}

#[tokio::test]
#[ignore = "slow"]
async fn bench_and_tune_work_with_and_without_a_host() {
    let data = Data::new(FAST);
    let small = ["--prompt", "16", "--answer", "2"];
    let command =
        |name: &'static str, more: &[&'static str]| [&[name][..], more, &small[..]].concat();
    let (code, json, stderr) = data
        .run(&command("bench", &["--depths", "0,4096", "--json"]))
        .await;
    assert_eq!(code, Some(0), "{stderr}");
    let report: BenchReport = serde_json::from_str(&json).unwrap();
    assert_eq!(report.rows.len(), 2);
    assert!(
        stderr.contains("depth 0: measuring decode of 2 tokens"),
        "{stderr}"
    );

    let host = data.serve().await;
    let (code, shown, _) = data.run(&["bench", "--tier", "fast", "--show"]).await;
    assert_eq!(code, Some(0));
    assert!(
        shown.contains("first token")
            && shown.contains("A context of 4096 tokens was not measured"),
        "{shown}"
    );
    let (code, shown, stderr) = data
        .run(&command(
            "tune",
            &[
                "--dry-run",
                "--batch",
                "64",
                "--threads",
                "1",
                "--depth",
                "0",
            ],
        ))
        .await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        shown.contains("as configured") && shown.contains("batch 64"),
        "{shown}"
    );
    let (code, _, stderr) = data.run(&["tune", "--runs", "1"]).await;
    assert_eq!(code, Some(2));
    assert!(stderr.contains("`runs` is 1"), "{stderr}");

    let arguments = ["bench", "--depths", "0", "--answer", "1500", "--runs", "50"];
    let mut child = data
        .tierbar(&arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    host.tier_when("fast", |tier| tier.state == TierState::Busy)
        .await;
    let pid = child.id().unwrap().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    let code = within("its end", child.wait()).await.unwrap().code();
    assert_eq!(code, Some(130));
    host.tier_when("fast", |tier| tier.state == TierState::Ready)
        .await;
}
