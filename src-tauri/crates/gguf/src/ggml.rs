//! The tensor types of ggml: name, elements per block, bytes per block.
//!
//! From `ggml.h` (`enum ggml_type`), `ggml.c` (`type_traits`) and the block structs of `ggml-common.h`.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TensorType {
    pub(crate) id: u32,
    pub(crate) name: &'static str,
    pub(crate) block_elements: u64,
    pub(crate) block_bytes: u64,
    /// Whether ggml multiplies matrices of it with activations.
    pub(crate) of_weights: bool,
}

/// The type of this number; `None` for removed types and those newer than the engine.
pub(crate) fn tensor_type(id: u32) -> Option<TensorType> {
    let (name, block_elements, block_bytes) = match id {
        0 => ("F32", 1, 4),
        1 => ("F16", 1, 2),
        2 => ("Q4_0", 32, 18),
        3 => ("Q4_1", 32, 20),
        6 => ("Q5_0", 32, 22),
        7 => ("Q5_1", 32, 24),
        8 => ("Q8_0", 32, 34),
        9 => ("Q8_1", 32, 36),
        10 => ("Q2_K", 256, 84),
        11 => ("Q3_K", 256, 110),
        12 => ("Q4_K", 256, 144),
        13 => ("Q5_K", 256, 176),
        14 => ("Q6_K", 256, 210),
        15 => ("Q8_K", 256, 292),
        16 => ("IQ2_XXS", 256, 66),
        17 => ("IQ2_XS", 256, 74),
        18 => ("IQ3_XXS", 256, 98),
        19 => ("IQ1_S", 256, 50),
        20 => ("IQ4_NL", 32, 18),
        21 => ("IQ3_S", 256, 110),
        22 => ("IQ2_S", 256, 82),
        23 => ("IQ4_XS", 256, 136),
        24 => ("I8", 1, 1),
        25 => ("I16", 1, 2),
        26 => ("I32", 1, 4),
        27 => ("I64", 1, 8),
        28 => ("F64", 1, 8),
        29 => ("IQ1_M", 256, 56),
        30 => ("BF16", 1, 2),
        34 => ("TQ1_0", 256, 54),
        35 => ("TQ2_0", 256, 66),
        39 => ("MXFP4", 32, 17),
        40 => ("NVFP4", 64, 36),
        41 => ("Q1_0", 128, 18),
        42 => ("Q2_0", 64, 18),
        _ => return None,
    };
    Some(TensorType {
        id,
        name,
        block_elements,
        block_bytes,
        // Integers, doubles, and what activations alone are quantised to.
        of_weights: !matches!(id, 9 | 15 | 24..=28),
    })
}

/// Why [`tensor_type`] knows no such type.
pub(crate) fn unknown_type(id: u32) -> String {
    let removed = match id {
        4 | 5 => "Q4_2 or Q4_3, removed from GGUF",
        31..=33 => "a repacked Q4_0, removed from GGUF",
        36..=38 => "a repacked IQ4_NL, removed from GGUF",
        _ => "not known to this engine",
    };
    format!("tensor type {id} ({removed})")
}
