//! What llama.cpp demands of a model's numbers, and ends the whole process over: `GGML_ASSERT` in `load_hparams` of
//! `llama-model.cpp`, in `load_arch_hparams` and `load_arch_tensors` of the architectures under `models/`, and in the
//! operations of ggml.

mod architectures;

use crate::{
    fault::{Fault, invalid},
    header::{Header, HeaderValue, Tensor},
    keys::HeaderKeys,
    vocabulary,
};

/// llama.cpp's `LLAMA_MAX_EXPERTS`.
const MAX_EXPERTS: u32 = 1024;

pub(crate) fn check(keys: &HeaderKeys, layers_all: u32) -> Result<(), Fault> {
    for key in ["context_length", "embedding_length"] {
        if keys.required(key)? == 0 {
            return keys.wrong(key, "is 0");
        }
    }
    check_experts(keys, layers_all)?;
    check_heads(keys, layers_all)?;
    architectures::check(keys, layers_all)?;
    check_rope(keys)?;
    check_epsilons(keys)
}

/// Types of tensors that llama.cpp loads, and then computes with what it has not.
pub(crate) fn check_tensors(keys: &HeaderKeys, header: &Header) -> Result<(), Fault> {
    for tensor in &header.tensors {
        let Tensor { name, kind, .. } = tensor;
        if kind.name != "F32" && is_added_or_multiplied(name) {
            return invalid(format!(
                "its tensor {name} is of type {}, not F32",
                kind.name
            ));
        }
        // Of a mixture whose tokens choose their experts by a table.
        let table = kind.name == "I32" && name.contains("tid2eid");
        if !kind.of_weights && !table {
            return invalid(format!(
                "its tensor {name} has type {}, which is invalid for weights",
                kind.name
            ));
        }
    }
    check_embeddings(keys, header)
}

/// Whether it is put to activations element by element, which ggml does in 32-bit floats alone.
fn is_added_or_multiplied(name: &str) -> bool {
    [
        ".bias",
        ".scale",
        "norm.weight",
        "ssm_conv1d.weight",
        ".ssm_a",
        ".ssm_d",
    ]
    .iter()
    .any(|ending| name.ends_with(ending))
        || name.contains("rope_freqs")
        || name.contains("rope_factors")
}

fn check_embeddings(keys: &HeaderKeys, header: &Header) -> Result<(), Fault> {
    // Draft models have the vocabulary of the model that they serve.
    if matches!(keys.architecture, "eagle3" | "dflash") {
        return Ok(());
    }
    let width = u64::from(keys.required("embedding_length")?);
    let tokens = match keys.get(vocabulary::TOKENS) {
        Some(HeaderValue::Array(list)) => list.length,
        _ => return Ok(()),
    };
    let mut tensors = header.tensors.iter();
    match tensors.find(|tensor| tensor.name == "token_embd.weight") {
        Some(table) if table.width != width || table.elements / width != tokens => {
            invalid(format!(
                "its embeddings are {} values of rows of {}, for {tokens} tokens of {width}",
                table.elements, table.width
            ))
        }
        _ => Ok(()),
    }
}

fn check_experts(keys: &HeaderKeys, layers_all: u32) -> Result<(), Fault> {
    let number = |key| Ok(keys.number(key)?.unwrap_or(0));
    let experts = number("expert_count")?;
    let used = keys
        .per_layer("expert_used_count", layers_all)?
        .and_then(|used| used.into_iter().max())
        .unwrap_or(0);
    let (groups, groups_used) = (
        number("expert_group_count")?,
        number("expert_group_used_count")?,
    );
    // These take one expert for none.
    if experts <= 1 && matches!(keys.architecture, "hunyuan-dense" | "hunyuan_vl") {
        return Ok(());
    }
    if experts > MAX_EXPERTS {
        return invalid(format!(
            "it claims {experts} experts, more than {MAX_EXPERTS}"
        ));
    }
    if used > experts || (experts > 0) != (used > 0) {
        return invalid(format!("it claims to use {used} of {experts} experts"));
    }
    let grouped = experts > 0
        && groups < experts
        && (groups <= 1 || experts.is_multiple_of(groups) && (1..groups).contains(&groups_used));
    if groups > 0 && !grouped {
        return invalid(format!(
            "it claims to use {groups_used} of {groups} groups of its {experts} experts"
        ));
    }
    Ok(())
}

/// Heads of queries share heads of keys and values in equal numbers, and no more of a head is turned than it has.
fn check_heads(keys: &HeaderKeys, layers_all: u32) -> Result<(), Fault> {
    let by_layer = |key| keys.per_layer(key, layers_all);
    let Some(heads) = by_layer("attention.head_count")? else {
        return Ok(());
    };
    let kv_heads = by_layer("attention.head_count_kv")?.unwrap_or_else(|| heads.clone());
    let stateful = ["mamba", "rwkv", "arwkv"]
        .iter()
        .any(|family| keys.architecture.starts_with(family));
    if !stateful && heads.iter().all(|&heads| heads == 0) {
        return keys.wrong("attention.head_count", "is 0");
    }
    let uneven = (heads.iter().zip(&kv_heads))
        .find(|&(&heads, &kv_heads)| heads > 0 && kv_heads > 0 && !heads.is_multiple_of(kv_heads));
    if let Some((heads, kv_heads)) = uneven {
        return invalid(format!(
            "it claims {kv_heads} heads of keys for {heads} of queries in one layer"
        ));
    }
    let turned = keys.number("rope.dimension_count")?.unwrap_or(0);
    let even = keys.required("embedding_length")?.checked_div(heads[0]);
    if let Some(even) = even {
        let head = keys.number("attention.key_length")?.unwrap_or(even);
        if let Some(sections) = keys.list("rope.dimension_sections")
            && sections
                .iter()
                .fold(0, |sum: i128, size| sum.saturating_add(*size))
                > head.into()
        {
            return keys.wrong(
                "rope.dimension_sections",
                format!("are more than a head's {head}"),
            );
        }
        if turned > head || turned % 2 != 0 {
            return keys.wrong(
                "rope.dimension_count",
                format!("is {turned}, for heads of {head}"),
            );
        }
    }
    Ok(())
}

fn check_rope(keys: &HeaderKeys) -> Result<(), Fault> {
    let known = ["none", "linear", "yarn", "longrope"];
    if keys.own("rope.scaling.type").is_some()
        && !keys
            .own_text("rope.scaling.type")
            .is_some_and(|kind| known.contains(&kind))
    {
        return keys.wrong("rope.scaling.type", "is unknown");
    }
    // Of these each head is turned by several positions, each of which has a section; to others zeros mean none.
    let sectioned = matches!(
        keys.architecture,
        "clef"
            | "paddleocr"
            | "qwen2vl"
            | "qwen35"
            | "qwen35moe"
            | "qwen3vl"
            | "qwen3vlmoe"
            | "qwen4exp"
    );
    match keys.list("rope.dimension_sections") {
        Some(sections) if sectioned && sections.iter().take(3).all(|&section| section <= 0) => {
            keys.wrong("rope.dimension_sections", "has none")
        }
        _ => Ok(()),
    }
}

fn check_epsilons(keys: &HeaderKeys) -> Result<(), Fault> {
    for key in [
        "attention.layer_norm_epsilon",
        "attention.layer_norm_rms_epsilon",
        "attention.group_norm_epsilon",
    ] {
        if let Some(epsilon) = keys.float(key)
            && !(epsilon.is_finite() && epsilon >= 0.0)
        {
            return keys.wrong(key, format!("is {epsilon}"));
        }
    }
    Ok(())
}
