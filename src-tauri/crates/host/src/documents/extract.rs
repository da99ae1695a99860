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
use tierbar_core::{Code, Error, own_lack, own_lack_of_start};
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

/// Why a file has no text.
#[derive(Debug)]
pub(super) enum Unread {
    /// For what it is, in a sentence.
    Refused(Refusal),
    /// For what this computer lacks: it can be read later.
    Lack(Error),
    /// The program that reads documents does not start; no file can be read.
    NoProgram(Error),
}

impl From<Refusal> for Unread {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Opens and hashes a file; returns it with its SHA-256. Blocking.
///
/// # Errors
/// Why it cannot be read.
pub(super) fn open(path: &Path) -> Result<(File, String), Unread> {
    let refused = |error: io::Error| match own_lack(&error) {
        Some(lack) => Unread::Lack(lack),
        None => Refusal(format!("This file cannot be opened: {error}.")).into(),
    };
    let opened = sources::open(path).map_err(|error| match error.code {
        Code::Overloaded => Unread::Lack(error),
        _ => Refusal(format!("{}.", error.message)).into(),
    })?;
    let about = opened.about().map_err(refused)?;
    if !about.is_file {
        return Err(Refusal("This is not a file any more.".to_owned()).into());
    }
    if about.in_cloud {
        let why = "This file is in iCloud only. Download it in the Finder.";
        return Err(Refusal(why.to_owned()).into());
    }
    if about.bytes > LARGEST_FILE {
        return Err(too_large().into());
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
/// Why it has no text.
pub(super) async fn extract(
    program: &Path,
    file: File,
    name: &OsStr,
    pictures: bool,
    reader: OutputReader,
) -> Result<ExtractedDocument, Unread> {
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
        Unread::NoProgram(own_lack_of_start(&error).unwrap_or_else(|| {
            let message = format!("the program that reads documents does not start: {error}");
            Error::new(Code::Internal, message).hint("install Tierbar again")
        }))
    })?;
    let read = timeout(Duration::from_secs(LONGEST), read_output(child, reader)).await;
    let read = read.unwrap_or_else(|_| OutputReader::default().finish(ProcessEnd::TooLong));
    read.map_err(Unread::from)
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

    fn why(unread: Unread) -> String {
        match unread {
            Unread::Refused(Refusal(why)) => why,
            Unread::Lack(error) | Unread::NoProgram(error) => panic!("{error}"),
        }
    }

    async fn run(script: &str) -> Result<ExtractedDocument, String> {
        let folder = tempdir();
        let document = folder.path().join("a.txt");
        std::fs::write(&document, "Some words").unwrap();
        let (file, sha256) = open(&document).unwrap();
        assert_eq!(sha256.len(), 64);
        let (program, name) = (program(folder.path(), script), OsStr::new("a.txt"));
        let read = extract(&program, file, name, false, OutputReader::default()).await;
        read.map_err(why)
    }

    #[tokio::test]
    async fn a_program_that_does_not_start_is_not_the_files_fault() {
        let (program, file) = (Path::new("/no/program"), tempfile::tempfile().unwrap());
        let read = extract(
            program,
            file,
            OsStr::new("a.txt"),
            false,
            OutputReader::default(),
        );
        let unread = read.await.unwrap_err();
        assert!(matches!(unread, Unread::NoProgram(_)), "{unread:?}");
    }

    #[tokio::test]
    async fn a_process_that_ends_badly_costs_only_its_document() {
        let script = r#"[ "$1" = a.txt ] && [ "$(cat)" = "Some words" ] && [ -z "$HOME" ] &&
            echo '{"block":{"text":"Some words"}}' && echo '{"end":{"kind":"text"}}'"#;
        let read = run(script).await.unwrap();
        assert_eq!(read.passages[0].text, "Some words");
        for (script, why) in [
            ("echo '{\"end\":{}}'; exit 1", "damaged"),
            ("kill -ABRT $$", "memory"),
            ("echo nonsense", "damaged"),
        ] {
            let refused = run(script).await.unwrap_err();
            assert!(refused.contains(why), "{script}: {refused}");
        }
    }

    #[test]
    fn what_is_no_file_is_refused() {
        let folder = tempdir();
        for (path, reason) in [
            (folder.path(), "not a file"),
            (Path::new("/no/such"), "cannot be read"),
        ] {
            let refused = why(open(path).unwrap_err());
            assert!(refused.contains(reason), "{refused}");
        }
    }
}
