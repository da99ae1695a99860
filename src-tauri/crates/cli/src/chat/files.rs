//! Files that go with a question.

use crate::unreadable::unreadable;
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
};
use tierbar_core::{Code, Error, home::from_home, units::file_size};

/// The most bytes of a text, and of an image or a sound.
const TEXT_BYTES: u64 = 2 << 20;
const MEDIA_BYTES: u64 = 16 << 20;

/// Reads a file as a turn has it.
///
/// # Errors
/// `NotFound` or `AccessDenied` for what cannot be opened, `BadRequest` with the reason for what cannot be sent, before a file that is
/// too large is read.
pub(super) fn read(path: &Path) -> Result<Value, Error> {
    let shown = path.display();
    let refused = |why: String| Error::new(Code::BadRequest, format!("{shown} {why}"));
    let unread = |error: std::io::Error| unreadable(&shown.to_string(), &error);
    let about = fs::metadata(path).map_err(unread)?;
    if !about.is_file() {
        return Err(refused("is not a file".to_owned()));
    }
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    let (kind, media_type, most) = match extension.to_ascii_lowercase().as_str() {
        "png" => ("image", "image/png", MEDIA_BYTES),
        "jpg" | "jpeg" => ("image", "image/jpeg", MEDIA_BYTES),
        "gif" => ("image", "image/gif", MEDIA_BYTES),
        "webp" => ("image", "image/webp", MEDIA_BYTES),
        "bmp" => ("image", "image/bmp", MEDIA_BYTES),
        "wav" => ("audio", "audio/wav", MEDIA_BYTES),
        "mp3" => ("audio", "audio/mpeg", MEDIA_BYTES),
        "pdf" => {
            let error = refused("is a PDF".to_owned());
            return Err(error.hint("attach it in the chat window, which reads its text"));
        }
        _ => ("file", "text/plain", TEXT_BYTES),
    };
    if about.len() > most {
        let (size, most) = (file_size(about.len()), file_size(most));
        return Err(refused(format!("has {size}; at most {most} are sent")));
    }
    let data = fs::read(path).map_err(unread)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if kind == "file" {
        let text = String::from_utf8(data).ok();
        let Some(text) = text.filter(|text| !text.contains('\0')) else {
            return Err(refused("is not a text, an image or a sound".to_owned()));
        };
        return Ok(json!({"type": kind, "name": name, "media_type": media_type, "text": text}));
    }
    let data = BASE64_STANDARD.encode(data);
    Ok(json!({"type": kind, "name": name, "media_type": media_type, "data": data}))
}

/// Reads files as a turn has them.
///
/// # Errors
/// That of the first one that cannot be sent.
pub(super) fn read_all(paths: &[PathBuf]) -> Result<Vec<Value>, Error> {
    paths.iter().map(|path| read(path)).collect()
}

/// Returns a question with its files as the content of a message in OpenAI's form, as the host makes it of a turn.
pub(super) fn content(question: &str, files: &[Value]) -> Value {
    let mut texts = Vec::new();
    let mut media = Vec::new();
    for file in files {
        let of = |field: &str| file[field].as_str().unwrap_or_default();
        match of("type") {
            "image" => {
                let url = format!("data:{};base64,{}", of("media_type"), of("data"));
                media.push(json!({"type": "image_url", "image_url": {"url": url}}));
            }
            "audio" => {
                let format = of("media_type").trim_start_matches("audio/");
                let sound = json!({"data": of("data"), "format": format});
                media.push(json!({"type": "input_audio", "input_audio": sound}));
            }
            _ => texts.push(format!("File \"{}\":\n\n{}", of("name"), of("text"))),
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

    #[test]
    fn a_question_that_is_not_saved_has_its_files() {
        let text =
            json!({"type": "file", "name": "a.rs", "media_type": "text/plain", "text": "fn"});
        let asked = content("Why?", std::slice::from_ref(&text));
        assert_eq!(asked, "File \"a.rs\":\n\nfn\n\nWhy?");
        let image =
            json!({"type": "image", "name": "a.png", "media_type": "image/png", "data": "AA=="});
        let sound =
            json!({"type": "audio", "name": "a.mp3", "media_type": "audio/mp3", "data": "AA=="});
        let asked = content("Why?", &[image, sound]);
        assert_eq!(asked[0]["image_url"]["url"], "data:image/png;base64,AA==");
        assert_eq!(asked[1]["input_audio"]["format"], "mp3");
        assert_eq!(asked[2]["text"], "Why?");
        assert_eq!(content("Why?", &[]), "Why?");
    }

    #[test]
    fn texts_and_images_are_read_and_others_refused() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, data: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, data).unwrap();
            path
        };
        let text = read(&write("a.rs", b"fn")).unwrap();
        let wanted =
            json!({"type": "file", "name": "a.rs", "media_type": "text/plain", "text": "fn"});
        assert_eq!(text, wanted);
        let image = read(&write("a.PNG", &[0])).unwrap();
        assert_eq!(
            (&image["type"], &image["data"]),
            (&json!("image"), &json!("AA=="))
        );
        let large = write("large.txt", b"");
        let file = fs::File::options().write(true).open(&large).unwrap();
        file.set_len(2_000_000_000).unwrap();
        for (path, why) in [
            (large, "has 2 GB"),
            (write("a.bin", &[0xff, 0]), "is not a text"),
            (write("a.pdf", b"%PDF"), "is a PDF"),
            (folder.path().to_owned(), "is not a file"),
            (folder.path().join("none"), "cannot be read"),
        ] {
            let error = read(&path).unwrap_err();
            assert!(error.message.contains(why), "{error}");
        }
    }
}
