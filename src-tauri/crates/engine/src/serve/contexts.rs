//! `/v1/context`: conversations are saved to files and loaded from them.

use super::{Client, Engine, Refusal, Running, Shared, off_the_reactor, prompts::ReadPrompt, read};
use crate::{
    generate::{Event, Goal, Job, Media, SavedState, Summary, Timings, Written, check_fits},
    llama::Token,
    request::{ChatRequest, CompletionRequest},
    saves::Saves,
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
use tierbar_contexts::Saved;
use tierbar_core::{Code, Error};

pub(super) fn routes() -> Router<Arc<Engine>> {
    Router::new()
        .route("/v1/context", get(list))
        .route("/v1/context/save", post(save))
        .route("/v1/context/load", post(load))
        .route("/v1/context/delete", post(delete))
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

/// Which of these are there decides how the rest is read.
#[derive(Deserialize)]
struct SaveRequest {
    name: String,
    messages: Option<IgnoredAny>,
    prompt: Option<IgnoredAny>,
}

async fn list(State(engine): Shared) -> Result<Json<Value>, Refusal> {
    let saves = engine.saves()?;
    let all = off_the_reactor(move || saves.contexts().list()).await??;
    Ok(Json(json!({"object": "list", "data": all})))
}

async fn delete(State(engine): Shared, body: Bytes) -> Result<Json<Value>, Refusal> {
    let Named { name } = read(&body)?;
    let saves = engine.saves()?;
    let removed = name.clone();
    off_the_reactor(move || saves.contexts().remove(&removed)).await??;
    Ok(Json(json!({"name": name, "deleted": true})))
}

/// Reads the conversation, as far as it has not been, and writes what the cache holds of it.
async fn save(State(engine): Shared, body: Bytes) -> Result<Json<Value>, Refusal> {
    let request: SaveRequest = read(&body)?;
    let saves = engine.saves()?;
    let (reader, name) = (Arc::clone(&engine), request.name.clone());
    let client = Client::default();
    let gone = Arc::clone(&client.gone);
    let (read, draft) = off_the_reactor(move || {
        let read = reader.conversation(&request, &body, &gone)?;
        // Its name is refused before its tokens are read.
        Ok::<_, Error>((read, reader.saves()?.draft(&request.name)?))
    })
    .await??;
    let goal = match read {
        Some(_) => Goal::Save(draft),
        None => Goal::SaveLatest(draft),
    };
    let (tokens, media) = read.unwrap_or_default();
    let (written, timings) = run(&engine, tokens, media, None, goal).await?;
    let written =
        written.ok_or_else(|| Error::new(Code::Internal, format!("\"{name}\" was not written")))?;
    let saved =
        off_the_reactor(move || saves.seal(written.draft, written.tokens, written.bytes)).await??;
    Ok(Json(told(&saved, timings)))
}

/// Puts a saved conversation into the cache, where the next request finds it.
async fn load(State(engine): Shared, body: Bytes) -> Result<Json<Value>, Refusal> {
    let Named { name } = read(&body)?;
    let saves = engine.saves()?;
    let (saved, state) = off_the_reactor(move || saves.named(&name)).await??;
    let tokens = state.tokens.to_vec();
    check_fits(tokens.len(), engine.context_tokens as usize)?;
    let (_, timings) = run(&engine, tokens, Arc::default(), Some(state), Goal::Load).await?;
    Ok(Json(told(&saved, timings)))
}

fn told(saved: &Saved, timings: Option<Timings>) -> Value {
    let mut told = json!(saved);
    if let Some(timings) = timings {
        told["timings"] = json!(timings);
    }
    told
}

impl Engine {
    fn saves(&self) -> Result<Arc<Saves>, Error> {
        self.saves.clone().ok_or_else(|| {
            Error::new(Code::BadRequest, "this worker has no folder for contexts")
                .hint("start it with --contexts")
        })
    }

    /// The conversation to save, without what only an answer's beginning would add; `None` for the one that is held.
    ///
    /// Its last token is left out: whoever sends the same again needs that one's logits, and not every model can go back.
    /// Not one behind an image: what is saved ends with a token.
    fn conversation(
        &self,
        request: &SaveRequest,
        body: &[u8],
        gone: &Arc<AtomicBool>,
    ) -> Result<Option<ReadPrompt>, Error> {
        let (mut tokens, media) = if request.messages.is_some() {
            let mut chat: ChatRequest = read(body)?;
            let (prompt, read) = self.read_chat(&mut chat, false, gone)?;
            chat.check_offers(&prompt)?;
            read
        } else if request.prompt.is_some() {
            let mut completion: CompletionRequest = read(body)?;
            let (mut prompts, _) = self.read_prompts(completion.prompts(), false)?;
            if prompts.len() > 1 {
                let message = format!("`prompt` holds {} texts: save one", prompts.len());
                return Err(Error::new(Code::BadRequest, message));
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
            let message = "the context has one token: there is nothing to save";
            return Err(Error::new(Code::BadRequest, message));
        }
        Ok(Some((tokens, media)))
    }
}

/// Waits for one job without an answer.
async fn run(
    engine: &Arc<Engine>,
    prompt: Vec<Token>,
    media: Arc<[Media]>,
    saved: Option<SavedState>,
    goal: Goal,
) -> Result<(Option<Written>, Option<Timings>), Error> {
    let (asker, mut running) = Running::begin(engine, 1);
    engine.queue(Job {
        media,
        cache_prompt: true,
        saved,
        ..asker.job(0, prompt, goal)
    })?;
    // Only the engine's thread can send now: should it end, that is seen.
    drop(asker);
    while let Some((_, event)) = running.next().await {
        match event {
            Event::Text { .. } | Event::Embedded(_) => {}
            Event::Saved(written, timings) => return Ok((Some(written), timings)),
            Event::Done(Summary { timings, .. }) => return Ok((None, Some(timings))),
            Event::Failed(error) => return Err(error),
        }
    }
    Ok((None, None))
}
