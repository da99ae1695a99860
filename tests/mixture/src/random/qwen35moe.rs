//! `qwen35moe`, as llama.cpp's models/qwen35moe.cpp loads it: three layers of four have a gated delta net, the fourth has
//! attention with a gate, and all have experts of which one is shared.

use super::{Plan, WIDTH};
use crate::{
    gguf::Pair,
    quant::{F32, IQ4_XS, Q4_1, Q8_0},
};
use anyhow::Result;

const LAYERS: u16 = 8;
const ATTENTION_INTERVAL: u16 = 4;
const HEADS: u16 = 4;
const KV_HEADS: u16 = 2;
const HEAD: u16 = 128;
const ROTATED: u16 = 32;
/// The heads of a delta net, each of the length of its state.
const DELTA_HEADS: u16 = 4;
const DELTA_KEY_HEADS: u16 = 2;
const DELTA_STATE: u16 = 128;
const DELTA_VALUES: u16 = DELTA_HEADS * DELTA_STATE;
const DELTA_KEYS: u16 = DELTA_KEY_HEADS * DELTA_STATE;
const CONVOLVED: u16 = 4;
const EXPERTS: u16 = 32;
const HIDDEN: u16 = 256;

pub(super) fn add(plan: &mut Plan) -> Result<()> {
    add_keys(plan);
    plan.vocabulary(1.0)?;
    for layer in 0..LAYERS {
        plan.around(format!("blk.{layer}.attn_norm.weight"), WIDTH, 1.0)?;
        if (layer + 1).is_multiple_of(ATTENTION_INTERVAL) {
            add_attention(plan, layer)?;
        } else {
            add_delta_net(plan, layer)?;
        }
        plan.around(
            format!("blk.{layer}.post_attention_norm.weight"),
            WIDTH,
            1.0,
        )?;
        add_experts(plan, layer)?;
    }
    Ok(())
}

fn add_keys(plan: &mut Plan) {
    plan.numbers(&[
        ("block_count", LAYERS),
        ("context_length", 4096),
        ("embedding_length", WIDTH),
        ("full_attention_interval", ATTENTION_INTERVAL),
        ("attention.head_count", HEADS),
        ("attention.head_count_kv", KV_HEADS),
        ("attention.key_length", HEAD),
        ("attention.value_length", HEAD),
        ("rope.dimension_count", ROTATED),
        ("ssm.conv_kernel", CONVOLVED),
        ("ssm.state_size", DELTA_STATE),
        ("ssm.group_count", DELTA_KEY_HEADS),
        ("ssm.time_step_rank", DELTA_HEADS),
        ("ssm.inner_size", DELTA_VALUES),
        ("expert_count", EXPERTS),
        ("expert_used_count", 4),
        ("expert_feed_forward_length", HIDDEN),
        ("expert_shared_feed_forward_length", HIDDEN),
    ]);
    plan.floats(&[
        ("attention.layer_norm_rms_epsilon", 1.0e-6),
        ("rope.freq_base", 1.0e7),
    ]);
    // Pairs of elements that turn with the time, height and width of a token.
    let sections = Pair::integers(plan.key("rope.dimension_sections"), &[6, 5, 5, 0]);
    plan.pairs.push(sections);
}

fn add_attention(plan: &mut Plan, layer: u16) -> Result<()> {
    let name = |tensor: &str| format!("blk.{layer}.{tensor}.weight");
    // Queries, each with its gate.
    plan.matrix(name("attn_q"), Q8_0, &[WIDTH, 2 * HEADS * HEAD], 1.0)?;
    plan.matrix(name("attn_k"), Q8_0, &[WIDTH, KV_HEADS * HEAD], 1.0)?;
    plan.matrix(name("attn_v"), Q8_0, &[WIDTH, KV_HEADS * HEAD], 1.0)?;
    plan.matrix(name("attn_output"), Q8_0, &[HEADS * HEAD, WIDTH], 4.0)?;
    plan.around(name("attn_q_norm"), HEAD, 1.5)?;
    plan.around(name("attn_k_norm"), HEAD, 1.5)
}

fn add_delta_net(plan: &mut Plan, layer: u16) -> Result<()> {
    let name = |tensor: &str| format!("blk.{layer}.{tensor}.weight");
    let mixed = 2 * DELTA_KEYS + DELTA_VALUES;
    plan.matrix(name("attn_qkv"), Q8_0, &[WIDTH, mixed], 1.0)?;
    plan.matrix(name("attn_gate"), Q8_0, &[WIDTH, DELTA_VALUES], 1.5)?;
    plan.matrix(name("ssm_conv1d"), F32, &[CONVOLVED, mixed], 1.5)?;
    // The state shrinks with each token, by the exponential of this times a number of about one.
    plan.around(format!("blk.{layer}.ssm_a"), DELTA_HEADS, -0.1)?;
    plan.around(format!("blk.{layer}.ssm_dt.bias"), DELTA_HEADS, 0.5)?;
    plan.matrix(name("ssm_beta"), F32, &[WIDTH, DELTA_HEADS], 1.0)?;
    plan.matrix(name("ssm_alpha"), F32, &[WIDTH, DELTA_HEADS], 1.0)?;
    plan.around(name("ssm_norm"), DELTA_STATE, 1.0)?;
    plan.matrix(name("ssm_out"), Q8_0, &[DELTA_VALUES, WIDTH], 1.5)
}

fn add_experts(plan: &mut Plan, layer: u16) -> Result<()> {
    let name = |tensor: &str| format!("blk.{layer}.{tensor}.weight");
    plan.matrix(name("ffn_gate_inp"), F32, &[WIDTH, EXPERTS], 2.0)?;
    plan.matrix(
        name("ffn_gate_exps"),
        IQ4_XS,
        &[WIDTH, HIDDEN, EXPERTS],
        1.5,
    )?;
    plan.matrix(name("ffn_up_exps"), IQ4_XS, &[WIDTH, HIDDEN, EXPERTS], 1.5)?;
    plan.matrix(name("ffn_down_exps"), Q4_1, &[HIDDEN, WIDTH, EXPERTS], 2.0)?;
    plan.scattered(name("ffn_gate_inp_shexp"), F32, &[WIDTH], 0.05)?;
    plan.matrix(name("ffn_gate_shexp"), Q8_0, &[WIDTH, HIDDEN], 1.5)?;
    plan.matrix(name("ffn_up_shexp"), Q8_0, &[WIDTH, HIDDEN], 1.5)?;
    plan.matrix(name("ffn_down_shexp"), Q8_0, &[HIDDEN, WIDTH], 1.0)
}
