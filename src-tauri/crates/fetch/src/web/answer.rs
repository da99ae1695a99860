//! What a server answered: the headers that we act on, typed, and the body with a stall deadline.

use super::{Location, display_url, host_of, root_cause};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, header};
use std::{
    fmt,
    time::{Duration, SystemTime},
};
use tierbar_core::{Code, Error};
use tokio::time::Instant;
use url::Url;

/// The hub sends the content's sha256 with its redirect; the storage server does not.
const LINKED_ETAG: HeaderName = HeaderName::from_static("x-linked-etag");
/// Fewer bytes than this in a stall's time are as good as none: of a server that only dribbles, a file takes days.
const LEAST: usize = 1 << 10;
/// How long a whole document may take, as a multiple of the stall deadline.
const DOCUMENT_STALLS: u32 = 4;
const LINKED_SIZE: HeaderName = HeaderName::from_static("x-linked-size");

/// Bytes `start..end`; to the end of the document without `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRange {
    pub start: u64,
    /// Exclusive, and larger than `start`.
    pub end: Option<u64>,
}

/// As the `Range` header writes it, whose end is inclusive.
impl fmt::Display for ByteRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.end {
            Some(end) => write!(f, "bytes={}-{}", self.start, end.saturating_sub(1)),
            None => write!(f, "bytes={}-", self.start),
        }
    }
}

/// A `Content-Range`: bytes `start..end` of a document of `total` bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContentRange {
    /// `None` in the answer to a range that cannot be had (416).
    pub bytes: Option<(u64, u64)>,
    /// `None` if the server does not know.
    pub total: Option<u64>,
}

impl ContentRange {
    /// `None` for everything that RFC 9110 §14.4 does not allow.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (range, total) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
        let number = |text: &str| -> Option<u64> {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| text.parse().ok()).flatten()
        };
        let total = match total {
            "*" => None,
            total => Some(number(total)?),
        };
        let bytes = match range {
            "*" => None,
            range => {
                let (first, last) = range.split_once('-')?;
                let (first, last) = (number(first)?, number(last)?);
                let end = last.checked_add(1)?;
                if first > last || total.is_some_and(|total| end > total) {
                    return None;
                }
                Some((first, end))
            }
        };
        Some(Self { bytes, total })
    }
}

/// An answer's head, and its body to be read with [`Answer::chunk`].
pub struct Answer {
    pub status: u16,
    /// The URL that answered, after redirects.
    pub url: Url,
    pub content_length: Option<u64>,
    pub content_range: Option<ContentRange>,
    /// As sent, with quotes and `W/`.
    pub etag: Option<String>,
    pub last_modified: Option<String>,
    pub content_type: Option<String>,
    /// Compressions that were applied though none was accepted.
    pub content_encoding: Option<String>,
    /// The content's sha256, lower case, if a server on the way sent it.
    pub sha256: Option<String>,
    /// The content's size, if a server on the way sent it (`X-Linked-Size`).
    pub linked_size: Option<u64>,
    /// How long the server asks to wait.
    pub retry_after: Option<Duration>,
    /// As sent; names a list's next page (RFC 8288).
    pub link: Option<String>,
    /// Whether the end of the body is distinguishable from a broken connection.
    pub(crate) is_framed: bool,
    pub(crate) location: Location,
    response: reqwest::Response,
    stall: Duration,
    /// How long the server has been waited for since it last sent [`LEAST`] bytes, and how many have come since.
    waited: (Duration, usize),
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer")
            .field("status", &self.status)
            .field("url", &display_url(&self.url))
            .finish_non_exhaustive()
    }
}

/// Records the headers about the content that a redirecting server sends.
pub(super) fn note_links(met: &mut HeaderMap, headers: &HeaderMap) {
    for name in [LINKED_ETAG, LINKED_SIZE] {
        if let Some(value) = headers.get(&name) {
            met.insert(name, value.clone());
        }
    }
}

impl Answer {
    pub(super) fn new(
        response: reqwest::Response,
        location: Location,
        met: &HeaderMap,
        stall: Duration,
    ) -> Self {
        let headers = response.headers();
        let text = |name: HeaderName| -> Option<String> {
            let value = headers.get(&name).or_else(|| met.get(&name))?;
            value.to_str().ok().map(str::to_owned)
        };
        let number = |name| text(name).and_then(|text| text.trim().parse().ok());
        let content_length: Option<u64> = number(header::CONTENT_LENGTH);
        Self {
            status: response.status().as_u16(),
            url: location.url.clone(),
            content_range: text(header::CONTENT_RANGE)
                .as_deref()
                .and_then(ContentRange::parse),
            etag: text(header::ETAG),
            last_modified: text(header::LAST_MODIFIED),
            content_type: text(header::CONTENT_TYPE),
            content_encoding: text(header::CONTENT_ENCODING)
                .filter(|encoding| !encoding.eq_ignore_ascii_case("identity")),
            sha256: text(LINKED_ETAG).as_deref().and_then(sha256_in),
            linked_size: number(LINKED_SIZE),
            retry_after: text(header::RETRY_AFTER)
                .and_then(|text| retry_after(&text, SystemTime::now())),
            link: text(header::LINK),
            is_framed: content_length.is_some() || headers.contains_key(header::TRANSFER_ENCODING),
            content_length,
            location,
            response,
            stall,
            waited: (Duration::ZERO, 0),
        }
    }

    /// The next bytes of the body; `None` at its end.
    ///
    /// # Errors
    /// [`Code::Unreachable`] if the connection breaks, the body is shorter than announced, or nothing to speak of comes
    /// for as long as [`super::WebOptions::stall`].
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, Error> {
        let host = host_of(&self.url);
        let (waited, got) = self.waited;
        let started = Instant::now();
        match tokio::time::timeout_at(
            started + self.stall.saturating_sub(waited),
            self.response.chunk(),
        )
        .await
        {
            Ok(Ok(chunk)) => {
                let got = got + chunk.as_ref().map_or(0, Bytes::len);
                self.waited = match got {
                    LEAST.. => (Duration::ZERO, 0),
                    // What we do with the bytes is not the server's time.
                    _ => (waited + started.elapsed(), got),
                };
                Ok(chunk)
            }
            Ok(Err(error)) => Err(Error::new(
                Code::Unreachable,
                format!("the connection to {host} broke: {}", root_cause(&error)),
            )),
            Err(_) => Err(Error::new(
                Code::Unreachable,
                format!(
                    "{host} sent {} for {} s",
                    if got == 0 {
                        "nothing"
                    } else {
                        "almost nothing"
                    },
                    self.stall.as_secs_f32()
                ),
            )),
        }
    }

    /// The whole body.
    ///
    /// # Errors
    /// As [`Answer::chunk`], also if it takes four times as long as a stall; [`Code::Corrupt`] if it is longer than
    /// `limit` bytes.
    pub async fn bytes(mut self, limit: usize) -> Result<Bytes, Error> {
        let from = display_url(&self.url);
        let most = self.stall * DOCUMENT_STALLS;
        let until = Instant::now() + most;
        let mut body = Vec::new();
        loop {
            let chunk = match tokio::time::timeout_at(until, self.chunk()).await {
                Ok(Ok(Some(chunk))) => chunk,
                Ok(Ok(None)) => return Ok(body.into()),
                Ok(Err(error)) => return Err(error),
                Err(_) => {
                    let message = format!("{from} did not arrive within {} s", most.as_secs_f32());
                    return Err(Error::new(Code::Unreachable, message));
                }
            };
            if chunk.len() > limit - body.len() {
                return Err(Error::new(
                    Code::Corrupt,
                    format!("{from} sent more than {limit} bytes"),
                ));
            }
            body.extend_from_slice(&chunk);
        }
    }

    /// Returns the error of an unsuccessful status.
    #[must_use]
    pub fn refusal(&self) -> Option<Error> {
        let (status, url) = (self.status, display_url(&self.url));
        let error = match status {
            200 | 206 => return None,
            401 | 403 => Error::new(
                Code::AccessDenied,
                format!("{} denies access to {} ({status})", host_of(&self.url), self.url.path()),
            )
            .hint(
                "accept the license on the model's page if it has one, and add an access token in Settings, as the secret \
                 `hugging-face`, or in HF_TOKEN",
            ),
            404 | 410 => Error::new(Code::RepositoryUnknown, format!("{url} does not exist ({status})"))
                .hint("check the spelling; a private model also needs an access token"),
            416 => Error::new(
                Code::Corrupt,
                format!("{url} does not have the requested bytes (416)"),
            ),
            429 => Error::new(
                Code::Unreachable,
                format!("{} received too many requests (429)", host_of(&self.url)),
            ),
            _ => Error::new(
                Code::Unreachable,
                format!("{} answered {} with status {status}", host_of(&self.url), self.url.path()),
            ),
        };
        let error = error.detail("status", status);
        Some(match self.retry_after {
            Some(wait) => error.detail("retry_after_seconds", wait.as_secs()),
            None => error,
        })
    }
}

/// An ETag that is a sha256, as the hub's large files have.
fn sha256_in(etag: &str) -> Option<String> {
    let hex = etag.trim().trim_start_matches("W/").trim_matches('"');
    let is_hash = hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| hex.to_ascii_lowercase())
}

/// `Retry-After` in either of its forms; a date that has passed is no wait.
fn retry_after(text: &str, now: SystemTime) -> Option<Duration> {
    if let Ok(seconds) = text.trim().parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(text.trim()).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}
