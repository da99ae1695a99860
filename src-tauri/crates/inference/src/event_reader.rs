//! The lines of a server's event stream (WHATWG, "Interpreting an event stream") as the data of its events: what goes on in another line
//! is put together, and so is a letter that one event cuts off.

use crate::{
    metrics::TokenUse,
    original::Form,
    wire::{Chunk, is_written},
};
use serde::{Deserialize, de::IgnoredAny};
use tierbar_core::json::repair::{cut_letter, join, parse};

/// No event of a worker comes near it. A longer one is not held.
pub(crate) const LONGEST_LINE: usize = 1 << 20;

/// How many events are held at once for the rest of a letter: each may be of another of a chat's answers.
const MOST_HALVES: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct EventReader {
    begun: bool,
    /// The data of an event that goes on in another line.
    data: Vec<u8>,
    /// Events that cut off a letter, whose rest may come with another.
    halves: Vec<Vec<u8>>,
}

/// What a line is.
#[derive(Debug)]
pub(crate) enum EventLine<'a> {
    Comment,
    /// A field that is not data, or a line that says nothing.
    Other,
    /// Data without a text.
    Blank,
    /// Data that may be the whole of its event's: what goes on is to be held.
    Data(&'a [u8]),
    /// More data of an event that is held.
    More,
    /// The end of an event, with its data if that was held.
    End(Option<Vec<u8>>),
    /// Not a field: a part of the answer may be in it.
    Damaged,
}

/// The field with which events of most forms name themselves.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Named {
    #[serde(rename = "type")]
    kind: String,
}

impl EventReader {
    /// Returns what follows a byte-order mark, if the stream begins with one.
    pub(crate) fn without_mark<'a>(&mut self, line: &'a [u8]) -> Option<&'a [u8]> {
        let is_first = !std::mem::replace(&mut self.begun, true);
        let rest = line.strip_prefix(b"\xef\xbb\xbf");
        rest.filter(|_| is_first)
    }

    /// Reads a line, which is here without its end.
    pub(crate) fn line<'a>(&mut self, line: &'a [u8]) -> EventLine<'a> {
        if line.is_empty() {
            let held = std::mem::take(&mut self.data);
            return EventLine::End((!held.is_empty()).then_some(held));
        }
        let name = line.split(|&byte| byte == b':').next();
        match name.unwrap_or_default() {
            b"" => EventLine::Comment,
            b"data" => self.data_line(trim(line.get(5..).unwrap_or_default())),
            b"event" | b"id" | b"retry" => EventLine::Other,
            _ if line.contains(&b'{') => EventLine::Damaged,
            _ => EventLine::Other,
        }
    }

    fn data_line<'a>(&mut self, data: &'a [u8]) -> EventLine<'a> {
        if data.is_empty() {
            return EventLine::Blank;
        }
        if self.data.is_empty() {
            return EventLine::Data(data);
        }
        self.data.push(b'\n');
        self.data.extend_from_slice(data);
        EventLine::More
    }

    /// Holds data that goes on in another line.
    pub(crate) fn hold(&mut self, data: &[u8]) {
        self.data.extend_from_slice(data);
    }

    /// Drops the data that is held.
    pub(crate) fn discard(&mut self) {
        self.data.clear();
    }

    /// Returns the number of bytes of the data that is held.
    pub(crate) fn pending(&self) -> usize {
        self.data.len()
    }

    /// Returns the number of bytes of all that is held.
    pub(crate) fn held(&self) -> usize {
        self.data.len() + self.halves.iter().map(Vec::len).sum::<usize>()
    }

    /// Whether anything is held, be it for the rest of a letter.
    pub(crate) fn holds_any(&self) -> bool {
        !self.data.is_empty() || !self.halves.is_empty()
    }

    /// Returns the events to read in this one's place, whose letters are whole unless the rest has not come; `None` for this one.
    /// `goes_on`: its data may go on in another line.
    pub(crate) fn whole_letters(
        &mut self,
        form: Form,
        data: &[u8],
        goes_on: bool,
    ) -> Option<Vec<Vec<u8>>> {
        let is_cut = cut_letter(data).is_some() && parse::<IgnoredAny>(data).is_ok();
        if self.halves.is_empty() && !is_cut {
            return None;
        }
        let halves = std::mem::take(&mut self.halves).into_iter();
        let (waiting, mut events): (Vec<_>, Vec<_>) =
            halves.partition(|half| leaves_letter_open(form, half, data, goes_on));
        self.halves = waiting;
        let mut data = data.to_vec();
        for half in &mut events {
            join(half, &mut data);
        }
        let has_room = self.halves.len() < MOST_HALVES && data.len() <= LONGEST_LINE;
        match is_cut && has_room {
            true => self.halves.push(data),
            false => events.push(data),
        }
        Some(events)
    }

    /// Returns the stream's last event, if only the ends of its lines are missing. `rest`: the line whose end has not come.
    pub(crate) fn last(&mut self, form: Form, rest: &[u8]) -> Option<Vec<u8>> {
        let mut event = std::mem::take(&mut self.data);
        if let Some(data) = rest.strip_prefix(b"data:") {
            if !event.is_empty() {
                event.push(b'\n');
            }
            event.extend_from_slice(data.trim_ascii());
        }
        let is_whole = match &*event {
            b"[DONE]" => form == Form::Chat,
            json => json.starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(json).is_ok(),
        };
        is_whole.then_some(event)
    }

    /// Takes the events that are held for the rest of a letter, which does not come.
    pub(crate) fn take_halves(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.halves)
    }
}

/// Returns the line that names an event, if its form has such lines.
pub(crate) fn name_line(form: Form, event: &[u8]) -> Option<String> {
    if form == Form::Chat {
        return None;
    }
    let Named { kind } = parse(event).ok()?;
    let is_name = !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_graphic());
    is_name.then(|| format!("event: {kind}\n"))
}

/// Whether the rest of the half's letter may come behind this: the event goes on, is no part of the answer, or belongs to others of a
/// chat's answers. Clients join the texts of all events, whatever stands between them.
fn leaves_letter_open(form: Form, half: &[u8], data: &[u8], goes_on: bool) -> bool {
    let is_open = match form {
        Form::Chat => {
            parse::<Chunk>(data).map(|chunk| !says_something(&chunk) || is_of_others(&chunk, half))
        }
        Form::Messages => parse::<Named>(data).map(|Named { kind }| {
            let is_block = kind.starts_with("content_block_");
            !is_block && !kind.starts_with("message_") && kind != "error"
        }),
        // OpenAI sends events of the type `keepalive`. Some servers write no type into the data.
        Form::Responses => parse::<Named>(data).map(|Named { kind }| {
            !kind.is_empty() && !kind.starts_with("response.") && kind != "error"
        }),
    };
    match is_open {
        Ok(is_open) => is_open,
        Err(error) if goes_on && error.is_eof() => true,
        Err(_) => !data.contains(&b'{') && data != b"[DONE]",
    }
}

fn says_something(chunk: &Chunk) -> bool {
    let usage = chunk.usage.as_ref().and_then(TokenUse::of_usage);
    let mut choices = chunk.choices.iter();
    let is_part =
        choices.any(|choice| choice.has_content() || is_written(choice.finish_reason.as_deref()));
    is_part || usage.is_some() || chunk.error.is_some()
}

/// Whether all that a chunk says is of other answers than the half.
fn is_of_others(chunk: &Chunk, half: &[u8]) -> bool {
    let Ok(half) = parse::<Chunk>(half) else {
        return false;
    };
    let is_other = |index| half.choices.iter().all(|held| held.index != index);
    let has_choices = !half.choices.is_empty() && !chunk.choices.is_empty();
    let mut choices = chunk.choices.iter();
    has_choices && chunk.error.is_none() && choices.all(|choice| is_other(choice.index))
}

/// Without the blanks around it that JSON may have in a line.
fn trim(mut data: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = data {
        data = rest;
    }
    data
}
