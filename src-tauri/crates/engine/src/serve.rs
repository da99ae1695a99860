//! The worker's HTTP surface: OpenAI's inference calls and a few of llama-server's.

mod answer;

use crate::{
    generate::{Event, Generations, Job, check_fits},
    llama::{ChatTemplate, Model, Token},
    request::{ChatRequest, CompletionRequest, Options, PromptInput},
};
use answer::{Answer, Kind};
use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
    mpsc,
};
use tierbar_core::{Code, Error, worker::Memory};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// A prompt of a million tokens is a few megabytes; a body beyond this is not a prompt.
const MAX_BODY: usize = 32 << 20;

/// What the handlers share.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) model: Arc<Model>,
    pub(crate) template: ChatTemplate,
    pub(crate) jobs: mpsc::SyncSender<Job>,
    /// The name that answers carry as their `model`.
    pub(crate) id: String,
    pub(crate) path: String,
    pub(crate) context_tokens: u32,
    pub(crate) threads: u16,
    pub(crate) memory: Memory,
    pub(crate) generations: Arc<Generations>,
}

pub(crate) fn router(engine: Arc<Engine>) -> Router {
    Router::new()
        .route("/health", get(async || Json(json!({"status": "ok"}))))
        .route("/props", get(props))
        .route("/tokenize", post(tokenize))
        .route("/apply-template", post(apply_template))
        .route("/v1/chat/completions", post(chat))
        .route("/v1/completions", post(completion))
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

type Shared = State<Arc<Engine>>;

/// What is loaded and what it took, in bytes.
async fn props(State(engine): Shared) -> Json<Value> {
    Json(json!({
        "model_alias": engine.id,
        "model_path": engine.path,
        "model_description": engine.model.description(),
        "total_slots": 1,
        "threads": engine.threads,
        "memory": engine.memory,
        "generations": *engine.generations,
        "default_generation_settings": {"n_ctx": engine.context_tokens},
    }))
}

#[derive(Deserialize)]
struct TokenizeRequest {
    content: String,
    #[serde(default)]
    add_special: bool,
    #[serde(default = "yes")]
    parse_special: bool,
}

fn yes() -> bool {
    true
}

async fn tokenize(State(engine): Shared, body: Bytes) -> Result<Json<Value>, Refusal> {
    let request: TokenizeRequest = read(&body)?;
    let tokens = off_the_reactor(move || {
        engine
            .model
            .tokenize(&request.content, request.add_special, request.parse_special)
    })
    .await??;
    Ok(Json(json!({"tokens": tokens})))
}

async fn apply_template(State(engine): Shared, body: Bytes) -> Result<Json<Value>, Refusal> {
    let request: ChatRequest = read(&body)?;
    let input = request.template_input()?;
    let prompt = off_the_reactor(move || engine.template.apply(&input)).await??;
    Ok(Json(json!({"prompt": prompt.prompt})))
}

async fn chat(State(engine): Shared, body: Bytes) -> Result<Response, Refusal> {
    let request: ChatRequest = read(&body)?;
    let input = request.template_input()?;
    let renderer = Arc::clone(&engine);
    let (tokens, prompt) = off_the_reactor(move || {
        let prompt = renderer.template.apply(&input)?;
        Ok::<_, Error>((renderer.model.tokenize(&prompt.prompt, true, true)?, prompt))
    })
    .await??;
    start(&engine, Kind::Chat, &request.options, tokens, prompt.stops).await
}

async fn completion(State(engine): Shared, body: Bytes) -> Result<Response, Refusal> {
    let mut request: CompletionRequest = read(&body)?;
    let prompt = request.prompt()?;
    let tokenizer = Arc::clone(&engine);
    let tokens = off_the_reactor(move || tokenizer.tokens_of(prompt)).await??;
    start(
        &engine,
        Kind::Completion,
        &request.options,
        tokens,
        Vec::new(),
    )
    .await
}

impl Engine {
    fn tokens_of(&self, prompt: PromptInput) -> Result<Vec<Token>, Error> {
        match prompt {
            PromptInput::Text(text) => self.model.tokenize(&text, true, true),
            PromptInput::Tokens(tokens) => {
                let known = |&token: &Token| {
                    usize::try_from(token).is_ok_and(|id| id < self.model.vocabulary())
                };
                match tokens.iter().find(|token| !known(token)) {
                    None => Ok(tokens),
                    Some(token) => Err(Error::new(
                        Code::BadRequest,
                        format!("`prompt` holds {token}, which is no token of this model"),
                    )),
                }
            }
        }
    }
}

/// Queues the job and answers with its stream or its whole.
async fn start(
    engine: &Arc<Engine>,
    kind: Kind,
    options: &Options,
    prompt: Vec<Token>,
    template_stops: Vec<String>,
) -> Result<Response, Refusal> {
    check_fits(prompt.len(), engine.context_tokens as usize)?;
    let mut sampling = options.sampling(engine.model.vocabulary())?;
    if options.ignore_eos() {
        sampling.logit_bias.extend(
            engine
                .model
                .end_tokens()
                .into_iter()
                .map(|token| (token, f32::NEG_INFINITY)),
        );
    }
    let mut stops = options.stops();
    stops.extend(template_stops);
    let (events, receiver) = unbounded_channel();
    let running = Running {
        events: receiver,
        cancel: Arc::new(AtomicBool::new(false)),
    };
    let job = Job {
        prompt,
        sampling,
        stops,
        max_tokens: options.max_tokens()?,
        ignore_eos: options.ignore_eos(),
        cache_prompt: options.cache_prompt(),
        cancel: Arc::clone(&running.cancel),
        events,
    };
    engine.jobs.try_send(job).map_err(|error| match error {
        mpsc::TrySendError::Full(_) => {
            Error::new(Code::Overloaded, "too many requests wait for this model")
                .hint("try again when some of them are done")
        }
        mpsc::TrySendError::Disconnected(_) => {
            Error::new(Code::WorkerCrashed, "the engine's thread has ended")
        }
    })?;
    let answer = Answer::new(kind, engine.id.clone());
    if options.stream() {
        answer
            .stream(running, options.include_usage())
            .await
            .map_err(Refusal)
    } else {
        answer
            .whole(running)
            .await
            .map(|body| Json(body).into_response())
            .map_err(Refusal)
    }
}

/// A job's events. Dropping it, as happens when the client goes away, ends the job.
#[derive(Debug)]
struct Running {
    events: UnboundedReceiver<Event>,
    cancel: Arc<AtomicBool>,
}

impl Running {
    async fn next(&mut self) -> Event {
        self.events.recv().await.unwrap_or_else(|| {
            Event::Failed(Error::new(
                Code::WorkerCrashed,
                "the engine's thread ended before the answer did",
            ))
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.cancel.store(true, Ordering::Relaxed);
    }
}

fn read<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(|error| {
        Error::new(
            Code::BadRequest,
            format!("the request body does not fit: {error}"),
        )
    })
}

/// Rendering and tokenizing a long prompt takes long enough to hold other requests up.
async fn off_the_reactor<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        Error::new(
            Code::Internal,
            format!("the request's worker thread failed: {error}"),
        )
    })
}
