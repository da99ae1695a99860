//! `/v1/context`: saves conversations to files and loads them.

use super::{
    Engine, EngineState, Refusal, RunningJobs, WaitingClient, parse_body, prompts::ReadPrompt,
    run_blocking,
};
use crate::{
    bad,
    generate::{AnswerSummary, Job, JobEvent, JobGoal, Media, Timings, WrittenState, check_fits},
    llama::Token,
    request::CompletionRequest,
    saved_contexts::SavedContexts,
    saved_state::SavedState,
};
use axum::{
    Json, Router,
    body::Bytes,
    extract::State,
    routing::{get, post},
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json};
use std::sync::{Arc, atomic::AtomicBool};
use tierbar_contexts::ContextDescription;
use tierbar_core::{Code, Error, config::ContextForm};

pub(super) fn routes() -> Router<Arc<Engine>> {
    Router::new()
        .route("/v1/context", get(list))
        .route("/v1/context/save", post(save))
        .route("/v1/context/load", post(load))
        .route("/v1/context/delete", post(delete))
}

#[derive(Deserialize)]
struct ContextName {
    name: String,
}

/// Which of these fields are present decides how the rest is parsed.
#[derive(Deserialize)]
struct SaveRequest {
    name: String,
    messages: Option<IgnoredAny>,
    prompt: Option<IgnoredAny>,
    form: Option<ContextForm>,
    replace: Option<bool>,
}

async fn list(State(engine): EngineState) -> Result<Json<Value>, Refusal> {
    let contexts = engine.saved_contexts()?;
    let all = run_blocking(move || contexts.contexts.list()).await??;
    Ok(Json(json!({"object": "list", "data": all})))
}

async fn delete(State(engine): EngineState, body: Bytes) -> Result<Json<Value>, Refusal> {
    let ContextName { name } = parse_body(&body)?;
    let contexts = engine.saved_contexts()?;
    let removed = name.clone();
    run_blocking(move || contexts.contexts.remove(&removed)).await??;
    Ok(Json(json!({"name": name, "deleted": true})))
}

/// Evaluates the conversation where it is not cached, and writes its state.
async fn save(State(engine): EngineState, body: Bytes) -> Result<Json<Value>, Refusal> {
    let request: SaveRequest = parse_body(&body)?;
    let contexts = engine.saved_contexts()?;
    let (reader, name) = (Arc::clone(&engine), request.name.clone());
    let client = WaitingClient::default();
    let gone = Arc::clone(&client.gone);
    let (read, draft) = run_blocking(move || {
        let read = reader.conversation(&request, &body, &gone)?;
        // The name is checked before the prompt is evaluated.
        let replaces = request.replace.unwrap_or_default();
        let draft = reader.saved_contexts()?.draft(&request.name, replaces)?;
        Ok::<_, Error>((read, draft.in_form(request.form.unwrap_or_default())))
    })
    .await??;
    let goal = match read {
        Some(_) => JobGoal::Save(draft),
        None => JobGoal::SaveLatest(draft),
    };
    let (tokens, media) = read.unwrap_or_default();
    let (written, timings) = run_job(&engine, tokens, media, None, goal).await?;
    let written = written.ok_or_else(|| {
        let message = format!("the context \"{name}\" was not written");
        Error::new(Code::Internal, message)
    })?;
    let saved =
        run_blocking(move || contexts.seal(written.draft, written.tokens, written.bytes)).await??;
    Ok(Json(to_json(&saved, timings)))
}

/// Loads a saved context into the cache for the next request.
async fn load(State(engine): EngineState, body: Bytes) -> Result<Json<Value>, Refusal> {
    let ContextName { name } = parse_body(&body)?;
    let contexts = engine.saved_contexts()?;
    let (saved, state) = run_blocking(move || contexts.named(&name)).await??;
    let tokens = state.tokens.to_vec();
    check_fits(tokens.len(), engine.context_tokens as usize)?;
    let (_, timings) = run_job(&engine, tokens, Arc::default(), Some(state), JobGoal::Load).await?;
    Ok(Json(to_json(&saved, timings)))
}

fn to_json(saved: &ContextDescription, timings: Option<Timings>) -> Value {
    let mut json = json!(saved);
    json["raw_bytes"] = saved.raw_bytes().into();
    json["form"] = json!(saved.form());
    if let Some(timings) = timings {
        json["timings"] = json!(timings);
    }
    json
}

impl Engine {
    fn saved_contexts(&self) -> Result<Arc<SavedContexts>, Error> {
        self.saved_contexts.clone().ok_or_else(|| {
            bad("this worker has no folder for contexts").hint("start it with --contexts")
        })
    }

    /// Returns the conversation to save, without the start of an answer, or `None` for the most recent one.
    ///
    /// The last token is left out: the same prompt needs its logits again, and not every model can go back. It stays after
    /// an image, because a saved context ends with a token.
    fn conversation(
        &self,
        request: &SaveRequest,
        body: &[u8],
        gone: &Arc<AtomicBool>,
    ) -> Result<Option<ReadPrompt>, Error> {
        let (mut tokens, media) = if request.messages.is_some() {
            let mut chat = self.read_request(body)?;
            let (_, read) = self.read_chat(&mut chat, false, gone)?;
            read
        } else if request.prompt.is_some() {
            let completion: CompletionRequest = parse_body(body)?;
            let (mut prompts, _) = self.read_prompts(completion.prompt.0, false)?;
            if prompts.len() > 1 {
                return Err(bad(format!(
                    "`prompt` has {} texts; send one",
                    prompts.len()
                )));
            }
            (prompts.pop().unwrap_or_default(), Arc::default())
        } else {
            return Ok(None);
        };
        check_fits(tokens.len(), self.context_tokens as usize)?;
        if tokens.iter().nth_back(1).is_none_or(|&before| before >= 0) {
            tokens.pop();
        }
        if tokens.is_empty() {
            return Err(bad(
                "the conversation has one token; there is nothing to save",
            ));
        }
        Ok(Some((tokens, media)))
    }
}

/// Runs one job that generates no text.
async fn run_job(
    engine: &Arc<Engine>,
    prompt: Vec<Token>,
    media: Arc<[Media]>,
    saved: Option<SavedState>,
    goal: JobGoal,
) -> Result<(Option<WrittenState>, Option<Timings>), Error> {
    let (source, mut running) = RunningJobs::begin(engine, 1);
    engine.queue(Job {
        media,
        cache_prompt: true,
        saved,
        ..source.job(0, prompt, goal)
    })?;
    // Now only the engine thread has a sender, so its end is detected.
    drop(source);
    while let Some((_, event)) = running.next().await {
        match event {
            JobEvent::Saved(written, timings) => return Ok((Some(written), timings)),
            JobEvent::Done(AnswerSummary { timings, .. }) => return Ok((None, Some(timings))),
            JobEvent::Failed(error) => return Err(error),
            _ => {}
        }
    }
    Ok((None, None))
}
