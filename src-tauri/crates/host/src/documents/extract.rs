//! Has `tierbar-extract` read a file: a process of its own, with nothing but the file and a way to write its text.

use crate::sources;
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read, Seek},
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

/// Opens and hashes a file; returns it with its SHA-256. Blocking.
///
/// # Errors
/// Why it cannot be read, in a sentence.
pub(super) fn open(path: &Path) -> Result<(File, String), Refusal> {
    let refused = |error: io::Error| Refusal(format!("This file cannot be opened: {error}."));
    let opened = sources::open(path);
    let opened = opened.map_err(|error| Refusal(format!("{}.", error.message)))?;
    let about = opened.about().map_err(refused)?;
    if !about.is_file {
        return Err(Refusal("This is not a file any more.".to_owned()));
    }
    if about.in_cloud {
        let why = "This file is in iCloud only. Download it in the Finder.";
        return Err(Refusal(why.to_owned()));
    }
    if about.bytes > LARGEST_FILE {
        return Err(too_large());
    }
    let mut file = opened.into_file();
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; BUFFER]);
    loop {
        match file.read(&mut buffer).map_err(refused)? {
            0 => break,
            read => hash.update(&buffer[..read]),
        }
    }
    file.rewind().map_err(refused)?;
    Ok((file, HEXLOWER.encode(&hash.finalize())))
}

pub(super) fn too_large() -> Refusal {
    let most = LARGEST_FILE >> 20;
    Refusal(format!("Files of more than {most} MB are not read."))
}

/// Has an open file read from its place on. `pictures`: whether pages that are pictures are returned, too. `reader`: keeps what is needed.
///
/// # Errors
/// Why it has no text, in a sentence.
pub(super) async fn extract(
    program: &Path,
    file: File,
    name: &OsStr,
    pictures: bool,
    reader: OutputReader,
) -> Result<ExtractedDocument, Refusal> {
    let begun = Command::new(program)
        .arg(name)
        .args(pictures.then_some("--pictures"))
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(file))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn();
    let child = begun.map_err(|error| {
        Refusal(format!(
            "The program that reads documents does not start: {error}."
        ))
    })?;
    match timeout(Duration::from_secs(LONGEST), read_output(child, reader)).await {
        Ok(document) => document,
        Err(_) => OutputReader::default().finish(ProcessEnd::TooLong),
    }
}

/// Reads what the process writes, and waits for its end. Dropped, it ends the process.
async fn read_output(
    mut child: Child,
    mut reader: OutputReader,
) -> Result<ExtractedDocument, Refusal> {
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
    use crate::{documents::tests::program, sources::tests::tempdir};

    async fn run(script: &str) -> Result<ExtractedDocument, Refusal> {
        let folder = tempdir();
        let document = folder.path().join("a.txt");
        std::fs::write(&document, "Some words").unwrap();
        let (file, sha256) = open(&document).unwrap();
        assert_eq!(sha256.len(), 64);
        let (program, name) = (program(folder.path(), script), OsStr::new("a.txt"));
        extract(&program, file, name, false, OutputReader::default()).await
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
