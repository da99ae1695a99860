//! Files that go with a question.

use crate::reading::{Input, media_part};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tierbar_core::{Error, home::from_home};

/// The most bytes of a text, and of an image or a sound.
const TEXT_BYTES: u64 = 2 << 20;
const MEDIA_BYTES: u64 = 16 << 20;

/// Reads a file as a turn has it: of a document, its text.
pub(super) async fn read(path: &Path) -> Result<Value, Error> {
    let mut input = Input::open(Some(path))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let Some(media_type) = input.media_type()? else {
        let text = input.text(TEXT_BYTES).await?;
        return Ok(json!({"type": "file", "name": name, "media_type": "text/plain", "text": text}));
    };
    let kind = if media_type.starts_with("audio/") {
        "audio"
    } else {
        "image"
    };
    let data = BASE64_STANDARD.encode(input.bytes(MEDIA_BYTES)?);
    Ok(json!({"type": kind, "name": name, "media_type": media_type, "data": data}))
}

/// Reads files as a turn has them.
pub(super) async fn read_all(paths: &[PathBuf]) -> Result<Vec<Value>, Error> {
    let mut files = Vec::new();
    for path in paths {
        files.push(read(path).await?);
    }
    Ok(files)
}

/// Returns a question with its files as the content of a message in OpenAI's form, as the host makes it of a turn.
pub(super) fn content(question: &str, files: &[Value]) -> Value {
    let mut texts = Vec::new();
    let mut media = Vec::new();
    for file in files {
        let of = |field: &str| file[field].as_str().unwrap_or_default();
        match of("type") {
            "file" => texts.push(format!("File \"{}\":\n\n{}", of("name"), of("text"))),
            _ => media.push(media_part(of("media_type"), of("data"))),
        }
    }
    texts.push(question.to_owned());
    let text = texts.join("\n\n");
    if media.is_empty() {
        return text.into();
    }
    media.push(json!({"type": "text", "text": text}));
    media.into()
}

/// Returns the path that was typed, from the home folder if it begins with `~`.
pub(super) fn path_as_typed(path: &str) -> PathBuf {
    from_home(path, std::env::home_dir())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_question_that_is_not_saved_has_its_files() {
        let text =
            json!({"type": "file", "name": "a.rs", "media_type": "text/plain", "text": "fn"});
        let asked = content("Why?", std::slice::from_ref(&text));
        assert_eq!(asked, "File \"a.rs\":\n\nfn\n\nWhy?");
        let image =
            json!({"type": "image", "name": "a.png", "media_type": "image/png", "data": "AA=="});
        let asked = content("Why?", &[image]);
        assert_eq!(asked[0]["image_url"]["url"], "data:image/png;base64,AA==");
        assert_eq!(asked[1]["text"], "Why?");
        assert_eq!(content("Why?", &[]), "Why?");
    }

    #[tokio::test]
    async fn a_sound_is_sent_in_a_format_of_openai() {
        let folder = tempfile::tempdir().unwrap();
        // By its content, whatever its name is.
        for (name, start, format) in [
            ("a.mp3", &b"ID3\x04\0\0"[..], "mp3"),
            ("voice", b"RIFF\x24\0\0\0WAVE", "wav"),
        ] {
            let path = folder.path().join(name);
            fs::write(&path, start).unwrap();
            let asked = content("Why?", &[read(&path).await.unwrap()]);
            let data = BASE64_STANDARD.encode(start);
            assert_eq!(
                asked[0],
                json!({"type": "input_audio", "input_audio": {"data": data, "format": format}})
            );
        }
    }

    #[tokio::test]
    async fn texts_and_images_are_read_and_others_refused() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, data: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, data).unwrap();
            path
        };
        let text = read(&write("a.rs", b"fn")).await.unwrap();
        let wanted =
            json!({"type": "file", "name": "a.rs", "media_type": "text/plain", "text": "fn"});
        assert_eq!(text, wanted);
        let image = read(&write("a.txt", b"\x89PNG\r\n\x1a\n")).await.unwrap();
        assert_eq!(
            (&image["type"], &image["data"]),
            (&json!("image"), &json!("iVBORw0KGgo="))
        );
        let text = read(&write("a.png", b"no picture")).await.unwrap();
        assert_eq!(text["text"], "no picture");
        let large = write("large.wav", b"RIFF\x24\0\0\0WAVE");
        let file = fs::File::options().write(true).open(&large).unwrap();
        file.set_len(2_000_000_000).unwrap();
        for (path, why) in [
            (large, "has 2 GB"),
            (
                write("long.txt", &vec![b'x'; 3 << 20]),
                "is larger than 2 MB",
            ),
            (folder.path().to_owned(), "is a folder"),
            (folder.path().join("none"), "cannot be read"),
        ] {
            let error = read(&path).await.unwrap_err();
            assert!(error.message.contains(why), "{error}");
        }
    }
}
