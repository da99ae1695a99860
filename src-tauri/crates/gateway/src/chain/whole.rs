//! An answer that is to come whole, from the events of one that streams: only a stream tells when somebody has begun to answer, and a
//! whole answer may take as long as it likes from there on.

use crate::openai::{
    CHAT,
    calls::Calls,
    relay::{attempt::Whole, streaming::Answer, who_answers},
    wire::{self, ToolCall},
};
use axum::http::{HeaderValue, StatusCode, header};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, time::Duration};
use tierbar_core::{Code, Error, chain::Outcome};
use tokio::time::{Instant, timeout_at};

/// As the relay's own bound on answers.
const LIMIT: usize = 64 << 20;

/// The best of several is known at the end of all.
pub(super) fn can_stream(request: &Map<String, Value>) -> bool {
    request
        .get("best_of")
        .and_then(Value::as_u64)
        .is_none_or(|of| of <= 1)
}

pub(super) fn streams(request: &mut Map<String, Value>) {
    request.insert("stream".to_owned(), true.into());
    request.insert("stream_options".to_owned(), json!({"include_usage": true}));
}

/// # Errors
/// If it breaks off, nothing comes for so long, or it is too long.
pub(super) async fn gathered(
    answer: &mut Answer,
    path: &str,
    silence: Duration,
) -> Result<Whole, Error> {
    let (mut gathering, mut length) = (Gathering::default(), 0);
    let mut until = Instant::now() + silence;
    loop {
        let bytes = match timeout_at(until, answer.next()).await {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(None)) => break,
            Ok(Err(Some(error))) => return Err(error),
            Err(_) => {
                let message = format!("nothing of the answer came for {} s", silence.as_secs());
                return Err(Error::new(Code::WorkerTimeout, message));
            }
        };
        length += bytes.len();
        if length > LIMIT {
            let message = format!("the answer is longer than {} MiB", LIMIT >> 20);
            return Err(Error::new(Code::Unreachable, message));
        }
        // That it still waits is no piece of an answer.
        if gathering.read(&bytes)? {
            until = Instant::now() + silence;
        }
        // Some keep the connection open behind it.
        if answer.is_over() {
            answer.ends(None);
            break;
        }
    }
    let lease = answer.lease();
    let mut headers = who_answers(lease.tier(), Some(lease.model()));
    let kind = HeaderValue::from_static("application/json");
    headers.insert(header::CONTENT_TYPE, kind);
    Ok(Whole {
        status: StatusCode::OK,
        headers,
        body: gathering.whole(path).to_string().into_bytes(),
        outcome: Outcome::Answered,
    })
}

#[derive(Debug, Default)]
struct Gathering {
    /// What the events say of the answer, the last word counts.
    about: Map<String, Value>,
    choices: BTreeMap<u64, Map<String, Value>>,
    /// Of each choice.
    calls: BTreeMap<u64, Calls>,
    /// A line whose end has not come.
    partial: Vec<u8>,
}

impl Gathering {
    /// Whether there is more in it than comments.
    fn read(&mut self, bytes: &[u8]) -> Result<bool, Error> {
        self.partial.extend_from_slice(bytes);
        let end = self.partial.iter().rposition(|&byte| byte == b'\n');
        let rest = self.partial.split_off(end.map_or(0, |end| end + 1));
        let mut tells = !rest.is_empty();
        for line in std::mem::replace(&mut self.partial, rest).split(|&byte| byte == b'\n') {
            tells |= !line.trim_ascii().is_empty() && !line.starts_with(b":");
            if let Some(data) = line.strip_prefix(b"data:") {
                self.event(data.trim_ascii())?;
            }
        }
        Ok(tells)
    }

    fn event(&mut self, data: &[u8]) -> Result<(), Error> {
        let Ok(Value::Object(event)) = serde_json::from_slice(data) else {
            return Ok(());
        };
        if event.get("error").is_some_and(|error| !error.is_null()) {
            return Err(wire::error(StatusCode::OK, data));
        }
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
        Ok(())
    }

    fn choice(&mut self, choice: Value) {
        let Value::Object(choice) = choice else {
            return;
        };
        let index = choice.get("index").and_then(Value::as_u64).unwrap_or(0);
        let gathered = self.choices.entry(index).or_default();
        for (name, value) in choice {
            match (name.as_str(), value) {
                ("index", _) => {}
                ("delta", Value::Object(delta)) => {
                    let message = gathered.entry("message").or_insert_with(|| json!({}));
                    if let Value::Object(message) = message {
                        for (name, value) in delta {
                            match value {
                                Value::Array(pieces) if name == "tool_calls" => {
                                    let list = message.entry(name).or_insert_with(|| json!([]));
                                    let Value::Array(list) = list else {
                                        continue;
                                    };
                                    let calls = self.calls.entry(index).or_default();
                                    pieces
                                        .into_iter()
                                        .for_each(|piece| call(list, calls, piece));
                                }
                                value => add(message, name, value),
                            }
                        }
                    }
                }
                // Lists, of which each event brings a piece.
                ("logprobs", Value::Object(more)) => {
                    let told = gathered.entry(name).or_insert_with(|| json!({}));
                    if let Value::Object(told) = told {
                        for (name, value) in more {
                            add(told, name, value);
                        }
                    }
                }
                ("text", text) => add(gathered, name, text),
                (_, Value::Null) => {
                    gathered.entry(name).or_insert(Value::Null);
                }
                (_, value) => {
                    gathered.insert(name, value);
                }
            }
        }
    }

    fn whole(mut self, path: &str) -> Value {
        let is_chat = path == CHAT;
        let object = if is_chat {
            "chat.completion"
        } else {
            "text_completion"
        };
        self.about.insert("object".to_owned(), object.into());
        let choices = self.choices.into_iter().map(|(index, mut choice)| {
            choice.insert("index".to_owned(), index.into());
            choice.entry("finish_reason").or_insert(Value::Null);
            if is_chat {
                let message = choice.entry("message").or_insert_with(|| json!({}));
                if let Value::Object(message) = message {
                    message.entry("role").or_insert("assistant".into());
                    message.entry("content").or_insert(Value::Null);
                }
            }
            Value::Object(choice)
        });
        self.about.insert("choices".to_owned(), choices.collect());
        Value::Object(self.about)
    }
}

/// A piece of a text or a list is put behind what there is; anything else takes its place.
fn add(to: &mut Map<String, Value>, name: String, piece: Value) {
    // Told once, and by some with each event.
    if name == "role" {
        to.insert(name, piece);
        return;
    }
    match (to.get_mut(&name), piece) {
        (Some(Value::String(text)), Value::String(more)) => text.push_str(&more),
        (Some(Value::Array(list)), Value::Array(mut more)) => list.append(&mut more),
        (Some(_), Value::Null) => {}
        (_, piece) => {
            to.insert(name, piece);
        }
    }
}

/// A piece of a call goes behind what there is of it.
fn call(list: &mut Vec<Value>, calls: &mut Calls, mut piece: Value) {
    let read = ToolCall::deserialize(&piece).unwrap_or_default();
    let Some(number) = calls.number(&read) else {
        return;
    };
    let Some(call) = list.get_mut(number) else {
        list.push(piece);
        return;
    };
    let more = piece["function"]["arguments"].take();
    if let (Some(more), Some(function)) = (more.as_str(), call["function"].as_object_mut()) {
        let told = function.get("arguments").and_then(Value::as_str);
        let told = format!("{}{more}", told.unwrap_or_default());
        function.insert("arguments".to_owned(), told.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(path: &str, events: &[Value]) -> Value {
        let mut gathering = Gathering::default();
        for event in events {
            gathering.event(event.to_string().as_bytes()).unwrap();
        }
        gathering.event(b"[DONE]").unwrap();
        gathering.whole(path)
    }

    #[test]
    fn pieces_of_text_thoughts_calls_and_figures_are_put_together() {
        let delta = |delta: Value| json!({"id": "1", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
        let call = |index: u64, more: Value| {
            let mut call = json!({"index": index});
            call.as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            delta(json!({"tool_calls": [call]}))
        };
        let begins = |id: &str| json!({"id": id, "type": "function", "function": {"name": id, "arguments": ""}});
        let goes_on = |text: &str| json!({"function": {"arguments": text}});
        let whole = gathered(
            CHAT,
            &[
                delta(json!({"role": "assistant", "content": ""})),
                delta(json!({"reasoning_content": "I "})),
                delta(json!({"reasoning_content": "think"})),
                delta(json!({"content": "Hel"})),
                delta(json!({"role": "assistant", "content": "lo"})),
                call(0, begins("a")),
                call(1, begins("b")),
                call(0, goes_on("{\"x\":")),
                call(1, goes_on("{}")),
                call(0, goes_on("1}")),
                json!({"id": "1", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls", "stop_reason": "x"}]}),
                json!({"id": "1", "choices": [], "usage": {"total_tokens": 9}, "timings": {"predicted_n": 3}}),
            ],
        );
        let calls = json!([
            {"index": 0, "id": "a", "type": "function", "function": {"name": "a", "arguments": "{\"x\":1}"}},
            {"index": 1, "id": "b", "type": "function", "function": {"name": "b", "arguments": "{}"}},
        ]);
        let message = json!({"role": "assistant", "content": "Hello", "reasoning_content": "I think", "tool_calls": calls});
        assert_eq!(
            whole,
            json!({
                "id": "1", "object": "chat.completion",
                "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls", "stop_reason": "x"}],
                "usage": {"total_tokens": 9}, "timings": {"predicted_n": 3},
            })
        );
    }

    #[test]
    fn calls_that_nobody_numbers_are_told_apart_by_their_ids() {
        let call = |id: &str| json!({"id": id, "function": {"name": "look", "arguments": "{}"}});
        let delta = |call: Value| json!({"choices": [{"delta": {"tool_calls": [call]}}]});
        let whole = gathered(CHAT, &[delta(call("a")), delta(call("b"))]);
        let calls = &whole["choices"][0]["message"]["tool_calls"];
        assert_eq!(*calls, json!([call("a"), call("b")]));
    }

    #[test]
    fn several_answers_and_their_probabilities_are_kept_apart() {
        let piece = |index: u64, text: &str| json!({"choices": [{"index": index, "text": text, "logprobs": {"tokens": [text]}}]});
        let whole = gathered(
            "/v1/completions",
            &[piece(1, "b"), piece(0, "a"), piece(1, "c")],
        );
        let choice = |index: u64, text: &str, tokens: Value| json!({"text": text, "logprobs": {"tokens": tokens}, "index": index, "finish_reason": null});
        assert_eq!(
            whole["choices"],
            json!([
                choice(0, "a", json!(["a"])),
                choice(1, "bc", json!(["b", "c"]))
            ])
        );
        assert_eq!(whole["object"], "text_completion");
    }

    #[test]
    fn comments_take_nothing_away_wherever_they_stand_and_however_they_come() {
        let said = |text: &str| {
            format!(
                "data: {}\n\n",
                json!({"choices": [{"delta": {"content": text}}]})
            )
        };
        let stream = [
            ": PROCESSING\n\n",
            &said("one "),
            &said("two "),
            ": still there\r\n\r\n",
            &said("three "),
            "event: ping\ndata: {\"type\": \"ping\"}\n\n",
            &said("four"),
            ":\n\ndata: [DONE]\n\n",
        ]
        .concat();
        for size in 1..=stream.len() {
            let mut gathering = Gathering::default();
            for piece in stream.as_bytes().chunks(size) {
                gathering.read(piece).unwrap();
            }
            let whole = gathering.whole(CHAT);
            assert_eq!(
                whole["choices"][0]["message"]["content"],
                "one two three four"
            );
        }
        let mut gathering = Gathering::default();
        assert!(!gathering.read(b": waiting\n\n").unwrap());
        assert!(gathering.read(b"data: {}\n\n").unwrap());
    }

    #[test]
    fn an_error_within_is_told() {
        let mut gathering = Gathering::default();
        let error = json!({"error": {"message": "gone"}}).to_string();
        assert_eq!(
            gathering.event(error.as_bytes()).unwrap_err().message,
            "gone"
        );
    }
}
