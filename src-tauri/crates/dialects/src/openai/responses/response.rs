//! A response while it is rendered: its own fields here, its events in [`super::events`].

use super::{
    item::{Item, new_id},
    request::Echo,
};
use crate::openai::stores::{FileSearchResults, file_id, file_name};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tierbar_core::{Error, ModelId, TierId};
use tierbar_documents::answer::citation_ranges;
use tierbar_inference::{
    ask::{Sampling, Usage},
    pieces::Pieces,
};

const OPENAI_DEFAULTS: Sampling = Sampling {
    temperature: 1.0,
    top_p: 1.0,
    presence_penalty: 0.0,
    frequency_penalty: 0.0,
};

/// One answer while it is rendered.
#[derive(Debug, Default)]
pub(super) struct AnswerWriter {
    id: String,
    created: i64,
    /// The tier's, until the server names its own.
    pub(super) model: String,
    echo: Map<String, Value>,
    pub(super) output: Vec<Item>,
    pub(super) begun: bool,
    /// How many events have been rendered.
    pub(super) sequence: u64,
    /// Why the answer ended, in OpenAI's form.
    pub(super) finish: Option<String>,
    /// Of tokens whose text has not arrived.
    pub(super) logprobs: Vec<Value>,
    pub(super) usage: Usage,
    /// What the server says of it; of others, OpenAI's defaults are assumed where the request does not say.
    pub(super) sampling: Option<Sampling>,
    /// The server's own events pass in their place.
    pub(super) passes: bool,
    /// The chain's report.
    pub(super) chain: Option<Value>,
    /// What was found in documents, until the response has it.
    pub(super) searched: Option<FileSearchResults>,
    /// The passages that the answer may cite, from the first on.
    pub(super) sources: Vec<Source>,
}

/// The file of a passage.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) file_id: String,
    pub(super) file_name: String,
}

impl AnswerWriter {
    /// `model`: that of the tier that answers.
    pub(super) fn new(echo: Echo, model: Option<&ModelId>) -> Self {
        Self {
            id: new_id("resp"),
            created: now(),
            model: model.map_or(echo.model, ToString::to_string),
            echo: echo.fields,
            ..Self::default()
        }
    }

    /// The writer of a tier's answer from passages. One whose model cites badly has no citations.
    pub(super) fn searched(
        mut self,
        searched: Option<FileSearchResults>,
        tier: Option<&TierId>,
    ) -> Self {
        let is_trusted = |searched: &&FileSearchResults| {
            tier.is_none_or(|tier| !searched.distrusted.contains(tier))
        };
        let trusted = searched.iter().filter(is_trusted);
        let passages = trusted.flat_map(|searched| &searched.passages);
        self.sources = passages
            .map(|passage| Source {
                file_id: file_id(passage.file),
                file_name: file_name(&passage.path).to_owned(),
            })
            .collect();
        self.searched = searched;
        self
    }

    /// The citations of a text.
    pub(super) fn annotations(&self, text: &str) -> Vec<Value> {
        let places = citation_ranges(text, self.sources.len()).into_iter();
        let citations = places.filter_map(|(index, number)| {
            let source = self.sources.get(number.checked_sub(1)?)?;
            Some(json!({"type": "file_citation", "file_id": source.file_id, "filename": source.file_name, "index": index}))
        });
        citations.collect()
    }

    /// Why the answer is not whole; `None` if it is.
    pub(super) fn cut(&self) -> Option<&'static str> {
        match self.finish.as_deref() {
            Some("length") => Some("max_output_tokens"),
            Some("content_filter") => Some("content_filter"),
            _ => None,
        }
    }

    /// The request's value is the one that is used.
    fn fill_sampling(&self, response: &mut Map<String, Value>) {
        let used = self.sampling.unwrap_or(OPENAI_DEFAULTS);
        for (key, value) in [
            ("temperature", used.temperature),
            ("top_p", used.top_p),
            ("presence_penalty", used.presence_penalty),
            ("frequency_penalty", used.frequency_penalty),
        ] {
            if let Some(field) = response.get_mut(key).filter(|field| field.is_null()) {
                *field = json!(value);
            }
        }
    }

    /// The whole response in this state.
    pub(super) fn response(&self, status: &str, error: Option<&Error>) -> Pieces {
        let reason = self.cut().filter(|_| status == "incomplete");
        let mut response = json!({
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "completed_at": (status == "completed").then(now),
            "status": status,
            "error": error.map(error_json),
            "incomplete_details": reason.map(|reason| json!({"reason": reason})),
            "model": self.model,
            "usage": self.usage.is_counted().then(|| figures(self.usage)),
        });
        if let Value::Object(response) = &mut response {
            response.extend(self.echo.clone());
            self.fill_sampling(response);
        }
        // Beside what was left out of the request.
        let ours = response.get_mut("tierbar").and_then(Value::as_object_mut);
        if let (Some(ours), Some(Value::Object(chain))) = (ours, &self.chain) {
            ours.extend(chain.clone());
        }
        let output = Pieces::list(self.output.iter().map(Item::to_json));
        Pieces::object(&response, &[("output", output)])
    }
}

/// Servers that do not count reasoning separately leave it 0.
fn figures(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": usage.cache_written_tokens},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    })
}

/// As in a refusal's body, without what OpenAI has beside it.
pub(super) fn error_json(error: &Error) -> Value {
    let mut rendered = error.openai_body()["error"].take();
    if let Some(rendered) = rendered.as_object_mut() {
        rendered.shift_remove("type");
        rendered.shift_remove("param");
    }
    rendered
}

fn now() -> i64 {
    Timestamp::now().as_second()
}
