//! A reranking model made of an encoder: the classifier's weights are random, so its scores mean nothing, but they depend on
//! every token of a query and a document.

use crate::{
    gguf::{self, Head, Made, Model, Pair},
    numbers::Stream,
    quant::F32,
};
use anyhow::{Context, Result};
use std::{fs, path::Path};

/// llama.cpp's `LLAMA_POOLING_TYPE_RANK`.
const RANK: u32 = 4;

/// Writes the encoder with a classifier of one score, and with the template in which it reads its texts if there is one.
///
/// # Errors
/// If the file is no encoder of architecture `bert`, or a file cannot be read or written.
pub fn write_reranker(encoder: &Path, to: &Path, template: Option<&str>) -> Result<()> {
    let bytes = fs::read(encoder).with_context(|| encoder.display().to_string())?;
    let model = Model::read(&bytes)?;
    let width = u64::from(model.number("bert.embedding_length")?);
    let mut pairs = model.pairs_with("bert.pooling_type", RANK);
    pairs.extend(template.map(|text| Pair::text("tokenizer.chat_template.rerank", text)));
    let mut tensors: Vec<_> = model
        .tensors
        .iter()
        .map(|tensor| tensor.copied(&tensor.head.name))
        .collect();
    for (name, shape) in [
        ("cls.weight", &[width, width][..]),
        ("cls.bias", &[width]),
        ("cls.output.weight", &[width, 1]),
        ("cls.output.bias", &[1]),
    ] {
        let count = shape.iter().product::<u64>();
        let made = move || {
            let mut numbers = Stream::of(name);
            let numbers = (0..count).flat_map(|_| (numbers.signed() / 4.0).to_le_bytes());
            Ok(numbers.collect())
        };
        tensors.push(Made {
            head: Head::new(name, F32, shape)?,
            data: Box::new(made),
        });
    }
    gguf::write(to, &pairs, &tensors)
}
