//! The events of an address. `rmcp` passes over one that it cannot read, and its request would wait until its time is over: here the
//! answer's letters are repaired, and one that cannot be read all the same is an error of its request. Bytes that are no letters are
//! not repaired, since `rmcp` reads the lines.

use crate::mcp::messages::{Unread, read_message, unreadable};
use futures_util::{StreamExt, TryStream, stream};
use reqwest::{
    Client,
    header::{HeaderName, HeaderValue},
};
use rmcp::{
    RoleClient,
    model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId},
    service::RxJsonRpcMessage,
    transport::{
        common::client_side_sse::BoxedSseResponse,
        streamable_http_client::{
            SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
            StreamableHttpResponseLimits,
        },
    },
};
use std::{collections::HashMap, sync::Arc};
use tierbar_fetch::root_cause;

type Event = <BoxedSseResponse as TryStream>::Ok;
type Headers = HashMap<HeaderName, HeaderValue>;
type HttpError = StreamableHttpError<reqwest::Error>;

/// The web client of a session.
#[derive(Debug, Clone)]
pub(crate) struct HttpClient {
    client: Client,
    unread: Arc<Unread>,
}

impl HttpClient {
    pub(crate) fn new(client: Client, unread: Arc<Unread>) -> Self {
        Self { client, unread }
    }

    fn readable(&self, arriving: BoxedSseResponse, request: Option<RequestId>) -> BoxedSseResponse {
        let events = Events {
            arriving: arriving.fuse(),
            request,
            has_gap: false,
            resumes: false,
            unread: Arc::clone(&self.unread),
        };
        stream::unfold(events, |mut events| async move {
            let next = events.next().await?;
            Some((next, events))
        })
        .boxed()
    }
}

impl StreamableHttpClient for HttpClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        key: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let limits = StreamableHttpResponseLimits::default();
        self.post_message_with_response_limits(uri, message, session, key, headers, limits)
            .await
    }

    async fn post_message_with_response_limits(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        key: Option<String>,
        headers: Headers,
        limits: StreamableHttpResponseLimits,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let request = match &message {
            JsonRpcMessage::Request(request) => Some(request.id.clone()),
            _ => None,
        };
        let posted = self
            .client
            .post_message_with_response_limits(uri, message, session, key, headers, limits)
            .await?;
        Ok(match posted {
            StreamableHttpPostResponse::Sse(events, session) => {
                StreamableHttpPostResponse::Sse(self.readable(events, request), session)
            }
            other => other,
        })
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        key: Option<String>,
        headers: Headers,
    ) -> Result<(), HttpError> {
        self.client.delete_session(uri, session, key, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        key: Option<String>,
        headers: Headers,
    ) -> Result<BoxedSseResponse, HttpError> {
        let most = StreamableHttpResponseLimits::default().max_sse_event_size;
        self.get_stream_with_max_sse_event_size(uri, session, last_event, key, headers, most)
            .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        key: Option<String>,
        headers: Headers,
        most: usize,
    ) -> Result<BoxedSseResponse, HttpError> {
        let events = self
            .client
            .get_stream_with_max_sse_event_size(uri, session, last_event, key, headers, most)
            .await?;
        Ok(self.readable(events, None))
    }
}

/// The events of one stream.
struct Events {
    /// Fused: after the error of a request without an answer, it is read again.
    arriving: stream::Fuse<BoxedSseResponse>,
    /// The request that the stream answers, until it has.
    request: Option<RequestId>,
    /// An event could not be read, which may have been the answer.
    has_gap: bool,
    /// An event had an id: `rmcp` opens the stream again where it breaks.
    resumes: bool,
    unread: Arc<Unread>,
}

impl Events {
    async fn next(&mut self) -> Option<Result<Event, SseError>> {
        match self.arriving.next().await {
            Some(Ok(event)) => Some(Ok(self.read(event))),
            Some(Err(error @ SseError::Body(_))) if self.resumes || self.request.is_none() => {
                Some(Err(error))
            }
            Some(Err(error)) => {
                let why = root_cause(&error);
                self.unread.note(why.as_bytes());
                self.fail(&why)
            }
            None if self.has_gap => self.fail(&self.unread.line()),
            None => None,
        }
    }

    /// Returns the event with a message that can be read, or without any.
    fn read(&mut self, mut event: Event) -> Event {
        self.resumes |= event.id.is_some();
        // `rmcp` reads no others.
        if !matches!(event.event.as_deref(), None | Some("" | "message")) {
            return event;
        }
        let Some(data) = event.data.take() else {
            return event;
        };
        if let Ok(message) = serde_json::from_str(&data) {
            self.note_answer(&message);
            event.data = Some(data);
            return event;
        }
        match read_message(data.as_bytes(), &self.unread) {
            Some(message) => {
                self.note_answer(&message);
                event.data = serde_json::to_string(&message).ok();
            }
            None => self.has_gap |= !data.trim().is_empty(),
        }
        event
    }

    fn note_answer(&mut self, message: &RxJsonRpcMessage<RoleClient>) {
        if let JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) = message {
            (self.request, self.has_gap) = (None, false);
        }
    }

    /// Returns the error of the request that has no answer. A stream that answers none ends, and `rmcp` opens it again after a while.
    fn fail(&mut self, why: &str) -> Option<Result<Event, SseError>> {
        let error = unreadable(self.request.take()?, why);
        let error = serde_json::to_string(&error).ok()?;
        Some(Ok(Event::default().data(error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::{Failure, messages::UNREADABLE};
    use serde_json::{Value, json};
    use std::time::Duration;

    const ANSWER: &str =
        r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"a"}]}}"#;

    fn event(data: &str) -> Result<Event, SseError> {
        Ok(Event::default().data(data))
    }

    fn no_letter() -> SseError {
        let error = String::from_utf8(vec![0xff]).unwrap_err().utf8_error();
        SseError::Utf8Parse(error)
    }

    fn reset() -> SseError {
        SseError::Body("was reset".into())
    }

    /// Reads a stream to its end: its messages, whether it has broken, and what is said if no answer comes.
    async fn read(
        request: Option<i64>,
        events: Vec<Result<Event, SseError>>,
    ) -> (Vec<Value>, bool, Failure) {
        let unread = Arc::new(Unread::default());
        let client = tierbar_fetch::client().build().unwrap();
        let client = HttpClient::new(client, Arc::clone(&unread));
        let request = request.map(RequestId::Number);
        // Panics if it is read behind its end.
        let arriving = stream::unfold(events.into_iter(), |mut events| async move {
            let event = events.next()?;
            Some((event, events))
        });
        let mut events = client.readable(arriving.boxed(), request);
        let (mut messages, mut has_broken) = (Vec::new(), false);
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    let data = event.data.as_deref();
                    messages.extend(data.map(|data| serde_json::from_str::<Value>(data).unwrap()));
                }
                Err(_) => has_broken = true,
            }
        }
        (messages, has_broken, unread.silence(Duration::from_secs(1)))
    }

    #[tokio::test]
    async fn half_a_letter_is_repaired_in_an_event() {
        let half = ANSWER.replace("\"a\"", r#""a\ud83d""#);
        for request in [None, Some(7)] {
            let (messages, _, silence) = read(request, vec![event(&half)]).await;
            assert_eq!(messages[0]["result"]["content"][0]["text"], "a\u{fffd}");
            assert_eq!((messages.len(), silence), (1, Failure::Silent(1)));
        }
    }

    #[tokio::test]
    async fn an_event_that_cannot_be_read_fails_its_request() {
        let broken = ANSWER.replace("\"a\"", "NaN");
        // Its id cannot be known from it.
        let cut = &ANSWER[..14];
        for (request, events, says) in [
            (None, vec![event(&broken)], "expected value"),
            (Some(7), vec![event(&broken)], "expected value"),
            (Some(7), vec![event(cut)], cut),
            (Some(7), vec![Err(no_letter())], "invalid utf-8"),
            (Some(7), vec![Err(reset())], "was reset"),
        ] {
            let (messages, has_broken, _) = read(request, events).await;
            let [error] = &messages[..] else {
                panic!("{says}: {messages:?}");
            };
            assert!(!has_broken, "{says}");
            assert_eq!(error["id"], 7, "{says}");
            let why = error["error"]["message"].as_str().unwrap();
            assert!(why.starts_with(UNREADABLE) && why.contains(says), "{why}");
        }
    }

    #[tokio::test]
    async fn what_is_no_answer_does_not_fail_a_request() {
        let note = r#"{"jsonrpc":"2.0","method":"notifications/message","params":NaN}"#;
        let events = vec![event(note), event(""), event(ANSWER), Err(no_letter())];
        let (messages, has_broken, _) = read(Some(7), events).await;
        let answer: Value = serde_json::from_str(ANSWER).unwrap();
        assert_eq!((messages, has_broken), (vec![answer], false));

        // A stream that answers no request ends, and names what has arrived.
        let (messages, has_broken, silence) = read(None, vec![Err(no_letter())]).await;
        assert_eq!((messages.len(), has_broken), (0, false));
        assert!(matches!(silence, Failure::Unread { .. }), "{silence:?}");
    }

    #[tokio::test]
    async fn a_stream_with_ids_is_left_to_be_resumed() {
        let ping = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        let ping = Event::default().id("1").data(ping.to_string());
        for (request, first) in [(Some(7), Ok(ping)), (None, event(""))] {
            let (_, has_broken, _) = read(request, vec![first, Err(reset())]).await;
            assert!(has_broken, "{request:?}");
        }
    }
}
