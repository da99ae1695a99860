//! Writing a context: a state on its way to a name.

use crate::{
    Compression, ContextDescription, EarlierEnd, Key, compact,
    file::{COMPACT_MAGIC, MAGIC, PACKED_FOOTER, PACKED_MAGIC, feed},
    layout::layout,
    name_taken_error, now, packed, storage_error,
};
use sha2::{Digest, Sha256};
use std::{
    ffi::OsStr,
    fs::{DirBuilder, File, OpenOptions},
    io::{self, BufReader, BufWriter, Seek, SeekFrom, Write},
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

const DRAFT: &str = ".draft-";

/// A state on its way to a name.
#[derive(Debug)]
pub struct Draft {
    name: String,
    path: TempPath,
    dest: PathBuf,
    back: Option<EarlierEnd>,
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
            return Err(name_taken_error(&self.name, "this machine"));
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
        let file = OpenOptions::new().append(true).open(&self.path);
        file.and_then(|mut file| file.write_all(state))
            .map_err(|error| storage_error("cannot write to", &self.path, &error))?;
        let bytes = state.len() as u64;
        self.back = Some(EarlierEnd { tokens, bytes });
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
    ) -> Result<ContextDescription, Error> {
        let (back, durable, replaces) = (self.back, self.durable, self.replaces);
        let mut saved = ContextDescription {
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
        let close = || {
            if durable && back.is_none() {
                let packed = close_packed(&self.path, &mut saved, written, self.form)?;
                return persist(packed, &self.dest, true, replaces);
            }
            saved.bytes = write_end(&self.path, &saved, written, durable)?;
            persist(self.path, &self.dest, durable, replaces)
        };
        match close() {
            Err(error) if !replaces && error.kind() == io::ErrorKind::AlreadyExists => {
                Err(name_taken_error(&saved.name, "this machine"))
            }
            Err(error) => Err(storage_error("cannot write", &self.dest, &error)),
            Ok(()) => Ok(saved),
        }
    }
}

/// Gives a finished file its name. `replaces`: also if another file has it.
pub(crate) fn persist(
    path: TempPath,
    dest: &Path,
    durable: bool,
    replaces: bool,
) -> io::Result<()> {
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
        .map_err(|error| storage_error("cannot read the free space of", path, &error.into()))?;
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
struct ChecksumWriter<W> {
    out: W,
    sum: Sha256,
    length: u64,
}

impl<W: Write> Write for ChecksumWriter<W> {
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
    saved: &mut ContextDescription,
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
    let mut out = ChecksumWriter {
        out: writer(&packed)?,
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
    saved.packed = Some(Compression {
        raw_bytes,
        halves,
        form,
    });
    let about = serde_json::to_vec(saved)?;
    out.write_all(&about)?;
    let mut rest = out.out;
    let json = u32::try_from(about.len()).map_err(io::Error::other)?;
    rest.write_all(&json.to_le_bytes())?;
    rest.write_all(&out.sum.finalize())?;
    rest.write_all(&magic)?;
    rest.flush()?;
    rest.get_ref().sync_all()?;
    saved.bytes = out.length + PACKED_FOOTER;
    Ok(packed)
}

fn write_end(
    path: &Path,
    saved: &ContextDescription,
    written: u64,
    durable: bool,
) -> io::Result<u64> {
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    let length = check_length(&file, written)?;
    let about = serde_json::to_vec(saved)?;
    let json = u32::try_from(about.len()).map_err(io::Error::other)?;
    let mut sum = crc32fast::Hasher::new();
    feed(&mut file, length, |bytes| sum.update(bytes))?;
    sum.update(&about);
    let mut end = about;
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

/// Opens an existing file, to write it from its beginning.
pub(crate) fn writer(path: &Path) -> io::Result<BufWriter<File>> {
    let file = OpenOptions::new().write(true).open(path)?;
    Ok(BufWriter::new(file))
}

pub(crate) fn create_private(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

pub(crate) fn is_draft(name: &OsStr) -> bool {
    name.to_string_lossy().starts_with(DRAFT)
}
