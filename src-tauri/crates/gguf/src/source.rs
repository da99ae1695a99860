//! Bytes of known total length, read front to back.

use crate::fault::{Fault, invalid};
use std::io::{self, BufRead, Read};

/// Gemma 3's header, with a vocabulary of 262,144 tokens, has 6.2 MiB. A longer one than this is made to keep us
/// reading.
const MAX_HEADER_BYTES: u64 = 128 << 20;
/// llama.cpp reads no longer string. A longer one is damage, not a download that stopped.
const MAX_STRING_BYTES: u64 = 1 << 30;
/// The words of a vocabulary and their merges are far shorter.
const MAX_LISTED_BYTES: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct HeaderReader<R> {
    inner: R,
    position: u64,
    total: u64,
}

impl<R: BufRead> HeaderReader<R> {
    pub(crate) fn new(inner: R, total: u64) -> Self {
        Self {
            inner,
            position: 0,
            total,
        }
    }

    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    pub(crate) fn remaining(&self) -> u64 {
        self.total - self.position
    }

    /// Fails unless `bytes` more are there, and may be of a header.
    pub(crate) fn expect(&self, bytes: u64) -> Result<(), Fault> {
        match bytes.saturating_sub(self.remaining()) {
            0 if bytes > MAX_HEADER_BYTES.saturating_sub(self.position) => invalid(format!(
                "its header is longer than {} MiB",
                MAX_HEADER_BYTES >> 20
            )),
            0 => Ok(()),
            missing => Err(self.truncated(missing)),
        }
    }

    fn truncated(&self, missing: u64) -> Fault {
        Fault::Truncated {
            missing,
            of: self.total.saturating_add(missing),
        }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Fault> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Fault> {
        self.array().map(u64::from_le_bytes)
    }

    /// The length of the string that follows, which is there in full.
    pub(crate) fn string_length(&mut self) -> Result<u64, Fault> {
        let length = self.u64()?;
        if length > MAX_STRING_BYTES {
            return invalid(format!("a string in its header claims {length} bytes"));
        }
        self.expect(length)?;
        Ok(length)
    }

    /// A string that must be UTF-8 and no longer than `most` bytes.
    pub(crate) fn name(&mut self, most: u64, what: &str) -> Result<String, Fault> {
        let length = self.string_length()?;
        if length > most {
            return invalid(format!(
                "a {what} in its header has {length} bytes, more than {most}"
            ));
        }
        match String::from_utf8(self.bytes(length)?) {
            Ok(name) if !name.contains(char::is_control) => Ok(name),
            _ => invalid(format!("a {what} in its header is not valid UTF-8")),
        }
    }

    /// Exactly `length` bytes; the caller bounds the length.
    pub(crate) fn bytes(&mut self, length: u64) -> Result<Vec<u8>, Fault> {
        self.expect(length)?;
        let Ok(room) = usize::try_from(length) else {
            return invalid("a string does not fit this machine");
        };
        let mut bytes = vec![0; room];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    pub(crate) fn skip(&mut self, length: u64) -> Result<(), Fault> {
        self.expect(length)?;
        let read =
            io::copy(&mut self.inner.by_ref().take(length), &mut io::sink()).map_err(Fault::Io)?;
        self.position += read;
        // The file was shortened while it was read.
        if read < length {
            Err(self.truncated(length - read))
        } else {
            Ok(())
        }
    }

    /// Shows each of `count` strings, such as the words of a vocabulary, of which there are hundreds of thousands.
    pub(crate) fn strings(
        &mut self,
        mut count: u64,
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), Fault> {
        while count > 0 {
            let there = match self.inner.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                there => there.map_err(Fault::Io)?,
            };
            let most = usize::try_from(self.total - self.position).unwrap_or(usize::MAX);
            let mut rest = &there[..there.len().min(most)];
            let before = rest.len();
            // Those that lie in the buffer in full.
            while count > 0
                && let Some((length, behind)) = rest.split_first_chunk()
                && let length @ ..=MAX_LISTED_BYTES = u64::from_le_bytes(*length)
                && let Ok(length) = usize::try_from(length)
                && let Some((string, next)) = behind.split_at_checked(length)
            {
                each(string);
                rest = next;
                count -= 1;
            }
            let passed = before - rest.len();
            self.expect(passed as u64)?;
            self.inner.consume(passed);
            self.position += passed as u64;
            if count > 0 {
                let length = self.string_length()?;
                if length > MAX_LISTED_BYTES {
                    return invalid(format!(
                        "a string in a list of its header has {length} bytes, more than {MAX_LISTED_BYTES}"
                    ));
                }
                each(&self.bytes(length)?);
                count -= 1;
            }
        }
        Ok(())
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Fault> {
        let length = bytes.len() as u64;
        self.expect(length)?;
        self.inner
            .read_exact(bytes)
            .map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => self.truncated(length),
                _ => Fault::Io(error),
            })?;
        self.position += length;
        Ok(())
    }
}
