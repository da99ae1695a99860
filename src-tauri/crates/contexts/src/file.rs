//! One file: a state, then its description as JSON, then a footer.
//!
//! | part | bytes |
//! |---|---|
//! | state | llama.cpp's `GGSQ` file: magic, version, count of tokens, the tokens, the cells; from version 2 on compressed ([`packed`]) |
//! | way back | version 1 only, and maybe, of [`Back`]: what the model has forgotten since then |
//! | about | JSON, [`Saved`] |
//! | footer | length of the JSON (u32), checksum of all before it, magic (8 bytes); little-endian |
//!
//! Version 1 (`TIERCTX1`) has a CRC-32. Swapped-out conversations are written in it, since a worker has seconds to end, and
//! so were all contexts once. Version 2 (`TIERCTX2`) has a SHA-256, by which two copies can be compared. Version 3 (`TIERCTX3`)
//! differs in that the state is in its compact form ([`crate::compact`]), which earlier programs would misread.

use crate::{
    Back, Key, Packed, Saved,
    compact::{self, Decoded},
    layout::layout,
    now,
    packed::{self, Unpacked},
    storage, taken,
};
use sha2::{Digest, Sha256};
use std::{
    ffi::OsStr,
    fs::{DirBuilder, File, OpenOptions},
    io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};
use tempfile::TempPath;
use tierbar_core::{
    Code, Error, ModelId,
    config::{ContextForm, KvCache},
    units::file_size,
    volume,
};

const MAGIC: [u8; 8] = *b"TIERCTX1";
const FOOTER: u64 = 16;
const PACKED_MAGIC: [u8; 8] = *b"TIERCTX2";
const COMPACT_MAGIC: [u8; 8] = *b"TIERCTX3";
/// Of all versions: those that follow as well.
const MAGIC_START: &[u8] = b"TIERCTX";
const PACKED_FOOTER: u64 = 4 + 32 + 8;
/// A name, a model, a key: some hundreds of bytes.
const LONGEST_ABOUT: u32 = 64 << 10;
/// llama.cpp's `LLAMA_STATE_SEQ_MAGIC`, "ggsq".
pub(crate) const STATE_MAGIC: u32 = 0x6767_7371;
const DRAFT: &str = ".draft-";

/// A state on its way to a name.
#[derive(Debug)]
pub struct Draft {
    name: String,
    path: TempPath,
    dest: PathBuf,
    back: Option<Back>,
    form: ContextForm,
    /// It outlives a power cut.
    durable: bool,
    /// A context that has the name is replaced.
    replaces: bool,
}

impl Draft {
    pub(crate) fn new(folder: &Path, name: &str, dest: PathBuf, durable: bool) -> io::Result<Self> {
        Ok(Self {
            name: name.to_owned(),
            path: draft_in(folder)?,
            dest,
            back: None,
            form: ContextForm::Exact,
            durable,
            replaces: true,
        })
    }

    /// Leaves a context that has the name as it is.
    ///
    /// # Errors
    /// [`Code::Conflict`] if there is one by now; from then on, it is an error of [`Self::seal`].
    pub fn without_replacing(self) -> Result<Self, Error> {
        // Also one that cannot be read.
        if self.dest.symlink_metadata().is_ok() {
            return Err(taken(&self.name, "this machine"));
        }
        Ok(Self {
            replaces: false,
            ..self
        })
    }

    /// The form that it gets, if the state has one: what is not recognized in it is kept exactly.
    #[must_use]
    pub fn in_form(self, form: ContextForm) -> Self {
        Self { form, ..self }
    }

    /// Where the state goes.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// # Errors
    /// [`Code::Storage`] with both figures if so many bytes do not fit on its volume, with a margin left.
    pub fn check_room(&self, bytes: u64) -> Result<(), Error> {
        // It is there twice while it is compressed.
        let copies = if self.durable { 2 } else { 1 };
        check_room(self.path(), bytes.saturating_mul(copies))
    }

    /// Adds the way back to where the state held so many tokens, behind the state.
    ///
    /// # Errors
    /// [`Code::Storage`] if it cannot be written.
    pub fn add_back(&mut self, tokens: usize, state: &[u8]) -> Result<(), Error> {
        let append = || {
            let mut file = OpenOptions::new().append(true).open(&self.path)?;
            file.write_all(state)
        };
        append().map_err(|error| storage("cannot write to", &self.path, &error))?;
        let bytes = state.len() as u64;
        self.back = Some(Back { tokens, bytes });
        Ok(())
    }

    /// Closes the file and gives it its name, in place of one that has it. `written`: the state's bytes.
    ///
    /// # Errors
    /// [`Code::Storage`] if not all of it is on the disk; [`Code::Conflict`] if one that is to stay has the name.
    pub fn seal(
        self,
        model: ModelId,
        tokens: usize,
        key: Key,
        written: u64,
    ) -> Result<Saved, Error> {
        let back = self.back;
        let mut saved = Saved {
            name: self.name,
            model,
            tokens,
            bytes: 0,
            created: now(),
            key,
            back,
            packed: None,
        };
        let written = written + back.map_or(0, |back| back.bytes);
        let (path, dest, durable, form) = (self.path, self.dest, self.durable, self.form);
        let replaces = self.replaces;
        let close = || {
            if durable && back.is_none() {
                let packed = close_packed(&path, &mut saved, written, form)?;
                return place(packed, &dest, true, replaces);
            }
            saved.bytes = close(&path, &saved, written, durable)?;
            place(path, &dest, durable, replaces)
        };
        match close() {
            Err(error) if !replaces && error.kind() == io::ErrorKind::AlreadyExists => {
                Err(taken(&saved.name, "this machine"))
            }
            Err(error) => Err(storage("cannot write", &dest, &error)),
            Ok(()) => Ok(saved),
        }
    }
}

/// Gives a finished file its name. `replaces`: also if another file has it.
pub(crate) fn place(path: TempPath, dest: &Path, durable: bool, replaces: bool) -> io::Result<()> {
    let named = match replaces {
        true => path.persist(dest),
        false => path.persist_noclobber(dest),
    };
    named.map_err(|failed| failed.error)?;
    // The name must be on the disk too.
    match dest.parent() {
        Some(folder) if durable => File::open(folder)?.sync_all(),
        _ => Ok(()),
    }
}

/// A new file for its owner alone, which is removed unless it is given a name.
pub(crate) fn draft_in(folder: &Path) -> io::Result<TempPath> {
    let file = tempfile::Builder::new().prefix(DRAFT).tempfile_in(folder)?;
    Ok(file.into_temp_path())
}

/// # Errors
/// [`Code::Storage`] with both figures if so many bytes do not fit on the path's volume, with a margin left.
pub(crate) fn check_room(path: &Path, bytes: u64) -> Result<(), Error> {
    let stat = rustix::fs::statvfs(path)
        .map_err(|error| storage("cannot read the free space of", path, &error.into()))?;
    let (free, size) = (stat.f_bavail * stat.f_frsize, stat.f_blocks * stat.f_frsize);
    let margin = volume::margin(size);
    if free >= bytes.saturating_add(margin) {
        return Ok(());
    }
    Err(Error::new(
        Code::Storage,
        format!(
            "the context needs {}, and its volume has {} free, of which {} must stay free",
            file_size(bytes),
            file_size(free),
            file_size(margin)
        ),
    )
    .hint("free up space, or delete saved contexts")
    .detail("needed_bytes", bytes)
    .detail("free_bytes", free))
}

fn check_length(file: &File, written: u64) -> io::Result<u64> {
    let length = file.metadata()?.len();
    if length == written {
        return Ok(length);
    }
    let message = format!("{length} of {written} bytes were written");
    Err(io::Error::new(io::ErrorKind::StorageFull, message))
}

/// Feeds what is written to a checksum as well.
struct Summed<W> {
    out: W,
    sum: Sha256,
    length: u64,
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.sum.update(&bytes[..written]);
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Writes the compressed form beside the state, and completes its description.
fn close_packed(
    path: &Path,
    saved: &mut Saved,
    written: u64,
    form: ContextForm,
) -> io::Result<TempPath> {
    let raw = File::open(path)?;
    let raw_bytes = check_length(&raw, written)?;
    let mut raw = BufReader::with_capacity(1 << 20, raw);
    let recognized = match form {
        ContextForm::Exact => Vec::new(),
        ContextForm::Compact => layout(&mut raw, raw_bytes)?,
    };
    raw.seek(SeekFrom::Start(0))?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let packed = draft_in(folder)?;
    let file = OpenOptions::new().write(true).open(&packed)?;
    let mut out = Summed {
        out: BufWriter::new(&file),
        sum: Sha256::new(),
        length: 0,
    };
    let (form, halves, magic) = if compact::is_worth(&recognized) {
        packed::pack_compact(&mut raw, raw_bytes, &recognized, &mut out)?;
        (ContextForm::Compact, false, COMPACT_MAGIC)
    } else {
        let halves = saved.key.kv_cache == KvCache::F16;
        packed::pack(&mut raw, &mut out, halves)?;
        (ContextForm::Exact, halves, PACKED_MAGIC)
    };
    saved.packed = Some(Packed {
        raw_bytes,
        halves,
        form,
    });
    let about = serde_json::to_vec(saved)?;
    out.write_all(&about)?;
    let Summed {
        out: mut rest,
        sum,
        length,
    } = out;
    let json = u32::try_from(about.len()).map_err(io::Error::other)?;
    rest.write_all(&json.to_le_bytes())?;
    rest.write_all(&sum.finalize())?;
    rest.write_all(&magic)?;
    rest.flush()?;
    drop(rest);
    file.sync_all()?;
    saved.bytes = length + PACKED_FOOTER;
    Ok(packed)
}

fn close(path: &Path, saved: &Saved, written: u64, durable: bool) -> io::Result<u64> {
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    let length = check_length(&file, written)?;
    let about = serde_json::to_vec(saved)?;
    let mut sum = crc32fast::Hasher::new();
    feed(&mut file, length, |bytes| sum.update(bytes))?;
    sum.update(&about);
    let mut end = about;
    let json = u32::try_from(end.len()).map_err(io::Error::other)?;
    end.extend(json.to_le_bytes());
    end.extend(sum.finalize().to_le_bytes());
    end.extend(MAGIC);
    file.seek(SeekFrom::Start(length))?;
    file.write_all(&end)?;
    if durable {
        file.sync_all()?;
    }
    Ok(length + end.len() as u64)
}

/// Feeds the file's first bytes to a checksum.
fn feed(file: &mut File, bytes: u64, mut sum: impl FnMut(&[u8])) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    let mut buffer = vec![0; 1 << 20];
    let mut left = bytes;
    while left > 0 {
        let most = usize::try_from(left.min(buffer.len() as u64)).unwrap_or(buffer.len());
        let read = file.read(&mut buffer[..most])?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        sum(&buffer[..read]);
        left -= read as u64;
    }
    Ok(())
}

/// Reads a file's end.
pub(crate) fn about(path: &Path) -> io::Result<Saved> {
    end(&mut File::open(path)?).map(|end| end.saved)
}

#[derive(PartialEq, Eq)]
enum Sum {
    Crc32(u32),
    Sha256([u8; 32]),
}

struct End {
    saved: Saved,
    sum: Sum,
    /// Where the JSON begins.
    about: u64,
    /// Where the footer begins: the sum is of what comes before.
    at: u64,
}

fn invalid() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

fn end(file: &mut File) -> io::Result<End> {
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
    let mut saved: Saved = serde_json::from_slice(&description).map_err(|_| invalid())?;
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

/// Whether the whole file agrees with its checksum: only then may llama.cpp, which trusts its bytes, read it.
///
/// # Errors
/// What reading it gives; `InvalidData` if it is no context, or damaged at its end.
pub fn is_whole(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let End { sum, at, .. } = end(&mut file)?;
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
    Ok(found == sum)
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

/// The state of a file that has been found whole.
///
/// # Errors
/// [`Code::Storage`] if it cannot be read, or there is no room for the copy; [`Code::Corrupt`] if it has another length than
/// it says.
pub fn state(path: &Path) -> Result<State, Error> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
            Error::new(Code::Corrupt, format!("{} is damaged", path.display()))
        }
        _ => storage("cannot unpack", path, &error),
    };
    let mut file = File::open(path).map_err(failed)?;
    let end = end(&mut file).map_err(failed)?;
    let Some(packed) = end.saved.packed else {
        return Ok(State::InPlace(path.to_owned()));
    };
    check_room(path, packed.raw_bytes)?;
    let unpack = || {
        let copy = draft_in(path.parent().unwrap_or(Path::new(".")))?;
        let out = OpenOptions::new().write(true).open(&copy)?;
        // One more than it should have, to see that there are not more.
        let mut raw = unpacked(file, &end, packed)?.take(packed.raw_bytes.saturating_add(1));
        let length = io::copy(&mut raw, &mut &out)?;
        if length != packed.raw_bytes {
            return Err(invalid());
        }
        Ok(copy)
    };
    unpack().map(State::Unpacked).map_err(failed)
}

fn unpacked(mut file: File, end: &End, packed: Packed) -> io::Result<Box<dyn Read>> {
    file.seek(SeekFrom::Start(0))?;
    let unpacked = Unpacked::new(BufReader::new(file.take(end.about)), packed.halves)?;
    Ok(match packed.form {
        ContextForm::Exact => Box::new(unpacked),
        ContextForm::Compact => Box::new(Decoded::new(unpacked)),
    })
}

/// The way back that a file has, with the number of tokens that it leads to. The file has been found whole.
///
/// # Errors
/// What reading it gives.
pub fn back(path: &Path) -> io::Result<Option<(usize, Vec<u8>)>> {
    let mut file = File::open(path)?;
    let End { saved, about, .. } = end(&mut file)?;
    let Some(Back { tokens, bytes }) = saved.back else {
        return Ok(None);
    };
    let start = about.checked_sub(bytes).ok_or_else(invalid)?;
    file.seek(SeekFrom::Start(start))?;
    let mut state = vec![0; usize::try_from(bytes).map_err(|_| invalid())?];
    file.read_exact(&mut state)?;
    Ok(Some((tokens, state)))
}

/// The tokens that a file's state holds.
pub(crate) fn tokens(path: &Path) -> io::Result<Vec<i32>> {
    let mut file = File::open(path)?;
    let end = end(&mut file)?;
    match end.saved.packed {
        Some(packed) => tokens_in(unpacked(file, &end, packed)?, packed.raw_bytes),
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
    if magic != STATE_MAGIC || u64::from(count) * 4 > bytes {
        return Err(invalid());
    }
    let mut raw = vec![0; count as usize * 4];
    state.read_exact(&mut raw)?;
    let (words, _) = raw.as_chunks::<4>();
    Ok(words.iter().map(|word| i32::from_le_bytes(*word)).collect())
}

/// Makes a folder that only its owner may enter.
pub(crate) fn private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

pub(crate) fn is_draft(name: &OsStr) -> bool {
    name.to_string_lossy().starts_with(DRAFT)
}
