//! `POST /api/embed`, and the older `POST /api/embeddings`.

use super::{
    common::request,
    load,
    schema::OllamaEmbedInput,
    writer::{duration, nanoseconds},
};
use crate::openai;
use axum::{
    Json,
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{sync::Arc, time::Instant};
use tierbar_core::{Error, ModelKind, TierId, bad_request};
use tierbar_http::{InferenceCall, error::Failure};
use tierbar_inference::{
    Inference,
    hints::Hints,
    route,
    vectors::{self, Vectors},
};
use tierbar_request_fields::{OLLAMA_EMBED, OLLAMA_EMBEDDINGS};
use utoipa::ToSchema;

/// How many texts were cut.
const TRUNCATED: &str = "x-tierbar-truncated";

/// Texts to embed, in Ollama's form.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = OllamaEmbedRequest)]
struct Embed {
    /// A tier, a chain, a model's id, or `auto`, which is the default.
    #[schema(examples("auto"))]
    model: Option<String>,
    /// The texts of `/api/embed`. With none, the tier is loaded.
    #[schema(value_type = Option<OllamaEmbedInput>)]
    input: Option<Value>,
    /// The text of `/api/embeddings`.
    prompt: Option<String>,
    /// Whether a text that is longer than the context is cut, which is the default of `/api/embed`; otherwise it is refused.
    truncate: Option<bool>,
    /// The length of the vectors: only the model's own.
    dimensions: Option<u64>,
    #[schema(value_type = Option<openai::schema::KeepAlive>)]
    keep_alive: Option<Value>,
}

/// A vector for each text.
// Written as it is: as a JSON value, a number takes eight times its bytes.
#[derive(Debug, Serialize, ToSchema)]
struct OllamaEmbedAnswer {
    model: String,
    embeddings: Vec<Vec<f32>>,
    /// In nanoseconds.
    total_duration: u64,
    /// The part of it that was spent loading, or waiting, where the engine measures the rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    load_duration: Option<u64>,
    /// The texts' tokens.
    prompt_eval_count: u64,
}

/// A text's vector.
#[derive(Debug, Serialize, ToSchema)]
struct OllamaEmbeddingsAnswer {
    embedding: Vec<f32>,
}

/// Turns texts into vectors.
#[utoipa::path(
    post,
    path = "/api/embed",
    operation_id = "ollamaEmbed",
    reach(Inference, Spends, Counts),
    request_body = Embed,
    responses((
        status = 200,
        description = "A vector for each text",
        body = OllamaEmbedAnswer,
        headers(("x-tierbar-truncated" = u64, description = "How many texts were longer than the context and cut, if any")),
    )),
)]
pub(super) async fn embed(
    InferenceCall(inference, hints, body): InferenceCall,
) -> Result<Response, Failure> {
    let begun = Instant::now();
    let mut embed: Embed = request(body, &OLLAMA_EMBED).await?;
    let input = texts(embed.input.take())?;
    embed.truncate = embed.truncate.or(Some(true));
    let model = embed.model().to_owned();
    let embedded = embed.vectors(inference, hints, input).await?;
    let total = begun.elapsed();
    let load = embedded.timings.map(|timings| {
        let computed = duration(timings.prompt_ms / 1000.0);
        nanoseconds(total.saturating_sub(computed))
    });
    let answer = OllamaEmbedAnswer {
        model,
        embeddings: embedded.vectors,
        total_duration: nanoseconds(total),
        load_duration: load,
        prompt_eval_count: embedded.prompt_tokens,
    };
    let mut response = Json(answer).into_response();
    if embedded.truncated > 0 {
        let headers = response.headers_mut();
        headers.insert(TRUNCATED, embedded.truncated.into());
    }
    Ok(response)
}

/// Turns a text into a vector.
#[utoipa::path(
    post,
    path = "/api/embeddings",
    operation_id = "ollamaEmbeddings",
    reach(Inference, Spends, Counts),
    request_body = Embed,
    responses((status = 200, description = "The vector", body = OllamaEmbeddingsAnswer)),
)]
pub(super) async fn embeddings(
    InferenceCall(inference, hints, body): InferenceCall,
) -> Result<Response, Failure> {
    let mut embed: Embed = request(body, &OLLAMA_EMBEDDINGS).await?;
    let prompt = embed.prompt.take().filter(|prompt| !prompt.is_empty());
    let embedded = embed
        .vectors(inference, hints, prompt.into_iter().collect())
        .await?;
    let embedding = embedded.vectors.into_iter().next().unwrap_or_default();
    Ok(Json(OllamaEmbeddingsAnswer { embedding }).into_response())
}

/// One text or a list of them; an empty one is none, as nothing is.
fn texts(input: Option<Value>) -> Result<Vec<String>, Error> {
    let read = match input {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::String(text)) if text.is_empty() => Some(Vec::new()),
        Some(Value::String(text)) => Some(vec![text]),
        Some(list) => serde_json::from_value(list).ok(),
    };
    read.ok_or_else(|| bad_request("`input` must be a string or a list of strings"))
}

impl Embed {
    fn model(&self) -> &str {
        let named = self.model.as_deref().filter(|name| !name.is_empty());
        named.unwrap_or(TierId::AUTO)
    }

    /// Without a text the model is loaded.
    async fn vectors(
        self,
        inference: Arc<Inference>,
        hints: Hints,
        texts: Vec<String>,
    ) -> Result<Vectors, Failure> {
        let tiers = inference.tiers.snapshot();
        if texts.is_empty() {
            let hinted = hints.tier.as_deref();
            let hinted = hinted.filter(|_| self.model() == TierId::AUTO);
            let named = route::without_latest_tag(hinted.unwrap_or(self.model()), &tiers);
            let tier = route::resolve_for(ModelKind::Embedding, Some(named), &tiers)?;
            let keep = load::parse_keep_alive(self.keep_alive.as_ref())?;
            load::load_or_unload(&inference, &tier, keep).await?;
            return Ok(Vectors::default());
        }
        let count = texts.len();
        let mut request = Map::new();
        let model = route::without_latest_tag(self.model(), &tiers);
        request.insert("model".to_owned(), model.into());
        request.insert("input".to_owned(), texts.into());
        request.insert("encoding_format".to_owned(), "float".into());
        let length = self.dimensions.map(Value::from);
        request.extend(length.map(|length| ("dimensions".to_owned(), length)));
        if self.truncate == Some(true) {
            request.insert("truncate_prompt_tokens".to_owned(), (-1).into());
        }
        request.extend(self.keep_alive.map(|keep| ("keep_alive".to_owned(), keep)));
        Ok(vectors::fetch(&inference, hints, request.into(), count).await?)
    }
}
