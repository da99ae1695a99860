//! `qwen3moe`, as llama.cpp's models/qwen3moe.cpp loads it.

use super::{Plan, WIDTH};
use crate::quant::{F32, Q4_K, Q6_K, Q8_0};
use anyhow::Result;

const LAYERS: u16 = 6;
const HEADS: u16 = 8;
const KV_HEADS: u16 = 2;
const HEAD: u16 = 64;
const EXPERTS: u16 = 32;
const HIDDEN: u16 = 256;

pub(super) fn add(plan: &mut Plan) -> Result<()> {
    plan.numbers(&[
        ("block_count", LAYERS),
        ("context_length", 4096),
        ("embedding_length", WIDTH),
        ("feed_forward_length", 4 * HIDDEN),
        ("attention.head_count", HEADS),
        ("attention.head_count_kv", KV_HEADS),
        ("attention.key_length", HEAD),
        ("attention.value_length", HEAD),
        ("expert_count", EXPERTS),
        ("expert_used_count", 4),
        ("expert_feed_forward_length", HIDDEN),
    ]);
    plan.floats(&[
        ("attention.layer_norm_rms_epsilon", 1.0e-6),
        ("rope.freq_base", 1.0e6),
    ]);
    plan.vocabulary(1.0)?;
    for layer in 0..LAYERS {
        let name = |tensor: &str| format!("blk.{layer}.{tensor}.weight");
        plan.around(name("attn_norm"), WIDTH, 1.0)?;
        plan.matrix(name("attn_q"), Q8_0, &[WIDTH, HEADS * HEAD], 1.0)?;
        plan.matrix(name("attn_k"), Q8_0, &[WIDTH, KV_HEADS * HEAD], 1.0)?;
        plan.matrix(name("attn_v"), Q8_0, &[WIDTH, KV_HEADS * HEAD], 1.0)?;
        plan.matrix(name("attn_output"), Q8_0, &[HEADS * HEAD, WIDTH], 2.0)?;
        plan.around(name("attn_q_norm"), HEAD, 1.5)?;
        plan.around(name("attn_k_norm"), HEAD, 1.5)?;

        plan.around(name("ffn_norm"), WIDTH, 1.0)?;
        plan.matrix(name("ffn_gate_inp"), F32, &[WIDTH, EXPERTS], 2.0)?;
        plan.matrix(name("ffn_gate_exps"), Q4_K, &[WIDTH, HIDDEN, EXPERTS], 1.5)?;
        plan.matrix(name("ffn_up_exps"), Q4_K, &[WIDTH, HIDDEN, EXPERTS], 1.5)?;
        plan.matrix(name("ffn_down_exps"), Q6_K, &[HIDDEN, WIDTH, EXPERTS], 2.0)?;
    }
    Ok(())
}
