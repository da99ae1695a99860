//! A mixture of experts with a shared expert, of architecture `qwen2moe`, whose answers are those of the dense SmolLM2 that it is
//! made of.
//!
//! The hidden units of each feed-forward network are split: the shared expert has some, and each routed expert has all the
//! others, in an order of its own. llama.cpp's models/qwen2moe.cpp differs from its models/llama.cpp in four ways, which are made
//! up for here:
//!
//! * The gate of the shared expert is a sigmoid, which is a half for all inputs here. Its down matrix is doubled.
//! * The weights of the experts that a token uses are not scaled to add up to one. The router's results are so far apart that the
//!   used experts have all the weight.
//! * Rotary position embeddings turn the first half of a head with the second, and not each element with the next. The rows of
//!   the query and key matrices are reordered.
//! * The output matrix is not the embedding. It is a copy.

use crate::{
    gguf::{self, Head, Made, Model, Pair, Tensor},
    quant::{F32, Q4_1},
    upcycled::{Matrix, Router, router},
};
use anyhow::{Context, Result, ensure};
use std::{fs, path::Path};

const EXPERTS: u32 = 16;
const USED: u32 = 4;
/// Blocks of hidden units of a routed expert.
const ROUTED: usize = 16;
/// Makes the router's results some tens apart.
const APART: f32 = 16.0;
/// An input of the gate that is almost zero. At zero itself, llama.cpp divides zero by zero.
const ALMOST_ZERO: f32 = 1.0e-12;

/// Writes the mixture of SmolLM2 135M in Q4_1, with 16 experts of which 4 are used.
///
/// # Errors
/// If the model is another one, or a file cannot be read or written.
pub fn write_shared(dense: &Path, to: &Path) -> Result<()> {
    let bytes = fs::read(dense).with_context(|| dense.display().to_string())?;
    let model = Model::read(&bytes)?;
    let head = usize::try_from(model.number("llama.rope.dimension_count")?)?;
    let mut hidden = 0;
    let mut tensors = Vec::new();
    for tensor in &model.tensors {
        let name = &tensor.head.name;
        if let Some(matrix) = Matrix::of(tensor)? {
            let groups = matrix.groups()?;
            ensure!(groups > ROUTED, "{name} is too small to be split");
            hidden = groups * Q4_1.elements;
            tensors.extend(split(matrix, groups)?);
        } else if name.ends_with(".attn_q.weight") || name.ends_with(".attn_k.weight") {
            tensors.push(rotated(tensor, head)?);
        } else {
            tensors.push(tensor.copied(name));
        }
        if name == "token_embd.weight" {
            tensors.push(tensor.copied("output.weight"));
        }
    }
    gguf::write(to, &pairs(&model, hidden)?, &tensors)
}

fn pairs(model: &Model<'_>, hidden: usize) -> Result<Vec<Pair>> {
    let routed = ROUTED * Q4_1.elements;
    let mut pairs = vec![Pair::text("general.architecture", "qwen2moe")];
    for pair in &model.pairs {
        let mut pair = pair.clone();
        if let Some(key) = pair.key.strip_prefix("llama.") {
            pair.key = format!("qwen2moe.{key}");
        }
        if pair.key != "general.architecture" {
            pairs.push(pair);
        }
    }
    for (key, value) in [
        ("expert_count", EXPERTS),
        ("expert_used_count", USED),
        ("expert_feed_forward_length", u32::try_from(routed)?),
        (
            "expert_shared_feed_forward_length",
            u32::try_from(hidden - routed)?,
        ),
    ] {
        pairs.push(Pair::number(format!("qwen2moe.{key}"), value));
    }
    Ok(pairs)
}

/// The routed experts and the shared one, made of a dense matrix, and the gates.
fn split(matrix: Matrix<'_>, groups: usize) -> Result<Vec<Made<'_>>> {
    let Matrix { layer, name, .. } = matrix;
    let shared: Vec<usize> = (0..groups - ROUTED).collect();
    let mut tensors = vec![
        matrix.experts(EXPERTS, (groups - ROUTED..groups).collect(), false)?,
        Made {
            head: Head::new(
                format!("blk.{layer}.ffn_{name}_shexp.weight"),
                Q4_1,
                &matrix.shape(shared.len()),
            )?,
            data: Box::new(move || {
                let mut data = Vec::new();
                matrix.append(&shared, &mut data)?;
                if name == "down" {
                    data.chunks_mut(Q4_1.bytes).for_each(double);
                }
                Ok(data)
            }),
        },
    ];
    if name == "gate" {
        let [width, _] = matrix.shape(groups);
        tensors.push(numbers(
            format!("blk.{layer}.ffn_gate_inp.weight"),
            &[width, u64::from(EXPERTS)],
            move || {
                let router = router(layer, usize::try_from(width)?, EXPERTS, Router::Flat);
                Ok(router.into_iter().map(|number| number * APART).collect())
            },
        )?);
        tensors.push(numbers(
            format!("blk.{layer}.ffn_gate_inp_shexp.weight"),
            &[width],
            move || Ok(vec![ALMOST_ZERO; usize::try_from(width)?]),
        )?);
    }
    Ok(tensors)
}

fn numbers<'a>(
    name: String,
    shape: &[u64],
    numbers: impl Fn() -> Result<Vec<f32>> + 'a,
) -> Result<Made<'a>> {
    Ok(Made {
        head: Head::new(name, F32, shape)?,
        data: Box::new(move || Ok(numbers()?.into_iter().flat_map(f32::to_le_bytes).collect())),
    })
}

/// Doubles the elements of a block, whose scale and minimum are numbers of 16 bits.
fn double(block: &mut [u8]) {
    let (halves, _) = block.as_chunks_mut();
    for half in halves.iter_mut().take(2) {
        let bits = u16::from_le_bytes(*half);
        let (sign, rest) = (bits & 0x8000, bits & 0x7fff);
        // Without an exponent, the fraction is doubled.
        let doubled = if rest < 0x0400 {
            rest * 2
        } else {
            rest + 0x0400
        };
        *half = (sign | doubled).to_le_bytes();
    }
}

/// A query or key matrix whose rows in each head are the even ones and then the odd ones.
fn rotated<'a>(tensor: &'a Tensor<'a>, head: usize) -> Result<Made<'a>> {
    let name = &tensor.head.name;
    let rows = usize::try_from(tensor.head.shape.get(1).copied().unwrap_or(0))?;
    let is_even = head.is_multiple_of(2) && head > 0 && rows > 0 && rows.is_multiple_of(head);
    ensure!(is_even, "{name} has {rows} rows with heads of {head}");
    let row = tensor.data.len() / rows;
    Ok(Made {
        head: tensor.head.clone(),
        data: Box::new(move || {
            let mut data = Vec::with_capacity(tensor.data.len());
            for head in tensor.data.chunks(head * row) {
                for first in 0..2 {
                    head.chunks(row)
                        .skip(first)
                        .step_by(2)
                        .for_each(|row| data.extend(row));
                }
            }
            Ok(data)
        }),
    })
}
