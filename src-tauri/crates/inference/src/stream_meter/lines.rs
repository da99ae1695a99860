//! Reads a stream's lines one by one, and repairs what passes. What cannot be read ends the answer: without it, the answer would not be
//! complete.

use super::{EventFacts, Line, MOST_OF_EVENT, StreamMeter, StreamReading};
use crate::{
    original::Form,
    repair::{cut_letter, join, parse, repair},
    wire::{self, Chunk},
};
use bytes::Bytes;
use serde::de::{Error as _, IgnoredAny};
use serde_json::{Map, Value};
use std::borrow::Cow;
use tierbar_core::{Code, Error, json};

/// What passes in place of an event's data.
#[derive(Debug)]
pub(super) enum Passage {
    Unchanged,
    Nothing,
    /// In place of what says nothing: its client sees that the server lives.
    Comment,
    Json(Vec<u8>),
    Lines(Vec<u8>),
}

impl Passage {
    /// The line that passes.
    pub(super) fn line(self, data: &[u8]) -> Vec<u8> {
        let json = match self {
            Self::Unchanged => data,
            Self::Nothing => return Vec::new(),
            Self::Comment => return b":\n".to_vec(),
            Self::Json(ref json) => json.as_slice(),
            Self::Lines(lines) => return lines,
        };
        // Between its lines, JSON has blanks alone.
        let json = json.iter().map(|byte| match byte {
            b'\n' => b' ',
            byte => *byte,
        });
        b"data: "
            .iter()
            .copied()
            .chain(json)
            .chain(*b"\n")
            .collect()
    }
}

impl StreamMeter {
    /// Reads whole lines, and returns what passes.
    pub(super) fn pass_lines(&mut self, lines: Bytes) -> Bytes {
        // From the first change on.
        let mut changed: Option<Vec<u8>> = None;
        let mut begin = 0;
        for line in lines.split_inclusive(|&byte| byte == b'\n') {
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            let text = text.strip_suffix(b"\r").unwrap_or(text);
            let change = self.line(text);
            let change = self.end_of_nothing(text, change);
            match change.filter(|_| self.reads == StreamReading::Nothing) {
                Some(change) => {
                    let changed = changed.get_or_insert_with(|| lines[..begin].to_vec());
                    changed.extend_from_slice(&change);
                }
                None => {
                    if let Some(changed) = &mut changed {
                        changed.extend_from_slice(line);
                    }
                }
            }
            begin += line.len();
            if self.broken.is_some() {
                break;
            }
        }
        changed.map_or(lines, Bytes::from)
    }

    /// Leaves out the empty line that ends an event of which nothing has passed.
    fn end_of_nothing(&mut self, line: &[u8], change: Option<Vec<u8>>) -> Option<Vec<u8>> {
        let passes = change.as_ref().is_none_or(|change| !change.is_empty());
        match (line.is_empty(), passes) {
            (true, _) => {
                let within = std::mem::take(&mut self.within);
                let left_out = std::mem::take(&mut self.left_out);
                return change.or((left_out && !within).then(Vec::new));
            }
            (false, true) => self.within = true,
            (false, false) => self.left_out = true,
        }
        change
    }

    /// Returns what passes in the line's place, if that is another.
    fn line(&mut self, mut line: &[u8]) -> Option<Vec<u8>> {
        let mut change = None;
        if !std::mem::replace(&mut self.begun, true)
            && let Some(rest) = line.strip_prefix(b"\xef\xbb\xbf")
        {
            line = rest;
            change = Some(plain(rest).unwrap_or_else(|| [rest, b"\n"].concat()));
        }
        if self.within_unread {
            self.within_unread = !line.is_empty();
            return change;
        }
        if line.is_empty() {
            self.open = false;
            if self.data.is_empty() {
                return change;
            }
            let data = std::mem::take(&mut self.data);
            let mut passes = self.read(&data, false).line(&data);
            passes.push(b'\n');
            return Some(passes);
        }
        if line.starts_with(b":") {
            self.keep(|| Line::Comment);
            return change.or_else(|| plain(line));
        }
        if let Some(data) = line.strip_prefix(b"data:") {
            return self.data_line(trim(data)).or(change);
        } else if !is_field(line) && line.contains(&b'{') && !self.ended {
            let what = "the model's server sent a line that is not an event";
            let lost = self.lost(Error::new(Code::Unreachable, what));
            return Some(lost.line(line));
        }
        change.or_else(|| plain(line))
    }

    fn data_line(&mut self, data: &[u8]) -> Option<Vec<u8>> {
        if data.is_empty() {
            return Some(Passage::Comment.line(data));
        }
        if !self.data.is_empty() {
            self.data.push(b'\n');
            self.data.extend_from_slice(data);
            if self.data.len() > self.longest() {
                self.data.clear();
                self.too_long();
                if self.reads == StreamReading::Nothing {
                    let what = "the model's server sent an event of too many lines";
                    self.lost(Error::new(Code::Unreachable, what));
                }
            }
            return Some(Vec::new());
        }
        // Some servers leave out the empty line between two events.
        let follows = std::mem::take(&mut self.open);
        let passage = self.read(data, true);
        self.open = self.data.is_empty();
        match passage {
            Passage::Unchanged if !follows => None,
            passage => {
                let line = passage.line(data);
                Some(match follows {
                    true => [b"\n", &*line].concat(),
                    false => line,
                })
            }
        }
    }

    /// Reads an event's data, which may go on in another line.
    pub(super) fn read(&mut self, data: &[u8], goes_on: bool) -> Passage {
        // What comes behind the end is no part of the answer.
        if self.ended && self.form == Form::Chat && data != b"[DONE]" {
            return Passage::Nothing;
        }
        let Some(mut half) = self.half.take() else {
            return self.read_unless_cut(data, goes_on);
        };
        if goes_on && parse::<IgnoredAny>(data).is_err_and(|error| error.is_eof()) {
            // The rest of the letter may be in the event's next line.
            self.half = Some(half);
            self.data.extend_from_slice(data);
            return Passage::Nothing;
        }
        let mut data = data.to_vec();
        join(&mut half, &mut data);
        let before = self.read_event(&half, false).line(&half);
        let next = self.read_unless_cut(&data, goes_on).line(&data);
        Passage::Lines([&*before, b"\n", &*next].concat())
    }

    fn read_unless_cut(&mut self, data: &[u8], goes_on: bool) -> Passage {
        if cut_letter(data).is_some() && parse::<IgnoredAny>(data).is_ok() {
            self.half = Some(data.to_vec());
            return Passage::Nothing;
        }
        self.read_event(data, goes_on)
    }

    pub(super) fn read_event(&mut self, data: &[u8], goes_on: bool) -> Passage {
        match self.event(data) {
            Ok(passage) => passage,
            Err(error) if goes_on && error.is_eof() => {
                self.data.extend_from_slice(data);
                Passage::Nothing
            }
            Err(error) => self.gap(data, &error),
        }
    }

    /// An event cannot be read. What is no part of an answer is ignored.
    fn gap(&mut self, data: &[u8], error: &serde_json::Error) -> Passage {
        const CHOICES: &[u8] = b"\"choices\"";
        // A reader of objects stops at a text, whatever follows it.
        let is_part = match parse::<IgnoredAny>(data) {
            Ok(_) => data.windows(CHOICES.len()).any(|part| part == CHOICES),
            Err(_) => data.contains(&b'{'),
        };
        match data.first() {
            _ if is_part && !self.ended => self.lost(wire::unreadable(error)),
            Some(b'{') => Passage::Unchanged,
            _ => Passage::Comment,
        }
    }

    /// A part of the answer is lost.
    fn lost(&mut self, error: Error) -> Passage {
        match self.reads {
            StreamReading::Nothing => self.broken = self.broken.take().or(Some(error)),
            StreamReading::Chunks | StreamReading::Values => self.fail(error),
        }
        Passage::Nothing
    }

    fn event(&mut self, data: &[u8]) -> Result<Passage, serde_json::Error> {
        if data == b"[DONE]" && self.form == Form::Chat {
            self.ended = true;
            self.keep(|| Line::Done);
            return Ok(Passage::Unchanged);
        }
        let most = match self.reads {
            StreamReading::Values => MOST_OF_EVENT,
            StreamReading::Nothing | StreamReading::Chunks => json::MOST_MEMORY,
        };
        if let Err(error) = json::check(data, json::COPIES, most) {
            self.pass_unread(&format!("that is not read: {error}"));
            return Ok(Passage::Unchanged);
        }
        let seen = match self.reads {
            StreamReading::Nothing => return self.passing_event(data),
            StreamReading::Chunks => {
                let chunk: Chunk = parse(data)?;
                let seen = EventFacts::of_chunk(&chunk);
                if seen.failure.is_none() {
                    self.lines.push(Line::Chunk(Box::new(chunk)));
                }
                seen
            }
            StreamReading::Values => {
                let Value::Object(mut event) = parse(data)? else {
                    return Err(serde_json::Error::custom("an event is not an object"));
                };
                if self.form == Form::Chat {
                    self.calls.repair(&mut event);
                }
                let event = Value::Object(event);
                let seen = EventFacts::of_value(self.form, &event)?;
                if let (None, Value::Object(event)) = (&seen.failure, event) {
                    self.lines.push(Line::Value(event));
                }
                seen
            }
        };
        self.note(seen, data.len());
        Ok(Passage::Unchanged)
    }

    /// Reads an event whose bytes pass.
    fn passing_event(&mut self, data: &[u8]) -> Result<Passage, serde_json::Error> {
        // Escapes of half a letter are repaired also where nothing is read: some clients' parsers refuse the whole event for one.
        let repaired = repair(data);
        let json = repaired.as_deref().map_or(data, str::as_bytes);
        let seen = EventFacts::read(self.form, json)?;
        let passage = self.repaired_chat(&seen, json)?;
        self.note(seen, data.len());
        Ok(match (passage, repaired) {
            (Passage::Unchanged, Some(repaired)) => Passage::Json(repaired.into_bytes()),
            (passage, _) => passage,
        })
    }

    /// What passes of a chat's event. One without choices stops clients that look for the first.
    fn repaired_chat(
        &mut self,
        seen: &EventFacts,
        json: &[u8],
    ) -> Result<Passage, serde_json::Error> {
        let ends = seen.finish && self.calls.has_any();
        if self.form != Form::Chat
            || seen.failure.is_some()
            || (seen.has_choices && !seen.calls && !ends)
        {
            return Ok(Passage::Unchanged);
        }
        if !seen.has_choices && seen.used.is_none() && seen.timings.is_none() {
            return Ok(Passage::Comment);
        }
        let mut event: Map<String, Value> = serde_json::from_slice(json)?;
        Ok(match self.calls.repair(&mut event) {
            true => Passage::Json(Value::Object(event).to_string().into_bytes()),
            false => Passage::Unchanged,
        })
    }
}

/// Without the blanks around it that JSON may have in a line.
fn trim(mut data: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = data {
        data = rest;
    }
    data
}

/// A line of letters alone, if this one has others.
fn plain(line: &[u8]) -> Option<Vec<u8>> {
    match String::from_utf8_lossy(line) {
        Cow::Borrowed(_) => None,
        Cow::Owned(text) => Some(format!("{text}\n").into_bytes()),
    }
}

/// Whether a line is a field of an event that is not its data, or data without a text.
fn is_field(line: &[u8]) -> bool {
    let name = line.split(|&byte| byte == b':').next();
    matches!(name, Some(b"event" | b"id" | b"retry" | b"data"))
}
