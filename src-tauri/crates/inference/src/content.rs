//! What a request says, read once: its fields, by which its way is decided, and its bytes, which a worker is sent as they came.

use super::{files, original};
use crate::body;
use bytes::Bytes;
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, Visitor},
};
use serde_json::{Map, Value};
use std::{
    collections::BTreeSet,
    fmt, io,
    sync::{Arc, OnceLock},
};
use tierbar_core::{
    Error, Modality,
    json_edit::{self, Change},
    lease::KeepAlive,
};

/// The bytes that an image or a sound counts for at least: few are of fewer tokens than 64.
pub const MEDIA_BYTES: usize = 256;

/// A JSON object. Clones share it.
#[derive(Debug, Clone)]
pub struct Content {
    fields: Arc<Value>,
    /// Made of the fields when they are first sent as they are, unless the request came so.
    bytes: Arc<OnceLock<Bytes>>,
}

impl Content {
    pub fn new(object: Map<String, Value>) -> Self {
        Self {
            fields: Arc::new(Value::Object(object)),
            bytes: Arc::default(),
        }
    }

    /// # Errors
    /// `BadRequest` if it is not a JSON object, [`RoutingFields`] has a field of the wrong type, or a field of policy stands there in
    /// another case.
    pub fn read(bytes: Bytes) -> Result<(Self, RoutingFields), Error> {
        let RequestFields {
            object,
            routing,
            repeats,
            misspelled,
        } = body::parse(&bytes)?;
        if let Some((name, field)) = misspelled {
            return Err(original::misspelled_field(&name, field));
        }
        // A server might take the other value.
        if repeats {
            return Ok((Self::new(object), routing));
        }
        let content = Self {
            fields: Arc::new(Value::Object(object)),
            bytes: Arc::new(OnceLock::from(bytes)),
        };
        Ok((content, routing))
    }

    /// As [`Self::read`], of what was made here.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub fn from_fields(fields: Value) -> Result<(Self, RoutingFields), Error> {
        let object = match fields {
            Value::Object(object) => object,
            // It fails, and says what the value is.
            other => body::of_value::<RequestFields>(other)?.object,
        };
        let mut routing = RoutingFields::default();
        for (name, value) in &object {
            let read = routing.read_field(name, value);
            read.map_err(|wrong| body::invalid(&wrong))?;
        }
        Ok((Self::new(object), routing))
    }

    /// The same with these changes. The other bytes stay as they came.
    pub fn with(mut self, changes: &[Change]) -> Self {
        if changes.is_empty() {
            return self;
        }
        let bytes = self.bytes.get();
        let edited = bytes.map(|bytes| Bytes::from(json_edit::edit(bytes, changes)));
        self.bytes = Arc::new(edited.map_or_else(OnceLock::new, OnceLock::from));
        if let Value::Object(fields) = Arc::make_mut(&mut self.fields) {
            json_edit::apply(fields, changes.iter().cloned());
        }
        self
    }

    /// An object.
    pub fn fields(&self) -> &Value {
        &self.fields
    }

    pub fn bytes(&self) -> &Bytes {
        self.bytes
            .get_or_init(|| self.fields.to_string().into_bytes().into())
    }

    pub fn into_bytes(self) -> Bytes {
        self.bytes().clone()
    }

    /// The bytes with these changes. Of what did not come as bytes, no others are made for it.
    pub fn edited(&self, changes: &[Change]) -> Vec<u8> {
        match (self.bytes.get(), &*self.fields) {
            (None, Value::Object(fields)) => json_edit::write(fields, changes),
            _ => json_edit::edit(self.bytes(), changes),
        }
    }

    /// The number of its bytes.
    pub(crate) fn byte_count(&self) -> usize {
        struct ByteCounter(usize);
        impl io::Write for ByteCounter {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0 += bytes.len();
                Ok(bytes.len())
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        if let Some(bytes) = self.bytes.get() {
            return bytes.len();
        }
        let mut counted = ByteCounter(0);
        // Values are always written.
        let _written = serde_json::to_writer(&mut counted, &*self.fields);
        counted.0
    }

    pub fn into_object(self) -> Map<String, Value> {
        match Arc::unwrap_or_clone(self.fields) {
            Value::Object(object) => object,
            _ => Map::new(),
        }
    }

    /// The same with a text in the place of each file; `None` if it has none. No data of files is copied.
    pub(crate) fn without_files(&self) -> Option<Self> {
        let messages = files::omit(&self.fields["messages"])?;
        let fields = self.fields.as_object().into_iter().flatten();
        let others = fields.filter(|(name, _)| name.as_str() != "messages");
        let others = others.map(|(name, value)| (name.clone(), value.clone()));
        let mut object: Map<String, Value> = others.collect();
        object.insert("messages".to_owned(), messages);
        Some(Self::new(object))
    }

    pub(crate) fn has_files(&self) -> bool {
        self.parts().any(files::is_file)
    }

    /// What there is in the prompt beside text: images, sound.
    pub fn media(&self) -> BTreeSet<Modality> {
        self.parts().filter_map(modality_of_part).collect()
    }

    /// The parts of all messages.
    fn parts(&self) -> impl Iterator<Item = &Value> {
        let messages = self.fields["messages"].as_array().into_iter().flatten();
        messages.flat_map(|message| message["content"].as_array().into_iter().flatten())
    }

    /// Whether there is more to the prompt than text: an image or a sound, which its bytes say little of.
    pub fn has_media(&self) -> bool {
        !self.media().is_empty()
    }

    /// Returns the bytes of the prompt as far as they say something of its tokens: without the data of images, sounds and files,
    /// for each of which a little is counted.
    pub fn prompt_bytes(&self) -> usize {
        let parts = self.parts();
        let media: Vec<_> = parts
            .filter(|part| modality_of_part(part).is_some() || files::is_file(part))
            .map(data_bytes)
            .collect();
        let data = media.iter().sum();
        self.byte_count().saturating_sub(data) + media.len() * MEDIA_BYTES
    }
}

/// Returns the length of an image's, sound's or file's data; none for what is no data, such as words behind `;base64,`, and for a
/// file of text, whose length says how many tokens it has.
fn data_bytes(part: &Value) -> usize {
    let image = &part["image_url"];
    let image = image["url"].as_str().or(image.as_str());
    let file = part["file"]["file_data"].as_str();
    let file = file.filter(|file| !file.starts_with("data:text/"));
    let inline = image.or(file).and_then(files::read_data_uri);
    let inline = inline.map(|(_, data)| data);
    let pdf = file.filter(|file| file.starts_with(files::PDF_START));
    let sound = part["input_audio"]["data"].as_str();
    let data = inline.into_iter().chain(pdf).chain(sound);
    let data = data.filter(|data| files::is_base64(data));
    data.map(str::len).sum()
}

/// Returns what a part is, unless it is text.
pub fn modality_of_part(part: &Value) -> Option<Modality> {
    let is_kind = |kind: &str| part["type"] == kind || part.get(kind).is_some();
    match () {
        () if is_kind("image_url") => Some(Modality::Image),
        () if is_kind("input_audio") => Some(Modality::Audio),
        () => None,
    }
}

/// The fields that decide where a request goes.
#[derive(Debug, Default)]
pub struct RoutingFields {
    pub model: Option<String>,
    pub stream: Option<bool>,
    pub keep_alive: Option<KeepAlive>,
}

impl RoutingFields {
    /// Reads a field of a request. Returns whether it is one of these.
    fn read_field(&mut self, name: &str, value: &Value) -> Result<bool, String> {
        let wrong = |error: serde_json::Error| format!("`{name}`: {error}");
        match name {
            "model" => self.model = Option::deserialize(value).map_err(wrong)?,
            "stream" => self.stream = Option::deserialize(value).map_err(wrong)?,
            // Some clients send an empty text where nothing is set.
            "keep_alive" if value == "" => {}
            "keep_alive" => self.keep_alive = Option::deserialize(value).map_err(wrong)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

struct RequestFields {
    object: Map<String, Value>,
    routing: RoutingFields,
    /// A field stands there twice. The last one counts.
    repeats: bool,
    /// A field of policy in another case, with its right name. Some servers would take it for that.
    misspelled: Option<(String, &'static str)>,
}

impl<'de> Deserialize<'de> for RequestFields {
    fn deserialize<D: Deserializer<'de>>(request: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = RequestFields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a request")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut fields: A,
            ) -> Result<RequestFields, A::Error> {
                let (mut object, mut routing) = (Map::new(), RoutingFields::default());
                let (mut repeats, mut misspelled) = (false, None);
                while let Some(name) = fields.next_key::<String>()? {
                    let value: Value = fields.next_value()?;
                    let decides = routing
                        .read_field(&name, &value)
                        .map_err(A::Error::custom)?;
                    // A parser downstream might take the other one.
                    if decides && object.contains_key(&name) {
                        return Err(A::Error::custom(format!("duplicate field `{name}`")));
                    }
                    if let Some(field) = original::misspelled(&name) {
                        misspelled.get_or_insert((name.clone(), field));
                    }
                    repeats |= object.insert(name, value).is_some();
                }
                Ok(RequestFields {
                    object,
                    routing,
                    repeats,
                    misspelled,
                })
            }
        }
        request.deserialize_map(Fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tierbar_core::Code;

    #[test]
    fn a_request_keeps_its_bytes_and_has_its_fields() {
        let bytes = br#"{ "model": "fast", "stream": true, "top_k": 1e2, "keep_alive": 5 }"#;
        let (content, routing) = Content::read(Bytes::from_static(bytes)).unwrap();
        assert_eq!(content.bytes(), &bytes[..]);
        assert_eq!(content.fields()["top_k"], 100.0);
        assert_eq!(
            (routing.model.as_deref(), routing.stream),
            (Some("fast"), Some(true))
        );
        assert!(routing.keep_alive.is_some());
        let (_, routing) = Content::read(br#"{"keep_alive": ""}"#.as_slice().into()).unwrap();
        assert!(routing.keep_alive.is_none());
        let (content, routing) =
            Content::from_fields(json!({"model": null, "stream": null})).unwrap();
        let changes = [
            ("model", Some(json!("m"))),
            ("stream", None),
            ("n", Some(json!(1))),
        ];
        assert_eq!(content.edited(&changes), br#"{"model":"m","n":1}"#);
        assert_eq!(content.byte_count(), content.bytes().len());
        assert_eq!(content.edited(&changes), br#"{"model":"m","n":1}"#);
        assert_eq!(content.bytes(), &br#"{"model":null,"stream":null}"#[..]);
        assert_eq!((routing.model, routing.stream), (None, None));
    }

    #[test]
    fn a_field_of_the_wrong_type_case_or_number_is_refused() {
        for (body, message) in [
            (
                r#"{"model": 5}"#,
                "the request is not valid: `model`: invalid type",
            ),
            (
                r#"{"stream": "yes"}"#,
                "the request is not valid: `stream`: invalid type",
            ),
            (r#"{"keep_alive": []}"#, "the request is not valid: "),
            (
                r#"{"model": "a", "model": "b"}"#,
                "the request is not valid: duplicate field `model`",
            ),
            (
                r#"{"Model": "a"}"#,
                "the request is not valid: unknown field `Model`",
            ),
            (
                r#"{"n": 1, "STREAM": true}"#,
                "the request is not valid: unknown field `STREAM`",
            ),
            (r#"[{"model": "a"}]"#, "the body is not a JSON object"),
            (r#"{"model": "#, "the body is not JSON"),
        ] {
            let error = Content::read(body.into()).unwrap_err();
            assert_eq!(error.code, Code::BadRequest, "{body}");
            assert!(error.message.starts_with(message), "{body}: {error}");
        }
        for value in [
            json!({"model": 5}),
            json!({"n": 1, "stream": "yes", "model": 5}),
            json!({"keep_alive": []}),
            json!(["text"]),
            json!("text"),
        ] {
            let error = Content::from_fields(value.clone()).unwrap_err();
            let whole = body::of_value::<RequestFields>(value).err().unwrap();
            assert_eq!(error, whole);
        }
    }

    #[test]
    fn only_the_data_of_media_is_not_charged() {
        let bytes = |content: Value| {
            let chat = json!({"messages": [{"role": "user", "content": content}]});
            let content = Content::from_fields(chat).unwrap().0;
            (content.prompt_bytes(), content.bytes().len())
        };
        let words = "many words ".repeat(1000);
        let data = "A".repeat(100_000);
        for text in [
            json!(format!("a;base64,{words}")),
            json!([{"type": "text", "text": format!("data:image/png;base64,{words}")}]),
        ] {
            let (charged, all) = bytes(text);
            assert_eq!(charged, all);
        }
        let url = format!("data:image/png;base64,{data}");
        let sound = json!({"type": "input_audio", "input_audio": {"data": data, "format": "wav"}});
        for media in [
            json!({"type": "image_url", "image_url": {"url": url}}),
            json!({"type": "image_url", "image_url": url}),
            sound,
        ] {
            let (charged, all) = bytes(json!([media, {"type": "text", "text": words}]));
            assert_eq!(charged, all - data.len() + MEDIA_BYTES);
        }
        let file = |file_data: &str| {
            bytes(json!([{"type": "file", "file": {"filename": "a", "file_data": file_data}}]))
        };
        let (charged, all) = file(&format!("data:application/pdf;base64,{data}"));
        assert_eq!(charged, all - data.len() + MEDIA_BYTES);
        let pdf = format!("{}{data}", files::PDF_START);
        let (charged, all) = file(&pdf);
        assert_eq!(charged, all - pdf.len() + MEDIA_BYTES);
        let (charged, all) = file(&format!("data:text/plain;base64,{data}"));
        assert_eq!(charged, all + MEDIA_BYTES);
        let false_data = json!({"image_url": {"url": format!("data:image/png;base64,{words}")}});
        let (charged, all) = bytes(json!([false_data]));
        assert_eq!(charged, all + MEDIA_BYTES);
    }

    #[test]
    fn files_are_left_out_without_a_change_to_the_rest() {
        let content = |parts: Value| {
            let chat = json!({"model": "m", "messages": [{"role": "user", "content": parts}], "stream": true});
            Content::from_fields(chat).unwrap().0
        };
        let text = json!({"type": "text", "text": "Hi"});
        assert!(content(json!([text])).without_files().is_none());
        let with = content(json!([text, files::part("application/pdf", "AAAA", None)]));
        assert!(with.has_files());
        let without = with.without_files().unwrap();
        let omitted = json!({"type": "text", "text": files::OMITTED});
        assert_eq!(without.fields(), content(json!([text, omitted])).fields());
    }

    #[test]
    fn media_are_parts_and_not_words() {
        let media = |content: Value| {
            let chat = json!({"messages": [{"role": "user", "content": content}]});
            Content::from_fields(chat).unwrap().0.has_media()
        };
        assert!(media(
            json!([{"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}])
        ));
        assert!(media(json!([{"image_url": {}}])));
        assert!(media(
            json!([{"type": "text", "text": "?"}, {"type": "input_audio"}])
        ));
        assert!(!media(json!("what does image_url with ;base64, mean?")));
        assert!(!media(json!([{"type": "text", "text": "image_url"}])));
    }
}
