//! What chats and completions ask for alike.

use super::options;
use crate::openai;
use axum::body::Body;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use tierbar_core::{Error, TierId, bad_request, status::TierStatus};
use tierbar_inference::{body, route};
use tierbar_request_fields::{self as fields, Field, Table};
use utoipa::ToSchema;

/// The fields that chats and completions share.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = OllamaFields)]
pub(super) struct CommonFields {
    /// A tier, a chain, a model's id, or `auto`, which is the default.
    #[schema(examples("auto"))]
    model: Option<String>,
    /// Whether to answer as lines of JSON, which is the default.
    stream: Option<bool>,
    /// Whether the model thinks before it answers, or how much, such as `high`.
    think: Option<Value>,
    /// `json`, or a JSON schema.
    format: Option<Value>,
    /// Sampling, such as `temperature` and `num_predict`. Options for loading have no effect.
    #[schema(value_type = Option<Object>)]
    options: Option<Map<String, Value>>,
    // The relay reads it too, as it came.
    #[schema(value_type = Option<openai::schema::KeepAlive>)]
    pub(super) keep_alive: Option<Value>,
    /// Whether to return the log probabilities of the answer's tokens.
    logprobs: Option<bool>,
    /// The number of alternatives to each token.
    top_logprobs: Option<u64>,
}

/// Reads a request, unless it has a field that cannot be followed.
pub(super) async fn request<T: DeserializeOwned>(body: Body, table: &Table) -> Result<T, Error> {
    let mut sent: Map<String, Value> = body::request(body).await?;
    if !table.field("options").is_some_and(Field::is_honored) {
        fields::check(&[table], &sent)?;
        return body::of_value(sent.into());
    }
    let tables = [table, &fields::OLLAMA_ADDITIONS, &fields::FOREIGN_TO_OLLAMA];
    fields::check(&tables, &sent)?;
    if let Some(Value::Object(options)) = sent.get("options") {
        let tables = [&fields::OLLAMA_OPTIONS, &fields::FOREIGN_TO_OPTIONS];
        fields::check_in("options.", &tables, options)?;
    }
    options::add_named(&mut sent);
    body::of_value(sent.into())
}

impl CommonFields {
    /// The model as the request names it; `auto` if it names none.
    pub(super) fn model(&self) -> &str {
        let named = self.model.as_deref().filter(|name| !name.is_empty());
        named.unwrap_or(TierId::AUTO)
    }

    /// How many alternatives each token has; `None` for no probabilities.
    pub(super) fn probabilities(&self) -> Option<u64> {
        let wanted = self.logprobs == Some(true);
        wanted.then(|| self.top_logprobs.unwrap_or(0))
    }

    /// The fields that all of OpenAI's requests share.
    pub(super) fn openai(&self, tiers: &[TierStatus]) -> Result<Map<String, Value>, Error> {
        let mut request = Map::new();
        let model = route::without_latest_tag(self.model(), tiers);
        request.insert("model".to_owned(), model.into());
        let stream = self.stream.unwrap_or(true);
        request.insert("stream".to_owned(), stream.into());
        if stream {
            // Where the figures of a stream come from.
            request.insert("stream_options".to_owned(), json!({"include_usage": true}));
        }
        if let Some(keep) = &self.keep_alive {
            request.insert("keep_alive".to_owned(), keep.clone());
        }
        if let Some(format) = response_format(self.format.as_ref())? {
            request.insert("response_format".to_owned(), format);
        }
        if let Some(options) = &self.options {
            options::put(options, &mut request)?;
        }
        Ok(request)
    }

    /// The field of a chat that turns reasoning on or off.
    pub(super) fn think(&self) -> Result<Option<(String, Value)>, Error> {
        match &self.think {
            None | Some(Value::Null) => Ok(None),
            Some(flag @ Value::Bool(_)) => Ok(Some(("think".to_owned(), flag.clone()))),
            Some(effort @ Value::String(_)) => {
                Ok(Some(("reasoning_effort".to_owned(), effort.clone())))
            }
            Some(_) => Err(bad_request(
                "`think` must be true, false or an effort such as \"high\"",
            )),
        }
    }
}

fn response_format(format: Option<&Value>) -> Result<Option<Value>, Error> {
    match format {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(format)) if format.is_empty() => Ok(None),
        Some(format) if format == "json" => Ok(Some(json!({"type": "json_object"}))),
        Some(format @ Value::Object(_)) => Ok(Some(
            json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": format}}),
        )),
        _ => Err(bad_request("`format` is \"json\" or a JSON schema")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_core::Code;

    fn converted(fields: Value) -> Result<Value, Error> {
        let common: CommonFields = serde_json::from_value(fields).unwrap();
        common.openai(&[]).map(Value::Object)
    }

    #[test]
    fn a_request_streams_and_names_auto_by_default() {
        assert_eq!(
            converted(json!({})).unwrap(),
            json!({"model": "auto", "stream": true, "stream_options": {"include_usage": true}})
        );
        let whole = json!({"model": "fast:latest", "stream": false, "keep_alive": "5m", "options": {"num_predict": 3}});
        assert_eq!(
            converted(whole).unwrap(),
            json!({"model": "fast", "stream": false, "keep_alive": "5m", "max_tokens": 3})
        );
    }

    #[test]
    fn a_form_is_prescribed_by_a_word_or_a_schema() {
        let format = |format: Value| {
            converted(json!({"format": format})).map(|mut it| it["response_format"].take())
        };
        assert_eq!(
            format(json!("json")).unwrap(),
            json!({"type": "json_object"})
        );
        assert_eq!(
            format(json!({"type": "object"})).unwrap(),
            json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": {"type": "object"}}})
        );
        for none in [json!(""), json!(null)] {
            assert_eq!(format(none).unwrap(), Value::Null);
        }
        for wrong in [json!("yaml"), json!(7), json!([])] {
            assert_eq!(format(wrong).unwrap_err().code, Code::BadRequest);
        }
    }

    #[test]
    fn thinking_is_a_flag_or_an_effort() {
        let think = |think: Value| {
            let common: CommonFields = serde_json::from_value(json!({"think": think})).unwrap();
            common.think()
        };
        let flag = Some(("think".to_owned(), json!(false)));
        assert_eq!(think(json!(false)).unwrap(), flag);
        let effort = Some(("reasoning_effort".to_owned(), json!("high")));
        assert_eq!(think(json!("high")).unwrap(), effort);
        assert_eq!(think(json!(null)).unwrap(), None);
        assert_eq!(think(json!(3)).unwrap_err().code, Code::BadRequest);
    }
}
