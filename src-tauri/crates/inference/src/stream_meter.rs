//! Reads a stream as it passes: cuts it at line ends, counts tokens, and notes how it ends. Each line is parsed once: for these figures
//! alone, or into what its reader needs.

mod chat;
mod event_facts;
mod lines;

use super::{charge::Attempt, chat_calls::StreamCalls, lines::LineEnds, original::Form};
use crate::{
    clouds::anthropic::MessageUsage,
    metrics::Answer,
    speed::AnswerMeter,
    wire::{Chunk, Timings},
};
use bytes::Bytes;
use event_facts::EventFacts;
use lines::Passage;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use std::time::Instant;
use tierbar_chats::context::ContextUse;
use tierbar_core::{Code, Error, json};

/// No event of a worker comes near it. A line beyond passes on unread.
const LONGEST_LINE: usize = 1 << 20;
/// The same of other forms, some of whose events have a whole answer, and where the event is needed.
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
    counted: Answer,
    charge: Attempt,
    line_ends: LineEnds,
    /// A line whose end has not arrived. It is held back, so that a worker that dies within a line leaves the
    /// client no half event.
    partial: Vec<u8>,
    /// The data of an event that goes on in another line.
    data: Vec<u8>,
    /// An event that cuts off a letter, whose rest may come with the next.
    half: Option<Vec<u8>>,
    /// The last line of data has passed, and the empty line that ends its event has not.
    open: bool,
    /// A line of the event has passed.
    within: bool,
    /// A line of the event was left out.
    left_out: bool,
    calls: StreamCalls,
    lines: Vec<Line>,
    usage: MessageUsage,
    begun: bool,
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
}

impl StreamMeter {
    pub fn new(answering: AnswerMeter, counted: Answer, charge: Attempt) -> Self {
        Self {
            form: Form::default(),
            reads: StreamReading::default(),
            answering,
            counted,
            charge,
            line_ends: LineEnds::default(),
            partial: Vec::new(),
            data: Vec::new(),
            half: None,
            open: false,
            within: false,
            left_out: false,
            calls: StreamCalls::default(),
            lines: Vec::new(),
            usage: MessageUsage::default(),
            begun: false,
            spoken: false,
            failure: None,
            broken: None,
            finished: false,
            ended: false,
            unread: false,
            within_unread: false,
        }
    }

    /// The same for a stream in this form, read so.
    pub fn reading(mut self, form: Form, reads: StreamReading) -> Self {
        (self.form, self.reads) = (form, reads);
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

    /// Takes what has arrived and gives what may pass: all up to the last line's end, with what no client could read repaired.
    pub fn pass(&mut self, arrived: Bytes) -> Bytes {
        let arrived = self.line_ends.unify(arrived);
        let end = arrived.iter().rposition(|&byte| byte == b'\n');
        let whole = end.map_or(0, |end| end + 1);
        // Nearly all comes in whole lines, and is not copied.
        let passing = if whole > 0 && self.partial.is_empty() {
            arrived.slice(..whole)
        } else {
            self.partial.extend_from_slice(&arrived[..whole]);
            if whole == 0 && self.partial.len() + arrived.len() <= self.longest() {
                Bytes::new()
            } else {
                if whole == 0 {
                    self.too_long();
                }
                std::mem::take(&mut self.partial).into()
            }
        };
        self.partial.extend_from_slice(&arrived[whole..]);
        match whole {
            0 => passing,
            _ => self.pass_lines(passing),
        }
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
        let is_one_line = self.data.is_empty() && self.half.is_none();
        let mut event = std::mem::take(&mut self.data);
        if let Some(data) = rest.strip_prefix(b"data:") {
            if !event.is_empty() {
                event.push(b'\n');
            }
            event.extend_from_slice(data.trim_ascii());
        }
        let is_whole = match &*event {
            b"[DONE]" => self.form == Form::Chat,
            json => json.starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(json).is_ok(),
        };
        let mut last = Vec::new();
        if is_whole {
            match self.read(&event, false) {
                Passage::Unchanged if is_one_line => {
                    last.append(&mut rest);
                    last.push(b'\n');
                }
                passage => last = passage.line(&event),
            }
            last.push(b'\n');
        }
        if let Some(half) = self.half.take() {
            last.append(&mut self.read_event(&half, false).line(&half));
            last.push(b'\n');
        }
        (!last.is_empty()).then(|| last.into())
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
        self.ended || (self.unread && self.form != Form::Chat)
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
    counted: &mut Answer,
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
