//! The form of a context's file, and reading it: a state, then its description as JSON, then a footer.
//!
//! | part | bytes |
//! |---|---|
//! | state | llama.cpp's `GGSQ` file: magic, version, count of tokens, the tokens, the cells; from version 2 on compressed ([`packed`]) |
//! | way back | version 1 only, and maybe, of [`EarlierEnd`]: what the model has forgotten since then |
//! | about | JSON, [`ContextDescription`] |
//! | footer | length of the JSON (u32), checksum of all before it, magic (8 bytes); little-endian |
//!
//! Version 1 (`TIERCTX1`) has a CRC-32. Swapped-out conversations are written in it, since a worker has seconds to end, and
//! so were all contexts once. Version 2 (`TIERCTX2`) has a SHA-256, by which two copies can be compared. Version 3 (`TIERCTX3`)
//! differs in that the state is in its compact form ([`crate::compact`]), which earlier programs would misread.

use crate::{
    Compression, ContextDescription, EarlierEnd,
    compact::CompactReader,
    draft::{check_room, draft_in},
    packed::UnpackReader,
    storage_error,
};
use sha2::{Digest, Sha256};
use std::{
    fs::{File, OpenOptions},
    io::{self, BufReader, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};
use tempfile::TempPath;
use tierbar_core::{Code, Error, config::ContextForm};

pub(crate) const MAGIC: [u8; 8] = *b"TIERCTX1";
const FOOTER: u64 = 16;
pub(crate) const PACKED_MAGIC: [u8; 8] = *b"TIERCTX2";
pub(crate) const COMPACT_MAGIC: [u8; 8] = *b"TIERCTX3";
/// Of all versions: those that follow as well.
const MAGIC_START: &[u8] = b"TIERCTX";
pub(crate) const PACKED_FOOTER: u64 = 4 + 32 + 8;
/// A name, a model, a key: some hundreds of bytes.
const LONGEST_ABOUT: u32 = 64 << 10;
/// The most tokens of a state, four times what models can read.
const MOST_TOKENS: u32 = 4 << 20;
/// llama.cpp's `LLAMA_STATE_SEQ_MAGIC`, "ggsq".
pub(crate) const STATE_MAGIC: u32 = 0x6767_7371;
/// Feeds the file's first bytes to a checksum.
pub(crate) fn feed(file: &mut File, bytes: u64, mut sum: impl FnMut(&[u8])) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    let mut left = file.take(bytes);
    let mut buffer = Vec::new();
    while left.limit() > 0 {
        buffer.clear();
        if left.by_ref().take(1 << 20).read_to_end(&mut buffer)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        sum(&buffer);
    }
    Ok(())
}

pub(crate) fn read_description(path: &Path) -> io::Result<ContextDescription> {
    read_end(&mut File::open(path)?).map(|end| end.saved)
}

#[derive(PartialEq, Eq)]
enum Sum {
    Crc32(u32),
    Sha256([u8; 32]),
}

struct End {
    saved: ContextDescription,
    sum: Sum,
    /// Where the JSON begins.
    about: u64,
    /// Where the footer begins: the sum is of what comes before.
    at: u64,
}

fn invalid() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

/// Whether an error shows that a file is damaged. Any other, such as of a full disk, passes, and says nothing of the file.
pub(crate) fn is_damage(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
    )
}

fn read_end(file: &mut File) -> io::Result<End> {
    let bytes = file.metadata()?.len();
    let start = bytes.checked_sub(8).ok_or_else(invalid)?;
    let magic = read_at::<8>(file, start)?;
    let (at, json, sum) = if [PACKED_MAGIC, COMPACT_MAGIC].contains(&magic) {
        let at = bytes.checked_sub(PACKED_FOOTER).ok_or_else(invalid)?;
        let [a, b, c, d, sum @ ..] = read_at::<36>(file, at)?;
        (at, u32::from_le_bytes([a, b, c, d]), Sum::Sha256(sum))
    } else if magic == MAGIC {
        let at = bytes.checked_sub(FOOTER).ok_or_else(invalid)?;
        let [a, b, c, d, e, f, g, h] = read_at::<8>(file, at)?;
        let sum = u32::from_le_bytes([e, f, g, h]);
        (at, u32::from_le_bytes([a, b, c, d]), Sum::Crc32(sum))
    } else if magic.starts_with(MAGIC_START) && magic[7].is_ascii_digit() {
        return Err(io::ErrorKind::Unsupported.into());
    } else {
        return Err(invalid());
    };
    if json > LONGEST_ABOUT || u64::from(json) > at {
        return Err(invalid());
    }
    let about = at - u64::from(json);
    file.seek(SeekFrom::Start(about))?;
    let mut description = vec![0; json as usize];
    file.read_exact(&mut description)?;
    let mut saved: ContextDescription =
        serde_json::from_slice(&description).map_err(|_| invalid())?;
    let expected = match saved.packed.map(|packed| packed.form) {
        None => MAGIC,
        Some(ContextForm::Exact) => PACKED_MAGIC,
        Some(ContextForm::Compact) => COMPACT_MAGIC,
    };
    if magic != expected {
        return Err(invalid());
    }
    saved.bytes = bytes;
    Ok(End {
        saved,
        sum,
        about,
        at,
    })
}

fn read_at<const COUNT: usize>(file: &mut File, at: u64) -> io::Result<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Checks the whole file against its checksum: only then may llama.cpp, which trusts its bytes, read it.
///
/// # Errors
/// What reading it gives; `InvalidData` if it is no context, or damaged.
pub(crate) fn check(path: &Path) -> io::Result<()> {
    let mut file = File::open(path)?;
    let End { sum, at, .. } = read_end(&mut file)?;
    let found = match sum {
        Sum::Crc32(_) => {
            let mut found = crc32fast::Hasher::new();
            feed(&mut file, at, |bytes| found.update(bytes))?;
            Sum::Crc32(found.finalize())
        }
        Sum::Sha256(_) => {
            let mut found = Sha256::new();
            feed(&mut file, at, |bytes| found.update(bytes))?;
            Sum::Sha256(found.finalize().into())
        }
    };
    match found == sum {
        true => Ok(()),
        false => Err(invalid()),
    }
}

/// A state in the form that llama.cpp reads.
#[derive(Debug)]
pub enum State {
    /// The saved context's own file.
    InPlace(PathBuf),
    /// A copy that is removed with this.
    Unpacked(TempPath),
}

impl AsRef<Path> for State {
    fn as_ref(&self) -> &Path {
        match self {
            Self::InPlace(path) => path,
            Self::Unpacked(path) => path,
        }
    }
}

/// Checks the whole file against its checksum.
///
/// # Errors
/// [`Code::Corrupt`] if it is damaged, [`Code::Storage`] if it cannot be read now.
pub fn verify(path: &Path) -> Result<(), Error> {
    check(path).map_err(|error| unusable(path, &error))
}

fn unusable(path: &Path, error: &io::Error) -> Error {
    if is_damage(error) {
        return Error::new(Code::Corrupt, format!("{} is damaged", path.display()))
            .hint("delete it and save it again");
    }
    storage_error("cannot read or unpack", path, error)
}

/// The state of a file that has been found whole.
///
/// # Errors
/// [`Code::Storage`] if it cannot be read, or there is no room for the copy; [`Code::Corrupt`] if it has another length than
/// it says.
pub fn state(path: &Path) -> Result<State, Error> {
    let failed = |error: io::Error| unusable(path, &error);
    let mut file = File::open(path).map_err(failed)?;
    let end = read_end(&mut file).map_err(failed)?;
    let Some(packed) = end.saved.packed else {
        return Ok(State::InPlace(path.to_owned()));
    };
    check_room(path, packed.raw_bytes)?;
    let unpack = || {
        let copy = draft_in(path.parent().unwrap_or(Path::new(".")))?;
        let out = OpenOptions::new().write(true).open(&copy)?;
        // One more than it should have, to see that there are not more.
        let mut raw = open_unpacked(file, &end, packed)?.take(packed.raw_bytes.saturating_add(1));
        let length = io::copy(&mut raw, &mut &out)?;
        if length != packed.raw_bytes {
            return Err(invalid());
        }
        Ok(copy)
    };
    unpack().map(State::Unpacked).map_err(failed)
}

fn open_unpacked(mut file: File, end: &End, packed: Compression) -> io::Result<Box<dyn Read>> {
    file.seek(SeekFrom::Start(0))?;
    let unpacked = UnpackReader::new(BufReader::new(file.take(end.about)), packed.halves)?;
    Ok(match packed.form {
        ContextForm::Exact => Box::new(unpacked),
        ContextForm::Compact => Box::new(CompactReader::new(unpacked)),
    })
}

/// The way back that a file has, with the number of tokens that it leads to. The file has been found whole.
///
/// # Errors
/// What reading it gives.
pub fn read_earlier_end(path: &Path) -> io::Result<Option<(usize, Vec<u8>)>> {
    let mut file = File::open(path)?;
    let End { saved, about, .. } = read_end(&mut file)?;
    let Some(EarlierEnd { tokens, bytes }) = saved.back else {
        return Ok(None);
    };
    let start = about.checked_sub(bytes).ok_or_else(invalid)?;
    file.seek(SeekFrom::Start(start))?;
    let mut state = vec![0; usize::try_from(bytes).map_err(|_| invalid())?];
    file.read_exact(&mut state)?;
    Ok(Some((tokens, state)))
}

pub(crate) fn tokens(path: &Path) -> io::Result<Vec<i32>> {
    let mut file = File::open(path)?;
    let end = read_end(&mut file)?;
    match end.saved.packed {
        Some(packed) => tokens_in(open_unpacked(file, &end, packed)?, packed.raw_bytes),
        None => {
            file.seek(SeekFrom::Start(0))?;
            tokens_in(file, end.about)
        }
    }
}

/// `bytes`: the most that there can be.
fn tokens_in(mut state: impl Read, bytes: u64) -> io::Result<Vec<i32>> {
    let mut word = || -> io::Result<u32> {
        let mut word = [0; 4];
        state.read_exact(&mut word)?;
        Ok(u32::from_le_bytes(word))
    };
    let (magic, _version, count) = (word()?, word()?, word()?);
    if magic != STATE_MAGIC || count > MOST_TOKENS || u64::from(count) * 4 > bytes {
        return Err(invalid());
    }
    let mut raw = vec![0; count as usize * 4];
    state.read_exact(&mut raw)?;
    let (words, _) = raw.as_chunks::<4>();
    Ok(words.iter().map(|word| i32::from_le_bytes(*word)).collect())
}
