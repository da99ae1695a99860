//! From a header to a model's account.

use crate::{
    fault::{Fault, invalid},
    header::{Header, MAX_LAYERS, Value},
    keys::Keys,
    kv, quant,
};
use tierbar_core::ModelAccount;

pub(crate) fn of(header: &Header, file_bytes: u64) -> Result<ModelAccount, Fault> {
    let keys = Keys::new(&header.pairs)?;
    loadable(&keys)?;
    if header.tensors.is_empty() {
        return invalid("it has no tensors");
    }
    if let missing @ 1.. = header.end.saturating_sub(file_bytes) {
        return Err(Fault::Truncated {
            missing,
            of: header.end,
        });
    }
    let layers_all = keys.required("block_count")?;
    if !(1..=MAX_LAYERS).contains(&layers_all) {
        return invalid(format!("it claims {layers_all} layers"));
    }
    // Blocks that only predict further tokens ahead.
    let layers = layers_all.saturating_sub(keys.number("nextn_predict_layers")?.unwrap_or(0));
    if layers == 0 {
        return invalid("it has no layers besides those that predict further tokens");
    }
    let sum = |expert| {
        let of_class = header
            .tensors
            .iter()
            .filter(|tensor| tensor.name.contains("_exps") == expert);
        // They lie one behind the other in the file: their sum is no larger than it.
        of_class.map(|tensor| tensor.bytes).sum()
    };
    Ok(ModelAccount {
        architecture: keys.architecture.to_owned(),
        name: keys
            .text("general.name")
            .filter(|name| !name.trim().is_empty())
            .map(str::to_owned),
        quant: quant::name(&keys, header).to_owned(),
        file_bytes,
        parts: 1,
        embedding_bytes: 0,
        per_layer_embedding_bytes: 0,
        tied_output: false,
        heads: 0,
        kv_heads: 0,
        experts: 0,
        experts_used: 0,
        thinking: false,
        tools: false,
        dense_bytes: sum(false),
        expert_bytes: sum(true),
        parameters: header
            .tensors
            .iter()
            .fold(0, |sum, tensor| sum.saturating_add(tensor.elements)),
        layers,
        embedding: keys.required("embedding_length")?,
        vocabulary: vocabulary(&keys)?,
        context_train: keys.required("context_length")?,
        kv: kv::account(&keys, layers_all, layers)?,
        chat_template: match keys.get("tokenizer.chat_template") {
            Some(Value::Text(template)) => !template.is_empty(),
            Some(Value::LongText) => true,
            _ => false,
        },
    })
}

/// Refuses GGUF files that are no whole model.
fn loadable(keys: &Keys) -> Result<(), Fault> {
    let unsupported = |why: String, hint| Err(Fault::Unsupported(why, hint));
    match keys.text("general.type") {
        None | Some("model") => {}
        Some(other) => {
            return unsupported(
                format!("it is a part of a model (\"{other}\")"),
                "choose the model's own file",
            );
        }
    }
    if keys.architecture == "clip" {
        return unsupported(
            "it is a media projector".to_owned(),
            "choose the model's own file, without \"mmproj\"",
        );
    }
    match keys.get("split.count") {
        Some(Value::Integer(parts @ 2..)) => unsupported(
            format!("it is one of {parts} parts of a model"),
            "join the parts with `llama-gguf-split --merge FIRST_PART MODEL.gguf`, or choose a quant in one file",
        ),
        _ => Ok(()),
    }
}

fn vocabulary(keys: &Keys) -> Result<u32, Fault> {
    match keys.get("tokenizer.ggml.tokens") {
        Some(Value::Array(length, _)) => u32::try_from(*length)
            .or_else(|_| invalid(format!("it claims a vocabulary of {length} tokens"))),
        _ => Ok(keys.number("vocab_size")?.unwrap_or(0)),
    }
}
