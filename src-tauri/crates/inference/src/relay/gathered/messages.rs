//! A whole message of Anthropic's from its events, in the way of its own packages. Pieces of kinds that are not known are put together
//! as texts and lists are.

use super::add;
use serde_json::{Map, Value};
use tierbar_core::json::{self, memory_of_fields};

/// No message has so many blocks.
const MOST_BLOCKS: usize = 1 << 16;

#[derive(Debug, Default)]
pub(super) struct MessageParts {
    message: Map<String, Value>,
    blocks: Vec<Block>,
}

#[derive(Debug, Default)]
struct Block {
    content: Map<String, Value>,
    /// The JSON of its input, as far as it came in pieces.
    input: String,
}

impl MessageParts {
    pub(super) fn event(&mut self, mut event: Map<String, Value>) {
        let kind = event
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        match kind {
            "message_start" => {
                if let Some(Value::Object(message)) = event.shift_remove("message") {
                    self.message = message;
                }
            }
            "content_block_start" => {
                let content = event.shift_remove("content_block");
                if let (Some(Value::Object(content)), Some(block)) = (content, self.block(&event)) {
                    block.content = content;
                }
            }
            "content_block_delta" => {
                let delta = event.shift_remove("delta");
                if let (Some(Value::Object(delta)), Some(block)) = (delta, self.block(&event)) {
                    block.add(delta);
                }
            }
            "message_delta" => {
                for (name, value) in event {
                    match (name.as_str(), value) {
                        ("type", _) => {}
                        ("delta", Value::Object(delta)) => self.message.extend(delta),
                        ("usage", Value::Object(usage)) => self.add_usage(usage),
                        (_, value) => {
                            self.message.insert(name, value);
                        }
                    }
                }
            }
            _ => {}
        }
    }

    fn block(&mut self, event: &Map<String, Value>) -> Option<&mut Block> {
        let index = event.get("index").and_then(Value::as_u64).unwrap_or(0);
        let index = usize::try_from(index)
            .ok()
            .filter(|index| *index < MOST_BLOCKS)?;
        if index >= self.blocks.len() {
            self.blocks.resize_with(index + 1, Block::default);
        }
        self.blocks.get_mut(index)
    }

    pub(super) fn memory(&self) -> usize {
        let blocks = self.blocks.iter().map(|block| {
            size_of::<Block>() + memory_of_fields(&block.content) + block.input.capacity()
        });
        memory_of_fields(&self.message) + blocks.sum::<usize>()
    }

    /// Its figures are those of the whole message. What is left out stays.
    fn add_usage(&mut self, more: Map<String, Value>) {
        let usage = self.message.entry("usage").or_insert(Value::Null);
        match usage {
            Value::Object(usage) => {
                usage.extend(more.into_iter().filter(|(_, value)| !value.is_null()));
            }
            usage => *usage = more.into(),
        }
    }

    pub(super) fn whole(self) -> Value {
        let blocks = self.blocks.into_iter().map(Block::whole);
        let content = blocks.filter(|block| !block.is_empty()).map(Value::Object);
        let mut message = self.message;
        message.insert("content".to_owned(), content.collect());
        message.into()
    }
}

impl Block {
    fn add(&mut self, delta: Map<String, Value>) {
        for (name, value) in delta {
            match (name.as_str(), value) {
                ("type", _) => {}
                ("partial_json", Value::String(piece)) => self.input += &piece,
                ("citation", citation) => {
                    let citations = Value::Array(vec![citation]);
                    add(&mut self.content, "citations".to_owned(), citations);
                }
                (_, value) => add(&mut self.content, name, value),
            }
        }
    }

    fn whole(self) -> Map<String, Value> {
        let mut content = self.content;
        if !self.input.is_empty() {
            // A model may have been cut within it.
            let input = json::read(self.input.as_bytes()).unwrap_or(Value::String(self.input));
            content.insert("input".to_owned(), input);
        }
        content
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::relay::unstreamed;
    use serde_json::json;

    #[test]
    fn a_message_has_all_that_its_events_had() {
        let block = |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
        let delta = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
        let events = [
            json!({"type": "message_start", "message": {"id": "msg_1", "content": [], "stop_reason": null, "new": 1,
                "usage": {"input_tokens": 3, "cache_creation_input_tokens": 11, "output_tokens": 1, "service_tier": "standard"}}}),
            json!({"type": "ping"}),
            block(
                0,
                json!({"type": "thinking", "thinking": "", "signature": ""}),
            ),
            delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
            delta(0, json!({"type": "signature_delta", "signature": "c2ln"})),
            block(1, json!({"type": "text", "text": ""})),
            delta(1, json!({"type": "text_delta", "text": "I "})),
            delta(1, json!({"type": "text_delta", "text": "look."})),
            delta(
                1,
                json!({"type": "citations_delta", "citation": {"title": "a"}}),
            ),
            block(
                2,
                json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}),
            ),
            delta(
                2,
                json!({"type": "input_json_delta", "partial_json": "{\"q\""}),
            ),
            delta(
                2,
                json!({"type": "input_json_delta", "partial_json": ":1}"}),
            ),
            block(3, json!({"type": "not_yet_known", "said": "a"})),
            delta(3, json!({"type": "not_yet_known_delta", "said": "b"})),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "container": {"id": "c"}}, "usage": {"output_tokens": 9}}),
            json!({"type": "message_stop"}),
        ];
        let mut gathering = MessageParts::default();
        for event in events {
            let Value::Object(event) = event else {
                panic!()
            };
            gathering.event(event);
        }
        assert_eq!(
            gathering.whole(),
            json!({
                "id": "msg_1", "new": 1, "stop_reason": "end_turn", "container": {"id": "c"},
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                    {"type": "text", "text": "I look.", "citations": [{"title": "a"}]},
                    {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": 1}},
                    {"type": "not_yet_known", "said": "ab"},
                ],
                "usage": {"input_tokens": 3, "cache_creation_input_tokens": 11, "output_tokens": 9, "service_tier": "standard"},
            })
        );
    }

    #[test]
    fn a_whole_messages_events_have_all_of_it() {
        let message = json!({
            "id": "msg_1", "type": "message", "model": "claude-x", "new": {"a": 1},
            "stop_reason": "tool_use", "stop_sequence": null,
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                {"type": "redacted_thinking", "data": "c2VjcmV0"},
                {"type": "text", "text": "I look.", "citations": [{"title": "a"}, {"title": "b"}]},
                {"type": "text", "text": "So.", "citations": null},
                {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": 1}},
                {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"url": "a"}]},
                {"type": "tool_use", "id": "t", "name": "look", "input": {}},
                {"type": "not_yet_known", "said": "a"},
            ],
            "usage": {"input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 9},
        });
        let events = |message: String| unstreamed::as_message_events(message.into(), Vec::new());
        let stream = events(message.to_string()).unwrap().concat();
        let stream = str::from_utf8(&stream).unwrap();
        let mut gathering = MessageParts::default();
        for data in stream
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
        {
            gathering.event(serde_json::from_str(data).unwrap());
        }
        assert_eq!(gathering.whole(), message);
        for no_message in ["{}", "[]", r#"{"content": 1}"#, "no"] {
            assert_eq!(events(no_message.to_owned()), None);
        }
    }

    #[test]
    fn odd_events_are_bounded() {
        let mut gathering = MessageParts::default();
        for event in [
            json!({"type": "content_block_delta", "index": u64::MAX, "delta": {"text": "a"}}),
            json!({"type": "content_block_start", "content_block": 7}),
            json!({"type": "message_delta", "delta": null, "usage": 7}),
            json!({"type": 7}),
        ] {
            let Value::Object(event) = event else {
                panic!()
            };
            gathering.event(event);
        }
        assert_eq!(gathering.whole()["content"], json!([]));
    }
}
