//! `/v1/embeddings`: texts in, vectors of length 1 out.

use super::{Engine, EngineState, Refusal, RunningJobs, parse_body, run_blocking};
use crate::{
    bad,
    generate::{JobEvent, JobGoal, too_long_error},
    llama::{Pooling, Token},
    request::{PromptInput, Prompts, check_tokens, deserialize_input},
};
use axum::{Json, body::Bytes, extract::State};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{sync::Arc, time::Instant};
use tierbar_core::{Code, Error};

/// OpenAI's limit.
pub(super) const MOST_INPUTS: usize = 2048;
/// The most floats in an answer, about 45 MB of text.
const MOST_FLOATS: usize = 2 << 20;
/// Jobs of one request in the queue of a model that only embeds.
const AT_ONCE: usize = 16;

#[derive(Deserialize)]
struct Request {
    #[serde(deserialize_with = "deserialize_input")]
    input: Prompts,
    encoding_format: Option<Encoding>,
    dimensions: Option<usize>,
    /// To so many tokens longer texts are cut; -1 means the context, `None` that they are refused.
    truncate_prompt_tokens: Option<i64>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Encoding {
    Float,
    Base64,
}

pub(super) async fn embed(State(engine): EngineState, body: Bytes) -> Result<Json<Value>, Refusal> {
    if engine.pooling == Some(Pooling::Rank) {
        return Err(bad("this model ranks documents and produces no embeddings")
            .hint("choose an embedding model for this tier, or name another tier")
            .into());
    }
    let request: Request = parse_body(&body)?;
    check_dimensions(request.dimensions, engine.model.dimensions())?;
    let prompts = request.input.0;
    check_count(prompts.len(), engine.model.dimensions())?;
    let tokenizer = Arc::clone(&engine);
    let most = longest(
        request.truncate_prompt_tokens,
        engine.context_tokens as usize,
    )?;
    let tokenized = run_blocking(move || tokenizer.tokenize_inputs(prompts, most));
    let (prompts, truncated) = tokenized.await??;
    let tokens: usize = prompts.iter().map(Vec::len).sum();
    let begun = Instant::now();
    let vectors = run_jobs(&engine, prompts).await?;
    let milliseconds = begun.elapsed().as_secs_f64() * 1000.0;
    let format = request.encoding_format;
    let data = run_blocking(move || {
        let data = (0..).zip(vectors).map(|(index, vector): (usize, _)| {
            let embedding = match format {
                // OpenAI's form: little-endian floats.
                Some(Encoding::Base64) => {
                    let bytes: Vec<u8> =
                        vector.iter().flat_map(|each| each.to_le_bytes()).collect();
                    json!(BASE64_STANDARD.encode(bytes))
                }
                _ => json!(vector),
            };
            json!({"object": "embedding", "index": index, "embedding": embedding})
        });
        data.collect::<Vec<_>>()
    });
    Ok(Json(json!({
        "object": "list",
        "data": data.await?,
        "model": engine.id,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        "timings": {"prompt_ms": milliseconds},
        "truncated": truncated,
    })))
}

/// Model files do not say which shorter lengths the model supports.
fn check_dimensions(requested: Option<usize>, own: usize) -> Result<(), Error> {
    match requested {
        Some(requested) if requested != own => Err(bad(format!(
            "`dimensions` is {requested}; this model's embeddings have {own}"
        ))
        .hint("omit `dimensions`; if the model's card allows it, truncate the vectors yourself")),
        _ => Ok(()),
    }
}

/// To how many tokens longer texts are cut, if they are to be.
fn longest(wanted: Option<i64>, context: usize) -> Result<Option<usize>, Error> {
    let Some(wanted) = wanted else {
        return Ok(None);
    };
    match usize::try_from(wanted) {
        Ok(most @ 1..) => Ok(Some(most.min(context))),
        Err(_) if wanted == -1 => Ok(Some(context)),
        _ => Err(bad(format!("`truncate_prompt_tokens` is {wanted}"))
            .hint("send -1, or the number of tokens to keep")),
    }
}

/// Cuts a text's tokens. `end`: the token that the tokenizer puts behind each text, which stays there. Returns whether it was longer.
fn truncate(tokens: &mut Vec<Token>, most: usize, end: Option<Token>) -> bool {
    if tokens.len() <= most {
        return false;
    }
    let ends = tokens.last().copied().filter(|last| Some(*last) == end);
    tokens.truncate(most);
    if let (Some(end), Some(last)) = (ends, tokens.last_mut()) {
        *last = end;
    }
    true
}

fn check_count(inputs: usize, dimensions: usize) -> Result<(), Error> {
    let most = MOST_INPUTS.min(MOST_FLOATS / dimensions.max(1));
    if (1..=most).contains(&inputs) {
        return Ok(());
    }
    Err(bad(format!("`input` has {inputs} texts; send 1 to {most}")))
}

impl Engine {
    /// Returns the tokens of each text, cut to `most`, and how many were.
    fn tokenize_inputs(
        &self,
        prompts: Vec<PromptInput>,
        most: Option<usize>,
    ) -> Result<(Vec<Vec<Token>>, usize), Error> {
        let mut lists = Vec::with_capacity(prompts.len());
        let end = self.model.tokenize("", true, true)?.pop();
        let mut truncated = 0;
        for (index, prompt) in prompts.into_iter().enumerate() {
            let empty = matches!(&prompt, PromptInput::Text(text) if text.is_empty());
            let mut tokens = match prompt {
                PromptInput::Text(text) => self.model.tokenize(&text, true, true)?,
                PromptInput::Tokens(tokens) => {
                    check_tokens("input", &tokens, self.model.vocabulary())?;
                    tokens
                }
            };
            if empty || tokens.is_empty() {
                return Err(bad(format!("text {index} of `input` is empty")));
            }
            if let Some(most) = most {
                truncated += usize::from(truncate(&mut tokens, most, end));
            }
            self.check_length(&format!("text {index} of `input`"), index, tokens.len())?;
            lists.push(tokens);
        }
        Ok((lists, truncated))
    }

    pub(super) fn check_length(
        &self,
        what: &str,
        index: usize,
        length: usize,
    ) -> Result<(), Error> {
        let room = self.context_tokens as usize;
        if length <= room {
            return Ok(());
        }
        Err(too_long_error(what, length, room)
            .hint("send the text in parts, or set a larger context for the tier")
            .detail("index", index)
            .detail("prompt_tokens", length)
            .detail("context_tokens", room))
    }
}

/// Embeds the prompts, or scores them, some at a time.
pub(super) async fn run_jobs(
    engine: &Arc<Engine>,
    prompts: Vec<Vec<Token>>,
) -> Result<Vec<Vec<f32>>, Error> {
    let (source, mut running) = RunningJobs::begin(engine, 0);
    let mut source = Some(source);
    let mut vectors = vec![Vec::new(); prompts.len()];
    // A generative model has few slots, with conversations in them.
    let at_once = if engine.pooling.is_some() { AT_ONCE } else { 1 };
    let mut rest = prompts.into_iter().enumerate().peekable();
    loop {
        while running.left < at_once
            && let (Some(source), Some((index, prompt))) = (&source, rest.peek())
        {
            match engine.queue(source.job(*index, prompt.clone(), JobGoal::Embed)) {
                Ok(()) => {
                    rest.next();
                    running.left += 1;
                }
                // A queued job makes room when it is done.
                Err(error) if error.code == Code::Overloaded && running.left > 0 => break,
                Err(error) => return Err(error),
            }
        }
        if rest.peek().is_none() {
            // Only the engine's thread can send now, so its end is detected.
            source = None;
        }
        match running.next().await {
            None => return Ok(vectors),
            Some((index, JobEvent::Embedded(vector))) => vectors[index] = vector,
            Some((_, JobEvent::Failed(error))) => return Err(error),
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_before_its_last_token() {
        let cut = |most: usize, end: Option<Token>| {
            let mut tokens: Vec<Token> = vec![1, 7, 8, 9, 2];
            (truncate(&mut tokens, most, end), tokens)
        };
        assert_eq!(cut(5, Some(2)), (false, vec![1, 7, 8, 9, 2]));
        assert_eq!(cut(3, Some(2)), (true, vec![1, 7, 2]));
        // The token of a beginning, or none at all.
        assert_eq!(cut(3, Some(1)), (true, vec![1, 7, 8]));
        assert_eq!(cut(1, None), (true, vec![1]));
    }

    #[test]
    fn a_length_to_cut_to_is_at_most_the_context() {
        for (wanted, most) in [
            (None, None),
            (Some(-1), Some(9)),
            (Some(4), Some(4)),
            (Some(99), Some(9)),
        ] {
            assert_eq!(longest(wanted, 9).unwrap(), most);
        }
        for wrong in [0, -2] {
            assert_eq!(longest(Some(wrong), 9).unwrap_err().code, Code::BadRequest);
        }
    }
}
