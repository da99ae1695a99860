//! `gemma4` as in Gemma 4 26B A4B, as llama.cpp's models/gemma4.cpp loads it: a dense network and experts side by side, with norms
//! before and after each; attention within a sliding window, and in each third layer over all tokens with keys that are the
//! values as well.

use super::{Plan, WIDTH};
use crate::{
    gguf::Pair,
    quant::{F16, F32, Q8_0},
};
use anyhow::Result;

const LAYERS: u16 = 6;
const WINDOW: u16 = 32;
const HEADS: u16 = 4;
const EXPERTS: u16 = 16;
/// Not whole blocks of 256, as the 704 of the model that this resembles.
const HIDDEN: u16 = 192;
const DENSE_HIDDEN: u16 = 512;

/// The attention of a layer.
struct Attention {
    kv_heads: u16,
    head: u16,
}

const IN_WINDOW: Attention = Attention {
    kv_heads: 2,
    head: 64,
};
const OVER_ALL: Attention = Attention {
    kv_heads: 1,
    head: 128,
};

fn has_window(layer: u16) -> bool {
    !(layer + 1).is_multiple_of(3)
}

pub(super) fn add(plan: &mut Plan) -> Result<()> {
    add_keys(plan);
    plan.vocabulary(f32::from(WIDTH).sqrt())?;
    // Over all tokens, a quarter of each head turns with the position. A large divisor keeps the rest in place.
    let divisors = (0..OVER_ALL.head / 2).map(|pair| match pair {
        pair if pair < OVER_ALL.head / 8 => 1.0,
        _ => 1.0e30,
    });
    plan.exact("rope_freqs.weight".to_owned(), divisors.collect())?;
    for layer in 0..LAYERS {
        add_attention(plan, layer)?;
        add_networks(plan, layer)?;
        plan.around(format!("blk.{layer}.layer_output_scale.weight"), 1, 1.0)?;
    }
    Ok(())
}

fn add_keys(plan: &mut Plan) {
    plan.numbers(&[
        ("block_count", LAYERS),
        ("context_length", 4096),
        ("embedding_length", WIDTH),
        ("embedding_length_per_layer_input", 0),
        ("feed_forward_length", DENSE_HIDDEN),
        ("attention.head_count", HEADS),
        ("attention.key_length", OVER_ALL.head),
        ("attention.value_length", OVER_ALL.head),
        ("attention.key_length_swa", IN_WINDOW.head),
        ("attention.value_length_swa", IN_WINDOW.head),
        ("attention.sliding_window", WINDOW),
        ("attention.shared_kv_layers", 0),
        ("rope.dimension_count", OVER_ALL.head),
        ("rope.dimension_count_swa", IN_WINDOW.head),
        ("expert_count", EXPERTS),
        ("expert_used_count", 4),
        ("expert_feed_forward_length", HIDDEN),
    ]);
    plan.floats(&[
        ("attention.layer_norm_rms_epsilon", 1.0e-6),
        ("rope.freq_base", 1.0e6),
        ("rope.freq_base_swa", 1.0e4),
        ("final_logit_softcapping", 30.0),
    ]);
    let windows: Vec<bool> = (0..LAYERS).map(has_window).collect();
    let kv_heads = windows.iter().map(|&has_window| {
        let attention = if has_window { IN_WINDOW } else { OVER_ALL };
        i32::from(attention.kv_heads)
    });
    let kv_heads: Vec<i32> = kv_heads.collect();
    plan.pairs.extend([
        Pair::flags(plan.key("attention.sliding_window_pattern"), &windows),
        Pair::integers(plan.key("attention.head_count_kv"), &kv_heads),
    ]);
}

fn add_attention(plan: &mut Plan, layer: u16) -> Result<()> {
    let name = |tensor: &str| format!("blk.{layer}.{tensor}.weight");
    let attention = if has_window(layer) {
        IN_WINDOW
    } else {
        OVER_ALL
    };
    let Attention { kv_heads, head } = attention;
    plan.around(name("attn_norm"), WIDTH, 1.0)?;
    plan.matrix(name("attn_q"), Q8_0, &[WIDTH, HEADS * head], 1.0)?;
    plan.matrix(name("attn_k"), Q8_0, &[WIDTH, kv_heads * head], 1.0)?;
    if has_window(layer) {
        plan.matrix(name("attn_v"), Q8_0, &[WIDTH, kv_heads * head], 1.0)?;
    }
    plan.matrix(name("attn_output"), Q8_0, &[HEADS * head, WIDTH], 1.0)?;
    // The products of queries and keys are not divided by the root of a head's length.
    plan.around(name("attn_q_norm"), head, 0.5)?;
    plan.around(name("attn_k_norm"), head, 0.5)?;
    plan.around(name("post_attention_norm"), WIDTH, 1.0)
}

fn add_networks(plan: &mut Plan, layer: u16) -> Result<()> {
    let name = |tensor: &str| format!("blk.{layer}.{tensor}.weight");
    plan.around(name("ffn_norm"), WIDTH, 1.0)?;
    plan.matrix(name("ffn_gate"), Q8_0, &[WIDTH, DENSE_HIDDEN], 1.0)?;
    plan.matrix(name("ffn_up"), Q8_0, &[WIDTH, DENSE_HIDDEN], 1.0)?;
    plan.matrix(name("ffn_down"), Q8_0, &[DENSE_HIDDEN, WIDTH], 1.0)?;
    plan.around(name("post_ffw_norm_1"), WIDTH, 0.7)?;

    // The router is given numbers that are divided by the root of their count.
    let scale = f32::from(WIDTH).sqrt();
    plan.around(format!("blk.{layer}.ffn_gate_inp.scale"), WIDTH, scale)?;
    plan.matrix(name("ffn_gate_inp"), F32, &[WIDTH, EXPERTS], 2.0)?;
    plan.around(name("pre_ffw_norm_2"), WIDTH, 1.0)?;
    let gate_up = [WIDTH, 2 * HIDDEN, EXPERTS];
    plan.matrix(name("ffn_gate_up_exps"), F16, &gate_up, 1.0)?;
    plan.matrix(name("ffn_down_exps"), Q8_0, &[HIDDEN, WIDTH, EXPERTS], 1.0)?;
    plan.around(format!("blk.{layer}.ffn_down_exps.scale"), EXPERTS, 1.0)?;
    plan.around(name("post_ffw_norm_2"), WIDTH, 1.0)?;
    plan.around(name("post_ffw_norm"), WIDTH, 1.0)
}
