//! `POST /v1/compress`: a text in at most so many words, with its names, numbers and dates held against the source.

use super::{
    ask::{ONLY_JSON, Session, TaskPrompt, TaskResult, text_of, text_schema},
    batch::{self, Items},
    schema::CompressAnswer,
};
use crate::Jobs;
use axum::{body::Body, extract::State, response::Response};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{collections::BTreeSet, ops::RangeInclusive, sync::Arc};
use tierbar_core::{Code, Error};
use tierbar_fetch::blocking;
use tierbar_http::{RequestHints, error::Failure, request::check_range};
use tierbar_inference::body;
use tierbar_tasks::{
    Task, count_words,
    delimited::delimited,
    facts::{self, FactComparison},
    fallback,
};
use utoipa::ToSchema;

const WORDS: RangeInclusive<u32> = 5..=2000;
/// Facts that the second attempt is reminded of.
const REMINDED: usize = 40;
/// Of so many facts, a text has to keep a part to count as the same text, shorter.
const FACTS: usize = 3;
const LEAST_PART: usize = 4;

/// Texts to shorten.
#[derive(Deserialize, ToSchema)]
struct CompressRequest {
    /// The text.
    #[schema(value_type = Option<String>)]
    text: Option<Value>,
    /// Instead of `text`: at most 256 texts.
    #[schema(value_type = Option<Vec<String>>)]
    texts: Option<Vec<Value>>,
    /// The most words of the shorter text.
    #[schema(minimum = 5, maximum = 2000)]
    words: u32,
    /// A tier, a chain, a model's id, or `auto`. Default: `primary`.
    model: Option<String>,
}

/// Shortens a text, and compares its names, numbers and dates with the source.
#[utoipa::path(
    post,
    path = "/v1/compress",
    reach(Inference, Spends, Counts),
    request_body = CompressRequest,
    responses((status = 200, description = "The answer, or one for each text", body = CompressAnswer)),
)]
pub(super) async fn compress(
    State(jobs): State<Arc<Jobs>>,
    RequestHints(hints): RequestHints,
    body: Body,
) -> Result<Response, Failure> {
    let wanted: CompressRequest = body::request(body).await?;
    let limit = check_range("words", wanted.words, WORDS)?;
    let items = Items::texts(wanted.text, wanted.texts, &[])?;
    let (model, none) = (wanted.model.as_deref(), BTreeSet::new());
    let one = |text: Value, trail| {
        let session = Session::new(&jobs.inference, Task::Compress, model, &none, &hints, trail);
        async move { shorten(session, batch::prompt(&text)?.into(), limit).await }
    };
    Ok(batch::answer(&jobs, Task::Compress, items, one).await)
}

struct Attempt {
    text: String,
    words: usize,
    cut: bool,
    kept: FactComparison,
}

impl Attempt {
    /// A source may have millions of facts.
    async fn new(source: &Arc<str>, text: String, cut: bool) -> Result<Self, Error> {
        let source = Arc::clone(source);
        let compared = move || {
            Ok(Self {
                words: count_words(&text),
                kept: facts::compare(&source, &text),
                text,
                cut,
            })
        };
        blocking("comparing the texts", compared).await
    }

    fn fits(&self, limit: u32) -> bool {
        self.words <= limit as usize
    }

    /// Whether it is no shorter text of the source: too long, or nearly all of the facts are gone.
    fn is_unusable(&self, limit: u32) -> bool {
        let kept = self.kept.kept.len();
        let facts = kept + self.kept.missing.len();
        !self.fits(limit) || (facts >= FACTS && kept * LEAST_PART < facts)
    }

    /// What one made by rule has to be better in. Smaller is better.
    fn faults(&self, limit: u32) -> (bool, usize) {
        (!self.fits(limit), self.kept.missing.len())
    }

    /// What is to be done better, if anything.
    fn wanting(&self, limit: u32) -> Option<String> {
        let mut wanting = String::new();
        if !self.fits(limit) {
            wanting += &format!(
                "\nYour last text had {} words; {limit} are allowed.",
                self.words
            );
        }
        let missing = &self.kept.missing;
        if !missing.is_empty() {
            let missing = missing[..missing.len().min(REMINDED)].join("; ");
            wanting += &format!(
                "\nYour last text left out: {missing}. Put them in, as they are written here."
            );
        }
        (!wanting.is_empty()).then_some(wanting)
    }
}

async fn shorten(mut session: Session, source: Arc<str>, limit: u32) -> Result<TaskResult, Error> {
    if count_words(&source) <= limit as usize {
        let attempt = Attempt::new(&source, source.to_string(), false).await?;
        return Ok(session.done(render(&attempt, limit, 0, false), 0));
    }
    let (mut best, mut attempts) = (None, 0);
    if !session.summarizes_badly().await {
        (best, attempts) = by_model(&mut session, &source, limit).await?;
        // Who answers for `auto` or a chain is known only now.
        if session.summarizes_badly().await {
            best = None;
        }
    }
    let (best, by_rule) = match best {
        Some(best) if !best.is_unusable(limit) => (best, false),
        best => {
            let text = Arc::clone(&source);
            let shortened = move || Ok(fallback::summary(&text, limit as usize));
            let text = blocking("shortening the text", shortened).await?;
            let ruled = Attempt::new(&source, text, false).await?;
            match best {
                Some(best) if best.faults(limit) <= ruled.faults(limit) => (best, false),
                _ => (ruled, true),
            }
        }
    };
    let saved = session.tokens_of(source.len().saturating_sub(best.text.len()));
    Ok(session.done(render(&best, limit, attempts, by_rule), saved))
}

/// Returns the better of a model's two texts, if one can be read, and how many there were.
async fn by_model(
    session: &mut Session,
    source: &Arc<str>,
    limit: u32,
) -> Result<(Option<Attempt>, u32), Error> {
    let mut best: Option<Attempt> = None;
    let mut attempts = 0u32;
    let mut again = String::new();
    for _ in 0..2 {
        let prompt = TaskPrompt {
            system: include_str!("prompts/compress.md").into(),
            user: format!("At most {limit} words:\n{}{again}", delimited(source)).into(),
            schema: text_schema(),
            max_tokens: (limit * 4 + 64).min(session.context_tokens() / 2),
        };
        attempts += 1;
        let said = match session.ask(&prompt).await {
            Ok(said) => said,
            // The first attempt stands.
            Err(_) if best.is_some() => break,
            Err(error) if error.code == Code::ContextExceeded => {
                return Err(error.hint("POST /v1/summarize takes texts of any length"));
            }
            Err(error) => return Err(error),
        };
        let Some((text, cut)) = text_of(&said) else {
            again = ONLY_JSON.to_owned();
            continue;
        };
        let attempt = Attempt::new(source, text, cut).await?;
        let wanting = attempt.wanting(limit);
        let rank = |attempt: &Attempt| (attempt.faults(limit), attempt.cut, attempt.words);
        if best.as_ref().is_none_or(|best| rank(&attempt) < rank(best)) {
            best = Some(attempt);
        }
        match wanting {
            None => break,
            Some(wanting) => again = wanting,
        }
    }
    Ok((best, attempts))
}

fn render(attempt: &Attempt, limit: u32, attempts: u32, by_rule: bool) -> Value {
    json!({
        "fits": attempt.fits(limit),
        "text": attempt.text,
        "words": attempt.words,
        "cut": attempt.cut,
        "kept": attempt.kept.kept,
        "missing": attempt.kept.missing,
        "names_checked": attempt.kept.names_checked,
        "attempts": attempts,
        "fallback": by_rule,
    })
}
