//! OpenAI's response bodies: whole, and as server-sent events.

use super::Running;
use crate::generate::{Event, FinishReason, Summary};
use axum::{
    body::{Body, Bytes},
    http::header,
    response::{IntoResponse, Response},
};
use futures_util::stream;
use serde_json::{Map, Value, json};
use std::{
    convert::Infallible,
    time::{SystemTime, UNIX_EPOCH},
};
use tierbar_core::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Chat,
    Completion,
}

/// The fields that every chunk of one answer repeats.
#[derive(Debug)]
pub(super) struct Answer {
    kind: Kind,
    id: String,
    created: u64,
    model: String,
}

impl Answer {
    pub(super) fn new(kind: Kind, model: String) -> Self {
        let prefix = match kind {
            Kind::Chat => "chatcmpl",
            Kind::Completion => "cmpl",
        };
        let created = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        Self {
            kind,
            id: format!("{prefix}-{}", uuid::Uuid::new_v4().simple()),
            created,
            model,
        }
    }

    /// Waits for the end and returns the whole body.
    pub(super) async fn whole(self, mut running: Running) -> Result<Value, Error> {
        let mut text = String::new();
        let summary = loop {
            match running.next().await {
                Event::Text(piece) => text.push_str(&piece),
                Event::Done(summary) => break summary,
                Event::Failed(error) => return Err(error),
            }
        };
        let content = match self.kind {
            Kind::Chat => ("message", json!({"role": "assistant", "content": text})),
            Kind::Completion => ("text", json!(text)),
        };
        let mut body = self.body(
            self.object(false),
            vec![choice(content, Some(summary.finish))],
        );
        body.insert("usage".into(), usage(&summary));
        body.insert("timings".into(), json!(summary.timings));
        Ok(Value::Object(body))
    }

    /// Answers with a stream of events. A failure before the first text is an error with its own status.
    pub(super) async fn stream(
        self,
        mut running: Running,
        include_usage: bool,
    ) -> Result<Response, Error> {
        let first = match running.next().await {
            Event::Failed(error) => return Err(error),
            first => first,
        };
        let opening = match self.kind {
            Kind::Chat => self.chunk(
                ("delta", json!({"role": "assistant", "content": null})),
                None,
                None,
            ),
            Kind::Completion => String::new(),
        };
        let first = opening + &self.events(first, include_usage).0;
        let state = Some((self, running));
        let rest = stream::unfold(state, move |state| async move {
            let (answer, mut running) = state?;
            let (events, ended) = answer.events(running.next().await, include_usage);
            Some((events, (!ended).then_some((answer, running))))
        });
        let events = stream::once(async { first });
        let body = futures_util::StreamExt::chain(events, rest);
        let body =
            futures_util::StreamExt::map(body, |events| Ok::<_, Infallible>(Bytes::from(events)));
        let headers = [
            (header::CONTENT_TYPE, "text/event-stream"),
            (header::CACHE_CONTROL, "no-cache"),
        ];
        Ok((headers, Body::from_stream(body)).into_response())
    }

    /// The server-sent events of one engine event, and whether the stream ends with them.
    fn events(&self, event: Event, include_usage: bool) -> (String, bool) {
        match event {
            Event::Text(text) => {
                let content = match self.kind {
                    Kind::Chat => ("delta", json!({"content": text})),
                    Kind::Completion => ("text", json!(text)),
                };
                (self.chunk(content, None, None), false)
            }
            Event::Done(summary) => {
                let content = match self.kind {
                    Kind::Chat => ("delta", json!({})),
                    Kind::Completion => ("text", json!("")),
                };
                let mut events = self.chunk(content, Some(summary.finish), Some(&summary));
                if include_usage {
                    let mut body = self.body(self.object(true), Vec::new());
                    body.insert("usage".into(), usage(&summary));
                    events += &data(&Value::Object(body));
                }
                (events + "data: [DONE]\n\n", true)
            }
            Event::Failed(error) => (data(&error.openai_body()), true),
        }
    }

    fn chunk(
        &self,
        content: (&str, Value),
        finish: Option<FinishReason>,
        summary: Option<&Summary>,
    ) -> String {
        let mut body = self.body(self.object(true), vec![choice(content, finish)]);
        if let Some(summary) = summary {
            body.insert("timings".into(), json!(summary.timings));
        }
        data(&Value::Object(body))
    }

    fn body(&self, object: &str, choices: Vec<Value>) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("id".into(), json!(self.id));
        body.insert("object".into(), json!(object));
        body.insert("created".into(), json!(self.created));
        body.insert("model".into(), json!(self.model));
        body.insert("choices".into(), Value::Array(choices));
        body
    }

    fn object(&self, chunk: bool) -> &'static str {
        match (self.kind, chunk) {
            (Kind::Chat, true) => "chat.completion.chunk",
            (Kind::Chat, false) => "chat.completion",
            (Kind::Completion, _) => "text_completion",
        }
    }
}

fn choice((key, content): (&str, Value), finish: Option<FinishReason>) -> Value {
    json!({"index": 0, key: content, "logprobs": null, "finish_reason": finish})
}

fn usage(summary: &Summary) -> Value {
    let (prompt, completion) = (summary.prompt_tokens, summary.timings.predicted_n);
    json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion})
}

fn data(body: &Value) -> String {
    format!("data: {body}\n\n")
}
