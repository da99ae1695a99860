//! The requests that are relayed as they came and their answers, as the API's description shows them. What the relay itself reads
//! of a request is in `inference/content.rs`.

// These types describe; nothing builds them.
#![allow(dead_code)]

use serde_json::Value;
use tierbar_core::Modality;
use tierbar_http::constant;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{ArrayBuilder, OneOfBuilder, Schema, schema::Type},
};

/// A chat in OpenAI's form. Other fields, such as llama-server's, are passed to the model's server.
#[derive(Debug, ToSchema)]
pub(super) struct ChatRequest {
    /// A tier, a chain, a model's id, or `auto`, which is the default.
    #[schema(examples("auto"))]
    model: Option<String>,
    messages: Vec<Message>,
    /// Whether to answer as server-sent events that end with `data: [DONE]`.
    stream: Option<bool>,
    #[schema(inline)]
    stream_options: Option<StreamOptions>,
    keep_alive: Option<KeepAlive>,
    max_tokens: Option<i64>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    seed: Option<i64>,
    /// The number of answers.
    #[schema(minimum = 1, maximum = 16)]
    n: Option<i64>,
    #[schema(schema_with = stop, required = false)]
    stop: Value,
    /// Functions that the model may call.
    #[schema(value_type = Vec<Object>, required = false)]
    tools: Value,
    #[schema(schema_with = tool_choice, required = false)]
    tool_choice: Value,
    /// Whether an answer may have several calls. On by default, unless a call is required.
    parallel_tool_calls: Option<bool>,
    /// The older form of `tools`. The answer's call is in `function_call`.
    #[schema(value_type = Vec<Object>, required = false)]
    functions: Value,
    /// The older form of `tool_choice`: `auto`, `none`, or `{"name": …}`.
    #[schema(value_type = Object, required = false)]
    function_call: Value,
    /// The form of the answer, such as a JSON schema.
    #[schema(value_type = Object, required = false)]
    response_format: Value,
    /// Whether to return the log probabilities of the answer's tokens.
    logprobs: Option<bool>,
    /// The number of alternatives to each token.
    #[schema(minimum = 0, maximum = 100)]
    top_logprobs: Option<i64>,
    /// Whether the model thinks before it answers. Off by default; thoughts arrive as `reasoning_content`.
    think: Option<bool>,
    /// How much the model thinks, such as `low` or `high`; turns thinking on.
    reasoning_effort: Option<String>,
    /// The most tokens of thoughts.
    thinking_budget_tokens: Option<i64>,
    /// Whether the answer continues the last message, which is the assistant's.
    continue_final_message: Option<bool>,
}

#[derive(Debug, ToSchema)]
struct StreamOptions {
    /// Whether the stream's last chunk has the usage.
    #[schema(required = false)]
    include_usage: bool,
}

/// How long the tier stays loaded after this request: seconds, or a duration such as `5m`. 0 unloads it at once, -1 keeps it
/// loaded.
#[derive(Debug, ToSchema)]
#[serde(untagged)]
pub enum KeepAlive {
    Seconds(f64),
    Duration(String),
}

/// A message of a chat.
#[derive(Debug, ToSchema)]
pub struct Message {
    #[schema(inline)]
    role: Role,
    /// A text, or parts: text, images and sound.
    #[schema(inline)]
    content: Option<MessageContent>,
    /// The assistant's thoughts.
    reasoning_content: Option<String>,
    /// The assistant's calls of functions.
    #[schema(value_type = Vec<Object>, required = false)]
    tool_calls: Value,
    /// The call whose result this message is.
    tool_call_id: Option<String>,
}

#[derive(Debug, ToSchema)]
#[schema(rename_all = "lowercase")]
enum Role {
    System,
    Developer,
    User,
    Assistant,
    Tool,
}

#[derive(Debug, ToSchema)]
#[serde(untagged)]
enum MessageContent {
    Text(String),
    Parts(#[schema(inline)] Vec<Part>),
}

#[derive(Debug, ToSchema)]
struct Part {
    /// `text`, `image_url` or `input_audio`.
    #[schema(rename = "type", examples("text"))]
    kind: String,
    #[schema(required = false)]
    text: String,
    /// An image as a `data:` URI.
    #[schema(value_type = Object, required = false)]
    image_url: Value,
    /// Sound in base64.
    #[schema(value_type = Object, required = false)]
    input_audio: Value,
}

/// A text completion in OpenAI's form. Other fields, such as llama-server's, are passed to the model's server.
#[derive(Debug, ToSchema)]
pub(super) struct TextRequest {
    /// A tier, a chain, a model's id, or `auto`, which is the default.
    #[schema(examples("auto"))]
    model: Option<String>,
    /// Up to 64 prompts.
    prompt: TextOrTokens,
    /// Whether to answer as server-sent events that end with `data: [DONE]`.
    stream: Option<bool>,
    keep_alive: Option<KeepAlive>,
    max_tokens: Option<i64>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    seed: Option<i64>,
    /// The number of answers.
    #[schema(minimum = 1, maximum = 16)]
    n: Option<i64>,
    #[schema(schema_with = stop, required = false)]
    stop: Value,
    /// Whether the answer begins with the prompt.
    echo: Option<bool>,
    /// The number of alternatives to each token.
    #[schema(minimum = 0, maximum = 100)]
    logprobs: Option<i64>,
}

/// A text, several texts, a text's token ids, or several lists of them.
#[derive(Debug, ToSchema)]
#[serde(untagged)]
enum TextOrTokens {
    Text(String),
    Texts(Vec<String>),
    Tokens(Vec<i64>),
    TokenLists(Vec<Vec<i64>>),
}

/// Texts to embed, in OpenAI's form.
#[derive(Debug, ToSchema)]
pub(super) struct EmbeddingsRequest {
    /// A tier, a model's id, or `auto`, which is the default: the tier with an embedding model, else one with a chat model.
    #[schema(examples("auto"))]
    model: Option<String>,
    /// Up to 2048 texts. Each must fit into the context, unless `truncate_prompt_tokens` lets it be cut.
    input: TextOrTokens,
    #[schema(inline, required = false)]
    encoding_format: EncodingFormat,
    /// The length of the vectors: only the model's own.
    dimensions: Option<i64>,
    /// To so many tokens longer texts are cut; -1 means the context.
    truncate_prompt_tokens: Option<i64>,
    keep_alive: Option<KeepAlive>,
}

#[derive(Debug, ToSchema)]
#[schema(rename_all = "lowercase")]
enum EncodingFormat {
    Float,
    Base64,
}

/// Documents to rank, in the form of Jina's and Cohere's APIs.
#[derive(Debug, ToSchema)]
pub(super) struct RerankRequest {
    /// A tier, a model's id, or `auto`, which is the default: the tier with a reranking model.
    #[schema(examples("auto"))]
    model: Option<String>,
    query: String,
    /// Up to 2048 documents. Each must fit into the context together with the query; none is cut.
    #[schema(inline)]
    documents: Vec<Document>,
    /// The most results.
    #[schema(minimum = 1)]
    top_n: Option<i64>,
    /// Whether the results have the documents' texts.
    #[schema(required = false)]
    return_documents: bool,
    keep_alive: Option<KeepAlive>,
}

#[derive(Debug, ToSchema)]
#[serde(untagged)]
enum Document {
    Text(String),
    Object(#[schema(inline)] DocumentText),
}

#[derive(Debug, ToSchema)]
struct DocumentText {
    text: String,
}

/// The results, the best first.
#[derive(Debug, ToSchema)]
#[schema(as = Reranked)]
pub(super) struct RerankAnswer {
    #[schema(inline)]
    object: ListObject,
    /// The model that answered.
    #[schema(required = false)]
    model: String,
    #[schema(inline)]
    results: Vec<RerankResult>,
    #[schema(required = false)]
    usage: Usage,
}

#[derive(Debug, ToSchema)]
struct RerankResult {
    /// The document's place in the request.
    index: i64,
    /// The model's own score, higher for a better answer. Its range depends on the model.
    relevance_score: f64,
    #[schema(inline)]
    document: Option<DocumentText>,
}

/// A chat's answer.
#[derive(Debug, ToSchema)]
pub(super) struct ChatCompletion {
    #[schema(required = false)]
    id: String,
    #[schema(inline)]
    object: ChatCompletionObject,
    /// In seconds since 1970.
    #[schema(required = false)]
    created: i64,
    /// The model that answered.
    #[schema(required = false)]
    model: String,
    #[schema(inline)]
    choices: Vec<ChatChoice>,
    #[schema(required = false)]
    usage: Usage,
    /// What prefill and decode took, as in llama-server.
    #[schema(value_type = Object, required = false)]
    timings: Value,
    /// The sampling values that were used: `temperature`, `top_p`, `presence_penalty`, `frequency_penalty`.
    #[schema(value_type = Object, required = false)]
    sampling: Value,
    /// For chains: which tiers were tried, and why others did not answer.
    #[schema(value_type = Object, required = false)]
    tierbar: Value,
}

constant!(ChatCompletionObject = "chat.completion");

#[derive(Debug, ToSchema)]
struct ChatChoice {
    index: i64,
    /// The assistant's message: `role`, `content`, and where present `reasoning_content` and `tool_calls`.
    #[schema(value_type = Object)]
    message: Value,
    /// Why the answer ended, such as `stop`, `length` or `tool_calls`.
    finish_reason: Option<String>,
}

/// A text completion.
#[derive(Debug, ToSchema)]
pub(super) struct TextCompletion {
    #[schema(required = false)]
    id: String,
    #[schema(inline)]
    object: TextCompletionObject,
    /// In seconds since 1970.
    #[schema(required = false)]
    created: i64,
    /// The model that answered.
    #[schema(required = false)]
    model: String,
    #[schema(inline)]
    choices: Vec<TextChoice>,
    #[schema(required = false)]
    usage: Usage,
    /// What prefill and decode took, as in llama-server.
    #[schema(value_type = Object, required = false)]
    timings: Value,
    /// The sampling values that were used: `temperature`, `top_p`, `presence_penalty`, `frequency_penalty`.
    #[schema(value_type = Object, required = false)]
    sampling: Value,
    /// For chains: which tiers were tried, and why others did not answer.
    #[schema(value_type = Object, required = false)]
    tierbar: Value,
}

constant!(TextCompletionObject = "text_completion");

#[derive(Debug, ToSchema)]
struct TextChoice {
    index: i64,
    text: String,
    /// Why the answer ended, such as `stop` or `length`.
    finish_reason: Option<String>,
}

/// How many tokens the request took.
#[derive(Debug, ToSchema)]
pub struct Usage {
    prompt_tokens: i64,
    #[schema(required = false)]
    completion_tokens: i64,
    total_tokens: i64,
}

/// A vector of length 1 for each text.
#[derive(Debug, ToSchema)]
pub(super) struct Embeddings {
    #[schema(inline)]
    object: ListObject,
    /// The model that answered.
    #[schema(required = false)]
    model: String,
    #[schema(inline)]
    data: Vec<Embedding>,
    #[schema(required = false)]
    usage: Usage,
}

constant!(ListObject = "list");

#[derive(Debug, ToSchema)]
struct Embedding {
    #[schema(inline)]
    object: EmbeddingObject,
    /// The text's place in the request.
    index: i64,
    #[schema(inline)]
    embedding: Vector,
}

constant!(EmbeddingObject = "embedding");

/// Numbers, or their bytes in base64.
#[derive(Debug, ToSchema)]
#[serde(untagged)]
enum Vector {
    Numbers(Vec<f64>),
    Base64(String),
}

/// Everything that a request can name.
#[derive(Debug, ToSchema)]
pub struct Models {
    #[schema(inline)]
    object: ListObject,
    data: Vec<Model>,
}

/// What a request can name as its `model`.
#[derive(Debug, ToSchema)]
pub struct Model {
    id: String,
    #[schema(inline)]
    object: ModelObject,
    /// When the model's file was changed, in seconds since 1970; of an endpoint, when it was first listed.
    created: i64,
    owned_by: String,
    /// The tokens that fit into the context, with the answer; of several tiers the least. Not of endpoints.
    context_length: Option<u32>,
    /// The same by vLLM's name.
    max_model_len: Option<u32>,
    #[schema(inline, required = false)]
    tierbar: ModelEntry,
}

constant!(ModelObject = "model");

#[derive(Debug, ToSchema)]
struct ModelEntry {
    #[schema(inline)]
    kind: ModelKind,
    #[schema(inline, required = false)]
    state: ModelState,
    /// A tier's model.
    model: Option<String>,
    /// A chain's steps.
    #[schema(required = false)]
    steps: Vec<String>,
    /// What a message may contain; empty if that is unknown.
    input_modalities: Vec<Modality>,
    /// The tiers that use a model.
    #[schema(required = false)]
    tiers: Vec<String>,
}

#[derive(Debug, ToSchema)]
#[schema(rename_all = "lowercase")]
enum ModelKind {
    Router,
    Tier,
    Chain,
    Model,
}

/// A tier's state.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "lowercase")]
enum ModelState {
    Stopped,
    Starting,
    Ready,
    Busy,
    Stopping,
    Failed,
}

fn stop() -> Schema {
    let strings = ArrayBuilder::new()
        .items(String::schema())
        .max_items(Some(64));
    let null = utoipa::openapi::Object::with_type(Type::Null);
    OneOfBuilder::new()
        .item(null)
        .item(String::schema())
        .item(strings)
        .description(Some("A string, or up to 64 strings, that end the answer."))
        .into()
}

pub fn tool_choice() -> Schema {
    OneOfBuilder::new()
        .item(String::schema())
        .item(utoipa::openapi::Object::new())
        .description(Some(
            "`auto`, `none`, `required`, a function, or `allowed_tools`.",
        ))
        .into()
}
