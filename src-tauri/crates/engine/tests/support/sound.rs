//! A tiny projector that hears, of weights that mean nothing, and sounds for it.

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

/// Sixteen seconds that rise from one note to another, as a WAV file; each `of` is another.
pub(crate) fn rising(of: u8) -> Vec<u8> {
    const RATE: u32 = 4000;
    let mut phase = 0.0_f32;
    let samples: Vec<u8> = (0_u16..64_000)
        .flat_map(|at| {
            let tone = 100.0 * f32::from(of).powi(2) + f32::from(at) / 40.0;
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
