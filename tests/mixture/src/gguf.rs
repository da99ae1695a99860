//! GGUF files, as far as SmolLM2's needs reading and a mixture needs writing.

use crate::quant::{BY_NUMBER, Quant};
use anyhow::{Context, Result, bail, ensure};
use std::{
    fs::File,
    io::{BufWriter, Write},
    path::Path,
};

const ALIGNMENT: usize = 32;
const SHORT: u32 = 2;
const NUMBER: u32 = 4;
const INTEGER: u32 = 5;
const FLOAT: u32 = 6;
const FLAG: u32 = 7;
const TEXT: u32 = 8;
const LIST: u32 = 9;

/// A key with its value.
#[derive(Clone)]
pub(crate) struct Pair {
    pub(crate) key: String,
    /// The value's type and bytes, as in the file.
    value: Vec<u8>,
}

/// A tensor's name, shape and quant.
#[derive(Clone)]
pub(crate) struct Head {
    pub(crate) name: String,
    /// The length of a row first.
    pub(crate) shape: Vec<u64>,
    /// ggml's number of the quant.
    pub(crate) kind: u32,
    pub(crate) bytes: usize,
}

/// A tensor of a file that was read.
pub(crate) struct Tensor<'a> {
    pub(crate) head: Head,
    pub(crate) data: &'a [u8],
}

pub(crate) struct Model<'a> {
    pub(crate) pairs: Vec<Pair>,
    pub(crate) tensors: Vec<Tensor<'a>>,
}

/// A tensor to write. Its bytes are made when it is its turn: a mixture is larger than its tests should hold in memory.
pub(crate) struct Made<'a> {
    pub(crate) head: Head,
    pub(crate) data: Box<dyn Fn() -> Result<Vec<u8>> + 'a>,
}

/// Writes a file.
///
/// # Errors
/// If a tensor's bytes cannot be made, or do not match its shape, or the file cannot be written.
pub(crate) fn write(to: &Path, pairs: &[Pair], tensors: &[Made<'_>]) -> Result<()> {
    let file = File::create(to).with_context(|| to.display().to_string())?;
    let mut file = BufWriter::with_capacity(1 << 20, file);
    let mut header = b"GGUF".to_vec();
    header.extend(3_u32.to_le_bytes());
    header.extend((tensors.len() as u64).to_le_bytes());
    header.extend((pairs.len() as u64).to_le_bytes());
    for pair in pairs {
        header.extend(text(&pair.key));
        header.extend(&pair.value);
    }
    let mut offset = 0;
    for Made { head, .. } in tensors {
        header.extend(head.written(offset)?);
        offset = (offset + head.bytes as u64).next_multiple_of(ALIGNMENT as u64);
    }
    write_padded(&mut file, header)?;
    for Made { head, data } in tensors {
        let data = data()?;
        ensure!(
            data.len() == head.bytes,
            "{} has {} bytes instead of {}",
            head.name,
            data.len(),
            head.bytes
        );
        write_padded(&mut file, data)?;
    }
    Ok(file.flush()?)
}

fn write_padded(file: &mut impl Write, mut bytes: Vec<u8>) -> Result<()> {
    bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
    Ok(file.write_all(&bytes)?)
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat()
}

impl Pair {
    fn new(key: impl Into<String>, kind: u32, bytes: &[u8]) -> Self {
        let value = [&kind.to_le_bytes()[..], bytes].concat();
        let key = key.into();
        Self { key, value }
    }

    pub(crate) fn number(key: impl Into<String>, value: u32) -> Self {
        Self::new(key, NUMBER, &value.to_le_bytes())
    }

    /// A number of 16 bits.
    pub(crate) fn short(key: impl Into<String>, value: u16) -> Self {
        Self::new(key, SHORT, &value.to_le_bytes())
    }

    pub(crate) fn integer(key: impl Into<String>, value: i32) -> Self {
        Self::new(key, INTEGER, &value.to_le_bytes())
    }

    pub(crate) fn float(key: impl Into<String>, value: f32) -> Self {
        Self::new(key, FLOAT, &value.to_le_bytes())
    }

    pub(crate) fn text(key: impl Into<String>, value: &str) -> Self {
        Self::new(key, TEXT, &text(value))
    }

    pub(crate) fn integers(key: impl Into<String>, values: &[i32]) -> Self {
        let values: Vec<[u8; 4]> = values.iter().map(|value| value.to_le_bytes()).collect();
        Self::list(key, INTEGER, &values)
    }

    pub(crate) fn flags(key: impl Into<String>, values: &[bool]) -> Self {
        let values: Vec<[u8; 1]> = values.iter().map(|&value| [u8::from(value)]).collect();
        Self::list(key, FLAG, &values)
    }

    fn list<const N: usize>(key: impl Into<String>, kind: u32, values: &[[u8; N]]) -> Self {
        let count = (values.len() as u64).to_le_bytes();
        let bytes = [&kind.to_le_bytes()[..], &count, values.as_flattened()].concat();
        Self::new(key, LIST, &bytes)
    }

    fn as_number(&self) -> Option<u32> {
        let bytes = self.value.strip_prefix(&NUMBER.to_le_bytes())?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }

    /// How many values a list has.
    fn as_list_length(&self) -> Option<u64> {
        let list = self.value.strip_prefix(&LIST.to_le_bytes())?;
        Some(u64::from_le_bytes(list.get(4..12)?.try_into().ok()?))
    }
}

impl Head {
    pub(crate) fn new(name: impl Into<String>, quant: Quant, shape: &[u64]) -> Result<Self> {
        Ok(Self {
            name: name.into(),
            shape: shape.to_vec(),
            kind: quant.number,
            bytes: quant.bytes_of(shape)?,
        })
    }

    fn written(&self, offset: u64) -> Result<Vec<u8>> {
        let mut head = text(&self.name);
        head.extend(u32::try_from(self.shape.len())?.to_le_bytes());
        head.extend(self.shape.iter().flat_map(|side| side.to_le_bytes()));
        head.extend(self.kind.to_le_bytes());
        head.extend(offset.to_le_bytes());
        Ok(head)
    }
}

impl<'a> Model<'a> {
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self> {
        let mut at = Cursor { bytes, at: 0 };
        ensure!(at.take(4)? == b"GGUF", "not a GGUF file");
        at.u32()?;
        let (tensors, pairs) = (at.u64()?, at.u64()?);
        let pairs = (0..pairs).map(|_| at.pair()).collect::<Result<_>>()?;
        let heads: Vec<_> = (0..tensors).map(|_| at.tensor()).collect::<Result<_>>()?;
        let start = at.at.next_multiple_of(ALIGNMENT);
        let ends = heads.iter().skip(1).map(|(_, offset)| *offset);
        let ends = ends.chain([bytes.len().saturating_sub(start)]);
        let tensors = heads.iter().zip(ends).map(|((head, offset), end)| {
            let whole = bytes.get(start + offset..start + end);
            let whole = whole.context("a tensor is cut short")?;
            // Up to its own end, before the padding.
            let length = match BY_NUMBER.iter().find(|quant| quant.number == head.kind) {
                Some(quant) => quant.bytes_of(&head.shape)?,
                None => whole.len(),
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

    fn pair(&self, key: &str) -> Option<&Pair> {
        self.pairs.iter().find(|pair| pair.key == key)
    }

    pub(crate) fn number(&self, key: &str) -> Result<u32> {
        let number = self.pair(key).and_then(Pair::as_number);
        number.with_context(|| format!("the model has no number {key}"))
    }

    /// Returns the pairs with this number in place of what the key has.
    pub(crate) fn pairs_with(&self, key: &str, number: u32) -> Vec<Pair> {
        let others = self.pairs.iter().filter(|pair| pair.key != key);
        others.cloned().chain([Pair::number(key, number)]).collect()
    }

    pub(crate) fn list_length(&self, key: &str) -> Result<u64> {
        let length = self.pair(key).and_then(Pair::as_list_length);
        length.with_context(|| format!("the model has no list {key}"))
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let end = self.at.checked_add(count);
        let taken = end.and_then(|end| self.bytes.get(self.at..end));
        let taken = taken.context("the header is cut short")?;
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

    fn text(&mut self) -> Result<String> {
        let length = self.length()?;
        Ok(String::from_utf8(self.take(length)?.to_vec())?)
    }

    fn pair(&mut self) -> Result<Pair> {
        let key = self.text()?;
        let start = self.at;
        let kind = self.u32()?;
        self.value(kind)?;
        let value = self.bytes[start..self.at].to_vec();
        Ok(Pair { key, value })
    }

    fn value(&mut self, kind: u32) -> Result<()> {
        let size = match kind {
            0 | 1 | FLAG => 1,
            2 | 3 => 2,
            NUMBER | INTEGER | FLOAT => 4,
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

    /// A tensor's head, but for its bytes, and where it lies.
    fn tensor(&mut self) -> Result<(Head, usize)> {
        let head = Head {
            name: self.text()?,
            shape: (0..self.u32()?)
                .map(|_| self.u64())
                .collect::<Result<_>>()?,
            kind: self.u32()?,
            bytes: 0,
        };
        Ok((head, self.length()?))
    }
}
