//! What encodes images or sound within a projector, and what that takes beside its weights.

use crate::{fault::Fault, header::Header, keys::Keys};

/// Rows of an image, at most, for encoders that make the more of them the larger it is: a photograph of a phone would take
/// 4,096, and be refused by a context of as many; and each patch attends to each, so that the time grows with the square of them.
/// 1,024 are an image of 0.8 megapixels.
const MOST_ROWS: u32 = 1024;
/// Fewer tell nothing of an image.
const FEWEST_ROWS: u32 = 70;

/// Encoders that take an image in its own size: their rows at most by themselves, and the patches that become one row, in one
/// direction. From `clip_model_loader::load_hparams` of llama.cpp's `tools/mtmd/clip.cpp`.
const GROWING: [(&str, u32, u32); 9] = [
    ("gemma4uv", 1120, 3),
    ("gemma4v", 1120, 3),
    ("glm4v", 4096, 2),
    ("kimivl", 1024, 1),
    ("ling3vl", 4096, 2),
    ("pixtral", 1024, 1),
    ("qwen2.5vl_merger", 4096, 2),
    ("qwen2vl_merger", 4096, 2),
    ("qwen3vl_merger", 4096, 2),
];
/// The rows of their images see each other, and are evaluated at once (`mtmd_decode_use_non_causal`).
const WHOLE: [&str; 2] = ["gemma4uv", "gemma4v"];

/// Widths of a head for which Metal has attention that keeps no scores (`ggml_metal_device_supports_op`); the CPU has for all.
const FLASH_HEADS: [u64; 14] = [
    32, 40, 48, 64, 72, 80, 96, 112, 128, 192, 256, 320, 512, 576,
];
/// Positions of 30 seconds, which Whisper's encoder takes at a time.
const SOUND_POSITIONS: u64 = 1500;
/// No size of a header counts for more.
const LARGEST: u32 = 1 << 20;
/// The graph's own description, ggml's lists, and what the smallest encoder takes.
const BASE: u64 = 16 << 20;

/// An encoder's shape, as its header tells it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Encoder {
    /// llama.cpp's name of it, such as `qwen3vl_merger`.
    pub kind: String,
    /// The side of an image, in pixels; 0 for sound.
    pub image: u32,
    /// Pixels of an image, at most, where the header tells.
    pub pixels: u32,
    /// The side of a patch, in pixels.
    pub patch: u32,
    /// Patches that become one row, in one direction, where the header tells.
    pub merge: Option<u32>,
    pub width: u32,
    /// Of the feed-forward layers.
    pub inner: u32,
    /// Those have a gate, which is as wide.
    pub gated: bool,
    pub heads: u32,
}

impl Encoder {
    /// `side`: `vision` or `audio`.
    pub(crate) fn of(header: &Header, keys: &Keys, side: &str) -> Result<Self, Fault> {
        let number = |key: &str| Ok(keys.number(&format!("{side}.{key}"))?.unwrap_or(0));
        let kind = [format!("{side}.projector_type"), "projector_type".into()];
        let kind = kind.iter().find_map(|key| keys.own_text(key));
        let width = number("embedding_length")?;
        let prefix = &side[..1];
        let of_blocks = |layer: &str| {
            let mine = header.tensors.iter().filter(|tensor| {
                let name = tensor.name.strip_prefix(prefix);
                name.is_some_and(|name| name.starts_with(".blk.") && name.ends_with(layer))
            });
            mine.map(|tensor| tensor.elements).max()
        };
        // Some converters wrote 0.
        let inner = of_blocks(".ffn_up.weight").unwrap_or(0) / u64::from(width.max(1));
        let merges = ["spatial_merge_size", "projector.scale_factor"];
        let merges = merges.map(number).into_iter();
        let merges = merges.collect::<Result<Vec<u32>, Fault>>()?;
        Ok(Self {
            kind: kind.unwrap_or_default().to_owned(),
            image: number("image_size")?,
            pixels: number("image_max_pixels")?,
            patch: number("patch_size")?,
            merge: merges.into_iter().find(|&merge| merge > 0),
            width,
            inner: number("feed_forward_length")?.max(u32::try_from(inner).unwrap_or(u32::MAX)),
            gated: of_blocks(".ffn_gate.weight").is_some(),
            heads: number("attention.head_count")?,
        })
    }

    /// Rows of an image, at most, where it is for us to say: an image may take a quarter of the context.
    #[must_use]
    pub fn most_rows(&self, context: u32, batch: u32) -> Option<u32> {
        let (_, own, _) = self.growing()?;
        let whole = WHOLE.contains(&self.kind.as_str());
        let room = if whole { batch } else { u32::MAX };
        let most = (context / 4).min(room).clamp(FEWEST_ROWS, MOST_ROWS);
        Some(most.min(*own))
    }

    /// An upper estimate of what encoding takes of memory, which is kept once it was taken.
    ///
    /// After the graph that llama.cpp builds (`clip_graph::build_vit` in `tools/mtmd/clip.cpp`). ggml overwrites what is not
    /// needed any more, so the most is what one block holds at a time: at its attention its input, queries, keys, values,
    /// what they are made of, and a copy of keys and values in 16 bits; at its feed-forward layers its input, what they
    /// are made of, their inner rows, and their output.
    #[must_use]
    pub fn compute_bytes(&self, context: u32, batch: u32) -> u64 {
        let [width, inner, heads, patch] = [self.width, self.inner, self.heads, self.patch]
            .map(|size| u64::from(size.min(LARGEST)));
        let positions = self.positions(context, batch);
        let attention = 24 * width;
        let hidden = if self.gated { 8 * inner } else { 4 * inner };
        // The picture, its patches side by side, and what they become.
        let pixels = 12 * patch * patch;
        let input = 2 * pixels + 8 * width;
        let most = attention.max(12 * width + hidden).max(input);
        // The CPU's copy of what is multiplied, in the weights' type, and the picture before it is the graph's.
        let beside = 2 * width.max(inner) + 2 * pixels;
        let by_all = self.bytes_by_all(width / heads.max(1), heads);
        let each = (most + most / 4 + beside).saturating_add(by_all.saturating_mul(positions));
        BASE.saturating_add(each.saturating_mul(positions))
    }

    /// Of each position by each.
    fn bytes_by_all(&self, head: u64, heads: u64) -> u64 {
        let scores = if FLASH_HEADS.contains(&head) {
            0
        } else {
            4 * heads
        };
        // A mask of windows, and a copy of it in 16 bits.
        let mask = if self.kind == "qwen2.5vl_merger" {
            6
        } else {
            0
        };
        scores + mask
    }

    /// Patches of the largest image, or steps of a sound.
    fn positions(&self, context: u32, batch: u32) -> u64 {
        if self.image == 0 && self.patch == 0 {
            return SOUND_POSITIONS;
        }
        let patch = u64::from(self.patch.clamp(1, LARGEST));
        if let (Some(rows), Some((_, _, merge))) = (self.most_rows(context, batch), self.growing())
        {
            let merge = u64::from(self.merge.unwrap_or(*merge).min(LARGEST));
            // Sides are rounded to whole rows.
            return u64::from(rows + rows / 16) * merge * merge;
        }
        let side = u64::from(self.image).div_ceil(patch);
        let own = u64::from(self.pixels) / (patch * patch);
        (side * side).max(own) + 1
    }

    fn growing(&self) -> Option<&'static (&'static str, u32, u32)> {
        GROWING.iter().find(|(kind, _, _)| *kind == self.kind)
    }
}
