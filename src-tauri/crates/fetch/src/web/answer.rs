//! What a server answered: the headers that we act on, typed, and the body with a stall deadline.

use super::{Location, display_url, host_of, root_cause};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, header};
use std::{
    fmt,
    time::{Duration, SystemTime},
};
use tierbar_core::{Code, Error};
use tokio::time::{Instant, timeout_at};
use url::Url;

/// The hub sends the content's sha256 with its redirect; the storage server does not.
pub(super) const LINKED_ETAG: HeaderName = HeaderName::from_static("x-linked-etag");
/// Fewer bytes than this in a stall's time are as good as none: of a server that only dribbles, a file takes days.
const LEAST: usize = 1 << 10;
/// How long a whole document may take, as a multiple of the stall deadline.
const DOCUMENT_STALLS: u32 = 4;

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

impl Answer {
    pub(super) fn new(
        response: reqwest::Response,
        location: Location,
        linked_etag: Option<HeaderValue>,
        stall: Duration,
    ) -> Self {
        let headers = response.headers();
        let text = |name: HeaderName| -> Option<String> {
            headers.get(&name)?.to_str().ok().map(str::to_owned)
        };
        let number = |name| text(name).and_then(|text| text.trim().parse().ok());
        let content_length: Option<u64> = number(header::CONTENT_LENGTH);
        let linked_etag = headers.get(LINKED_ETAG).or(linked_etag.as_ref());
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
            sha256: linked_etag.and_then(|etag| sha256_in(etag.to_str().ok()?)),
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
        let until = started + self.stall.saturating_sub(waited);
        let message = match timeout_at(until, self.response.chunk()).await {
            Ok(Ok(chunk)) => {
                let got = got + chunk.as_ref().map_or(0, Bytes::len);
                self.waited = match got {
                    LEAST.. => (Duration::ZERO, 0),
                    // What we do with the bytes is not the server's time.
                    _ => (waited + started.elapsed(), got),
                };
                return Ok(chunk);
            }
            Ok(Err(error)) => format!("the connection to {host} broke: {}", root_cause(&error)),
            Err(_) => {
                let almost = if got == 0 { "" } else { "almost " };
                let seconds = self.stall.as_secs_f32();
                format!("{host} sent {almost}nothing for {seconds} s")
            }
        };
        Err(Error::new(Code::Unreachable, message))
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
            let Ok(chunk) = timeout_at(until, self.chunk()).await else {
                let message = format!("{from} did not arrive within {} s", most.as_secs_f32());
                return Err(Error::new(Code::Unreachable, message));
            };
            let Some(chunk) = chunk? else {
                return Ok(body.into());
            };
            if chunk.len() > limit - body.len() {
                let message = format!("{from} sent more than {limit} bytes");
                return Err(Error::new(Code::Corrupt, message));
            }
            body.extend_from_slice(&chunk);
        }
    }

    pub(crate) fn accepted(self) -> Result<Self, Error> {
        self.refusal().map_or(Ok(self), Err)
    }

    /// Returns the error of an unsuccessful status.
    pub(crate) fn refusal(&self) -> Option<Error> {
        let (status, url) = (self.status, display_url(&self.url));
        let (host, path) = (host_of(&self.url), self.url.path());
        let code = match status {
            200 | 206 => return None,
            401 | 403 => Code::AccessDenied,
            404 | 410 => Code::RepositoryUnknown,
            416 => Code::Corrupt,
            _ => Code::Unreachable,
        };
        let message = match status {
            401 | 403 => format!("{host} denies access to {path} ({status})"),
            404 | 410 => format!("{url} does not exist ({status})"),
            416 => format!("{url} does not have the requested bytes (416)"),
            429 => format!("{host} received too many requests (429)"),
            _ => format!("{host} answered {path} with status {status}"),
        };
        let error = Error::new(code, message).detail("status", status);
        let error = match code {
            Code::AccessDenied => error.hint(
                "accept the license on the model's page if it has one, and add an access token in Settings, as the secret \
                 `hugging-face`, or in HF_TOKEN",
            ),
            Code::RepositoryUnknown => {
                error.hint("check the spelling; a private model also needs an access token")
            }
            _ => error,
        };
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
