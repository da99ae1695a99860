//! What `tierbar-extract` writes, and what its host makes of it.

use crate::{Block, Facts, Picture, Refusal};
use serde::{Deserialize, Serialize};

/// The largest file that is read, in bytes.
pub const LARGEST_FILE: u64 = 200 << 20;
/// The most bytes that the process writes: its text, escaped, with the places.
pub const LARGEST_OUTPUT: u64 = 96 << 20;
/// How long it may take, in seconds.
pub const LONGEST: u64 = 180;

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
    pub blocks: Vec<Block>,
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
    /// The host ended it: it took too long.
    TooLong,
    /// It wrote too much.
    TooMuch,
}

/// The signals of a used-up limit: of computing time, and of a failed allocation.
const SIGXCPU: [i32; 2] = [24, 9];
const SIGABRT: i32 = 6;

/// Returns what was read of a document.
///
/// # Errors
/// Why there are none, in a sentence.
pub fn parse_output(output: &str, ended: ProcessEnd) -> Result<ExtractedDocument, Refusal> {
    let refuse = |sentence: &str| Err(Refusal(sentence.to_owned()));
    match ended {
        ProcessEnd::TooLong => {
            return refuse("Reading this file took more than 3 minutes, and was ended.");
        }
        ProcessEnd::TooMuch => {
            return refuse(
                "This file unpacks to more text than a document can hold, and is not read.",
            );
        }
        ProcessEnd::Killed(SIGABRT) => {
            return refuse("Reading this file needs more than 1 GB of memory, and was ended.");
        }
        ProcessEnd::Killed(signal) if SIGXCPU.contains(&signal) => {
            return refuse(
                "Reading this file took more than 2 minutes of computing, and was ended.",
            );
        }
        ProcessEnd::Well | ProcessEnd::Killed(_) | ProcessEnd::Badly => {}
    }
    let damaged =
        "This file cannot be read: it is damaged, or made in a way that Tierbar does not know.";
    let mut extracted = ExtractedDocument::default();
    for line in output.lines() {
        match serde_json::from_str(line) {
            Ok(Line::Block(block)) => extracted.blocks.push(block),
            Ok(Line::Picture(picture)) => extracted.pictures.push(picture),
            Ok(Line::End(facts)) if ended == ProcessEnd::Well => {
                return Ok(ExtractedDocument { facts, ..extracted });
            }
            Ok(Line::Refused(refusal)) => return Err(refusal),
            Ok(Line::End(_)) | Err(_) => return refuse(damaged),
        }
    }
    refuse(damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_output_is_a_document() {
        let block = "{\"block\":{\"text\":\"Hello\",\"page\":2}}\n";
        let whole = format!("{block}{{\"end\":{{\"kind\":\"pdf\",\"pages\":2}}}}\n");
        let picture = "{\"picture\":{\"page\":1,\"jpeg\":\"/9g=\"}}\n";
        let read = parse_output(&format!("{picture}{whole}"), ProcessEnd::Well).unwrap();
        assert_eq!(read.blocks[0].page, Some(2));
        assert_eq!((read.facts.pages, read.pictures[0].page), (Some(2), 1));
        assert!(
            parse_output(block, ProcessEnd::Well)
                .unwrap_err()
                .0
                .contains("damaged")
        );
        assert!(parse_output(&whole, ProcessEnd::Badly).is_err());
        assert!(parse_output("{\"block\":", ProcessEnd::Well).is_err());
        let refused = "{\"refused\":\"This PDF is encrypted.\"}\n";
        assert_eq!(
            parse_output(refused, ProcessEnd::Well).unwrap_err().0,
            "This PDF is encrypted."
        );
        assert!(
            parse_output("", ProcessEnd::Killed(6))
                .unwrap_err()
                .0
                .contains("memory")
        );
        assert!(
            parse_output("", ProcessEnd::TooLong)
                .unwrap_err()
                .0
                .contains("3 minutes")
        );
    }
}
