//! A mixture of experts made of a dense model, whose answers are the dense model's.
//!
//! Each expert is the dense feed-forward network with its hidden units in another order, in whole quantization blocks, so
//! that its bytes are its own: a matrix of another expert between its others gives garbage. The router is random, and the
//! weights of its choice add up to one, so that any choice gives the dense model's output, but for the rounding of a sum in
//! another order.
//!
//! What a layer's network is given is partly the same for all tokens, so that a random router chooses some experts far more often
//! than others. A flat one does not see that part.

use anyhow::{Context, Result, bail, ensure};
use std::{
    fs::{self, File},
    io::{BufWriter, Write},
    path::Path,
};

/// ggml's number of `Q4_1`: blocks of 32 elements in 20 bytes.
const Q4_1: u32 = 3;
const BLOCK_ELEMENTS: usize = 32;
const BLOCK_BYTES: usize = 20;
const F32: u32 = 0;
const ALIGNMENT: usize = 32;
const TEXT: u32 = 8;
const LIST: u32 = 9;
const NUMBER: u32 = 4;
/// The mean input of each feed-forward network of SmolLM2 135M, over 600 tokens of four texts that it wrote: the results of
/// llama.cpp's nodes `ffn_norm-N`, as the upper halves of numbers of 32 bits.
const MEANS: &[u8] = include_bytes!("means.bf16");

/// Which mixture to make.
#[derive(Debug, Clone, Copy)]
pub struct Mixture {
    pub experts: u32,
    /// Experts that a token uses.
    pub used: u32,
    pub router: Router,
}

/// How often a router chooses the same experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Router {
    /// As random numbers make it.
    Skewed,
    /// Less often: it does not see what is the same for all tokens. For SmolLM2 135M alone.
    Flat,
}

/// What a header says of a tensor, and its bytes.
#[derive(Clone)]
struct Head {
    name: String,
    shape: Vec<u64>,
    kind: u32,
    bytes: usize,
}

struct Tensor<'a> {
    head: Head,
    data: &'a [u8],
}

struct Model<'a> {
    pairs: Vec<&'a [u8]>,
    tensors: Vec<Tensor<'a>>,
}

impl Mixture {
    /// Writes the mixture of a model of architecture `llama` whose feed-forward matrices are in Q4_1, as SmolLM2's.
    ///
    /// # Errors
    /// If the model is of another kind, or a file cannot be read or written.
    pub fn write(self, dense: &Path, to: &Path) -> Result<()> {
        let bytes = fs::read(dense).with_context(|| dense.display().to_string())?;
        let model = Model::read(&bytes)?;
        let mut heads = Vec::new();
        let mut offset = 0;
        let mut plan = Vec::new();
        for tensor in &model.tensors {
            for part in self.parts(tensor)? {
                heads.push(part.written(offset));
                offset = (offset + part.bytes as u64).next_multiple_of(ALIGNMENT as u64);
                plan.push((part.name, tensor));
            }
        }
        let added = [
            ("llama.expert_count", self.experts),
            ("llama.expert_used_count", self.used),
        ];
        let mut file = BufWriter::with_capacity(1 << 20, File::create(to)?);
        let mut written = 0;
        let mut put = |bytes: &[u8]| {
            written += bytes.len();
            file.write_all(bytes)
        };
        put(b"GGUF")?;
        put(&3_u32.to_le_bytes())?;
        put(&(heads.len() as u64).to_le_bytes())?;
        put(&((model.pairs.len() + added.len()) as u64).to_le_bytes())?;
        for pair in &model.pairs {
            put(pair)?;
        }
        for (key, value) in added {
            put(&[&text(key)[..], &NUMBER.to_le_bytes(), &value.to_le_bytes()].concat())?;
        }
        for head in &heads {
            put(head)?;
        }
        let mut pad = vec![0; written.next_multiple_of(ALIGNMENT) - written];
        file.write_all(&pad)?;
        for (name, tensor) in plan {
            let data = self.data(&name, tensor);
            file.write_all(&data)?;
            pad.clear();
            pad.resize(data.len().next_multiple_of(ALIGNMENT) - data.len(), 0);
            file.write_all(&pad)?;
        }
        Ok(file.flush()?)
    }

    /// What replaces a tensor.
    fn parts(self, tensor: &Tensor<'_>) -> Result<Vec<Head>> {
        let head = &tensor.head;
        let Some((layer, matrix)) = feed_forward(&head.name) else {
            return Ok(vec![head.clone()]);
        };
        ensure!(head.kind == Q4_1, "{} is not in Q4_1", head.name);
        let experts = u64::from(self.experts);
        let mut parts = vec![Head {
            name: format!("blk.{layer}.ffn_{matrix}_exps.weight"),
            shape: vec![head.shape[0], head.shape[1], experts],
            kind: Q4_1,
            bytes: head.bytes * self.experts as usize,
        }];
        if matrix == "gate" {
            parts.push(Head {
                name: format!("blk.{layer}.ffn_gate_inp.weight"),
                shape: vec![head.shape[0], experts],
                kind: F32,
                bytes: usize::try_from(head.shape[0] * experts * 4)?,
            });
        }
        Ok(parts)
    }

    fn data(self, name: &str, tensor: &Tensor<'_>) -> Vec<u8> {
        let Tensor { head, data: dense } = tensor;
        let Some((layer, matrix)) = feed_forward(&head.name) else {
            return dense.to_vec();
        };
        if name.contains("ffn_gate_inp") {
            let mut state = 0x5eed ^ layer.wrapping_mul(0x9e37_79b9);
            let numbers = head.shape[0] * u64::from(self.experts);
            let mut router: Vec<f32> = (0..numbers).map(|_| signed(&mut state) * 0.5).collect();
            if self.router == Router::Flat {
                let mean = mean(layer, usize::try_from(head.shape[0]).unwrap_or(0));
                for row in router.chunks_mut(mean.len().max(1)) {
                    remove(&mean, row);
                }
            }
            return router.into_iter().flat_map(f32::to_le_bytes).collect();
        }
        let row = usize::try_from(head.shape[0]).unwrap_or(0) / BLOCK_ELEMENTS * BLOCK_BYTES;
        // Hidden units are the rows of two matrices, and the columns of the third.
        let hidden = head.shape[usize::from(matrix != "down")];
        let groups = usize::try_from(hidden).unwrap_or(0) / BLOCK_ELEMENTS;
        let mut data = Vec::with_capacity(dense.len() * self.experts as usize);
        for expert in 0..self.experts {
            let order = shuffled(groups, layer.wrapping_mul(1009).wrapping_add(expert));
            if matrix == "down" {
                for row in dense.chunks(row) {
                    for &group in &order {
                        data.extend(&row[group * BLOCK_BYTES..][..BLOCK_BYTES]);
                    }
                }
            } else {
                let rows = row * BLOCK_ELEMENTS;
                for &group in &order {
                    data.extend(&dense[group * rows..][..rows]);
                }
            }
        }
        data
    }
}

/// The mean input of a layer's network.
fn mean(layer: u32, width: usize) -> Vec<f32> {
    let layers = MEANS.chunks(2 * width.max(1));
    let of_layer = layers.skip(layer as usize).take(1).flatten();
    let bytes: Vec<u8> = of_layer.copied().collect();
    let number = |half: &[u8]| f32::from_le_bytes([0, 0, half[0], half[1]]);
    bytes.chunks_exact(2).map(number).collect()
}

/// Takes the part along a direction out of a vector.
fn remove(direction: &[f32], from: &mut [f32]) {
    let dot = |a: &[f32], b: &[f32]| -> f32 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let part = dot(direction, from) / dot(direction, direction).max(f32::MIN_POSITIVE);
    for (number, along) in from.iter_mut().zip(direction) {
        *number -= part * along;
    }
}

/// The layer and the matrix of a feed-forward network.
fn feed_forward(name: &str) -> Option<(u32, &str)> {
    let (layer, rest) = name.strip_prefix("blk.")?.split_once('.')?;
    let matrix = rest.strip_prefix("ffn_")?.strip_suffix(".weight")?;
    ["gate", "up", "down"]
        .contains(&matrix)
        .then(|| layer.parse().ok().map(|layer| (layer, matrix)))?
}

fn next(state: &mut u32) -> u32 {
    *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    *state >> 8
}

/// A number between −1 and 1.
fn signed(state: &mut u32) -> f32 {
    let [.., high, middle, low] = next(state).to_be_bytes();
    let number = u32::from_be_bytes([0, high, middle, low]);
    #[expect(clippy::cast_precision_loss, reason = "24 bits")]
    let number = number as f32;
    number / 8_388_608.0 - 1.0
}

fn shuffled(count: usize, seed: u32) -> Vec<usize> {
    let mut state = seed.wrapping_add(1).wrapping_mul(0x9e37_79b9);
    let mut order: Vec<usize> = (0..count).collect();
    for at in (1..count).rev() {
        order.swap(at, next(&mut state) as usize % (at + 1));
    }
    order
}

impl Head {
    fn written(&self, offset: u64) -> Vec<u8> {
        let mut head = text(&self.name);
        head.extend(u32::try_from(self.shape.len()).unwrap_or(0).to_le_bytes());
        head.extend(self.shape.iter().flat_map(|side| side.to_le_bytes()));
        head.extend(self.kind.to_le_bytes());
        head.extend(offset.to_le_bytes());
        head
    }
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

impl<'a> Model<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self> {
        let mut at = Cursor { bytes, at: 0 };
        ensure!(at.take(4)? == b"GGUF", "not a GGUF file");
        at.u32()?;
        let (tensors, pairs) = (at.u64()?, at.u64()?);
        let pairs: Vec<&[u8]> = (0..pairs).map(|_| at.pair()).collect::<Result<_>>()?;
        let heads: Vec<_> = (0..tensors).map(|_| at.tensor()).collect::<Result<_>>()?;
        let start = at.at.next_multiple_of(ALIGNMENT);
        let ends = heads.iter().skip(1).map(|(_, offset)| *offset);
        let ends = ends.chain([bytes.len() - start]);
        let tensors = heads.iter().zip(ends).map(|((head, offset), end)| {
            let whole = bytes.get(start + offset..start + end);
            let whole = whole.context("a tensor is cut short")?;
            let elements = usize::try_from(head.shape.iter().product::<u64>())?;
            // Up to its own end, before the padding.
            let length = match head.kind {
                Q4_1 => elements / BLOCK_ELEMENTS * BLOCK_BYTES,
                F32 => elements * 4,
                _ => whole.len(),
            };
            let data = whole.get(..length).context("a tensor is cut short")?;
            let head = Head {
                bytes: length,
                ..head.clone()
            };
            Ok(Tensor { head, data })
        });
        let tensors = tensors.collect::<Result<_>>()?;
        Ok(Self { pairs, tensors })
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let taken = self
            .bytes
            .get(self.at..self.at + count)
            .context("the header is cut short")?;
        self.at += count;
        Ok(taken)
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.take(4)?.try_into()?))
    }

    fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into()?))
    }

    fn length(&mut self) -> Result<usize> {
        Ok(usize::try_from(self.u64()?)?)
    }

    /// A key with its type and value.
    fn pair(&mut self) -> Result<&'a [u8]> {
        let start = self.at;
        let key = self.length()?;
        self.take(key)?;
        let kind = self.u32()?;
        self.value(kind)?;
        Ok(&self.bytes[start..self.at])
    }

    fn value(&mut self, kind: u32) -> Result<()> {
        let size = match kind {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            4..=6 => 4,
            10..=12 => 8,
            TEXT => self.length()?,
            LIST => {
                let element = self.u32()?;
                for _ in 0..self.u64()? {
                    self.value(element)?;
                }
                0
            }
            other => bail!("a value of type {other}"),
        };
        self.take(size).map(|_| ())
    }

    /// What is said of a tensor, but for its bytes, and where it lies.
    fn tensor(&mut self) -> Result<(Head, usize)> {
        let length = self.length()?;
        let head = Head {
            name: String::from_utf8(self.take(length)?.to_vec())?,
            shape: (0..self.u32()?)
                .map(|_| self.u64())
                .collect::<Result<_>>()?,
            kind: self.u32()?,
            bytes: 0,
        };
        Ok((head, self.length()?))
    }
}
