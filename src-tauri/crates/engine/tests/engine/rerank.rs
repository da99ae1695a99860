//! Scores, beside what upstream's llama-server gave on the same files, which `tests/fixtures/record-rerank` recorded.

use crate::support::{Worker, minilm};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tierbar_mixture::write_reranker;
use tierbar_skip::or_skip;

const PATH: &str = "/v1/rerank";
/// As recorded.
const TEMPLATE: &str = "Question: {query} Text: {document}";

fn recorded() -> Value {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../tests/fixtures/rerank.json"
    );
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn reranker(template: Option<&str>) -> Result<(TempDir, PathBuf), String> {
    let minilm = minilm()?;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("reranker.gguf");
    write_reranker(&minilm, &path, template).unwrap();
    Ok((folder, path))
}

async fn agrees_with_llama_server(path: &Path, name: &str) {
    let worker = Worker::start(path, &["--context", "512"]).await;
    let recorded = recorded();
    let expected = recorded[name]["scores"].as_array().unwrap();
    let request = json!({"query": recorded["query"], "documents": recorded["documents"]});
    let (status, answer) = worker.post(PATH, &request).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["usage"]["prompt_tokens"], recorded[name]["tokens"]);
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results.len(), expected.len());
    let scores: Vec<_> = results
        .iter()
        .map(|result| result["relevance_score"].as_f64().unwrap())
        .collect();
    assert!(scores.is_sorted_by(|one, other| one >= other), "{scores:?}");
    for result in results {
        let index = usize::try_from(result["index"].as_u64().unwrap()).unwrap();
        let (ours, theirs) = (
            result["relevance_score"].as_f64().unwrap(),
            expected[index].as_f64().unwrap(),
        );
        // It was recorded on another CPU, one document after another.
        assert!((ours - theirs).abs() < 5e-3, "{index}: {ours}, {theirs}");
        assert_eq!(result["document"], Value::Null);
    }
}

#[tokio::test]
async fn scores_equal_llama_servers() {
    for (template, name) in [(None, "plain"), (Some(TEMPLATE), "templated")] {
        let (_folder, path) = or_skip!(reranker(template));
        agrees_with_llama_server(&path, name).await;
    }
}

#[tokio::test]
async fn the_best_documents_come_with_their_texts() {
    let (_folder, path) = or_skip!(reranker(None));
    let worker = Worker::start(&path, &["--context", "512"]).await;
    let texts: Vec<_> = (0..40)
        .map(|number| format!("Document {number}: {}", "and so on ".repeat(number)))
        .collect();
    let all = json!({"query": "which?", "documents": texts});
    let (_, all) = worker.post(PATH, &all).await;
    let documents: Vec<_> = texts.iter().map(|text| json!({"text": text})).collect();
    let request =
        json!({"query": "which?", "documents": documents, "top_n": 3, "return_documents": true});
    let (status, best) = worker.post(PATH, &request).await;
    assert_eq!(status, 200, "{best}");
    let results = best["results"].as_array().unwrap();
    assert_eq!(results.len(), 3);
    for (result, of_all) in results.iter().zip(all["results"].as_array().unwrap()) {
        assert_eq!(result["index"], of_all["index"]);
        let index = usize::try_from(result["index"].as_u64().unwrap()).unwrap();
        assert_eq!(result["document"]["text"], texts[index]);
    }
}

#[tokio::test]
async fn what_cannot_be_ranked_is_refused_with_the_reason() {
    let (_folder, path) = or_skip!(reranker(None));
    let worker = Worker::start(&path, &["--context", "64"]).await;
    let long = "word ".repeat(100);
    for (request, code, part) in [
        (json!({"documents": ["a"]}), "bad_request", "query"),
        (json!({"query": "q"}), "bad_request", "documents"),
        (
            json!({"query": "", "documents": ["a"]}),
            "bad_request",
            "`query` is empty",
        ),
        (
            json!({"query": "q", "documents": []}),
            "bad_request",
            "send 1 to",
        ),
        (
            json!({"query": "q", "documents": ["a", ""]}),
            "bad_request",
            "document 1",
        ),
        (
            json!({"query": "q", "documents": [5]}),
            "bad_request",
            "documents",
        ),
        (
            json!({"query": "q", "documents": ["a"], "top_n": 0}),
            "bad_request",
            "top_n",
        ),
        (
            json!({"query": "q", "documents": ["a", long]}),
            "context_length_exceeded",
            "document 1",
        ),
    ] {
        let (status, answer) = worker.post(PATH, &request).await;
        assert_eq!(status, 400, "{request}: {answer}");
        assert_eq!(answer["error"]["code"], code, "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(part), "{message}");
    }
    let text = json!({"prompt": "Hello"});
    for (path, request) in [
        ("/v1/completions", &text),
        ("/v1/embeddings", &json!({"input": "a"})),
    ] {
        let (status, answer) = worker.post(path, request).await;
        assert_eq!(status, 400, "{path}: {answer}");
    }
    let (status, _) = worker
        .post(PATH, &json!({"query": "q", "documents": ["still there"]}))
        .await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn a_model_for_something_else_does_not_rank() {
    let worker = Worker::start(&or_skip!(minilm()), &[]).await;
    let request = json!({"query": "q", "documents": ["a"]});
    let (status, answer) = worker.post(PATH, &request).await;
    assert_eq!(status, 400, "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("does not rank documents"), "{message}");
}
