//! A worker's stderr: appended to a file of bounded size, its last lines kept for the reason of a failure.

use parking_lot::Mutex;
use std::{
    collections::VecDeque,
    fs::Permissions,
    io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};
use tokio::{
    fs::{self, File, OpenOptions},
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    sync::Notify,
};

/// A log that has grown beyond this becomes `….log.old`, in place of the one before.
const LARGEST_LOG: u64 = 4 << 20;
const LINES: usize = 20;
/// A longer line is cut in the reason; the file has all of it.
const LONGEST_LINE: usize = 300;

/// The last output of a worker, shared between the task that reads it and the one that waits for the worker.
#[derive(Debug, Default)]
pub(crate) struct RecentOutput {
    lines: Mutex<OutputLines>,
    /// Notified at every output.
    pub(crate) written: Notify,
}

#[derive(Debug, Default)]
struct OutputLines {
    whole: VecDeque<String>,
    open: Vec<u8>,
}

impl RecentOutput {
    fn append(&self, bytes: &[u8]) {
        let mut lines = self.lines.lock();
        for &byte in bytes {
            if byte == b'\n' {
                lines.close();
            } else if lines.open.len() < LONGEST_LINE {
                lines.open.push(byte);
            }
        }
        drop(lines);
        self.written.notify_one();
    }

    /// The last lines, the latest last.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = self.lines.lock();
        lines.close();
        lines.whole.iter().cloned().collect()
    }

    /// Returns the sentence with the most relevant line.
    pub(crate) fn quoted_by(&self, sentence: String) -> String {
        match self.most_relevant_line() {
            Some(line) => format!("{sentence}; its last output was: {line}"),
            None => sentence,
        }
    }

    /// Returns the last line about a failure, or else the last line.
    fn most_relevant_line(&self) -> Option<String> {
        let mut lines = self.lines.lock();
        lines.close();
        // A failed assertion is followed by a backtrace.
        let is_about_failure = |line: &&String| {
            let line = line.to_ascii_lowercase();
            ["error", "fail", "assert", "panicked", "out of memory"]
                .iter()
                .any(|word| line.contains(word))
        };
        let newest = || lines.whole.iter().rev();
        newest()
            .find(is_about_failure)
            .or_else(|| newest().next())
            .cloned()
    }
}

impl OutputLines {
    fn close(&mut self) {
        let text = String::from_utf8_lossy(&self.open);
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        self.open.clear();
        if !text.trim().is_empty() {
            if self.whole.len() == LINES {
                self.whole.pop_front();
            }
            self.whole.push_back(text.trim().to_owned());
        }
    }
}

/// Reads the pipe to its end, even if the file cannot be written: a worker must never block on a full pipe.
pub(crate) async fn drain(mut pipe: impl AsyncRead + Unpin, path: &Path, words: &RecentOutput) {
    let mut log = WorkerLog::open(path).await;
    let mut chunk = vec![0; 16 << 10];
    loop {
        match pipe.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(length) => {
                words.append(&chunk[..length]);
                if let Ok(open) = &mut log
                    && let Err(error) = open.append(&chunk[..length]).await
                {
                    log = Err(error);
                }
            }
        }
    }
    let kept = match &mut log {
        Ok(open) => open.file.flush().await,
        Err(_) => log.map(|_| ()),
    };
    if let Err(error) = kept {
        tracing::warn!(log = %path.display(), %error, "a worker's log is not kept");
    }
}

struct WorkerLog {
    path: PathBuf,
    file: File,
    length: u64,
}

impl WorkerLog {
    async fn open(path: &Path) -> io::Result<Self> {
        if let Some(dir) = path.parent() {
            // Other programs' servers may log prompts.
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(dir)
                .await?;
        }
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .await?;
        file.set_permissions(Permissions::from_mode(0o600)).await?;
        let length = file.metadata().await?.len();
        let path = path.to_owned();
        Ok(Self { path, file, length })
    }

    async fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        // It was deleted, maybe with its folder.
        if fs::metadata(&self.path).await.is_err() {
            *self = Self::open(&self.path).await?;
        }
        if self.length >= LARGEST_LOG {
            self.file.flush().await?;
            fs::rename(&self.path, self.path.with_extension("log.old")).await?;
            *self = Self::open(&self.path).await?;
        }
        self.file.write_all(bytes).await?;
        self.length += bytes.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_line_about_a_failure_is_quoted() {
        let dir = tempfile::tempdir().unwrap();
        let words = RecentOutput::default();
        let output = b"loading\nGGML_ASSERT(n > 0) failed\n  0: backtrace\n\n";
        drain(&output[..], &dir.path().join("w.log"), &words).await;
        assert_eq!(
            words.most_relevant_line().as_deref(),
            Some("GGML_ASSERT(n > 0) failed")
        );
    }

    #[tokio::test]
    async fn without_a_failure_line_the_last_is_quoted() {
        let dir = tempfile::tempdir().unwrap();
        let words = RecentOutput::default();
        drain(
            &b"one\n\x1b[31mtwo\x00\xff"[..],
            &dir.path().join("w.log"),
            &words,
        )
        .await;
        assert_eq!(
            words.most_relevant_line().as_deref(),
            Some("[31mtwo\u{fffd}")
        );
    }

    #[tokio::test]
    async fn the_log_is_limited_to_two_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("w.log");
        drain(&b"first\n"[..], &path, &RecentOutput::default()).await;
        let flood = tokio::io::repeat(b'x').take(3 * LARGEST_LOG);
        drain(flood, &path, &RecentOutput::default()).await;
        let length = |path: &Path| std::fs::metadata(path).unwrap().len();
        assert!(length(&path) > 0 && length(&path) <= LARGEST_LOG + (16 << 10));
        assert!(length(&dir.path().join("w.log.old")) <= LARGEST_LOG + (16 << 10));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[tokio::test]
    async fn a_log_that_cannot_be_written_does_not_stop_reading() {
        let dir = tempfile::tempdir().unwrap();
        let words = RecentOutput::default();
        drain(&b"a line\n"[..], dir.path(), &words).await;
        assert_eq!(words.most_relevant_line().as_deref(), Some("a line"));
    }

    #[tokio::test]
    async fn a_deleted_folder_of_logs_is_made_again_for_its_owner() {
        let dir = tempfile::tempdir().unwrap();
        let logs = dir.path().join("logs");
        let path = logs.join("w.log");
        let mut log = WorkerLog::open(&path).await.unwrap();
        log.append(b"lost\n").await.unwrap();
        std::fs::remove_dir_all(&logs).unwrap();
        log.append(b"kept\n").await.unwrap();
        log.file.flush().await.unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"kept\n");
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&logs), mode(&path)), (0o700, 0o600));
    }
}
