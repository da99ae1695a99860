//! A whole answer from the events of one that streams. Only a stream shows that a server has begun to answer; from there on, a whole
//! answer may take any time.

mod messages;

use super::{attempt::WholeAnswer, streaming::StreamedAnswer, who_answers};
use crate::{
    calls::Calls,
    held::Share,
    original::Form,
    stream_meter::Line,
    upstream::ANSWER_LIMIT,
    wire::{Timings, ToolCall},
};
use http::{HeaderValue, StatusCode, header};
use messages::MessageParts;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, time::Duration};
use tierbar_chats::context::ContextUse;
use tierbar_core::{
    Code, Error,
    chain::Outcome,
    json::{memory_of, memory_of_fields},
};
use tokio::time::timeout;

/// The memory of an answer's values, in which a text is one and a list many.
const MOST_MEMORY: usize = 32 << 20;
/// How much of it arrives before they are counted again.
const COUNTED_AFTER: usize = 64 << 10;

/// The whole answer, unless nothing but comments comes for so long.
pub(crate) async fn gather_within(
    answer: &mut StreamedAnswer,
    silence: Duration,
) -> Result<WholeAnswer, Error> {
    let mut gathering = AnswerParts::new(answer.meter.form);
    loop {
        let rendered = timeout(silence, gathering.more(answer)).await;
        let message = || format!("no part of the answer arrived for {} s", silence.as_secs());
        if !rendered.map_err(|_| Error::new(Code::WorkerTimeout, message()))?? {
            return Ok(gathering.into_whole(answer));
        }
    }
}

/// As [`gather_within`], of a server that streams without being asked to. It may be silent for any time.
pub async fn gather(answer: &mut StreamedAnswer) -> Result<WholeAnswer, Error> {
    let begun = answer.hold_to_first_word().await;
    begun.map_err(|failed| failed.error)?;
    let mut gathering = AnswerParts::new(answer.meter.form);
    while gathering.more(answer).await? {}
    Ok(gathering.into_whole(answer))
}

#[derive(Debug)]
struct AnswerParts {
    parts: Parts,
    /// In bytes, of all that has arrived.
    length: usize,
    /// The same of what has arrived since the values were counted.
    uncounted: usize,
    share: Share,
}

/// What has arrived, by its form.
#[derive(Debug)]
enum Parts {
    Chat(ChatParts),
    Messages(MessageParts),
    /// The last event has the whole response.
    Response(Value),
}

#[derive(Debug, Default)]
struct ChatParts {
    /// The events' other fields. The last value counts.
    about: Map<String, Value>,
    choices: BTreeMap<u64, Choice>,
}

#[derive(Debug, Default)]
struct Choice {
    about: Map<String, Value>,
    /// Of a chat.
    message: Option<Map<String, Value>>,
    calls: Vec<Map<String, Value>>,
    /// Which call a piece is of.
    numbers: Calls,
    /// Lists, of which each event brings a piece.
    logprobs: Map<String, Value>,
}

impl AnswerParts {
    fn new(form: Form) -> Self {
        let parts = match form {
            Form::Chat => Parts::Chat(ChatParts::default()),
            Form::Messages => Parts::Messages(MessageParts::default()),
            Form::Responses => Parts::Response(Value::Null),
        };
        Self {
            parts,
            length: 0,
            uncounted: 0,
            share: Share::default(),
        }
    }

    /// Waits for more of it than comments; `false` at its end.
    async fn more(&mut self, answer: &mut StreamedAnswer) -> Result<bool, Error> {
        loop {
            let bytes = match answer.next().await {
                Ok(bytes) => bytes,
                Err(None) => return Ok(false),
                Err(Some(error)) => return Err(error),
            };
            self.length += bytes.len();
            if self.length > ANSWER_LIMIT {
                let message = format!("the answer is longer than {} MiB", ANSWER_LIMIT >> 20);
                return Err(Error::new(Code::Unreachable, message));
            }
            let more = self.read_lines(answer.meter.take_lines())?;
            self.uncounted += bytes.len();
            if self.uncounted > COUNTED_AFTER {
                self.uncounted = 0;
                self.count_memory()?;
            }
            // Some keep the connection open behind it.
            if answer.meter.ended {
                answer.ends(None);
                return Ok(false);
            }
            if more {
                return Ok(true);
            }
        }
    }

    fn count_memory(&mut self) -> Result<(), Error> {
        let memory = match &self.parts {
            Parts::Chat(chat) => chat.memory(),
            Parts::Messages(message) => message.memory(),
            Parts::Response(response) => memory_of(response),
        };
        if memory <= MOST_MEMORY {
            return self.share.cover(memory);
        }
        let most = MOST_MEMORY >> 20;
        let message = format!("the answer takes more than {most} MiB of memory");
        Err(Error::new(Code::Unreachable, message))
    }

    /// Whether there is more in them than comments and what stands for these in Anthropic's streams and OpenAI's responses.
    fn read_lines(&mut self, lines: Vec<Line>) -> Result<bool, Error> {
        let mut more = false;
        for line in lines {
            match line {
                Line::Failure(error) => return Err(error),
                Line::Value(event) if is_keepalive(&event) => {}
                Line::Value(event) => {
                    more = true;
                    self.event(event);
                }
                Line::Chunk(_) | Line::Done => more = true,
                Line::Comment => {}
            }
        }
        Ok(more)
    }

    fn event(&mut self, mut event: Map<String, Value>) {
        match &mut self.parts {
            Parts::Chat(chat) => chat.event(event),
            Parts::Messages(message) => message.event(event),
            Parts::Response(response) => {
                if let Some(whole) = event.shift_remove("response") {
                    *response = whole;
                }
            }
        }
    }

    fn into_whole(mut self, answer: &StreamedAnswer) -> WholeAnswer {
        let context = match &self.parts {
            Parts::Chat(chat) => chat.context(),
            Parts::Messages(_) | Parts::Response(_) => None,
        };
        let share = std::mem::take(&mut self.share);
        let mut headers = who_answers(answer.lease(), context);
        let kind = HeaderValue::from_static("application/json");
        headers.insert(header::CONTENT_TYPE, kind);
        WholeAnswer {
            status: StatusCode::OK,
            headers,
            form: answer.meter.form,
            body: share.hold(self.whole().to_string().into()),
            changes: Vec::new(),
            outcome: Outcome::Answered,
        }
    }

    fn whole(self) -> Value {
        match self.parts {
            Parts::Chat(chat) => chat.whole(),
            Parts::Messages(message) => message.whole(),
            Parts::Response(response) => response,
        }
    }
}

fn is_keepalive(event: &Map<String, Value>) -> bool {
    let kind = event.get("type").and_then(Value::as_str);
    matches!(kind, Some("ping" | "keepalive"))
}

impl ChatParts {
    fn memory(&self) -> usize {
        let choices = self.choices.values().map(|choice| {
            let calls = choice.calls.iter().map(memory_of_fields);
            let message = choice.message.as_ref().map_or(0, memory_of_fields);
            let about = memory_of_fields(&choice.about) + memory_of_fields(&choice.logprobs);
            size_of::<Choice>() + about + message + calls.sum::<usize>()
        });
        memory_of_fields(&self.about) + choices.sum::<usize>()
    }

    fn context(&self) -> Option<ContextUse> {
        let timings = Timings::deserialize(self.about.get("timings")?);
        timings.ok()?.context()
    }

    fn event(&mut self, event: Map<String, Value>) {
        for (name, value) in event {
            match value {
                Value::Array(choices) if name == "choices" => {
                    for choice in choices {
                        self.choice(choice);
                    }
                }
                Value::Null => {}
                value => {
                    self.about.insert(name, value);
                }
            }
        }
    }

    fn choice(&mut self, choice: Value) {
        let Value::Object(choice) = choice else {
            return;
        };
        let index = choice.get("index").and_then(Value::as_u64).unwrap_or(0);
        let gathered = self.choices.entry(index).or_default();
        for (name, value) in choice {
            match (name.as_str(), value) {
                ("delta", Value::Object(delta)) => gathered.delta(delta),
                ("logprobs", Value::Object(more)) => {
                    for (name, value) in more {
                        add(&mut gathered.logprobs, name, value);
                    }
                }
                ("text", text) => add(&mut gathered.about, name, text),
                (_, Value::Null) => {}
                (_, value) => {
                    gathered.about.insert(name, value);
                }
            }
        }
    }

    fn whole(mut self) -> Value {
        let is_chat = self.choices.values().any(|choice| choice.message.is_some());
        let object = if is_chat {
            "chat.completion"
        } else {
            "text_completion"
        };
        self.about.insert("object".to_owned(), object.into());
        let choices = self.choices.into_iter();
        let choices = choices.map(|(index, choice)| choice.whole(index, is_chat));
        self.about.insert("choices".to_owned(), choices.collect());
        Value::Object(self.about)
    }
}

impl Choice {
    fn delta(&mut self, delta: Map<String, Value>) {
        let message = self.message.get_or_insert_default();
        for (name, value) in delta {
            match (name.as_str(), value) {
                ("tool_calls", Value::Array(pieces)) => {
                    for piece in pieces {
                        call(&mut self.calls, &mut self.numbers, piece);
                    }
                }
                // The older form of the only call.
                ("function_call", Value::Object(piece)) => {
                    let known = message.entry(name).or_insert_with(|| json!({}));
                    if let Some(known) = known.as_object_mut() {
                        add_function(known, piece);
                    }
                }
                // Sent once, and by some servers with each event.
                ("role", role @ Value::String(_)) => {
                    message.insert(name, role);
                }
                (_, value) => add(message, name, value),
            }
        }
    }

    fn whole(self, index: u64, is_chat: bool) -> Value {
        let Self {
            mut about,
            message,
            calls,
            logprobs,
            ..
        } = self;
        about.insert("index".to_owned(), index.into());
        about.entry("finish_reason").or_insert(Value::Null);
        let logprobs = match logprobs.is_empty() {
            true => Value::Null,
            false => logprobs.into(),
        };
        about.insert("logprobs".to_owned(), logprobs);
        if is_chat {
            // Some have it beside a chat's words.
            about.shift_remove("text");
            let mut message = message.unwrap_or_default();
            message.entry("role").or_insert("assistant".into());
            message.entry("content").or_insert(Value::Null);
            if !calls.is_empty() {
                message.insert("tool_calls".to_owned(), calls.into());
            }
            about.insert("message".to_owned(), message.into());
        }
        about.into()
    }
}

/// A piece of a text or a list is put behind what there is, a text among the parts of a list as one of them; anything else takes its
/// place.
fn add(to: &mut Map<String, Value>, name: String, piece: Value) {
    let part = |text: &str| json!({"type": "text", "text": text});
    match (to.get_mut(&name), piece) {
        (_, Value::Null) => {}
        (Some(Value::String(text)), Value::String(more)) => text.push_str(&more),
        (Some(Value::Array(list)), Value::Array(mut more)) => list.append(&mut more),
        (Some(Value::Array(list)), Value::String(more)) => list.push(part(&more)),
        (Some(known @ Value::String(_)), Value::Array(more)) => {
            let first = known.as_str().filter(|text| !text.is_empty()).map(part);
            *known = first.into_iter().chain(more).collect();
        }
        (_, piece) => {
            to.insert(name, piece);
        }
    }
}

/// A function's arguments come in pieces, the rest of it once, or again and again.
fn add_function(known: &mut Map<String, Value>, mut piece: Map<String, Value>) {
    if let Some(arguments) = piece.shift_remove("arguments") {
        add(known, "arguments".to_owned(), arguments);
    }
    fill(known, piece);
}

/// A piece of a call goes behind what there is of it.
fn call(calls: &mut Vec<Map<String, Value>>, numbers: &mut Calls, piece: Value) {
    let read = ToolCall::deserialize(&piece).unwrap_or_default();
    let Value::Object(mut piece) = piece else {
        return;
    };
    let Some(number) = numbers.number(&read) else {
        return;
    };
    let Some(call) = calls.get_mut(number) else {
        calls.push(piece);
        return;
    };
    let more = piece.shift_remove("function");
    fill(call, piece);
    match (call.get_mut("function"), more) {
        (Some(Value::Object(function)), Some(Value::Object(more))) => add_function(function, more),
        (_, Some(more @ Value::Object(_))) => {
            call.insert("function".to_owned(), more);
        }
        _ => {}
    }
}

/// What there is stays.
fn fill(to: &mut Map<String, Value>, from: Map<String, Value>) {
    for (name, value) in from {
        let known = to.entry(name).or_insert(Value::Null);
        if known.is_null() {
            *known = value;
        }
    }
}

#[cfg(test)]
mod tests;
