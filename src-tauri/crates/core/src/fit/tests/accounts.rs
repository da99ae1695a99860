//! Accounts of real models, from published facts. The classes of the larger ones stand on file sizes: experts have what
//! the others leave, which are taken for five and a half bits each.

use crate::{ModelAccount, fit::Offer, model::KvAccount, sampling::Sampling};

fn blank() -> ModelAccount {
    ModelAccount {
        architecture: String::new(),
        kind: crate::ModelKind::Chat,
        name: None,
        quant: String::new(),
        file_bytes: 0,
        parts: 1,
        dense_bytes: 0,
        embedding_bytes: 0,
        per_layer_embedding_bytes: 0,
        expert_bytes: 0,
        feed_forward_bytes: 0,
        largest_layer_bytes: 0,
        parameters: 0,
        tied_output: false,
        layers: 0,
        heads: 0,
        kv_heads: 0,
        experts: 0,
        experts_used: 0,
        embedding: 0,
        vocabulary: 0,
        context_train: 0,
        kv: KvAccount {
            full_elements_per_token: 0,
            sliding_elements_per_cell: 0,
            window: 0,
            state_bytes: 0,
        },
        chat_template: true,
        thinking: false,
        tools: false,
        sampling: Sampling::default(),
    }
}

pub(crate) fn smollm2_135m() -> ModelAccount {
    ModelAccount {
        architecture: "llama".to_owned(),
        kind: crate::ModelKind::Chat,
        quant: "Q4_1".to_owned(),
        file_bytes: 98_300_000,
        dense_bytes: 66_000_000,
        embedding_bytes: 30_081_024,
        parameters: 134_515_008,
        tied_output: true,
        layers: 30,
        heads: 9,
        kv_heads: 3,
        embedding: 576,
        vocabulary: 49_152,
        context_train: 8192,
        kv: KvAccount {
            full_elements_per_token: 11_520,
            ..blank().kv
        },
        ..blank()
    }
}

pub(crate) fn gemma3_270m() -> ModelAccount {
    ModelAccount {
        architecture: "gemma3".to_owned(),
        kind: crate::ModelKind::Chat,
        quant: "Q4_K_M".to_owned(),
        file_bytes: 253_000_000,
        dense_bytes: 70_000_000,
        embedding_bytes: 178_257_920,
        parameters: 268_098_176,
        tied_output: true,
        layers: 18,
        heads: 4,
        kv_heads: 1,
        embedding: 640,
        vocabulary: 262_144,
        context_train: 32_768,
        kv: KvAccount {
            full_elements_per_token: 3 * 512,
            sliding_elements_per_cell: 15 * 512,
            window: 512,
            state_bytes: 0,
        },
        ..blank()
    }
}

pub(crate) fn qwen35_35b(file_bytes: u64) -> ModelAccount {
    let of_elements = |count: u64| count / 16 * 11;
    let embedding_bytes = of_elements(248_320 * 2048);
    let dense_bytes = of_elements(34_660_610_688 - 32_212_254_720 - 248_320 * 2048);
    ModelAccount {
        architecture: "qwen35moe".to_owned(),
        kind: crate::ModelKind::Chat,
        file_bytes,
        dense_bytes,
        embedding_bytes,
        expert_bytes: file_bytes - dense_bytes - embedding_bytes,
        parameters: 34_660_610_688,
        layers: 40,
        heads: 16,
        kv_heads: 2,
        experts: 256,
        experts_used: 8,
        embedding: 2048,
        vocabulary: 248_320,
        context_train: 262_144,
        kv: KvAccount {
            full_elements_per_token: 10_240,
            state_bytes: 65_863_680,
            ..blank().kv
        },
        ..blank()
    }
}

pub(crate) fn offer(quant: &str, size_bytes: u64) -> Offer {
    Offer {
        quant: quant.to_owned(),
        reference: format!("unsloth/Qwen3.5-35B-A3B-GGUF:{quant}"),
        size_bytes,
    }
}

pub(crate) fn qwen35_35b_offers() -> Vec<Offer> {
    [
        ("UD-IQ2_XXS", 10_656_955_008),
        ("UD-IQ2_M", 11_391_613_568),
        ("UD-IQ3_XXS", 13_080_066_688),
        ("UD-IQ4_XS", 17_486_174_848),
        ("Q4_K_M", 22_016_023_168),
        ("Q8_0", 36_903_139_968),
    ]
    .map(|(quant, size)| offer(quant, size))
    .to_vec()
}

pub(crate) fn qwen35_9b(file_bytes: u64) -> ModelAccount {
    // Of 8.95 billion parameters, those of the input embeddings.
    let embedding_bytes = file_bytes / 1000 * 113;
    ModelAccount {
        architecture: "qwen35".to_owned(),
        kind: crate::ModelKind::Chat,
        file_bytes,
        dense_bytes: file_bytes - embedding_bytes,
        embedding_bytes,
        // 32 layers of three matrices of 4096 by 12,288.
        feed_forward_bytes: file_bytes / 1000 * 540,
        parameters: 8_950_000_000,
        layers: 32,
        heads: 16,
        kv_heads: 4,
        embedding: 4096,
        vocabulary: 248_320,
        context_train: 262_144,
        kv: KvAccount {
            full_elements_per_token: 16_384,
            state_bytes: 52_690_944,
            ..blank().kv
        },
        ..blank()
    }
}
