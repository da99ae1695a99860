//! Files of questions: as a turn's body has them, and as a request for an answer has them.

use base64::{Engine, prelude::BASE64_STANDARD};
use data_encoding::HEXLOWER;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, HashMap};
use tierbar_chats::{Attachment, Part};
use tierbar_core::{Error, bad_request};
use tierbar_store::NewAttachment;

/// The most files of one question.
const MOST: usize = 20;
const MAX_NAME_CHARS: usize = 200;
/// The most images and sounds that a request has, and their bytes: below what the engine takes. Older ones are named instead.
const MOST_MEDIA: usize = 16;
const MEDIA_BYTES: u64 = 20 << 20;
/// The same for texts: more than a context holds.
const TEXT_BYTES: u64 = 16 << 20;
/// The most bytes of files that a request is made of.
pub(super) const SENT_BYTES: usize = 36 << 20;

/// A file of a question, in the body of a turn.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum NewPart {
    Image {
        name: String,
        /// Such as `image/png`.
        media_type: String,
        /// In base64.
        data: String,
    },
    Audio {
        name: String,
        /// `audio/wav` or `audio/mpeg`.
        media_type: String,
        /// In base64.
        data: String,
    },
    /// A text, such as code.
    File {
        name: String,
        media_type: String,
        text: String,
    },
    /// A file that a message of this chat has already.
    Stored { sha256: String },
}

/// Reads the files of a question.
///
/// # Errors
/// `BadRequest` for more than 20, for a name or a type out of bounds, and for data that is empty or not base64.
pub(super) fn read(parts: Vec<NewPart>) -> Result<Vec<NewAttachment>, Error> {
    let count = parts.len();
    if count > MOST {
        let message = format!("the question has {count} files; at most {MOST} are sent");
        return Err(bad_request(message));
    }
    parts.into_iter().map(read_part).collect()
}

fn read_part(part: NewPart) -> Result<NewAttachment, Error> {
    Ok(match part {
        NewPart::Image {
            name,
            media_type,
            data,
        } => medium(name, media_type, "image/", &data, |file| Part::Image {
            file,
        })?,
        NewPart::Audio {
            name,
            media_type,
            data,
        } => medium(name, media_type, "audio/", &data, |file| Part::Audio {
            file,
        })?,
        NewPart::File {
            name,
            media_type,
            text,
        } => {
            let data = text.into_bytes();
            let file = describe(name, media_type, &data)?;
            let part = Part::File { file };
            NewAttachment::New { part, data }
        }
        NewPart::Stored { sha256 } => NewAttachment::Stored(sha256),
    })
}

fn medium(
    name: String,
    media_type: String,
    kind: &str,
    data: &str,
    part: fn(Attachment) -> Part,
) -> Result<NewAttachment, Error> {
    if !media_type.starts_with(kind) {
        let message = format!("{name}: \"{media_type}\" does not begin with \"{kind}\"");
        return Err(bad_request(message));
    }
    let data = BASE64_STANDARD
        .decode(data)
        .map_err(|error| bad_request(format!("{name} is not base64: {error}")))?;
    let file = describe(name, media_type, &data)?;
    if data.is_empty() {
        return Err(bad_request(format!("{} is empty", file.name)));
    }
    let part = part(file);
    Ok(NewAttachment::New { part, data })
}

fn describe(name: String, media_type: String, data: &[u8]) -> Result<Attachment, Error> {
    let is_short = |text: &str| {
        let chars = text.chars().count();
        (1..=MAX_NAME_CHARS).contains(&chars) && !text.chars().any(char::is_control)
    };
    if !is_short(&name) || !is_short(&media_type) {
        return Err(bad_request(format!(
            "the name and the type of a file have 1 to {MAX_NAME_CHARS} characters, without line breaks"
        )));
    }
    Ok(Attachment {
        sha256: hash_of(data),
        media_type,
        name,
        bytes: data.len() as u64,
    })
}

/// The hash by which a file is stored: SHA-256 in hexadecimal.
pub fn hash_of(data: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(data))
}

/// The files of a conversation's messages, by hash.
pub(super) type Files = HashMap<String, Vec<u8>>;

/// Whether it is an image or a sound.
pub(super) fn is_medium(part: &Part) -> bool {
    matches!(part, Part::Image { .. } | Part::Audio { .. })
}

/// The places of the files that are sent, by message and part: the newest that a request has room for, without images and sounds unless
/// `has_media`.
pub(super) fn choose_files(parts: &[&[Part]], has_media: bool) -> BTreeSet<(usize, usize)> {
    let mut sent = BTreeSet::new();
    let (mut media, mut media_bytes, mut text_bytes) = (0, 0_u64, 0_u64);
    for (at, parts) in parts.iter().enumerate().rev() {
        for (number, part) in parts.iter().enumerate().rev() {
            let Some(file) = part.file() else { continue };
            let fits = if matches!(part, Part::File { .. }) {
                text_bytes = text_bytes.saturating_add(file.bytes);
                text_bytes <= TEXT_BYTES
            } else {
                media += 1;
                media_bytes = media_bytes.saturating_add(file.bytes);
                has_media && media <= MOST_MEDIA && media_bytes <= MEDIA_BYTES
            };
            if fits {
                sent.insert((at, number));
            }
        }
    }
    sent
}

/// A message's content in OpenAI's form: a text, unless there are images or sound. Files that are not sent are named.
pub(super) fn content(
    text: String,
    parts: &[Part],
    files: &Files,
    is_sent: impl Fn(usize) -> bool,
) -> Value {
    let mut texts = Vec::new();
    let mut media = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let Some(file) = part.file() else { continue };
        let name = &file.name;
        let data = files.get(&file.sha256);
        match (part, data) {
            (Part::File { .. }, Some(data)) if is_sent(number) => {
                let text = String::from_utf8_lossy(data);
                texts.push(format!("File \"{name}\":\n\n{text}"));
            }
            (Part::Image { .. }, Some(data)) if is_sent(number) => {
                let data = BASE64_STANDARD.encode(data);
                let url = format!("data:{};base64,{data}", file.media_type);
                media.push(json!({"type": "image_url", "image_url": {"url": url}}));
            }
            (Part::Audio { .. }, Some(data)) if is_sent(number) => {
                let data = BASE64_STANDARD.encode(data);
                let format = if file.media_type.contains("wav") {
                    "wav"
                } else {
                    "mp3"
                };
                let sound = json!({"data": data, "format": format});
                media.push(json!({"type": "input_audio", "input_audio": sound}));
            }
            // What no longer fits is still named.
            _ => texts.push(format!("[{name}]")),
        }
    }
    if !text.is_empty() || texts.is_empty() {
        texts.push(text);
    }
    let text = texts.join("\n\n");
    if media.is_empty() {
        return text.into();
    }
    if !text.is_empty() {
        media.push(json!({"type": "text", "text": text}));
    }
    media.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_core::Code;

    fn image(bytes: u64) -> Part {
        let file = Attachment {
            sha256: "a".into(),
            media_type: "image/png".into(),
            name: "cat.png".into(),
            bytes,
        };
        Part::Image { file }
    }

    #[test]
    fn a_file_of_a_question_is_read_with_its_hash() {
        let part = |json: Value| serde_json::from_value::<NewPart>(json).unwrap();
        let text = part(
            json!({"type": "file", "name": "a.rs", "media_type": "text/plain", "text": "abc"}),
        );
        let attachments = read(vec![text]).unwrap();
        let [
            NewAttachment::New {
                part: Part::File { file },
                data,
            },
        ] = attachments.as_slice()
        else {
            panic!("it is a file");
        };
        assert_eq!(
            (&data[..], file.bytes, &*file.name),
            (&b"abc"[..], 3, "a.rs")
        );
        assert!(file.sha256.starts_with("ba7816bf"), "{}", file.sha256);
        for wrong in [
            json!({"type": "image", "name": "a.png", "media_type": "image/png", "data": "%"}),
            json!({"type": "image", "name": "a.png", "media_type": "text/html", "data": ""}),
            json!({"type": "file", "name": "a\nb", "media_type": "text/plain", "text": ""}),
            json!({"type": "file", "name": "", "media_type": "text/plain", "text": ""}),
        ] {
            let error = read(vec![part(wrong.clone())]).unwrap_err();
            assert_eq!(error.code, Code::BadRequest, "{wrong}");
        }
        let empty =
            json!({"type": "audio", "name": "a.wav", "media_type": "audio/wav", "data": ""});
        let error = read(vec![part(empty)]).unwrap_err();
        assert_eq!(error.message, "a.wav is empty");
    }

    #[test]
    fn texts_are_one_text_and_images_are_parts() {
        let file = Attachment {
            sha256: "b".into(),
            media_type: "text/plain".into(),
            name: "a.rs".into(),
            bytes: 2,
        };
        let files = Files::from([("a".into(), vec![0]), ("b".into(), b"fn".to_vec())]);
        let parts = [Part::File { file }];
        let only_text = content("Why?".into(), &parts, &files, |_| true);
        assert_eq!(only_text, "File \"a.rs\":\n\nfn\n\nWhy?");
        let shown = content("Why?".into(), &[image(1)], &files, |_| true);
        assert_eq!(shown[0]["image_url"]["url"], "data:image/png;base64,AA==");
        assert_eq!(shown[1]["text"], "Why?");
        let named = content("Why?".into(), &[image(1)], &files, |_| false);
        assert_eq!(named, "[cat.png]\n\nWhy?");
        assert_eq!(content(String::new(), &[], &files, |_| true), "");
    }

    #[test]
    fn the_newest_images_are_sent() {
        let newest = choose_files(&[&[image(1)][..]; 20], true);
        assert_eq!((newest.len(), newest.first()), (MOST_MEDIA, Some(&(4, 0))));
        let large: [&[Part]; 2] = [&[image(MEDIA_BYTES), image(1)], &[image(1)]];
        assert_eq!(Vec::from_iter(choose_files(&large, true)), [(0, 1), (1, 0)]);
        assert!(choose_files(&large, false).is_empty());
    }
}
