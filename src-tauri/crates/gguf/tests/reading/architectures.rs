//! KV caches and states by architecture. Shapes: the models' published configurations.

use crate::writer::Gguf;
use tierbar_core::{budget::SLOTS, config::KvCache, model::KvAccount};

/// A model whose keys begin with its architecture's name.
struct Shape {
    architecture: &'static str,
    file: Gguf,
}

impl Shape {
    fn new(architecture: &'static str, layers: u32) -> Self {
        Self {
            architecture,
            file: Gguf::model(architecture, layers),
        }
    }

    fn key(&self, key: &str) -> String {
        format!("{}.{key}", self.architecture)
    }

    fn number(mut self, key: &str, number: u32) -> Self {
        self.file = self.file.clone().number(&self.key(key), number);
        self
    }

    fn numbers(mut self, key: &str, numbers: &[u32]) -> Self {
        self.file = self.file.clone().numbers(&self.key(key), numbers);
        self
    }

    fn bools(mut self, key: &str, bools: impl IntoIterator<Item = bool>) -> Self {
        let bools: Vec<bool> = bools.into_iter().collect();
        self.file = self.file.clone().bools(&self.key(key), &bools);
        self
    }

    fn heads(self, heads: u32, kv_heads: u32, key_length: u32) -> Self {
        self.number("attention.head_count", heads)
            .number("attention.head_count_kv", kv_heads)
            .number("attention.key_length", key_length)
            .number("attention.value_length", key_length)
    }

    /// Lengths of the heads in sliding layers, and the window.
    fn window(self, window: u32, key_length: u32) -> Self {
        self.number("attention.sliding_window", window)
            .number("attention.key_length_swa", key_length)
            .number("attention.value_length_swa", key_length)
    }

    fn kv(&self) -> KvAccount {
        self.file.read().unwrap().kv
    }

    fn error(&self) -> String {
        self.file.read().unwrap_err().message
    }
}

fn full(elements: u64) -> KvAccount {
    KvAccount {
        full_elements_per_token: elements,
        sliding_elements_per_cell: 0,
        window: 0,
        state_bytes: 0,
    }
}

/// With 16-bit floats, and in blocks of 8 and of 4 bits.
fn kv_bytes(elements: u64) -> [u64; 3] {
    [KvCache::F16, KvCache::Q8_0, KvCache::Q4_0].map(|kv| kv.bytes(elements))
}

/// `i % period == period - 1` is full.
fn slides(layers: u32, period: u32) -> impl Iterator<Item = bool> {
    (0..layers).map(move |layer| layer % period != period - 1)
}

#[test]
fn gemma_4_e2b_caches_only_in_layers_that_own_one() {
    let kv = Shape::new("gemma4", 35)
        .heads(8, 1, 512)
        .window(512, 256)
        .bools("attention.sliding_window_pattern", slides(35, 5))
        .number("attention.shared_kv_layers", 20)
        .kv();
    assert_eq!(kv_bytes(kv.full_elements_per_token), [6_144, 3_264, 1_728]);
    assert_eq!(
        kv_bytes(kv.sliding_elements_per_cell),
        [12_288, 6_528, 3_456]
    );
    assert_eq!((kv.window, kv.state_bytes), (512, 0));
    assert_eq!(kv.bytes(4096, KvCache::F16) - 4096 * 6_144, 18 << 20);
}

#[test]
fn gemma_4_e4b_has_two_kv_heads() {
    let kv = Shape::new("gemma4", 42)
        .heads(8, 2, 512)
        .window(512, 256)
        .bools("attention.sliding_window_pattern", slides(42, 6))
        .number("attention.shared_kv_layers", 18)
        .kv();
    assert_eq!(kv_bytes(kv.full_elements_per_token), [16_384, 8_704, 4_608]);
    assert_eq!(
        kv_bytes(kv.sliding_elements_per_cell),
        [40_960, 21_760, 11_520]
    );
}

#[test]
fn gemma_4_26b_has_kv_heads_by_layer() {
    let heads: Vec<u32> = slides(30, 6)
        .map(|slides| if slides { 8 } else { 2 })
        .collect();
    let kv = Shape::new("gemma4", 30)
        .number("attention.head_count", 16)
        .numbers("attention.head_count_kv", &heads)
        .number("attention.key_length", 512)
        .number("attention.value_length", 512)
        .window(1024, 256)
        .bools("attention.sliding_window_pattern", slides(30, 6))
        .number("attention.shared_kv_layers", 0)
        .kv();
    assert_eq!(
        kv_bytes(kv.full_elements_per_token),
        [20_480, 10_880, 5_760]
    );
    assert_eq!(
        kv_bytes(kv.sliding_elements_per_cell),
        [204_800, 108_800, 57_600]
    );
    // Two slots' windows of 1024, and 512 cells.
    assert_eq!(kv.bytes(8192, KvCache::F16) - 8192 * 20_480, 500 << 20);
}

fn qwen35(architecture: &'static str, layers: u32, kv_heads: u32) -> Shape {
    Shape::new(architecture, layers)
        .heads(16, kv_heads, 256)
        .number("ssm.conv_kernel", 4)
        .number("ssm.state_size", 128)
        .number("ssm.group_count", 16)
        .number("ssm.time_step_rank", 32)
        .number("ssm.inner_size", 4096)
}

#[test]
fn qwen_3_5_35b_attends_in_every_fourth_layer() {
    let kv = qwen35("qwen35moe", 40, 2)
        .number("full_attention_interval", 4)
        .kv();
    assert_eq!(
        kv_bytes(kv.full_elements_per_token),
        [20_480, 10_880, 5_760]
    );
    assert_eq!(kv.state_bytes, 65_863_680);
    assert_eq!((kv.sliding_elements_per_cell, kv.window), (0, 0));
}

#[test]
fn prediction_layers_have_no_cache() {
    let plain = qwen35("qwen35moe", 40, 2);
    let ahead = qwen35("qwen35moe", 41, 2).number("nextn_predict_layers", 1);
    assert_eq!(ahead.kv(), plain.kv());
    assert_eq!(ahead.file.read().unwrap().layers, 40);
}

#[test]
fn qwen_3_5_9b_needs_no_interval_in_its_header() {
    let kv = qwen35("qwen35", 32, 4).kv();
    assert_eq!(
        kv_bytes(kv.full_elements_per_token),
        [32_768, 17_408, 9_216]
    );
    assert_eq!(kv.state_bytes, 52_690_944);
}

#[test]
fn a_list_of_recurrent_layers_overrides_the_interval() {
    let kv = qwen35("qwen3next", 4, 2)
        .bools("attention.recurrent_layers", [true, false, false, true])
        .kv();
    assert_eq!(kv.full_elements_per_token, 2 * 2 * 2 * 256);
    assert_eq!(kv.state_bytes, 2 * 4 * (24_576 + 524_288));
}

#[test]
fn qwen_3_30b_keeps_every_token_in_every_layer() {
    let kv = Shape::new("qwen3moe", 48).heads(32, 4, 128).kv();
    assert_eq!(
        kv_bytes(kv.full_elements_per_token),
        [98_304, 52_224, 27_648]
    );
    assert_eq!(
        (kv.sliding_elements_per_cell, kv.window, kv.state_bytes),
        (0, 0, 0)
    );
}

#[test]
fn llama_keeps_every_token_in_every_layer() {
    // SmolLM2 135M: 30 layers of 3 KV heads of 576 / 9.
    let kv = Shape::new("llama", 30)
        .number("attention.head_count", 9)
        .number("attention.head_count_kv", 3)
        .number("attention.key_length", 64)
        .number("attention.value_length", 64)
        .kv();
    assert_eq!(
        kv_bytes(kv.full_elements_per_token),
        [23_040, 12_240, 6_480]
    );
}

#[test]
fn gemma_3_270m_slides_in_all_but_every_sixth_layer() {
    let kv = Shape::new("gemma3", 18)
        .heads(4, 1, 256)
        .number("attention.sliding_window", 512)
        .kv();
    assert_eq!(kv_bytes(kv.full_elements_per_token), [3_072, 1_632, 864]);
    assert_eq!(
        kv_bytes(kv.sliding_elements_per_cell),
        [15_360, 8_160, 4_320]
    );
}

#[test]
fn a_recurrent_state_has_a_fixed_size() {
    let kv = qwen35("qwen35moe", 40, 2).kv();
    for (cache, row) in [
        (KvCache::F16, 20_480),
        (KvCache::Q8_0, 10_880),
        (KvCache::Q4_0, 5_760),
    ] {
        for context in [256, 4096, 32_768] {
            assert_eq!(
                kv.bytes(context, cache),
                row * u64::from(context) + u64::from(SLOTS) * 65_863_680
            );
        }
    }
}

#[test]
fn the_largest_head_count_is_used() {
    let heads = |shape: Shape| {
        let account = shape.file.read().unwrap();
        (account.heads, account.kv_heads)
    };
    let shape = Shape::new("gemma4", 2)
        .number("attention.head_count", 16)
        .numbers("attention.head_count_kv", &[8, 2])
        .window(1024, 256)
        .bools("attention.sliding_window_pattern", [true, false]);
    assert_eq!(heads(shape), (16, 8));
    let shape = Shape::new("lfm2", 3)
        .numbers("attention.head_count", &[4, 8, 4])
        .numbers("attention.head_count_kv", &[0, 2, 0]);
    assert_eq!(heads(shape), (8, 2));
    assert_eq!(
        heads(Shape::new("llama", 3).number("attention.head_count", 4)),
        (4, 4)
    );
    // A block that predicts ahead is none of the engine's layers.
    let shape = Shape::new("glm4moe", 2)
        .number("nextn_predict_layers", 1)
        .number("expert_count", 8)
        .number("expert_used_count", 2)
        .numbers("attention.head_count", &[4, 9]);
    assert_eq!(heads(shape), (4, 4));
    assert_eq!(heads(Shape::new("rwkv7", 1)), (0, 0));
}

#[test]
fn head_sizes_and_kv_heads_default_to_those_of_the_queries() {
    // The embedding's 64 over 4 heads.
    assert_eq!(
        Shape::new("llama", 3)
            .number("attention.head_count", 4)
            .kv(),
        full(3 * 4 * 2 * 16)
    );
}

#[test]
fn gemma_2_alternates_from_a_sliding_layer_on() {
    let kv = Shape::new("gemma2", 5).heads(4, 2, 16).kv();
    let layer = 2 * 2 * 16;
    let expected = KvAccount {
        sliding_elements_per_cell: 3 * layer,
        window: 4096,
        ..full(2 * layer)
    };
    assert_eq!(kv, expected);
}

#[test]
fn gemma_3_without_a_window_is_full_throughout() {
    assert_eq!(Shape::new("gemma3", 6).heads(4, 1, 16).kv(), full(6 * 32));
    assert_eq!(
        Shape::new("gemma3", 6)
            .heads(4, 1, 16)
            .number("attention.sliding_window", 0)
            .kv(),
        full(6 * 32)
    );
}

#[test]
fn gemma_3n_shares_the_caches_of_its_first_20_layers() {
    let kv = Shape::new("gemma3n", 35)
        .heads(8, 2, 256)
        .window(512, 256)
        .kv();
    let layer = 2 * 2 * 256;
    let expected = KvAccount {
        sliding_elements_per_cell: 16 * layer,
        window: 512,
        ..full(4 * layer)
    };
    assert_eq!(kv, expected);
}

#[test]
fn gpt_oss_has_a_window_in_every_other_layer() {
    let kv = Shape::new("gpt-oss", 24)
        .heads(64, 8, 64)
        .number("attention.sliding_window", 128)
        .kv();
    let half = 12 * 8 * 2 * 64;
    assert_eq!(
        kv,
        KvAccount {
            sliding_elements_per_cell: half,
            window: 128,
            ..full(half)
        }
    );
}

#[test]
fn a_header_pattern_overrides_the_architecture() {
    let shape = || {
        Shape::new("gemma3", 6)
            .heads(4, 1, 16)
            .number("attention.sliding_window", 512)
    };
    let kv = shape()
        .bools(
            "attention.sliding_window_pattern",
            [true, false, false, false, false, false],
        )
        .kv();
    assert_eq!(
        kv,
        KvAccount {
            sliding_elements_per_cell: 32,
            window: 512,
            ..full(5 * 32)
        }
    );
    let kv = shape().number("attention.sliding_window_pattern", 2).kv();
    assert_eq!(
        kv,
        KvAccount {
            sliding_elements_per_cell: 3 * 32,
            window: 512,
            ..full(3 * 32)
        }
    );
    // 0: all slide; 1: none does.
    let kv = shape().number("attention.sliding_window_pattern", 0).kv();
    assert_eq!(
        kv,
        KvAccount {
            sliding_elements_per_cell: 6 * 32,
            window: 512,
            ..full(0)
        }
    );
    assert_eq!(
        shape().number("attention.sliding_window_pattern", 1).kv(),
        full(6 * 32)
    );
}

#[test]
fn some_architectures_start_with_a_full_layer() {
    let kv = Shape::new("cohere2moe", 6)
        .heads(4, 1, 16)
        .number("attention.sliding_window", 64)
        .kv();
    assert_eq!(
        kv,
        KvAccount {
            sliding_elements_per_cell: 4 * 32,
            window: 64,
            ..full(2 * 32)
        }
    );
}

#[test]
fn windows_that_llama_cpp_ignores_do_not_count() {
    let kv = Shape::new("phi3", 4)
        .heads(4, 4, 16)
        .number("attention.sliding_window", 2047)
        .kv();
    assert_eq!(kv, full(4 * 4 * 32));
}

#[test]
fn latent_attention_caches_no_values() {
    let kv = Shape::new("deepseek2", 3)
        .number("attention.head_count", 16)
        .number("attention.head_count_kv", 1)
        .number("attention.key_length", 576)
        .number("attention.value_length", 512)
        .number("attention.key_length_mla", 192)
        .number("attention.value_length_mla", 128)
        .kv();
    assert_eq!(kv, full(3 * 576));
}

#[test]
fn sparse_attention_also_caches_its_index() {
    let kv = Shape::new("deepseek32", 3)
        .number("attention.head_count", 16)
        .number("attention.head_count_kv", 1)
        .number("attention.key_length", 576)
        .number("attention.key_length_mla", 192)
        .number("attention.indexer.key_length", 128)
        .kv();
    assert_eq!(kv, full(3 * (576 + 128)));
}

#[test]
fn encoders_cache_nothing() {
    for architecture in ["nomic-bert", "gemma-embedding", "dream"] {
        let kv = Shape::new(architecture, 4).heads(4, 4, 16).kv();
        assert_eq!(kv, full(0), "{architecture}");
    }
}

#[test]
fn layers_without_kv_heads_are_recurrent_in_hybrids() {
    let kv = Shape::new("lfm2", 4)
        .number("attention.head_count", 4)
        .numbers("attention.head_count_kv", &[0, 2, 0, 0])
        .number("shortconv.l_cache", 3)
        .kv();
    assert_eq!(
        kv,
        KvAccount {
            state_bytes: 3 * 4 * 64 * 2,
            ..full(2 * 2 * 16)
        }
    );
}

#[test]
fn models_without_attention_have_only_a_state() {
    let kv = Shape::new("mamba", 2)
        .number("attention.head_count", 0)
        .number("ssm.conv_kernel", 4)
        .number("ssm.inner_size", 128)
        .number("ssm.state_size", 16)
        .kv();
    assert_eq!(
        kv,
        KvAccount {
            state_bytes: 2 * 4 * (3 * 128 + 16 * 128),
            ..full(0)
        }
    );
    let kv = Shape::new("rwkv7", 2)
        .number("attention.head_count", 0)
        .number("wkv.head_size", 64)
        .kv();
    assert_eq!(
        kv,
        KvAccount {
            state_bytes: 2 * 4 * (2 * 64 + 64 * 64),
            ..full(0)
        }
    );
}

#[test]
fn falcon_h1_has_both_in_every_layer() {
    let kv = Shape::new("falcon-h1", 2)
        .heads(4, 1, 16)
        .number("ssm.conv_kernel", 4)
        .number("ssm.inner_size", 32)
        .number("ssm.state_size", 8)
        .number("ssm.group_count", 1)
        .kv();
    assert_eq!(
        kv,
        KvAccount {
            state_bytes: 2 * 4 * (3 * (32 + 16) + 8 * 32),
            ..full(2 * 32)
        }
    );
}

#[test]
fn keys_that_contradict_the_layers_are_named() {
    let error = Shape::new("llama", 3)
        .numbers("attention.head_count_kv", &[1, 2])
        .error();
    assert!(
        error.contains("llama.attention.head_count_kv has 2 values for 3 layers"),
        "{error}"
    );
    let error = Shape::new("gemma4", 3)
        .heads(4, 1, 16)
        .window(512, 16)
        .error();
    assert!(
        error.contains("no gemma4.attention.sliding_window_pattern"),
        "{error}"
    );
    let error = Shape::new("gpt-oss", 3).heads(4, 1, 16).error();
    assert!(
        error.contains("no gpt-oss.attention.sliding_window"),
        "{error}"
    );
    let error = qwen35("qwen35", 4, 2)
        .number("full_attention_interval", 0)
        .error();
    assert!(error.contains("full_attention_interval is 0"), "{error}");
}

#[test]
fn extreme_numbers_do_not_overflow() {
    let kv = Shape::new("llama", 512)
        .heads(u32::MAX, u32::MAX, u32::MAX)
        .kv();
    assert_eq!(kv.full_elements_per_token, u64::MAX);
    let kv = qwen35("qwen35", 4, 2);
    let kv = Shape {
        file: kv.file,
        ..kv
    }
    .number("token_shift_count", u32::MAX)
    .number("wkv.head_size", u32::MAX);
    assert!(kv.kv().state_bytes > 0);
}
