//! What `tierbar-extract` writes, and what its host makes of it.
//!
//! The host reads the lines as they come and keeps the passages alone, or the text: as blocks, a text of 10 MB may take a gigabyte.

use crate::{
    Block, Facts, LONGEST_TEXT, MOST_PICTURES, Picture, Refusal,
    chunks::{Chunk, Chunker},
};
use serde::{Deserialize, Serialize};
use std::{
    fs::File,
    io::{self, Read, Seek},
};
use tierbar_core::{Code, Error, documents::DocumentKind, own_lack, units::file_size};

/// The largest file that is read, in bytes.
pub const LARGEST_FILE: u64 = 200 << 20;
/// The most bytes that the process writes: its text, escaped, with the place of each block.
pub const LARGEST_OUTPUT: u64 = 1 << 30;
/// The longest line: the largest picture in base64.
const LONGEST_LINE: usize = 12 << 20;
/// The pictures of a document, in base64.
const MOST_PICTURE_BYTES: usize = 32 << 20;
/// What a buffer keeps for the next line.
const USUAL_LINE: usize = 256 << 10;
/// The notice of a document that has more passages, or more text, than is kept.
const FULL: &str =
    "It has so much text, or so many headings or pages, that the last of it is not read.";
/// How long it may take, in seconds.
pub const LONGEST: u64 = 180;

/// Copies what is read from a pipe or a connection to a file without a name, which can be read twice. Blocking.
///
/// # Errors
/// `PayloadTooLarge` for more than any document may have; `Storage` if the disk is full.
pub fn to_file(name: &str, content: impl Read) -> Result<File, Error> {
    let failed = |error: io::Error| {
        let message = format!("{name} cannot be copied to be read: {error}");
        own_lack(&error).unwrap_or_else(|| Error::new(Code::Storage, message))
    };
    let mut file = tempfile::tempfile().map_err(failed)?;
    let copied = io::copy(&mut content.take(LARGEST_FILE + 1), &mut file).map_err(failed)?;
    if copied > LARGEST_FILE {
        return Err(too_large(name, LARGEST_FILE));
    }
    file.rewind().map_err(failed)?;
    Ok(file)
}

/// Says that a file, or its text, has more than so many bytes.
pub fn too_large(name: &str, most: u64) -> Error {
    let message = format!("{name} is larger than {}", file_size(most));
    Error::new(Code::PayloadTooLarge, message)
}

/// One line of its output. The last one is `End` or `Refused`; output without it is not whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    Block(Block),
    Picture(Picture),
    End(Facts),
    Refused(Refusal),
}

/// What was read of a document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExtractedDocument {
    pub passages: Vec<Chunk>,
    /// The whole text in place of its passages, if it was asked for.
    pub text: String,
    /// Pages that are pictures, if they were asked for.
    pub pictures: Vec<Picture>,
    pub facts: Facts,
}

/// How the process ended, and what it wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessEnd {
    Well,
    /// With this signal.
    Killed(i32),
    Badly,
    TooLong,
    TooMuch,
}

/// The signals of a used-up limit: of computing time, and of a failed allocation.
const SIGXCPU: [i32; 2] = [24, 9];
const SIGABRT: i32 = 6;

/// Reads the output while it is written.
#[derive(Debug, Default)]
pub struct OutputReader {
    written: u64,
    /// A line that has not ended.
    open: Vec<u8>,
    passages: Chunker,
    /// The text in place of passages, if it was asked for: its blocks, with empty lines between them.
    text: Option<String>,
    /// Text was left out.
    is_full: bool,
    pictures: Vec<Picture>,
    picture_bytes: usize,
    /// What the last line says. Nothing is read behind it.
    last: Option<Result<Facts, Refusal>>,
}

impl OutputReader {
    /// Returns a reader that keeps the whole text.
    pub fn of_text() -> Self {
        Self {
            text: Some(String::new()),
            ..Self::default()
        }
    }

    /// Takes more of the output. Returns `false` once that is too much: the process must be ended.
    pub fn take(&mut self, mut bytes: &[u8]) -> bool {
        self.written += bytes.len() as u64;
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.open.extend_from_slice(&bytes[..end]);
            bytes = &bytes[end + 1..];
            if self.last.is_none() {
                self.line();
            }
            self.open.clear();
            self.open.shrink_to(USUAL_LINE);
        }
        self.open.extend_from_slice(bytes);
        self.written <= LARGEST_OUTPUT && self.open.len() <= LONGEST_LINE
    }

    fn line(&mut self) {
        match serde_json::from_slice(&self.open) {
            Ok(Line::Block(block)) => {
                self.is_full |= match &mut self.text {
                    Some(text) => !append(text, &block),
                    None => !self.passages.take(&block),
                }
            }
            Ok(Line::Picture(picture)) => {
                self.picture_bytes += picture.jpeg.len();
                self.pictures.push(picture);
                let is_many = self.pictures.len() > MOST_PICTURES;
                if is_many || self.picture_bytes > MOST_PICTURE_BYTES {
                    self.last = Some(Err(damaged()));
                }
            }
            Ok(Line::End(facts)) => self.last = Some(Ok(facts)),
            Ok(Line::Refused(refusal)) => self.last = Some(Err(refusal)),
            Err(_) => self.last = Some(Err(damaged())),
        }
    }

    /// Returns what was read of the document.
    ///
    /// # Errors
    /// Why there is nothing, in a sentence.
    pub fn finish(self, ended: ProcessEnd) -> Result<ExtractedDocument, Refusal> {
        let limit = match ended {
            ProcessEnd::TooLong => "Reading this file took more than 3 minutes, and was ended.",
            ProcessEnd::TooMuch => {
                "This file unpacks to more text than a document can hold, and is not read."
            }
            ProcessEnd::Killed(SIGABRT) => {
                "Reading this file needs more than 1 GB of memory, and was ended."
            }
            ProcessEnd::Killed(signal) if SIGXCPU.contains(&signal) => {
                "Reading this file took more than 2 minutes of computing, and was ended."
            }
            ProcessEnd::Well | ProcessEnd::Killed(_) | ProcessEnd::Badly => "",
        };
        if !limit.is_empty() {
            return Err(Refusal(limit.to_owned()));
        }
        let mut facts = match self.last {
            Some(Ok(facts)) if ended == ProcessEnd::Well => facts,
            Some(Err(refusal)) => return Err(refusal),
            Some(Ok(_)) | None => return Err(damaged()),
        };
        if self.is_full {
            let notices = [Some(FULL.to_owned()), facts.notice];
            facts.notice = Some(notices.into_iter().flatten().collect::<Vec<_>>().join(" "));
        }
        let text = self.text.unwrap_or_default();
        Ok(ExtractedDocument {
            passages: self.passages.finish(),
            text: match (&facts.title, facts.kind) {
                (Some(subject), Some(DocumentKind::Mail)) => with_subject(text, subject),
                _ => text,
            },
            pictures: self.pictures,
            facts,
        })
    }
}

/// Adds a block to a text, if there is room for it. Returns whether it was added.
fn append(text: &mut String, block: &Block) -> bool {
    let has_room = text.len() + block.text.len() <= LONGEST_TEXT;
    if has_room {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(block.text.trim_end());
    }
    has_room
}

/// Returns a mail's text with its subject, which is its first block, among the fields that follow it.
fn with_subject(text: String, subject: &str) -> String {
    match text.split_once("\n\n") {
        Some((first, rest)) if first.starts_with(subject) => {
            format!("Subject: {subject}\n{rest}")
        }
        _ => text,
    }
}

fn damaged() -> Refusal {
    let sentence =
        "This file cannot be read: it is damaged, or made in a way that Tierbar does not know.";
    Refusal(sentence.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parts of three bytes, such as a pipe may bring.
    fn parse(output: &str, ended: ProcessEnd) -> Result<ExtractedDocument, Refusal> {
        let mut reader = OutputReader::default();
        for part in output.as_bytes().chunks(3) {
            assert!(reader.take(part));
        }
        reader.finish(ended)
    }

    #[test]
    fn only_whole_output_is_a_document() {
        let block = "{\"block\":{\"text\":\"Hello\",\"page\":2}}\n";
        let whole = format!("{block}{{\"end\":{{\"kind\":\"pdf\",\"pages\":2}}}}\n");
        let picture = "{\"picture\":{\"page\":1,\"jpeg\":\"/9g=\"}}\n";
        let read = parse(&format!("{picture}{whole}"), ProcessEnd::Well).unwrap();
        assert_eq!(
            (read.passages[0].page, read.passages[0].text.as_str()),
            (Some(2), "Hello")
        );
        assert_eq!((read.facts.pages, read.pictures[0].page), (Some(2), 1));
        let refused = "{\"refused\":\"This PDF is encrypted.\"}\n";
        for (output, ended, why) in [
            (block, ProcessEnd::Well, "damaged"),
            (&whole, ProcessEnd::Badly, "damaged"),
            ("{\"block\":", ProcessEnd::Well, "damaged"),
            ("nonsense\n{\"end\":{}}\n", ProcessEnd::Well, "damaged"),
            (refused, ProcessEnd::Well, "is encrypted"),
            ("", ProcessEnd::Killed(6), "memory"),
            ("", ProcessEnd::TooLong, "3 minutes"),
            (&whole, ProcessEnd::TooMuch, "more text"),
        ] {
            let refusal = parse(output, ended).unwrap_err().0;
            assert!(refusal.contains(why), "{output}: {refusal}");
        }
    }

    #[test]
    fn a_text_has_its_blocks_and_a_mail_its_subject() {
        let read = |kind: &str, title: &str, blocks: &[&str]| {
            let mut reader = OutputReader::of_text();
            let mut lines: Vec<_> = blocks
                .iter()
                .map(|text| serde_json::json!({"block": {"text": text}}))
                .collect();
            lines.push(serde_json::json!({"end": {"kind": kind, "title": title}}));
            for line in lines {
                assert!(reader.take(format!("{line}\n").as_bytes()));
            }
            let read = reader.finish(ProcessEnd::Well).unwrap();
            assert_eq!(read.passages, []);
            (read.text, read.facts.notice)
        };
        let (text, notice) = read("pdf", "Plan", &["Plan", "One.\nTwo. ", "Three."]);
        assert_eq!(
            (text.as_str(), notice),
            ("Plan\n\nOne.\nTwo.\n\nThree.", None)
        );
        let header = "From: a@b.example\nTo: c@d.example";
        let (text, _) = read("mail", "Plan", &["Plan", header, "Hello"]);
        assert_eq!(text, format!("Subject: Plan\n{header}\n\nHello"));
        // The subject is that of a later mail in the file.
        let (text, _) = read("mail", "Plan", &[header, "Hello"]);
        assert_eq!(text, format!("{header}\n\nHello"));
        let large = "x".repeat(1 << 20);
        let (text, notice) = read("text", "", &[large.as_str(); 40]);
        assert!(
            text.len() <= LONGEST_TEXT && notice.is_some(),
            "{}",
            text.len()
        );
    }

    #[test]
    fn output_that_is_too_much_is_not_kept() {
        let mut reader = OutputReader::default();
        let part = vec![b'x'; 1 << 20];
        let taken = (0..100).take_while(|_| reader.take(&part)).count();
        assert_eq!(taken, LONGEST_LINE >> 20);

        let mut reader = OutputReader::default();
        let picture = format!(
            "{{\"picture\":{{\"page\":1,\"jpeg\":\"{}\"}}}}\n",
            "A".repeat(9 << 20)
        );
        for _ in 0..9 {
            assert!(reader.take(picture.as_bytes()));
        }
        assert_eq!(reader.pictures.len(), 4);
        let refusal = reader.finish(ProcessEnd::Well).unwrap_err().0;
        assert!(refusal.contains("damaged"), "{refusal}");
    }
}
