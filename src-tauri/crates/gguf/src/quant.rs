//! The name that people know a file's quantisation by.

use crate::{
    header::{Header, HeaderValue},
    keys::HeaderKeys,
};
use std::collections::BTreeMap;

/// `general.file_type` by name (llama.h, `enum llama_ftype`); the type of most bytes where the file does not say.
pub(crate) fn quant_name(keys: &HeaderKeys, header: &Header) -> &'static str {
    let declared = match keys.get("general.file_type") {
        Some(HeaderValue::Integer(number)) => file_type(*number),
        _ => None,
    };
    declared.unwrap_or_else(|| dominant_type(header))
}

fn file_type(number: i128) -> Option<&'static str> {
    Some(match number {
        0 => "F32",
        1 => "F16",
        2 => "Q4_0",
        3 => "Q4_1",
        7 => "Q8_0",
        8 => "Q5_0",
        9 => "Q5_1",
        10 => "Q2_K",
        11 => "Q3_K_S",
        12 => "Q3_K_M",
        13 => "Q3_K_L",
        14 => "Q4_K_S",
        15 => "Q4_K_M",
        16 => "Q5_K_S",
        17 => "Q5_K_M",
        18 => "Q6_K",
        19 => "IQ2_XXS",
        20 => "IQ2_XS",
        21 => "Q2_K_S",
        22 => "IQ3_XS",
        23 => "IQ3_XXS",
        24 => "IQ1_S",
        25 => "IQ4_NL",
        26 => "IQ3_S",
        27 => "IQ3_M",
        28 => "IQ2_S",
        29 => "IQ2_M",
        30 => "IQ4_XS",
        31 => "IQ1_M",
        32 => "BF16",
        36 => "TQ1_0",
        37 => "TQ2_0",
        38 => "MXFP4",
        39 => "NVFP4",
        _ => return None,
    })
}

fn dominant_type(header: &Header) -> &'static str {
    let mut bytes = BTreeMap::new();
    for tensor in &header.tensors {
        let (_, sum) = bytes
            .entry(tensor.kind.id)
            .or_insert((tensor.kind.name, 0u64));
        *sum = sum.saturating_add(tensor.bytes);
    }
    bytes
        .into_values()
        .max_by_key(|&(_, bytes)| bytes)
        .map_or("F32", |(name, _)| name)
}
