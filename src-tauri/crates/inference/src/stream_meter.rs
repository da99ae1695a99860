//! Reads a stream as it passes: cuts it at line ends, counts tokens, and notes how it ends. Each line is parsed once: for these figures
//! alone, or into what its reader needs.

mod chat;
mod event_facts;
mod lines;

use super::{
    charge::Attempt, chat_calls::StreamCalls, chat_text::StreamedText, lines::LineEnds,
    original::Form,
};
use crate::{
    clouds::anthropic::MessageUsage,
    event_reader::{EventReader, LONGEST_LINE},
    held::Share,
    metrics::AnswerMetrics,
    speed::AnswerMeter,
    wire::{Chunk, Timings},
};
use bytes::Bytes;
use event_facts::EventFacts;
use lines::Passage;
use memchr::memrchr;
use serde_json::{Map, Value};
use std::time::Instant;
use tierbar_chats::context::ContextUse;
use tierbar_core::{Code, Error, json};

/// Of other forms, some of whose events have a whole answer, and where the event is needed. A line beyond passes on unread.
const LONGEST_EVENT: usize = 16 << 20;
/// The memory of an event of an answer that is put together.
const MOST_OF_EVENT: usize = json::MOST_MEMORY / 2;

/// What is made of a stream beside the bytes that pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StreamReading {
    #[default]
    Nothing,
    /// Its events in OpenAI's form, for clients of other dialects.
    Chunks,
    /// Its events with all of their fields, for a whole answer.
    Values,
}

/// A line of a stream that says something, parsed.
#[derive(Debug)]
pub enum Line {
    /// The server waits.
    Comment,
    Chunk(Box<Chunk>),
    Value(Map<String, Value>),
    /// OpenAI's last line.
    Done,
    /// The stream ends with this error.
    Failure(Error),
}

#[derive(Debug)]
pub struct StreamMeter {
    pub(crate) form: Form,
    reads: StreamReading,
    answering: AnswerMeter,
    counted: AnswerMetrics,
    charge: Attempt,
    line_ends: LineEnds,
    /// A line whose end has not arrived. It is held back, so that a worker that dies within a line leaves the
    /// client no half event.
    partial: Vec<u8>,
    events: EventReader,
    /// Of the memory for answers: what is held here.
    share: Share,
    /// The last line of data has passed, and the empty line that ends its event has not.
    open: bool,
    /// A line of the event has passed.
    within: bool,
    /// A line of the event was left out.
    left_out: bool,
    /// The event's name has passed, and no data behind it.
    pub(crate) named: bool,
    calls: StreamCalls,
    /// A chat's text, until it is clear what that is.
    text: Option<StreamedText>,
    lines: Vec<Line>,
    usage: MessageUsage,
    /// There was some content.
    pub(crate) spoken: bool,
    failure: Option<Error>,
    /// Why no more of the stream passes, though its server may go on.
    broken: Option<Error>,
    /// The last event had a reason to end.
    finished: bool,
    /// The stream has had its last event, which may be an error.
    pub(crate) ended: bool,
    /// The last event was too long to be read: the end may have been in it.
    unread: bool,
    /// The rest of it has not passed.
    within_unread: bool,
    /// Nor the end of its line.
    cut: bool,
}

impl StreamMeter {
    pub fn new(answering: AnswerMeter, counted: AnswerMetrics, charge: Attempt) -> Self {
        Self {
            form: Form::default(),
            reads: StreamReading::default(),
            answering,
            counted,
            charge,
            line_ends: LineEnds::default(),
            partial: Vec::new(),
            events: EventReader::default(),
            share: Share::default(),
            open: false,
            within: false,
            left_out: false,
            named: false,
            calls: StreamCalls::default(),
            text: None,
            lines: Vec::new(),
            usage: MessageUsage::default(),
            spoken: false,
            failure: None,
            broken: None,
            finished: false,
            ended: false,
            unread: false,
            within_unread: false,
            cut: false,
        }
    }

    /// The same for a stream in this form, read so.
    pub fn reading(mut self, form: Form, reads: StreamReading) -> Self {
        (self.form, self.reads) = (form, reads);
        self
    }

    /// The same, which divides the text of a chat.
    pub(crate) fn dividing(mut self, text: Option<StreamedText>) -> Self {
        self.text = text.filter(|_| self.form == Form::Chat);
        self
    }

    /// Takes the lines that have been read since the last call.
    pub fn take_lines(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.lines)
    }

    /// Puts an event of ours before the lines that have been read.
    pub(crate) fn begin_with(&mut self, event: &Value) {
        if self.reads == StreamReading::Chunks
            && let Ok(chunk) = serde_json::from_value(event.clone())
        {
            self.lines.insert(0, Line::Chunk(Box::new(chunk)));
        }
    }

    /// The server is silent.
    pub fn waits(&mut self) {
        self.keep(|| Line::Comment);
    }

    /// Takes what has arrived and gives what may pass: all up to the last line's end, with what no client could read repaired. Where there
    /// is no room to hold the rest, the stream ends.
    pub fn pass(&mut self, arrived: Bytes) -> Bytes {
        let arrived = self.line_ends.unify(arrived);
        let held = self.held() + arrived.len();
        if let Err(full) = self.share.cover(held) {
            (self.partial, self.share) = (Vec::new(), Share::default());
            self.broken = Some(full);
            return Bytes::new();
        }
        let end = memrchr(b'\n', &arrived);
        let whole = end.map_or(0, |end| end + 1);
        // Nearly all comes in whole lines, and is not copied.
        let passing = if whole > 0 && self.partial.is_empty() {
            arrived.slice(..whole)
        } else if whole > 0 {
            self.partial.extend_from_slice(&arrived[..whole]);
            std::mem::take(&mut self.partial).into()
        } else if self.partial.len() + arrived.len() <= self.longest() {
            Bytes::new()
        } else {
            self.pass_long_line().into()
        };
        self.partial.extend_from_slice(&arrived[whole..]);
        let passing = match whole {
            0 => passing,
            _ => self.pass_lines(passing),
        };
        let held = self.held();
        self.share.keep(held).hold(passing)
    }

    fn held(&self) -> usize {
        self.partial.len() + self.events.held()
    }

    fn longest(&self) -> usize {
        match (self.reads, self.form) {
            // It is not read in any case.
            _ if self.within_unread => 0,
            (StreamReading::Nothing, Form::Chat) => LONGEST_LINE,
            _ => LONGEST_EVENT,
        }
    }

    fn keep(&mut self, line: impl FnOnce() -> Line) {
        if self.reads != StreamReading::Nothing {
            self.lines.push(line());
        }
    }

    /// Whether its events are read, and its bytes pass to no client.
    pub(crate) fn is_read(&self) -> bool {
        self.reads != StreamReading::Nothing
    }

    /// Whether the last line of an event has passed without the empty line behind it, which is then to be sent.
    pub(crate) fn close_event(&mut self) -> bool {
        let open = std::mem::take(&mut self.open);
        (self.named, self.within) = (self.named && !open, self.within && !open);
        open
    }

    /// What has arrived of a line that is too long to be held passes unread.
    fn pass_long_line(&mut self) -> Vec<u8> {
        let before = match self.within_unread {
            true => Vec::new(),
            false => self.pass_long_event(),
        };
        (self.cut, self.named) = (true, false);
        let line = std::mem::take(&mut self.partial);
        match before.is_empty() {
            _ if self.broken.is_some() => before,
            true => line,
            false => [before, line].concat(),
        }
    }

    /// An event is too long to be held. Returns what was held and passes before it. Where it was a part of the event, or has come behind
    /// the event's name, the stream ends.
    fn pass_long_event(&mut self) -> Vec<u8> {
        let is_part = self.events.pending() > 0;
        self.events.discard();
        let mut passes = self.take_halves();
        let is_named = self.named && self.form != Form::Chat && !passes.is_empty();
        // The event before may lack the empty line that ends it.
        if std::mem::take(&mut self.open) {
            passes.push(b'\n');
        }
        self.too_long();
        if (is_part || is_named) && self.reads == StreamReading::Nothing {
            let what = "the model's server sent an event that is too long";
            self.lost(Error::new(Code::Unreachable, what));
        }
        passes
    }

    fn too_long(&mut self) {
        self.within_unread = true;
        let most = LONGEST_EVENT >> 20;
        self.pass_unread(&format!("of more than {most} MiB"));
    }

    /// An event passes unread. Where it is needed, the stream ends.
    fn pass_unread(&mut self, event: &str) {
        self.unread = true;
        if self.reads != StreamReading::Nothing && self.failure.is_none() {
            let what = format!("the model's server sends an event {event}");
            self.fail(Error::new(Code::Unreachable, what));
        }
    }

    fn fail(&mut self, error: Error) {
        self.failure = Some(error.clone());
        self.ended = true;
        self.keep(|| Line::Failure(error));
    }

    fn note(&mut self, seen: EventFacts, bytes: usize) {
        self.unread = false;
        self.ended |= seen.ends;
        if let Some(error) = seen.failure {
            self.fail(error);
        }
        self.finished |= seen.finish;
        if seen.words {
            self.finished = seen.finish;
            self.spoken = true;
            let now = Instant::now();
            self.answering.chunk(now);
            self.counted.chunk(now);
            self.charge.piece(bytes);
        }
        if let Some(timings) = &seen.timings {
            self.answering.timings(timings);
        }
        let by_message = seen.message_usage.map(|more| {
            self.usage.note(more);
            self.usage.used()
        });
        let by_engine = seen.timings.as_ref().map(Timings::used);
        for used in by_engine.into_iter().chain(by_message.or(seen.used)) {
            self.charge.report(used.tokens());
            self.counted.used(used);
        }
    }

    /// The stream ends with an error of ours.
    pub fn broke(&self, code: Code) {
        self.counted.broke(code);
    }

    /// The request has ended: answered, or with this error.
    pub fn settle(&self, failure: Option<Code>) {
        self.counted.settle(failure);
    }

    /// Whether it is an answer, even an empty one.
    pub(crate) fn has_answered(&self) -> bool {
        self.spoken || self.finished
    }

    /// The error that the stream has ended with.
    pub fn failure(&self) -> Option<Error> {
        self.failure.clone()
    }

    /// Takes the error that ends what passes, before the server has ended its stream.
    pub(crate) fn take_broken(&mut self) -> Option<Error> {
        self.broken.take()
    }

    /// The connection has ended in order. Takes the last line if only its end is missing, and returns what is still to pass of it.
    pub(crate) fn take_rest(&mut self) -> Option<Bytes> {
        let mut rest = std::mem::take(&mut self.partial);
        if self.within_unread {
            return (!rest.is_empty()).then(|| rest.into());
        }
        let is_one_line = !self.events.holds_any();
        let follows = std::mem::take(&mut self.open);
        let mut last = Vec::new();
        if let Some(event) = self.events.last(self.form, &rest) {
            match self.read_data(&event, false) {
                Passage::Unchanged if is_one_line => {
                    last.append(&mut rest);
                    last.push(b'\n');
                }
                passage => last = passage.line(&event),
            }
            last.push(b'\n');
        }
        last.append(&mut self.take_halves());
        if last.is_empty() {
            return None;
        }
        // The event before may lack the empty line that ends it.
        if follows {
            last.insert(0, b'\n');
        }
        Some(std::mem::take(&mut self.share).hold(last.into()))
    }

    /// The connection has broken. Returns what is still to pass, behind which the error comes, or the error.
    pub(crate) fn break_off(&mut self, error: Error) -> Result<Bytes, Error> {
        let passes = self.take_halves();
        if passes.is_empty() {
            return Err(error);
        }
        self.broken = Some(error);
        Ok(passes.into())
    }

    /// Reads what is held for the rest of a letter or of a call, which does not come, and returns what passes.
    fn take_halves(&mut self) -> Vec<u8> {
        let mut passes = Vec::new();
        for half in self.events.take_halves() {
            // The event before may lack the empty line that ends it.
            if std::mem::take(&mut self.open) {
                passes.push(b'\n');
            }
            passes.append(&mut self.event_lines(&half, false));
            passes.push(b'\n');
        }
        let mut text = self.release_text();
        if !text.is_empty() && std::mem::take(&mut self.open) {
            passes.push(b'\n');
        }
        passes.append(&mut text);
        passes
    }

    /// The connection has ended in order. What is still to pass if the answer is whole: some servers leave its last word out.
    pub fn end(&mut self) -> Option<Bytes> {
        if self.ended || !self.finished || self.form != Form::Chat {
            return None;
        }
        self.ended = true;
        self.keep(|| Line::Done);
        // The empty line ends an event that lacks it.
        Some(Bytes::from_static(b"\ndata: [DONE]\n\n"))
    }

    /// Whether the end may have passed unread.
    pub(crate) fn may_have_ended(&self) -> bool {
        self.ended || (self.unread && !self.cut && self.form != Form::Chat)
    }
}

impl Drop for StreamMeter {
    fn drop(&mut self) {
        // As a refusal that has a status of its own.
        if self.ended && !self.has_answered() {
            self.charge.void();
        }
    }
}

/// Takes the figures from an answer that came whole, for which is then paid. Returns how much of the context it has used.
pub fn whole(
    form: Form,
    answering: &AnswerMeter,
    counted: &mut AnswerMetrics,
    mut charge: Attempt,
    answer: &[u8],
) -> Option<ContextUse> {
    let seen = EventFacts::of_whole(form, answer).ok();
    let Some(seen) = seen.filter(|seen| seen.failure.is_none()) else {
        charge.void();
        return None;
    };
    if seen.words {
        charge.piece(answer.len());
    }
    let timings = seen.timings.as_ref();
    if let Some(timings) = timings {
        answering.timings(timings);
    }
    for used in timings.map(Timings::used).into_iter().chain(seen.used) {
        charge.report(used.tokens());
        counted.used(used);
    }
    timings.and_then(Timings::context)
}

#[cfg(test)]
mod tests;
