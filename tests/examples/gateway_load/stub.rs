//! The server. Each token is a write of its own, like a worker's. The request's text sets their number and pace:
//! `tokens=100 interval_us=20000`.

use crate::{Failed, Place, now};
use std::{io::Write as _, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, UnixListener},
    time::{Instant, sleep_until},
};

/// The longest request of a bench.
const LONGEST: usize = 1 << 20;
const STREAM: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
const HEALTHY: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
const LAST: &[u8] = b"data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"stub\",\
    \"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

pub(crate) async fn serve(place: Place) -> Result<(), Failed> {
    if let Some(socket) = place.socket {
        let listener = UnixListener::bind(socket)?;
        loop {
            tokio::spawn(answer(listener.accept().await?.0));
        }
    }
    let listener = TcpListener::bind(("127.0.0.1", place.port.unwrap_or(0))).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(answer(stream));
    }
}

/// Answers until the client disconnects.
async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let mut received = Vec::new();
    while let Some(length) = request(&mut stream, &mut received).await {
        let request = String::from_utf8_lossy(&received[..length]);
        let (posted, tokens, interval) = (
            request.starts_with("POST"),
            number(&request, "tokens=").unwrap_or(1),
            number(&request, "interval_us=").unwrap_or(0),
        );
        received.drain(..length);
        let answered = if posted {
            write_tokens(&mut stream, tokens, Duration::from_micros(interval)).await
        } else {
            stream.write_all(HEALTHY).await
        };
        if answered.is_err() {
            return;
        }
    }
}

/// Reads until a request is complete, and returns its length.
async fn request(stream: &mut (impl AsyncRead + Unpin), received: &mut Vec<u8>) -> Option<usize> {
    loop {
        if let Some(head) = find(received, b"\r\n\r\n") {
            let named = String::from_utf8_lossy(&received[..head]).to_ascii_lowercase();
            let body = number(&named, "content-length: ").unwrap_or(0);
            let length = head + 4 + usize::try_from(body).ok()?;
            if received.len() >= length {
                return Some(length);
            }
        }
        let read = stream.read_buf(received).await.ok()?;
        if read == 0 || received.len() > LONGEST {
            return None;
        }
    }
}

async fn write_tokens(
    stream: &mut (impl AsyncWrite + Unpin),
    tokens: u64,
    interval: Duration,
) -> std::io::Result<()> {
    stream.write_all(STREAM).await?;
    let mut event = Vec::new();
    let mut due = Instant::now();
    for token in 0..tokens {
        if token > 0 && !interval.is_zero() {
            due += interval;
            sleep_until(due).await;
        }
        event.clear();
        let data = format!(
            "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"stub\",\
             \"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"T{:019}Z\"}},\"finish_reason\":null}}]}}\n\n",
            now()
        );
        write!(event, "{:x}\r\n{data}\r\n", data.len())?;
        stream.write_all(&event).await?;
    }
    event.clear();
    write!(event, "{:x}\r\n", LAST.len())?;
    event.extend_from_slice(LAST);
    event.extend_from_slice(b"\r\n0\r\n\r\n");
    stream.write_all(&event).await
}

fn number(text: &str, name: &str) -> Option<u64> {
    let rest = &text[text.find(name)? + name.len()..];
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    rest[..end].parse().ok()
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes
        .windows(wanted.len())
        .position(|window| window == wanted)
}
