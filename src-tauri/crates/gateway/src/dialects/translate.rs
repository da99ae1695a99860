//! Answers in another dialect: what the relay tells in OpenAI's is turned as it passes, piece by piece or whole.

use crate::{
    http::{body, error::Failure},
    inference::{
        lines::Lines,
        wire::{self, Chunk, Completion},
    },
};
use axum::{
    Json,
    body::{Body, BodyDataStream, Bytes},
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::{StreamExt, stream};
use serde_json::Value;
use std::convert::Infallible;
use tierbar_core::{Code, Error};

/// As the relay's own bound on answers.
const ANSWER_LIMIT: usize = 64 << 20;
/// Each token is an event here, with figures of its own if they were asked for.
const STREAM_LIMIT: usize = 4 * ANSWER_LIMIT;

/// How a dialect tells one answer. In a stream its calls come in this order: any number of `waiting`, any number of `chunk`, then
/// `end` or `failed`, once.
pub(crate) trait Dialect: Send + 'static {
    /// The content type of its streams.
    const STREAM: &'static str;

    /// The tier still loads; nothing for dialects that have no word for that.
    fn waiting(&mut self) -> String {
        String::new()
    }

    fn chunk(&mut self, chunk: Chunk) -> String;

    fn end(&mut self) -> String;

    fn failed(&mut self, error: &Error) -> String;

    /// An answer that came whole.
    fn whole(self, answer: Completion) -> Value;
}

/// The relay's answer in the dialect's words. The headers that say who answered stay.
///
/// # Errors
/// `Unreachable` for an answer that is not OpenAI's.
pub(crate) async fn translate<D: Dialect>(
    dialect: D,
    answer: Response,
) -> Result<Response, Failure> {
    if !answer.status().is_success() {
        return refused(answer).await;
    }
    let (mut head, body) = answer.into_parts();
    let kind = head.headers.remove(header::CONTENT_TYPE);
    let kind = kind.as_ref().and_then(|kind| kind.to_str().ok());
    if kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
        let kind = HeaderValue::from_static(D::STREAM);
        head.headers.insert(header::CONTENT_TYPE, kind);
        return Ok(Response::from_parts(head, turned(dialect, body)));
    }
    let body = body::read(body, ANSWER_LIMIT).await?;
    let answer = serde_json::from_slice(&body).map_err(|error| wire::unreadable(&error))?;
    Ok((head.headers, Json(dialect.whole(answer))).into_response())
}

/// A refusal as an error of ours, which is told in the words of the path. What its headers and extensions say stays: who was asked, and
/// whether the request may wait.
async fn refused(answer: Response) -> Result<Response, Failure> {
    let (mut head, body) = answer.into_parts();
    let body = body::read(body, ANSWER_LIMIT).await?;
    let error = wire::refusal(&head, &body);
    let mut rendered = Failure(error).into_response();
    for about_the_body in [header::CONTENT_TYPE, header::CONTENT_LENGTH] {
        head.headers.remove(about_the_body);
    }
    for (name, value) in head.headers.iter() {
        rendered.headers_mut().insert(name, value.clone());
    }
    std::mem::swap(rendered.extensions_mut(), &mut head.extensions);
    rendered.extensions_mut().extend(head.extensions);
    Ok(rendered)
}

fn turned<D: Dialect>(dialect: D, body: Body) -> Body {
    let turning = Turning {
        dialect,
        arriving: body.into_data_stream(),
        arrived: 0,
        lines: Lines::default(),
        ended: false,
    };
    Body::from_stream(stream::unfold(turning, |mut turning| async {
        let bytes = turning.next().await?;
        Some((Ok::<_, Infallible>(bytes), turning))
    }))
}

/// A stream on its way from one dialect to the other.
struct Turning<D> {
    dialect: D,
    arriving: BodyDataStream,
    /// In bytes.
    arrived: usize,
    lines: Lines,
    ended: bool,
}

impl<D: Dialect> Turning<D> {
    /// The next bytes; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        while !self.ended {
            let mut out = String::new();
            match self.arriving.next().await {
                Some(Ok(bytes)) => {
                    self.arrived += bytes.len();
                    if self.arrived <= STREAM_LIMIT {
                        self.take(&bytes, &mut out);
                    } else {
                        let message =
                            format!("the answer is longer than {} MiB", STREAM_LIMIT >> 20);
                        out = self.dialect.failed(&Error::new(Code::Unreachable, message));
                        self.ended = true;
                    }
                }
                _ => {
                    // The relay ends each stream with a word of its own.
                    let error =
                        Error::new(Code::Internal, "the answer ended without its last event");
                    out = self.dialect.failed(&error);
                    self.ended = true;
                }
            }
            if !out.is_empty() {
                return Some(out.into());
            }
        }
        None
    }

    fn take(&mut self, bytes: &[u8], out: &mut String) {
        for line in self.lines.complete(bytes).split(|&byte| byte == b'\n') {
            if self.ended {
                return;
            }
            self.line(line.trim_ascii(), out);
        }
    }

    fn line(&mut self, line: &[u8], out: &mut String) {
        if line.starts_with(b":") {
            out.push_str(&self.dialect.waiting());
        }
        let Some(data) = line.strip_prefix(b"data:").map(<[u8]>::trim_ascii) else {
            return;
        };
        if data == b"[DONE]" {
            self.ended = true;
            out.push_str(&self.dialect.end());
            return;
        }
        let chunk = match serde_json::from_slice::<Chunk>(data) {
            Ok(chunk) => chunk,
            Err(error) => {
                // What is no event of OpenAI's says nothing that could be told; one that cannot be read is a part that is missing.
                if wire::has_choices(data) {
                    self.ended = true;
                    out.push_str(&self.dialect.failed(&wire::unreadable(&error)));
                }
                return;
            }
        };
        if chunk.error.is_some() {
            self.ended = true;
            out.push_str(&self.dialect.failed(&wire::error(StatusCode::OK, data)));
        } else {
            out.push_str(&self.dialect.chunk(chunk));
        }
    }
}

/// A system message within the conversation. Many templates take one at the beginning alone, and what stands there stays the same, so that
/// it is not read again: it is told beside the user's words, marked as Claude Code marks what is not theirs.
pub(crate) fn reminder(text: &str) -> String {
    format!("<system-reminder>\n{text}\n</system-reminder>")
}

#[cfg(test)]
mod tests;
