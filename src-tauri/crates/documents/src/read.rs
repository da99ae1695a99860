//! Readers, one per kind of document: bytes in, blocks of text out, in reading order.

mod code;
mod docx;
mod html;
mod mail;
mod markdown;
mod office;
mod pdf;
mod plain;
mod pptx;
pub(crate) mod zip;

use crate::{
    charset,
    kind::{is_zip, kind},
    text,
};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Serialize};
use std::{fmt, path::Path};
use tierbar_core::documents::DocumentKind;

/// The most bytes of text that are read of a document; what is behind them is left out, and reported.
pub const LONGEST_TEXT: usize = 32 << 20;
/// Pages of one document that a model may read, and the most bytes of their pictures: reading one can take a minute.
pub const MOST_PICTURES: usize = 40;
const MOST_PICTURE_BYTES: usize = 24 << 20;
/// One that is larger is for print, and no model sees more in it.
const LARGEST_PICTURE: usize = 8 << 20;
/// How Microsoft's compound files begin: old Office documents, and new ones within, if they are encrypted ([MS-CFB], [MS-OFFCRYPTO]).
const COMPOUND: &[u8] = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1";
const SOFT_HYPHEN: char = '\u{ad}';
/// A longer block is cut.
const LONGEST_BLOCK: usize = 64 << 10;

/// A paragraph, heading, slide's line, table row or piece of code.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    pub text: String,
    /// The level of a heading, 1 to 6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heading: Option<u8>,
    /// The page or slide, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<u32>,
    /// The line where it begins, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl Block {
    fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }
}

/// Lines that become a block.
#[derive(Default)]
struct OpenBlock {
    text: String,
    /// The first one's number.
    line: u32,
}

impl OpenBlock {
    fn add(&mut self, between: &str, line: &str, number: u32) {
        if self.text.is_empty() {
            self.line = number;
        } else {
            self.text.push_str(between);
        }
        self.text.push_str(line.trim_end());
    }

    fn take(&mut self) -> Block {
        Block {
            line: Some(self.line),
            ..Block::new(std::mem::take(&mut self.text))
        }
    }
}

/// A page that is a picture without text, for a model that reads images.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picture {
    pub page: u32,
    /// In base64.
    pub jpeg: String,
}

/// What is read of a document, as it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Block(Block),
    Picture(Picture),
}

/// What is known of a document once it has been read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    pub kind: Option<DocumentKind>,
    pub title: Option<String>,
    /// Pages or slides.
    pub pages: Option<u32>,
    /// What is missing or may be wrong, in sentences.
    pub notice: Option<String>,
    /// Pages that are pictures without text, if their pictures were asked for; the notice does not have them then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pictured: Vec<u32>,
}

/// Why a document has no text, in a sentence for its owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal(pub String);

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Refusal {
    fn new(sentence: impl Into<String>) -> Self {
        Self(sentence.into())
    }
}

struct Sink<'a> {
    take: &'a mut dyn FnMut(Part),
    wants_pictures: bool,
    pictures: usize,
    picture_bytes: usize,
    bytes: usize,
    /// Text was left out.
    full: bool,
    letters: usize,
    /// Letters that could not be read.
    lost: usize,
    /// What is missing or may be wrong, each in a sentence.
    notices: Vec<String>,
}

impl Sink<'_> {
    /// Notes what is missing or may be wrong, once.
    fn warn(&mut self, sentence: impl Into<String>) {
        let sentence = sentence.into();
        if !self.notices.contains(&sentence) {
            self.notices.push(sentence);
        }
    }

    fn push(&mut self, mut block: Block) {
        if block.text.len() > LONGEST_BLOCK {
            let mut rest = block.text.as_str();
            while !rest.is_empty() {
                let part = text::head(rest, LONGEST_BLOCK);
                rest = &rest[part.len()..];
                self.push(Block {
                    text: part.to_owned(),
                    heading: None,
                    ..block
                });
            }
            return;
        }
        // A text cannot hold what no text has, and a hyphen that is not shown would cut a word.
        block.text.retain(|letter| {
            matches!(letter, '\n' | '\t') || !letter.is_control() && letter != SOFT_HYPHEN
        });
        if block.text.trim().is_empty() {
            return;
        }
        for letter in block.text.chars() {
            self.letters += usize::from(!letter.is_whitespace());
            self.lost += usize::from(letter == char::REPLACEMENT_CHARACTER);
        }
        self.bytes += block.text.len();
        if self.bytes > LONGEST_TEXT {
            self.full = true;
            return;
        }
        (self.take)(Part::Block(block));
    }

    /// Returns a file as text, and notes whether its letters may be wrong.
    fn decode(&mut self, bytes: &[u8], is_html: bool) -> Result<String, Refusal> {
        let decoded = charset::decode(bytes, None, is_html)
            .ok_or_else(|| Refusal::new("This file holds no text."))?;
        decoded.doubt.into_iter().for_each(|doubt| self.warn(doubt));
        Ok(decoded.text)
    }

    /// Takes a page that is a picture, if it is wanted and there is room for it.
    fn picture(&mut self, page: u32, jpeg: &[u8]) {
        let bytes = self.picture_bytes + jpeg.len();
        let is_large = jpeg.len() > LARGEST_PICTURE || bytes > MOST_PICTURE_BYTES;
        if !self.wants_pictures || self.pictures >= MOST_PICTURES || is_large {
            return;
        }
        self.pictures += 1;
        self.picture_bytes = bytes;
        let jpeg = STANDARD.encode(jpeg);
        (self.take)(Part::Picture(Picture { page, jpeg }));
    }
}

/// Reads a document. Its parts come while it is read. `pictures`: whether pages that are pictures are among them.
///
/// # Errors
/// Why it has nothing to read. Parts that came before are of no use.
pub fn read(
    bytes: &[u8],
    name: &Path,
    pictures: bool,
    take: &mut dyn FnMut(Part),
) -> Result<Facts, Refusal> {
    if bytes.is_empty() {
        return Err(Refusal::new("This file is empty."));
    }
    let Some(kind) = kind(bytes, name) else {
        if bytes.starts_with(COMPOUND) {
            return Err(Refusal::new(
                "This Office document has a password, or is of a version before 2007. Save it as .docx or .pptx without a password to have it read.",
            ));
        }
        if is_zip(bytes) {
            zip::Archive::open(bytes)?;
        }
        return Err(Refusal::new(
            "This file is neither text nor a document that Tierbar can read: PDF, Word (.docx), PowerPoint (.pptx), HTML or mail.",
        ));
    };
    let mut sink = Sink {
        take,
        wants_pictures: pictures,
        pictures: 0,
        picture_bytes: 0,
        bytes: 0,
        full: false,
        letters: 0,
        lost: 0,
        notices: Vec::new(),
    };
    let mut facts = match kind {
        DocumentKind::Pdf => pdf::read(bytes, &mut sink)?,
        DocumentKind::Docx => docx::read(bytes, &mut sink)?,
        DocumentKind::Pptx => pptx::read(bytes, &mut sink)?,
        DocumentKind::Mail => mail::read(bytes, &mut sink),
        DocumentKind::Markdown => markdown::read(&sink.decode(bytes, false)?, &mut sink),
        DocumentKind::Html => html::read(&sink.decode(bytes, true)?, &mut sink),
        DocumentKind::Text => plain::read(&sink.decode(bytes, false)?, &mut sink),
        DocumentKind::Code => code::read(&sink.decode(bytes, false)?, name, &mut sink)?,
    };
    facts.kind = Some(kind);
    if sink.bytes == 0 && sink.pictures == 0 {
        return Err(Refusal::new("This file holds no text."));
    }
    // A PDF reports its own.
    if sink.lost > 0 && kind != DocumentKind::Pdf {
        let notice = lost_letters_notice(sink.lost, sink.letters);
        sink.warn(notice);
    }
    let mut notices = sink.notices;
    if sink.full {
        let most = LONGEST_TEXT >> 20;
        notices.insert(0, format!("Only the first {most} MB of its text are read."));
    }
    facts.notice = (!notices.is_empty()).then(|| notices.join(" "));
    let title = facts.title.map(|title| text::one_line(&title, 300));
    facts.title = title.filter(|title| !title.is_empty());
    Ok(facts)
}

fn lost_letters_notice(lost: impl fmt::Display, letters: impl fmt::Display) -> String {
    format!("{lost} of {letters} letters could not be read and stand as \u{fffd}.")
}

#[cfg(test)]
mod tests;
