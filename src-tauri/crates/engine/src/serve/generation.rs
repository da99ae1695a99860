//! Chats and completions: the prompt is read, jobs are queued for its answers, and their events become the response.

use super::{
    Engine, EngineState, Refusal,
    answer::{Answer, AnswerKind, PromptReport, sampling_report},
    parse_body, run_blocking,
    running::{RunningJobs, WaitingClient},
};
use crate::{
    bad,
    generate::{AnswerParams, AnswerRules, Job, JobGoal, Media, check_fits},
    llama::{AnswerParser, Sampler, Sampling, Token},
    request::{CompletionRequest, Options},
    saved_state::SavedState,
};
use axum::{
    Json,
    body::Bytes,
    extract::State,
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use std::{iter::repeat_n, sync::Arc};
use tierbar_core::Error;

/// The most log probabilities of prompts in one answer, of a few tens of bytes each.
const MOST_SCORES: usize = 1 << 20;

pub(super) async fn answer_chat(
    State(engine): EngineState,
    body: Bytes,
) -> Result<Response, Refusal> {
    let renderer = Arc::clone(&engine);
    let client = WaitingClient::default();
    let gone = Arc::clone(&client.gone);
    let (request, (tokens, media), prompt, parser) = run_blocking(move || {
        let mut request = renderer.read_request(&body)?;
        request.options.check_chat()?;
        let (prompt, read) = renderer.read_chat(&mut request, true, &gone)?;
        // Before anything is made of a prompt of any length.
        check_fits(read.0.len(), renderer.context_tokens as usize)?;
        let parser = AnswerParser::for_prompt(&prompt)?;
        Ok::<_, Error>((request, read, prompt, parser))
    })
    .await??;
    let wanted = GenerationRequest {
        kind: AnswerKind::Chat {
            parser: parser.map(Arc::new),
            function_call: request.wants_function_call(),
            writable: request.writable_tools().map(Arc::new),
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
    let started = start_generation(&engine, wanted, &request.options).await;
    started.map_err(|Refusal(error)| Refusal(request.explain(error)))
}

pub(super) async fn count_tokens(
    State(engine): EngineState,
    body: Bytes,
) -> Result<Json<Value>, Refusal> {
    let client = WaitingClient::default();
    let gone = Arc::clone(&client.gone);
    let tokens = run_blocking(move || {
        let mut request = engine.read_request(&body)?;
        let (_, (tokens, _)) = engine.read_chat(&mut request, true, &gone)?;
        Ok::<_, Error>(tokens.len())
    })
    .await??;
    Ok(Json(json!({"tokens": tokens})))
}

pub(super) async fn answer_completion(
    State(engine): EngineState,
    body: Bytes,
) -> Result<Response, Refusal> {
    let mut request: CompletionRequest = parse_body(&body)?;
    let prompts = std::mem::take(&mut request.prompt.0);
    let echo = request.options.echo();
    let tokenizer = Arc::clone(&engine);
    let (prompts, echoes, constraint, request) = run_blocking(move || {
        let (prompts, echoes) = tokenizer.read_prompts(prompts, echo)?;
        let constraint = request.options.constraint()?;
        Ok::<_, Error>((prompts, echoes, constraint, request))
    })
    .await??;
    let wanted = GenerationRequest {
        kind: AnswerKind::Completion,
        prompts,
        media: Arc::default(),
        echoes,
        constraint,
        from_tools: false,
        shown: Vec::new(),
        stops: Vec::new(),
        thinks: false,
    };
    let started = start_generation(&engine, wanted, &request.options).await;
    started.map_err(|Refusal(error)| Refusal(request.options.explain(error)))
}

struct GenerationRequest {
    kind: AnswerKind,
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
fn refused_tools_error(error: &Error) -> Error {
    let message = format!("`tools` cannot be offered: {}", error.message);
    Error::new(error.code, message)
        .hint("send fewer tools, or simpler schemas for their `parameters`")
}

/// Queues a job for each answer, and returns them as a stream or whole.
async fn start_generation(
    engine: &Arc<Engine>,
    wanted: GenerationRequest,
    options: &Options,
) -> Result<Response, Refusal> {
    let answers = options.answers()? as usize;
    let sampling = sampling_of_request(engine, wanted.thinks, options)?;
    let own_stops = options.stops()?;
    // A template's markers end an answer as the model's own end token does.
    let stops = if options.ignore_eos() {
        own_stops.clone()
    } else {
        [own_stops.clone(), wanted.stops].concat()
    };
    let rules = AnswerRules {
        stops,
        shown: wanted.shown,
        max_tokens: options.max_tokens()?,
        ignore_eos: options.ignore_eos(),
        log_probabilities: options.log_probabilities()?,
        prompt_probabilities: options.prompt_probabilities()?,
        min_tokens: options.min_tokens()?,
        stop_tokens: options.stop_tokens(engine.model.vocabulary())?,
    };
    check_scores(&wanted.prompts, answers, rules.prompt_probabilities)?;
    for prompt in &wanted.prompts {
        check_fits(prompt.len(), engine.context_tokens as usize)?;
    }
    let (source, running) = RunningJobs::begin(engine, wanted.prompts.len() * answers);
    let echoes = wanted.echoes.into_iter();
    let prompted = PromptReport {
        echoes: echoes.flat_map(|echo| repeat_n(echo, answers)).collect(),
        echoed_top: rules.log_probabilities.filter(|_| options.echo()),
        top: options.prompt_logprobs,
        tokens: wanted.prompts.iter().map(Vec::len).sum(),
        answers,
    };
    let report = sampling_report(&sampling);
    let answer = Answer::new(wanted.kind, engine.id.clone(), prompted, own_stops, report);
    // The cache holds no logits.
    let cache_prompt = options.cache_prompt() && rules.prompt_probabilities.is_none();
    let queue = Arc::clone(engine);
    run_blocking(move || {
        let each = wanted.prompts.iter().flat_map(|prompt| {
            let saved = cache_prompt.then(|| queue.saved(prompt)).flatten();
            (0..answers).map(move |answer| (prompt, saved.clone(), answer))
        });
        for (index, (prompt, saved, answer)) in each.enumerate() {
            let sampling = sampling.clone().of_answer(answer);
            let model = Arc::clone(&queue.model);
            let sampler = Sampler::new(model, &sampling, &wanted.constraint, prompt);
            let answering = AnswerParams {
                sampler: sampler.map_err(|error| match wanted.from_tools {
                    true => refused_tools_error(&error),
                    false => error,
                })?,
                rules: rules.clone(),
            };
            queue.queue(Job {
                media: Arc::clone(&wanted.media),
                cache_prompt,
                saved,
                ..source.job(index, prompt.clone(), JobGoal::Answer(Box::new(answering)))
            })?;
        }
        Ok::<_, Error>(())
    })
    .await??;
    if options.stream() {
        Ok(answer.stream(running, options.include_usage()).await?)
    } else {
        Ok(Json(answer.whole(running).await?).into_response())
    }
}

/// The sampling of a request, without the tokens that never come.
fn sampling_of_request(
    engine: &Engine,
    thinks: bool,
    options: &Options,
) -> Result<Sampling, Error> {
    let own = if thinks {
        engine.sampling.thinking
    } else {
        engine.sampling.answer
    };
    let mut sampling = options.sampling(engine.model.vocabulary(), own)?;
    let mut never = engine.model.suppressed();
    if options.ignore_eos() {
        never.extend(engine.model.end_tokens());
    }
    let biases = never.into_iter().map(|token| (token, f32::NEG_INFINITY));
    sampling.logit_bias.extend(biases);
    Ok(sampling)
}

impl Engine {
    /// Returns the saved state that has most of the prompt; of two with as much, the one that was saved by name.
    fn saved(&self, prompt: &[Token]) -> Option<SavedState> {
        let swapped = self.swap.as_ref().map(|swap| &swap.states);
        let all = swapped.into_iter().chain(self.saved_contexts.as_deref());
        all.filter_map(|states| states.find(prompt))
            .max_by_key(|state| state.usable(prompt))
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
    Err(bad(format!(
        "the log probabilities of the prompts would be {scores} values; an answer has at most {MOST_SCORES}"
    ))
        .hint("send fewer prompts at once, or ask for fewer alternatives"))
}
