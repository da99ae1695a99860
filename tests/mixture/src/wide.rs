//! A larger dense model whose answers are those of the model that it is made of: each hidden unit of a feed-forward network is there
//! several times, in an order of its own, and counts for as much less.

use crate::{
    gguf::{self, Head, Made, Model},
    numbers::shuffled,
    quant::Q4_1,
    upcycled::Matrix,
};
use anyhow::{Context, Result, ensure};
use std::{fs, path::Path};

/// Writes SmolLM2 135M in Q4_1 with feed-forward networks 2^`doublings` times as wide.
///
/// # Errors
/// If the model is of another kind, or a file cannot be read or written.
pub fn write_wide(dense: &Path, to: &Path, doublings: u16) -> Result<()> {
    ensure!(doublings < 8, "{doublings} doublings make it too wide");
    let bytes = fs::read(dense).with_context(|| dense.display().to_string())?;
    let model = Model::read(&bytes)?;
    let times = 1_usize << doublings;
    let mut tensors = Vec::new();
    for tensor in &model.tensors {
        tensors.push(match Matrix::of(tensor)? {
            Some(matrix) => wide(matrix, times, doublings)?,
            None => tensor.copied(&tensor.head.name),
        });
    }
    let hidden = model.number("llama.feed_forward_length")? << doublings;
    let pairs = model.pairs_with("llama.feed_forward_length", hidden);
    gguf::write(to, &pairs, &tensors)
}

fn wide(matrix: Matrix<'_>, times: usize, doublings: u16) -> Result<Made<'_>> {
    let Matrix { layer, name, .. } = matrix;
    let groups = matrix.groups()?;
    let order = (0..times).flat_map(move |copy| {
        let seed = layer.wrapping_mul(1009).wrapping_add(copy as u32);
        shuffled(groups, seed)
    });
    let order: Vec<usize> = order.collect();
    Ok(Made {
        head: Head::new(
            format!("blk.{layer}.ffn_{name}.weight"),
            Q4_1,
            &matrix.shape(order.len()),
        )?,
        data: Box::new(move || {
            let mut data = Vec::new();
            matrix.append(&order, &mut data)?;
            if name == "down" {
                data.chunks_mut(Q4_1.bytes)
                    .for_each(|block| divide(block, doublings));
            }
            Ok(data)
        }),
    })
}

/// Halves the elements of a block several times. Its scale and minimum are numbers of 16 bits.
fn divide(block: &mut [u8], doublings: u16) {
    let (halves, _) = block.as_chunks_mut();
    for half in halves.iter_mut().take(2) {
        let bits = u16::from_le_bytes(*half);
        let (sign, rest) = (bits & 0x8000, bits & 0x7fff);
        // With too small an exponent, it is next to nothing.
        let divided = rest.saturating_sub(doublings << 10);
        *half = (sign | divided).to_le_bytes();
    }
}
