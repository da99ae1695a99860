//! A mixture of experts made of a dense model, whose answers are the dense model's.
//!
//! Each expert is the dense feed-forward network with its hidden units in another order, in whole quantization blocks, so
//! that its bytes are its own: a matrix of another expert between its others gives garbage. The router is random, and the
//! weights of its choice add up to one, so that any choice gives the dense model's output, but for the rounding of a sum in
//! another order.
//!
//! What a layer's network is given is partly the same for all tokens, so that a random router chooses some experts far more often
//! than others. A flat one does not see that part.

use crate::{
    gguf::{self, Head, Made, Model, Pair, Tensor},
    numbers::{shuffled, signed},
    quant::{F32, Q4_1},
};
use anyhow::{Context, Result, ensure};
use std::{fs, path::Path};

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
    /// As flat, and the experts differ: each lacks a quarter of the hidden units. What is lost where another takes the place of one
    /// can be measured.
    Distinct,
}

/// A matrix of a dense feed-forward network.
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a> {
    pub(crate) layer: u32,
    /// `gate`, `up` or `down`.
    pub(crate) name: &'a str,
    tensor: &'a Tensor<'a>,
}

impl Mixture {
    /// Writes the mixture of a model of architecture `llama` whose feed-forward matrices are in Q4_1, as SmolLM2's.
    ///
    /// # Errors
    /// If the model is of another kind, or a file cannot be read or written.
    pub fn write(self, dense: &Path, to: &Path) -> Result<()> {
        let bytes = fs::read(dense).with_context(|| dense.display().to_string())?;
        let model = Model::read(&bytes)?;
        let mut tensors = Vec::new();
        for tensor in &model.tensors {
            match Matrix::of(tensor)? {
                Some(matrix) => tensors.extend(self.parts(matrix)?),
                None => tensors.push(tensor.copied(&tensor.head.name)),
            }
        }
        let added = [
            Pair::number("llama.expert_count", self.experts),
            Pair::number("llama.expert_used_count", self.used),
        ];
        let pairs = [&model.pairs[..], &added].concat();
        gguf::write(to, &pairs, &tensors)
    }

    /// What replaces a matrix.
    fn parts(self, matrix: Matrix<'_>) -> Result<Vec<Made<'_>>> {
        let Matrix { layer, name, .. } = matrix;
        let groups: Vec<usize> = (0..matrix.groups()?).collect();
        let lacks = self.router == Router::Distinct && name == "down";
        let mut parts = vec![matrix.experts(self.experts, groups, lacks)?];
        if name == "gate" {
            let width = matrix.tensor.head.shape[0];
            parts.push(Made {
                head: Head::new(
                    format!("blk.{layer}.ffn_gate_inp.weight"),
                    F32,
                    &[width, u64::from(self.experts)],
                )?,
                data: Box::new(move || {
                    Ok(
                        router(layer, usize::try_from(width)?, self.experts, self.router)
                            .into_iter()
                            .flat_map(|number| (number * 0.5).to_le_bytes())
                            .collect(),
                    )
                }),
            });
        }
        Ok(parts)
    }
}

impl<'a> Matrix<'a> {
    /// The matrix that a tensor holds.
    ///
    /// # Errors
    /// If it is not in Q4_1.
    pub(crate) fn of(tensor: &'a Tensor<'a>) -> Result<Option<Self>> {
        let Some((layer, name)) = feed_forward(&tensor.head.name) else {
            return Ok(None);
        };
        let is_readable = tensor.head.kind == Q4_1.number && tensor.head.shape.len() == 2;
        ensure!(is_readable, "{} is not in Q4_1", tensor.head.name);
        Ok(Some(Self {
            layer,
            name,
            tensor,
        }))
    }

    /// How many blocks of hidden units the network has. The units are the rows of two matrices, and the columns of the third.
    pub(crate) fn groups(self) -> Result<usize> {
        let hidden = self.tensor.head.shape[usize::from(self.name != "down")];
        Ok(usize::try_from(hidden)? / Q4_1.elements)
    }

    /// The shape of the matrix with some of the blocks of hidden units.
    pub(crate) fn shape(self, groups: usize) -> [u64; 2] {
        let mut shape = [self.tensor.head.shape[0], self.tensor.head.shape[1]];
        shape[usize::from(self.name != "down")] = (groups * Q4_1.elements) as u64;
        shape
    }

    /// Appends the matrix with some of the blocks of hidden units, in their order.
    pub(crate) fn append(self, groups: &[usize], to: &mut Vec<u8>) -> Result<()> {
        let columns = usize::try_from(self.tensor.head.shape[0])?;
        let row = columns / Q4_1.elements * Q4_1.bytes;
        if self.name == "down" {
            for row in self.tensor.data.chunks(row) {
                for &group in groups {
                    to.extend(&row[group * Q4_1.bytes..][..Q4_1.bytes]);
                }
            }
        } else {
            let rows = row * Q4_1.elements;
            for &group in groups {
                to.extend(&self.tensor.data[group * rows..][..rows]);
            }
        }
        Ok(())
    }

    /// The same blocks of hidden units for each expert, in an order of its own.
    ///
    /// If it `lacks` some, every fourth block of the order counts for nothing.
    pub(crate) fn experts(self, experts: u32, groups: Vec<usize>, lacks: bool) -> Result<Made<'a>> {
        let Self { layer, name, .. } = self;
        let [columns, rows] = self.shape(groups.len());
        Ok(Made {
            head: Head::new(
                format!("blk.{layer}.ffn_{name}_exps.weight"),
                Q4_1,
                &[columns, rows, u64::from(experts)],
            )?,
            data: Box::new(move || {
                let mut data = Vec::new();
                for expert in 0..experts {
                    let seed = layer.wrapping_mul(1009).wrapping_add(expert);
                    let order = shuffled(groups.len(), seed);
                    let order: Vec<usize> = order.into_iter().map(|at| groups[at]).collect();
                    self.append(&order, &mut data)?;
                }
                if lacks {
                    // A block's scale and minimum.
                    let zeroed = data.chunks_mut(Q4_1.bytes).step_by(4);
                    zeroed.for_each(|block| block[..4].fill(0));
                }
                Ok(data)
            }),
        })
    }
}

impl Tensor<'_> {
    /// The same tensor under a name.
    pub(crate) fn copied(&self, name: &str) -> Made<'_> {
        Made {
            head: Head {
                name: name.to_owned(),
                ..self.head.clone()
            },
            data: Box::new(|| Ok(self.data.to_vec())),
        }
    }
}

/// A layer's router, of elements between about −1 and 1.
pub(crate) fn router(layer: u32, width: usize, experts: u32, kind: Router) -> Vec<f32> {
    let mut state = 0x5eed ^ layer.wrapping_mul(0x9e37_79b9);
    let numbers = width * experts as usize;
    let mut router: Vec<f32> = (0..numbers).map(|_| signed(&mut state)).collect();
    if kind != Router::Skewed {
        let mean = mean(layer, width);
        for row in router.chunks_mut(mean.len().max(1)) {
            remove(&mean, row);
        }
    }
    router
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
