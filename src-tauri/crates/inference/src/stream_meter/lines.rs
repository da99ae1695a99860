//! Reads a stream's lines one by one, and repairs what passes. What cannot be read ends the answer: without it, the answer would not be
//! complete.

use super::{EventFacts, Line, MOST_OF_EVENT, StreamMeter, StreamReading};
use crate::{
    chat_text::StreamedText,
    event_reader::{EventLine, name_line},
    lines::without_end,
    original::Form,
    wire::{self, Chunk},
};
use bytes::Bytes;
use memchr::memmem;
use serde::de::{Error as _, IgnoredAny};
use serde_json::{Map, Value};
use std::borrow::Cow;
use tierbar_core::{
    Code, Error,
    json::{
        self,
        repair::{parse, repair},
    },
};

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
    /// These whole events and, behind them, what passes of this one.
    fn behind(mut events: Vec<u8>, passage: Self, data: &[u8]) -> Self {
        if events.is_empty() {
            return passage;
        }
        events.append(&mut passage.line(data));
        Self::Lines(events)
    }

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
            let text = without_end(line);
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

    /// Leaves out the empty line that ends an event of which nothing has passed. One of which only the name has passed loses that, too:
    /// the packages of OpenAI and Anthropic fail at a named event without data.
    fn end_of_nothing(&mut self, line: &[u8], change: Option<Vec<u8>>) -> Option<Vec<u8>> {
        let passing = change.as_deref().unwrap_or(line);
        if line.is_empty() {
            let within = std::mem::take(&mut self.within);
            let left_out = std::mem::take(&mut self.left_out);
            let named = std::mem::take(&mut self.named);
            // Data of many lines passes here.
            let passing = change.as_deref().unwrap_or(b"\n");
            return match named && memmem::find(passing, b"data:").is_none() {
                true => Some([b"event:\n", passing].concat()),
                false => change.or_else(|| (left_out && !within).then(Vec::new)),
            };
        }
        let has_data = self.named && memmem::find(passing, b"data:").is_some();
        self.named = line.starts_with(b"event:") || (self.named && !has_data);
        match passing.is_empty() {
            true => self.left_out = true,
            false => self.within = true,
        }
        change
    }

    /// Returns what passes in the line's place, if that is another.
    fn line(&mut self, mut line: &[u8]) -> Option<Vec<u8>> {
        let mut change = None;
        if let Some(rest) = self.events.without_mark(line) {
            line = rest;
            change = Some(plain(rest).unwrap_or_else(|| [rest, b"\n"].concat()));
        }
        if self.within_unread {
            self.cut = false;
            self.within_unread = !line.is_empty();
            return change;
        }
        match self.events.line(line) {
            EventLine::End(data) => {
                self.open = false;
                let Some(data) = data else { return change };
                let mut passes = self.read_data(&data, false).line(&data);
                passes.push(b'\n');
                return Some(passes);
            }
            EventLine::Data(data) => return self.data_line(data).or(change),
            EventLine::More => return Some(self.bound_data()),
            EventLine::Blank => return Some(Passage::Comment.line(line)),
            EventLine::Damaged if !self.ended => {
                // The text before the gap has arrived.
                let passes = self.take_halves();
                let what = "the model's server sent a line that is not an event";
                self.lost(Error::new(Code::Unreachable, what));
                return Some(passes);
            }
            EventLine::Comment => self.keep(|| Line::Comment),
            EventLine::Other | EventLine::Damaged => {}
        }
        change.or_else(|| plain(line))
    }

    fn data_line(&mut self, data: &[u8]) -> Option<Vec<u8>> {
        // Some servers leave out the empty line between two events.
        let follows = std::mem::take(&mut self.open);
        let passage = self.read_data(data, true);
        self.open = self.events.pending() == 0;
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

    /// Drops an event of too many lines, and returns what passes before it.
    fn bound_data(&mut self) -> Vec<u8> {
        match self.events.pending() <= self.longest() {
            true => Vec::new(),
            false => self.pass_long_event(),
        }
    }

    /// Reads an event's data, which may go on in another line.
    pub(super) fn read_data(&mut self, data: &[u8], goes_on: bool) -> Passage {
        // What comes behind the end is no part of the answer.
        if self.ended && self.form == Form::Chat && data != b"[DONE]" {
            return Passage::Nothing;
        }
        let Some(events) = self.events.whole_letters(self.form, data, goes_on) else {
            return self.read_event(data, goes_on);
        };
        let events = events.iter();
        let lines: Vec<_> = events
            .map(|event| self.event_lines(event, goes_on))
            .collect();
        Passage::Lines(lines.join(&b'\n'))
    }

    /// Reads an event that passes with its name: the last name that has passed may be another's, and clients look at it.
    pub(super) fn event_lines(&mut self, event: &[u8], goes_on: bool) -> Vec<u8> {
        let lines = self.read_event(event, goes_on).line(event);
        let has_data = lines.starts_with(b"data:");
        match name_line(self.form, event).filter(|_| has_data) {
            Some(name) => [name.as_bytes(), &lines].concat(),
            None => lines,
        }
    }

    fn read_event(&mut self, data: &[u8], goes_on: bool) -> Passage {
        match self.event(data) {
            Ok(passage) => passage,
            Err(error) if goes_on && error.is_eof() => {
                self.events.hold(data);
                Passage::Nothing
            }
            Err(error) => self.gap(data, &error),
        }
    }

    /// An event cannot be read. What is no part of an answer is ignored.
    fn gap(&mut self, data: &[u8], error: &serde_json::Error) -> Passage {
        // A reader of objects stops at a text, whatever follows it.
        let is_part = match parse::<IgnoredAny>(data) {
            Ok(_) => memmem::find(data, b"\"choices\"").is_some(),
            Err(_) => data.contains(&b'{'),
        };
        match data.first() {
            _ if is_part && !self.ended => {
                // The text before the gap has arrived.
                let text = self.release_text();
                Passage::behind(text, self.lost(wire::unreadable(error)), data)
            }
            Some(b'{') => Passage::Unchanged,
            _ => Passage::Comment,
        }
    }

    /// A part of the answer is lost.
    pub(super) fn lost(&mut self, error: Error) -> Passage {
        match self.reads {
            StreamReading::Nothing => self.broken = self.broken.take().or(Some(error)),
            StreamReading::Chunks | StreamReading::Values => self.fail(error),
        }
        Passage::Nothing
    }

    fn event(&mut self, data: &[u8]) -> Result<Passage, serde_json::Error> {
        if data == b"[DONE]" && self.form == Form::Chat {
            let text = self.release_text();
            self.ended = true;
            self.keep(|| Line::Done);
            return Ok(Passage::behind(text, Passage::Unchanged, data));
        }
        let most = match self.reads {
            StreamReading::Values => MOST_OF_EVENT,
            StreamReading::Nothing | StreamReading::Chunks => json::MOST_MEMORY,
        };
        if let Err(error) = json::check(data, json::COPIES, most) {
            // Its words come behind those that are held.
            let text = self.release_text();
            self.pass_unread(&format!("that is not read: {error}"));
            return Ok(Passage::behind(text, Passage::Unchanged, data));
        }
        let seen = match self.reads {
            StreamReading::Nothing => return self.passing_event(data),
            StreamReading::Chunks => {
                let mut chunk: Chunk = parse(data)?;
                let seen = EventFacts::of_chunk(&chunk);
                if self.is_unclear(&seen, data) {
                    let mut event: Map<String, Value> = parse(data)?;
                    if self.divide_text(&mut event) {
                        chunk = serde_json::from_value(event.into())?;
                    }
                }
                match seen.failure {
                    None => self.lines.push(Line::Chunk(Box::new(chunk))),
                    Some(_) => drop(self.release_text()),
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
                if let (None, Value::Object(mut event)) = (&seen.failure, event) {
                    if self.is_unclear(&seen, data) {
                        self.divide_text(&mut event);
                    }
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
        let seen = EventFacts::parse(self.form, json)?;
        let mut passage = self.repaired_chat(&seen, json)?;
        if seen.failure.is_some() {
            passage = Passage::behind(self.release_text(), passage, json);
        }
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
        let is_unclear = self.is_unclear(seen, json);
        if self.form != Form::Chat
            || seen.failure.is_some()
            || (seen.has_choices && !seen.calls && !ends && !is_unclear)
        {
            return Ok(Passage::Unchanged);
        }
        if !seen.has_choices && seen.used.is_none() && seen.timings.is_none() {
            return Ok(Passage::Comment);
        }
        let mut event: Map<String, Value> = serde_json::from_slice(json)?;
        let is_repaired = self.calls.repair(&mut event);
        let is_divided = is_unclear && self.divide_text(&mut event);
        Ok(match is_repaired || is_divided {
            true => Passage::Json(Value::Object(event).to_string().into_bytes()),
            false => Passage::Unchanged,
        })
    }

    /// Whether it is still to be found what the text of an event is. `json`: the event.
    fn is_unclear(&self, seen: &EventFacts, json: &[u8]) -> bool {
        let text = self.text.as_ref();
        (seen.words || seen.finish) && text.is_some_and(|text| text.looks_at(json))
    }

    fn divide_text(&mut self, event: &mut Map<String, Value>) -> bool {
        let Some(text) = &mut self.text else {
            return false;
        };
        let changed = text.divide(event);
        if text.is_done() {
            self.text = None;
        }
        changed
    }

    /// Passes on what is held of a text, as it is, in an event of its own. Returns the lines of that.
    pub(super) fn release_text(&mut self) -> Vec<u8> {
        let Some(event) = self.text.take().and_then(StreamedText::into_event) else {
            return Vec::new();
        };
        let lines = format!("data: {event}\n\n").into_bytes();
        match (self.reads, event) {
            (StreamReading::Chunks, event) => {
                let chunk = serde_json::from_value(event).ok();
                self.lines
                    .extend(chunk.map(|chunk| Line::Chunk(Box::new(chunk))));
            }
            (StreamReading::Values, Value::Object(event)) => self.lines.push(Line::Value(event)),
            _ => {}
        }
        lines
    }
}

/// A line of letters alone, if this one has others.
fn plain(line: &[u8]) -> Option<Vec<u8>> {
    match String::from_utf8_lossy(line) {
        Cow::Borrowed(_) => None,
        Cow::Owned(text) => Some(format!("{text}\n").into_bytes()),
    }
}
