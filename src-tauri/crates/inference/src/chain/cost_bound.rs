//! Whether a request's size bounds its cost. It does not if the request names context that the server holds, or has a field that
//! changes the price.

use super::data_size::{DataSize, Inline};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::Value;
use std::fmt;
use tierbar_core::config::CacheWrite;

/// Fields that change the price, with the values that raise none.
pub(super) const SURCHARGED: [(&str, &[&str]); 4] = [
    ("fallbacks", &[]),
    ("models", &[]),
    (
        "service_tier",
        &["auto", "default", "flex", "standard_only"],
    ),
    ("speed", &["standard"]),
];

/// Returns the fields that are left out where the price is limited. `value`: the value of a field.
pub(super) fn surcharged(value: impl Fn(&str) -> Option<Value>) -> Vec<&'static str> {
    let raises = |value: &Value, fine: &[&str]| match value {
        Value::Null => false,
        Value::String(text) => !fine.contains(&text.as_str()),
        _ => true,
    };
    let fields = SURCHARGED.into_iter();
    let fields =
        fields.filter(|(name, fine)| value(name).is_some_and(|value| raises(&value, fine)));
    fields.map(|(name, _)| name).collect()
}

/// What decides how far its bytes bound what a request costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CostBound {
    /// Why they do not.
    pub(super) why: Option<UnboundedCost>,
    pub(super) writes: CacheWrite,
    /// Its images and PDFs.
    pub(super) data: DataSize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum UnboundedCost {
    /// This field names context that is not in the request.
    #[error("the size of what `{0}` names is not known")]
    Held(&'static str),
    /// This field changes the price, and is not ours to leave out.
    #[error("`{0}` changes its price")]
    Region(&'static str),
    /// It is nested too deeply.
    #[error("the size of the request is not known")]
    Unread,
}

impl CostBound {
    /// Reads a request in any form.
    pub(super) fn from_request<'de, D: Deserializer<'de>>(request: D) -> Self {
        Request::deserialize(request).map_or_else(
            |_| Self {
                why: Some(UnboundedCost::Unread),
                ..Self::default()
            },
            Request::bound,
        )
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self {
            why: self.why.or(other.why),
            writes: self.writes.max(other.writes),
            data: self.data.and(other.data),
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Request {
    previous_response_id: Value,
    conversation: Value,
    /// A completion's is a text or a list; one that the server holds, an object.
    prompt: Part,
    inference_geo: Value,
    cache_control: Value,
    /// Of Gemini.
    extra_body: Value,
    system: Part,
    tools: Part,
    messages: Part,
    input: Part,
}

impl Request {
    fn bound(self) -> CostBound {
        let held = |is_held: bool, field| is_held.then_some(UnboundedCost::Held(field));
        let region = self.inference_geo.as_str();
        let of_its_own = CostBound {
            why: held(!self.previous_response_id.is_null(), "previous_response_id")
                .or(held(!self.conversation.is_null(), "conversation"))
                .or(held(self.prompt.is_object, "prompt"))
                .or(held(
                    !self.extra_body["google"]["cached_content"].is_null(),
                    "cached_content",
                ))
                .or(region
                    .filter(|region| *region != "global")
                    .map(|_| UnboundedCost::Region("inference_geo"))),
            writes: cache_write(&self.cache_control),
            data: DataSize::default(),
        };
        let parts = [self.system, self.tools, self.messages, self.input].into_iter();
        parts.fold(of_its_own, |all, part| all.and(part.bound))
    }
}

fn cache_write(cache_control: &Value) -> CacheWrite {
    match &cache_control["ttl"] {
        _ if cache_control.is_null() => CacheWrite::None,
        Value::Null => CacheWrite::Minutes,
        ttl if ttl == "5m" => CacheWrite::Minutes,
        _ => CacheWrite::Hour,
    }
}

/// A part of a prompt, or several. No text of it is kept.
#[derive(Debug, Default)]
struct Part {
    is_object: bool,
    bound: CostBound,
    /// What it is as a text.
    inline: Inline,
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(part: D) -> Result<Self, D::Error> {
        part.deserialize_any(EachPart)
    }
}

/// The fields of a part that name a file.
const FILES: [&str; 2] = ["file_id", "file_url"];

struct EachPart;

impl<'de> Visitor<'de> for EachPart {
    type Value = Part;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a part of a prompt")
    }

    fn visit_unit<E>(self) -> Result<Part, E> {
        Ok(Part::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Part, E> {
        Ok(Part::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Part, E> {
        Ok(Part::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Part, E> {
        Ok(Part::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Part, E> {
        Ok(Part::default())
    }

    fn visit_str<E>(self, text: &str) -> Result<Part, E> {
        Ok(Part {
            inline: Inline::read(text),
            ..Part::default()
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Part, A::Error> {
        let mut bound = CostBound::default();
        while let Some(part) = parts.next_element::<Part>()? {
            bound = bound.and(part.bound);
        }
        Ok(Part {
            bound,
            ..Part::default()
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Part, A::Error> {
        let held = |field| Some(UnboundedCost::Held(field));
        let mut bound = CostBound::default();
        let (mut kind, mut id, mut role, mut url) = (Value::Null, false, false, false);
        let (mut data, mut media_type) = (Inline::Text, Value::Null);
        while let Some(name) = fields.next_key::<String>()? {
            match name.as_str() {
                "type" => kind = fields.next_value()?,
                "cache_control" => {
                    let control: Value = fields.next_value()?;
                    bound.writes = bound.writes.max(cache_write(&control));
                }
                "file_id" | "file_url" => {
                    let is_held = fields.next_value::<Value>()?.is_string();
                    let field = FILES.into_iter().find(|file| *file == name);
                    bound.why = bound.why.or(field.and_then(held).filter(|_| is_held));
                }
                // An earlier answer's.
                "audio" => {
                    let audio: Value = fields.next_value()?;
                    let is_held = audio["id"].is_string();
                    bound.why = bound.why.or(held("audio").filter(|_| is_held));
                }
                "media_type" => media_type = fields.next_value()?,
                "data" => data = fields.next_value::<Part>()?.inline,
                "image_url" | "url" | "file_data" => {
                    url |= name == "url";
                    let part: Part = fields.next_value()?;
                    bound = bound.and(part.bound);
                    bound.data = bound.data.and(part.inline.size(""));
                }
                // What a call's input has is text to its server.
                "content" | "source" | "output" | "file" => {
                    let part: Part = fields.next_value()?;
                    bound = bound.and(part.bound);
                }
                name => {
                    id |= name == "id";
                    role |= name == "role";
                    fields.next_value::<IgnoredAny>()?;
                }
            }
        }
        let media_type = media_type.as_str().unwrap_or_default();
        bound.data = bound.data.and(data.size(media_type));
        bound.why = bound.why.or(match kind.as_str() {
            Some("item_reference") => held("item_reference"),
            // An item of nothing but its id.
            None if id && !role => held("item_reference"),
            Some("url") if url => held("url"),
            _ => None,
        });
        // The size of an image is bounded.
        if kind == "image" && bound.why == held("url") {
            bound.why = None;
        }
        Ok(Part {
            is_object: true,
            bound,
            inline: Inline::Text,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn context_that_the_server_holds_is_found() {
        let message = |block: Value| json!({"messages": [{"role": "user", "content": [block]}]});
        let file = json!({"type": "document", "source": {"type": "file", "file_id": "f"}});
        for (request, field) in [
            (
                json!({"previous_response_id": "resp_1"}),
                "previous_response_id",
            ),
            (json!({"conversation": {"id": "conv_1"}}), "conversation"),
            (json!({"prompt": {"id": "pmpt_1"}}), "prompt"),
            (
                json!({"messages": [{"role": "assistant", "audio": {"id": "audio_1"}}]}),
                "audio",
            ),
            (
                json!({"extra_body": {"google": {"cached_content": "cachedContents/1"}}}),
                "cached_content",
            ),
            (
                json!({"input": [{"type": "item_reference", "id": "msg_1"}]}),
                "item_reference",
            ),
            (json!({"input": [{"id": "msg_1"}]}), "item_reference"),
            (
                json!({"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]}),
                "file_id",
            ),
            (
                json!({"input": [{"type": "function_call_output", "output": [{"type": "input_file", "file_url": "u"}]}]}),
                "file_url",
            ),
            (
                message(json!({"type": "file", "file": {"file_id": "f"}})),
                "file_id",
            ),
            (message(file.clone()), "file_id"),
            (
                message(json!({"type": "tool_result", "content": [file]})),
                "file_id",
            ),
            (
                message(json!({"type": "container_upload", "file_id": "f"})),
                "file_id",
            ),
            (
                message(json!({"type": "document", "source": {"type": "url", "url": "u"}})),
                "url",
            ),
        ] {
            let found = CostBound::from_request(&request);
            assert_eq!(found.why, Some(UnboundedCost::Held(field)), "{request}");
            let text = request.to_string();
            let read = CostBound::from_request(&mut serde_json::Deserializer::from_str(&text));
            assert_eq!(read, found, "{request}");
        }
        for request in [
            json!({"previous_response_id": null, "conversation": null, "prompt": "a", "inference_geo": "global"}),
            json!({"prompt": [1, 2], "input": "file_id"}),
            json!({"input": [{"role": "user", "content": "a"}, {"type": "message", "id": "msg_1"}]}),
            message(json!({"type": "tool_use", "id": "t", "input": {"file_id": "f"}})),
            message(json!({"type": "image", "source": {"type": "url", "url": "u"}})),
            message(json!({"type": "file", "file": {"file_id": null, "file_data": "QQ"}})),
            json!({"tools": [{"name": "read", "input_schema": {"properties": {"file_id": {"type": "string"}}}}]}),
        ] {
            assert_eq!(
                CostBound::from_request(&request),
                CostBound::default(),
                "{request}"
            );
        }
        let region = CostBound::from_request(json!({"inference_geo": "us"}));
        assert_eq!(region.why, Some(UnboundedCost::Region("inference_geo")));
        let deep = format!("{{\"input\":{}{}}}", "[".repeat(200), "]".repeat(200));
        let deep = CostBound::from_request(&mut serde_json::Deserializer::from_str(&deep));
        assert_eq!(deep.why, Some(UnboundedCost::Unread));
    }

    #[test]
    fn images_and_pdfs_are_found_in_each_form() {
        let image = "A".repeat(60_000);
        let pdf = "JVBERi0xLjQKPDwvVHlwZS9QYWdlPj4KPDwvVHlwZS9QYWdlPj4K";
        let of = |uri: &str, data: &str| format!("data:{uri};base64,{data}");
        let (image_uri, pdf_uri) = (of("image/png", &image), of("application/pdf", pdf));
        let user = |parts: Value| json!([{"role": "user", "content": parts}]);
        for (request, tokens) in [
            (
                json!({"messages": user(json!([{"type": "image_url", "image_url": {"url": image_uri}}]))}),
                5000,
            ),
            (
                json!({"input": user(json!([{"type": "input_image", "image_url": image_uri}]))}),
                5000,
            ),
            (
                json!({"messages": user(json!([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": image}}]))}),
                5000,
            ),
            (
                json!({"messages": user(json!([{"type": "file", "file": {"file_data": pdf_uri}}]))}),
                10_000,
            ),
            (
                json!({"input": user(json!([{"type": "input_file", "file_data": pdf_uri}]))}),
                10_000,
            ),
            (
                json!({"messages": user(json!([{"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": pdf}}]))}),
                10_000,
            ),
        ] {
            let bound = CostBound::from_request(&request);
            let text = request.to_string();
            let data = if tokens == 5000 {
                image.len()
            } else {
                pdf.len()
            };
            let prompt = bound.data.tokens_of_prompt(text.len());
            assert_eq!(
                prompt,
                (text.len() - data) as u64 / 3 + tokens,
                "{text:.99}"
            );
            let read = CostBound::from_request(&mut serde_json::Deserializer::from_str(&text));
            assert_eq!(read, bound, "{text:.99}");
        }
        let text = json!({"messages": user(json!([{"type": "text", "text": image_uri}, {"type": "text", "text": pdf}]))});
        assert_eq!(CostBound::from_request(&text).data, DataSize::default());
    }

    #[test]
    fn the_longest_write_to_a_cache_counts() {
        let short = json!({"type": "ephemeral"});
        let long = json!({"type": "ephemeral", "ttl": "1h"});
        for (request, writes) in [
            (
                json!({"system": [{"type": "text", "text": "cache_control"}]}),
                CacheWrite::None,
            ),
            (json!({"cache_control": short}), CacheWrite::Minutes),
            (
                json!({"tools": [{"cache_control": {"ttl": "5m"}}]}),
                CacheWrite::Minutes,
            ),
            (
                json!({"system": [{"cache_control": long}], "messages": [{"content": [{"cache_control": short}]}]}),
                CacheWrite::Hour,
            ),
            (
                json!({"messages": [{"content": [{"content": [{"cache_control": long}]}]}]}),
                CacheWrite::Hour,
            ),
        ] {
            assert_eq!(
                CostBound::from_request(&request).writes,
                writes,
                "{request}"
            );
        }
    }

    #[test]
    fn only_fields_that_raise_the_price_are_left_out() {
        let left_out = |request: Value| surcharged(|name| request.get(name).cloned());
        assert_eq!(
            left_out(
                json!({"service_tier": "priority", "speed": "fast", "fallbacks": [{"model": "m"}], "models": ["m"]})
            ),
            ["fallbacks", "models", "service_tier", "speed"]
        );
        for fine in ["auto", "default", "flex", "standard_only"] {
            let request = json!({"service_tier": fine, "speed": "standard", "models": null});
            assert!(left_out(request).is_empty(), "{fine}");
        }
    }
}
