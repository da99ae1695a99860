//! Tiny media projectors of weights that mean nothing, and images for them.

use std::{fs, io::Cursor, path::Path};

const PATCH: u32 = 14;
const WIDTH: u32 = 32;
const INNER: u32 = 64;
const ALIGNMENT: usize = 32;

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
    let patches = (kind.image / PATCH).pow(2);
    file.weights("v.position_embd.weight", &[WIDTH, patches], 0.5);
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
    let colour = |x: u32, y: u32| {
        let band = (x / (5 + u32::from(of)) + y / 9) % 3;
        let mut colour = [u8::try_from(x).unwrap(), of.wrapping_mul(70), 40];
        colour[band as usize] = 230;
        image::Rgb(colour)
    };
    let picture = image::RgbImage::from_fn(112, 112, colour);
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

#[derive(Default)]
struct Gguf {
    pairs: Vec<Vec<u8>>,
    tensors: Vec<Vec<u8>>,
    data: Vec<u8>,
    state: u32,
}

impl Gguf {
    fn pair(&mut self, key: &str, kind: u32, value: &[u8]) {
        self.pairs
            .push([&string(key)[..], &kind.to_le_bytes(), value].concat());
    }

    fn text(&mut self, key: &str, text: &str) {
        self.pair(key, 8, &string(text));
    }

    fn flag(&mut self, key: &str) {
        self.pair(key, 7, &[1]);
    }

    fn number(&mut self, key: &str, number: u32) {
        self.pair(key, 4, &number.to_le_bytes());
    }

    /// A tensor of numbers between `-size` and `size`.
    fn weights(&mut self, name: &str, shape: &[u32], size: f32) {
        let mut entry = string(name);
        entry.extend(u32::try_from(shape.len()).unwrap().to_le_bytes());
        entry.extend(shape.iter().flat_map(|&side| u64::from(side).to_le_bytes()));
        entry.extend(0_u32.to_le_bytes());
        entry.extend((self.data.len() as u64).to_le_bytes());
        self.tensors.push(entry);
        for _ in 0..shape.iter().product() {
            self.state = self
                .state
                .wrapping_mul(1_664_525)
                .wrapping_add(1_013_904_223);
            let unit = f32::from(u16::try_from(self.state >> 16).unwrap()) / 32768.0 - 1.0;
            self.data.extend((unit * size).to_le_bytes());
        }
        self.data
            .resize(self.data.len().next_multiple_of(ALIGNMENT), 0);
    }

    fn bytes(&self) -> Vec<u8> {
        let mut file = b"GGUF".to_vec();
        file.extend(3_u32.to_le_bytes());
        file.extend((self.tensors.len() as u64).to_le_bytes());
        file.extend((self.pairs.len() as u64).to_le_bytes());
        file.extend(self.pairs.concat());
        file.extend(self.tensors.concat());
        file.resize(file.len().next_multiple_of(ALIGNMENT), 0);
        file.extend(&self.data);
        file
    }
}

fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}
