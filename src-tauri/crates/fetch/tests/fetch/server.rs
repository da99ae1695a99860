//! A scripted web server, down to the bytes on the wire.

use bytes::Bytes;
use data_encoding::HEXLOWER;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};
use tierbar_fetch::Url;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinHandle,
};

#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// A path, or for a proxy the whole URL.
    pub(crate) target: String,
    pub(crate) headers: HashMap<String, String>,
    /// How many came before it.
    pub(crate) nth: usize,
    /// Answers under way with its own.
    pub(crate) open: usize,
}

impl Request {
    /// The requested range, its end exclusive.
    pub(crate) fn range(&self) -> Option<(u64, u64)> {
        let (first, last) = self
            .headers
            .get("range")?
            .strip_prefix("bytes=")?
            .split_once('-')?;
        let end = last.parse().map_or(u64::MAX, |last: u64| last + 1);
        Some((first.parse().unwrap(), end))
    }

    pub(crate) fn starts_at(&self) -> u64 {
        self.range().map_or(0, |(start, _)| start)
    }
}

/// After so many bytes of the body.
#[derive(Debug, Clone)]
pub(crate) enum BodyEnd {
    Close,
    Reset,
    /// Silence until the other side gives up.
    Stall,
}

#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Bytes,
    pub(crate) framing: Framing,
    pub(crate) then: Option<(usize, BodyEnd)>,
    /// Bytes a second.
    pub(crate) pace: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    Length,
    /// Another `Content-Length` than the body's.
    Lie(u64),
    Chunked,
    /// The end of the connection is the end of the body.
    Close,
}

impl Reply {
    pub(crate) fn status(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Bytes::new(),
            framing: Framing::Length,
            then: None,
            pace: None,
        }
    }

    pub(crate) fn redirect(to: &Url) -> Self {
        Self::status(302).with("location", to.as_str())
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value.into()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self
    }

    pub(crate) fn then(mut self, after: usize, then: BodyEnd) -> Self {
        self.then = Some((after, then));
        self
    }

    pub(crate) fn framed(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    pub(crate) fn paced(mut self, bytes_per_second: u64) -> Self {
        self.pace = Some(bytes_per_second);
        self
    }
}

/// A file that is served as it should be.
#[derive(Debug, Clone)]
pub(crate) struct Content {
    pub(crate) bytes: Bytes,
    pub(crate) etag: Option<&'static str>,
    pub(crate) last_modified: Option<&'static str>,
}

impl Content {
    /// Bytes that differ everywhere, the same for each seed.
    pub(crate) fn new(length: usize, seed: u64) -> Self {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        // Tests are built without optimization: eight bytes at a time.
        let mut bytes = vec![0_u8; length.next_multiple_of(8)];
        for word in bytes.chunks_exact_mut(8) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            word.copy_from_slice(&state.to_le_bytes());
        }
        bytes.truncate(length);
        Self {
            bytes: bytes.into(),
            etag: Some("\"one\""),
            last_modified: None,
        }
    }

    pub(crate) fn sha256(&self) -> String {
        HEXLOWER.encode(&Sha256::digest(&self.bytes))
    }

    pub(crate) fn etag(mut self, etag: &'static str) -> Self {
        self.etag = Some(etag);
        self
    }

    pub(crate) fn whole(&self) -> Reply {
        let mut reply = Reply::status(200);
        reply.body = self.bytes.clone();
        self.validated(reply)
    }

    fn validated(&self, mut reply: Reply) -> Reply {
        if let Some(etag) = self.etag {
            reply = reply.with("etag", etag);
        }
        if let Some(date) = self.last_modified {
            reply = reply.with("last-modified", date);
        }
        reply
    }

    /// RFC 9110: a range, unless `If-Range` names another version.
    pub(crate) fn answer(&self, request: &Request) -> Reply {
        let fits = request
            .headers
            .get("if-range")
            .is_none_or(|wanted| [self.etag, self.last_modified].contains(&Some(wanted.as_str())));
        match request.range() {
            Some(range) if fits => self.part(range),
            _ => self.whole(),
        }
    }

    pub(crate) fn part(&self, (start, end): (u64, u64)) -> Reply {
        let total = self.bytes.len() as u64;
        if start >= total {
            return Reply::status(416).with("content-range", format!("bytes */{total}"));
        }
        let end = end.min(total);
        let range = format!("bytes {start}-{}/{total}", end - 1);
        let mut reply = Reply::status(206).with("content-range", range);
        reply.body = self.bytes.slice(start as usize..end as usize);
        self.validated(reply)
    }
}

type Behavior = dyn Fn(&Request) -> Reply + Send + Sync;

struct Shared {
    behavior: Box<Behavior>,
    log: Mutex<Vec<Request>>,
    served: watch::Sender<u64>,
    connections: AtomicUsize,
    open: AtomicUsize,
    most_open: AtomicUsize,
    nth: AtomicU64,
}

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Server {
    pub(crate) async fn start(
        behavior: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        Self::at("127.0.0.1:0".parse().unwrap(), behavior).await
    }

    /// One that serves `content` as it should be.
    pub(crate) async fn of(content: &Content) -> Self {
        let content = content.clone();
        Self::start(move |request| content.answer(request)).await
    }

    pub(crate) async fn at(
        address: SocketAddr,
        behavior: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            behavior: Box::new(behavior),
            log: Mutex::default(),
            served: watch::Sender::new(0),
            connections: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            most_open: AtomicUsize::new(0),
            nth: AtomicU64::new(0),
        });
        let accepting = tokio::spawn({
            let shared = shared.clone();
            async move {
                let mut connections = tokio::task::JoinSet::new();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    shared.connections.fetch_add(1, SeqCst);
                    let shared = shared.clone();
                    connections.spawn(async move {
                        // The other side may go at any time.
                        let _ = shared.serve(stream).await;
                    });
                }
            }
        });
        Self {
            address,
            shared,
            accepting,
        }
    }

    pub(crate) fn url(&self, path: &str) -> Url {
        Url::parse(&format!("http://{}{path}", self.address)).unwrap()
    }

    pub(crate) fn log(&self) -> Vec<Request> {
        self.shared.log.lock().clone()
    }

    pub(crate) fn forget_log(&self) {
        self.shared.log.lock().clear();
    }

    /// Bytes of bodies that were sent.
    pub(crate) fn served(&self) -> watch::Receiver<u64> {
        self.shared.served.subscribe()
    }

    /// The most answers that were under way at once.
    pub(crate) fn most_at_once(&self) -> usize {
        self.shared.most_open.load(SeqCst)
    }

    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.load(SeqCst)
    }
}

impl Shared {
    async fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        let mut stream = BufReader::new(stream);
        while let Some(mut request) = self.read(&mut stream).await? {
            request.open = self.open.fetch_add(1, SeqCst) + 1;
            self.most_open.fetch_max(request.open, SeqCst);
            self.log.lock().push(request.clone());
            let reply = (self.behavior)(&request);
            let goes_on = self.write(stream.get_mut(), &reply).await;
            self.open.fetch_sub(1, SeqCst);
            if !goes_on? {
                break;
            }
        }
        Ok(())
    }

    async fn read(&self, stream: &mut BufReader<TcpStream>) -> std::io::Result<Option<Request>> {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        let target = line.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut headers = HashMap::new();
        loop {
            line.clear();
            stream.read_line(&mut line).await?;
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                break;
            };
            headers.insert(name.to_ascii_lowercase(), value.to_owned());
        }
        let nth = self.nth.fetch_add(1, SeqCst) as usize;
        Ok(Some(Request {
            target,
            headers,
            nth,
            open: 0,
        }))
    }

    /// Whether the connection goes on.
    async fn write(&self, stream: &mut TcpStream, reply: &Reply) -> std::io::Result<bool> {
        let mut head = format!("HTTP/1.1 {} Said\r\n", reply.status);
        for (name, value) in &reply.headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += &match reply.framing {
            Framing::Length => format!("content-length: {}\r\n", reply.body.len()),
            Framing::Lie(length) => format!("content-length: {length}\r\n"),
            Framing::Chunked => "transfer-encoding: chunked\r\n".to_owned(),
            Framing::Close => "connection: close\r\n".to_owned(),
        };
        head += "\r\n";
        stream.write_all(head.as_bytes()).await?;
        let until = reply
            .then
            .as_ref()
            .map_or(reply.body.len(), |(after, _)| *after);
        for block in reply.body[..until.min(reply.body.len())].chunks(64 << 10) {
            if let Some(pace) = reply.pace {
                let pause = block.len() as f64 / pace as f64;
                tokio::time::sleep(Duration::from_secs_f64(pause)).await;
            }
            if reply.framing == Framing::Chunked {
                stream
                    .write_all(format!("{:x}\r\n", block.len()).as_bytes())
                    .await?;
            }
            stream.write_all(block).await?;
            if reply.framing == Framing::Chunked {
                stream.write_all(b"\r\n").await?;
            }
            self.served
                .send_modify(|served| *served += block.len() as u64);
        }
        match reply.then {
            Some((_, BodyEnd::Close)) => return Ok(false),
            Some((_, BodyEnd::Reset)) => {
                stream.set_zero_linger()?;
                return Ok(false);
            }
            Some((_, BodyEnd::Stall)) => std::future::pending().await,
            None => {}
        }
        if reply.framing == Framing::Chunked {
            stream.write_all(b"0\r\n\r\n").await?;
        }
        stream.flush().await?;
        Ok(matches!(reply.framing, Framing::Length | Framing::Chunked))
    }
}
