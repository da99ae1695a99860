//! The body of an answer, turned into OpenAI's as it arrives.

use super::{answer::Message, failure, stream::AnswerWriter};
use crate::{
    lines::{LineEnds, Lines},
    repair::parse,
    upstream::{ANSWER_LIMIT, ConnectionFailure, Upstream, is_content_type},
};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, StatusCode, header, response::Parts};
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tierbar_fetch::RemoteAnswer;

/// Bytes of an event. Anthropic's are short.
const LONGEST_LINE: usize = 1 << 20;

/// What is expected.
#[derive(Debug, Clone, Copy)]
pub enum ExpectedAnswer {
    /// `usage`: a stream ends with what was used.
    Message {
        usage: bool,
    },
    Count,
}

type ArrivingBody = UnsyncBoxBody<Bytes, String>;

impl ExpectedAnswer {
    /// The status and the other headers stay as they are, since they may say when to try again.
    pub(super) fn translate(self, answer: RemoteAnswer) -> Upstream {
        let (mut head, body) = answer.into_parts();
        head.headers.remove(header::CONTENT_LENGTH);
        if let Self::Message { usage } = self
            && head.status == StatusCode::OK
            && is_content_type(&head.headers, "text/event-stream")
        {
            return Upstream::new(head, translate_stream(body, usage));
        }
        let kind = HeaderValue::from_static("application/json");
        head.headers.insert(header::CONTENT_TYPE, kind);
        self.whole(head, body)
    }

    fn whole(self, head: Parts, body: ArrivingBody) -> Upstream {
        let status = head.status;
        let body = body.map_err(ConnectionFailure::from).boxed_unsync();
        let mut arriving = Upstream::new(head.clone(), body);
        let body = stream::once(async move {
            let body = arriving.whole(ANSWER_LIMIT).await?;
            let body = self.to_openai(status, body)?;
            Ok(Frame::data(Bytes::from(body.to_string())))
        });
        Upstream::new(head, StreamBody::new(body).boxed_unsync())
    }

    /// The body is dropped before what this returns is written.
    fn to_openai(self, status: StatusCode, body: Bytes) -> Result<Value, ConnectionFailure> {
        if !status.is_success() {
            return Ok(failure::openai(&body));
        }
        match self {
            Self::Message { .. } => {
                let answer: Value = read(&body)?;
                if answer.get("error").is_some_and(|error| !error.is_null()) {
                    return Ok(failure::openai(&body));
                }
                if !answer.get("content").is_some_and(Value::is_array) {
                    return Err(form_error("no `content`"));
                }
                let message = Message::deserialize(answer);
                let message = message.map_err(|error| form_error(&error.to_string()))?;
                Ok(message.into_completion())
            }
            Self::Count => {
                #[derive(Deserialize)]
                struct CountAnswer {
                    input_tokens: u64,
                }
                let CountAnswer { input_tokens } = read(&body)?;
                Ok(json!({"tokens": input_tokens}))
            }
        }
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, ConnectionFailure> {
    parse(body).map_err(|error| form_error(&error.to_string()))
}

fn form_error(why: &str) -> ConnectionFailure {
    format!("did not answer in Anthropic's form ({why})").into()
}

/// A stream on its way from Anthropic's dialect to OpenAI's.
struct StreamTranslation {
    arriving: ArrivingBody,
    writer: AnswerWriter,
    line_ends: LineEnds,
    lines: Lines,
    broken: bool,
}

fn translate_stream(
    arriving: ArrivingBody,
    usage: bool,
) -> UnsyncBoxBody<Bytes, ConnectionFailure> {
    let streaming = StreamTranslation {
        arriving,
        writer: AnswerWriter::new(usage),
        line_ends: LineEnds::default(),
        lines: Lines::default(),
        broken: false,
    };
    let turned = stream::unfold(streaming, |mut streaming| async {
        let next = streaming.next().await?;
        streaming.broken = next.is_err();
        Some((next.map(Frame::data), streaming))
    });
    StreamBody::new(turned).boxed_unsync()
}

impl StreamTranslation {
    /// The next bytes; `None` at the end, also at one that the server has not announced.
    async fn next(&mut self) -> Option<Result<Bytes, ConnectionFailure>> {
        while !self.writer.is_over() && !self.broken {
            let data = match self.arriving.frame().await? {
                Ok(frame) => frame.into_data().unwrap_or_default(),
                Err(error) => return Some(Err(error.into())),
            };
            let data = self.line_ends.unify(data);
            let out = self.take(&data);
            if let Some(why) = self.writer.take_unreadable() {
                return Some(Err(form_error(&why)));
            }
            if !out.is_empty() {
                return Some(Ok(out.into()));
            }
            if self.lines.pending() > LONGEST_LINE {
                let what = format!("sends an event of more than {} MiB", LONGEST_LINE >> 20);
                return Some(Err(what.into()));
            }
        }
        None
    }

    fn take(&mut self, arrived: &[u8]) -> String {
        let mut out = String::new();
        for line in self.lines.complete(arrived).split(|&byte| byte == b'\n') {
            // Each event names itself in its data, too.
            if let Some(data) = line.strip_prefix(b"data:")
                && !self.writer.is_over()
            {
                out += &self.writer.event(data.trim_ascii());
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_success_without_a_message_is_an_error() {
        let expected = ExpectedAnswer::Message { usage: false };
        let reply = |body: Value| expected.to_openai(StatusCode::OK, body.to_string().into());
        let error =
            json!({"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}});
        assert_eq!(reply(error).unwrap()["error"]["message"], "slow down");
        for nothing in [json!({}), json!({"content": null}), json!([])] {
            assert!(
                reply(nothing)
                    .unwrap_err()
                    .to_string()
                    .contains("no `content`")
            );
        }
        let message = reply(json!({"content": [{"type": "text", "text": "Yes"}]})).unwrap();
        assert_eq!(message["choices"][0]["message"]["content"], "Yes");
    }
}
