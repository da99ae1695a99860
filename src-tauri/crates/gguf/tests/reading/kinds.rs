//! What a model is for, as its header says.

use crate::writer::{F32, Gguf};
use tierbar_core::{Code, ModelKind};

/// llama.cpp's `LLAMA_POOLING_TYPE_…`.
const NONE: u32 = 0;
const MEAN: u32 = 1;
const LAST: u32 = 3;
const RANK: u32 = 4;

#[test]
fn a_model_is_for_what_its_pooling_makes_of_it() {
    let of = |architecture: &str, pooling: Option<u32>| {
        let file = Gguf::model(architecture, 1).tensor("cls.output.weight", &[64, 1], F32, 256);
        let key = format!("{architecture}.pooling_type");
        let file = match pooling {
            Some(pooling) => file.number(&key, pooling),
            None => file,
        };
        file.read().unwrap().kind
    };
    for (architecture, pooling, kind) in [
        ("llama", None, ModelKind::Chat),
        ("llama", Some(NONE), ModelKind::Chat),
        ("qwen3", Some(LAST), ModelKind::Embedding),
        ("bert", Some(MEAN), ModelKind::Embedding),
        ("nomic-bert", None, ModelKind::Embedding),
        ("gemma-embedding", None, ModelKind::Embedding),
        ("bert", Some(RANK), ModelKind::Reranking),
        ("qwen3", Some(RANK), ModelKind::Reranking),
    ] {
        assert_eq!(
            of(architecture, pooling),
            kind,
            "{architecture} {pooling:?}"
        );
    }
    let encoder = Gguf::model("llama", 1).pair("llama.attention.causal", 7, &[0]);
    assert_eq!(encoder.read().unwrap().kind, ModelKind::Embedding);
}

#[test]
fn a_reranking_model_has_a_classifier() {
    let file = Gguf::model("bert", 1).number("bert.pooling_type", RANK);
    let error = file.read().unwrap_err();
    assert_eq!(error.code, Code::ModelInvalid);
    assert!(error.message.contains("without a classifier"), "{error}");
}
