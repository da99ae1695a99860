//! Projectors that hear, of weights that mean nothing, and sounds for them.

use crate::support::weights::Gguf;
use std::{f32::consts::TAU, fs, path::Path};

const WIDTH: u32 = 32;
const INNER: u32 = 64;
const BANDS: u32 = 80;
/// Whisper's: 30 seconds of 100 frames a second, two of which become one.
const POSITIONS: u32 = 1500;
/// So many of them become one row.
const STACK: u32 = 16;

/// Writes one of Ultravox's kind, Whisper's encoder with a small network behind it, for models of that width: any
/// machine writes the same. A sound of up to 30 seconds is 94 rows.
pub(crate) fn write(model: u32, path: &Path) {
    let mut file = Gguf::default();
    file.text("general.architecture", "clip");
    file.text("clip.projector_type", "ultravox");
    file.flag("clip.has_audio_encoder");
    file.flag("clip.use_gelu");
    for (key, value) in [
        ("num_mel_bins", BANDS),
        ("embedding_length", WIDTH),
        ("feed_forward_length", INNER),
        ("block_count", 1),
        ("attention.head_count", 2),
        ("projection_dim", model),
        ("projector.stack_factor", STACK),
    ] {
        file.number(&format!("clip.audio.{key}"), value);
    }
    let epsilon = 1e-5_f32.to_le_bytes();
    file.pair("clip.audio.attention.layer_norm_epsilon", 6, &epsilon);
    file.weights("a.conv1d.1.weight", &[3, BANDS, WIDTH], 0.3);
    file.weights("a.conv1d.1.bias", &[1, WIDTH], 0.1);
    file.weights("a.conv1d.2.weight", &[3, WIDTH, WIDTH], 0.3);
    file.weights("a.conv1d.2.bias", &[1, WIDTH], 0.1);
    file.weights("a.position_embd.weight", &[WIDTH, POSITIONS], 0.5);
    for name in ["attn_q", "attn_k", "attn_v", "attn_out"] {
        file.weights(&format!("a.blk.0.{name}.weight"), &[WIDTH, WIDTH], 0.3);
        if name != "attn_k" {
            file.weights(&format!("a.blk.0.{name}.bias"), &[WIDTH], 0.1);
        }
    }
    for name in ["ln1", "ln2"] {
        file.weights_at(&format!("a.blk.0.{name}.weight"), &[WIDTH], 1.0, 0.3);
        file.weights(&format!("a.blk.0.{name}.bias"), &[WIDTH], 0.1);
    }
    for (name, shape) in [("ffn_up", [WIDTH, INNER]), ("ffn_down", [INNER, WIDTH])] {
        file.weights(&format!("a.blk.0.{name}.weight"), &shape, 0.3);
    }
    file.weights_at("mm.a.norm_pre.weight", &[WIDTH * STACK], 1.0, 0.3);
    file.weights("mm.a.mlp.1.weight", &[WIDTH * STACK, 2 * INNER], 0.1);
    file.weights_at("mm.a.norm_mid.weight", &[INNER], 1.0, 0.3);
    file.weights("mm.a.mlp.2.weight", &[INNER, model], 0.4);
    fs::write(path, file.bytes()).unwrap();
}

/// One block of Gemma 4's kind, as large as the smaller ones have it, for models of that width: each of its 12 computes with as
/// much memory.
pub(crate) fn write_gemma(model: u32, path: &Path) {
    const WIDTH: u32 = 1024;
    const INNER: u32 = 4 * WIDTH;
    const OUT: u32 = 1536;
    let mut file = Gguf::default();
    file.text("general.architecture", "clip");
    file.text("clip.projector_type", "gemma4a");
    file.flag("clip.has_audio_encoder");
    for (key, value) in [
        ("num_mel_bins", 128),
        ("embedding_length", WIDTH),
        ("feed_forward_length", INNER),
        ("block_count", 1),
        ("attention.head_count", 8),
        ("projection_dim", model),
    ] {
        file.number(&format!("clip.audio.{key}"), value);
    }
    let epsilon = 1e-6_f32.to_le_bytes();
    file.pair("clip.audio.attention.layer_norm_epsilon", 6, &epsilon);
    let block = |name: &str| format!("a.blk.0.{name}.weight");
    for (name, shape) in [
        ("a.conv1d.0.weight".to_owned(), &[3, 3, 1, 128][..]),
        ("a.conv1d.1.weight".to_owned(), &[3, 3, 128, 32]),
        // A quarter of the frequencies of each channel.
        ("a.input_projection.weight".to_owned(), &[32 * 32, WIDTH]),
        (block("attn_q"), &[WIDTH, WIDTH]),
        (block("attn_k"), &[WIDTH, WIDTH]),
        (block("attn_v"), &[WIDTH, WIDTH]),
        (block("attn_k_rel"), &[WIDTH, WIDTH]),
        (block("attn_out"), &[WIDTH, WIDTH]),
        (block("ffn_up"), &[WIDTH, INNER]),
        (block("ffn_down"), &[INNER, WIDTH]),
        (block("ffn_up_1"), &[WIDTH, INNER]),
        (block("ffn_down_1"), &[INNER, WIDTH]),
        (block("conv_pw1"), &[WIDTH, 2 * WIDTH]),
        (block("conv_dw"), &[5, WIDTH]),
        (block("conv_pw2"), &[WIDTH, WIDTH]),
        ("a.pre_encode.out.weight".to_owned(), &[WIDTH, OUT]),
        ("mm.a.input_projection.weight".to_owned(), &[OUT, model]),
    ] {
        file.weights(&name, shape, 0.1);
    }
    for (name, width) in [
        ("a.conv1d.0.norm.weight", 128),
        ("a.conv1d.1.norm.weight", 32),
    ] {
        file.weights_at(name, &[width], 1.0, 0.3);
    }
    for name in [
        "attn_pre_norm",
        "attn_post_norm",
        "ffn_norm",
        "ffn_norm_1",
        "ffn_post_norm",
        "ffn_post_norm_1",
        "conv_norm",
        "norm_conv",
        "ln2",
    ] {
        file.weights_at(&block(name), &[WIDTH], 1.0, 0.3);
    }
    fs::write(path, file.bytes()).unwrap();
}

/// Sixteen seconds that rise from one note to another, as a WAV file; each `of` is another.
pub(crate) fn rising(of: u8) -> Vec<u8> {
    rising_for(of, 16)
}

/// As [`rising`], of so many seconds.
pub(crate) fn rising_for(of: u8, seconds: u32) -> Vec<u8> {
    const RATE: u32 = 4000;
    let mut phase = 0.0_f32;
    let samples: Vec<u8> = (0..RATE * seconds)
        .flat_map(|at| {
            #[expect(clippy::cast_precision_loss, reason = "some 100,000 at most")]
            let at = at as f32;
            let tone = 100.0 * f32::from(of).powi(2) + at / 40.0;
            phase = (phase + tone / 4000.0).fract();
            #[expect(clippy::cast_possible_truncation, reason = "from -12,000 to 12,000")]
            let sample = ((phase * TAU).sin() * 12_000.0) as i16;
            sample.to_le_bytes()
        })
        .collect();
    let length = u32::try_from(samples.len()).unwrap();
    let mut file = b"RIFF".to_vec();
    file.extend((36 + length).to_le_bytes());
    file.extend(b"WAVEfmt ");
    file.extend(16_u32.to_le_bytes());
    // Whole numbers, one channel.
    file.extend([1_u16, 1].map(u16::to_le_bytes).concat());
    file.extend(RATE.to_le_bytes());
    file.extend((2 * RATE).to_le_bytes());
    file.extend([2_u16, 16].map(u16::to_le_bytes).concat());
    file.extend(b"data");
    file.extend(length.to_le_bytes());
    file.extend(samples);
    file
}
