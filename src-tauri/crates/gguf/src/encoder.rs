//! What encodes images or sound within a projector, and what that takes beside its weights.

use crate::{
    fault::{Fault, invalid, unsupported},
    header::Header,
    keys::HeaderKeys,
};
use serde::Deserialize;

/// Rows of an image of 0.8 megapixels; a phone's photograph would take 4,096. The time grows with the square of them.
const MOST_ROWS: u32 = 1024;
/// Fewer rows do not describe an image.
const FEWEST_ROWS: u32 = 70;

/// What llama.cpp has graphs for that the estimate below was made after (`clip_get_graph_builder` in `tools/mtmd/clip.cpp`), by
/// its names.
const KINDS: [(&str, EncoderInput); 35] = [
    ("adapter", EncoderInput::Image),
    ("cogvlm", EncoderInput::Image),
    ("dots_ocr", EncoderInput::Bounded),
    ("gemma3", EncoderInput::Image),
    ("gemma4a", EncoderInput::Sound(750)),
    ("gemma4ua", EncoderInput::Frames),
    ("gemma4uv", growing_input(1120, 3)),
    ("gemma4v", growing_input(1120, 3)),
    ("glm4v", growing_input(4096, 2)),
    ("glm5v", EncoderInput::Bounded),
    ("glma", EncoderInput::Sound(WHISPER)),
    ("hunyuanvl", growing_input(16_384, 2)),
    ("idefics3", EncoderInput::Image),
    ("internvl", EncoderInput::Image),
    ("janus_pro", EncoderInput::Image),
    ("kimivl", growing_input(1024, 1)),
    ("ldp", EncoderInput::Image),
    ("ldpv2", EncoderInput::Image),
    ("lfm2", EncoderInput::Tile(1088)),
    ("lightonocr", EncoderInput::Image),
    ("ling3vl", growing_input(4096, 2)),
    ("llama4", EncoderInput::Image),
    ("meralion", EncoderInput::Sound(WHISPER)),
    ("mlp", EncoderInput::Image),
    ("musicflamingo", EncoderInput::Sound(WHISPER)),
    ("paddleocr", EncoderInput::Bounded),
    ("phi4", EncoderInput::Bounded),
    ("pixtral", growing_input(1024, 1)),
    ("qwen2.5vl_merger", growing_input(4096, 2)),
    ("qwen2a", EncoderInput::Sound(WHISPER)),
    ("qwen2vl_merger", growing_input(4096, 2)),
    ("qwen3vl_merger", growing_input(4096, 2)),
    ("resampler", EncoderInput::Image),
    ("ultravox", EncoderInput::Sound(WHISPER)),
    ("voxtral", EncoderInput::Sound(WHISPER)),
];
/// Positions of 30 seconds, which Whisper's encoder takes at a time.
const WHISPER: u64 = 1500;
/// Samples of a frame of [`EncoderInput::Frames`].
const FRAME: u64 = 640;
/// The rows of their images see each other, and are evaluated at once (`mtmd_decode_use_non_causal`).
const WHOLE: [&str; 2] = ["gemma4uv", "gemma4v"];

/// Widths of a head for which Metal has attention that keeps no scores (`ggml_metal_device_supports_op`); the CPU has for all.
const FLASH_HEADS: [u64; 14] = [
    32, 40, 48, 64, 72, 80, 96, 112, 128, 192, 256, 320, 512, 576,
];
/// No size of a header counts for more.
const LARGEST: u32 = 1 << 20;
/// The graph's own description, ggml's lists, and what the smallest encoder takes.
const BASE: u64 = 16 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EncoderInput {
    /// An image, or a tile of it, of the size in the header.
    Image,
    /// A tile of so many patches, at most.
    Tile(u64),
    /// An image in its own size, up to the number of pixels in the header.
    Bounded,
    /// An image in its own size, up to the requested number of pixels.
    Growing {
        /// The limit without a request.
        rows: u32,
        /// Patches that become one row, in one direction.
        merge: u32,
    },
    /// A piece of sound, of so many positions.
    Sound(u64),
    /// A whole sound; each frame becomes a row.
    Frames,
}

impl EncoderInput {
    fn is_sound(self) -> bool {
        matches!(self, Self::Sound(_) | Self::Frames)
    }
}

const fn growing_input(rows: u32, merge: u32) -> EncoderInput {
    EncoderInput::Growing { rows, merge }
}

/// The shape of an encoder, from its header or the catalog's facts about it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Encoder {
    /// llama.cpp's name of it, such as `qwen3vl_merger`.
    pub kind: String,
    /// The side of an image, in pixels; 0 for sound.
    pub image: u32,
    /// The most pixels of an image, if the header gives it.
    pub pixels: u32,
    /// The side of a patch, in pixels.
    pub patch: u32,
    /// Patches that become one row, in one direction, if the header gives it.
    pub merge: Option<u32>,
    pub width: u32,
    /// Of the feed-forward layers.
    pub inner: u32,
    /// Those have a gate, which is as wide.
    pub gated: bool,
    pub heads: u32,
    /// The width of a head, if the header gives one that is not the model width divided by the heads.
    pub head: u32,
    /// Of its rows.
    pub projection: u32,
    /// Of a sound's first convolution, over time and frequency; 0 where it is over time alone.
    pub channels: u32,
    /// Frequencies of a sound.
    pub bands: u32,
}

impl Encoder {
    /// `side`: `vision` or `audio`.
    pub(crate) fn from_header(
        header: &Header,
        keys: &HeaderKeys,
        side: &str,
    ) -> Result<Self, Fault> {
        let number = |key: &str| Ok(keys.number(&format!("{side}.{key}"))?.unwrap_or(0));
        // In this order: llama.cpp uses the first one.
        let kind = ["projector_type".into(), format!("{side}.projector_type")];
        let named = |key: &String| keys.own_text(key).filter(|kind| !kind.is_empty());
        let kind = match (kind.iter().find_map(named), side) {
            // One name for two encoders.
            (Some("qwen2.5o"), "audio") => "qwen2a",
            (Some("qwen2.5o"), _) => "qwen2.5vl_merger",
            (kind, _) => kind.unwrap_or_default(),
        };
        let pixels = number("image_max_pixels")?;
        let known = input_of_projector(kind).filter(|input| input.is_sound() == (side == "audio"));
        match known {
            None => {
                return unsupported(
                    format!("the memory needs of its {side} encoder, \"{kind}\", are unknown"),
                    "choose a model with another projector, or send only text",
                );
            }
            Some(EncoderInput::Bounded) if pixels == 0 => {
                return invalid("it does not give the largest image size");
            }
            Some(_) => {}
        }
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
        // Of 3 × 3 each.
        let first = format!("{prefix}.conv1d.0.weight");
        let first = header.tensors.iter().find(|tensor| tensor.name == first);
        let channels = first.and_then(|tensor| u32::try_from(tensor.elements / 9).ok());
        let merges = ["spatial_merge_size", "projector.scale_factor"];
        let merges = merges.map(number).into_iter();
        let merges = merges.collect::<Result<Vec<u32>, Fault>>()?;
        Ok(Self {
            kind: kind.to_owned(),
            image: if kind == "lightonocr" {
                number("preproc_image_size")?.max(number("image_size")?)
            } else {
                number("image_size")?
            },
            pixels,
            patch: number("patch_size")?,
            merge: merges.into_iter().find(|&merge| merge > 0),
            width,
            inner: number("feed_forward_length")?.max(u32::try_from(inner).unwrap_or(u32::MAX)),
            gated: of_blocks(".ffn_gate.weight").is_some(),
            heads: number("attention.head_count")?,
            head: number("attention.head_dim")?,
            projection: number("projection_dim")?,
            channels: channels.unwrap_or(0),
            bands: number("num_mel_bins")?,
        })
    }

    /// An upper estimate of what a projector takes: its weights, and what each of its encoders computes with.
    pub fn load_bytes(weights: u64, encoders: [&Option<Self>; 2], context: u32, batch: u32) -> u64 {
        let computing = encoders.into_iter().flatten();
        computing.fold(weights, |sum, encoder| {
            sum.saturating_add(encoder.compute_bytes(context, batch))
        })
    }

    /// Rows of an image, at most, where it is for us to say: an image may take a quarter of the context.
    pub fn most_rows(&self, context: u32, batch: u32) -> Option<u32> {
        let Some(EncoderInput::Growing { rows, .. }) = self.input() else {
            return None;
        };
        let whole = WHOLE.contains(&self.kind.as_str());
        let room = if whole { batch } else { u32::MAX };
        let most = (context / 4).min(room).clamp(FEWEST_ROWS, MOST_ROWS);
        Some(most.min(rows))
    }

    /// An upper estimate of what encoding takes of memory, which is kept once it was taken.
    ///
    /// After the graph that llama.cpp builds (`clip_graph::build_vit` in `tools/mtmd/clip.cpp`): the most that one block holds
    /// at a time. That is, at its attention, its input, queries, keys, values, what they are made of, and a copy of keys and
    /// values in 16 bits; at its feed-forward layers, its input, what they are made of, their inner rows, and their output.
    pub fn compute_bytes(&self, context: u32, batch: u32) -> u64 {
        let [width, inner, heads, patch] = [self.width, self.inner, self.heads, self.patch]
            .map(|size| u64::from(size.min(LARGEST)));
        let positions = self.positions(context, batch);
        if self.input() == Some(EncoderInput::Frames) {
            // The frames, in both orders and normalised, and what they become.
            let each = 12 * FRAME + 8 * u64::from(self.projection.min(LARGEST));
            return BASE.saturating_add(each.saturating_mul(positions));
        }
        let head = match u64::from(self.head.min(LARGEST)) {
            0 => width / heads.max(1),
            head => head,
        };
        let attention = 24 * width.max(head * heads);
        let hidden = if self.gated { 8 * inner } else { 4 * inner };
        // The picture, its patches side by side, and what they become.
        let pixels = 12 * patch * patch;
        let input = 2 * pixels + 8 * width;
        let most = attention.max(12 * width + hidden).max(input);
        // The CPU's copy of what is multiplied, in the weights' type, and the picture before it is the graph's.
        let beside = 2 * width.max(inner) + 2 * pixels;
        let by_all = self.bytes_by_all(head, heads);
        let each = (most + most / 4 + beside).saturating_add(by_all.saturating_mul(positions));
        // Each step of the first convolution is half of what it reads, in time and in frequency, and as long again as the
        // blocks' positions: it, what is made of it, and both in another order.
        let [channels, bands] =
            [self.channels, self.bands].map(|size| u64::from(size.min(LARGEST)));
        let first = 16 * channels * bands * positions;
        BASE.saturating_add(each.saturating_mul(positions).max(first))
    }

    /// Of each position by each.
    fn bytes_by_all(&self, head: u64, heads: u64) -> u64 {
        let scores = 4 * heads * u64::from(!FLASH_HEADS.contains(&head));
        // A mask of windows, and a copy of it in 16 bits.
        let mask = 6 * u64::from(self.kind == "qwen2.5vl_merger");
        scores + mask
    }

    /// Patches of the largest image, or steps of a sound.
    fn positions(&self, context: u32, batch: u32) -> u64 {
        let patch = u64::from(self.patch.clamp(1, LARGEST));
        match (self.input(), self.most_rows(context, batch)) {
            (Some(EncoderInput::Sound(positions) | EncoderInput::Tile(positions)), _) => positions,
            (Some(EncoderInput::Frames), _) => context.into(),
            (Some(EncoderInput::Growing { merge, .. }), Some(rows)) => {
                let merge = u64::from(self.merge.unwrap_or(merge).min(LARGEST));
                // Sides are rounded to whole rows.
                u64::from(rows + rows / 16) * merge * merge
            }
            _ => {
                let side = u64::from(self.image).div_ceil(patch);
                let own = u64::from(self.pixels) / (patch * patch);
                (side * side).max(own) + 1
            }
        }
    }

    fn input(&self) -> Option<EncoderInput> {
        // The limit in its header takes precedence over the requested one.
        if self.kind == "hunyuanvl" && self.pixels > 0 {
            return Some(EncoderInput::Bounded);
        }
        input_of_projector(&self.kind)
    }
}

fn input_of_projector(kind: &str) -> Option<EncoderInput> {
    let found = KINDS.iter().find(|(known, _)| *known == kind);
    found.map(|(_, input)| *input)
}
