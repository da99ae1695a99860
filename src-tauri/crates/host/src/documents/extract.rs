//! Has `tierbar-extract` read a file: a process of its own, with nothing but the file and a way to write its text.

use crate::sources;
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use std::{
    fs::File,
    io::{Read, Seek},
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{ExitStatus, Stdio},
    time::Duration,
};
use tierbar_documents::{
    Refusal,
    extraction::{ExtractedDocument, LARGEST_FILE, LONGEST, OutputReader, ProcessEnd},
};
use tokio::{
    io::AsyncReadExt,
    process::{Child, Command},
    time::timeout,
};

const BUFFER: usize = 256 << 10;

/// A file that is open and whose bytes are known by their hash.
#[derive(Debug)]
pub(super) struct OpenedFile {
    file: File,
    pub(super) sha256: String,
}

/// Opens and hashes a file. Blocking.
///
/// # Errors
/// Why it cannot be read, in a sentence.
pub(super) fn open(path: &Path) -> Result<OpenedFile, Refusal> {
    let refused = |error: std::io::Error| Refusal(format!("This file cannot be opened: {error}."));
    let opened = sources::open(path);
    let opened = opened.map_err(|error| Refusal(format!("{}.", error.message)))?;
    let about = opened.about().map_err(refused)?;
    if !about.is_file {
        return Err(Refusal("This is not a file any more.".to_owned()));
    }
    if about.bytes > LARGEST_FILE {
        let sentence = format!(
            "Files of more than {} MB are not searched.",
            LARGEST_FILE >> 20
        );
        return Err(Refusal(sentence));
    }
    let mut file = opened.into_file();
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; BUFFER]);
    loop {
        let read = file.read(&mut buffer).map_err(refused)?;
        if read == 0 {
            break;
        }
        hash.update(&buffer[..read]);
    }
    file.rewind().map_err(refused)?;
    let sha256 = HEXLOWER.encode(&hash.finalize());
    Ok(OpenedFile { file, sha256 })
}

/// Has an open file read. `pictures`: whether pages that are pictures are returned, too.
///
/// # Errors
/// Why it has no text, in a sentence.
pub(super) async fn extract(
    program: &Path,
    opened: OpenedFile,
    path: &Path,
    pictures: bool,
) -> Result<ExtractedDocument, Refusal> {
    let name = path.file_name().unwrap_or_default();
    let begun = Command::new(program)
        .arg(name)
        .args(pictures.then_some("--pictures"))
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(opened.file))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn();
    let child = begun.map_err(|error| {
        Refusal(format!(
            "The program that reads documents does not start: {error}."
        ))
    })?;
    match timeout(Duration::from_secs(LONGEST), read(child)).await {
        Ok(document) => document,
        Err(_) => OutputReader::default().finish(ProcessEnd::TooLong),
    }
}

/// Reads what the process writes, and waits for its end. Dropped, it ends the process.
async fn read(mut child: Child) -> Result<ExtractedDocument, Refusal> {
    let mut reader = OutputReader::default();
    if let Some(mut output) = child.stdout.take() {
        let mut buffer = vec![0; BUFFER];
        loop {
            match output.read(&mut buffer).await {
                Ok(0) => break,
                Ok(read) if reader.take(&buffer[..read]) => {}
                Ok(_) => return reader.finish(ProcessEnd::TooMuch),
                Err(_) => return reader.finish(ProcessEnd::Badly),
            }
        }
    }
    let ended = match child.wait().await {
        Ok(status) => to_process_end(status),
        Err(_) => ProcessEnd::Badly,
    };
    reader.finish(ended)
}

fn to_process_end(status: ExitStatus) -> ProcessEnd {
    match status.signal() {
        Some(signal) => ProcessEnd::Killed(signal),
        None if status.success() => ProcessEnd::Well,
        None => ProcessEnd::Badly,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::tests::tempdir;
    use std::path::PathBuf;

    /// A program that does what a script says instead of reading the file.
    fn program(folder: &Path, script: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.join("extract");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    async fn run(script: &str) -> Result<ExtractedDocument, Refusal> {
        let folder = tempdir();
        let document = folder.path().join("a.txt");
        std::fs::write(&document, "Some words").unwrap();
        let opened = open(&document).unwrap();
        assert_eq!(opened.sha256.len(), 64);
        extract(&program(folder.path(), script), opened, &document, false).await
    }

    #[tokio::test]
    async fn a_process_that_ends_badly_costs_only_its_document() {
        let script = r#"[ "$1" = a.txt ] && [ "$(cat)" = "Some words" ] && [ -z "$HOME" ] &&
            echo '{"block":{"text":"Some words"}}' && echo '{"end":{"kind":"text"}}'"#;
        let read = run(script).await.unwrap();
        assert_eq!(read.passages[0].text, "Some words");
        assert!(
            run("echo '{\"end\":{}}'; exit 1")
                .await
                .unwrap_err()
                .0
                .contains("damaged")
        );
        assert!(run("kill -ABRT $$").await.unwrap_err().0.contains("memory"));
        assert!(
            run("echo nonsense")
                .await
                .unwrap_err()
                .0
                .contains("damaged")
        );
    }

    #[test]
    fn what_is_no_file_is_refused() {
        let folder = tempdir();
        assert!(open(folder.path()).unwrap_err().0.contains("not a file"));
        assert!(
            open(Path::new("/no/such"))
                .unwrap_err()
                .0
                .contains("cannot be read")
        );
    }
}
