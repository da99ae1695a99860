//! The text of PDFs (ISO 32000-2), page by page. `hayro-syntax` reads the file and `hayro-font` its fonts; what is here
//! draws the text of a page and puts it in order. Pictures, colors and paths are passed over.

mod annotations;
mod bidi;
mod columns;
mod content;
mod fonts;
mod layout;
mod streams;

use super::{Block, Facts, Refusal, Sink, lost_letters_notice};
use crate::{
    kind,
    pictured::{damaged_pages_notice, pictured_pages_notice},
};
use content::{Content, Reader};
use encoding_rs::{UTF_8, UTF_16BE, WINDOWS_1252};
use hayro_syntax::{
    LoadPdfError, Pdf,
    object::{Dict, String as Text},
    page::Page,
};
use kurbo::Affine;
use layout::{Paragraph, Sizes};
use std::panic::{AssertUnwindSafe, catch_unwind};

const MOST_PAGES: usize = 50_000;
const DAMAGED: &str = "This PDF is damaged: it has no pages.";
const UNKNOWN: &str = "This PDF does not say which letters its text is made of. Have its text recognized, and save it again.";

pub(super) fn read(bytes: &[u8], sink: &mut Sink<'_>) -> Result<Facts, Refusal> {
    // A library's panic costs what it was reading, and no more.
    let file = catch_unwind(|| Pdf::new(bytes.to_vec()));
    let file = match file.unwrap_or(Err(LoadPdfError::Invalid)) {
        Ok(file) => file,
        // Of a damaged file, only that it is encrypted may be known.
        Err(error) if error != LoadPdfError::Invalid || kind::contains(bytes, b"/Encrypt") => {
            return Err(Refusal::new(
                "This PDF is encrypted. Save a copy without a password to have it read.",
            ));
        }
        Err(_) => return Err(Refusal::new(DAMAGED)),
    };
    let mut reading = PageReader {
        reader: Reader::new(),
        sizes: Sizes::default(),
        pictured: Vec::new(),
        broken: Vec::new(),
        is_cut: file.pages().len() > MOST_PAGES,
        sink,
    };
    for (page, number) in file.pages().iter().take(MOST_PAGES).zip(1..) {
        if catch_unwind(AssertUnwindSafe(|| reading.page(page, number))).is_err() {
            reading.broken.push(number);
            reading.reader.forget_fonts();
        }
    }
    let title = file.metadata().title.as_deref().map(decode_text);
    let pages = u32::try_from(file.pages().len()).unwrap_or(u32::MAX);
    reading.end(pages, title)
}

struct PageReader<'a, 'b, 'c> {
    reader: Reader<'a>,
    sizes: Sizes,
    /// Pages with a picture and no letter.
    pictured: Vec<u32>,
    /// Pages that could not be read.
    broken: Vec<u32>,
    is_cut: bool,
    sink: &'b mut Sink<'c>,
}

impl<'a> PageReader<'a, '_, '_> {
    fn page(&mut self, page: &Page<'a>, number: u32) {
        let bytes = streams::page_content(page, &mut self.is_cut);
        let (letters, pictures) = (self.reader.letters, self.reader.pictures);
        self.reader.picture = None;
        let mut content = Content::default();
        self.reader
            .draw(&bytes, page.resources(), Affine::IDENTITY, &mut content);
        let drawn = self.reader.pictures - pictures;
        let notes = annotations::read(page, &mut self.reader, &mut content);
        if self.reader.letters == letters && notes.is_empty() && drawn > 0 {
            self.pictured.push(number);
            // Of several, none is the page.
            let only = self.reader.picture.take().filter(|_| drawn == 1);
            if let Some(jpeg) = only.as_ref().and_then(streams::jpeg) {
                self.sink.picture(number, &jpeg);
            }
        }
        self.is_cut |= content.is_cut;
        let notes = notes.into_iter().map(|text| Paragraph {
            text,
            heading: None,
        });
        let paragraphs = layout::paragraphs(&content.spans, &mut self.sizes);
        for Paragraph { text, heading } in paragraphs.into_iter().chain(notes) {
            let page = Some(number);
            // Marks of lost letters alone are no text.
            if text
                .chars()
                .any(|letter| letter != char::REPLACEMENT_CHARACTER && !letter.is_whitespace())
            {
                self.sink.push(Block {
                    heading,
                    page,
                    ..Block::new(text)
                });
            }
        }
    }

    fn end(self, pages: u32, title: Option<String>) -> Result<Facts, Refusal> {
        let refuse = |sentence: &str| Err(Refusal::new(sentence));
        let (letters, unknown) = (self.reader.letters, self.reader.unknown);
        if self.sink.bytes == 0 && self.sink.pictures == 0 {
            return refuse(if pages == 0 {
                DAMAGED
            } else if self.is_cut {
                "This PDF unpacks to more than a document can hold, and is not read."
            } else if unknown > 0 {
                UNKNOWN
            } else if !self.pictured.is_empty() {
                "This PDF holds pictures of pages, no text. Have its text recognized, and save it again."
            } else if !self.broken.is_empty() {
                "This PDF is damaged: none of its pages can be read."
            } else {
                "This PDF holds no text."
            });
        }
        let cut = "Parts of this PDF are too large and are not read.";
        let lost = (unknown > 0).then(|| match unknown * 100 > letters {
            true => {
                let share = unknown * 100 / letters;
                format!("{share} % of this PDF's letters are lost: its fonts do not say which they are. Have its text recognized, and save it again.")
            }
            // A few symbols are no reason to have it recognized.
            false => lost_letters_notice(unknown, letters),
        });
        let wants_pictures = self.sink.wants_pictures;
        let pictured = pictured_pages_notice(&self.pictured, pages).filter(|_| !wants_pictures);
        let notices = [
            self.is_cut.then(|| cut.to_owned()),
            lost,
            damaged_pages_notice(&self.broken, pages),
            pictured,
        ];
        notices
            .into_iter()
            .flatten()
            .for_each(|notice| self.sink.warn(notice));
        Ok(Facts {
            title,
            pages: Some(pages),
            pictured: match wants_pictures {
                true => self.pictured,
                false => Vec::new(),
            },
            ..Facts::default()
        })
    }
}

/// An entry of a dictionary that is text.
fn text_of(dictionary: &Dict<'_>, entry: &str) -> Option<String> {
    let text = decode_text(&dictionary.get::<Text<'_>>(entry)?);
    (!text.is_empty()).then_some(text)
}

/// A text outside of pages (7.9.2.2).
fn decode_text(bytes: &[u8]) -> String {
    let (encoding, bytes) = match bytes {
        [0xfe, 0xff, rest @ ..] => (UTF_16BE, &rest[..rest.len() / 2 * 2]),
        [0xef, 0xbb, 0xbf, rest @ ..] => (UTF_8, rest),
        bytes => (WINDOWS_1252, bytes),
    };
    let (text, _) = encoding.decode_without_bom_handling(bytes);
    text.trim().replace("\r\n", "\n").replace('\r', "\n")
}

#[cfg(test)]
mod tests;
