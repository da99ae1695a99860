//! Writes the fuzzer's seeds: `gguf-seeds FOLDER [MODEL…]` fills `FOLDER/header` and `FOLDER/parts` with headers of many
//! architectures, and with those of the models, shortened.
#![expect(
    clippy::unwrap_used,
    reason = "it ends at what it cannot read or write"
)]

#[path = "../../../../src-tauri/crates/gguf/tests/reading/writer.rs"]
#[expect(dead_code, reason = "the reader's tests use the rest")]
mod writer;

use std::{
    env,
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};
use tierbar_fuzz::layout::Layout;
use writer::{F32, Gguf};

/// The architectures whose accounts differ most.
const ARCHITECTURES: [&str; 28] = [
    "llama",
    "qwen3moe",
    "qwen35",
    "qwen3next",
    "gemma2",
    "gemma3",
    "gemma3n",
    "gemma4",
    "gpt-oss",
    "mamba2",
    "rwkv7",
    "falcon-h1",
    "nemotron_h",
    "jamba",
    "lfm2",
    "kimi-linear",
    "granitehybrid",
    "minimax-01",
    "plamo2",
    "cohere2",
    "exaone4",
    "llama4",
    "smallthinker",
    "step35",
    "deepseek2",
    "bert",
    "hunyuan-moe",
    "clip",
];
/// The tokens of a model to keep.
const KEPT: u64 = 64;
const READ: u64 = 16 << 20;

fn main() {
    let mut arguments = env::args_os().skip(1).map(PathBuf::from);
    let folder = arguments.next().unwrap();
    let (headers, parts) = (folder.join("header"), folder.join("parts"));
    for folder in [&headers, &parts] {
        fs::create_dir_all(folder).unwrap();
    }
    for architecture in ARCHITECTURES {
        fs::write(
            headers.join(architecture),
            everything(architecture).header(),
        )
        .unwrap();
    }
    let second = Gguf::empty()
        .part(1, 2, 2)
        .tensor("blk.0.attn_q.weight", &[64, 64], F32, 64 * 64 * 4)
        .header();
    for architecture in ["llama", "qwen3moe"] {
        let first = Gguf::model(architecture, 1).part(0, 2, 2).header();
        let at = u16::try_from(first.len()).unwrap().to_le_bytes();
        fs::write(
            parts.join(architecture),
            [&at[..], &first, &second].concat(),
        )
        .unwrap();
    }
    for model in arguments {
        fs::write(headers.join(model.file_name().unwrap()), shortened(&model)).unwrap();
    }
}

fn shortened(model: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    File::open(model)
        .unwrap()
        .take(READ)
        .read_to_end(&mut bytes)
        .unwrap();
    let mut layout = Layout::read(&bytes).unwrap();
    layout.rest.truncate(32);
    layout.shortened(KEPT).write()
}

/// A model with all keys that an account may read.
fn everything(architecture: &str) -> Gguf {
    let key = |name: &str| format!("{architecture}.{name}");
    let mut file = Gguf::with_vocabulary(architecture, 4, "gpt2", &["<s>", "a", "b", "<0x0A>"])
        .text("general.name", "Fuzzed")
        .number("general.file_type", 15)
        .text(
            "tokenizer.chat_template",
            "{% if tools %}{{ 'a' }}{% endif %}{# b #}",
        )
        .array(
            "tokenizer.ggml.token_type",
            5,
            4,
            &[1, 0, 0, 0, 1, 0, 0, 0, 6, 0, 0, 0, 6, 0, 0, 0],
        )
        .texts("tokenizer.ggml.merges", &["a b", "b a"])
        .number("tokenizer.ggml.bos_token_id", 1)
        .numbers(&key("attention.head_count"), &[4; 4])
        .numbers(&key("attention.head_count_kv"), &[2, 0, 2, 0])
        .bools(
            &key("attention.sliding_window_pattern"),
            &[true, true, false, true],
        )
        .numbers(&key("expert_used_count"), &[2; 4])
        .text(&key("rope.scaling.type"), "yarn")
        .pair(
            &key("attention.layer_norm_rms_epsilon"),
            6,
            &1e-5_f32.to_le_bytes(),
        )
        .pair(&key("has_vision_encoder"), 7, &[1])
        .tensor(
            "blk.0.ffn_up_exps.weight",
            &[64, 64, 8],
            F32,
            64 * 64 * 8 * 4,
        )
        .tensor("per_layer_token_embd.weight", &[64, 4], F32, 64 * 4 * 4)
        .tensor("output_norm.weight", &[64], F32, 256);
    for (name, number) in [
        ("expert_count", 8),
        ("expert_group_count", 4),
        ("expert_group_used_count", 2),
        ("attention.sliding_window", 512),
        ("attention.key_length", 16),
        ("attention.value_length", 16),
        ("attention.key_length_swa", 8),
        ("attention.shared_kv_layers", 1),
        ("attention.indexer.key_length", 8),
        ("nextn_predict_layers", 1),
        ("full_attention_interval", 4),
        ("ssm.conv_kernel", 4),
        ("ssm.inner_size", 128),
        ("ssm.state_size", 16),
        ("ssm.group_count", 2),
        ("wkv.head_size", 64),
        ("shortconv.l_cache", 3),
        ("kda.head_dim", 16),
        ("vision.projection_dim", 64),
    ] {
        // Only one kind of state, since they would hide each other.
        let of_state = ["wkv.", "shortconv.", "kda."]
            .iter()
            .any(|state| name.starts_with(state));
        if !of_state || ["rwkv7", "lfm2", "kimi-linear"].contains(&architecture) {
            file = file.number(&key(name), number);
        }
    }
    file
}
