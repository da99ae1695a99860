//! The worker's HTTP API: OpenAI's inference calls and some of llama-server's.

mod answer;
mod contexts;
mod embeddings;
mod generation;
mod prompts;
mod reader;
mod rerank;
mod running;

use crate::{
    bad,
    generate::{Generations, Job, JobGoal},
    llama::{ChatTemplate, Interrupt, Model, Pooling, Projector},
    media::MediaReader,
    pause::Pause,
    request,
    saved_contexts::SavedContexts,
    swap::{ConversationSwap, Swapping},
    trims::TrimRequests,
};
use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use running::{RunningJobs, WaitingClient};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    sync::{Arc, mpsc},
    time::Duration,
};
use tierbar_core::{Code, Error, paging::Residency, sampling::ModelSampling, worker::Memory};
use tierbar_paging::PagingCost;
use tierbar_request_fields::wrong_field;

/// The most prompts in one request.
const MOST_PROMPTS: usize = 64;
/// A longer pause takes another call, so that a host that died does not leave its worker paused.
const LONGEST_YIELD: Duration = Duration::from_secs(60);
/// A prompt of a million tokens is a few megabytes; a body beyond this is not a prompt.
const MAX_BODY: usize = 32 << 20;

/// The state that the handlers share.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) model: Arc<Model>,
    /// Set if the model only produces embeddings, or scores.
    pub(crate) pooling: Option<Pooling>,
    pub(crate) template: ChatTemplate,
    pub(crate) jobs: mpsc::SyncSender<Job>,
    /// The `model` in answers.
    pub(crate) id: String,
    pub(crate) path: String,
    pub(crate) context_tokens: u32,
    pub(crate) slots: u16,
    pub(crate) threads: u16,
    pub(crate) batch: u32,
    /// Whether the model thinks where a request does not say.
    pub(crate) thinking: bool,
    /// What a request leaves out.
    pub(crate) sampling: ModelSampling,
    pub(crate) interrupt: Arc<Interrupt>,
    pub(crate) memory: Memory,
    pub(crate) generations: Arc<Generations>,
    /// The reader of images and audio, or why there is none.
    pub(crate) media: Result<MediaReader, Error>,
    /// Set if there is a folder for them.
    pub(crate) saved_contexts: Option<Arc<SavedContexts>>,
    /// Set if conversations are kept when the worker ends.
    pub(crate) swap: Swapping,
    pub(crate) trims: Arc<TrimRequests>,
    pub(crate) pause: Arc<Pause>,
}

pub(crate) fn router(engine: Arc<Engine>) -> Router {
    Router::new()
        .route("/health", get(async || Json(json!({"status": "ok"}))))
        .route("/props", get(report_properties))
        .route("/experts", get(report_experts))
        .route("/yield", post(pause))
        .route("/trim", post(trim))
        .route("/tokenize", post(tokenize))
        .route("/apply-template", post(apply_template))
        .route("/v1/chat/completions", post(generation::answer_chat))
        .route("/v1/chat/tokens", post(generation::count_tokens))
        .route("/v1/completions", post(generation::answer_completion))
        .route("/v1/embeddings", post(embeddings::embed))
        .route("/v1/rerank", post(rerank::rerank))
        .merge(contexts::routes())
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(engine)
}

/// An error as a response.
struct Refusal(Error);

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.code.http_status())
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, Json(self.0.openai_body())).into_response()
    }
}

type EngineState = State<Arc<Engine>>;

/// Reports the loaded model and its memory, in bytes.
async fn report_properties(State(engine): EngineState) -> Json<Value> {
    let projector = engine.media.as_ref().map(|reader| &reader.projector);
    Json(json!({
        "model_alias": engine.id,
        "model_path": engine.path,
        "model_description": engine.model.description(),
        "total_slots": engine.slots,
        "threads": engine.threads,
        "batch": engine.batch,
        "memory": engine.memory,
        "yields_seconds": engine.pause.left().as_secs_f64(),
        "generations": *engine.generations,
        "experts": engine.model.paged.as_ref().map(|paged| expert_cache_report(&paged.spent().cost)),
        "encodings": projector.map(|projector| &*projector.encoding).ok(),
        "tools": if engine.template.calls_tools { "native" } else { "generic" },
        "modalities": {
            "vision": projector.is_ok_and(Projector::sees),
            "audio": projector.is_ok_and(Projector::hears),
        },
        "default_generation_settings": {"n_ctx": engine.context_tokens},
    }))
}

/// What paging experts has cost since the start.
fn expert_cache_report(cost: &PagingCost) -> Value {
    json!({
        "held_bytes": cost.held_bytes,
        "read_bytes": cost.read_bytes,
        "waited_ms": cost.waited.as_secs_f64() * 1e3,
        "hits": cost.stats.hits,
        "misses": cost.stats.misses,
        "read_ahead": cost.stats.ahead,
        "evicted": cost.stats.evicted,
    })
}

/// Reports which experts, or layers of a dense model, are in memory; `null` if nothing is paged.
async fn report_experts(State(engine): EngineState) -> Result<Json<Option<Residency>>, Refusal> {
    let model = Arc::clone(&engine.model);
    // The system is asked about all pages of the file where it decides what stays.
    let found = run_blocking(move || model.paged.as_ref().map(|paged| paged.residency())).await?;
    Ok(Json(found))
}

/// Frees the checkpoints of idle conversations, the rows of recent images and half of the experts, and returns free memory to
/// the system. Running generations continue.
async fn trim(State(engine): EngineState) -> Result<Json<Value>, Refusal> {
    // An embedding model keeps nothing.
    let checkpoints = if engine.pooling.is_some() {
        0
    } else {
        let trimmed = engine.trims.request();
        engine.wake()?;
        trimmed.await.unwrap_or(0)
    };
    let media = engine.media.as_ref().map_or(0, MediaReader::forget);
    let model = Arc::clone(&engine.model);
    let experts = run_blocking(move || {
        let freed = model.paged.as_ref().map_or(0, |paged| paged.shrink());
        tierbar_telemetry::return_memory();
        freed
    })
    .await?;
    Ok(Json(
        json!({"checkpoint_bytes": checkpoints, "media_bytes": media, "expert_bytes": experts}),
    ))
}

#[derive(Deserialize)]
struct YieldRequest {
    seconds: f64,
}

/// Pauses all computation for `seconds` from now. A new call replaces the pause; 0 ends it.
async fn pause(State(engine): EngineState, body: Bytes) -> Result<Json<Value>, Refusal> {
    let YieldRequest { seconds } = parse_body(&body)?;
    let length = Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|length| *length <= LONGEST_YIELD)
        .ok_or_else(|| {
            let longest = LONGEST_YIELD.as_secs();
            bad(format!("`seconds` is {seconds}; send 0 to {longest}"))
        })?;
    engine.pause.set(length);
    if !length.is_zero() {
        engine.interrupt.request();
    }
    Ok(Json(json!({"seconds": seconds})))
}

#[derive(Deserialize)]
struct TokenizeRequest {
    content: String,
    #[serde(default)]
    add_special: bool,
    parse_special: Option<bool>,
}

async fn tokenize(State(engine): EngineState, body: Bytes) -> Result<Json<Value>, Refusal> {
    let request: TokenizeRequest = parse_body(&body)?;
    let tokens = run_blocking(move || {
        let parse_special = request.parse_special.unwrap_or(true);
        let model = &engine.model;
        model.tokenize(&request.content, request.add_special, parse_special)
    })
    .await??;
    Ok(Json(json!({"tokens": tokens})))
}

async fn apply_template(State(engine): EngineState, body: Bytes) -> Result<Json<Value>, Refusal> {
    let request = engine.read_request(&body)?;
    if request.has_media()
        && let Ok(_reader) = &engine.media
    {
        return Err(
            bad("`messages` contain images or audio, which a text prompt cannot hold")
                .hint("send only text, or use /v1/chat/completions")
                .into(),
        );
    }
    let prompt = run_blocking(move || engine.rendered(&request)).await??;
    Ok(Json(json!({"prompt": prompt.prompt})))
}

impl Engine {
    /// Requests that the conversations in memory be written and the process ended. Returns `None` if none are kept.
    pub(crate) fn end(&self) -> Option<&ConversationSwap> {
        let swap = self.swap.as_deref()?;
        swap.request();
        self.pause.set(Duration::ZERO);
        self.interrupt.request();
        let _ended = self.wake();
        Some(swap)
    }

    /// Wakes the engine thread with an empty job, so that it handles pending requests.
    ///
    /// # Errors
    /// [`Code::WorkerCrashed`] if the thread has ended.
    fn wake(&self) -> Result<(), Error> {
        let (source, running) = RunningJobs::begin(self, 0);
        drop(running);
        match self.queue(source.job(0, Vec::new(), JobGoal::Load)) {
            // With a full queue, it is awake.
            Err(error) if error.code == Code::Overloaded => Ok(()),
            woken => woken,
        }
    }

    fn queue(&self, job: Job) -> Result<(), Error> {
        if let Some(pooling) = self.pooling
            && !matches!(job.goal, JobGoal::Embed)
        {
            let (what, send) = match pooling {
                Pooling::Rank => ("scores", "documents to /v1/rerank"),
                _ => ("embeddings", "texts to /v1/embeddings"),
            };
            return Err(bad(format!("this model produces {what}, not text"))
                .hint(format!("send {send}, or choose a chat model for this tier")));
        }
        self.jobs.try_send(job).map_err(|error| match error {
            mpsc::TrySendError::Full(_) => {
                let message = "too many requests are waiting for this model";
                Error::new(Code::Overloaded, message).hint("try again later")
            }
            mpsc::TrySendError::Disconnected(_) => {
                Error::new(Code::WorkerCrashed, "the engine thread has ended")
            }
        })
    }
}

fn parse_body<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(|error| {
        let field =
            wrong_field::describe::<T>(body).or_else(|| request::describe_wrong_option(body));
        let wrong = field.unwrap_or_else(|| error.to_string());
        bad(format!("the request body is invalid: {wrong}"))
    })
}

/// Runs work on a blocking thread: rendering and tokenizing a long prompt would delay other requests.
async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        let message = format!("the thread of the request failed: {error}");
        Error::new(Code::Internal, message)
    })
}
