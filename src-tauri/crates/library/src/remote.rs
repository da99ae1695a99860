//! The header of a model that is still on a server: one request for as much as a header may have, left as soon as the header is
//! whole. If the connection breaks, the next one goes on where it broke.

use bytes::Bytes;
use std::io::{self, Read};
use tierbar_core::{Code, Error, ModelAccount};
use tierbar_fetch::{Answer, ByteRange, Get, TokenFor, Url, Web, display_url};
use tierbar_gguf::ProjectorAccount;
use tokio::sync::mpsc;

/// The most bytes to read of a file. A tokenizer of 260,000 tokens with its merges takes 15 MB.
pub const MAX_BYTES: u64 = 16 << 20;
/// The hub answers each with a redirect, so these are twice as many requests.
pub const MAX_TRIES: u32 = 4;
/// Between the connection and the reader. Small, since what waits here may never be needed.
const CHUNKS: usize = 2;
const BUFFER_BYTES: usize = 64 << 10;

/// The server's metadata of a file, and the contents of its header.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteFile<A> {
    pub account: A,
    /// Of the file, in bytes.
    pub size: u64,
    /// The content's hash, if the server reports it.
    pub sha256: Option<String>,
}

/// Reads the header of the model at `url`.
///
/// # Errors
/// Those of [`Web::get`] and of [`tierbar_gguf::read_from`]; [`Code::ModelInvalid`] for a web page or a header of more than
/// [`MAX_BYTES`]; [`Code::Corrupt`] if the file changes while it is read or the server does not report its size.
pub async fn header(
    web: &Web,
    tokens: &TokenFor,
    url: &Url,
) -> Result<RemoteFile<ModelAccount>, Error> {
    read_header(web, tokens, url, tierbar_gguf::read_from).await
}

/// As [`header`], for the media projector at `url`.
///
/// # Errors
/// Those of [`header`] and of [`tierbar_gguf::projector_from`].
pub async fn projector(
    web: &Web,
    tokens: &TokenFor,
    url: &Url,
) -> Result<RemoteFile<ProjectorAccount>, Error> {
    read_header(web, tokens, url, tierbar_gguf::projector_from).await
}

type Reader = io::BufReader<Chunks>;

async fn read_header<A: Send + 'static>(
    web: &Web,
    tokens: &TokenFor,
    url: &Url,
    parse: fn(Reader, u64, &str) -> Result<A, Error>,
) -> Result<RemoteFile<A>, Error> {
    let name = display_url(url);
    let mut source = Source {
        web,
        tokens,
        url,
        name: &name,
        tries: 0,
        taken: 0,
        position: 0,
        size: 0,
        etag: None,
    };
    let first = source.open().await?;
    let (size, sha256) = (source.size, first.sha256.clone());
    let (sender, receiver) = mpsc::channel(CHUNKS);
    let reading = tokio::task::spawn_blocking({
        let name = name.clone();
        move || {
            let current = Bytes::new();
            let chunks = Chunks { receiver, current };
            let reader = io::BufReader::with_capacity(BUFFER_BYTES, chunks);
            parse(reader, size, &name)
        }
    });
    source.send(first, &sender).await;
    drop(sender);
    let account = reading.await.map_err(|error| {
        Error::new(
            Code::Internal,
            format!("the header of {name} was not read: {error}"),
        )
    })?;
    // With the server's error inside, if it was the server that failed.
    Ok(RemoteFile {
        account: account?,
        size,
        sha256,
    })
}

/// A file on a server, read front to back over as many connections as it takes.
struct Source<'a> {
    web: &'a Web,
    tokens: &'a TokenFor,
    url: &'a Url,
    /// For messages.
    name: &'a str,
    tries: u32,
    /// Bytes that have been taken from any connection.
    taken: u64,
    /// The file offset of the reader's next byte.
    position: u64,
    /// Of the file.
    size: u64,
    etag: Option<String>,
}

impl Source<'_> {
    /// Connects, again if need be, and learns the file's size.
    async fn open(&mut self) -> Result<Answer, Error> {
        loop {
            match self.request().await {
                Ok(answer) => return self.accept(answer),
                Err(error) if self.may_retry(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    async fn request(&mut self) -> Result<Answer, Error> {
        self.tries += 1;
        let mut get = Get::new(self.url.clone());
        get.token = (self.tokens)(self.url);
        // Strong ones alone: a weak one does not promise the same bytes.
        get.if_range = self.etag.clone().filter(|etag| etag.starts_with('"'));
        get.range = Some(ByteRange {
            start: self.position,
            end: Some(MAX_BYTES),
        });
        self.web.get(get).await
    }

    /// Returns whether another try may help: only for network errors, not for refusals or rate limits.
    fn may_retry(&self, error: &Error) -> bool {
        let status = error
            .details
            .get("status")
            .and_then(serde_json::Value::as_u64);
        let passing = error.code == Code::Unreachable && status.is_none_or(|status| status >= 500);
        passing && self.tries < MAX_TRIES
    }

    fn accept(&mut self, answer: Answer) -> Result<Answer, Error> {
        let (name, kind) = (self.name, answer.content_type.as_deref());
        if kind.is_some_and(|kind| kind.trim_start().starts_with("text/html")) {
            return Err(web_page(name));
        }
        let corrupt = |what: &str| Error::new(Code::Corrupt, format!("{name} {what}"));
        if answer.content_encoding.is_some() {
            return Err(corrupt("was sent with unrequested compression"));
        }
        let size = if answer.status == 206 {
            let range = answer
                .content_range
                .and_then(|range| Some((range.bytes?.0, range.total?)));
            let (start, size) =
                range.ok_or_else(|| corrupt("was sent in part without a valid Content-Range"))?;
            if start != self.position {
                return Err(corrupt("was not sent from the requested offset"));
            }
            size
        } else {
            answer
                .content_length
                .ok_or_else(|| corrupt("was sent without its size"))?
        };
        if self.position > 0
            && (size != self.size || (self.etag.is_some() && answer.etag != self.etag))
        {
            return Err(corrupt("changed while it was read").hint("try again"));
        }
        self.size = size;
        self.etag = answer.etag.clone();
        Ok(answer)
    }

    /// Sends chunks until the receiver closes, the file ends, or an error occurs.
    async fn send(&mut self, mut answer: Answer, sender: &mpsc::Sender<io::Result<Bytes>>) {
        loop {
            let failed = match self.send_one(&mut answer, sender).await {
                Ok(()) => return,
                Err(error) if self.may_retry(&error) => match self.open().await {
                    Ok(next) => {
                        answer = next;
                        continue;
                    }
                    Err(error) => error,
                },
                Err(error) => error,
            };
            // Fails if the receiver has the whole header and has closed.
            let _ = sender.send(Err(io::Error::other(failed))).await;
            return;
        }
    }

    async fn send_one(
        &mut self,
        answer: &mut Answer,
        sender: &mpsc::Sender<io::Result<Bytes>>,
    ) -> Result<(), Error> {
        // A server that ignores ranges starts from the beginning.
        let mut skip = if answer.status == 206 {
            0
        } else {
            self.position
        };
        let name = self.name;
        while self.position < self.size {
            let wanted = tokio::select! {
                () = sender.closed() => return Ok(()),
                chunk = answer.chunk() => chunk?,
            };
            let Some(mut chunk) = wanted else {
                if self.position >= MAX_BYTES {
                    return Err(too_long(name));
                }
                return Err(Error::new(Code::Unreachable, format!("{name} ended early")));
            };
            self.taken += chunk.len() as u64;
            if self.taken > MAX_BYTES {
                return Err(too_long(name));
            }
            let skipped =
                chunk.split_to(usize::try_from(skip).unwrap_or(usize::MAX).min(chunk.len()));
            skip -= skipped.len() as u64;
            if chunk.is_empty() {
                continue;
            }
            if self.position == 0 && looks_like_a_page(&chunk) {
                return Err(web_page(name));
            }
            self.position += chunk.len() as u64;
            if sender.send(Ok(chunk)).await.is_err() {
                return Ok(());
            }
        }
        Ok(())
    }
}

fn too_long(name: &str) -> Error {
    Error::new(
        Code::ModelInvalid,
        format!(
            "the header of {name} is larger than {} MiB",
            MAX_BYTES >> 20
        ),
    )
}

fn web_page(name: &str) -> Error {
    Error::new(
        Code::ModelInvalid,
        format!("{name} is a web page, not a model"),
    )
    .hint("copy the link to the .gguf file itself; files behind a login page cannot be downloaded")
}

fn looks_like_a_page(start: &[u8]) -> bool {
    let text = start.trim_ascii_start();
    text.starts_with(b"<!")
        || text
            .get(..5)
            .is_some_and(|tag| tag.eq_ignore_ascii_case(b"<html"))
}

/// Chunks as one stream of bytes, for a thread that may block.
#[derive(Debug)]
struct Chunks {
    receiver: mpsc::Receiver<io::Result<Bytes>>,
    current: Bytes,
}

impl Read for Chunks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            match self.receiver.blocking_recv() {
                Some(chunk) => self.current = chunk?,
                None => return Ok(0),
            }
        }
        let count = buffer.len().min(self.current.len());
        buffer[..count].copy_from_slice(&self.current.split_to(count));
        Ok(count)
    }
}
