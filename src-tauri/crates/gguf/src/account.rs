//! From a header to a model's account.

use crate::{
    fault::{Fault, invalid, unsupported},
    header::{Header, HeaderValue, MAX_LAYERS, Tensor},
    keys::HeaderKeys,
    kv, limits, quant, vocabulary,
};
use std::collections::BTreeMap;
use tierbar_core::{ModelAccount, ModelKind, sampling::Sampling};

/// The header is one file's, or that of all parts joined, with the bytes of as many files.
pub(crate) fn account_model(
    header: &Header,
    file_bytes: u64,
    parts: u16,
) -> Result<ModelAccount, Fault> {
    let keys = HeaderKeys::new(&header.pairs)?;
    check_loadable(&keys)?;
    // The first part of a split model may have none.
    if header.tensors.is_empty() && parts == 1 {
        return invalid("it has no tensors");
    }
    let layers_all = keys.required("block_count")?;
    if !(1..=MAX_LAYERS).contains(&layers_all) {
        return invalid(format!("it claims {layers_all} layers"));
    }
    // Blocks that only predict further tokens ahead.
    let layers = layers_all.saturating_sub(keys.number("nextn_predict_layers")?.unwrap_or(0));
    if layers == 0 {
        return invalid("it has only layers that predict further tokens");
    }
    limits::check(&keys, layers_all)?;
    limits::check_tensors(&keys, header)?;
    header.vocabulary.check(&keys)?;
    let bytes = |class| {
        let of_class = header
            .tensors
            .iter()
            .filter(|tensor| WeightClass::of(tensor) == class);
        of_class.fold(0u64, |sum, tensor| sum.saturating_add(tensor.bytes))
    };
    let most = |key| {
        let by_layer = keys.per_layer(key, layers_all)?;
        Ok(by_layer.and_then(|numbers| numbers.into_iter().take(layers as usize).max()))
    };
    let heads = most("attention.head_count")?.unwrap_or(0);
    let has_experts = header.tensors.iter().any(Tensor::is_expert);
    let layers_read = paged_layers(header, has_experts);
    Ok(ModelAccount {
        architecture: keys.architecture.to_owned(),
        kind: model_kind(&keys, header, parts)?,
        name: keys.name(),
        quant: quant::quant_name(&keys, header).to_owned(),
        file_bytes,
        parts: parts.into(),
        dense_bytes: bytes(WeightClass::Dense),
        embedding_bytes: bytes(WeightClass::Embedding),
        per_layer_embedding_bytes: bytes(WeightClass::PerLayerEmbedding),
        expert_bytes: bytes(WeightClass::Expert),
        feed_forward_bytes: if has_experts {
            0
        } else {
            layers_read.values().copied().fold(0, u64::saturating_add)
        },
        largest_layer_bytes: layers_read.values().copied().max().unwrap_or(0),
        parameters: header
            .tensors
            .iter()
            .fold(0, |sum, tensor| sum.saturating_add(tensor.elements)),
        tied_output: tied_output(&keys, header),
        layers,
        heads,
        kv_heads: most("attention.head_count_kv")?.unwrap_or(heads),
        experts: keys.number("expert_count")?.unwrap_or(0),
        experts_used: most("expert_used_count")?.unwrap_or(0),
        embedding: keys.required("embedding_length")?,
        vocabulary: vocabulary_size(&keys)?,
        context_train: keys.required("context_length")?,
        kv: kv::account_kv(&keys, layers_all, layers)?,
        chat_template: matches!(keys.get("tokenizer.chat_template"), Some(HeaderValue::Template(template)) if !template.empty),
        thinking: keys.templates().any(|template| template.thinking),
        tools: keys.templates().any(|template| template.tools),
        sampling: recommended_sampling(&keys),
    })
}

/// llama.cpp's `general.sampling.*`, without values that are out of range.
fn recommended_sampling(keys: &HeaderKeys<'_>) -> Sampling {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the file has 32-bit numbers"
    )]
    let float = |key: &str| match keys.get(&format!("general.sampling.{key}")) {
        Some(HeaderValue::Float(number)) => Some(*number as f32),
        _ => None,
    };
    let top_k = match keys.get("general.sampling.top_k") {
        Some(HeaderValue::Integer(number)) => i32::try_from(*number).ok(),
        _ => None,
    };
    let sampling = Sampling {
        temperature: float("temp"),
        top_k,
        top_p: float("top_p"),
        min_p: float("min_p"),
        repeat_penalty: float("penalty_repeat"),
        ..Sampling::default()
    };
    let (valid, wrong) = sampling.valid();
    for (key, why) in wrong {
        let name = keys.name().unwrap_or_else(|| "an unnamed model".to_owned());
        tracing::warn!("the file of {name} sets {key}, which is left out: {why}");
    }
    valid
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WeightClass {
    Dense,
    Embedding,
    PerLayerEmbedding,
    Expert,
}

impl WeightClass {
    fn of(tensor: &Tensor) -> Self {
        match tensor.name.as_str() {
            "token_embd.weight" => Self::Embedding,
            "per_layer_token_embd.weight" => Self::PerLayerEmbedding,
            _ if tensor.is_expert() => Self::Expert,
            _ => Self::Dense,
        }
    }
}

impl Tensor {
    /// Returns whether it holds one matrix of each expert of a layer: what llama.cpp takes for experts when it keeps them off
    /// the GPU (`LLM_FFN_EXPS_REGEX`). Shared experts (`_shexp`), routers and norms are none.
    pub fn is_expert(&self) -> bool {
        let Some((_, of_layer)) = self.name.split_once(".ffn_") else {
            return false;
        };
        ["up_", "down_", "gate_", "gate_up_"].iter().any(|matrix| {
            let kind = of_layer.strip_prefix(matrix);
            kind.is_some_and(|kind| kind.starts_with("exps") || kind.starts_with("chexps"))
        })
    }
}

/// By layer, the bytes that may be read while the model is used: its experts, or `blk.N.ffn_up.weight` and its like.
fn paged_layers(header: &Header, has_experts: bool) -> BTreeMap<&str, u64> {
    let mut layers = BTreeMap::new();
    for tensor in &header.tensors {
        let Some((layer, of_layer)) = tensor.name.split_once(".ffn_") else {
            continue;
        };
        let is_read = if has_experts {
            tensor.is_expert()
        } else {
            ["up.weight", "down.weight", "gate.weight"].contains(&of_layer)
        };
        if is_read {
            let bytes: &mut u64 = layers.entry(layer).or_default();
            *bytes = bytes.saturating_add(tensor.bytes);
        }
    }
    layers
}

/// As the worker runs it: a model that names a pooling, or whose tokens see later ones, gives vectors, or scores if llama.cpp's
/// `LLAMA_POOLING_TYPE_RANK` is named.
fn model_kind(keys: &HeaderKeys, header: &Header, parts: u16) -> Result<ModelKind, Fault> {
    const NONE: u32 = 0;
    const RANK: u32 = 4;
    let architecture = keys.architecture;
    let encodes = architecture.contains("bert") || architecture.ends_with("-embedding");
    let causal = keys.own("attention.causal") != Some(&HeaderValue::Bool(false));
    Ok(match keys.number("pooling_type")? {
        Some(RANK) => {
            // Without one, llama.cpp would take a part of an embedding for the score.
            let classifies = |tensor: &Tensor| tensor.name.starts_with("cls.");
            if parts == 1 && !header.tensors.iter().any(classifies) {
                return invalid("it is a reranking model without a classifier");
            }
            ModelKind::Reranking
        }
        None | Some(NONE) if !encodes && causal => ModelKind::Chat,
        _ => ModelKind::Embedding,
    })
}

/// llama.cpp uses the input embeddings where a model has no output layer. Encoders have neither.
fn tied_output(keys: &HeaderKeys, header: &Header) -> bool {
    let encoder = keys.own("attention.causal") == Some(&HeaderValue::Bool(false));
    let has = |name| header.tensors.iter().any(|tensor| tensor.name == name);
    !encoder && has("token_embd.weight") && !has("output.weight")
}

/// Refuses GGUF files that are no whole model.
fn check_loadable(keys: &HeaderKeys) -> Result<(), Fault> {
    if keys.architecture == "clip" {
        return unsupported(
            "it is a media projector",
            "choose the model's own file, without \"mmproj\"",
        );
    }
    match keys.text("general.type") {
        None | Some("model") => Ok(()),
        Some(other) => unsupported(
            format!("it is a part of a model (\"{other}\")"),
            "choose the model's own file",
        ),
    }
}

fn vocabulary_size(keys: &HeaderKeys) -> Result<u32, Fault> {
    match keys.get(vocabulary::TOKENS) {
        Some(HeaderValue::Array(list)) => u32::try_from(list.length)
            .or_else(|_| invalid(format!("it claims a vocabulary of {} tokens", list.length))),
        _ => Ok(0),
    }
}
