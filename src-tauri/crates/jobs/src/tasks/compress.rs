//! `POST /v1/compress`: a text in at most so many words, with its names, numbers and dates held against the source.

use super::{
    ask::{Question, Session, TaskResult, text_of, text_schema},
    batch::{self, Items},
    schema::{Compression, TaskAnswer},
};
use crate::Jobs;
use axum::{body::Body, extract::State, response::Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::{collections::BTreeSet, ops::RangeInclusive, sync::Arc};
use tierbar_core::{Code, Error};
use tierbar_http::{
    RequestHints,
    error::Failure,
    schema::{Errors, Queued, RequestHeaders},
};
use tierbar_inference::{blocking::blocking, body};
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
    tag = "tasks",
    operation_id = "compress",
    reach(Inference, Spends, Counts),
    params(RequestHeaders),
    request_body = CompressRequest,
    responses(
        (
            status = 200,
            description = "The answer, or one for each text",
            body = TaskAnswer<Compression>,
        ),
        (status = 202, response = Queued),
        Errors,
    ),
)]
pub(super) async fn compress(
    State(jobs): State<Arc<Jobs>>,
    RequestHints(hints): RequestHints,
    body: Body,
) -> Result<Response, Failure> {
    let wanted: CompressRequest = body::request(body).await?;
    let limit = wanted.words;
    if !WORDS.contains(&limit) {
        let (least, most) = (WORDS.start(), WORDS.end());
        let message = format!("words is {limit}; it must be between {least} and {most}");
        return Err(Error::new(Code::BadRequest, message).into());
    }
    let items = Items::texts(wanted.text, wanted.texts)?;
    let one = |text: Value, trail| {
        let session = Session::new(
            &jobs.inference,
            Task::Compress,
            wanted.model.as_deref(),
            &BTreeSet::new(),
            &hints,
            trail,
        );
        async move { shorten(session, batch::prompt(&text)?.into(), limit).await }
    };
    Ok(batch::answer(&jobs, Task::Compress, items, one).await)
}

/// What one attempt gave.
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

    /// What is to be done better, if anything.
    fn wanting(&self, limit: u32) -> Option<String> {
        let mut wanting = String::new();
        if !self.fits(limit) {
            wanting += &format!(
                "\nYour last text had {} words; {limit} are allowed.",
                self.words
            );
        }
        let missing: Vec<_> = self
            .kept
            .missing
            .iter()
            .take(REMINDED)
            .map(String::as_str)
            .collect();
        if !missing.is_empty() {
            wanting += &format!(
                "\nYour last text left out: {}. Put them in, as they are written here.",
                missing.join("; ")
            );
        }
        (!wanting.is_empty()).then_some(wanting)
    }
}

async fn shorten(mut session: Session, source: Arc<str>, limit: u32) -> Result<TaskResult, Error> {
    if count_words(&source) <= limit as usize {
        let attempt = Attempt::new(&source, source.to_string(), false).await?;
        return Ok(session.done(render(attempt, limit, 0, false), 0));
    }
    let mut best: Option<Attempt> = None;
    let mut attempts = 0u32;
    let mut again = String::new();
    for _ in 0..2 {
        let question = Question {
            system: include_str!("prompts/compress.md").into(),
            user: format!("At most {limit} words:\n{}{again}", delimited(&source)).into(),
            schema: text_schema(),
            max_tokens: (limit * 4 + 64).min(session.context_tokens() / 2),
        };
        attempts += 1;
        let said = match session.ask(&question).await {
            Ok(said) => said,
            // The first attempt stands.
            Err(_) if best.is_some() => break,
            Err(error) if error.code == Code::ContextExceeded => {
                return Err(error.hint("POST /v1/summarize takes texts of any length"));
            }
            Err(error) => return Err(error),
        };
        let Some((text, cut)) = text_of(&said) else {
            again = "\nAnswer with the JSON object alone.".to_owned();
            continue;
        };
        let attempt = Attempt::new(&source, text, cut).await?;
        let wanting = attempt.wanting(limit);
        let rank = |attempt: &Attempt| {
            (
                !attempt.fits(limit),
                attempt.kept.missing.len(),
                attempt.cut,
                attempt.words,
            )
        };
        if best.as_ref().is_none_or(|best| rank(&attempt) < rank(best)) {
            best = Some(attempt);
        }
        match wanting {
            None => break,
            Some(wanting) => again = wanting,
        }
    }
    let by_rule = best.is_none();
    let best = match best {
        Some(best) => best,
        None => by_rule_of(&source, limit).await?,
    };
    let saved = session.tokens_of(source.len().saturating_sub(best.text.len()));
    Ok(session.done(render(best, limit, attempts, by_rule), saved))
}

/// What takes the place of a model's text.
async fn by_rule_of(source: &Arc<str>, limit: u32) -> Result<Attempt, Error> {
    let text = Arc::clone(source);
    let shortened = move || Ok(fallback::summary(&text, limit as usize));
    let text = blocking("shortening the text", shortened).await?;
    Attempt::new(source, text, false).await
}

fn render(attempt: Attempt, limit: u32, attempts: u32, by_rule: bool) -> Map<String, Value> {
    Map::from_iter([
        ("fits".to_owned(), attempt.fits(limit).into()),
        ("text".to_owned(), attempt.text.into()),
        ("words".to_owned(), attempt.words.into()),
        ("cut".to_owned(), attempt.cut.into()),
        ("kept".to_owned(), json!(attempt.kept.kept)),
        ("missing".to_owned(), json!(attempt.kept.missing)),
        (
            "names_checked".to_owned(),
            attempt.kept.names_checked.into(),
        ),
        ("attempts".to_owned(), attempts.into()),
        ("fallback".to_owned(), by_rule.into()),
    ])
}
