//! One file: the state as llama.cpp writes it, then its description as JSON, then a footer.
//!
//! | part | bytes |
//! |---|---|
//! | state | llama.cpp's `GGSQ` file: magic, version, count of tokens, the tokens, the cells |
//! | way back | maybe, of [`Back`]: what the model has forgotten since then |
//! | about | JSON, [`Saved`] |
//! | footer | length of the JSON (u32), CRC-32 of all before it (u32), magic (8 bytes); little-endian |

use crate::{Back, Key, Saved, now, storage};
use std::{
    ffi::OsStr,
    fs::{DirBuilder, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};
use tempfile::TempPath;
use tierbar_core::{Code, Error, ModelId, units::file_size, volume};

const MAGIC: [u8; 8] = *b"TIERCTX1";
const FOOTER: u64 = 16;
/// A name, a model, a key: some hundreds of bytes.
const LONGEST_ABOUT: u32 = 64 << 10;
/// llama.cpp's `LLAMA_STATE_SEQ_MAGIC`, "ggsq".
const STATE_MAGIC: u32 = 0x6767_7371;
const DRAFT: &str = ".draft-";

/// A state on its way to a name.
#[derive(Debug)]
pub struct Draft {
    name: String,
    path: TempPath,
    dest: PathBuf,
    back: Option<Back>,
    /// It outlives a power cut.
    durable: bool,
}

impl Draft {
    pub(crate) fn new(folder: &Path, name: &str, dest: PathBuf, durable: bool) -> io::Result<Self> {
        // Made for its owner alone.
        let file = tempfile::Builder::new().prefix(DRAFT).tempfile_in(folder)?;
        Ok(Self {
            name: name.to_owned(),
            path: file.into_temp_path(),
            dest,
            back: None,
            durable,
        })
    }

    /// Where the state goes.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// # Errors
    /// [`Code::Storage`] with both figures if so many bytes do not fit on its volume, with a margin left.
    pub fn check_room(&self, bytes: u64) -> Result<(), Error> {
        let stat = rustix::fs::statvfs(self.path()).map_err(|error| {
            storage("cannot read the free space of", self.path(), &error.into())
        })?;
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
    /// [`Code::Storage`] if not all of it is on the disk.
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
        };
        let written = written + back.map_or(0, |back| back.bytes);
        close(&self.path, &saved, written, self.durable)
            .and_then(|bytes| {
                saved.bytes = bytes;
                self.path
                    .persist(&self.dest)
                    .map_err(|failed| failed.error)?;
                // The name must be on the disk too.
                match self.dest.parent() {
                    Some(folder) if self.durable => File::open(folder)?.sync_all(),
                    _ => Ok(()),
                }
            })
            .map_err(|error| storage("cannot write", &self.dest, &error))?;
        Ok(saved)
    }
}

fn close(path: &Path, saved: &Saved, written: u64, durable: bool) -> io::Result<u64> {
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    let length = file.metadata()?.len();
    if length != written {
        let message = format!("{length} of {written} bytes were written");
        return Err(io::Error::new(io::ErrorKind::StorageFull, message));
    }
    let about = serde_json::to_vec(saved)?;
    let mut sum = crc32fast::Hasher::new();
    feed(&mut file, length, &mut sum)?;
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
fn feed(file: &mut File, bytes: u64, sum: &mut crc32fast::Hasher) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    let mut buffer = vec![0; 1 << 20];
    let mut left = bytes;
    while left > 0 {
        let most = usize::try_from(left.min(buffer.len() as u64)).unwrap_or(buffer.len());
        let read = file.read(&mut buffer[..most])?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        sum.update(&buffer[..read]);
        left -= read as u64;
    }
    Ok(())
}

/// Reads a file's end.
pub(crate) fn about(path: &Path) -> io::Result<Saved> {
    end(&mut File::open(path)?).map(|end| end.saved)
}

struct End {
    saved: Saved,
    sum: u32,
    /// Where the JSON begins.
    about: u64,
    /// Where the footer begins: the sum is of what comes before.
    at: u64,
}

fn end(file: &mut File) -> io::Result<End> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    let bytes = file.metadata()?.len();
    let at = bytes.checked_sub(FOOTER).ok_or_else(invalid)?;
    file.seek(SeekFrom::Start(at))?;
    let mut footer = [0; 16];
    file.read_exact(&mut footer)?;
    let [a, b, c, d, e, f, g, h, magic @ ..] = footer;
    let (json, sum) = (
        u32::from_le_bytes([a, b, c, d]),
        u32::from_le_bytes([e, f, g, h]),
    );
    if magic != MAGIC || json > LONGEST_ABOUT || u64::from(json) > at {
        return Err(invalid());
    }
    let about = at - u64::from(json);
    file.seek(SeekFrom::Start(about))?;
    let mut description = vec![0; json as usize];
    file.read_exact(&mut description)?;
    let mut saved: Saved = serde_json::from_slice(&description).map_err(|_| invalid())?;
    saved.bytes = bytes;
    Ok(End {
        saved,
        sum,
        about,
        at,
    })
}

/// Whether the whole file agrees with its checksum: only then may llama.cpp, which trusts its bytes, read it.
///
/// # Errors
/// What reading it gives; `InvalidData` if it is no context, or damaged at its end.
pub fn is_whole(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let End { sum, at, .. } = end(&mut file)?;
    let mut found = crc32fast::Hasher::new();
    feed(&mut file, at, &mut found)?;
    Ok(found.finalize() == sum)
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
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    let start = about.checked_sub(bytes).ok_or_else(invalid)?;
    file.seek(SeekFrom::Start(start))?;
    let mut state = vec![0; usize::try_from(bytes).map_err(|_| invalid())?];
    file.read_exact(&mut state)?;
    Ok(Some((tokens, state)))
}

/// The tokens that a file's state holds.
pub(crate) fn tokens(path: &Path) -> io::Result<Vec<i32>> {
    let mut file = File::open(path)?;
    let bytes = file.metadata()?.len();
    let mut word = || -> io::Result<u32> {
        let mut word = [0; 4];
        file.read_exact(&mut word)?;
        Ok(u32::from_le_bytes(word))
    };
    let (magic, _version, count) = (word()?, word()?, word()?);
    if magic != STATE_MAGIC || u64::from(count) * 4 > bytes {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut raw = vec![0; count as usize * 4];
    file.read_exact(&mut raw)?;
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
