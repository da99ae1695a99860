//! Writes GGUF files: sound ones, and ones that lie.

use std::{fs::File, io::Write, path::Path};
use tierbar_core::{Error, ModelAccount};

pub(crate) const F32: u32 = 0;
pub(crate) const Q4_K: u32 = 12;
pub(crate) const Q8_0: u32 = 8;

#[derive(Clone)]
pub(crate) struct Gguf {
    pub(crate) version: u32,
    pub(crate) alignment: u64,
    pairs: Vec<Vec<u8>>,
    tensors: Vec<Tensor>,
}

#[derive(Clone)]
struct Tensor {
    name: String,
    shape: Vec<u64>,
    kind: u32,
    bytes: u64,
}

impl Gguf {
    pub(crate) fn empty() -> Self {
        Self {
            version: 3,
            alignment: 32,
            pairs: Vec::new(),
            tensors: Vec::new(),
        }
    }

    /// A small model of this architecture with what every account needs.
    pub(crate) fn model(architecture: &str, layers: u32) -> Self {
        Self::with_vocabulary(architecture, layers, "gpt2", &["<s>", "the", "cat", "sat"])
    }

    /// Of these tokens, for this tokenizer, with as many embeddings.
    pub(crate) fn with_vocabulary(
        architecture: &str,
        layers: u32,
        tokenizer: &str,
        tokens: &[&str],
    ) -> Self {
        let count = tokens.len() as u64;
        Self::empty()
            .text("general.architecture", architecture)
            .number(&format!("{architecture}.block_count"), layers)
            .number(&format!("{architecture}.context_length"), 4096)
            .number(&format!("{architecture}.embedding_length"), 64)
            .text("tokenizer.ggml.model", tokenizer)
            .texts("tokenizer.ggml.tokens", tokens)
            .tensor("token_embd.weight", &[64, count], F32, 64 * count * 4)
    }

    pub(crate) fn number(self, key: &str, number: u32) -> Self {
        self.pair(key, 4, &number.to_le_bytes())
    }

    pub(crate) fn numbers(self, key: &str, numbers: &[u32]) -> Self {
        let bytes: Vec<u8> = numbers
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect();
        self.array(key, 4, numbers.len() as u64, &bytes)
    }

    pub(crate) fn bools(self, key: &str, bools: &[bool]) -> Self {
        let bytes: Vec<u8> = bools.iter().map(|&set| set.into()).collect();
        self.array(key, 7, bools.len() as u64, &bytes)
    }

    pub(crate) fn text(self, key: &str, text: &str) -> Self {
        self.pair(key, 8, &string(text))
    }

    pub(crate) fn texts(self, key: &str, texts: &[&str]) -> Self {
        let bytes: Vec<u8> = texts.iter().flat_map(|text| string(text)).collect();
        self.array(key, 8, texts.len() as u64, &bytes)
    }

    pub(crate) fn array(self, key: &str, element: u32, length: u64, bytes: &[u8]) -> Self {
        let value = [&element.to_le_bytes()[..], &length.to_le_bytes(), bytes].concat();
        self.pair(key, 9, &value)
    }

    pub(crate) fn pair(mut self, key: &str, kind: u32, value: &[u8]) -> Self {
        self.pairs
            .push([&string(key)[..], &kind.to_le_bytes(), value].concat());
        self
    }

    pub(crate) fn tensor(mut self, name: &str, shape: &[u64], kind: u32, bytes: u64) -> Self {
        self.tensors.push(Tensor {
            name: name.to_owned(),
            shape: shape.to_vec(),
            kind,
            bytes,
        });
        self
    }

    /// The header up to and with its padding.
    pub(crate) fn header(&self) -> Vec<u8> {
        let mut file = b"GGUF".to_vec();
        file.extend(self.version.to_le_bytes());
        file.extend((self.tensors.len() as u64).to_le_bytes());
        file.extend((self.pairs.len() as u64).to_le_bytes());
        file.extend(self.pairs.concat());
        let mut offset = 0u64;
        for tensor in &self.tensors {
            file.extend(string(&tensor.name));
            file.extend(u32::try_from(tensor.shape.len()).unwrap().to_le_bytes());
            file.extend(tensor.shape.iter().flat_map(|size| size.to_le_bytes()));
            file.extend(tensor.kind.to_le_bytes());
            file.extend(offset.to_le_bytes());
            offset += tensor.bytes.next_multiple_of(self.alignment);
        }
        let padded = (file.len() as u64).next_multiple_of(self.alignment);
        file.resize(usize::try_from(padded).unwrap(), 0);
        file
    }

    /// The length of the whole file: like us, llama.cpp does not need the last tensor's padding.
    pub(crate) fn file_bytes(&self) -> u64 {
        let mut end = self.header().len() as u64;
        for tensor in &self.tensors {
            end = end.next_multiple_of(self.alignment) + tensor.bytes;
        }
        end
    }

    /// Which part of a split model this is, as `llama-gguf-split` writes it.
    pub(crate) fn part(self, number: u16, count: u16, tensors: i32) -> Self {
        self.pair("split.no", 2, &number.to_le_bytes())
            .pair("split.count", 2, &count.to_le_bytes())
            .pair("split.tensors.count", 5, &tensors.to_le_bytes())
    }

    /// Adds the tensors of another file.
    pub(crate) fn take_tensors(&mut self, other: &Self) {
        self.tensors.extend(other.tensors.iter().cloned());
    }

    /// The whole file, with holes for tensors.
    pub(crate) fn write(&self, path: &Path) {
        let mut file = File::create(path).unwrap();
        file.write_all(&self.header()).unwrap();
        file.set_len(self.file_bytes()).unwrap();
    }

    pub(crate) fn read(&self) -> Result<ModelAccount, Error> {
        // Only the header is read, whatever the announced length of the file.
        tierbar_gguf::read_from(&self.header()[..], self.file_bytes(), "test.gguf")
    }
}

fn string(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}
