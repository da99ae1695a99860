//! The transport over stdin and stdout. It answers a line that is not JSON, which `rmcp` passes over in silence, as JSON-RPC 2.0 (§5.1)
//! has it, and reads on.

use rmcp::{
    ErrorData, RoleServer,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::{Transport, async_rw::AsyncRwTransport},
};
use serde::de::IgnoredAny;
use std::io;
use tokio::{
    io::{
        AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader,
        DuplexStream, duplex,
    },
    sync::mpsc,
    task::JoinHandle,
};

/// As many bytes as `rmcp` takes.
const LONGEST_LINE: u64 = 16 << 20;
const BUFFER: usize = 1 << 16;

/// A transport that answers each line: by the server, or by an error.
pub(crate) struct Lines<W: AsyncWrite> {
    messages: AsyncRwTransport<RoleServer, DuplexStream, W>,
    /// One for each line that is not JSON.
    refused: mpsc::Receiver<()>,
    /// The answer to such a line. It is a task, because reading is given up whenever the server has something to write.
    answering: Option<JoinHandle<io::Result<()>>>,
}

impl<W: AsyncWrite + Send + Unpin + 'static> Lines<W> {
    pub(crate) fn new(read: impl AsyncRead + Send + Unpin + 'static, write: W) -> Self {
        let (output, input) = duplex(BUFFER);
        let (refuse, refused) = mpsc::channel(1);
        tokio::spawn(forward(read, output, refuse));
        Self {
            messages: AsyncRwTransport::new_server(input, write),
            refused,
            answering: None,
        }
    }
}

impl<W: AsyncWrite + Send + Unpin + 'static> Transport<RoleServer> for Lines<W> {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.messages.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Some(answering) = &mut self.answering {
                let answered = answering.await;
                self.answering = None;
                answered.ok()?.ok()?;
            }
            tokio::select! {
                // The answer to the last line comes before the end.
                biased;
                Some(()) = self.refused.recv() => {}
                message = self.messages.receive() => {
                    if message.is_some() || self.refused.try_recv().is_err() {
                        return message;
                    }
                }
            }
            let error = ErrorData::parse_error("the line is not JSON", None);
            let answer = TxJsonRpcMessage::<RoleServer>::error(error, None);
            self.answering = Some(tokio::spawn(self.messages.send(answer)));
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.messages.close().await
    }
}

/// Passes on the lines that are JSON, and tells of each other one.
async fn forward(
    read: impl AsyncRead + Send + Unpin,
    mut messages: DuplexStream,
    refuse: mpsc::Sender<()>,
) -> io::Result<()> {
    let mut read = BufReader::new(read);
    let mut line = Vec::new();
    // Within a line that is too long, up to its end.
    let mut skips = false;
    loop {
        line.clear();
        let mut limited = (&mut read).take(LONGEST_LINE);
        if limited.read_until(b'\n', &mut line).await? == 0 {
            return Ok(());
        }
        let is_whole = line.ends_with(b"\n") || (line.len() as u64) < LONGEST_LINE;
        let skipped = std::mem::replace(&mut skips, !is_whole);
        if skipped {
            continue;
        }
        if is_whole && is_json(&line) {
            messages.write_all(&line).await?;
        } else if refuse.send(()).await.is_err() {
            // The server has ended.
            return Ok(());
        }
    }
}

/// Whether a line is JSON, or empty.
fn is_json(line: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(line) else {
        return false;
    };
    let text = text.trim_start_matches('\u{feff}').trim();
    text.is_empty() || serde_json::from_str::<IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::JsonRpcMessage;
    use serde_json::{Value, json};

    #[tokio::test]
    async fn a_line_that_is_not_json_is_answered() {
        let (mut client, server) = duplex(1 << 16);
        let (read, write) = tokio::io::split(server);
        let mut lines = Lines::new(read, write);
        let ping = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\n";
        let sent = format!("hello\n\n{{\"jsonrpc\n{ping}\u{feff}{ping}");
        client.write_all(sent.as_bytes()).await.unwrap();
        client.write_all(b"\"\xff\"\nat the end").await.unwrap();
        client.shutdown().await.unwrap();
        for _ in 0..2 {
            let message = lines.receive().await.unwrap();
            assert!(matches!(message, JsonRpcMessage::Request(_)), "{message:?}");
        }
        assert!(lines.receive().await.is_none());
        lines.close().await.unwrap();
        drop(lines);
        let mut answers = String::new();
        client.read_to_string(&mut answers).await.unwrap();
        let answers: Vec<Value> = answers
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(answers.len(), 4, "{answers:?}");
        for answer in answers {
            assert_eq!(
                (&answer["error"]["code"], &answer["id"]),
                (&json!(-32700), &Value::Null)
            );
        }
    }
}
