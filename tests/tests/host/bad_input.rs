//! Invalid input must do no harm.

use crate::{Events, FAST};
use reqwest::Method;
use serde_json::{Value, json};
use std::fs;
use tierbar_core::{TierState, status::TierStatus};
use tierbar_tests::{
    binaries::{STARTER, model},
    serving::{Data, alive},
};

#[tokio::test]
async fn invalid_model_files_are_reported_and_the_host_goes_on() {
    let config = "[tiers.cut]\nmodel = \"cut\"\n[tiers.gone]\nmodel = \"gone\"\n[tiers.text]\nmodel = \"text.gguf\"\n";
    let data = Data::new(&format!("{FAST}{config}"));
    let starter = fs::read(model(STARTER)).unwrap();
    fs::write(
        data.models().join("cut.gguf"),
        &starter[..starter.len() / 2],
    )
    .unwrap();
    fs::write(
        data.models().join("text.gguf"),
        "It was a dark and stormy night. ".repeat(100),
    )
    .unwrap();
    let host = data.serve().await;
    for (tier, code) in [
        ("gone", "model_missing"),
        ("cut", "model_invalid"),
        ("text", "model_invalid"),
    ] {
        for stream in [false, true] {
            let response = host.chat(tier, json!({"stream": stream})).await;
            assert_eq!(response.status(), 503, "{tier}");
            let body: Value = response.json().await.unwrap();
            assert_eq!(body["error"]["code"], code, "{body}");
        }
        let (status, body) = host
            .ask(
                Method::POST,
                &format!("/tierbar/v1/tiers/{tier}/start"),
                None,
            )
            .await;
        assert_eq!((status, &body["error"]["code"]), (503, &json!(code)));
        let seen = host.tier(tier).await;
        assert_eq!(seen.state, TierState::Failed);
        assert_eq!(seen.reason.as_deref(), body["error"]["message"].as_str());
    }
    let (_, listed) = host.ask(Method::GET, "/tierbar/v1/models", None).await;
    let models = listed["models"].as_array().unwrap();
    let errors: Vec<_> = models
        .iter()
        .filter(|model| model["error"].is_string())
        .map(|model| &model["id"])
        .collect();
    assert_eq!(errors, ["cut", "text"]);
    assert_eq!(
        host.chat("fast", json!({"max_tokens": 1})).await.status(),
        200
    );
}

#[tokio::test]
async fn unknown_tiers_and_models_are_refused_with_known_names() {
    let data = Data::new(FAST);
    let host = data.serve().await;
    let (status, body) = host
        .ask(Method::POST, "/tierbar/v1/tiers/turbo/start", None)
        .await;
    assert_eq!(
        (status, &body["error"]["code"]),
        (404, &json!("tier_unknown"))
    );
    let (status, body) = host
        .ask(Method::POST, "/tierbar/v1/tiers/No%20Tier/stop", None)
        .await;
    assert_eq!(
        (status, &body["error"]["code"]),
        (404, &json!("tier_unknown"))
    );
    assert_eq!(body["error"]["hint"], "the tiers are fast");
    let body: Value = host.chat("gpt-5", json!({})).await.json().await.unwrap();
    assert_eq!(body["error"]["code"], "model_unknown");
    assert_eq!(
        body["error"]["available"],
        json!(["auto", "fast", "SmolLM2-135M-Instruct.Q4_1"])
    );
}

#[tokio::test]
async fn invalid_json_is_refused_with_its_place_and_loads_nothing() {
    let data = Data::new(FAST);
    let host = data.serve().await;
    for path in ["/v1/chat/completions", "/v1/completions"] {
        let request = host
            .http
            .post(format!("{}{path}", host.url))
            .body("{\"model\": \"fast\",\n oops}");
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 400);
        let body: Value = response.json().await.unwrap();
        assert_eq!(body["error"]["code"], "bad_request");
        assert!(
            body["error"]["message"]
                .as_str()
                .unwrap()
                .contains("line 2 column 2"),
            "{body}"
        );
    }
    assert_eq!(host.tier("fast").await.state, TierState::Stopped);
}

#[tokio::test]
async fn a_prompt_of_a_megabyte_is_refused_with_the_figures() {
    let data = Data::new(FAST);
    let host = data.serve().await;
    let prompt = "word ".repeat(200_000);
    for stream in [false, true] {
        let messages = json!([{"role": "user", "content": prompt}]);
        let response = host
            .chat("fast", json!({"messages": messages, "stream": stream}))
            .await;
        let status = response.status();
        let body = response.text().await.unwrap();
        // A stream that has waited for 5 s, such as on a busy machine, has its status already.
        let begun = stream && status == 200;
        assert!(status == 400 || begun, "{status}: {body}");
        let mut events = body.lines().filter_map(|line| line.strip_prefix("data: "));
        let error = if begun {
            events.next_back().unwrap()
        } else {
            &body
        };
        let error: Value = serde_json::from_str(error).unwrap();
        assert_eq!(error["error"]["code"], "context_length_exceeded");
        assert_eq!(error["error"]["context_tokens"], 2048);
        assert!(
            error["error"]["prompt_tokens"].as_u64().unwrap() > 200_000,
            "{error}"
        );
    }
    assert_eq!(
        host.chat("fast", json!({"max_tokens": 1})).await.status(),
        200
    );
}

#[tokio::test]
async fn a_body_of_forty_megabytes_is_refused_for_its_size() {
    let data = Data::new(FAST);
    let host = data.serve().await;
    let response = host
        .chat("fast", json!({"prompt": "x".repeat(40 << 20)}))
        .await;
    assert_eq!(response.status(), 413);
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["error"]["code"], "payload_too_large");
}

#[tokio::test]
async fn a_worker_killed_mid_answer_ends_the_stream_and_restarts() {
    let data = Data::new(FAST);
    let host = data.serve().await;
    let endless = json!({"stream": true, "ignore_eos": true, "max_tokens": 1900});
    let mut events = Events::of(host.chat("fast", endless).await);
    events.words().await;
    let worker = host.tier("fast").await.pid.unwrap();
    kill(worker, "KILL");
    let rest = events.rest().await;
    let last: Value = serde_json::from_str(rest.last().unwrap()).unwrap();
    assert_eq!(last["error"]["code"], "worker_crashed", "{last}");
    let failed = host
        .tier_when("fast", |tier| tier.state == TierState::Failed)
        .await;
    assert_eq!(failed.reason.as_deref(), last["error"]["message"].as_str());
    assert!(failed.reason.unwrap().contains("signal 9"));

    assert_eq!(
        host.chat("fast", json!({"max_tokens": 1})).await.status(),
        200
    );
    let again = host.tier("fast").await;
    assert_ne!(again.pid, Some(worker));
    assert_eq!(again.reason, None);
    assert!(!alive(worker));
}

#[tokio::test]
async fn two_workers_killed_before_an_answer_are_a_502() {
    let data = Data::new(FAST);
    let host = data.serve().await;
    host.ask(Method::POST, "/tierbar/v1/tiers/fast/start", None)
        .await;
    let answer = host.chat("fast", json!({"ignore_eos": true, "max_tokens": 1900}));
    let kill = async {
        let busy = |tier: &TierStatus| tier.state == TierState::Busy;
        let first = host.tier_when("fast", busy).await.pid;
        kill(first.unwrap(), "KILL");
        // What waited is sent once more.
        let next = |tier: &TierStatus| busy(tier) && tier.pid != first;
        let second = host.tier_when("fast", next).await.pid;
        kill(second.unwrap(), "KILL");
    };
    let (response, ()) = tokio::join!(answer, kill);
    assert_eq!(response.status(), 502);
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["error"]["code"], "worker_crashed");
}

#[tokio::test]
async fn a_taken_port_is_reported_with_its_program() {
    let (data, other) = (Data::new(FAST), Data::new(FAST));
    let host = data.serve().await;
    let address = host.url.strip_prefix("http://").unwrap();
    let (code, stdout, stderr) = other.run(&["serve", "--listen", address]).await;
    assert_eq!((code, &*stdout), (Some(7), ""));
    assert!(
        stderr.contains(&format!("is taken by tierbar (pid {})", host.pid())),
        "{stderr}"
    );
    assert!(stderr.contains("--listen"), "{stderr}");
    // Nothing keeps the folder locked.
    other.serve().await;
}

#[tokio::test]
async fn a_second_host_on_the_same_folder_is_refused() {
    let data = Data::new(FAST);
    let host = data.serve().await;
    let (code, stdout, stderr) = data.run(&["serve", "--listen", "127.0.0.1:0"]).await;
    assert_eq!((code, &*stdout), (Some(7), ""));
    assert!(
        stderr.contains(&format!("pid {}, {}", host.pid(), host.url)),
        "{stderr}"
    );
    let (code, stdout, _) = data.run(&["status", "--json"]).await;
    assert_eq!(code, Some(0));
    assert_eq!(
        serde_json::from_str::<Value>(&stdout).unwrap()["url"],
        host.url
    );
}

#[tokio::test]
async fn wrong_tokens_origins_and_hosts_are_refused() {
    let data = Data::new(FAST);
    let host = data.serve().await;
    let get = |path: &str| host.http.get(format!("{}{path}", host.url));
    for (request, status) in [
        (get("/tierbar/v1/status"), 401),
        (get("/tierbar/v1/status").bearer_auth("wrong"), 401),
        (get("/v1/models"), 200),
        (get("/health").header("host", "rebound.example"), 403),
        (
            get("/v1/models").header("origin", "https://page.example"),
            403,
        ),
        (get("/health").header("origin", "tauri://localhost"), 200),
    ] {
        let shown = format!("{request:?}");
        assert_eq!(request.send().await.unwrap().status(), status, "{shown}");
    }
}

fn kill(pid: u32, signal: &str) {
    let status = std::process::Command::new("kill")
        .args([&format!("-{signal}"), &pid.to_string()])
        .status();
    assert!(status.unwrap().success());
}
