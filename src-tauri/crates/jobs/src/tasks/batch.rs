//! One text, or many: each is answered by itself, a few at a time, and one that cannot be does not fail the others.

use super::ask::{TaskResult, Trail, usage};
use crate::Jobs;
use axum::{
    Json,
    response::{IntoResponse, Response},
};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tierbar_core::{Code, Error, bad_request, units::file_size};
use tierbar_http::error::Failure;
use tierbar_inference::caller::Caller;
use tierbar_tasks::{Task, saved::TaskSavings};

/// Texts of one request.
pub(super) const MOST: usize = 256;
/// As many are on their way at a time: more than a worker answers at once, so that it is never idle.
const AT_ONCE: usize = 4;

/// In bytes: the largest context, of a million tokens, holds about as much.
const LONGEST_PROMPT: usize = 4 << 20;

pub(super) enum Items<T> {
    One(T),
    Many(Vec<T>),
}

impl Items<Value> {
    /// `text`, or `texts`. `images` are those beside `text`, which may then be left out.
    ///
    /// # Errors
    /// `BadRequest` for both or neither, for none and for too many, and for images beside several texts.
    pub(super) fn texts(
        text: Option<Value>,
        texts: Option<Vec<Value>>,
        images: &[String],
    ) -> Result<Self, Error> {
        if images.is_empty() {
            return Self::new(text, texts, "text", "texts", MOST);
        }
        if texts.is_some() {
            let message = "images belongs to text; in texts, send a message with its own images";
            return Err(bad_request(message));
        }
        Ok(Self::One(text.unwrap_or_else(|| "".into())))
    }
}

impl<T> Items<T> {
    pub(super) fn new(
        one: Option<T>,
        many: Option<Vec<T>>,
        one_name: &str,
        many_name: &str,
        most: usize,
    ) -> Result<Self, Error> {
        let bad = |what: String| Err(bad_request(what));
        match (one, many) {
            (Some(one), None) => Ok(Self::One(one)),
            (None, Some(many)) if many.is_empty() => bad(format!("{many_name} is empty")),
            (None, Some(many)) if many.len() > most => bad(format!(
                "{many_name} has {} entries and can have at most {most}",
                many.len()
            )),
            (None, Some(many)) => Ok(Self::Many(many)),
            _ => bad(format!("give either {one_name} or {many_name}")),
        }
    }
}

/// A text that is sent to a model as one prompt.
///
/// # Errors
/// `BadRequest` for what is no text, or has no words; those of [`check_length`].
pub(super) fn prompt(value: &Value) -> Result<&str, Error> {
    let text = words_of(value).map_err(|error| {
        error.hint("images and sound can be sent to /v1/triage and /v1/summarize")
    })?;
    if text.trim().is_empty() {
        return Err(bad_request("the text is empty"));
    }
    check_length(text)?;
    Ok(text)
}

pub(super) fn words_of(value: &Value) -> Result<&str, Error> {
    let bad = || bad_request("a text must be a JSON string");
    value.as_str().ok_or_else(bad)
}

pub(super) fn check_length(text: &str) -> Result<(), Error> {
    if text.len() <= LONGEST_PROMPT {
        return Ok(());
    }
    let message = format!(
        "the text has {} and can have at most {}",
        file_size(text.len() as u64),
        file_size(LONGEST_PROMPT as u64)
    );
    Err(Error::new(Code::PayloadTooLarge, message)
        .hint("send it in parts, or summarize it first with /v1/summarize"))
}

/// Answers all of them, and says of the response what its answers say of themselves, in their order. If none can be answered, that is the
/// first one's error.
pub(super) async fn answer<T, F>(
    jobs: &Jobs,
    task: Task,
    items: Items<T>,
    work: impl Fn(T, Trail) -> F,
) -> Response
where
    F: Future<Output = Result<TaskResult, Error>>,
{
    let (many, is_one) = match items {
        Items::One(item) => (vec![item], true),
        Items::Many(many) => (many, false),
    };
    Caller::of_this_request().count(many.len() as u64);
    let each = |item| {
        let trail = Trail::default();
        let done = work(item, trail.clone());
        async move { (done.await, trail) }
    };
    let (done, trails): (Vec<_>, Vec<_>) =
        stream::iter(many).map(each).buffered(AT_ONCE).unzip().await;
    if let Some(Err(first)) = done.first()
        && done.iter().all(Result::is_err)
    {
        let mut refused = Failure(first.clone()).into_response();
        if let Some(first) = trails.first() {
            first.write(&mut refused);
        }
        return refused;
    }
    let (mut answer, total) = results(done);
    if is_one {
        answer = answer["results"][0].take();
    }
    record(jobs, task, total).await;
    let mut response = Json(answer).into_response();
    for trail in trails {
        trail.write(&mut response);
    }
    response
}

/// The answer to several texts, and what all of them took.
fn results(done: Vec<Result<TaskResult, Error>>) -> (Value, TaskSavings) {
    let (mut total, mut failed) = (TaskSavings::default(), 0usize);
    let results: Vec<_> = done
        .into_iter()
        .map(|one| match one {
            Ok(TaskResult { answer, spent }) => {
                total += spent;
                answer
            }
            Err(error) => {
                failed += 1;
                error.openai_body()
            }
        })
        .collect();
    let answer = json!({
        "results": results,
        "failed": failed,
        "usage": usage(&total),
        "saved": total.saved_tokens,
    });
    (answer, total)
}

/// Notes what was spent. The answer is worth more than the note.
pub(super) async fn record(jobs: &Jobs, task: Task, spent: TaskSavings) {
    if let Err(error) = jobs.store.add_spent(task, spent).await {
        tracing::warn!("cannot record what {task} saved: {error}");
    }
}
