//! The header itself: key-value pairs, then the tensors' names, shapes, types and places.

use crate::{
    fault::{Fault, invalid, unsupported},
    ggml::{self, TensorType},
    source::HeaderReader,
    template::{self, Template},
    vocabulary::{self, Vocabulary},
};
use std::{
    collections::{HashMap, HashSet},
    fs::File,
    io::{BufRead, BufReader},
    path::Path,
};
use tierbar_core::{Code, Error};

/// Far above any published model; a larger count is damage, and llama.cpp compares each with each.
const MAX_PAIRS: u64 = 1 << 12;
pub(crate) const MAX_TENSORS: u64 = 1 << 14;
/// The format's own limit of a key.
const MAX_KEY_BYTES: u64 = u16::MAX as u64;
/// ggml's `GGML_MAX_NAME`, less its closing zero.
const MAX_TENSOR_NAME_BYTES: u64 = 63;
const MAX_DIMENSIONS: u32 = 4;
/// Names and words are short. Longer texts, such as licences, count by their presence.
const KEPT_TEXT_BYTES: u64 = 4096;
/// llama.cpp's `LLAMA_MAX_LAYERS`: values per layer are kept, tables of the tokenizer are not.
pub(crate) const MAX_LAYERS: u32 = 512;
/// Lists with a value per layer; models have a handful. A byte of a list takes sixteen of memory.
const MAX_KEPT_LISTS: usize = 256;
const DEFAULT_ALIGNMENT: u64 = 32;
/// Tokenizers make headers of some megabytes, mostly of short strings.
const BUFFER_BYTES: usize = 256 << 10;

/// The least that a pair (key length, key, type, value) and a tensor (name length, dimensions, type, offset) take.
const PAIR_BYTES: u64 = 8 + 1 + 4 + 1;
const TENSOR_BYTES: u64 = 8 + 4 + 4 + 8;

#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) pairs: HashMap<String, HeaderValue>,
    pub(crate) vocabulary: Vocabulary,
    pub(crate) tensors: Vec<Tensor>,
}

/// A value, as far as an account can need it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum HeaderValue {
    Integer(i128),
    Bool(bool),
    /// A text of at most [`KEPT_TEXT_BYTES`].
    Text(String),
    LongText,
    /// A chat template, by what was found in it.
    Template(Template),
    Float(f64),
    Array(Array),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Array {
    /// The type of its elements, one of [`kind`].
    pub(crate) element: u32,
    pub(crate) length: u64,
    /// Those of a short array of integers or booleans.
    pub(crate) elements: Option<Vec<i128>>,
}

/// A tensor, and where it lies in a model's files.
#[derive(Debug)]
pub struct Tensor {
    pub name: String,
    pub(crate) kind: TensorType,
    /// Elements of a row: the size of its first dimension.
    pub(crate) width: u64,
    pub(crate) elements: u64,
    pub bytes: u64,
    /// Bytes from the start of its file.
    pub offset: u64,
    /// The number of its file, from 0.
    pub part: u16,
}

/// The header, and the file's length.
pub(crate) fn open_header(path: &Path) -> Result<(Header, u64), Error> {
    let shown = path.display();
    let missing = |error: std::io::Error| {
        Error::new(
            Code::ModelMissing,
            format!("the model {shown} cannot be opened: {error}"),
        )
        .hint("check the path, and that its volume is connected")
    };
    // Before opening: opening a pipe would wait for its writer.
    let metadata = path.metadata().map_err(missing)?;
    if !metadata.is_file() {
        return Err(
            Error::new(Code::ModelMissing, format!("{shown} is not a file"))
                .hint("choose a .gguf file"),
        );
    }
    let bytes = metadata.len();
    let file = BufReader::with_capacity(BUFFER_BYTES, File::open(path).map_err(missing)?);
    read_header(&mut HeaderReader::new(file, bytes))
        .map(|header| (header, bytes))
        .map_err(|fault| fault.into_error(shown))
}

/// Fails, besides, if the file ends before its last tensor.
pub(crate) fn read_header<R: BufRead>(source: &mut HeaderReader<R>) -> Result<Header, Fault> {
    read_preamble(source)?;
    let tensor_count = read_count(source, MAX_TENSORS, "tensors")?;
    let pair_count = read_count(source, MAX_PAIRS, "key-value pairs")?;
    source.expect(pair_count * PAIR_BYTES + tensor_count * TENSOR_BYTES)?;

    let (mut pairs, mut lists) = (HashMap::new(), 0);
    let mut vocabulary = Vocabulary::default();
    for _ in 0..pair_count {
        let key = source.name(MAX_KEY_BYTES, "key")?;
        if key.is_empty() {
            return invalid("a key in its header is empty");
        }
        let value = read_value(source, &key, &mut vocabulary)?;
        lists +=
            usize::from(matches!(&value, HeaderValue::Array(array) if array.elements.is_some()));
        if lists > MAX_KEPT_LISTS {
            return invalid(format!(
                "its header has more than {MAX_KEPT_LISTS} lists of numbers"
            ));
        }
        if pairs.insert(key.clone(), value).is_some() {
            return invalid(format!("its header has the key {key} twice"));
        }
    }
    let alignment = alignment(&pairs)?;
    let mut tensors = Vec::new();
    for _ in 0..tensor_count {
        tensors.push(read_tensor(source)?);
    }
    let start = pad(source.position(), alignment)?;
    let end = place_tensors(&tensors, start, alignment)?;
    for tensor in &mut tensors {
        tensor.offset = tensor.offset.saturating_add(start);
    }
    match end.saturating_sub(source.total()) {
        missing @ 1.. => Err(Fault::Truncated { missing, of: end }),
        0 => Ok(Header {
            pairs,
            vocabulary,
            tensors,
        }),
    }
}

fn read_preamble<R: BufRead>(source: &mut HeaderReader<R>) -> Result<(), Fault> {
    if source.total() == 0 {
        return invalid("it is empty");
    }
    let beginning = source.bytes(source.remaining().min(4))?;
    if !b"GGUF".starts_with(&beginning) {
        let shown = String::from_utf8_lossy(&beginning);
        let shown: String = shown
            .chars()
            .map(|c| if c.is_control() { '\u{fffd}' } else { c })
            .collect();
        return invalid(format!("it is not a GGUF file: it begins with \"{shown}\""));
    }
    source.expect(4 - beginning.len() as u64)?;
    match source.u32()? {
        2 | 3 => Ok(()),
        0 => invalid("its GGUF version is 0"),
        1 => unsupported(
            "it is GGUF version 1",
            "convert the original model again, to version 2 or 3",
        ),
        version if version & 0xffff == 0 => unsupported(
            "it is a big-endian GGUF file",
            "download the little-endian file of this model",
        ),
        version => unsupported(
            format!("it is GGUF version {version}, and 2 and 3 are read"),
            "update Tierbar, or choose an older file of this model",
        ),
    }
}

fn read_count<R: BufRead>(
    source: &mut HeaderReader<R>,
    most: u64,
    what: &str,
) -> Result<u64, Fault> {
    let count = source.u64()?;
    if count > most {
        return invalid(format!(
            "its header claims {count} {what}, more than {most}"
        ));
    }
    Ok(count)
}

/// The numbers of the format's value types.
pub(crate) mod kind {
    pub(crate) const U8: u32 = 0;
    pub(crate) const I8: u32 = 1;
    pub(crate) const U16: u32 = 2;
    pub(crate) const I16: u32 = 3;
    pub(crate) const U32: u32 = 4;
    pub(crate) const I32: u32 = 5;
    pub(crate) const F32: u32 = 6;
    pub(crate) const BOOL: u32 = 7;
    pub(crate) const STRING: u32 = 8;
    pub(crate) const ARRAY: u32 = 9;
    pub(crate) const U64: u32 = 10;
    pub(crate) const I64: u32 = 11;
    pub(crate) const F64: u32 = 12;
}

fn read_value<R: BufRead>(
    source: &mut HeaderReader<R>,
    key: &str,
    vocabulary: &mut Vocabulary,
) -> Result<HeaderValue, Fault> {
    match source.u32()? {
        kind::ARRAY => array(source, key, vocabulary).map(HeaderValue::Array),
        kind::STRING => {
            let length = source.string_length()?;
            if template::is_key(key) {
                if length > template::MAX_BYTES {
                    return invalid(format!(
                        "its chat template has {length} bytes, more than {}",
                        template::MAX_BYTES
                    ));
                }
                let text = source.bytes(length)?;
                return template::search_template(&String::from_utf8_lossy(&text))
                    .map(HeaderValue::Template);
            }
            if length > KEPT_TEXT_BYTES {
                source.skip(length)?;
                return Ok(HeaderValue::LongText);
            }
            let text = source.bytes(length)?;
            Ok(HeaderValue::Text(
                String::from_utf8_lossy(&text).into_owned(),
            ))
        }
        scalar => read_scalar(source, scalar, key),
    }
}

fn read_scalar<R: BufRead>(
    source: &mut HeaderReader<R>,
    kind: u32,
    key: &str,
) -> Result<HeaderValue, Fault> {
    Ok(match kind {
        kind::U8 => HeaderValue::Integer(source.array().map(u8::from_le_bytes)?.into()),
        kind::I8 => HeaderValue::Integer(source.array().map(i8::from_le_bytes)?.into()),
        kind::U16 => HeaderValue::Integer(source.array().map(u16::from_le_bytes)?.into()),
        kind::I16 => HeaderValue::Integer(source.array().map(i16::from_le_bytes)?.into()),
        kind::U32 => HeaderValue::Integer(source.u32()?.into()),
        kind::I32 => HeaderValue::Integer(source.array().map(i32::from_le_bytes)?.into()),
        kind::U64 => HeaderValue::Integer(source.u64()?.into()),
        kind::I64 => HeaderValue::Integer(source.array().map(i64::from_le_bytes)?.into()),
        kind::BOOL => HeaderValue::Bool(source.array::<1>()? != [0]),
        kind::F32 => HeaderValue::Float(source.array().map(f32::from_le_bytes)?.into()),
        kind::F64 => HeaderValue::Float(source.array().map(f64::from_le_bytes)?),
        other => {
            return invalid(format!(
                "the key {key} in its header has a value of an unknown type ({other})"
            ));
        }
    })
}

fn array<R: BufRead>(
    source: &mut HeaderReader<R>,
    key: &str,
    vocabulary: &mut Vocabulary,
) -> Result<Array, Fault> {
    let element = source.u32()?;
    let length = source.u64()?;
    let element_bytes = match element {
        kind::U8 | kind::I8 | kind::BOOL => 1,
        kind::U16 | kind::I16 => 2,
        kind::U32 | kind::I32 | kind::F32 => 4,
        // A string's length alone.
        kind::U64 | kind::I64 | kind::F64 | kind::STRING => 8,
        other => {
            return invalid(format!(
                "the key {key} in its header is an array of an unknown type ({other})"
            ));
        }
    };
    // llama.cpp's limit; it also keeps the product from overflowing.
    if length > 1 << 30 {
        return invalid(format!(
            "the key {key} in its header claims {length} elements"
        ));
    }
    source.expect(length * element_bytes)?;
    let mut elements = None;
    match (key, element) {
        (vocabulary::TOKENS, kind::STRING) => vocabulary.read_tokens(source, length)?,
        (vocabulary::TYPES, kind::I32) => vocabulary.read_types(source, length)?,
        (_, kind::STRING) => source.strings(length, |_| {})?,
        (_, kind::F32 | kind::F64) => source.skip(length * element_bytes)?,
        _ if length > u64::from(MAX_LAYERS) => source.skip(length * element_bytes)?,
        _ => {
            let number = |_| match read_scalar(source, element, key)? {
                HeaderValue::Bool(set) => Ok(set.into()),
                HeaderValue::Integer(integer) => Ok(integer),
                _ => invalid(format!(
                    "the key {key} in its header is not a list of numbers"
                )),
            };
            elements = Some((0..length).map(number).collect::<Result<_, _>>()?);
        }
    }
    Ok(Array {
        element,
        length,
        elements,
    })
}

fn alignment(pairs: &HashMap<String, HeaderValue>) -> Result<u64, Fault> {
    let alignment = match pairs.get("general.alignment") {
        None => return Ok(DEFAULT_ALIGNMENT),
        Some(HeaderValue::Integer(alignment)) => u32::try_from(*alignment).ok(),
        Some(_) => None,
    };
    match alignment {
        Some(alignment) if alignment.is_power_of_two() => Ok(alignment.into()),
        _ => invalid("its general.alignment is not a power of two"),
    }
}

fn read_tensor<R: BufRead>(source: &mut HeaderReader<R>) -> Result<Tensor, Fault> {
    let name = source.name(MAX_TENSOR_NAME_BYTES, "tensor's name")?;
    let dimensions = source.u32()?;
    if dimensions > MAX_DIMENSIONS {
        return invalid(format!("its tensor {name} has {dimensions} dimensions"));
    }
    let mut shape = [1; MAX_DIMENSIONS as usize];
    for size in &mut shape[..dimensions as usize] {
        *size = source.u64()?;
    }
    let too_large = || {
        Fault::Invalid(format!(
            "its tensor {name} has an impossible shape {shape:?}"
        ))
    };
    let elements = shape
        .iter()
        .try_fold(1u64, |product, &size| product.checked_mul(size))
        .filter(|&elements| elements > 0 && i64::try_from(elements).is_ok())
        .ok_or_else(too_large)?;
    let id = source.u32()?;
    let Some(kind) = ggml::tensor_type(id) else {
        return unsupported(
            format!("{name} has {}", ggml::unknown_type(id)),
            "update Tierbar, or choose another quant of this model",
        );
    };
    if shape[0] % kind.block_elements != 0 {
        return invalid(format!(
            "its tensor {name} has rows of {} elements, not a multiple of {}'s {}",
            shape[0], kind.name, kind.block_elements
        ));
    }
    let bytes = (elements / kind.block_elements)
        .checked_mul(kind.block_bytes)
        .ok_or_else(too_large)?;
    Ok(Tensor {
        kind,
        width: shape[0],
        elements,
        bytes,
        offset: source.u64()?,
        part: 0,
        name,
    })
}

/// Checks that the tensors are contiguous, as llama.cpp requires, and returns the end of the last one.
fn place_tensors(tensors: &[Tensor], start: u64, alignment: u64) -> Result<u64, Fault> {
    let too_large = || Fault::Invalid("its tensors are larger than any file".to_owned());
    let mut names = HashSet::new();
    let (mut next, mut end) = (0u64, start);
    for tensor in tensors {
        if !names.insert(tensor.name.as_str()) {
            return invalid(format!("it has the tensor {} twice", tensor.name));
        }
        if tensor.offset != next {
            return invalid(format!(
                "its tensor {} lies at {}, not at {next}",
                tensor.name, tensor.offset
            ));
        }
        let tensor_end = next.checked_add(tensor.bytes).ok_or_else(too_large)?;
        end = start.checked_add(tensor_end).ok_or_else(too_large)?;
        next = pad(tensor_end, alignment)?;
    }
    Ok(end)
}

fn pad(position: u64, alignment: u64) -> Result<u64, Fault> {
    match position.checked_next_multiple_of(alignment) {
        Some(padded) => Ok(padded),
        None => invalid("its tensors are larger than any file"),
    }
}
