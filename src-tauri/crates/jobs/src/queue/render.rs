//! A queued request as JSON.

use serde_json::{Map, Value, json};
use tierbar_core::{Error, json, queue::JobStatus};
use tierbar_store::{JobAnswer, JobOutcome};

pub(super) fn url(id: &str) -> String {
    format!("/v1/queue/{id}")
}

pub fn status_json(job: &JobStatus) -> Value {
    let mut rendered = Map::new();
    rendered.insert("object".to_owned(), "queued.request".into());
    rendered.insert("url".to_owned(), url(&job.id).into());
    if let Ok(Value::Object(fields)) = serde_json::to_value(job) {
        rendered.extend(fields);
    }
    rendered.into()
}

/// With its answer, if that is no longer than so many bytes, and what went wrong.
pub(super) fn outcome_json(outcome: &JobOutcome, limit: usize) -> Value {
    let mut whole = status_json(&outcome.status);
    let answer = outcome.answer.as_ref();
    let short = answer.filter(|answer| answer.body.len() <= limit);
    whole["result"] = short.map_or(Value::Null, result);
    if let Some(answer) = answer {
        whole["result_bytes"] = answer.body.len().into();
    }
    let error = outcome.error.as_ref().map(Error::openai_body);
    whole["error"] = error.map_or(Value::Null, |mut body| body["error"].take());
    whole
}

/// The body as JSON if it is that, else as text; what is neither can be fetched as it is.
fn result(answer: &JobAnswer) -> Value {
    let kind = content_type(answer);
    let text = || std::str::from_utf8(&answer.body).ok().map(Value::from);
    let body = json::read(&answer.body).ok().or_else(text);
    json!({"status": answer.status, "content_type": kind, "body": body})
}

fn content_type(answer: &JobAnswer) -> Option<&str> {
    let mut headers = answer.headers.iter();
    let kind = headers.find(|(name, _)| name == "content-type");
    kind.map(|(_, value)| value.as_str())
}
