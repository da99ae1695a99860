//! The client: many streams at once, each on a connection of its own.

use crate::{AFTER, BEFORE, DIGITS, Failed, Load, now};
use futures_util::future::try_join_all;
use serde_json::json;
use std::{
    io::{self, Write},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpStream, UnixStream},
    time::{sleep, timeout},
};

/// How long a stream may be silent.
const SILENCE: Duration = Duration::from_secs(60);
/// An idle stream has only its first token.
const IDLE_US: u64 = 3_600_000_000;

trait Connection: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> Connection for T {}

/// Reads all streams to their ends. A stream that is refused or cut is a failure: there is no figure then.
pub(crate) async fn load(load: Load) -> Result<(), Failed> {
    let load = Arc::new(load);
    let interval = Duration::from_micros(load.interval_us);
    let started = Instant::now();
    let streams = (0..load.streams).map(|place| {
        let load = Arc::clone(&load);
        let share = u32::try_from(place).unwrap_or(0);
        // The streams do not start at the same time.
        let first = interval * share / u32::try_from(load.streams).unwrap_or(1).max(1);
        tokio::spawn(async move {
            sleep(first).await;
            let mut stream = open(&load, load.tokens, load.interval_us).await?;
            let mut latencies = Vec::with_capacity(load.tokens);
            read(&mut stream, &mut latencies, usize::MAX).await?;
            if latencies.len() == load.tokens {
                return Ok(latencies);
            }
            let (got, wanted) = (latencies.len(), load.tokens);
            Err(Failed::from(format!("{got} tokens in place of {wanted}")))
        })
    });
    let mut latencies = Vec::new();
    for stream in try_join_all(streams).await? {
        latencies.extend(stream?);
    }
    let seconds = started.elapsed().as_secs_f64();
    latencies.sort_unstable();
    let at = |percent: usize| {
        latencies.get((latencies.len() * percent / 100).min(latencies.len().saturating_sub(1)))
    };
    say(&json!({
        "tokens": latencies.len(), "seconds": seconds,
        "p50_ns": at(50), "p90_ns": at(90), "p99_ns": at(99), "max_ns": latencies.last(),
    }))
}

/// Opens the streams, waits for the first token of each, prints that, and holds them until stdin closes.
pub(crate) async fn idle(load: Load) -> Result<(), Failed> {
    let mut open_streams = Vec::new();
    for _ in 0..load.streams {
        let mut stream = open(&load, 2, IDLE_US).await?;
        read(&mut stream, &mut Vec::new(), 1).await?;
        open_streams.push(stream);
    }
    say(&json!({"open": open_streams.len()}))?;
    // Nothing else is to be done meanwhile.
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}

fn say(line: &serde_json::Value) -> Result<(), Failed> {
    writeln!(io::stdout(), "{line}")?;
    Ok(io::stdout().flush()?)
}

async fn open(
    load: &Load,
    tokens: usize,
    interval_us: u64,
) -> Result<Box<dyn Connection + Send>, Failed> {
    let mut stream: Box<dyn Connection + Send> = if load.at.starts_with('/') {
        Box::new(UnixStream::connect(&load.at).await?)
    } else {
        let stream = TcpStream::connect(&load.at).await?;
        stream.set_nodelay(true)?;
        Box::new(stream)
    };
    let text = format!("tokens={tokens} interval_us={interval_us}");
    let body = json!({"model": load.model, "stream": true, "messages": [{"role": "user", "content": text}]}).to_string();
    let key = load.key.as_deref().unwrap_or("none");
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {key}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await?;
    Ok(stream)
}

/// Reads up to the stream's end or `enough` tokens, and notes how old each token is as it arrives.
async fn read(
    stream: &mut (impl AsyncRead + Unpin),
    latencies: &mut Vec<u64>,
    enough: usize,
) -> Result<(), Failed> {
    let mut received = Vec::with_capacity(1 << 16);
    let mut begun = false;
    loop {
        let length = timeout(SILENCE, stream.read_buf(&mut received)).await??;
        let arrived = now();
        if !begun {
            if !received.starts_with(b"HTTP/1.1 200") && received.len() > 12 {
                return Err(String::from_utf8_lossy(&received).into());
            }
            begun = received.windows(4).any(|window| window == b"\r\n\r\n");
        }
        let whole = received
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |end| end + 1);
        let over = note(&received[..whole], arrived, latencies);
        if over || latencies.len() >= enough {
            return Ok(());
        }
        if length == 0 {
            return Err("the stream was cut".into());
        }
        received.drain(..whole);
    }
}

/// Records the tokens of some whole lines; returns whether they include the stream's end.
fn note(lines: &[u8], arrived: u64, latencies: &mut Vec<u64>) -> bool {
    let mut over = false;
    for line in lines.split(|&byte| byte == b'\n') {
        let Some(data) = line.strip_prefix(b"data:") else {
            continue;
        };
        over |= data.trim_ascii() == b"[DONE]";
        let length = BEFORE.len() + DIGITS + AFTER.len();
        let token = data
            .windows(length)
            .find(|at| at.starts_with(BEFORE) && at.ends_with(AFTER));
        let digits =
            token.and_then(|token| std::str::from_utf8(&token[BEFORE.len()..][..DIGITS]).ok());
        if let Some(written) = digits.and_then(|digits| digits.parse().ok()) {
            latencies.push(arrived.saturating_sub(written));
        }
    }
    over
}
