//! The text of another program's chat as all clients read it: thoughts that a server leaves between tags are its reasoning, and calls that
//! its model writes as text are calls.

use bytes::Bytes;
use memchr::{memchr2, memmem};
use serde_json::{Map, Value, json};
use std::mem;
use tierbar_chats::{
    thinking::{UnopenedEnd, WithoutThinking, split},
    written_calls::{GrowingText, complete_calls, may_begin_call},
};
use tierbar_core::json;
use uuid::Uuid;

/// The fields that hold an answer to a form, beside `response_format`.
const FORMS: [&str; 7] = [
    "grammar",
    "json_schema",
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "structured_outputs",
];
const ABOUT: [&str; 4] = ["id", "object", "created", "model"];
const CONTENT: &str = "content";
const CALLS: &str = "tool_calls";
const REASONING: &str = "reasoning_content";
const REASON: &str = "finish_reason";

/// How the text of an answer is read, as its request has it.
#[derive(Debug, Default)]
pub(crate) struct TextRules {
    /// The functions whose calls may come as text: none where something holds the answer to a form.
    writable: Vec<Value>,
    /// How many calls an answer may have.
    most_calls: usize,
    /// The request asks for several answers.
    has_several: bool,
}

impl TextRules {
    /// `chat`: a request in OpenAI's form.
    pub(crate) fn of_request(chat: &Value) -> Self {
        let tools = chat["tools"].as_array().filter(|_| !has_form(chat));
        let is_strict = |tool: &Value| tool["function"]["strict"] == true;
        let tools = tools.filter(|tools| !tools.iter().any(is_strict));
        let tools = tools.into_iter().flatten();
        let may_be_called = |tool: &&Value| is_chosen(tool, &chat["tool_choice"]);
        Self {
            writable: tools.filter(may_be_called).cloned().collect(),
            most_calls: match chat["parallel_tool_calls"] == false {
                true => 1,
                false => usize::MAX,
            },
            has_several: chat["n"].as_u64().is_some_and(|answers| answers > 1),
        }
    }

    /// Returns what reads the text of a stream; `None` for several answers at once, which pass as they are.
    pub(crate) fn for_stream(self) -> Option<StreamedText> {
        (!self.has_several).then(|| StreamedText {
            rules: self,
            ..StreamedText::default()
        })
    }

    /// The calls that a text consists of, in OpenAI's form.
    fn calls(&self, text: &str) -> Vec<Value> {
        if self.writable.is_empty() || !may_begin_call(text, &self.writable) {
            return Vec::new();
        }
        let calls = complete_calls(text, &self.writable).into_iter();
        let calls = calls.take(self.most_calls).map(|(name, arguments)| {
            let id = format!("call_{}", Uuid::new_v4().simple());
            json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
        });
        calls.collect()
    }

    /// Reads the texts of a whole answer.
    pub(crate) fn divide_whole(&self, body: Bytes) -> Bytes {
        // Some servers escape the brackets of the tag.
        if self.writable.is_empty() && memmem::find(&body, b"think").is_none() {
            return body;
        }
        let Ok(mut answer) = json::read::<Value>(&body) else {
            return body;
        };
        let choices = answer.get_mut("choices").and_then(Value::as_array_mut);
        let choices = choices.into_iter().flatten();
        let mut changed = false;
        for choice in choices.filter_map(Value::as_object_mut) {
            changed |= self.divide_choice(choice);
        }
        match changed {
            true => answer.to_string().into(),
            false => body,
        }
    }

    fn divide_choice(&self, choice: &mut Map<String, Value>) -> bool {
        let stops = choice.get(REASON).is_some_and(|reason| reason == "stop");
        let message = choice.get_mut("message").and_then(Value::as_object_mut);
        let Some(message) = message else {
            return false;
        };
        let Some(Value::String(text)) = message.get(CONTENT) else {
            return false;
        };
        let (thought, answer) = split(text);
        let (thought, answer) = (thought.to_owned(), answer.to_owned());
        let calls = match stops && !has_calls(message) {
            true => self.calls(&answer),
            false => Vec::new(),
        };
        let changed = answer.len() != text.len() || !calls.is_empty();
        add_text(message, REASONING, &thought);
        if calls.is_empty() {
            message.insert(CONTENT.to_owned(), answer.into());
        } else {
            message.insert(CONTENT.to_owned(), Value::Null);
            message.insert(CALLS.to_owned(), calls.into());
            choice.insert(REASON.to_owned(), CALLS.into());
        }
        changed
    }
}

/// The text of a stream, as far as it is not clear what it is.
#[derive(Debug, Default)]
pub(crate) struct StreamedText {
    rules: TextRules,
    thinking: WithoutThinking,
    unopened: UnopenedEnd,
    /// What all events of the stream have, which strict clients require.
    about: Map<String, Value>,
    /// What may be a call.
    held: String,
    growing: GrowingText,
    /// What follows is the answer, unless thoughts end.
    is_clear: bool,
}

impl StreamedText {
    /// Returns whether all that follows is the answer.
    pub(crate) fn is_done(&self) -> bool {
        self.is_clear && self.unopened.is_over()
    }

    /// Returns whether an event may have text that is to be divided. `event`: JSON.
    pub(crate) fn looks_at(&self, event: &[u8]) -> bool {
        // Some servers escape brackets.
        let has_marks =
            || memchr2(b'<', b'`', event).is_some() || memmem::find(event, b"\\u00").is_some();
        !self.is_clear || self.unopened.holds() || has_marks()
    }

    /// Puts what an event brings where it belongs. Returns whether that has changed the event.
    pub(crate) fn divide(&mut self, event: &mut Map<String, Value>) -> bool {
        if self.about.is_empty() {
            let known = ABOUT.iter().filter_map(|name| event.get_key_value(*name));
            let known = known.map(|(name, value)| (name.clone(), value.clone()));
            self.about = known.collect();
        }
        let choices = event.get_mut("choices").and_then(Value::as_array_mut);
        let choice = choices.and_then(|choices| choices.first_mut());
        let Some(choice) = choice.and_then(Value::as_object_mut) else {
            return false;
        };
        let reason = choice.get(REASON).and_then(Value::as_str);
        let reason = reason.unwrap_or_default().to_owned();
        let delta = choice.entry("delta").or_insert(Value::Null);
        if delta.is_null() {
            *delta = Value::Object(Map::new());
        }
        let Some(delta) = delta.as_object_mut() else {
            return false;
        };
        let text = match delta.get_mut(CONTENT) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => mem::take(text),
            Some(plain @ (Value::Number(_) | Value::Bool(_))) => plain.to_string(),
            // Parts have kinds of their own.
            Some(parts) => return self.end_before(parts),
        };
        let has_calls = has_calls(delta);
        let is_last = !reason.is_empty() || has_calls;
        let (mut thought, answer) = self.thinking.divide(&text);
        if is_last {
            thought += &self.thinking.end_of_thought();
        }
        if !thought.is_empty() || self.thinking.is_thinking() {
            self.unopened.stop();
        }
        let (before, behind) = self.unopened.push(&answer);
        self.held += &before;
        let mut shown = String::new();
        if let Some(behind) = behind {
            // What has come so far was shown, or is now. A call may follow.
            shown = mem::replace(&mut self.held, behind);
            self.is_clear = false;
        }
        if is_last {
            self.held += &self.unopened.end();
            self.held += &self.thinking.end();
        }
        let mut calls = match reason == "stop" && !has_calls && !self.is_clear {
            true => self.rules.calls(&self.held),
            false => Vec::new(),
        };
        let tools = &self.rules.writable;
        self.is_clear = self.is_clear
            || is_last
            || (!self.held.is_empty()
                && (tools.is_empty() || !self.growing.may_begin_call(&self.held, tools)));
        if self.is_clear {
            let rest = mem::take(&mut self.held);
            if calls.is_empty() {
                shown += &rest;
            }
        }
        let changed = shown != text || !thought.is_empty() || !calls.is_empty();
        add_text(delta, REASONING, &thought);
        if calls.is_empty() {
            // What was not there stays away, and `null` stays as it is.
            let is_there = delta.get(CONTENT).is_some_and(|text| !text.is_null());
            if is_there || !shown.is_empty() {
                delta.insert(CONTENT.to_owned(), shown.into());
            }
        } else {
            for (index, call) in calls.iter_mut().enumerate() {
                call["index"] = index.into();
            }
            let words = match shown.is_empty() {
                true => Value::Null,
                false => shown.into(),
            };
            delta.insert(CONTENT.to_owned(), words);
            delta.insert(CALLS.to_owned(), calls.into());
            choice.insert(REASON.to_owned(), CALLS.into());
        }
        changed
    }

    /// Puts what is held before parts, which are the answer.
    fn end_before(&mut self, parts: &mut Value) -> bool {
        self.is_clear = true;
        self.unopened.stop();
        let text = mem::take(&mut self.held) + &self.unopened.end() + &self.thinking.end();
        let first = json!({"type": "text", "text": text});
        match parts {
            _ if text.is_empty() => return false,
            Value::Array(parts) => parts.insert(0, first),
            part => *part = json!([first, part.take()]),
        }
        true
    }

    /// Returns what is held, as an event of its own: the stream has broken off.
    pub(crate) fn into_event(mut self) -> Option<Value> {
        let mut delta = Map::new();
        add_text(&mut delta, REASONING, &self.thinking.end_of_thought());
        let text = self.held + &self.unopened.end() + &self.thinking.end();
        add_text(&mut delta, CONTENT, &text);
        let choice = json!({"index": 0, "delta": delta, "finish_reason": null});
        let mut event = self.about;
        event.insert("choices".to_owned(), json!([choice]));
        (!delta.is_empty()).then(|| event.into())
    }
}

/// Whether something holds the answer to a form. `chat`: a request in OpenAI's form.
pub(crate) fn has_form(chat: &Value) -> bool {
    let format = &chat["response_format"];
    (!format.is_null() && format["type"] != "text")
        || FORMS.iter().any(|name| !chat[*name].is_null())
}

/// Whether a request's choice leaves a function to the model. Some servers ignore that one is forced.
fn is_chosen(tool: &Value, choice: &Value) -> bool {
    match choice.as_str() {
        Some(word) => matches!(word, "auto" | "required"),
        None => choice.is_null() || choice["function"]["name"] == tool["function"]["name"],
    }
}

fn has_calls(message: &Map<String, Value>) -> bool {
    let calls = message.get(CALLS).and_then(Value::as_array);
    calls.is_some_and(|calls| !calls.is_empty())
}

/// Puts a text behind what a field has.
fn add_text(to: &mut Map<String, Value>, field: &str, more: &str) {
    match to.get_mut(field) {
        _ if more.is_empty() => {}
        Some(Value::String(text)) => text.push_str(more),
        _ => {
            to.insert(field.to_owned(), more.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: &str = r#"{"name": "look", "arguments": {"at": 1}}"#;

    fn request(more: Value) -> Value {
        let parameters = json!({"type": "object", "properties": {"at": {}}, "required": ["at"]});
        let look =
            json!({"type": "function", "function": {"name": "look", "parameters": parameters}});
        let mut request = json!({"messages": [], "tools": [look]});
        for (name, value) in more.as_object().unwrap() {
            request[name] = value.clone();
        }
        request
    }

    fn whole(request: &Value, text: &str) -> Value {
        let choice = json!({"message": {"content": text}, "finish_reason": "stop"});
        let answer = json!({"choices": [choice]}).to_string();
        let read = TextRules::of_request(request).divide_whole(answer.into());
        let mut read: Value = serde_json::from_slice(&read).unwrap();
        read["choices"][0].take()
    }

    /// What a client makes of a stream in these pieces: the thoughts, the text, the call's arguments, and why it ended.
    fn streamed(request: &Value, pieces: &[&str], reason: &str) -> [String; 4] {
        let mut text = TextRules::of_request(request).for_stream();
        let mut seen: [String; 4] = Default::default();
        let pieces = pieces.iter().map(|piece| (*piece, Value::Null));
        for (piece, reason) in pieces.chain([("", reason.into())]) {
            let mut event =
                json!({"choices": [{"delta": {"content": piece}, "finish_reason": reason}]});
            if let Some(unclear) = &mut text {
                if unclear.looks_at(event.to_string().as_bytes()) {
                    unclear.divide(event.as_object_mut().unwrap());
                }
                if unclear.is_done() {
                    text = None;
                }
            }
            let choice = &event["choices"][0];
            let delta = &choice["delta"];
            let parts = [
                &delta["reasoning_content"],
                &delta["content"],
                &delta["tool_calls"][0]["function"]["arguments"],
                &choice["finish_reason"],
            ];
            for (seen, part) in seen.iter_mut().zip(parts) {
                *seen += part.as_str().unwrap_or_default();
            }
        }
        seen
    }

    #[test]
    fn a_text_is_divided_whole_and_cut_anywhere() {
        let thinks = format!("<think>\nI look.</think>\n\n{CALL}");
        let lacks = CALL.replace("\"at\": 1", "");
        for (answer, thought, text, arguments) in [
            ("Good day.", "", "Good day.", ""),
            ("<think>Hm.</think>\nNo <think>.", "Hm.", "No <think>.", ""),
            ("<think>Hm", "Hm", "", ""),
            (CALL, "", "", "{\"at\":1}"),
            (thinks.as_str(), "I look.", "", "{\"at\":1}"),
            // A client's function may not look for it.
            (lacks.as_str(), "", lacks.as_str(), ""),
            ("{\"city\": \"Oslo\"}", "", "{\"city\": \"Oslo\"}", ""),
        ] {
            let reason = if arguments.is_empty() {
                "stop"
            } else {
                "tool_calls"
            };
            let read = whole(&request(json!({})), answer);
            let message = &read["message"];
            let parts = [
                &message["reasoning_content"],
                &message["content"],
                &message["tool_calls"][0]["function"]["arguments"],
                &read["finish_reason"],
            ];
            let parts = parts.map(|part| part.as_str().unwrap_or_default());
            assert_eq!(parts, [thought, text, arguments, reason], "{answer}");
            for size in 1..=answer.len() {
                let pieces = answer.as_bytes().chunks(size);
                let pieces: Vec<_> = pieces.map(|piece| str::from_utf8(piece).unwrap()).collect();
                let [seen, rest @ ..] = streamed(&request(json!({})), &pieces, "stop");
                assert_eq!(seen.trim(), thought, "{size}: {answer}");
                assert_eq!(rest, [text, arguments, reason], "{size}: {answer}");
            }
        }
    }

    #[test]
    fn an_end_tag_alone_is_not_shown_in_a_stream() {
        let call = format!("I look.</think>\n\n{CALL}");
        let rains = "I look.\n</think>\n\nIt rains.";
        for (answer, text, arguments) in [
            (rains, "I look.\n\n\nIt rains.", ""),
            (call.as_str(), "I look.", "{\"at\":1}"),
            ("I look.</think>", "I look.", ""),
            ("</think>\nIt rains.", "\nIt rains.", ""),
            (
                "Write </think>, or `</think>`.",
                "Write </think>, or `</think>`.",
                "",
            ),
            ("It rains </th", "It rains </th", ""),
        ] {
            let reason = if arguments.is_empty() {
                "stop"
            } else {
                "tool_calls"
            };
            for size in 1..=answer.len() {
                let pieces = answer.as_bytes().chunks(size);
                let pieces: Vec<_> = pieces.map(|piece| str::from_utf8(piece).unwrap()).collect();
                let [thought, rest @ ..] = streamed(&request(json!({})), &pieces, "stop");
                assert_eq!(thought, "", "{size}: {answer}");
                assert_eq!(rest, [text, arguments, reason], "{size}: {answer}");
            }
        }
    }

    #[test]
    fn a_long_call_is_a_call_in_a_stream_too() {
        let path = "天".repeat(70_000);
        let answer = CALL.replace("1}", &format!("\"{path}\"}}"));
        let letters: Vec<char> = answer.chars().collect();
        let pieces: Vec<String> = letters
            .chunks(1_000)
            .map(|piece| piece.iter().collect())
            .collect();
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let [_, text, arguments, reason] = streamed(&request(json!({})), &pieces, "stop");
        assert_eq!((text.as_str(), reason.as_str()), ("", "tool_calls"));
        assert_eq!(arguments, json!({"at": path}).to_string());
    }

    #[test]
    fn a_form_or_a_choice_may_keep_a_call_text() {
        let strict = json!([{"type": "function", "function": {"name": "look", "strict": true}}]);
        for more in [
            json!({"response_format": {"type": "json_object"}}),
            json!({"grammar": "root ::= \"a\""}),
            json!({"tool_choice": "none"}),
            json!({"tool_choice": {"type": "function", "function": {"name": "store"}}}),
            json!({"tools": strict}),
            json!({"tools": null}),
        ] {
            let request = request(more);
            assert_eq!(
                whole(&request, CALL)["message"]["content"],
                CALL,
                "{request}"
            );
            let [_, text, ..] = streamed(&request, &[&CALL[..9], &CALL[9..]], "stop");
            assert_eq!(text, CALL, "{request}");
        }
        let named = json!({"type": "function", "function": {"name": "look"}});
        for forced in [json!("required"), named] {
            let request = request(json!({"tool_choice": forced}));
            let read = whole(&request, CALL);
            assert_eq!(read["finish_reason"], "tool_calls", "{request}");
        }
        let cut = streamed(&request(json!({})), &[CALL], "length");
        assert_eq!(cut[1], CALL);
        let two = format!("[{CALL}, {CALL}]");
        for (parallel, calls) in [(json!(null), 2), (json!(false), 1)] {
            let request = request(json!({"parallel_tool_calls": parallel}));
            let read = whole(&request, &two);
            assert_eq!(
                read["message"]["tool_calls"].as_array().unwrap().len(),
                calls
            );
        }
    }

    #[test]
    fn what_is_held_comes_before_what_is_no_text() {
        let delta = |delta: Value| {
            let mut text = TextRules::of_request(&request(json!({})))
                .for_stream()
                .unwrap();
            let mut begins = json!({"choices": [{"delta": {"content": &CALL[..9]}}]});
            assert!(text.divide(begins.as_object_mut().unwrap()));
            assert_eq!(begins["choices"][0]["delta"]["content"], "");
            let mut event = json!({"choices": [{"delta": delta}]});
            assert!(text.divide(event.as_object_mut().unwrap()));
            assert!(text.is_clear && text.into_event().is_none());
            event["choices"][0]["delta"].take()
        };
        let calls = json!([{"index": 0, "function": {"name": "look"}}]);
        let beside = delta(json!({"tool_calls": calls}));
        assert_eq!(beside, json!({"tool_calls": calls, "content": &CALL[..9]}));
        let parts = delta(json!({"content": [{"type": "text", "text": "a"}]}));
        assert_eq!(parts["content"][0]["text"], &CALL[..9]);
        assert_eq!(parts["content"][1]["text"], "a");
    }

    #[test]
    fn what_is_held_comes_with_what_all_events_have() {
        let mut text = TextRules::of_request(&request(json!({})))
            .for_stream()
            .unwrap();
        let about =
            json!({"id": "a", "object": "chat.completion.chunk", "created": 7, "model": "m"});
        let mut event = about.clone();
        event["choices"] = json!([{"delta": {"content": &CALL[..9]}}]);
        text.divide(event.as_object_mut().unwrap());
        let held = text.into_event().unwrap();
        for name in ABOUT {
            assert_eq!(held[name], about[name], "{name}");
        }
        assert_eq!(held["choices"][0]["delta"]["content"], &CALL[..9]);
    }

    #[test]
    fn what_a_call_has_in_place_of_a_text_stays() {
        for content in [json!(null), json!("")] {
            let delta = json!({"content": content, "tool_calls": [{"index": 0}]});
            let mut event = json!({"choices": [{"delta": delta}]});
            let mut text = TextRules::of_request(&request(json!({})))
                .for_stream()
                .unwrap();
            assert!(!text.divide(event.as_object_mut().unwrap()));
            assert_eq!(event["choices"][0]["delta"], delta);
        }
    }

    #[test]
    fn several_answers_at_once_stream_as_they_are() {
        let several = request(json!({"n": 2}));
        let seen = streamed(&several, &["<think>Hm.</think>", CALL], "stop");
        assert_eq!(seen[1], format!("<think>Hm.</think>{CALL}"));
    }
}
