//! The worker's HTTP API: OpenAI's inference calls and some of llama-server's.

mod answer;
mod contexts;
mod embeddings;
mod experts;
mod prompts;
mod reader;
mod rerank;
mod running;
mod trim;

use crate::{
    generate::{Answering, Generations, Goal, Job, Media, check_fits},
    llama::{AnswerParser, ChatTemplate, Interrupt, Model, Pooling, Sampler, Token},
    media::Reader as MediaReader,
    pause::Pause,
    request::{self, CompletionRequest, Options},
    saved_contexts::SavedContexts,
    saved_state,
    swap::{Swap, Swapping},
    trims::Trims,
};
use answer::{Answer, Kind, Prompted, sampling_report};
use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use running::{Client, Running};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    sync::{Arc, mpsc},
    time::Duration,
};
use tierbar_core::{Code, Error, sampling::ModelSampling, worker::Memory};
use tierbar_paging::Cost;
use tierbar_request_fields::wrong_field;

/// The most log probabilities of prompts in one answer, of a few tens of bytes each.
const MOST_SCORES: usize = 1 << 20;
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
    pub(crate) trims: Arc<Trims>,
    pub(crate) pause: Arc<Pause>,
}

pub(crate) fn router(engine: Arc<Engine>) -> Router {
    Router::new()
        .route("/health", get(async || Json(json!({"status": "ok"}))))
        .route("/props", get(props))
        .route("/experts", get(experts::experts))
        .route("/yield", post(pause))
        .route("/trim", post(trim::trim))
        .route("/tokenize", post(tokenize))
        .route("/apply-template", post(apply_template))
        .route("/v1/chat/completions", post(chat))
        .route("/v1/chat/tokens", post(count))
        .route("/v1/completions", post(completion))
        .route("/v1/embeddings", post(embeddings::embeddings))
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

type Shared = State<Arc<Engine>>;

/// Reports the loaded model and its memory, in bytes.
async fn props(State(engine): Shared) -> Json<Value> {
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
        "experts": engine.model.paged().map(|paged| expert_cache(&paged.spent().cost)),
        "encodings": engine.media.as_ref().map(MediaReader::encoding).ok(),
        "tools": if engine.template.calls_tools() { "native" } else { "generic" },
        "modalities": {
            "vision": engine.media.as_ref().is_ok_and(MediaReader::sees),
            "audio": engine.media.as_ref().is_ok_and(MediaReader::hears),
        },
        "default_generation_settings": {"n_ctx": engine.context_tokens},
    }))
}

/// What paging experts has cost since the start.
fn expert_cache(cost: &Cost) -> Value {
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

#[derive(Deserialize)]
struct YieldRequest {
    seconds: f64,
}

/// Pauses all computation for `seconds` from now. A new call replaces the pause; 0 ends it.
async fn pause(State(engine): Shared, body: Bytes) -> Result<Json<Value>, Refusal> {
    let YieldRequest { seconds } = read(&body)?;
    let length = Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|length| *length <= LONGEST_YIELD)
        .ok_or_else(|| {
            let longest = LONGEST_YIELD.as_secs();
            let message = format!("`seconds` is {seconds}; send 0 to {longest}");
            Error::new(Code::BadRequest, message)
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
    let request = engine.read_request(&body)?;
    if request.has_media()
        && let Ok(_reader) = &engine.media
    {
        let message = "`messages` contain images or audio, which a text prompt cannot hold";
        return Err(Error::new(Code::BadRequest, message)
            .hint("send only text, or use /v1/chat/completions")
            .into());
    }
    let prompt = off_the_reactor(move || engine.rendered(&request)).await??;
    Ok(Json(json!({"prompt": prompt.prompt})))
}

async fn chat(State(engine): Shared, body: Bytes) -> Result<Response, Refusal> {
    let renderer = Arc::clone(&engine);
    let client = Client::default();
    let gone = Arc::clone(&client.gone);
    let (request, (tokens, media), prompt, parser) = off_the_reactor(move || {
        let mut request = renderer.read_request(&body)?;
        request.options.check_chat()?;
        let (prompt, read) = renderer.read_chat(&mut request, true, &gone)?;
        // Before anything is made of a prompt of any length.
        check_fits(read.0.len(), renderer.context_tokens as usize)?;
        let parser = AnswerParser::of(&prompt)?;
        Ok::<_, Error>((request, read, prompt, parser))
    })
    .await??;
    let wanted = Wanted {
        kind: Kind::Chat {
            parser: parser.map(Arc::new),
            function_call: request.wants_function_call(),
        },
        prompts: vec![tokens],
        media,
        echoes: Vec::new(),
        constraint: request.constraint(&prompt)?,
        from_tools: request.offers_tools(),
        shown: prompt.preserved_tokens,
        stops: prompt.stops,
        thinks: request.thinks(),
    };
    let started = start(&engine, wanted, &request.options).await;
    started.map_err(|Refusal(error)| Refusal(request.explain(error)))
}

/// Counts the tokens of a chat's prompt.
async fn count(State(engine): Shared, body: Bytes) -> Result<Json<Value>, Refusal> {
    let client = Client::default();
    let gone = Arc::clone(&client.gone);
    let tokens = off_the_reactor(move || {
        let mut request = engine.read_request(&body)?;
        let (_, (tokens, _)) = engine.read_chat(&mut request, true, &gone)?;
        Ok::<_, Error>(tokens.len())
    })
    .await??;
    Ok(Json(json!({"tokens": tokens})))
}

async fn completion(State(engine): Shared, body: Bytes) -> Result<Response, Refusal> {
    let mut request: CompletionRequest = read(&body)?;
    let prompts = std::mem::take(&mut request.prompt.0);
    let echo = request.options.echo();
    let tokenizer = Arc::clone(&engine);
    let (prompts, echoes, constraint, request) = off_the_reactor(move || {
        let (prompts, echoes) = tokenizer.read_prompts(prompts, echo)?;
        let constraint = request.options.constraint()?;
        Ok::<_, Error>((prompts, echoes, constraint, request))
    })
    .await??;
    let wanted = Wanted {
        kind: Kind::Completion,
        prompts,
        media: Arc::default(),
        echoes,
        constraint,
        from_tools: false,
        shown: Vec::new(),
        stops: Vec::new(),
        thinks: false,
    };
    let started = start(&engine, wanted, &request.options).await;
    started.map_err(|Refusal(error)| Refusal(request.options.explain(error)))
}

/// What to generate for a request.
struct Wanted {
    kind: Kind,
    prompts: Vec<Vec<Token>>,
    /// The media of the first prompt.
    media: Arc<[Media]>,
    /// The text before the answer to each prompt: empty, or one per prompt.
    echoes: Vec<String>,
    /// As [`Sampler::new`] takes it.
    constraint: String,
    /// Whether the tools constrain the answer.
    from_tools: bool,
    /// Control tokens whose text belongs to the answer.
    shown: Vec<Token>,
    /// The stop strings of the template.
    stops: Vec<String>,
    thinks: bool,
}

/// Says that it is the tools that cannot constrain an answer.
fn refused_tools(error: &Error) -> Error {
    let message = format!("`tools` cannot be offered: {}", error.message);
    Error::new(error.code, message)
        .hint("send fewer tools, or simpler schemas for their `parameters`")
}

/// Queues a job for each answer, and returns them as a stream or whole.
async fn start(
    engine: &Arc<Engine>,
    wanted: Wanted,
    options: &Options,
) -> Result<Response, Refusal> {
    let answers = options.answers()? as usize;
    let base = if wanted.thinks {
        engine.sampling.thinking
    } else {
        engine.sampling.answer
    };
    let mut sampling = options.sampling(engine.model.vocabulary(), base)?;
    let mut never = engine.model.suppressed();
    if options.ignore_eos() {
        never.extend(engine.model.end_tokens());
    }
    let biases = never.into_iter().map(|token| (token, f32::NEG_INFINITY));
    sampling.logit_bias.extend(biases);
    let report = sampling_report(&sampling);
    let own_stops = options.stops()?;
    // A template's markers end an answer as the model's own end token does.
    let stops = if options.ignore_eos() {
        own_stops.clone()
    } else {
        [own_stops.clone(), wanted.stops].concat()
    };
    let max_tokens = options.max_tokens()?;
    let log_probabilities = options.log_probabilities()?;
    let prompt_probabilities = options.prompt_probabilities()?;
    let min_tokens = options.min_tokens()?;
    let stop_tokens = options.stop_tokens(engine.model.vocabulary())?;
    check_scores(&wanted.prompts, answers, prompt_probabilities)?;
    for prompt in &wanted.prompts {
        check_fits(prompt.len(), engine.context_tokens as usize)?;
    }
    let (source, running) = Running::begin(engine, wanted.prompts.len() * answers);
    let prompt_tokens = wanted.prompts.iter().map(Vec::len).sum();
    let (kind, echoes) = (wanted.kind, wanted.echoes);
    let ignore_eos = options.ignore_eos();
    // The cache holds no logits.
    let cache_prompt = options.cache_prompt() && prompt_probabilities.is_none();
    let queue = Arc::clone(engine);
    off_the_reactor(move || {
        let saved = |prompt: &Vec<Token>| {
            if !cache_prompt {
                return None;
            }
            let named = queue
                .saved_contexts
                .as_ref()
                .and_then(|contexts| contexts.find(prompt));
            let swapped = queue.swap.as_ref().and_then(|swap| swap.find(prompt));
            saved_state::longer(prompt, named, swapped)
        };
        let each = wanted.prompts.iter().flat_map(|prompt| {
            let saved = saved(prompt);
            (0..answers).map(move |answer| (prompt, saved.clone(), answer))
        });
        for (index, (prompt, saved, answer)) in each.enumerate() {
            let sampling = sampling.clone().of_answer(answer);
            let model = Arc::clone(&queue.model);
            let sampler = Sampler::new(model, &sampling, &wanted.constraint, prompt);
            let answering = Answering {
                sampler: sampler.map_err(|error| match wanted.from_tools {
                    true => refused_tools(&error),
                    false => error,
                })?,
                stops: stops.clone(),
                shown: wanted.shown.clone(),
                max_tokens,
                ignore_eos,
                log_probabilities,
                prompt_probabilities,
                min_tokens,
                stop_tokens: stop_tokens.clone(),
            };
            queue.queue(Job {
                media: Arc::clone(&wanted.media),
                cache_prompt,
                saved,
                ..source.job(index, prompt.clone(), Goal::Answer(Box::new(answering)))
            })?;
        }
        Ok::<_, Error>(())
    })
    .await??;
    let echoes = echoes
        .into_iter()
        .flat_map(|echo| std::iter::repeat_n(echo, answers))
        .collect();
    let answer = Answer::new(
        kind,
        engine.id.clone(),
        Prompted {
            echoes,
            echoed_top: log_probabilities.filter(|_| options.echo()),
            top: options.prompt_logprobs(),
            tokens: prompt_tokens,
            answers,
        },
        own_stops,
        report,
    );
    if options.stream() {
        answer
            .stream(running, options.include_usage())
            .await
            .map_err(Refusal)
    } else {
        let body = answer.whole(running).await.map_err(Refusal)?;
        Ok(Json(body).into_response())
    }
}

/// # Errors
/// `BadRequest` for more probabilities of prompts than an answer can have.
fn check_scores(prompts: &[Vec<Token>], answers: usize, top: Option<usize>) -> Result<(), Error> {
    let Some(top) = top else { return Ok(()) };
    let tokens: usize = prompts.iter().map(Vec::len).sum();
    let scores = tokens.saturating_mul(answers).saturating_mul(top + 1);
    if scores <= MOST_SCORES {
        return Ok(());
    }
    let message = format!(
        "the log probabilities of the prompts would be {scores} values; an answer has at most {MOST_SCORES}"
    );
    Err(Error::new(Code::BadRequest, message)
        .hint("send fewer prompts at once, or ask for fewer alternatives"))
}

impl Engine {
    /// Requests that the conversations in memory be written and the process ended. Returns `None` if none are kept.
    pub(crate) fn end(&self) -> Option<&Swap> {
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
        let (source, running) = Running::begin(self, 0);
        drop(running);
        match self.queue(source.job(0, Vec::new(), Goal::Load)) {
            // With a full queue, it is awake.
            Err(error) if error.code == Code::Overloaded => Ok(()),
            woken => woken,
        }
    }

    fn queue(&self, job: Job) -> Result<(), Error> {
        if let Some(pooling) = self.pooling
            && !matches!(job.goal, Goal::Embed)
        {
            let (what, send) = match pooling {
                Pooling::Rank => ("scores", "documents to /v1/rerank"),
                _ => ("embeddings", "texts to /v1/embeddings"),
            };
            let message = format!("this model produces {what}, not text");
            return Err(Error::new(Code::BadRequest, message)
                .hint(format!("send {send}, or choose a chat model for this tier")));
        }
        self.jobs.try_send(job).map_err(|error| match error {
            mpsc::TrySendError::Full(_) => Error::new(
                Code::Overloaded,
                "too many requests are waiting for this model",
            )
            .hint("try again later"),
            mpsc::TrySendError::Disconnected(_) => {
                Error::new(Code::WorkerCrashed, "the engine thread has ended")
            }
        })
    }
}

fn read<T: serde::de::DeserializeOwned>(body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(|error| {
        let field = wrong_field::describe::<T>(body).or_else(|| request::wrong_option(body));
        let wrong = field.unwrap_or_else(|| error.to_string());
        let message = format!("the request body is invalid: {wrong}");
        Error::new(Code::BadRequest, message)
    })
}

/// Runs work on a blocking thread: rendering and tokenizing a long prompt would delay other requests.
async fn off_the_reactor<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        Error::new(
            Code::Internal,
            format!("the thread of the request failed: {error}"),
        )
    })
}
