//! Where the program's own messages go.

use crate::folder::{Folder, create_private};
use std::{
    fs::{self, Permissions},
    io::{self, IsTerminal, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Mutex,
    time::SystemTime,
};
use tierbar_core::{Code, Error};
use tracing::{Level, Metadata};
use tracing_appender::rolling::{RollingFileAppender, Rotation};
use tracing_subscriber::{
    EnvFilter, filter::filter_fn, layer::SubscriberExt, util::SubscriberInitExt,
};

/// The default filter, without messages that report only normal operation.
const USUAL: &str = "info,rmcp=warn,rusqlite_migration=warn";
/// The number of files kept: a week.
const KEPT: usize = 7;
/// A day's file that has grown beyond this becomes [`OLD`], in place of the one before.
const LARGEST: u64 = 32 << 20;
const OLD: &str = "tierbar.log.old";

/// Writes messages to stderr and to `logs/tierbar.DATE.log` in the data folder `home` (the usual one if `None`).
/// `RUST_LOG` chooses which; without it, `info` and worse. Call it once, from `main`.
///
/// # Errors
/// `Storage` if the file cannot be made. Messages then go to stderr alone.
pub fn log_to_folder(home: Option<PathBuf>) -> Result<(), Error> {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(USUAL));
    let to_stderr = tracing_subscriber::fmt::layer()
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    let (to_file, outcome) = match file(home) {
        Ok(file) => {
            let layer = tracing_subscriber::fmt::layer()
                .with_ansi(false)
                .with_writer(Mutex::new(file));
            (Some(layer), Ok(()))
        }
        Err(error) => (None, Err(error)),
    };
    let log = tracing_subscriber::registry()
        .with(filter)
        .with(filter_fn(is_without_prompts))
        .with(to_stderr)
        .with(to_file);
    log.try_init()
        .map_err(|error| Error::new(Code::Internal, error.to_string()))?;
    outcome
}

/// The WebSocket library writes whole messages at its lowest levels, whatever `RUST_LOG` is for.
fn is_without_prompts(about: &Metadata<'_>) -> bool {
    *about.level() <= Level::INFO || !about.target().starts_with("tungstenite")
}

/// A day's file after the other, each of bounded size, and which only its user can read: it may have prompts.
#[derive(Debug)]
struct PrivateFiles {
    files: RollingFileAppender,
    folder: PathBuf,
    largest: u64,
    /// The day, since 1970, whose file is private.
    day: Option<u64>,
    /// That file, and its bytes.
    current: PathBuf,
    bytes: u64,
}

impl PrivateFiles {
    fn open(folder: PathBuf, largest: u64) -> io::Result<Self> {
        let mut private = Self {
            files: appender(&folder)?,
            folder,
            largest,
            day: None,
            current: PathBuf::new(),
            bytes: 0,
        };
        // A line is not lost for the mode of its file.
        let _ = private.protect();
        Ok(private)
    }

    /// Starts anew if the folder was deleted, or today's file: what is written to that would go nowhere.
    fn reopen_if_deleted(&mut self) {
        if !self.current.exists()
            && let Ok(anew) = Self::open(self.folder.clone(), self.largest)
        {
            *self = anew;
        }
    }

    /// Begins the day's file again once it is too large.
    fn turn_over(&mut self) -> io::Result<()> {
        // What cannot be moved is not tried at each line.
        self.bytes = 0;
        fs::rename(&self.current, self.folder.join(OLD))?;
        self.files = appender(&self.folder)?;
        self.day = None;
        self.protect()
    }

    /// Makes a new day's file private, and all others, as far as it may.
    fn protect(&mut self) -> io::Result<()> {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let day = Some(since.unwrap_or_default().as_secs() / (24 * 3600));
        if self.day == day {
            return Ok(());
        }
        let mut newest = String::new();
        for entry in fs::read_dir(&self.folder)?.flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_file()) {
                // Another's file, or one that has just gone, is no reason to leave the rest open.
                let _refused = fs::set_permissions(entry.path(), Permissions::from_mode(0o600));
            }
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with("tierbar.") && name.ends_with(".log") {
                newest = newest.max(name);
            }
        }
        self.current = self.folder.join(newest);
        self.bytes = fs::metadata(&self.current)?.len();
        self.day = day;
        Ok(())
    }
}

impl Write for PrivateFiles {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.reopen_if_deleted();
        let written = self.files.write(bytes)?;
        self.bytes += written as u64;
        // A line is not lost for the mode or the size of its file.
        let _ = self.protect();
        if self.bytes > self.largest {
            let _ = self.turn_over();
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.files.flush()
    }
}

fn file(home: Option<PathBuf>) -> Result<PrivateFiles, Error> {
    let logs = Folder::open(home)?.logs();
    PrivateFiles::open(logs.clone(), LARGEST).map_err(|error| {
        let message = format!("cannot log to {}: {error}", logs.display());
        Error::new(Code::Storage, message)
    })
}

fn appender(folder: &Path) -> io::Result<RollingFileAppender> {
    create_private(folder)?;
    RollingFileAppender::builder()
        .rotation(Rotation::DAILY)
        .filename_prefix("tierbar")
        .filename_suffix("log")
        .max_log_files(KEPT)
        .build(folder)
        .map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn messages_of_websockets_are_in_no_log() {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let writer = Arc::clone(&lines);
        let layer =
            tracing_subscriber::fmt::layer().with_writer(move || Lines(Arc::clone(&writer)));
        let log = tracing_subscriber::registry()
            .with(EnvFilter::new("trace"))
            .with(filter_fn(is_without_prompts))
            .with(layer);
        tracing::subscriber::with_default(log, || {
            tracing::trace!(target: "tungstenite::protocol", "a prompt");
            tracing::trace!(target: "hyper", "a request");
            tracing::warn!(target: "tungstenite", "a warning");
        });
        let lines = String::from_utf8(lines.lock().unwrap().clone()).unwrap();
        assert!(!lines.contains("a prompt"), "{lines}");
        assert!(
            lines.contains("a request") && lines.contains("a warning"),
            "{lines}"
        );
    }

    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn log_files_are_private() {
        let home = tempfile::tempdir().unwrap();
        let logs = home.path().join("logs");
        fs::create_dir_all(&logs).unwrap();
        let old = logs.join("worker.log");
        fs::write(&old, "").unwrap();
        fs::set_permissions(&old, Permissions::from_mode(0o644)).unwrap();
        let mut files = file(Some(home.path().to_owned())).unwrap();
        files.write_all(b"a line\n").unwrap();
        let entries: Vec<_> = fs::read_dir(&logs).unwrap().collect();
        assert_eq!(entries.len(), 2);
        for entry in entries {
            let entry = entry.unwrap();
            let mode = entry.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{:?}", entry.path());
        }
    }

    #[test]
    fn a_deleted_folder_is_made_again_and_logged_to() {
        let home = tempfile::tempdir().unwrap();
        let logs = home.path().join("logs");
        let mut files = file(Some(home.path().to_owned())).unwrap();
        files.write_all(b"lost\n").unwrap();
        fs::remove_dir_all(&logs).unwrap();
        files.write_all(b"kept\n").unwrap();
        let entries: Vec<_> = fs::read_dir(&logs).unwrap().flatten().collect();
        let [file] = &entries[..] else {
            panic!("{entries:?}");
        };
        assert_eq!(fs::read(file.path()).unwrap(), b"kept\n");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&logs), mode(&file.path())), (0o700, 0o600));
        fs::remove_file(file.path()).unwrap();
        files.write_all(b"again\n").unwrap();
        assert_eq!(fs::read(file.path()).unwrap(), b"again\n");
    }

    #[test]
    fn log_files_are_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = PrivateFiles::open(folder.path().to_owned(), 1000).unwrap();
        for line in 0..1000 {
            let line = format!("line {line:03}\n");
            files.write_all(line.as_bytes()).unwrap();
        }
        let sizes = || {
            let entries = fs::read_dir(folder.path()).unwrap().flatten();
            let sizes = entries.map(|entry| entry.metadata().unwrap().len());
            sizes.collect::<Vec<_>>()
        };
        assert_eq!(sizes().len(), 2);
        assert!(sizes().iter().sum::<u64>() <= 2020, "{:?}", sizes());
        let old = fs::read_to_string(folder.path().join(OLD)).unwrap();
        let new = fs::read_to_string(&files.current).unwrap();
        let last: Vec<_> = old.lines().chain(new.lines()).collect();
        let all: Vec<_> = (1000 - last.len()..1000)
            .map(|line| format!("line {line:03}"))
            .collect();
        assert_eq!(last, all, "the last lines are kept, in their order");
        // A new host continues the file.
        let again = PrivateFiles::open(folder.path().to_owned(), 1000).unwrap();
        assert_eq!(again.bytes, new.len() as u64);
    }
}
