//! A mixture of experts larger than the budget, on a simulated machine.

use crate::{
    arguments_of,
    measures::{begin, ended},
};
use reqwest::Method;
use serde_json::{Value, json};
use tierbar_core::TierState;
use tierbar_mixture::{Mixture, Router, write_wide};
use tierbar_tests::{
    binaries,
    serving::{Data, Serving},
    wait::until,
};

/// The mixture has 380 MiB of experts, and needs 740 MiB with all that is reserved; 600 MiB are the budget here.
const RAM: &str = "3672MiB";

/// Readings of a machine that nothing else uses.
const CALM: &str = r#"{"at_ms": 0, "ram_total_bytes": 17179869184, "ram_available_bytes": 17079869184, "pressure": "normal", "swap_total_bytes": 0, "swap_used_bytes": 0}
"#;

/// A data folder with the mixture as its fast tier.
fn data(paging: &str) -> Data {
    let config = format!(
        "[tiers.fast]\nmodel = \"mixture.gguf\"\ncontext = 512\nthreads = 1\npaging = \"{paging}\"\n"
    );
    let data = Data::empty(&config).with("TIERBAR_SIMULATE_RAM", RAM);
    let dense = binaries::model("SmolLM2-135M-Instruct.Q4_1.gguf");
    let mixture = Mixture {
        experts: 8,
        used: 2,
        router: Router::Skewed,
    };
    mixture
        .write(&dense, &data.models().join("mixture.gguf"))
        .unwrap();
    data
}

async fn complete(host: &Serving) -> Value {
    let request =
        json!({"model": "fast", "prompt": "1, 2, 3, 4, 5, 6,", "max_tokens": 12, "temperature": 0});
    let (status, answer) = host
        .ask(Method::POST, "/v1/completions", Some(request))
        .await;
    assert_eq!(status, 200, "{answer}");
    answer
}

async fn worker_arguments(host: &Serving) -> String {
    let tier = host
        .tier_when("fast", |tier| tier.state == TierState::Ready)
        .await;
    arguments_of(tier.pid.unwrap())
}

fn line(fit: &Value, what: &str) -> Option<u64> {
    let lines = fit["lines"].as_array().unwrap().iter();
    let mut named = lines.filter(|line| line["what"] == what);
    named.next().and_then(|line| line["bytes"].as_u64())
}

#[tokio::test]
async fn a_mixture_beyond_the_budget_answers_from_a_cache() {
    let data = data("auto");
    let host = data.serve().await;
    let (_, listed) = host.ask(Method::GET, "/tierbar/v1/models", None).await;
    let fit = &listed["models"][0]["fit"];
    assert_eq!(fit["placement"], "cache", "{fit}");
    assert!(fit["total_bytes"].as_u64() <= fit["budget_bytes"].as_u64());
    let cache = line(fit, "expert_cache").unwrap() >> 20;
    assert!((98..380).contains(&cache), "{cache} MiB");
    let answer = complete(&host).await;
    let text = answer["choices"][0]["text"].as_str().unwrap();
    assert!(text.starts_with(" 7, 8, 9"), "{text}");
    let experts = &answer["timings"]["experts"];
    let hit_rate = experts["hit_rate"].as_f64().unwrap();
    assert!((0.0..1.0).contains(&hit_rate), "{experts}");
    assert!(experts["read_bytes"].as_u64().unwrap() > 0, "{experts}");
    assert!(experts["wait_ms"].as_f64().unwrap() > 0.0, "{experts}");
    let arguments = worker_arguments(&host).await;
    let wanted = format!("--mapped --experts-on-cpu --expert-cache-mib {cache}");
    assert!(arguments.contains(&wanted), "{arguments}");
}

/// As [`data`], on a machine whose memory is never short and whose disk is always as busy.
fn calm() -> Data {
    let machine = r#"{"ram_total_bytes": 3850371072, "ram_available_bytes": 3221225472, "pressure": "normal",
        "swap_total_bytes": 0, "swap_used_bytes": 0, "disk_read_bytes_per_second": 850000000,
        "disk_written_bytes_per_second": 2000000}"#;
    let data = data("cache");
    let script = data.path().join("readings.jsonl");
    std::fs::write(&script, machine.replace('\n', " ")).unwrap();
    data.with("TIERBAR_SCRIPTED_READINGS", script.to_str().unwrap())
}

async fn paging(host: &Serving) -> Value {
    let (status, paging) = host.ask(Method::GET, "/tierbar/v1/paging", None).await;
    assert_eq!(status, 200, "{paging}");
    paging
}

#[tokio::test]
async fn experts_in_memory_and_the_disk_are_reported() {
    let data = calm();
    let host = data.serve().await;
    assert_eq!(paging(&host).await["tiers"], json!([]));
    complete(&host).await;
    let found = until("the disk's rates", async || {
        let found = paging(&host).await;
        (!found["disk"].is_null()).then_some(found)
    })
    .await;
    let rates = json!({"read_bytes_per_second": 850_000_000, "written_bytes_per_second": 2_000_000,
        "written_bytes_per_day": null});
    assert_eq!(found["disk"], rates);
    let tier = &found["tiers"][0];
    assert_eq!(
        (&tier["tier"], &tier["model"], &tier["placement"]),
        (&json!("fast"), &json!("mixture"), &json!("cache"))
    );
    let layers = tier["layers"].as_array().unwrap();
    let letters: String = layers.iter().filter_map(Value::as_str).collect();
    assert_eq!((layers.len(), letters.len()), (30, 30 * 8), "{tier}");
    let held = letters.bytes().filter(u8::is_ascii_digit).count();
    assert!((1..letters.len()).contains(&held), "{tier}");
    let number = |name: &str| tier[name].as_f64().unwrap();
    assert!(number("held_bytes") > 0.0 && number("held_bytes") < number("all_bytes"));
    assert!((0.01..1.0).contains(&number("hit_rate")), "{tier}");
    assert!(
        number("read_bytes") > 0.0 && number("wait_ms") > 0.0,
        "{tier}"
    );

    let (code, text, _) = data.run(&["status", "--experts"]).await;
    assert_eq!(code, Some(0));
    assert!(
        text.contains("\nDisk     850 MB/s read, 2 MB/s written\n"),
        "{text}"
    );
    assert!(text.contains(" of 240 experts in memory, "), "{text}");
    let is_drawn = |line: &&str| {
        line.chars()
            .filter(|letter| "·░▒▓█".contains(*letter))
            .count()
            == 8
    };
    assert_eq!(text.lines().filter(is_drawn).count(), 30, "{text}");
    let (_, json, _) = data.run(&["status", "--json"]).await;
    let status: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(status["paging"]["tiers"][0]["layers"], tier["layers"]);

    let refused = host.http.get(format!("{}/tierbar/v1/paging", host.url));
    assert_eq!(refused.send().await.unwrap().status(), 401);
}

#[tokio::test]
async fn a_tier_that_is_watched_is_unloaded_when_it_is_idle() {
    let data = calm();
    let host = data.serve().await;
    complete(&host).await;
    let patch = json!({"tiers": {"fast": {"idle_unload": "2s"}}});
    let (status, answer) = host
        .ask(Method::PATCH, "/tierbar/v1/config", Some(patch))
        .await;
    assert_eq!(status, 200, "{answer}");
    until("the tier's end", async || {
        let found = paging(&host).await;
        (found["tiers"] == json!([])).then_some(())
    })
    .await;
    until("the reason", async || {
        let (_, log) = host.ask(Method::GET, "/tierbar/v1/log", None).await;
        log.to_string()
            .contains(" s without a request")
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_system_may_read_experts_and_the_chat_says_what_it_cost() {
    let data = data("advise");
    let host = data.serve().await;
    let (status, chat) = host
        .ask(
            Method::POST,
            "/tierbar/v1/chats",
            Some(json!({"model": "fast"})),
        )
        .await;
    assert_eq!(status, 201, "{chat}");
    let chat = format!("/tierbar/v1/chats/{}", chat["id"].as_str().unwrap());
    let question = json!({"text": "Count to nine.", "options": {"max_tokens": 12}});
    let turns = format!("{chat}/turns");
    let (status, begun) = host.ask(Method::POST, &turns, Some(question)).await;
    assert_eq!(status, 201, "{begun}");
    let answer = until("the answer", async || {
        let (_, chat) = host.ask(Method::GET, &chat, None).await;
        let answer = &chat["messages"][1];
        (!answer["finish"].is_null()).then(|| answer.clone())
    })
    .await;
    let hit_rate = answer["experts"]["hit_rate"].as_f64().unwrap();
    assert!((0.0..=1.0).contains(&hit_rate), "{answer}");
    let arguments = worker_arguments(&host).await;
    assert!(
        arguments.contains("--mapped --experts-on-cpu --announce-experts"),
        "{arguments}"
    );
}

#[tokio::test]
async fn a_tier_may_leave_paging_to_the_system_or_refuse() {
    let data = data("mmap");
    let host = data.serve().await;
    let answer = complete(&host).await;
    let text = answer["choices"][0]["text"].as_str().unwrap();
    assert!(text.starts_with(" 7, 8, 9"), "{text}");
    let arguments = worker_arguments(&host).await;
    assert!(
        arguments.contains("--mapped") && !arguments.contains("--expert-cache"),
        "{arguments}"
    );
    let patch = json!({"tiers": {"fast": {"paging": "off"}}});
    let (status, answer) = host
        .ask(Method::PATCH, "/tierbar/v1/config", Some(patch))
        .await;
    assert_eq!(status, 200, "{answer}");
    let restart = "/tierbar/v1/tiers/fast/stop";
    host.ask(Method::POST, restart, None).await;
    let (status, answer) = host
        .ask(Method::POST, "/tierbar/v1/tiers/fast/start", None)
        .await;
    assert_eq!(
        (status, &answer["error"]["code"]),
        (503, &json!("over_budget"))
    );
}

#[tokio::test]
#[ignore = "slow"]
async fn a_bench_measures_each_way_to_page() {
    let data = data("auto");
    // A measurement starts nothing while memory is low, and other tests use some.
    let readings = data.path().join("readings.jsonl");
    std::fs::write(&readings, CALM).unwrap();
    let data = data.with("TIERBAR_SCRIPTED_READINGS", readings.to_str().unwrap());
    let host = data.serve().await;
    let request = json!({"paging": true, "prompt_tokens": 64, "answer_tokens": 4, "runs": 3});
    let (report, _) = ended(begin(&host, "/tierbar/v1/tiers/fast/bench", request).await).await;
    let rows = report["paging"].as_array().unwrap();
    let ways: Vec<_> = rows.iter().map(|row| row["paging"].clone()).collect();
    assert_eq!(
        json!(ways),
        json!(["cache", "advise", "advise-gpu", "mmap", "stream"])
    );
    // With simulated memory, there is a GPU that shares it.
    for row in &rows[..4] {
        let measured = |name: &str| row[name]["median"].as_f64().unwrap_or(0.0);
        assert!(
            measured("decode") > 0.0 && measured("prefill") > 0.0,
            "{row}"
        );
    }
    for row in &rows[..2] {
        let hit_rate = row["hit_rate"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&hit_rate), "{row}");
    }
    // A mixture has no layers to be read one after another.
    assert_eq!(rows[4]["skipped"], "it is run as \"cache\" instead");
    // The tier becomes what is configured; the last worker of the measurement may be there for a moment.
    until("a worker as configured", async || {
        let arguments = worker_arguments(&host).await;
        arguments.contains("--expert-cache-mib").then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_dense_model_is_streamed_where_that_is_asked_for() {
    let config =
        "[tiers.fast]\nmodel = \"wide.gguf\"\ncontext = 512\nthreads = 1\npaging = \"stream\"\n";
    // 600 MiB are the budget, and the model has 800.
    let data = Data::empty(config).with("TIERBAR_SIMULATE_RAM", RAM);
    let dense = binaries::model("SmolLM2-135M-Instruct.Q4_1.gguf");
    write_wide(&dense, &data.models().join("wide.gguf"), 4).unwrap();
    let host = data.serve().await;
    let answer = complete(&host).await;
    let text = answer["choices"][0]["text"].as_str().unwrap();
    assert!(text.starts_with(" 7, 8, 9"), "{text}");
    let reads = &answer["timings"]["experts"];
    assert_eq!(reads["layers"], true, "{reads}");
    assert!(reads["read_bytes"].as_u64() > Some(1 << 30), "{reads}");
    let tier = host.tier("fast").await;
    let plan = tier.plan.unwrap();
    assert_eq!(plan.placement.as_str(), "stream");
    let arguments = worker_arguments(&host).await;
    assert!(arguments.contains("--layer-cache-mib"), "{arguments}");
}
