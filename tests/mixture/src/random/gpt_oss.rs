//! `gpt-oss`, as llama.cpp's models/openai-moe.cpp loads it: attention with sinks, in each second layer over all tokens, and
//! experts with biases.

use super::{Plan, WIDTH};
use crate::quant::{F32, MXFP4, Q8_0};
use anyhow::Result;

const LAYERS: u16 = 6;
const WINDOW: u16 = 32;
const HEADS: u16 = 8;
const KV_HEADS: u16 = 2;
const HEAD: u16 = 64;
const EXPERTS: u16 = 16;
const HIDDEN: u16 = 512;

pub(super) fn add(plan: &mut Plan) -> Result<()> {
    plan.numbers(&[
        ("block_count", LAYERS),
        ("context_length", 4096),
        ("embedding_length", WIDTH),
        ("feed_forward_length", HIDDEN),
        ("attention.head_count", HEADS),
        ("attention.head_count_kv", KV_HEADS),
        ("attention.key_length", HEAD),
        ("attention.value_length", HEAD),
        ("attention.sliding_window", WINDOW),
        ("expert_count", EXPERTS),
        ("expert_used_count", 4),
        ("expert_feed_forward_length", HIDDEN),
    ]);
    plan.floats(&[
        ("attention.layer_norm_rms_epsilon", 1.0e-5),
        ("rope.freq_base", 1.5e5),
    ]);
    plan.vocabulary(1.0)?;
    let output = [WIDTH, plan.tokens];
    plan.matrix("output.weight".to_owned(), Q8_0, &output, 2.0)?;
    for layer in 0..LAYERS {
        add_attention(plan, layer)?;
        add_experts(plan, layer)?;
    }
    Ok(())
}

fn add_attention(plan: &mut Plan, layer: u16) -> Result<()> {
    plan.around(format!("blk.{layer}.attn_norm.weight"), WIDTH, 1.0)?;
    for (tensor, from, to, gain) in [
        ("attn_q", WIDTH, HEADS * HEAD, 1.5),
        ("attn_k", WIDTH, KV_HEADS * HEAD, 1.5),
        ("attn_v", WIDTH, KV_HEADS * HEAD, 1.0),
        ("attn_output", HEADS * HEAD, WIDTH, 2.0),
    ] {
        plan.matrix(
            format!("blk.{layer}.{tensor}.weight"),
            Q8_0,
            &[from, to],
            gain,
        )?;
        plan.scattered(format!("blk.{layer}.{tensor}.bias"), F32, &[to], 0.1)?;
    }
    plan.around(format!("blk.{layer}.attn_sinks.weight"), HEADS, 1.0)?;
    plan.around(
        format!("blk.{layer}.post_attention_norm.weight"),
        WIDTH,
        1.0,
    )
}

fn add_experts(plan: &mut Plan, layer: u16) -> Result<()> {
    let router = format!("blk.{layer}.ffn_gate_inp");
    plan.matrix(format!("{router}.weight"), F32, &[WIDTH, EXPERTS], 2.0)?;
    plan.scattered(format!("{router}.bias"), F32, &[EXPERTS], 0.1)?;
    for (matrix, from, to, gain) in [
        ("gate", WIDTH, HIDDEN, 1.5),
        ("up", WIDTH, HIDDEN, 1.5),
        ("down", HIDDEN, WIDTH, 2.5),
    ] {
        let name = format!("blk.{layer}.ffn_{matrix}_exps");
        plan.matrix(format!("{name}.weight"), MXFP4, &[from, to, EXPERTS], gain)?;
        plan.scattered(format!("{name}.bias"), F32, &[to, EXPERTS], 0.3)?;
    }
    Ok(())
}
