//! Files and folders that a person agreed to, opened without following a symbolic link.
//!
//! An agreement names a real path. Between the agreement and its use, and between two uses, a program that may write in a folder on that
//! path can put a link there that leads elsewhere. So each use opens the path anew and follows no link in any part of it, and what comes
//! next, such as a check, a grant or a reading, is about the open file: its descriptor and its [`OpenFile::real_path`], never the path again.

mod denial;
mod platform;

pub use denial::reason;
pub use rustix::fs::{Mode, RawMode};

use rustix::{
    fs::{
        AtFlags, CWD, Dev, Dir, FileType, OFlags, Stat, fchmod, fstat, fsync, lstat, mkdirat,
        openat, renameat, statat, unlinkat,
    },
    io::Errno,
};
use std::{
    ffi::{OsStr, OsString},
    fs::File,
    io::{self, Read},
    iter,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::{ffi::OsStringExt, fs::MetadataExt},
    },
    path::{Component, Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

/// An open file or folder.
#[derive(Debug)]
pub struct OpenFile {
    file: File,
    path: PathBuf,
}

/// What a file or folder is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct About {
    /// Neither a folder, nor a link, a pipe or a device.
    pub is_file: bool,
    pub is_folder: bool,
    pub bytes: u64,
    /// Its content is in iCloud only: reading a file would download it, and so would opening a folder.
    pub in_cloud: bool,
    /// When its content changed, in nanoseconds since 1970.
    pub modified: i64,
    pub identity: Identity,
}

/// Which file or folder something is: its disk, and its number there. By a hard link or a bind mount, one has several paths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Identity(Dev, u64);

/// A name in a folder. A link is neither a file nor a folder, nor is what cannot be looked at.
#[derive(Debug)]
pub struct Entry {
    pub name: OsString,
    pub about: About,
    /// Why it cannot be looked at, such as a mount whose server is gone.
    pub fault: Option<io::Error>,
}

/// Why a path was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{} is not an absolute path without \"..\"", .0.display())]
    NotAbsolute(PathBuf),
    #[error("{} leads elsewhere", .0.display())]
    Elsewhere(PathBuf),
    #[error(
        "{} is a symbolic link or lies behind one, which is not followed{}", .path.display(),
        .real.as_deref().map_or_else(String::new, |real| format!("; its real path is {}", real.display()))
    )]
    Link {
        path: PathBuf,
        /// Where it leads, for a person to read.
        real: Option<PathBuf>,
    },
    #[error("{}: {error}", .path.display())]
    System { path: PathBuf, error: io::Error },
}

impl OpenError {
    fn new(path: &Path, error: Errno) -> Self {
        let path = path.to_owned();
        match error {
            Errno::LOOP => Self::Link {
                real: path.canonicalize().ok(),
                path,
            },
            error => Self::System {
                path,
                error: error.into(),
            },
        }
    }

    /// Returns what the system reported; for a link, that there are too many.
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Self::NotAbsolute(_) | Self::Elsewhere(_) => io::ErrorKind::InvalidInput,
            Self::Link { .. } => io::Error::from(Errno::LOOP).kind(),
            Self::System { error, .. } => error.kind(),
        }
    }
}

const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);
/// Without waiting for a pipe's writer, and without becoming the terminal of this process.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// Opens a file or folder to read it.
///
/// # Errors
/// [`OpenError`], also if any part of the path is a symbolic link.
pub fn open(path: &Path) -> Result<OpenFile, OpenError> {
    open_with(path, READ)
}

/// Opens a file or folder to know which one it is. On Linux this needs no right to read it.
///
/// # Errors
/// Those of [`open`].
pub fn locate(path: &Path) -> Result<OpenFile, OpenError> {
    open_with(path, platform::LOCATE)
}

fn open_with(path: &Path, flags: OFlags) -> Result<OpenFile, OpenError> {
    let is_plain = |part| matches!(part, Component::RootDir | Component::Normal(_));
    if !path.is_absolute() || !path.components().all(is_plain) {
        return Err(OpenError::NotAbsolute(path.to_owned()));
    }
    OpenFile::new(CWD, path, path.to_owned(), flags)
}

/// Returns the real path of the user's home folder, which `~` stands for: that of the account may have a link in it.
pub fn home() -> Option<PathBuf> {
    std::env::home_dir().map(|home| home.canonicalize().unwrap_or(home))
}

impl OpenFile {
    fn new(
        folder: BorrowedFd<'_>,
        path: &Path,
        shown: PathBuf,
        flags: OFlags,
    ) -> Result<Self, OpenError> {
        match platform::open(folder, path, flags | OFlags::CLOEXEC) {
            Ok(descriptor) => Ok(Self {
                file: descriptor.into(),
                path: shown,
            }),
            Err(error) => Err(OpenError::new(&shown, error)),
        }
    }

    /// Wraps what was opened otherwise, such as by following links, to look at where that has led.
    pub fn from_file(file: File, path: &Path) -> Self {
        Self {
            file,
            path: path.to_owned(),
        }
    }

    /// Returns the path that it was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path that the open file has now, whatever has become of the one that it was opened by.
    ///
    /// # Errors
    /// Those of the system.
    pub fn real_path(&self) -> io::Result<PathBuf> {
        platform::real_path(self.file.as_fd())
    }

    /// Returns its permissions, such as `0o644`.
    ///
    /// # Errors
    /// Those of the system.
    pub fn permissions(&self) -> io::Result<u32> {
        Ok(self.file.metadata()?.mode() & 0o777)
    }

    /// Returns what it is.
    ///
    /// # Errors
    /// Those of the system.
    pub fn about(&self) -> io::Result<About> {
        Ok(About::from_stat(&fstat(&self.file)?))
    }

    pub fn into_file(self) -> File {
        self.file
    }

    /// Opens what is in this folder, to read it. An empty path is the folder itself.
    ///
    /// # Errors
    /// [`OpenError`], also for a path that leads out of the folder, or has a link in it.
    pub fn inside(&self, path: &Path) -> Result<Self, OpenError> {
        self.inside_with(path, READ)
    }

    fn inside_with(&self, path: &Path, flags: OFlags) -> Result<Self, OpenError> {
        let shown = self.path.join(path);
        let is_inside = |part| matches!(part, Component::CurDir | Component::Normal(_));
        if !path.components().all(is_inside) {
            return Err(OpenError::Elsewhere(shown));
        }
        let path = if path.as_os_str().is_empty() {
            Path::new(".")
        } else {
            path
        };
        Self::new(self.file.as_fd(), path, shown, flags)
    }

    /// Opens a folder in this one. Those that are missing on the way are created, with this mode.
    ///
    /// # Errors
    /// Those of [`Self::inside`].
    pub fn create_folder(&self, path: &Path, mode: Mode) -> Result<Self, OpenError> {
        // A folder that is only passed through may be closed to reading.
        const FOLDER: OFlags = platform::LOCATE.union(OFlags::DIRECTORY);
        let mut folder = self.inside_with(Path::new(""), FOLDER)?;
        for part in path.components() {
            let name = Path::new(part.as_os_str());
            folder = match folder.inside_with(name, FOLDER) {
                Err(OpenError::System { error, .. }) if error.kind() == io::ErrorKind::NotFound => {
                    match mkdirat(&folder.file, name, mode) {
                        Ok(()) | Err(Errno::EXIST) => folder.inside_with(name, FOLDER)?,
                        Err(error) => return Err(OpenError::new(&folder.path.join(name), error)),
                    }
                }
                opened => opened?,
            };
        }
        Ok(folder)
    }

    /// Returns the names in this folder, without `.` and `..`.
    ///
    /// # Errors
    /// Those of the system, now or while it is read. A folder of which no name may be looked at is one of them.
    pub fn entries(&self) -> io::Result<impl Iterator<Item = io::Result<Entry>>> {
        let entries = Dir::read_from(&self.file)?;
        Ok(refuse_if_all(entries.filter_map(|entry| {
            let name = match entry {
                Ok(entry) => entry.file_name().to_owned(),
                Err(error) => return Some(Err(error.into())),
            };
            if matches!(name.to_bytes(), b"." | b"..") {
                return None;
            }
            let (about, fault) = match statat(&self.file, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => (About::from_stat(&stat), None),
                // It is gone.
                Err(Errno::NOENT) => return None,
                Err(error) => (About::default(), Some(error.into())),
            };
            let name = OsString::from_vec(name.into_bytes());
            Some(Ok(Entry { name, about, fault }))
        })))
    }

    /// Writes a file of this folder whole or not at all. Of a file that is replaced, the permissions stay; a new one has this mode.
    ///
    /// # Errors
    /// Those of the system, and of reading the content; the file is then as it was.
    pub fn replace(&self, name: &OsStr, content: impl Read, mode: Mode) -> io::Result<()> {
        let mode = match statat(&self.file, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if About::from_stat(&stat).is_file => {
                Mode::from_raw_mode(stat.st_mode) & Mode::from(0o777)
            }
            _ => mode,
        };
        self.replace_as(name, content, mode)
    }

    /// As [`Self::replace`], with this mode also of a file that is replaced.
    ///
    /// # Errors
    /// As [`Self::replace`].
    pub fn replace_as(&self, name: &OsStr, mut content: impl Read, mode: Mode) -> io::Result<()> {
        let (draft, mut file) = self.create_draft()?;
        let written = (|| {
            io::copy(&mut content, &mut file)?;
            // Some file systems have no modes to set.
            if mode != PRIVATE {
                fchmod(&file, mode)?;
            }
            fsync(&file)?;
            Ok(renameat(&self.file, &draft, &self.file, name)?)
        })();
        if written.is_err() {
            let _ = self.remove(OsStr::new(&draft));
        }
        written
    }

    /// Creates a file with a name of its own, readable by its owner alone.
    fn create_draft(&self) -> io::Result<(String, File)> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let draft = format!(".tierbar-{}-{number}", std::process::id());
            match self.create(OsStr::new(&draft), PRIVATE) {
                // Left by a process that had this one's number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                created => return Ok((draft, created?)),
            }
        }
    }

    /// Creates a file of this folder, to write it.
    ///
    /// # Errors
    /// Those of the system; [`io::ErrorKind::AlreadyExists`] if anything has the name, such as a link.
    pub fn create(&self, name: &OsStr, mode: Mode) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        Ok(openat(&self.file, name, flags, mode)?.into())
    }

    /// Removes a name from this folder; of a link, the link itself.
    ///
    /// # Errors
    /// Those of the system, also for a folder.
    pub fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(unlinkat(&self.file, name, AtFlags::empty())?)
    }

    /// Returns what has this name in this folder; of a link, that it is neither a file nor a folder.
    ///
    /// # Errors
    /// Those of the system, also if this is no folder.
    pub fn about_entry(&self, name: &OsStr) -> io::Result<About> {
        let stat = statat(&self.file, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(About::from_stat(&stat))
    }

    /// Opens the folder around this one, wherever that is now; `None` if this is a file or the root, or if it cannot be opened.
    pub fn parent(&self) -> Option<Self> {
        let flags = platform::LOCATE | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let around = openat(&self.file, "..", flags, Mode::empty()).ok()?;
        let around = Self::from_file(around.into(), &self.path.join(".."));
        // The root is around itself.
        let is_other = around.about().ok()?.identity != self.about().ok()?.identity;
        is_other.then_some(around)
    }

    /// Returns what this is, and each folder around it, as far up as these can be opened.
    ///
    /// # Errors
    /// Those of the system, for what is open.
    pub fn lineage(&self) -> io::Result<Vec<Identity>> {
        let mut lineage = vec![self.about()?.identity];
        for folder in iter::successors(self.parent(), Self::parent) {
            lineage.push(folder.about()?.identity);
        }
        Ok(lineage)
    }
}

/// Ends with the refusal if each name is refused: so the system keeps a folder closed that it lets be listed.
fn refuse_if_all(
    mut entries: impl Iterator<Item = io::Result<Entry>>,
) -> impl Iterator<Item = io::Result<Entry>> {
    let (mut refusal, mut is_open) = (None, false);
    iter::from_fn(move || {
        let Some(entry) = entries.next() else {
            let errno = refusal.take().filter(|_| !is_open);
            return errno.map(|errno| Err(io::Error::from_raw_os_error(errno)));
        };
        if let Ok(Entry { fault, .. }) = &entry {
            match fault {
                Some(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    refusal = error.raw_os_error();
                }
                _ => is_open = true,
            }
        }
        Some(entry)
    })
}

impl AsFd for OpenFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Whether a file or folder with these flags (`st_flags` of macOS) has its content elsewhere: `SF_DATALESS`, as
/// <https://developer.apple.com/documentation/technotes/tn3150-getting-ready-for-data-less-files> describes.
pub const fn is_dataless(flags: u32) -> bool {
    flags & 0x4000_0000 != 0
}

impl About {
    /// Returns what is at a path, without following a link in its place. By the time it is opened, it may be something else.
    ///
    /// # Errors
    /// Those of the system.
    pub fn at(path: &Path) -> io::Result<Self> {
        Ok(Self::from_stat(&lstat(path)?))
    }

    fn from_stat(stat: &Stat) -> Self {
        let kind = FileType::from_raw_mode(stat.st_mode);
        Self {
            is_file: kind == FileType::RegularFile,
            is_folder: kind == FileType::Directory,
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            in_cloud: is_dataless(platform::flags(stat)),
            modified: platform::modified(stat),
            identity: Identity(stat.st_dev, stat.st_ino),
        }
    }
}

#[cfg(test)]
mod tests;
