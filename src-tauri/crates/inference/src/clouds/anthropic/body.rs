//! The body of an answer, turned into OpenAI's as it arrives.

use super::{answer::Message, failure, stream::AnswerWriter};
use crate::{
    event_reader::{EventLine, EventReader, LONGEST_LINE},
    held::Share,
    lines::{LineEnds, Lines, without_end},
    original::Form,
    upstream::{ANSWER_LIMIT, ConnectionFailure, Upstream, is_content_type},
};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, StatusCode, header, response::Parts};
use http_body_util::{BodyExt, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tierbar_core::json::repair::parse;
use tierbar_fetch::RemoteAnswer;

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
    events: EventReader,
    /// Of the memory for answers: what is held here.
    share: Share,
    /// What ends it before its last event.
    failure: Option<ConnectionFailure>,
    /// Nothing more is taken.
    ended: bool,
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
        events: EventReader::default(),
        share: Share::default(),
        failure: None,
        ended: false,
    };
    let turned = stream::unfold(streaming, |mut streaming| async {
        let next = streaming.next().await?;
        Some((next.map(Frame::data), streaming))
    });
    StreamBody::new(turned).boxed_unsync()
}

impl StreamTranslation {
    /// The next bytes; `None` at the end, also at one that the server has not announced.
    async fn next(&mut self) -> Option<Result<Bytes, ConnectionFailure>> {
        loop {
            // The text before a gap has passed.
            if let Some(failure) = self.failure.take() {
                self.ended = true;
                return Some(Err(failure));
            }
            if self.ended || self.writer.is_over() {
                return None;
            }
            let mut out = String::new();
            match self.arriving.frame().await {
                Some(Ok(frame)) => {
                    let data = frame.into_data().unwrap_or_default();
                    let data = self.line_ends.unify(data);
                    self.take(&data, &mut out);
                }
                Some(Err(error)) => self.fail(error.into(), &mut out),
                None => {
                    self.ended = true;
                    self.take_rest(&mut out);
                }
            }
            if !out.is_empty() {
                return Some(Ok(out.into()));
            }
        }
    }

    fn take(&mut self, arrived: &[u8], out: &mut String) {
        let held = self.held() + arrived.len();
        if let Err(full) = self.share.cover(held) {
            return self.fail(ConnectionFailure::NoRoom(full), out);
        }
        let lines = self.lines.complete(arrived);
        for line in lines.split_inclusive(|&byte| byte == b'\n') {
            self.line(without_end(line), out);
        }
        if self.lines.pending().max(self.events.pending()) > LONGEST_LINE {
            let what = format!("sends an event of more than {} MiB", LONGEST_LINE >> 20);
            self.fail(what.into(), out);
        }
        let held = self.held();
        drop(self.share.keep(held));
    }

    fn held(&self) -> usize {
        self.lines.pending() + self.events.held()
    }

    fn line(&mut self, line: &[u8], out: &mut String) {
        let line = self.events.without_mark(line).unwrap_or(line);
        match self.events.line(line) {
            EventLine::Data(data) => self.read(data, true, out),
            EventLine::End(Some(data)) => self.read(&data, false, out),
            EventLine::Damaged => self.fail(form_error("a line is not an event"), out),
            // Each event names itself in its data, too.
            EventLine::Comment
            | EventLine::Other
            | EventLine::Blank
            | EventLine::More
            | EventLine::End(None) => {}
        }
    }

    fn read(&mut self, data: &[u8], goes_on: bool, out: &mut String) {
        match self.events.whole_letters(Form::Messages, data, goes_on) {
            None => self.write(data, goes_on, out),
            Some(events) => {
                for event in events {
                    self.write(&event, goes_on, out);
                }
            }
        }
    }

    fn write(&mut self, event: &[u8], goes_on: bool, out: &mut String) {
        if self.failure.is_some() || self.writer.is_over() {
            return;
        }
        match self.writer.event(event) {
            Ok(chunks) => out.push_str(&chunks),
            Err(error) if goes_on && error.is_eof() => self.events.hold(event),
            Err(error) => self.fail(form_error(&error.to_string()), out),
        }
    }

    /// The server has closed its stream: the end of its last line may be missing.
    fn take_rest(&mut self, out: &mut String) {
        let rest = self.lines.take_rest();
        if let Some(event) = self.events.last(Form::Messages, &rest) {
            self.read(&event, false, out);
        }
        self.write_halves(out);
    }

    /// Writes the events that are held for the rest of a letter, which does not come.
    fn write_halves(&mut self, out: &mut String) {
        for half in self.events.take_halves() {
            self.write(&half, false, out);
        }
    }

    /// Fails once what has arrived is written. What comes behind the last event, or a first failure, changes nothing.
    fn fail(&mut self, failure: ConnectionFailure, out: &mut String) {
        self.write_halves(out);
        if self.failure.is_none() && !self.writer.is_over() {
            self.failure = Some(failure);
        }
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

    #[tokio::test]
    async fn text_before_a_failure_is_written_with_half_a_letter() {
        let half =
            br#"data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"a\ud83d"}}

"#;
        let half = Bytes::from_static(half);
        let broken = vec![Ok(half.clone()), Err("was reset".to_owned())];
        let damaged = vec![Ok(half.clone()), Ok("dat: {}\n\n".into())];
        let endless = vec![Ok(half), Ok(vec![b'x'; LONGEST_LINE + 1].into())];
        for (frames, says) in [
            (broken, "was reset"),
            (damaged, "not an event"),
            (endless, "more than 1 MiB"),
        ] {
            let frames = frames.into_iter().map(|frame| frame.map(Frame::data));
            let arriving = StreamBody::new(stream::iter(frames)).boxed_unsync();
            let mut turned = translate_stream(arriving, false);
            let text = turned.frame().await.unwrap().unwrap();
            let text = String::from_utf8(text.into_data().unwrap().to_vec()).unwrap();
            assert!(text.contains("\"content\":\"a\u{fffd}\""), "{says}: {text}");
            let failure = turned.frame().await.unwrap().unwrap_err();
            assert!(failure.to_string().contains(says), "{says}: {failure}");
            assert!(turned.frame().await.is_none(), "{says}");
        }
    }
}
