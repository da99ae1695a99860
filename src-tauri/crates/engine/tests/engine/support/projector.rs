//! Tiny media projectors of weights that mean nothing, and images for them.

use crate::support::weights::Gguf;
use std::{fs, io::Cursor, path::Path};

/// The projector's kind, and how wide the model's embeddings are.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    name: &'static str,
    model: u32,
    /// As wide and as high as it sees.
    image: u32,
    patch: u32,
    width: u32,
    inner: u32,
    heads: u32,
    blocks: u32,
    /// So many patches by so many become one row, where they see each other.
    scale: u32,
}

/// For SmolLM2: an image is 64 rows, each of which sees those before it.
pub(crate) const CAUSAL: Kind = Kind {
    name: "janus_pro",
    model: 576,
    image: 112,
    patch: 14,
    width: 32,
    inner: 64,
    heads: 2,
    blocks: 1,
    scale: 2,
};
/// For Gemma 3: an image is 16 rows, which see each other.
pub(crate) const WHOLE: Kind = Kind {
    name: "gemma3",
    model: 640,
    image: 112,
    patch: 14,
    width: 32,
    inner: 64,
    heads: 2,
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
    patch: 14,
    width: 32,
    inner: 64,
    heads: 2,
    blocks: 1,
    scale: 2,
};

/// One block of Gemma 3's own: each of its 27 computes with as much memory, in as large steps.
pub(crate) const GEMMA_3: Kind = Kind {
    image: 896,
    width: 1152,
    inner: 4304,
    heads: 16,
    scale: 4,
    ..WHOLE
};
/// And so many of them that it can be canceled on the way.
pub(crate) const GEMMA_3_BLOCKS: Kind = Kind {
    blocks: 4,
    ..GEMMA_3
};
/// One block as the smaller Gemma 4 have them.
pub(crate) const GEMMA_4: Kind = Kind {
    name: "gemma4v",
    image: 224,
    patch: 16,
    width: 768,
    inner: 3072,
    heads: 12,
    scale: 3,
    ..WHOLE
};
/// One block as large as Qwen2-VL's.
pub(crate) const QWEN_2: Kind = Kind {
    model: 640,
    image: 560,
    width: 1280,
    inner: 5120,
    heads: 16,
    ..GRID
};

/// Writes one that any machine writes the same.
pub(crate) fn write(kind: Kind, path: &Path) {
    let (patch, width, inner) = (kind.patch, kind.width, kind.inner);
    let mut file = Gguf::default();
    file.text("general.architecture", "clip");
    file.text("clip.projector_type", kind.name);
    file.flag("clip.has_vision_encoder");
    file.flag("clip.use_gelu");
    for (key, value) in [
        ("image_size", kind.image),
        ("patch_size", kind.patch),
        ("embedding_length", kind.width),
        ("feed_forward_length", kind.inner),
        ("block_count", kind.blocks),
        ("attention.head_count", kind.heads),
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
    file.weights("v.patch_embd.weight", &[patch, patch, 3, width], 0.05);
    if kind.name == GRID.name {
        file.weights("v.patch_embd.weight.1", &[patch, patch, 3, width], 0.05);
        for name in ["attn_q", "attn_k", "attn_v"] {
            file.weights(&format!("v.blk.0.{name}.bias"), &[width], 0.1);
        }
    } else if kind.name == GEMMA_4.name {
        // Of columns, and of rows.
        file.weights("v.position_embd.weight", &[width, 1024, 2], 0.5);
    } else {
        let patches = (kind.image / patch).pow(2);
        file.weights("v.position_embd.weight", &[width, patches], 0.5);
    }
    for block in 0..kind.blocks {
        for name in ["attn_q", "attn_k", "attn_v", "attn_out"] {
            file.weights(
                &format!("v.blk.{block}.{name}.weight"),
                &[width, width],
                0.3,
            );
        }
        for name in ["ln1", "ln2"] {
            file.weights(&format!("v.blk.{block}.{name}.weight"), &[width], 1.0);
        }
        file.weights(
            &format!("v.blk.{block}.ffn_up.weight"),
            &[width, inner],
            0.3,
        );
        file.weights(
            &format!("v.blk.{block}.ffn_down.weight"),
            &[inner, width],
            0.3,
        );
    }
    if kind.name == WHOLE.name {
        file.weights("mm.soft_emb_norm.weight", &[width], 1.0);
        file.weights("mm.input_projection.weight", &[kind.model, width], 1.0);
    } else if kind.name == GEMMA_4.name {
        file.weights("mm.input_projection.weight", &[width, kind.model], 1.0);
    } else if kind.name == GRID.name {
        file.weights("mm.0.weight", &[4 * width, inner], 0.3);
        file.weights("mm.0.bias", &[inner], 0.1);
        file.weights("mm.2.weight", &[inner, kind.model], 0.5);
        file.weights("mm.2.bias", &[kind.model], 0.1);
    } else {
        file.weights("mm.0.weight", &[width, inner], 0.3);
        file.weights("mm.0.bias", &[inner], 0.1);
        file.weights("mm.1.weight", &[inner, kind.model], 0.02);
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
