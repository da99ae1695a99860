//! `POST /v1/brief`: a day's log lines as a dense brief. The lines are counted here; the model writes over the counts.

use super::{
    ask::{ONLY_JSON, Session, TaskPrompt, TaskResult, text_of, text_schema},
    batch::{self, Items},
    schema::BriefAnswer,
    summarize::checked_words,
};
use crate::Jobs;
use axum::{
    body::{Body, Bytes},
    extract::{Query, State, rejection::QueryRejection},
    http::HeaderMap,
    response::Response,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{collections::BTreeSet, sync::Arc};
use tierbar_core::{Code, Error, bad_request};
use tierbar_fetch::blocking;
use tierbar_http::{RequestHints, error::Failure};
use tierbar_inference::body;
use tierbar_tasks::{
    Task,
    aggregate::{Aggregate, Counter},
    count_words,
    delimited::delimited,
    email::Header,
    fallback,
};
use utoipa::{IntoParams, ToSchema};

pub(super) const USUAL_WORDS: u32 = 150;
/// Briefs of one request.
const MOST: usize = 16;
/// Cautious, as a piece of a text is: figures have few bytes to a token.
const BYTES_PER_TOKEN: usize = 2;
const LEAST_BYTES: usize = 400;
/// Added to a question whose answer left out all that is wrong.
const SAYS_NOTHING: &str =
    "\nYour last text did not name what is wrong. Name it, with its figures.";

/// Lines to report on: `lines`, `entries` or `batch`.
#[derive(Deserialize, Default, ToSchema)]
struct BriefRequest {
    /// Lines of JSON objects, of syslog or of logfmt, or that begin with a date and a time.
    lines: Option<String>,
    /// The objects themselves.
    #[schema(value_type = Option<Vec<Object>>)]
    entries: Option<Vec<Value>>,
    /// At most 16 of either, each for a brief of its own.
    batch: Option<Vec<Lines>>,
    #[serde(flatten)]
    options: Options,
}

/// In the body, or in the query where the body is the lines themselves.
#[derive(Deserialize, Default, IntoParams, ToSchema)]
#[into_params(parameter_in = Query)]
#[schema(as = BriefOptions)]
pub(super) struct Options {
    /// About how many words the brief has. Default: 150.
    #[schema(minimum = 10, maximum = 2000)]
    #[param(minimum = 10, maximum = 2000)]
    words: Option<u32>,
    /// A tier, a chain, a model's id, or `auto`. Default: `primary`.
    model: Option<String>,
}

/// Lines to report on.
#[derive(Deserialize, ToSchema)]
#[schema(as = BriefLines)]
struct Lines {
    /// Lines of JSON objects, of syslog or of logfmt, or that begin with a date and a time.
    lines: Option<String>,
    /// The objects themselves.
    #[schema(value_type = Option<Vec<Object>>)]
    entries: Option<Vec<Value>>,
}

/// Reports on a day's log lines.
#[utoipa::path(
    post,
    path = "/v1/brief",
    reach(Inference, Spends, Counts, Lines),
    params(Options),
    request_body(content((BriefRequest = "application/json"), (String = "application/x-ndjson"))),
    responses((status = 200, description = "The answer, or one for each text", body = BriefAnswer)),
)]
pub(super) async fn brief(
    State(jobs): State<Arc<Jobs>>,
    RequestHints(hints): RequestHints,
    options: Result<Query<Options>, QueryRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Failure> {
    let body = body::read(body, body::INFERENCE_LIMIT).await?;
    let (items, options) = if body::is_lines(&headers) {
        let Query(options) = options.map_err(|rejection| bad_request(rejection.body_text()))?;
        (Items::One(Ok(Source::Lines(body))), options)
    } else {
        let BriefRequest {
            lines,
            entries,
            batch,
            options,
        } = body::parse(&body)?;
        let one = (lines.is_some() || entries.is_some()).then_some(Lines { lines, entries });
        let one = one.map(Lines::source);
        let batch = batch.map(|batch| batch.into_iter().map(Lines::source).collect());
        let items = Items::new(one, batch, "lines or entries", "batch", MOST)?;
        (items, options)
    };
    let limit = checked_words(options.words, USUAL_WORDS)?;
    let (model, none) = (options.model.as_deref(), BTreeSet::new());
    let one = |source: Result<Source, Error>, trail| {
        let session = Session::new(&jobs.inference, Task::Brief, model, &none, &hints, trail);
        async move { write(session, source?, limit).await }
    };
    Ok(batch::answer(&jobs, Task::Brief, items, one).await)
}

enum Source {
    Lines(Bytes),
    Entries(Vec<Value>),
}

impl Lines {
    fn source(self) -> Result<Source, Error> {
        match (self.lines, self.entries) {
            (Some(lines), None) => Ok(Source::Lines(lines.into())),
            (None, Some(entries)) => Ok(Source::Entries(entries)),
            _ => Err(bad_request("give either lines or entries")),
        }
    }
}

impl Source {
    /// Counts them; also how many bytes they are, as their senders would have to send them to a cloud.
    fn counted(self) -> Result<(Aggregate, usize), Error> {
        let mut counter = Counter::default();
        let bytes = match self {
            Self::Lines(lines) => {
                let each = lines.split(|byte| *byte == b'\n');
                each.for_each(|line| counter.line(line));
                lines.len()
            }
            Self::Entries(entries) => {
                let mut bytes = 0;
                for entry in &entries {
                    match entry {
                        Value::String(line) => counter.line(line.as_bytes()),
                        entry => counter.entry(entry),
                    }
                    bytes += entry.to_string().len();
                }
                bytes
            }
        };
        let aggregate = counter.done();
        if aggregate.entries > 0 {
            return Ok((aggregate, bytes));
        }
        Err(bad_request(format!(
            "none of the {} lines is a log line of a known form",
            aggregate.malformed
        ))
        .hint("send JSON such as {\"time\": \"…\", \"level\": \"error\", \"message\": \"…\"}, syslog, logfmt, or lines that begin with a date and a time"))
    }
}

pub(super) async fn of_lines(
    session: Session,
    lines: Bytes,
    limit: u32,
) -> Result<TaskResult, Error> {
    write(session, Source::Lines(lines), limit).await
}

async fn write(mut session: Session, source: Source, limit: u32) -> Result<TaskResult, Error> {
    let (aggregate, bytes) = blocking("counting the entries", || source.counted()).await?;
    let context = session.context_tokens();
    let system = include_str!("prompts/brief.md");
    let max_tokens = (limit * 3 + 64).min(context / 2);
    let instructions = u32::try_from(system.len() / 3 + 64).unwrap_or(u32::MAX);
    let room = context
        .saturating_sub(max_tokens)
        .saturating_sub(instructions);
    let mut most = (room as usize * BYTES_PER_TOKEN).max(LEAST_BYTES);
    let mut again = "";
    let mut wrong = 0;
    loop {
        let prompt = TaskPrompt {
            system: system.into(),
            user: format!(
                "In at most {limit} words:\n{}{again}",
                delimited(aggregate.render(most).trim_end())
            )
            .into(),
            schema: text_schema(),
            max_tokens,
        };
        let said = match session.ask(&prompt).await {
            Err(error) if error.code == Code::ContextExceeded && most / 2 >= LEAST_BYTES => {
                most /= 2;
                continue;
            }
            said => said?,
        };
        let read = text_of(&said);
        again = if read.is_some() {
            SAYS_NOTHING
        } else {
            ONLY_JSON
        };
        let written = read
            .filter(|(text, _)| aggregate.is_reported_in(text))
            .map(|(text, cut)| (text, cut, false));
        // The counts speak for themselves.
        let by_rule = || (fallback::brief(&aggregate, limit as usize), false, true);
        if let Some((text, cut, by_rule)) = written.or_else(|| (wrong == 1).then(by_rule)) {
            let saved = session.tokens_of(bytes.saturating_sub(text.len()));
            let answer = json!({
                "words": count_words(&text),
                "brief": text,
                "cut": cut,
                "fallback": by_rule,
                "header": Header::of_brief(&aggregate).to_string(),
                "aggregate": aggregate,
            });
            return Ok(session.done(answer, saved));
        }
        wrong += 1;
    }
}
