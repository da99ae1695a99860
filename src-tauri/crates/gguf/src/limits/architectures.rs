//! What single architectures demand besides, in `load_arch_hparams` and `load_arch_tensors` under llama.cpp's `models/`.

use crate::{
    fault::Fault,
    header::{HeaderValue, MAX_LAYERS},
    keys::HeaderKeys,
};

pub(super) fn check(keys: &HeaderKeys, layers_all: u32) -> Result<(), Fault> {
    let number = |key| keys.number(key);
    let wrong = |key| keys.wrong(key, "is impossible");
    if must_have_experts(keys.architecture) && number("expert_count")?.unwrap_or(0) == 0 {
        return wrong("expert_count");
    }
    for key in divisors(keys.architecture) {
        if number(key)? == Some(0) {
            return wrong(key);
        }
    }
    let width = keys.required("embedding_length")?;
    match keys.architecture {
        "jamba" | "granitehybrid"
            if number("ssm.inner_size")?
                .is_some_and(|inner| Some(inner) != width.checked_mul(2)) =>
        {
            wrong("ssm.inner_size")
        }
        "lfm2" | "lfm2moe"
            if number("attention.key_length")? != number("attention.value_length")? =>
        {
            wrong("attention.value_length")
        }
        "gemma-embedding" => {
            for key in ["dense_2_feat_in", "dense_3_feat_out"] {
                if number(key)?.is_some_and(|dense| dense != 0 && dense != width) {
                    return wrong(key);
                }
            }
            Ok(())
        }
        // It runs all its layers so many times, each time as layers of their own.
        "nanbeige" if number("num_loops")?.unwrap_or(1).saturating_mul(layers_all) > MAX_LAYERS => {
            wrong("num_loops")
        }
        "llama4" if keys.float("attention.temperature_scale") == Some(0.0) => {
            wrong("attention.temperature_scale")
        }
        // Without a layer that is not turned, its scale is an input that nothing takes.
        "llama4" if layers_all < 4 && number("attention.sliding_window")? != Some(0) => {
            wrong("block_count")
        }
        "bailingmoe3" if keys.own("kda.safe_gate") == Some(&HeaderValue::Bool(false)) => {
            wrong("kda.safe_gate")
        }
        "bailingmoe3"
            if keys
                .float("kda.gate_lower_bound")
                .is_some_and(|bound| bound >= 0.0) =>
        {
            wrong("kda.gate_lower_bound")
        }
        _ => Ok(()),
    }
}

fn must_have_experts(architecture: &str) -> bool {
    matches!(
        architecture,
        "bailingmoe2" | "glm4moe" | "grovemoe" | "lfm2moe" | "llada-moe" | "smallthinker"
    )
}

/// Numbers that are divided by, or counts of what must be there.
fn divisors(architecture: &str) -> &'static [&'static str] {
    match architecture {
        "falcon-h1" | "granitehybrid" | "mamba2" | "nemotron_h" | "nemotron_h_moe" => {
            &["ssm.group_count"]
        }
        "arwkv7" | "rwkv6" | "rwkv6qwen2" | "rwkv7" => &["wkv.head_size"],
        "grovemoe" => &["experts_per_group"],
        "hrm_text" => &["hrm.layers_per_stack", "hrm.h_cycles", "hrm.l_cycles"],
        "minimax-m3" => &["attention.indexer.block_size"],
        "nanbeige" => &["num_loops"],
        _ => &[],
    }
}
