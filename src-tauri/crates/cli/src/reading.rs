//! Files whose text goes to a model: a text as it is, a document as the host reads documents.

use crate::output;
use serde_json::{Value, json};
use std::{
    fs::File,
    io::{Read, Seek, stdin},
    path::Path,
};
use tierbar_core::{Code, Error, bad_request, documents::FileText, units::file_size};
use tierbar_documents::extraction::to_file;
use tierbar_host::named::{self, unreadable};

/// So many bytes tell an image or a sound.
const HEAD: u64 = 16;

/// A file that can be read from its beginning, whatever it came from.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) name: String,
    file: File,
}

impl Input {
    /// Opens a file; `None` and `-` are stdin.
    pub(crate) fn open(path: Option<&Path>) -> Result<Self, Error> {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            let name = "stdin".to_owned();
            let file = to_file(&name, stdin().lock())?;
            return Ok(Self { name, file });
        };
        let name = path.display().to_string();
        let unread = |error| unreadable(&name, &error);
        let mut file = named::open(path)?;
        let about = file.metadata().map_err(unread)?;
        if about.is_dir() {
            return Err(bad_request(format!("{name} is a folder, not a file")));
        }
        if !about.is_file() {
            file = to_file(&name, file)?;
        }
        Ok(Self { name, file })
    }

    /// Returns the media type of an image or a sound.
    pub(crate) fn media_type(&mut self) -> Result<Option<&'static str>, Error> {
        Ok(media_type(&self.head(HEAD)?))
    }

    /// Returns the first bytes, at most so many.
    fn head(&mut self, most: u64) -> Result<Vec<u8>, Error> {
        let unread = |error| unreadable(&self.name, &error);
        let mut bytes = Vec::new();
        self.file.rewind().map_err(unread)?;
        let read = (&mut self.file).take(most).read_to_end(&mut bytes);
        read.map_err(unread)?;
        self.file.rewind().map_err(unread)?;
        Ok(bytes)
    }

    pub(crate) fn bytes(&mut self, most: u64) -> Result<Vec<u8>, Error> {
        let unread = |error| unreadable(&self.name, &error);
        let size = self.file.metadata().map_err(unread)?.len();
        if size > most {
            return Err(too_large(&self.name, size, most));
        }
        self.head(most)
    }

    /// Returns the text, and tells what of it is missing or may be wrong. A document may be larger than `most`.
    pub(crate) async fn text(self, most: u64) -> Result<String, Error> {
        let Self { name, file } = self;
        let FileText { text, notice } = tierbar_host::read_file(file, &name, most).await?;
        let size = text.len() as u64;
        if size > most {
            return Err(too_large(&name, size, most));
        }
        if let Some(notice) = notice {
            output::error_line(&format!("{name}: {notice}"));
        }
        Ok(text)
    }
}

/// Returns an image or a sound, in Base64, as a part of a message in OpenAI's form.
pub(crate) fn media_part(media_type: &str, data: &str) -> Value {
    let format = match media_type {
        "audio/mpeg" => "mp3",
        "audio/wav" => "wav",
        _ => {
            let url = format!("data:{media_type};base64,{data}");
            return json!({"type": "image_url", "image_url": {"url": url}});
        }
    };
    json!({"type": "input_audio", "input_audio": {"data": data, "format": format}})
}

/// Returns the media type of an image or a sound, by its first bytes.
fn media_type(head: &[u8]) -> Option<&'static str> {
    let begins = |mark: &[u8]| head.starts_with(mark);
    let is_riff = |kind: &[u8]| begins(b"RIFF") && head.get(8..12) == Some(kind);
    Some(match head {
        _ if is_riff(b"WAVE") => "audio/wav",
        _ if begins(b"ID3") => "audio/mpeg",
        // A frame of layer III; a text in UTF-16 begins alike.
        [0xff, second, ..] if second & 0xe6 == 0xe2 => "audio/mpeg",
        _ if begins(b"\x89PNG\r\n\x1a\n") => "image/png",
        _ if begins(b"\xff\xd8\xff") => "image/jpeg",
        _ if begins(b"GIF87a") || begins(b"GIF89a") => "image/gif",
        _ if is_riff(b"WEBP") => "image/webp",
        // Words begin with these letters too; four bytes behind the file's size are always 0.
        _ if begins(b"BM") && head.get(6..10) == Some(&[0; 4]) => "image/bmp",
        _ => return None,
    })
}

fn too_large(name: &str, size: u64, most: u64) -> Error {
    let (size, most) = (file_size(size), file_size(most));
    let message = format!("{name} has {size}; at most {most} are sent");
    Error::new(Code::PayloadTooLarge, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_text_is_read_as_it_is_and_what_is_none_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.log");
        std::fs::write(&path, "one\n\n two\n").unwrap();
        let mut input = Input::open(Some(&path)).unwrap();
        assert_eq!(input.head(3).unwrap(), b"one");
        assert_eq!(input.bytes(10).unwrap(), b"one\n\n two\n");
        let error = input.bytes(9).unwrap_err();
        assert!(
            error.message.ends_with("has 10 B; at most 9 B are sent"),
            "{error}"
        );
        assert_eq!(input.text(10).await.unwrap(), "one\n\n two\n");
        let input = Input::open(Some(&path)).unwrap();
        assert_eq!(input.text(9).await.unwrap_err().code, Code::PayloadTooLarge);

        let error = Input::open(Some(Path::new("/nowhere/at/all"))).unwrap_err();
        assert_eq!(error.code, Code::NotFound);
        assert!(
            error.message.starts_with("/nowhere/at/all cannot be read"),
            "{error}"
        );
        let error = Input::open(Some(folder.path())).unwrap_err();
        assert!(
            error.message.ends_with("is a folder, not a file"),
            "{error}"
        );
        let input = Input::open(Some(Path::new("/dev/null"))).unwrap();
        assert_eq!(input.text(9).await.unwrap(), "");
    }

    #[test]
    fn images_and_sound_are_recognized_by_their_contents() {
        for (start, kind) in [
            (&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], "image/png"),
            (b"\xff\xd8\xff\xe0\0\x10JFIF", "image/jpeg"),
            (b"RIFF\x24\0\0\0WEBPVP8 ", "image/webp"),
            (b"BM\x36\x84\x03\0\0\0\0\0\x36", "image/bmp"),
            (b"RIFF\x24\0\0\0WAVEfmt ", "audio/wav"),
            (b"ID3\x04\0\0", "audio/mpeg"),
            (b"\xff\xfb\x90\x64", "audio/mpeg"),
        ] {
            assert_eq!(media_type(start), Some(kind));
        }
        for text in [
            &b"BMW is a maker of cars"[..],
            b"RIFF is a format",
            b"\xff\xfeH\0i\0",
            b"GIF files",
            b"",
        ] {
            assert_eq!(media_type(text), None, "{text:?}");
        }
    }
}
