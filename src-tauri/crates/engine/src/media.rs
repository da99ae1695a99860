//! Images and sounds of a chat: from the parts of its messages to rows for the model.

mod file;

use crate::{
    bad,
    generate::{Media, check_fits},
    llama::{Chunk, Chunks, MediumChunk, Projector, RowPositions, Token, stand_ins},
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use file::{LARGEST, MOST_PIXELS};
use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, atomic::AtomicBool},
};
use tierbar_core::{Code, Error};

/// The most media in one request.
const MOST_MEDIA: usize = 16;
/// The size of the cache for encoded images, which a conversation sends again each turn.
const KEPT_BYTES: usize = 64 << 20;

/// Reads images and audio with a projector.
#[derive(Debug)]
pub(crate) struct MediaReader {
    pub(crate) projector: Projector,
    /// The fingerprint of the projector's file: another one gives different rows.
    fingerprint: String,
    /// The most rows of one evaluation.
    batch: usize,
    /// Locked while decoding: the images of one request may take hundreds of megabytes.
    unpacking: Mutex<()>,
    kept: Mutex<RowCache>,
}

/// The medium, and the index of its chunk.
type RowKey = (String, usize);

/// Encoded rows in order of use, the oldest first.
#[derive(Debug, Default)]
struct RowCache(VecDeque<(RowKey, Arc<[f32]>)>);

/// A file in a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MediaFile {
    Image(Vec<u8>),
    Sound(Vec<u8>),
}

impl MediaReader {
    pub(crate) fn new(projector: Projector, fingerprint: String, batch: u32) -> Self {
        Self {
            projector,
            fingerprint,
            batch: batch as usize,
            unpacking: Mutex::default(),
            kept: Mutex::default(),
        }
    }

    /// Drops the cached rows. Returns their size in bytes.
    pub(crate) fn forget(&self) -> u64 {
        let kept = std::mem::take(&mut *self.kept.lock());
        kept.bytes() as u64
    }

    /// Takes the files out of the messages, in order, and leaves a marker for each.
    pub(crate) fn take(&self, messages: &mut [Value]) -> Result<Vec<MediaFile>, Error> {
        take_files(messages, self.projector.marker())
    }

    /// Returns the prompt's tokens, with a stand-in for each row of a medium, and the rows. Takes seconds for an image on a
    /// CPU, and ends early when `gone` is set.
    pub(crate) fn read_prompt(
        &self,
        prompt: &str,
        sent: Vec<MediaFile>,
        context: usize,
        gone: &Arc<AtomicBool>,
    ) -> Result<(Vec<Token>, Arc<[Media]>), Error> {
        let chunks = self.cut(prompt, sent)?;
        let (mut tokens, mut found) = (Vec::new(), Vec::new());
        let mut counts = HashMap::new();
        let (mut index, mut position) = (0, 0);
        while let Some(chunk) = self.projector.chunk(&chunks, index) {
            index += 1;
            match chunk {
                Chunk::Text(text) => {
                    tokens.extend_from_slice(text);
                    position += i32::try_from(text.len()).unwrap_or(i32::MAX);
                }
                Chunk::Medium(chunk) => {
                    // Rows that attend to each other are evaluated at once.
                    if chunk.whole && chunk.rows > self.batch {
                        return Err(bad(format!(
                            "an image takes {} positions of this model at once, and the maximum is {}",
                            chunk.rows, self.batch
                        )));
                    }
                    let nth = counts.entry(chunk.id.clone()).or_insert(0);
                    let key = (chunk.id.clone(), *nth);
                    *nth += 1;
                    let start = tokens.len();
                    let (places, after) = self.projector.places(&chunk, position);
                    tokens.extend(stand_ins_of(&self.fingerprint, &key, &places, after)?);
                    position = after;
                    found.push((start, key, places, chunk));
                }
            }
        }
        check_fits(tokens.len(), context)?;
        if tokens.last().is_none_or(|&last| last < 0) {
            let message = "the chat template ends with an image or a sound: nothing follows that an answer could begin at";
            return Err(bad(message));
        }
        let media = found.into_iter().map(|(start, key, places, chunk)| {
            Ok(Media {
                start,
                places,
                rows: self.rows(key, &chunk, gone)?,
                whole: chunk.whole,
            })
        });
        Ok((tokens, media.collect::<Result<_, Error>>()?))
    }

    fn cut(&self, prompt: &str, sent: Vec<MediaFile>) -> Result<Chunks, Error> {
        let _one = self.unpacking.lock();
        let projector = &self.projector;
        let mut media = Vec::with_capacity(sent.len());
        let mut pixels = MOST_PIXELS;
        for file in sent {
            media.push(match file {
                MediaFile::Image(_) if !projector.sees() => {
                    return Err(missing_sense("see images"));
                }
                MediaFile::Sound(_) if !projector.hears() => return Err(missing_sense("hear")),
                MediaFile::Image(file) => file::decode_image(&file, &mut pixels)?,
                MediaFile::Sound(file) => file::decode_sound(projector, &file)?,
            });
        }
        projector.cut(prompt, &media)
    }

    fn rows(
        &self,
        key: RowKey,
        chunk: &MediumChunk<'_>,
        gone: &Arc<AtomicBool>,
    ) -> Result<Arc<[f32]>, Error> {
        if let Some(rows) = self.kept.lock().get(&key) {
            return Ok(rows);
        }
        let rows: Arc<[f32]> = self.projector.encode(chunk, gone)?.into();
        self.kept.lock().put(key, Arc::clone(&rows));
        Ok(rows)
    }
}

impl RowCache {
    fn bytes(&self) -> usize {
        self.0.iter().map(|(_, rows)| size_of_val(&**rows)).sum()
    }

    fn get(&mut self, key: &RowKey) -> Option<Arc<[f32]>> {
        let at = self.0.iter().position(|(other, _)| other == key)?;
        let entry = self.0.remove(at)?;
        let rows = Arc::clone(&entry.1);
        self.0.push_back(entry);
        Some(rows)
    }

    fn put(&mut self, key: RowKey, rows: Arc<[f32]>) {
        self.0.retain(|(other, _)| *other != key);
        self.0.push_back((key, rows));
        while self.bytes() > KEPT_BYTES {
            self.0.pop_front();
        }
    }
}

/// Returns stand-ins, which are the same for the same rows of the same file, so that a cached conversation is found by its
/// tokens.
fn stand_ins_of(
    projector: &str,
    (id, nth): &RowKey,
    places: &[RowPositions],
    after: i32,
) -> Result<Vec<Token>, Error> {
    let seed = Sha256::new()
        .chain_update(projector)
        .chain_update(id)
        .chain_update((*nth as u64).to_le_bytes())
        // With a smaller context, the image may be smaller.
        .chain_update((places.len() as u64).to_le_bytes());
    let identity = |row: usize| {
        let hash = seed
            .clone()
            .chain_update((row as u64).to_le_bytes())
            .finalize();
        [hash[0], hash[1], hash[2], hash[3]]
    };
    let positions: Vec<_> = places.iter().map(|place| place[0]).collect();
    stand_ins(&positions, after, identity).ok_or_else(|| {
        let message = "this model numbers the positions of an image in a way that is not known";
        Error::new(Code::ModelUnsupported, message)
            .hint("send text alone, or use another model for images")
    })
}

fn take_files(messages: &mut [Value], marker: &str) -> Result<Vec<MediaFile>, Error> {
    let mut sent = Vec::new();
    for message in messages {
        let Some(parts) = message.get_mut("content").and_then(Value::as_array_mut) else {
            continue;
        };
        for part in parts {
            let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
            let file = match kind {
                "image_url" => MediaFile::Image(read_address(part)?),
                "input_audio" => MediaFile::Sound(read_audio(part)?),
                _ => continue,
            };
            if sent.len() == MOST_MEDIA {
                return Err(bad(format!(
                    "more than {MOST_MEDIA} images and sounds were sent"
                )));
            }
            sent.push(file);
            *part = json!({"type": "media_marker", "text": marker});
        }
    }
    Ok(sent)
}

fn read_address(part: &Value) -> Result<Vec<u8>, Error> {
    let address = part.pointer("/image_url/url").or(part.get("image_url"));
    let address = address
        .and_then(Value::as_str)
        .ok_or_else(|| bad("an `image_url` has no `url`"))?;
    let Some(rest) = address.strip_prefix("data:") else {
        let shown: String = address.chars().take(40).collect();
        return Err(bad(format!(
            "an image is at \"{shown}\", and nothing is fetched"
        ))
        .hint("send it in the request, as a data: URI: data:image/png;base64,…"));
    };
    match rest.split_once(',') {
        Some((kind, data)) if kind.ends_with(";base64") => decode_base64(data, "an image"),
        _ => Err(bad("an image's data: URI is not in base64")
            .hint("it has the form data:image/png;base64,…")),
    }
}

fn read_audio(part: &Value) -> Result<Vec<u8>, Error> {
    let data = part.pointer("/input_audio/data").and_then(Value::as_str);
    decode_base64(
        data.ok_or_else(|| bad("an `input_audio` has no `data`"))?,
        "a sound",
    )
}

fn decode_base64(data: &str, what: &str) -> Result<Vec<u8>, Error> {
    // Checked before decoding: base64 is a third longer.
    let bytes = data.len() / 4 * 3;
    if bytes > LARGEST {
        return Err(bad(format!(
            "{what} has {bytes} bytes, and the maximum is {LARGEST}"
        )));
    }
    BASE64_STANDARD
        .decode(data.trim())
        .map_err(|error| bad(format!("{what} is not valid base64: {error}")))
}

fn missing_sense(sense: &str) -> Error {
    bad(format!("this model's projector cannot {sense}"))
        .hint("send the request without it, or to another model")
}

#[cfg(test)]
mod tests;
