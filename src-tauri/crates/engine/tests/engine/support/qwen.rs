//! Tiny models of weights that mean nothing, which number an image's positions in rows and columns (M-RoPE).

use crate::support::weights::{Gguf, string};
use std::{fs, path::Path};

const WIDTH: u32 = 64;
const INNER: u32 = 128;
const HEADS: u32 = 4;
const HEAD: u32 = WIDTH / HEADS;
const TEMPLATE: &str = "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n\
                        {% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// Attention alone, as Qwen2-VL has it.
    Attention,
    /// As Qwen3.5: every second layer is recurrent.
    Hybrid,
}

impl Family {
    fn name(self) -> &'static str {
        match self {
            Self::Attention => "qwen2vl",
            Self::Hybrid => "qwen35",
        }
    }

    /// As it is recorded.
    pub(crate) fn file(self) -> &'static str {
        match self {
            Self::Attention => "attention.gguf",
            Self::Hybrid => "hybrid.gguf",
        }
    }
}

/// Writes one that any machine writes the same.
pub(crate) fn write(family: Family, path: &Path) {
    let mut file = Gguf::default();
    file.text("general.architecture", family.name());
    let own = |key: &str| format!("{}.{key}", family.name());
    for (key, value) in [
        ("context_length", 8192),
        ("embedding_length", WIDTH),
        ("feed_forward_length", INNER),
        ("block_count", 2),
        ("attention.head_count", HEADS),
        ("attention.head_count_kv", HEADS),
    ] {
        file.number(&own(key), value);
    }
    for (key, value) in [
        ("attention.layer_norm_rms_epsilon", 1e-6_f32),
        ("rope.freq_base", 1e4),
    ] {
        file.pair(&own(key), 6, &value.to_le_bytes());
    }
    let sections = [2_i32, 3, 3, 0].map(|section| section.to_le_bytes().to_vec());
    file.list(&own("rope.dimension_sections"), 5, &sections);
    let tokens = vocabulary(&mut file);
    file.weights("token_embd.weight", &[WIDTH, tokens], 1.0);
    file.weights_at("output_norm.weight", &[WIDTH], 1.0, 0.3);
    // Large: what is likeliest is so by far.
    file.weights("output.weight", &[WIDTH, tokens], 2.0);
    if family == Family::Hybrid {
        for (key, value) in [
            ("attention.key_length", HEAD),
            ("attention.value_length", HEAD),
            ("full_attention_interval", 2),
            ("ssm.conv_kernel", 4),
            ("ssm.inner_size", WIDTH),
            ("ssm.state_size", HEAD),
            ("ssm.time_step_rank", HEADS),
            ("ssm.group_count", HEADS),
        ] {
            file.number(&own(key), value);
        }
        recurrent(&mut file, 0);
        attention(&mut file, 1, 2);
        for layer in 0..2 {
            let name = format!("blk.{layer}.post_attention_norm.weight");
            file.weights_at(&name, &[WIDTH], 1.0, 0.3);
        }
        for name in ["attn_q_norm", "attn_k_norm"] {
            file.weights_at(&format!("blk.1.{name}.weight"), &[HEAD], 2.0, 0.5);
        }
    } else {
        for layer in 0..2 {
            attention(&mut file, layer, 1);
            file.weights_at(&format!("blk.{layer}.ffn_norm.weight"), &[WIDTH], 1.0, 0.3);
        }
    }
    for layer in 0..2 {
        file.weights_at(&format!("blk.{layer}.attn_norm.weight"), &[WIDTH], 1.0, 0.3);
        for (name, shape) in [
            ("ffn_gate", [WIDTH, INNER]),
            ("ffn_up", [WIDTH, INNER]),
            ("ffn_down", [INNER, WIDTH]),
        ] {
            file.weights(&format!("blk.{layer}.{name}.weight"), &shape, 0.15);
        }
    }
    fs::write(path, file.bytes()).unwrap();
}

/// Queries are `query` times as wide as usual: Qwen3.5's bring a gate.
fn attention(file: &mut Gguf, layer: u32, query: u32) {
    for (name, shape, size) in [
        ("attn_q", [WIDTH, query * WIDTH], 0.5),
        ("attn_k", [WIDTH, WIDTH], 0.5),
        ("attn_v", [WIDTH, WIDTH], 0.3),
        ("attn_output", [WIDTH, WIDTH], 0.3),
    ] {
        file.weights(&format!("blk.{layer}.{name}.weight"), &shape, size);
    }
}

fn recurrent(file: &mut Gguf, layer: u32) {
    let name = |name: &str| format!("blk.{layer}.{name}");
    file.weights(&name("attn_qkv.weight"), &[WIDTH, 3 * WIDTH], 0.3);
    file.weights(&name("attn_gate.weight"), &[WIDTH, WIDTH], 0.3);
    file.weights(&name("ssm_conv1d.weight"), &[4, 3 * WIDTH], 0.5);
    file.weights(&name("ssm_dt.bias"), &[HEADS], 0.5);
    // It decays, and over more than an image.
    file.weights_at(&name("ssm_a"), &[HEADS], -0.002, 0.001);
    file.weights(&name("ssm_beta.weight"), &[WIDTH, HEADS], 0.3);
    file.weights(&name("ssm_alpha.weight"), &[WIDTH, HEADS], 0.3);
    file.weights_at(&name("ssm_norm.weight"), &[HEAD], 1.0, 0.3);
    file.weights(&name("ssm_out.weight"), &[WIDTH, WIDTH], 0.3);
}

/// Each printable character of ASCII is a token. Answers how many there are.
fn vocabulary(file: &mut Gguf) -> u32 {
    let control = [
        "<|endoftext|>",
        "<|im_start|>",
        "<|im_end|>",
        "<|vision_start|>",
        "<|vision_end|>",
        "<|image_pad|>",
    ];
    // As byte-level BPE writes the space and the line feed.
    let mut tokens = vec!["\u{120}".to_owned(), "\u{10a}".to_owned()];
    tokens.extend((b'!'..=b'~').map(|byte| char::from(byte).to_string()));
    tokens.push("\u{120}t".to_owned());
    let plain = tokens.len();
    tokens.extend(control.map(str::to_owned));
    let kinds = (0..tokens.len()).map(|token| if token < plain { 1_i32 } else { 3 });
    let kinds: Vec<_> = kinds.map(|kind| kind.to_le_bytes().to_vec()).collect();
    let count = u32::try_from(tokens.len()).unwrap();
    let tokens: Vec<_> = tokens.iter().map(|token| string(token)).collect();
    file.text("tokenizer.ggml.model", "gpt2");
    file.text("tokenizer.ggml.pre", "qwen2");
    file.list("tokenizer.ggml.tokens", 8, &tokens);
    file.list("tokenizer.ggml.token_type", 5, &kinds);
    file.list("tokenizer.ggml.merges", 8, &[string("\u{120} t")]);
    let first = u32::try_from(plain).unwrap();
    file.number("tokenizer.ggml.padding_token_id", first);
    file.number("tokenizer.ggml.eos_token_id", first + 2);
    file.pair("tokenizer.ggml.add_bos_token", 7, &[0]);
    file.text("tokenizer.chat_template", TEMPLATE);
    count
}
