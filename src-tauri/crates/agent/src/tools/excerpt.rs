//! A part of a text: as much of it as a model reads at once.

use super::{
    Failure,
    files::{FILE_BYTES, failure, fault},
    text::{FileText, to_lf},
};
use crate::marking::OBSERVATION_CHARACTERS;
use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    iter,
    path::Path,
};

/// How much of a file the model reads at once, in characters, so that nothing of it is left out.
pub(super) const READ_CHARACTERS: usize = OBSERVATION_CHARACTERS - 1_000;
/// A line that has more bytes counts as several, so that each part of it has a number.
const LINE_BYTES: usize = READ_CHARACTERS;
/// What a file in UTF-16 begins with.
const WIDE: [&[u8]; 2] = [b"\xff\xfe", b"\xfe\xff"];

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    pub text: String,
    /// The number of the first line, from 1.
    pub first_line: usize,
    /// How many lines the file has; `None` if it was not read to its end.
    pub lines: Option<usize>,
    /// The first line that follows, if there is more.
    pub next_line: Option<usize>,
    /// What is unusual in the file's encoding.
    pub form: Option<String>,
}

impl Excerpt {
    /// Returns what is read at once of a text from a line on.
    pub fn from_line(text: &str, from: usize) -> Self {
        let count = lines(text).count();
        let first = from.clamp(1, count.max(1));
        let (mut kept, mut characters, mut next_line) = (String::new(), 0, None);
        for (at, line) in lines(text).enumerate().skip(first - 1) {
            characters += line.chars().count();
            if characters > READ_CHARACTERS {
                next_line = Some(at + 1);
                break;
            }
            kept.push_str(line);
        }
        Self {
            text: kept,
            first_line: first,
            lines: Some(count),
            next_line,
            form: None,
        }
    }

    /// Reads the same of a file that is too large to be held: the lines before are passed over, and what is read at once is decoded alone.
    ///
    /// # Errors
    /// [`Failure`] for what is no text or is in UTF-16, and for a line that it does not have.
    pub(super) fn of_large(file: File, path: &Path, from: usize) -> Result<Self, Failure> {
        let failed = |error| failure(path, &error);
        let mut file = BufReader::with_capacity(1 << 16, file);
        let start = file.fill_buf().map_err(failed)?;
        if WIDE.iter().any(|mark| start.starts_with(mark)) {
            let most = FILE_BYTES >> 20;
            let why = format!("is larger than {most} MiB and in UTF-16; convert it with a command");
            return Err(fault(path, &why));
        }
        let mut lines = FileLines::new(file);
        let mut first = 1;
        while first < from && lines.read().map_err(failed)? {
            first += 1;
        }
        let (mut part, mut characters, mut next) = (Vec::new(), 0, first);
        let is_end = loop {
            if !lines.read().map_err(failed)? {
                break true;
            }
            characters += String::from_utf8_lossy(&lines.line).chars().count();
            if characters > READ_CHARACTERS {
                break false;
            }
            part.extend_from_slice(&lines.line);
            next += 1;
        };
        if part.is_empty() {
            return Err(fault(path, &format!("has {} lines", first - 1)));
        }
        let text = FileText::decode(&part).ok_or_else(|| fault(path, "is not text"))?;
        Ok(Self {
            first_line: first,
            lines: is_end.then_some(next - 1),
            next_line: (!is_end).then_some(next),
            form: text.describe_form(),
            text: to_lf(&text.text).into_owned(),
        })
    }

    /// Returns it for the model, with the form of the file, and with where to read on in it.
    pub fn render(self, path: &Path) -> String {
        let (mut text, path) = (self.text, path.display());
        let form = self.form.map(|form| format!("[{path} is {form}]"));
        let goes_on = self.next_line.is_some() && !text.ends_with('\n');
        let goes_on = goes_on.then(|| "[… the line goes on …]".to_owned());
        let more = self.next_line.map(|next| match self.lines {
            Some(lines) => format!("[{path} has {lines} lines; read on from line {next}]"),
            None => format!("[{path} goes on; read on from line {next}]"),
        });
        for note in goes_on.into_iter().chain(form).chain(more) {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text += &note;
        }
        text
    }
}

/// The lines of a text, with their ends.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n').flat_map(|line| {
        let mut rest = line;
        iter::from_fn(move || {
            let (part, after) = rest.split_at(rest.floor_char_boundary(LINE_BYTES));
            rest = after;
            (!part.is_empty()).then_some(part)
        })
    })
}

/// The same of a file, one at a time.
struct FileLines {
    file: BufReader<File>,
    line: Vec<u8>,
    /// The beginning of a letter that the end of a part has cut.
    letter: Vec<u8>,
}

impl FileLines {
    fn new(file: BufReader<File>) -> Self {
        let (line, letter) = (Vec::new(), Vec::new());
        Self { file, line, letter }
    }

    /// Reads a line; `false` at the end.
    fn read(&mut self) -> io::Result<bool> {
        self.line.clear();
        self.line.append(&mut self.letter);
        let room = (LINE_BYTES - self.line.len()) as u64;
        let mut part = (&mut self.file).take(room);
        part.read_until(b'\n', &mut self.line)?;
        if self.line.len() == LINE_BYTES
            && let Err(error) = str::from_utf8(&self.line)
            && error.error_len().is_none()
        {
            self.letter = self.line.split_off(error.valid_up_to());
        }
        Ok(!self.line.is_empty())
    }
}
