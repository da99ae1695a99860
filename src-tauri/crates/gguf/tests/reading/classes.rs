//! Bytes by class: disjoint, and together all tensors.

use crate::writer::{F32, Gguf, Q4_K, Q8_0};
use proptest::prelude::*;
use tierbar_core::ModelAccount;

fn classes(account: &ModelAccount) -> [u64; 4] {
    [
        account.dense_bytes,
        account.embedding_bytes,
        account.per_layer_embedding_bytes,
        account.expert_bytes,
    ]
}

/// `token_embd.weight` of every such model.
const EMBEDDING: u64 = 64 * 4 * 4;

#[test]
fn experts_are_counted_and_the_largest_class_names_the_quant() {
    let account = Gguf::model("qwen3moe", 1)
        .text("general.name", "Two Experts")
        .number("qwen3moe.expert_count", 128)
        .number("qwen3moe.expert_used_count", 8)
        .tensor("blk.0.ffn_gate_inp.weight", &[64, 2], F32, 512)
        .tensor("blk.0.ffn_up_exps.weight", &[256, 8, 2], Q4_K, 16 * 144)
        .tensor("blk.0.ffn_up_shexp.weight", &[32, 8], Q8_0, 8 * 34)
        .read()
        .unwrap();
    assert_eq!(account.name.as_deref(), Some("Two Experts"));
    assert_eq!(account.quant, "Q4_K");
    assert_eq!((account.experts, account.experts_used), (128, 8));
    assert_eq!(classes(&account), [512 + 8 * 34, EMBEDDING, 0, 16 * 144]);
    assert_eq!(account.parameters, 256 + 128 + 4096 + 256);
    assert_eq!(account.vocabulary, 4);
    assert_eq!(account.parts, 1);
}

#[test]
fn experts_match_the_tensors_kept_off_the_gpu() {
    let of = |name: &str| {
        let file = Gguf::model("qwen3moe", 1).tensor(name, &[1], F32, 4);
        classes(&file.read().unwrap())
    };
    for name in [
        "blk.0.ffn_up_exps.weight",
        "blk.0.ffn_down_exps.weight",
        "blk.0.ffn_gate_exps.weight",
        "blk.0.ffn_gate_up_exps.weight",
        "blk.0.ffn_down_exps.bias",
        "blk.0.ffn_down_exps.scale",
        "blk.0.ffn_up_chexps.weight",
    ] {
        assert_eq!(of(name), [0, EMBEDDING, 0, 4], "{name}");
    }
    for name in [
        "blk.0.ffn_up_shexp.weight",
        "blk.0.ffn_gate_inp.weight",
        "blk.0.ffn_gate_inp_shexp.weight",
        "blk.0.ffn_norm_exps.weight",
        "blk.0.exp_probs_b.bias",
        "blk.0.ffn_up.weight",
        "output.weight",
        "token_embd_norm.weight",
        "per_layer_model_proj.weight",
    ] {
        assert_eq!(of(name), [4, EMBEDDING, 0, 0], "{name}");
    }
    assert_eq!(of("per_layer_token_embd.weight"), [0, EMBEDDING, 4, 0]);
}

#[test]
fn the_number_of_used_experts_may_vary_by_layer() {
    let account = Gguf::model("qwen3moe", 3)
        .number("qwen3moe.expert_count", 64)
        .numbers("qwen3moe.expert_used_count", &[0, 8, 6])
        .read()
        .unwrap();
    assert_eq!((account.experts, account.experts_used), (64, 8));
    let dense = Gguf::model("llama", 1).read().unwrap();
    assert_eq!((dense.experts, dense.experts_used), (0, 0));
}

#[test]
fn a_missing_output_is_tied_except_in_encoders() {
    let tied = |file: Gguf| file.read().unwrap().tied_output;
    assert!(tied(Gguf::model("llama", 1)));
    assert!(!tied(Gguf::model("llama", 1).tensor(
        "output.weight",
        &[64, 4],
        F32,
        64 * 4 * 4
    )));
    // Not the output layer.
    assert!(tied(Gguf::model("llama", 1).tensor(
        "output_norm.weight",
        &[64],
        F32,
        256
    )));
    let causal =
        |causal: u8| Gguf::model("nomic-bert", 1).pair("nomic-bert.attention.causal", 7, &[causal]);
    assert!(!tied(causal(0)));
    assert!(tied(causal(1)));
}

proptest! {
    #[test]
    fn classes_are_disjoint_and_sum_to_all_tensors(
        tensors in prop::collection::vec((0..9usize, 1..1000u64), 0..40),
    ) {
        let mut file = Gguf::model("gemma4", 1)
            .number("gemma4.attention.sliding_window", 512)
            .bools("gemma4.attention.sliding_window_pattern", &[true]);
        let mut expected = [0, EMBEDDING, 0, 0];
        for (number, (kind, rows)) in tensors.iter().enumerate() {
            let (name, class) = [
                ("ffn_up_exps.weight", 3),
                ("ffn_gate_up_exps.weight", 3),
                ("ffn_down_chexps.weight", 3),
                ("ffn_up_shexp.weight", 0),
                ("ffn_gate_inp.weight", 0),
                ("attn_q.weight", 0),
                ("inp_gate.weight", 0),
                ("per_layer_token_embd.weight", 0),
                ("token_embd.weight", 0),
            ][*kind];
            file = file.tensor(&format!("blk.{number}.{name}"), &[256, *rows], Q4_K, rows * 144);
            expected[class] += rows * 144;
        }
        let account = file.read().unwrap();
        prop_assert_eq!(classes(&account), expected);
        let total: u64 = tensors.iter().map(|(_, rows)| rows * 144).sum();
        prop_assert_eq!(classes(&account).iter().sum::<u64>(), total + EMBEDDING);
    }
}
