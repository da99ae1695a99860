//! The text of a person's file for a model: a text as it is, a document as `tierbar-extract` reads it, and nothing else.

use super::extract::{self, Unread};
use crate::worker;
use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};
use tierbar_core::{Code, Error, documents::FileText};
use tierbar_documents::{
    Refusal,
    charset::DecodedText,
    extraction::{LARGEST_FILE, OutputReader, too_large},
    plain_text,
};
use tierbar_fetch::blocking;
use tokio::sync::Semaphore;

/// A reader may take a gigabyte, so one reads at a time.
static READING: Semaphore = Semaphore::const_new(1);

/// Returns the text of a file for a model. A text has at most `most` bytes; a document may be larger.
///
/// # Errors
/// `BadRequest` with the reason for what cannot be read, `PayloadTooLarge` for what is too large.
pub async fn read_file(file: File, name: &str, most: u64) -> Result<FileText, Error> {
    let owned = PathBuf::from(name);
    let looked = blocking("a look at the file", move || look(file, &owned, most)).await?;
    match looked {
        Contents::Text(text) => Ok(text),
        Contents::Document(file) => {
            read_document(worker::find("extract", None), file, Path::new(name)).await
        }
    }
}

pub(crate) enum Contents {
    Text(FileText),
    /// Or what is neither.
    Document(File),
}

impl Contents {
    /// Returns the text that these bytes are.
    pub(crate) fn of_text(bytes: &[u8], name: &Path) -> Option<Self> {
        let DecodedText { text, doubt } = plain_text(bytes, name)?;
        Some(Self::Text(FileText {
            text,
            notice: doubt,
        }))
    }
}

fn look(mut file: File, name: &Path, most: u64) -> Result<Contents, Error> {
    let unread = |error: io::Error| {
        let message = format!("{} cannot be read: {error}", name.display());
        Error::new(Code::BadRequest, message)
    };
    let mut bytes = Vec::new();
    let read = (&mut file).take(most + 1).read_to_end(&mut bytes);
    let is_larger = read.map_err(unread)? as u64 > most;
    match Contents::of_text(&bytes, name) {
        Some(_) if is_larger => Err(too_large(&name.display().to_string(), most)),
        Some(text) => Ok(text),
        None => {
            file.rewind().map_err(unread)?;
            Ok(Contents::Document(file))
        }
    }
}

/// Returns the text of an open document. `program`: `tierbar-extract`, or why it is not there.
///
/// # Errors
/// `BadRequest` with the reason for what cannot be read.
pub(crate) async fn read_document(
    program: Result<PathBuf, Error>,
    mut file: File,
    path: &Path,
) -> Result<FileText, Error> {
    let program = program?;
    let name = path.file_name().unwrap_or_default();
    let refused = |Refusal(why): Refusal| {
        let message = format!("{} cannot be read: {why}", path.display());
        Error::new(Code::BadRequest, message.trim_end_matches('.'))
    };
    let size = file.seek(SeekFrom::End(0)).and_then(|size| {
        file.rewind()?;
        Ok(size)
    });
    if size.is_ok_and(|size| size > LARGEST_FILE) {
        return Err(refused(extract::too_large()));
    }
    // It is never closed.
    let _one = READING.acquire().await;
    let reader = OutputReader::of_text();
    let read = extract::extract(&program, file, name, false, reader).await;
    let read = read.map_err(|unread| match unread {
        Unread::Refused(refusal) => refused(refusal),
        Unread::Lack(error) | Unread::NoProgram(error) => error,
    })?;
    Ok(FileText {
        text: read.text,
        notice: read.facts.notice,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{documents::tests::program, sources::tests::tempdir};
    use tierbar_documents::extraction::to_file;

    async fn read(name: &str, bytes: &[u8], most: u64) -> Result<FileText, Error> {
        let folder = tempdir();
        let script = r#"[ "$1" = "a b.pdf" ] && [ "$(head -c 5)" = "%PDF-" ] &&
            echo '{"block":{"text":"One"}}' && echo '{"block":{"text":"Two"}}' &&
            echo '{"end":{"kind":"pdf","notice":"1 of 2 pages is damaged."}}' ||
            echo '{"refused":"This file holds no text."}'"#;
        let program = Ok(program(folder.path(), script));
        let path = Path::new(name);
        match look(to_file(name, bytes)?, path, most)? {
            Contents::Text(text) => Ok(text),
            Contents::Document(file) => read_document(program, file, path).await,
        }
    }

    #[tokio::test]
    async fn a_text_is_as_it_is_and_a_document_is_read() {
        let text = read("a.log", "  größer\n\n".as_bytes(), 100).await;
        assert_eq!(text.unwrap().text, "  größer\n\n");
        let latin = read("a.txt", b"caf\xe9", 100).await.unwrap();
        assert!(latin.notice.unwrap().contains("guessed"));
        // It may be larger than a text.
        let pdf = read("/x/a b.pdf", b"%PDF-1.7\n and more", 5).await.unwrap();
        assert_eq!(pdf.text, "One\n\nTwo");
        assert_eq!(pdf.notice.as_deref(), Some("1 of 2 pages is damaged."));
    }

    #[tokio::test]
    async fn what_nothing_reads_is_refused_by_its_name() {
        let error = read("stdin", b"\x7fELF\0\0", 100).await.unwrap_err();
        assert_eq!(
            error.message,
            "stdin cannot be read: This file holds no text"
        );
        assert_eq!(error.code, Code::BadRequest);
        let error = read("a.log", b"two\nlines", 5).await.unwrap_err();
        assert_eq!(error.code, Code::PayloadTooLarge, "{error}");
        let missing = Err(Error::new(Code::Internal, "cannot find it"));
        let file = to_file("a.pdf", &b"%PDF-"[..]).unwrap();
        let error = read_document(missing, file, Path::new("a.pdf")).await;
        assert_eq!(error.unwrap_err().message, "cannot find it");
    }
}
