//! An embedder and a reranker in their slot beside a chat model.

use reqwest::Method;
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use tierbar_core::{ModelKind, TierKind, TierState};
use tierbar_mixture::write_reranker;
use tierbar_skip::or_skip;
use tierbar_tests::{
    binaries::{self, MINILM},
    serving::{Data, Serving},
};

const RERANKER: &str = "MiniLM-Reranker.F32";

/// A 16 GB Mac, where one chat model is loaded at a time.
fn data(config: &str) -> Result<Data, String> {
    let minilm = binaries::model_or_gone(MINILM)?;
    let data = Data::new(config).with("TIERBAR_SIMULATE_RAM", "16GiB");
    symlink(&minilm, data.models().join(MINILM)).unwrap();
    let reranker = data.models().join(format!("{RERANKER}.gguf"));
    write_reranker(&minilm, &reranker, None).unwrap();
    Ok(data)
}

async fn post(host: &Serving, path: &str, body: Value) -> (String, Value) {
    let response = host.send(Method::POST, path, Some(body)).await;
    assert_eq!(response.status(), 200);
    let tier = response.headers().get("x-tierbar-tier");
    let tier = tier.map_or("", |tier| tier.to_str().unwrap()).to_owned();
    (tier, response.json().await.unwrap())
}

#[tokio::test]
async fn embedding_reranking_and_chatting_in_turn_swap_nothing() {
    let data = or_skip!(data(crate::FAST));
    let host = data.serve().await;
    let ranking = json!({"query": "cats", "documents": ["a cat", "a price"], "top_n": 1, "return_documents": true});
    let (status, error) = host
        .ask(Method::POST, "/v1/rerank", Some(ranking.clone()))
        .await;
    assert_eq!(status, 400);
    let text = |field: &str| error["error"][field].as_str().unwrap().to_owned();
    assert_eq!(text("message"), "no tier has a reranking model");
    assert!(text("hint").contains("tierbar tier use"), "{error}");

    for (model, tier) in [("all-MiniLM-L6-v2.F32", "embedder"), (RERANKER, "reranker")] {
        let (code, text, errors) = data.run(&["tier", "use", tier, model]).await;
        assert_eq!(code, Some(0), "{errors}");
        assert!(
            text.starts_with(&format!("{tier} uses {model}.\n")),
            "{text}"
        );
        assert!(text.contains("Loads beside a chat model"), "{text}");
    }
    let chat = json!({"max_tokens": 2, "messages": [{"role": "user", "content": "Hi"}]});
    let mut pids = Vec::new();
    for _ in 0..3 {
        let (tier, _) = post(&host, "/v1/chat/completions", chat.clone()).await;
        assert_eq!(tier, "fast", "`auto` is for chat models");
        let (tier, vectors) = post(&host, "/v1/embeddings", json!({"input": ["a", "b"]})).await;
        assert_eq!(tier, "embedder");
        assert_eq!(
            vectors["data"][1]["embedding"].as_array().unwrap().len(),
            384
        );
        let (_, vectors) = post(
            &host,
            "/api/embed",
            json!({"model": "embedder", "input": "a"}),
        )
        .await;
        assert_eq!(vectors["embeddings"][0].as_array().unwrap().len(), 384);
        let (tier, ranked) = post(&host, "/v1/rerank", ranking.clone()).await;
        assert_eq!(tier, "reranker");
        let [best] = &ranked["results"].as_array().unwrap()[..] else {
            panic!("{ranked}");
        };
        let index = usize::try_from(best["index"].as_u64().unwrap()).unwrap();
        assert_eq!(best["document"]["text"], ranking["documents"][index]);
        assert!(best["relevance_score"].is_f64() && ranked["usage"]["total_tokens"].is_u64());
        let status = host.status().await;
        assert!(status.budget.planned_bytes <= status.budget.total_bytes);
        pids.push(status.tiers.iter().map(|tier| tier.pid).collect::<Vec<_>>());
    }
    assert!(pids[0].iter().all(Option::is_some));
    assert_eq!(pids[0], pids[2], "no worker was replaced");
    for (id, kind) in [
        ("embedder", ModelKind::Embedding),
        ("reranker", ModelKind::Reranking),
    ] {
        let tier = host.tier(id).await;
        assert_eq!(
            (tier.kind, tier.plan.unwrap().kind),
            (kind, TierKind::Embedder)
        );
    }

    let (status, error) = host
        .ask(
            Method::POST,
            "/v1/rerank",
            Some(json!({"model": "fast", "query": "q", "documents": ["d"]})),
        )
        .await;
    assert_eq!(status, 400);
    let message = error["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("the model of fast, does not rank documents"),
        "{message}"
    );
    assert_eq!(host.tier("fast").await.state, TierState::Ready);
}

#[tokio::test]
async fn without_an_embedder_a_chat_model_embeds() {
    let data = or_skip!(data(crate::FAST));
    let host = data.serve().await;
    let (tier, vectors) = post(&host, "/v1/embeddings", json!({"input": "a"})).await;
    assert_eq!(tier, "fast");
    assert_eq!(
        vectors["data"][0]["embedding"].as_array().unwrap().len(),
        576
    );
}
