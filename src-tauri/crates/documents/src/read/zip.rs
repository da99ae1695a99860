//! The files in an archive (PKWARE's APPNOTE, 4.3), as far as documents use them: stored or deflated, not encrypted.

use super::Refusal;
use crate::charset;
use flate2::read::DeflateDecoder;
use std::{collections::HashMap, io::Read};

/// The most bytes that one file of an archive unpacks to.
const LONGEST: u64 = 128 << 20;
/// So many bytes of a part tell what it is.
const HEAD: u64 = 4096;
const MOST_FILES: usize = 20_000;
/// The end of the central directory is in the last bytes, behind a comment of at most 64 KiB.
const TAIL: usize = 22 + (64 << 10);

#[derive(Debug)]
struct Entry {
    at: usize,
    packed: usize,
    deflated: bool,
    encrypted: bool,
}

#[derive(Debug)]
pub(crate) struct Archive<'a> {
    bytes: &'a [u8],
    entries: HashMap<String, Entry>,
}

impl<'a> Archive<'a> {
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self, Refusal> {
        let damaged = || Refusal::new("This file is damaged: its archive has no directory.");
        let from = bytes.len().saturating_sub(TAIL);
        let end = bytes[from..]
            .windows(4)
            .rposition(|four| four == b"PK\x05\x06");
        let end = from + end.ok_or_else(damaged)?;
        let count = usize::from(u16_at(bytes, end + 10).ok_or_else(damaged)?).min(MOST_FILES);
        let mut at = usize_at(bytes, end + 16).ok_or_else(damaged)?;
        let mut entries = HashMap::new();
        for _ in 0..count {
            let Some(next) = Self::entry(bytes, at, &mut entries) else {
                break;
            };
            at = next;
        }
        Ok(Self { bytes, entries })
    }

    /// Reads one line of the directory; returns where the next is.
    fn entry(bytes: &[u8], at: usize, entries: &mut HashMap<String, Entry>) -> Option<usize> {
        if bytes.get(at..at.checked_add(4)?)? != b"PK\x01\x02" {
            return None;
        }
        let name_length = usize::from(u16_at(bytes, at + 28)?);
        let rest = usize::from(u16_at(bytes, at + 30)?) + usize::from(u16_at(bytes, at + 32)?);
        let name = bytes.get(at + 46..at + 46 + name_length)?;
        let entry = Entry {
            at: usize_at(bytes, at + 42)?,
            packed: usize_at(bytes, at + 20)?,
            deflated: u16_at(bytes, at + 10)? == 8,
            encrypted: u16_at(bytes, at + 8)? & 1 == 1,
        };
        entries.insert(String::from_utf8_lossy(name).into_owned(), entry);
        Some(at + 46 + name_length + rest)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// Returns a part as text; an empty one if there is none.
    ///
    /// # Errors
    /// If it is encrypted, damaged, or unpacks to more than 128 MB.
    pub(crate) fn text(&self, name: &str) -> Result<String, Refusal> {
        let bytes = self.unpack(name, LONGEST + 1)?;
        if bytes.len() as u64 > LONGEST {
            let most = LONGEST >> 20;
            let sentence = format!("This file unpacks to more than {most} MB, and is not read.");
            return Err(Refusal::new(sentence));
        }
        Ok(decode_name(&bytes))
    }

    /// Returns the beginning of a part as text, as far as it can be unpacked.
    pub(crate) fn head(&self, name: &str) -> String {
        decode_name(&self.unpack(name, HEAD).unwrap_or_default())
    }

    fn unpack(&self, name: &str, most: u64) -> Result<Vec<u8>, Refusal> {
        let Some(entry) = self.entries.get(name) else {
            return Ok(Vec::new());
        };
        if entry.encrypted {
            return Err(Refusal::new("This file is encrypted with a password."));
        }
        let packed = self
            .packed(entry)
            .ok_or_else(|| Refusal::new("This file is damaged: its archive is cut off."))?;
        if !entry.deflated {
            return Ok(packed.to_vec());
        }
        let mut unpacked = Vec::new();
        DeflateDecoder::new(packed)
            .take(most)
            .read_to_end(&mut unpacked)
            .map_err(|_| Refusal::new("This file is damaged: its archive cannot be unpacked."))?;
        Ok(unpacked)
    }

    /// Behind the file's own header, whose name and extra field may be longer than the directory's.
    fn packed(&self, entry: &Entry) -> Option<&'a [u8]> {
        let name = usize::from(u16_at(self.bytes, entry.at.checked_add(26)?)?);
        let extra = usize::from(u16_at(self.bytes, entry.at + 28)?);
        let start = entry.at + 30 + name + extra;
        self.bytes.get(start..start.checked_add(entry.packed)?)
    }
}

/// Office's XML is in UTF-8, or begins with the mark of UTF-16.
fn decode_name(bytes: &[u8]) -> String {
    let decoded = charset::decode(bytes, Some("utf-8"), false);
    decoded.map_or_else(
        || String::from_utf8_lossy(bytes).into_owned(),
        |decoded| decoded.text,
    )
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn usize_at(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?)).ok()
}
