//! Tiny media projectors of weights that mean nothing, and images for them.

#![allow(dead_code, reason = "each test file uses its part")]

use crate::support::weights::Gguf;
use std::{fs, io::Cursor, path::Path};

const PATCH: u32 = 14;
const WIDTH: u32 = 32;
const INNER: u32 = 64;

/// The projector's kind, and how wide the model's embeddings are.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    name: &'static str,
    model: u32,
    /// As wide and as high as it sees.
    image: u32,
    blocks: u32,
    /// So many patches by so many become one row, where they see each other.
    scale: u32,
}

/// For SmolLM2: an image is 64 rows, each of which sees those before it.
pub(crate) const CAUSAL: Kind = Kind {
    name: "janus_pro",
    model: 576,
    image: 112,
    blocks: 1,
    scale: 2,
};
/// For Gemma 3: an image is 16 rows, which see each other.
pub(crate) const WHOLE: Kind = Kind {
    name: "gemma3",
    model: 640,
    image: 112,
    blocks: 1,
    scale: 2,
};
/// It takes seconds for an image.
pub(crate) const SLOW: Kind = Kind {
    image: 784,
    blocks: 40,
    scale: 4,
    ..WHOLE
};
/// For the models of [`crate::qwen`]: an image is a row for each 28 × 28 pixels, in rows and columns.
pub(crate) const GRID: Kind = Kind {
    name: "qwen2vl_merger",
    model: 64,
    image: 112,
    blocks: 1,
    scale: 2,
};

/// Writes one that any machine writes the same.
pub(crate) fn write(kind: Kind, path: &Path) {
    let mut file = Gguf::default();
    file.text("general.architecture", "clip");
    file.text("clip.projector_type", kind.name);
    file.flag("clip.has_vision_encoder");
    file.flag("clip.use_gelu");
    for (key, value) in [
        ("image_size", kind.image),
        ("patch_size", PATCH),
        ("embedding_length", WIDTH),
        ("feed_forward_length", INNER),
        ("block_count", kind.blocks),
        ("attention.head_count", 2),
        ("projection_dim", kind.model),
        ("projector.scale_factor", kind.scale),
    ] {
        file.number(&format!("clip.vision.{key}"), value);
    }
    file.pair(
        "clip.vision.attention.layer_norm_epsilon",
        6,
        &1e-6_f32.to_le_bytes(),
    );
    for key in ["image_mean", "image_std"] {
        let halves = [6_u32.to_le_bytes().to_vec(), 3_u64.to_le_bytes().to_vec()].concat();
        let halves = [halves, 0.5_f32.to_le_bytes().repeat(3)].concat();
        file.pair(&format!("clip.vision.{key}"), 9, &halves);
    }
    file.weights("v.patch_embd.weight", &[PATCH, PATCH, 3, WIDTH], 0.05);
    if kind.name == GRID.name {
        file.weights("v.patch_embd.weight.1", &[PATCH, PATCH, 3, WIDTH], 0.05);
        for name in ["attn_q", "attn_k", "attn_v"] {
            file.weights(&format!("v.blk.0.{name}.bias"), &[WIDTH], 0.1);
        }
    } else {
        let patches = (kind.image / PATCH).pow(2);
        file.weights("v.position_embd.weight", &[WIDTH, patches], 0.5);
    }
    for block in 0..kind.blocks {
        for name in ["attn_q", "attn_k", "attn_v", "attn_out"] {
            file.weights(
                &format!("v.blk.{block}.{name}.weight"),
                &[WIDTH, WIDTH],
                0.3,
            );
        }
        for name in ["ln1", "ln2"] {
            file.weights(&format!("v.blk.{block}.{name}.weight"), &[WIDTH], 1.0);
        }
        file.weights(
            &format!("v.blk.{block}.ffn_up.weight"),
            &[WIDTH, INNER],
            0.3,
        );
        file.weights(
            &format!("v.blk.{block}.ffn_down.weight"),
            &[INNER, WIDTH],
            0.3,
        );
    }
    if kind.name == WHOLE.name {
        file.weights("mm.soft_emb_norm.weight", &[WIDTH], 1.0);
        file.weights("mm.input_projection.weight", &[kind.model, WIDTH], 1.0);
    } else if kind.name == GRID.name {
        file.weights("mm.0.weight", &[4 * WIDTH, INNER], 0.3);
        file.weights("mm.0.bias", &[INNER], 0.1);
        file.weights("mm.2.weight", &[INNER, kind.model], 0.5);
        file.weights("mm.2.bias", &[kind.model], 0.1);
    } else {
        file.weights("mm.0.weight", &[WIDTH, INNER], 0.3);
        file.weights("mm.0.bias", &[INNER], 0.1);
        file.weights("mm.1.weight", &[INNER, kind.model], 0.02);
        file.weights("mm.1.bias", &[kind.model], 0.02);
    }
    fs::write(path, file.bytes()).unwrap();
}

/// A picture of stripes, as a PNG; each `of` is another.
pub(crate) fn stripes(of: u8) -> Vec<u8> {
    striped(of, 112, 112)
}

pub(crate) fn striped(of: u8, width: u32, height: u32) -> Vec<u8> {
    let colour = |x: u32, y: u32| {
        let band = (x / (5 + u32::from(of)) + y / 9) % 3;
        let mut colour = [u8::try_from(x % 256).unwrap(), of.wrapping_mul(70), 40];
        colour[band as usize] = 230;
        image::Rgb(colour)
    };
    let picture = image::RgbImage::from_fn(width, height, colour);
    let mut file = Cursor::new(Vec::new());
    picture
        .write_to(&mut file, image::ImageFormat::Png)
        .unwrap();
    file.into_inner()
}

/// A picture of one colour, as a PNG.
pub(crate) fn plain(width: u32, height: u32) -> Vec<u8> {
    let picture = image::RgbImage::from_pixel(width, height, image::Rgb([90, 20, 200]));
    let mut file = Cursor::new(Vec::new());
    picture
        .write_to(&mut file, image::ImageFormat::Png)
        .unwrap();
    file.into_inner()
}
