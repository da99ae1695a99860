//! How many tokens images and PDFs in base64 count for: their bytes say little of them.

use crate::files::{PDF, PDF_START, is_base64, read_data_uri};
use base64::{prelude::BASE64_STANDARD, read::DecoderReader};
use std::io::{BufRead, BufReader};

/// A token is at least so long in most text.
const BYTES_PER_TOKEN: u64 = 3;
/// Clouds scale an image to less, except for models whose tokens cost a fraction.
const TOKENS_PER_IMAGE: u64 = 5000;
/// About 3000 of a dense page's text, and the rest of its picture, which clouds read as well.
const TOKENS_PER_PAGE: u64 = 5000;
/// The longest name in a PDF that is looked for, and a byte more.
const LONGEST_NAME: usize = 7;

/// What is counted in place of the bytes of images and PDFs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct DataSize {
    /// Of base64 that is not counted as text.
    bytes: u64,
    /// For it.
    tokens: u64,
}

/// What a text is, if it may be data in base64.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Inline {
    #[default]
    Text,
    /// With a type of its own.
    Image(DataSize),
    /// Whose pages are counted.
    Pdf(DataSize),
    /// So long, of a type that may stand beside it.
    Data(usize),
}

impl DataSize {
    fn of_image(length: usize) -> Self {
        let bytes = length as u64;
        Self {
            bytes,
            tokens: TOKENS_PER_IMAGE.min(bytes / BYTES_PER_TOKEN),
        }
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self {
            bytes: self.bytes + other.bytes,
            tokens: self.tokens + other.tokens,
        }
    }

    /// Returns the tokens of a prompt of so many bytes that has this.
    pub(super) fn tokens_of_prompt(self, bytes: usize) -> u64 {
        let text = (bytes as u64).saturating_sub(self.bytes);
        text / BYTES_PER_TOKEN + self.tokens
    }
}

impl Inline {
    pub(super) fn read(text: &str) -> Self {
        match read_data_uri(text) {
            Some((kind, data)) if kind.starts_with("image/") && is_base64(data) => {
                Self::Image(DataSize::of_image(data.len()))
            }
            Some((PDF, data)) => Self::of_pdf(data),
            Some(_) => Self::Text,
            None if text.starts_with(PDF_START) => Self::of_pdf(text),
            None if is_base64(text) => Self::Data(text.len()),
            None => Self::Text,
        }
    }

    fn of_pdf(data: &str) -> Self {
        match pages(data) {
            Some(pages) => Self::Pdf(DataSize {
                bytes: data.len() as u64,
                tokens: pages * TOKENS_PER_PAGE,
            }),
            None => Self::Text,
        }
    }

    /// Returns what counts, of data with this type beside it.
    pub(super) fn size(self, media_type: &str) -> DataSize {
        match self {
            Self::Image(size) | Self::Pdf(size) => size,
            Self::Data(length) if media_type.starts_with("image/") => DataSize::of_image(length),
            Self::Data(_) | Self::Text => DataSize::default(),
        }
    }
}

/// Returns the number of a PDF's pages, or more, where all of their descriptions can be read without decompression (ISO 32000-2, 7.5.7
/// and 7.7.3.3).
fn pages(base64: &str) -> Option<u64> {
    let mut pdf = BufReader::new(DecoderReader::new(base64.as_bytes(), &BASE64_STANDARD));
    let mut names = Names::default();
    loop {
        let arrived = pdf.fill_buf().ok()?;
        if arrived.is_empty() {
            break;
        }
        for byte in arrived {
            names.read(*byte);
        }
        let length = arrived.len();
        pdf.consume(length);
    }
    (names.pages > 0 && !names.is_compressed).then_some(names.pages)
}

/// The names of a PDF, read byte by byte.
#[derive(Debug, Default)]
struct Names {
    /// The beginning of the one that is being read.
    name: Option<Vec<u8>>,
    /// The last one was `Type`, and nothing has come behind it.
    is_type: bool,
    pages: u64,
    /// Objects are in a compressed stream.
    is_compressed: bool,
}

impl Names {
    fn read(&mut self, byte: u8) {
        let is_blank = b" \t\r\n\x0c\0".contains(&byte);
        let ends = is_blank || b"/<>[](){}%".contains(&byte);
        match &mut self.name {
            Some(name) if !ends => {
                if name.len() < LONGEST_NAME {
                    name.push(byte);
                }
                return;
            }
            Some(_) => self.end(),
            None => self.is_type &= is_blank || byte == b'/',
        }
        self.name = (byte == b'/').then(Vec::new);
    }

    fn end(&mut self) {
        let name = self.name.take().unwrap_or_default();
        let follows_type = std::mem::replace(&mut self.is_type, name == b"Type");
        self.pages += u64::from(follows_type && name == b"Page");
        self.is_compressed |= name == b"ObjStm";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine;

    fn of_pdf(text: &str) -> Inline {
        let data = BASE64_STANDARD.encode(format!("%PDF-1.4\n{text}\n%%EOF"));
        let bare = Inline::read(&data);
        let with_type = Inline::read(&format!("data:application/pdf;base64,{data}"));
        assert_eq!(bare, with_type);
        bare
    }

    #[test]
    fn a_pdf_counts_by_its_pages_where_they_can_be_read() {
        let page = "1 0 obj <</Type /Page /Parent 2 0 R>> endobj\n";
        let close = "1 0 obj<</Parent 2 0 R/Type/Page>>endobj\n";
        let tree = "2 0 obj <</Type /Pages /Count 9>> endobj\n/PageMode /Page /Type 1 /Page ";
        let filler = "stream \u{1}\u{2} endstream\n".repeat(1000);
        let text = [tree, page, &*filler, close, page].concat();
        let Inline::Pdf(size) = of_pdf(&text) else {
            panic!("its pages are not counted");
        };
        assert_eq!(size.tokens, 3 * TOKENS_PER_PAGE);
        let bytes = usize::try_from(size.bytes).unwrap();
        assert_eq!(size.tokens_of_prompt(bytes + 300), size.tokens + 100);
        for uncounted in [
            tree.to_owned(),
            format!("{page}<</Type/ObjStm/N 3>>"),
            String::new(),
        ] {
            assert_eq!(of_pdf(&uncounted), Inline::Text, "{uncounted}");
        }
        assert_eq!(Inline::read("JVBERi no base64"), Inline::Text);
    }

    #[test]
    fn an_image_counts_for_its_bytes_at_most() {
        let uri =
            |length: usize| Inline::read(&format!("data:image/png;base64,{}", "A".repeat(length)));
        for (length, tokens) in [(300, 100), (1 << 20, TOKENS_PER_IMAGE)] {
            let size = uri(length).size("");
            assert_eq!(size.tokens_of_prompt(length + 30), tokens + 10);
            let data = Inline::read(&"A".repeat(length));
            assert_eq!(data.size("image/jpeg"), size);
            assert_eq!(data.size("text/plain"), DataSize::default());
        }
        for words in ["data:image/png;base64,many words", "many words"] {
            assert_eq!(Inline::read(words), Inline::Text, "{words}");
        }
    }
}
