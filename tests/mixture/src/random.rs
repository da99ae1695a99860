//! Mixtures of experts of random weights, small but with all that their architecture has.
//!
//! Their tokenizer is another model's. Each tensor's random numbers start from its name, so that a file is the same each time.
//! The sizes of the numbers keep what passes between the layers near one, and let no layer drown the others.

mod gemma4;
mod gpt_oss;
mod qwen35moe;
mod qwen3moe;

use crate::{
    gguf::{self, Head, Made, Model, Pair},
    numbers::Stream,
    quant::{F32, Q8_0, Quant},
};
use anyhow::{Context, Result};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// The length of what passes between the layers.
const WIDTH: u16 = 512;

/// Which mixture to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Random {
    /// Experts alone, 32 of them. Gate and up in Q4_K, down in Q6_K.
    Qwen3Moe,
    /// 32 experts and a shared one, behind gated delta nets and, in each fourth layer, attention. Gate and up in IQ4_XS, down in
    /// Q4_1.
    Qwen35Moe,
    /// 16 experts beside a dense network, with sliding windows. Gate and up in one matrix in F16, down in Q8_0 with a scale for
    /// each expert.
    Gemma4,
    /// 16 experts with biases, and attention with sinks. All in MXFP4.
    GptOss,
}

impl Random {
    pub const ALL: [Self; 4] = [Self::Qwen3Moe, Self::Qwen35Moe, Self::Gemma4, Self::GptOss];

    /// The name of the architecture in a file.
    #[must_use]
    pub fn architecture(self) -> &'static str {
        match self {
            Self::Qwen3Moe => "qwen3moe",
            Self::Qwen35Moe => "qwen35moe",
            Self::Gemma4 => "gemma4",
            Self::GptOss => "gpt-oss",
        }
    }

    /// Writes the mixture with the tokenizer and the chat template of a model.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn write(self, tokenizer_of: &Path, to: &Path) -> Result<()> {
        let plan = self.plan(tokenizer_of)?;
        gguf::write(to, &plan.pairs, &plan.tensors)
    }

    /// Writes it as two files, as `llama-gguf-split` does, and returns the first.
    ///
    /// # Errors
    /// If a file cannot be read or written.
    pub fn write_split(self, tokenizer_of: &Path, folder: &Path) -> Result<PathBuf> {
        let plan = self.plan(tokenizer_of)?;
        let count = i32::try_from(plan.tensors.len())?;
        let place = |number| {
            [
                Pair::short("split.no", number),
                Pair::short("split.count", 2),
                Pair::integer("split.tensors.count", count),
            ]
        };
        let part = |number: u16| folder.join(format!("mixture-{number:05}-of-00002.gguf"));
        let (first, second) = plan.tensors.split_at(plan.tensors.len() / 2);
        gguf::write(&part(1), &[&plan.pairs[..], &place(0)].concat(), first)?;
        gguf::write(&part(2), &place(1), second)?;
        Ok(part(1))
    }

    fn plan(self, tokenizer_of: &Path) -> Result<Plan> {
        let bytes = fs::read(tokenizer_of).with_context(|| tokenizer_of.display().to_string())?;
        let mut plan = Plan::new(self.architecture(), &Model::read(&bytes)?)?;
        match self {
            Self::Qwen3Moe => qwen3moe::add(&mut plan)?,
            Self::Qwen35Moe => qwen35moe::add(&mut plan)?,
            Self::Gemma4 => gemma4::add(&mut plan)?,
            Self::GptOss => gpt_oss::add(&mut plan)?,
        }
        Ok(plan)
    }
}

/// A file to write.
struct Plan {
    architecture: &'static str,
    /// Tokens in the vocabulary.
    tokens: u16,
    pairs: Vec<Pair>,
    tensors: Vec<Made<'static>>,
}

impl Plan {
    fn new(architecture: &'static str, model: &Model<'_>) -> Result<Self> {
        let mut pairs = vec![
            Pair::text("general.architecture", architecture),
            Pair::text("general.type", "model"),
            Pair::text("general.name", &format!("Random {architecture}")),
        ];
        let tokenizer = model.pairs.iter();
        let tokenizer = tokenizer.filter(|pair| pair.key.starts_with("tokenizer."));
        pairs.extend(tokenizer.cloned());
        Ok(Self {
            architecture,
            tokens: u16::try_from(model.list_length("tokenizer.ggml.tokens")?)?,
            pairs,
            tensors: Vec::new(),
        })
    }

    fn key(&self, key: &str) -> String {
        format!("{}.{key}", self.architecture)
    }

    fn numbers(&mut self, numbers: &[(&str, u16)]) {
        for &(key, value) in numbers {
            let pair = Pair::number(self.key(key), u32::from(value));
            self.pairs.push(pair);
        }
    }

    fn floats(&mut self, floats: &[(&str, f32)]) {
        for &(key, value) in floats {
            let pair = Pair::float(self.key(key), value);
            self.pairs.push(pair);
        }
    }

    /// Adds a tensor whose elements are random and whose mean is zero.
    ///
    /// # Arguments
    /// `size` is the root of the mean square of the elements.
    fn scattered(&mut self, name: String, quant: Quant, shape: &[u16], size: f32) -> Result<()> {
        let seed = format!("{} {name}", self.architecture);
        let shape: Vec<u64> = shape.iter().copied().map(u64::from).collect();
        let head = Head::new(name, quant, &shape)?;
        let blocks = head.bytes / quant.bytes;
        self.tensors.push(Made {
            head,
            data: Box::new(move || Ok(quant.blocks(blocks, size, &mut Stream::of(&seed)))),
        });
        Ok(())
    }

    /// Adds a matrix, or one for each expert.
    ///
    /// # Arguments
    /// `gain` is how much larger its result is than what it is given.
    fn matrix(&mut self, name: String, quant: Quant, shape: &[u16], gain: f32) -> Result<()> {
        let columns = shape.first().copied().unwrap_or(1);
        self.scattered(name, quant, shape, gain / f32::from(columns).sqrt())
    }

    /// Adds a vector of random numbers from a fifth below the middle to a fifth above, such as a norm's.
    fn around(&mut self, name: String, length: u16, middle: f32) -> Result<()> {
        let mut stream = Stream::of(&format!("{} {name}", self.architecture));
        let numbers = (0..length).map(|_| middle * (1.0 + 0.2 * stream.signed()));
        self.exact(name, numbers.collect())
    }

    fn exact(&mut self, name: String, numbers: Vec<f32>) -> Result<()> {
        let head = Head::new(name, F32, &[numbers.len() as u64])?;
        let data = move || {
            Ok(numbers
                .iter()
                .flat_map(|number| number.to_le_bytes())
                .collect())
        };
        self.tensors.push(Made {
            head,
            data: Box::new(data),
        });
        Ok(())
    }

    /// Adds the embedding and the last norm.
    ///
    /// The embedding is small beside what the layers add to it. The output matrix may be the same, and would otherwise repeat the
    /// last token.
    ///
    /// # Arguments
    /// `factor` is what the architecture multiplies the embedding with.
    fn vocabulary(&mut self, factor: f32) -> Result<()> {
        let shape = [WIDTH, self.tokens];
        self.scattered("token_embd.weight".to_owned(), Q8_0, &shape, 0.1 / factor)?;
        self.around("output_norm.weight".to_owned(), WIDTH, factor)
    }
}
