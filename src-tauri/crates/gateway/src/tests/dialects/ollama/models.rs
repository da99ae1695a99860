//! The API's facts about models.

use super::{CHAT, SHA256, bench, small, worker};
use crate::testing::{json, tier};
use axum::{Json, response::IntoResponse};
use serde_json::{Value, json};
use std::sync::Arc;
use tierbar_core::TierState;

#[tokio::test]
async fn what_can_be_asked_for_is_listed_with_what_is_known_of_it() {
    let bench = bench().await;
    let bare = json(bench.get("/api/tags").await).await;
    assert_eq!(bare["models"][1]["details"]["format"], "");
    bench.asked.keep(vec![small()]);
    bench.status.send_modify(|status| {
        let empty = tier("heavy", None, TierState::Stopped);
        Arc::make_mut(status).tiers.push(empty);
    });
    let tags = json(bench.get("/api/tags").await).await;
    let models = tags["models"].as_array().unwrap();
    let names: Vec<_> = models.iter().map(|model| &model["name"]).collect();
    assert_eq!(names, ["auto", "fast", "small"]);
    assert_eq!(models[0]["digest"].as_str().unwrap().len(), 64);
    for model in &models[1..] {
        assert_eq!(model["size"], 98_000_000);
        assert_eq!(model["digest"], SHA256);
        assert_eq!(
            model["details"],
            json!({
                "parent_model": "", "format": "gguf", "family": "llama", "families": ["llama"],
                "parameter_size": "134.52M", "quantization_level": "Q4_1",
            })
        );
        // The file is not there.
        assert_eq!(model["modified_at"], "1970-01-01T00:00:00Z");
    }
    let (routes, _) = worker(CHAT, || Json(json!({"choices": []})).into_response());
    bench.load(routes);
    for name in names {
        let ask = json!({"model": name, "messages": [{"role": "user", "content": "Hi"}], "stream": false});
        let answer = bench.post("/api/chat", ask.to_string()).await;
        assert_eq!(answer.status(), 200, "{name}");
    }
}

#[tokio::test]
async fn chains_are_listed_and_models_without_a_tier_explained() {
    let bench = bench().await;
    let mut new = small();
    new.id = tierbar_core::ModelId("new".to_owned());
    new.tiers.clear();
    bench.asked.keep(vec![small(), new]);
    let chain = serde_json::from_value(json!({"steps": ["fast", "queue"]})).unwrap();
    let name = tierbar_core::TierId::new("work").unwrap();
    bench.config.lock().unwrap().chains.insert(name, chain);
    let tags = json(bench.get("/api/tags").await).await;
    let models = tags["models"].as_array().unwrap();
    let names: Vec<_> = models.iter().map(|model| &model["name"]).collect();
    assert_eq!(names, ["auto", "fast", "work", "small"]);
    assert_eq!(models[3]["size"], 98_000_000);
    let chat = json!({"model": "new", "messages": [{"role": "user", "content": "Hi"}]});
    for (path, ask) in [("/api/chat", chat), ("/api/show", json!({"model": "new"}))] {
        let refused = bench.post(path, ask.to_string()).await;
        assert_eq!(refused.status(), 404, "{path}");
        let reply = json(refused).await.to_string();
        assert!(
            reply.contains("new is installed, but no tier uses it"),
            "{reply}"
        );
    }
    let shown = bench.post("/api/show", json!({"model": "work"}).to_string());
    assert_eq!(json(shown.await).await["tierbar"]["tier"], "fast");
}

#[tokio::test]
async fn a_model_is_shown_with_what_its_tier_holds_and_what_it_can_do() {
    let bench = bench().await;
    bench.asked.keep(vec![small()]);
    let show = |named: Value| bench.post("/api/show", named.to_string());
    for named in [json!({"model": "fast"}), json!({"name": "small:latest"})] {
        let shown = json(show(named).await).await;
        assert_eq!(
            shown["capabilities"],
            json!(["completion", "tools", "vision"])
        );
        let info = &shown["model_info"];
        assert_eq!(info["general.architecture"], "llama");
        assert_eq!(info["general.parameter_count"], 134_515_008);
        // The tier holds 4096, but the model was not trained for them.
        assert_eq!(info["llama.context_length"], 2048);
        assert_eq!(info["llama.expert_count"], Value::Null);
        assert!(shown["parameters"].as_str().unwrap().ends_with(" 4096"));
    }
    let unknown = show(json!({"model": "gpt-5"})).await;
    assert_eq!(unknown.status(), 404);
    let unknown = json(unknown).await;
    assert_eq!(
        unknown["error"],
        "there is no model or tier \"gpt-5\"; use one of: auto, fast, small"
    );
    assert_eq!(unknown["code"], "model_unknown");
    assert_eq!(show(json!({})).await.status(), 400);
}

#[tokio::test]
async fn what_is_loaded_is_listed_with_what_was_measured() {
    let bench = bench().await;
    bench.asked.keep(vec![small()]);
    bench.status.send_modify(|status| {
        let tiers = &mut Arc::make_mut(status).tiers;
        tiers[0].footprint_bytes = Some(123);
        tiers.push(tier("heavy", Some("big"), TierState::Stopped));
    });
    let ps = json(bench.get("/api/ps").await).await;
    let loaded = ps["models"].as_array().unwrap();
    assert_eq!(loaded.len(), 1);
    assert_eq!(
        (&loaded[0]["name"], &loaded[0]["size"]),
        (&json!("fast"), &json!(123))
    );
    assert_eq!(loaded[0]["context_length"], 4096);
    assert_eq!(loaded[0]["size_vram"], 0);
    assert_eq!(loaded[0]["expires_at"], "2318-01-01T00:00:00Z", "it stays");
    bench.status.send_modify(|status| {
        Arc::make_mut(status).tiers[0].unloads_at_ms = Some(1_795_000_000_000);
    });
    let ps = json(bench.get("/api/ps").await).await;
    assert_eq!(ps["models"][0]["expires_at"], "2026-11-18T11:06:40Z");
}
