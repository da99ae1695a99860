//! The messages of a program, of which each is a line. A line without an end, or one whose values would take much memory, ends the
//! program. `rmcp` passes over an answer that it cannot read, and its request would wait until its time is over: here the answer's
//! letters are repaired, and one that cannot be read all the same is an error of its request.

use crate::mcp::Failure;
use rmcp::{
    ErrorData, RoleClient,
    model::RequestId,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::{Transport, async_rw::AsyncRwTransport},
};
use serde::{
    Deserializer as _,
    de::{IgnoredAny, MapAccess, Visitor},
};
use std::{
    fmt, io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tierbar_core::json::{MCP_MESSAGE_MEMORY, ValuesCounter, repair::parse};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, BufReader, Empty, empty},
    sync::watch,
};

/// The longest message, in bytes. No model reads as much.
pub(crate) const MESSAGE_BYTES: usize = 4 << 20;

/// How the error of an answer that cannot be read begins.
pub(crate) const UNREADABLE: &str = "its answer cannot be read: ";

/// How much of a line that is no message is shown, in characters.
const SHOWN: usize = 200;

/// Reads and writes messages, and ends at one that is too long or takes too much memory.
pub(crate) struct Messages<R, W: AsyncWrite> {
    read: BufReader<R>,
    /// What has arrived of a line. Reading is given up whenever there is something to write.
    line: Vec<u8>,
    values: ValuesCounter,
    writer: AsyncRwTransport<RoleClient, Empty, W>,
    unread: Arc<Unread>,
}

/// What a program has written, or an address sent, that is no message.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    /// A message that was the last for its length.
    too_long: AtomicBool,
    /// The beginning of the last line that is none, such as a note of the program's start.
    line: watch::Sender<String>,
}

impl<R, W> Messages<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(crate) fn new(read: R, write: W, unread: Arc<Unread>) -> Self {
        Self {
            read: BufReader::new(read),
            line: Vec::new(),
            values: ValuesCounter::default(),
            writer: AsyncRwTransport::new_client(empty(), write),
            unread,
        }
    }

    /// Reads a line, or on from where its reading was given up; `None` at the end, and at a line that is too long.
    async fn next_line(&mut self) -> Option<Vec<u8>> {
        loop {
            let arrived = self.read.fill_buf().await.ok()?;
            if arrived.is_empty() {
                return None;
            }
            let end = arrived.iter().position(|byte| *byte == b'\n');
            let part = &arrived[..end.map_or(arrived.len(), |end| end + 1)];
            let (length, memory) = (part.len(), self.values.add(part));
            self.line.extend_from_slice(part);
            self.read.consume(length);
            if self.line.len() > MESSAGE_BYTES || memory > MCP_MESSAGE_MEMORY {
                self.unread.too_long.store(true, Ordering::Relaxed);
                return None;
            }
            if end.is_some() {
                self.values = ValuesCounter::default();
                return Some(std::mem::take(&mut self.line));
            }
        }
    }
}

impl<R, W> Transport<RoleClient> for Messages<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.writer.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let line = self.next_line().await?;
            if let Some(message) = read_message(&line, &self.unread) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.writer.close().await
    }
}

impl Unread {
    pub(crate) fn is_too_long(&self) -> bool {
        self.too_long.load(Ordering::Relaxed)
    }

    pub(crate) fn note(&self, line: &[u8]) {
        let line = line.get(..4 * SHOWN).unwrap_or(line);
        let line = String::from_utf8_lossy(line);
        let shown = line.chars().filter(|letter| !letter.is_control());
        self.line.send_replace(shown.take(SHOWN).collect());
    }

    /// Returns the beginning of the last line that is no message.
    pub(crate) fn line(&self) -> String {
        self.line.borrow().clone()
    }

    /// Why no answer has come within this time.
    pub(crate) fn silence(&self, wait: Duration) -> Failure {
        let (seconds, line) = (wait.as_secs(), self.line());
        if line.is_empty() {
            return Failure::Silent(seconds);
        }
        Failure::Unread { seconds, line }
    }
}

/// Reads a message; `None` for a line that is none.
pub(crate) fn read_message(line: &[u8], unread: &Unread) -> Option<RxJsonRpcMessage<RoleClient>> {
    let line = line.trim_ascii();
    if line.is_empty() {
        return None;
    }
    let error = match parse(line) {
        Ok(message) => return Some(message),
        Err(error) => error,
    };
    let Some(id) = answered_request(line) else {
        unread.note(line);
        return None;
    };
    Some(unreadable(id, &error.to_string()))
}

/// Returns the error of a request whose answer cannot be read.
pub(crate) fn unreadable(request: RequestId, why: &str) -> RxJsonRpcMessage<RoleClient> {
    let error = ErrorData::parse_error(format!("{UNREADABLE}{why}"), None);
    RxJsonRpcMessage::<RoleClient>::error(error, Some(request))
}

/// Returns the id of the request that a line answers, if it stands before what cannot be read.
fn answered_request(line: &[u8]) -> Option<RequestId> {
    let mut head = Head::default();
    // It fails where the line does.
    let _ = serde_json::Deserializer::from_slice(line).deserialize_map(&mut head);
    head.id.filter(|_| !head.is_request)
}

/// What a line says of itself, up to where it cannot be read.
#[derive(Debug, Default)]
struct Head {
    id: Option<RequestId>,
    /// A server's own requests have numbers of their own.
    is_request: bool,
}

impl<'de> Visitor<'de> for &mut Head {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(name) = fields.next_key::<String>()? {
            if name == "id" {
                self.id = Some(fields.next_value()?);
                continue;
            }
            self.is_request |= ["method", "params"].contains(&name.as_str());
            fields.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::{ErrorCode, JsonRpcMessage};
    use std::io::Cursor;
    use tokio::io::sink;

    /// Reads all of a program's output.
    async fn read(output: Vec<u8>) -> (Vec<RxJsonRpcMessage<RoleClient>>, Arc<Unread>) {
        let unread = Arc::new(Unread::default());
        let mut messages = Messages::new(Cursor::new(output), sink(), Arc::clone(&unread));
        let mut read = Vec::new();
        while let Some(message) = messages.receive().await {
            read.push(message);
        }
        (read, unread)
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test]
    async fn lines_are_bounded_and_their_number_is_not() {
        let is_too_long = async |output: Vec<u8>| read(output).await.1.is_too_long();
        let line = [vec![b'x'; MESSAGE_BYTES - 1], vec![b'\n']].concat();
        assert!(!is_too_long(line.repeat(3)).await);
        assert!(is_too_long(vec![b'x'; MESSAGE_BYTES + 1]).await);
        let values = |count: usize| format!("[{}0]\n", "[0],".repeat(count));
        assert!(!is_too_long(values(30_000).repeat(3).into_bytes()).await);
        assert!(is_too_long(values(40_000).into_bytes()).await);
    }

    #[tokio::test]
    async fn half_a_letter_costs_no_more_than_itself() {
        for (text, whole) in [
            (&br"a\ud83d"[..], "a\u{fffd}"),
            (br"\ude00a", "\u{fffd}a"),
            (b"a\xffb", "a\u{fffd}b"),
            (b"a\xf0\x9f", "a\u{fffd}"),
        ] {
            let start = br#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":""#;
            let line = [&start[..], text, b"\"}]}}\n"].concat();
            let (messages, unread) = read(line).await;
            assert_eq!(messages.len(), 1, "{whole}");
            let message = serde_json::to_value(&messages[0]).unwrap();
            assert_eq!(message["result"]["content"][0]["text"], whole);
            assert_eq!(unread.silence(SECOND), Failure::Silent(1));
        }
    }

    #[tokio::test]
    async fn an_answer_that_cannot_be_read_fails_its_request() {
        for line in [
            r#"{"jsonrpc":"2.0","id":7,"result":{"x":NaN}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"x":"#,
            r#"{"jsonrpc":"2.0","error":"no","id":7}"#,
        ] {
            let (messages, unread) = read(format!("{line}\n").into_bytes()).await;
            let [JsonRpcMessage::Error(answer)] = &messages[..] else {
                panic!("{line}: {messages:?}");
            };
            assert_eq!(answer.id, Some(RequestId::Number(7)), "{line}");
            assert_eq!(answer.error.code, ErrorCode::PARSE_ERROR);
            assert_eq!(unread.silence(SECOND), Failure::Silent(1));
        }
    }

    #[tokio::test]
    async fn a_line_that_is_no_message_is_named_if_no_answer_comes() {
        for line in [
            "Server started",
            r#"{"jsonrpc":"2.0","result":NaN,"id":7}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","params":NaN}"#,
            r#"{"id":7,"jsonrpc":"2.0","params":NaN,"method":"ping"}"#,
        ] {
            let (messages, unread) = read(format!("{line}\n\n").into_bytes()).await;
            assert!(messages.is_empty(), "{messages:?}");
            let (seconds, line) = (1, line.to_owned());
            assert_eq!(unread.silence(SECOND), Failure::Unread { seconds, line });
        }
        let (_, unread) = read([b"\x1b[31m", &b"a".repeat(2000)[..], b"\n"].concat()).await;
        let told = unread.silence(SECOND).to_string();
        assert!(told.ends_with(&"a".repeat(SHOWN - 4)), "{told}");
        assert!(!told.contains('\x1b'));
    }
}
