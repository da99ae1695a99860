//! A conversation as Anthropic's messages: the user's and the assistant's in turn, in blocks.

use super::document::File;
use crate::{body, files::read_data_uri, wire::ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tierbar_core::{Error, bad_request, config::is_url, json::values_memory};

#[derive(Debug, Deserialize)]
pub(super) struct Message {
    role: String,
    content: Option<Content>,
    tool_calls: Option<Vec<ToolCall>>,
    tool_call_id: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Value>),
}

/// Kinds that are not named here are not known.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part {
    Text { text: String },
    Refusal { refusal: String },
    ImageUrl { image_url: Image },
    File { file: File },
}

/// The field of a part, a tool or a block that ends a part of the prompt to be cached. OpenAI's clients send it as Anthropic's do.
pub(super) const CACHE: &str = "cache_control";

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Image {
    Named { url: String },
    Plain(String),
}

/// What a conversation is once it has been read.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    /// Texts as blocks.
    system: Vec<Value>,
    /// The functions that were called in it.
    pub(super) called: Vec<String>,
    turns: Vec<(&'static str, Vec<Value>)>,
    /// The memory of the arguments of all calls, which come as text.
    arguments: usize,
}

const USER: &str = "user";
const ASSISTANT: &str = "assistant";
const RESULT: &str = "tool_result";

impl Conversation {
    pub(super) fn read(messages: Vec<Message>) -> Result<Self, Error> {
        let mut conversation = Self::default();
        for message in messages {
            conversation.add(message)?;
        }
        conversation.set_in_order();
        Ok(conversation)
    }

    /// Adds to the system message.
    pub(super) fn instruct(&mut self, text: &str) {
        self.system.push(json!({"type": "text", "text": text}));
    }

    /// Takes the system message: a text, or blocks where parts of it are to be cached.
    pub(super) fn take_system(&mut self) -> Option<Value> {
        let system = std::mem::take(&mut self.system);
        if system.iter().any(|block| block.get(CACHE).is_some()) {
            return Some(system.into());
        }
        let texts: Vec<_> = system
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect();
        let text = texts.join("\n\n");
        (!text.is_empty()).then(|| text.into())
    }

    /// Whether the answer goes on from the result of a tool.
    pub(super) fn is_after_tool(&self) -> bool {
        let last = self.turns.last().and_then(|(_, blocks)| blocks.first());
        last.is_some_and(|block| block["type"] == RESULT)
    }

    pub(super) fn into_messages(self) -> Vec<Value> {
        self.turns
            .into_iter()
            .map(|(role, blocks)| json!({"role": role, "content": blocks}))
            .collect()
    }

    fn add(&mut self, message: Message) -> Result<(), Error> {
        let blocks = blocks(message.content)?;
        match message.role.as_str() {
            "system" | "developer" => {
                if blocks.iter().any(|block| !block["text"].is_string()) {
                    return Err(bad_request("a system message can contain text only"));
                }
                self.system.extend(blocks);
            }
            "assistant" => {
                self.append_to(ASSISTANT, blocks);
                for call in message.tool_calls.unwrap_or_default() {
                    let arguments = call.function.arguments.as_deref().unwrap_or_default();
                    self.arguments += values_memory(arguments.as_bytes());
                    body::check_values(self.arguments)?;
                    let (name, used) = tool_use(call)?;
                    self.called.push(name);
                    self.append_to(ASSISTANT, vec![used]);
                }
            }
            "tool" => {
                let id = call_id(message.tool_call_id.as_deref());
                let mut result = json!({"type": RESULT, "tool_use_id": id});
                if !blocks.is_empty() {
                    result["content"] = blocks.into();
                }
                self.append_to(USER, vec![result]);
            }
            "user" => self.append_to(USER, blocks),
            role => {
                return Err(bad_request(format!(
                    "a message's role is \"{role:.100}\" and must be system, developer, user, assistant or tool"
                )));
            }
        }
        Ok(())
    }

    /// Appends to the last message if it has the same role.
    fn append_to(&mut self, role: &'static str, mut blocks: Vec<Value>) {
        match self.turns.last_mut() {
            Some((last, said)) if *last == role => said.append(&mut blocks),
            _ if blocks.is_empty() => {}
            _ => self.turns.push((role, blocks)),
        }
    }

    fn set_in_order(&mut self) {
        // The user has the first word, be it one that says nothing.
        if self.turns.first().is_none_or(|(role, _)| *role != USER) {
            let nothing = json!({"type": "text", "text": "."});
            self.turns.insert(0, (USER, vec![nothing]));
        }
        // Results come before what is said to them.
        for (_, blocks) in &mut self.turns {
            if blocks.iter().any(|block| block["type"] == RESULT) {
                blocks.sort_by_key(|block| block["type"] != RESULT);
            }
        }
        // An answer that has been begun must not end in a space.
        if let Some((ASSISTANT, blocks)) = self.turns.last_mut()
            && let Some(Value::String(text)) =
                blocks.last_mut().and_then(|block| block.get_mut("text"))
        {
            text.truncate(text.trim_end().len());
        }
    }
}

/// Without texts that say nothing, which are refused.
fn blocks(content: Option<Content>) -> Result<Vec<Value>, Error> {
    let parts = match content {
        None => return Ok(Vec::new()),
        Some(Content::Text(text)) => return Ok(block(Part::Text { text })?.into_iter().collect()),
        Some(Content::Parts(parts)) => parts,
    };
    let mut blocks = Vec::new();
    for mut part in parts {
        let cache = part
            .as_object_mut()
            .and_then(|part| part.shift_remove(CACHE));
        let part = serde_json::from_value(part).map_err(|error| {
            bad_request(format!("a message part is not valid: {error}"))
                .hint("send only text, images and files to a tier with Anthropic's dialect")
        })?;
        let mut block = block(part)?;
        if let (Some(block), Some(cache)) = (&mut block, cache) {
            block[CACHE] = cache;
        }
        blocks.extend(block);
    }
    Ok(blocks)
}

fn block(part: Part) -> Result<Option<Value>, Error> {
    Ok(match part {
        Part::Text { text } | Part::Refusal { refusal: text } => {
            (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}))
        }
        Part::ImageUrl { image_url } => {
            let (Image::Named { url } | Image::Plain(url)) = image_url;
            Some(json!({"type": "image", "source": source(&url)?}))
        }
        Part::File { file } => Some(file.into_block()?),
    })
}

fn source(url: &str) -> Result<Value, Error> {
    if url.starts_with("data:") {
        let (kind, data) =
            read_data_uri(url).ok_or_else(|| bad_request("an image's data is not base64"))?;
        return Ok(json!({"type": "base64", "media_type": kind, "data": data}));
    }
    if is_url(url) {
        return Ok(json!({"type": "url", "url": url}));
    }
    Err(bad_request("an image must be a data: URI or a URL"))
}

/// A call as a block, and the function's name.
fn tool_use(call: ToolCall) -> Result<(String, Value), Error> {
    let name = call
        .function
        .name
        .ok_or_else(|| bad_request("a call in `tool_calls` names no function"))?;
    let arguments = call.function.arguments.unwrap_or_default();
    // A model may have written what is no JSON: it reads it as it stands.
    let input = match serde_json::from_str(&arguments) {
        Ok(input @ Value::Object(_)) => input,
        _ if arguments.trim().is_empty() => Map::new().into(),
        _ => json!({"arguments": arguments}),
    };
    let id = call_id(call.id.as_deref());
    let used = json!({"type": "tool_use", "id": id, "name": name, "input": input});
    Ok((name, used))
}

/// The same for a call and its result, in the letters that are taken.
fn call_id(id: Option<&str>) -> String {
    let taken = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    match id {
        Some(id) if !id.is_empty() => id.replace(|letter| !taken(letter), "_"),
        _ => "call".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_core::Code;

    fn read(messages: Value) -> Result<Conversation, Error> {
        Conversation::read(serde_json::from_value(messages).unwrap())
    }

    fn text_block(text: &str) -> Value {
        json!({"type": "text", "text": text})
    }

    #[test]
    fn roles_alternate_and_results_come_first() {
        let call = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "look", "arguments": arguments}});
        let conversation = read(json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "What is there?"},
            {"role": "user", "content": [{"type": "text", "text": "And here?"}]},
            {"role": "assistant", "content": "", "tool_calls": [call("call_1", "{\"at\":1}"), call("look:2", "")]},
            {"role": "tool", "tool_call_id": "call_1", "content": "a hat"},
            {"role": "developer", "content": "Be kind."},
            {"role": "user", "content": "Well?"},
            {"role": "tool", "tool_call_id": "look:2", "content": ""},
        ]))
        .unwrap();
        let system = ["Be brief.", "Be kind."].map(text_block);
        assert_eq!(conversation.system, system);
        assert_eq!(conversation.called, ["look", "look"]);
        assert!(conversation.is_after_tool());
        let used = |id, input: Value| json!({"type": "tool_use", "id": id, "name": "look", "input": input});
        assert_eq!(
            conversation.into_messages(),
            [
                json!({"role": "user", "content": [text_block("What is there?"), text_block("And here?")]}),
                json!({"role": "assistant", "content": [used("call_1", json!({"at": 1})), used("look_2", json!({}))]}),
                json!({"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "call_1", "content": [text_block("a hat")]},
                    {"type": "tool_result", "tool_use_id": "look_2"},
                    text_block("Well?"),
                ]}),
            ]
        );
    }

    #[test]
    fn a_conversation_starts_with_the_user_and_ends_without_space() {
        let greeted = read(json!([{"role": "assistant", "content": "Hello \n"}])).unwrap();
        assert!(!greeted.is_after_tool());
        let said = [("user", "."), ("assistant", "Hello")]
            .map(|(role, text)| json!({"role": role, "content": [text_block(text)]}));
        assert_eq!(greeted.into_messages(), said);
        let silent = read(json!([{"role": "user", "content": " "}, {"role": "user"}])).unwrap();
        assert_eq!(silent.into_messages().len(), 1);
    }

    #[test]
    fn cache_breakpoints_stay_at_texts_and_files() {
        let part = |text: &str| json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral"}});
        let mut conversation = read(json!([
            {"role": "system", "content": [text_block("Be brief."), part("Long rules.")]},
            {"role": "user", "content": [part("Hi"), {
                "type": "file", "file": {"filename": "a.pdf", "file_data": "JVBERi0="}, "cache_control": {"type": "ephemeral"},
            }]},
        ]))
        .unwrap();
        let system = conversation.take_system();
        assert_eq!(
            system,
            Some(json!([text_block("Be brief."), part("Long rules.")]))
        );
        assert_eq!(
            conversation.into_messages()[0]["content"],
            json!([part("Hi"), {
                "type": "document", "title": "a.pdf", "cache_control": {"type": "ephemeral"},
                "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
            }])
        );
    }

    #[test]
    fn images_are_sent_or_named() {
        let image = |url: &str| {
            read(json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]))
                .map(|conversation| conversation.into_messages()[0]["content"][0]["source"].clone())
        };
        assert_eq!(
            image("data:image/png;base64,AAAA").unwrap(),
            json!({"type": "base64", "media_type": "image/png", "data": "AAAA"})
        );
        let named = json!({"type": "url", "url": "https://a.b/c.png"});
        assert_eq!(image("https://a.b/c.png").unwrap(), named);
        for wrong in ["data:image/png,AAAA", "file:///etc/passwd"] {
            assert_eq!(image(wrong).unwrap_err().code, Code::BadRequest);
        }
    }

    #[test]
    fn unsupported_content_is_refused_by_name() {
        for (message, says) in [
            (json!({"role": "narrator", "content": "x"}), "\"narrator\""),
            (
                json!({"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}),
                "input_audio",
            ),
            (
                json!({"role": "system", "content": [{"type": "image_url", "image_url": "https://a"}]}),
                "text only",
            ),
            (
                json!({"role": "assistant", "tool_calls": [{"function": {}}]}),
                "names no function",
            ),
        ] {
            let error = read(json!([message])).unwrap_err();
            assert_eq!(error.code, Code::BadRequest);
            assert!(error.message.contains(says), "{error}");
        }
    }

    #[test]
    fn arguments_of_calls_are_bounded_once_parsed() {
        let calls = |arguments: &str| {
            let function = json!({"name": "look", "arguments": arguments});
            let call = json!({"id": "a", "type": "function", "function": function});
            let messages = json!([{"role": "assistant", "tool_calls": [call.clone(), call]}]);
            Conversation::read(serde_json::from_value(messages).unwrap())
        };
        assert!(calls(&"x".repeat(1 << 20)).is_ok());
        let nested = format!("{{\"a\":[{}0]}}", "[0],".repeat(80_000));
        let error = calls(&nested).unwrap_err();
        assert_eq!(error.code, Code::PayloadTooLarge, "{error}");
    }
}
