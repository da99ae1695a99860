//! The web client: where a request may go, who gets the token, and how long it waits.
//!
//! Redirects are followed by hand, because each hop is checked: at most [`REDIRECTS`], never from https to http,
//! never from a public server to an address inside this machine or network, and the token goes to the first
//! server alone. HTTP/1.1 only, so that the segments of one file have connections of their own. Bodies come as
//! they are: a compressed one has no byte ranges.

mod answer;
mod reach;
#[cfg(test)]
mod tests;

pub use answer::{Answer, ByteRange, ContentRange};

use self::reach::{Lookup, Reach};
use crate::loopback::{build_client, strict_client};
use http::{HeaderMap, HeaderValue, header};
use hyper_util::client::proxy::matcher::Matcher;
use secrecy::{ExposeSecret, SecretString};
use std::{error::Error as _, fmt, sync::Arc, time::Duration};
use tierbar_core::{Code, Error, address::is_public, bad_request, own_lack};
use url::Url;

/// As many as browsers and curl's users are used to; a hub needs one or two.
const REDIRECTS: usize = 10;

#[derive(Debug, Clone)]
pub struct WebOptions {
    pub connect_timeout: Duration,
    /// The longest silence of a server: before the head of its answer, and in its body. Less than a kilobyte is silence.
    pub stall: Duration,
    /// Whether to use the proxies of the environment (`HTTPS_PROXY`, `NO_PROXY`, …) and of the system.
    pub proxies: bool,
}

impl Default for WebOptions {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(15),
            stall: Duration::from_secs(30),
            proxies: true,
        }
    }
}

/// A GET request. `Debug` omits the token.
#[derive(Debug, Clone)]
pub struct Get {
    pub url: Url,
    /// Sent to the URL's own server, and never to one that it redirects to.
    pub token: Option<SecretString>,
    /// The header that has the token; without it, `Authorization` as a bearer's.
    pub token_header: Option<&'static str>,
    pub range: Option<ByteRange>,
    /// A strong `ETag` or a `Last-Modified`: a changed document is answered whole instead of by range.
    pub if_range: Option<String>,
}

impl Get {
    pub fn new(url: Url) -> Self {
        Self {
            url,
            token: None,
            token_header: None,
            range: None,
            if_range: None,
        }
    }
}

/// Why there is no answer.
#[derive(Debug, Clone)]
pub(crate) enum Failure {
    /// Trying again gives the same result: a rule forbids it, or the URL is invalid.
    Refused(Error),
    /// The network or the server may recover.
    Passing(Error),
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(error) | Failure::Passing(error) => error,
        }
    }
}

/// Where an answer came from, to ask there again without the redirects.
#[derive(Debug, Clone)]
pub(crate) struct Location {
    pub(crate) url: Url,
    reach: Reach,
}

/// Cloneable; all clones share one pool of connections.
#[derive(Clone)]
pub struct Web {
    open: reqwest::Client,
    /// Resolves names to public addresses alone.
    guarded: reqwest::Client,
    /// Resolves names to private addresses alone: a name that was private a moment ago cannot become a public server with
    /// a private one's rights.
    inside: reqwest::Client,
    lookup: Lookup,
    proxies: Option<Arc<Matcher>>,
    stall: Duration,
}

impl fmt::Debug for Web {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Web").field("stall", &self.stall).finish()
    }
}

impl Web {
    /// # Errors
    /// [`Code::Internal`] if the system gives no TLS roots.
    pub fn new(options: WebOptions) -> Result<Self, Error> {
        Self::with_lookup(options, Lookup::system())
    }

    fn with_lookup(options: WebOptions, lookup: Lookup) -> Result<Self, Error> {
        let client = |reach| {
            let builder = strict_client(options.connect_timeout)
                .tcp_keepalive(Duration::from_secs(15))
                .dns_resolver(lookup.resolver(reach));
            build_client(if options.proxies {
                builder
            } else {
                builder.no_proxy()
            })
        };
        Ok(Self {
            open: client(Reach::Anywhere)?,
            guarded: client(Reach::PublicOnly)?,
            inside: client(Reach::PrivateOnly)?,
            proxies: options.proxies.then(|| Arc::new(Matcher::from_system())),
            lookup,
            stall: options.stall,
        })
    }

    /// A GET whose answer is a success.
    ///
    /// # Errors
    /// [`Code::BadRequest`] for a URL that is never requested, [`Code::AccessDenied`] (401, 403),
    /// [`Code::RepositoryUnknown`] (404, 410), else [`Code::Unreachable`].
    pub async fn get(&self, get: Get) -> Result<Answer, Error> {
        self.fetch(&get).await?.accepted()
    }

    /// As [`Web::get`], but never of a server inside this machine or network.
    ///
    /// # Errors
    /// As [`Web::get`]; [`Code::Unreachable`] for an address inside.
    pub async fn get_public(&self, get: Get) -> Result<Answer, Error> {
        let start = Location {
            url: get.url.clone(),
            reach: Reach::PublicOnly,
        };
        self.fetch_at(&get, start).await?.accepted()
    }

    /// As [`Web::get`], whatever the status of the answer.
    pub(crate) async fn fetch(&self, get: &Get) -> Result<Answer, Failure> {
        let reach = self.reach_of(&get.url).await?;
        let start = Location {
            url: get.url.clone(),
            reach,
        };
        self.fetch_at(get, start).await
    }

    /// As [`Web::fetch`], but begins where an earlier answer to the same URL came from.
    pub(crate) async fn fetch_at(&self, get: &Get, start: Location) -> Result<Answer, Failure> {
        let Location { mut url, mut reach } = start;
        let mut linked_etag = None;
        for _ in 0..=REDIRECTS {
            let response = self.hop(get, &url, reach).await?;
            let next = response
                .status()
                .is_redirection()
                .then(|| response.headers().get(header::LOCATION).cloned())
                .flatten();
            let Some(next) = next else {
                let place = Location { url, reach };
                return Ok(Answer::new(response, place, linked_etag, self.stall));
            };
            let etag = response.headers().get(answer::LINKED_ETAG);
            linked_etag = etag.cloned().or(linked_etag);
            let to = redirect(&url, &next)?;
            let from = std::mem::replace(&mut url, to);
            // A server of this network may redirect into it; after a public one, nothing may any more.
            if reach == Reach::PrivateOnly && from.host() != url.host() {
                reach = self.reach_of(&url).await?;
            }
        }
        let from = display_url(&get.url);
        let message = format!("{from} redirects more than {REDIRECTS} times");
        Err(Failure::Refused(Error::new(Code::Unreachable, message)))
    }

    async fn hop(&self, get: &Get, url: &Url, reach: Reach) -> Result<reqwest::Response, Failure> {
        check(url)?;
        // An address that stands in the URL itself never passes the resolver.
        if reach == Reach::PublicOnly && reach::literal(url).is_some_and(|ip| !is_public(ip)) {
            return Err(Failure::Refused(reach::refusal(url)));
        }
        let client = match reach {
            // A proxy resolves the name itself, and may well have a private address of its own.
            _ if self.is_proxied(url) => &self.open,
            Reach::Anywhere => &self.open,
            Reach::PublicOnly => &self.guarded,
            Reach::PrivateOnly => &self.inside,
        };
        let mut request = client.get(url.clone()).header(
            header::ACCEPT_ENCODING,
            HeaderValue::from_static("identity"),
        );
        if let Some(token) = &get.token
            && url.origin() == get.url.origin()
        {
            request = match get.token_header {
                Some(name) => request.header(name, secret_value(token)?),
                None => request.bearer_auth(token.expose_secret()),
            };
        }
        if let Some(range) = &get.range {
            request = request.header(header::RANGE, range.to_string());
            if let Some(validator) = &get.if_range {
                request = request.header(header::IF_RANGE, validator);
            }
        }
        match tokio::time::timeout(self.stall, request.send()).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => Err(failed(url, &error)),
            Err(_) => {
                let (host, seconds) = (host_of(url), self.stall.as_secs_f32());
                let message = format!("{host} did not answer within {seconds} s");
                Err(Failure::Passing(Error::new(Code::Unreachable, message)))
            }
        }
    }

    fn is_proxied(&self, url: &Url) -> bool {
        let uri = url.as_str().parse::<http::Uri>().ok();
        let proxies = self.proxies.as_ref().zip(uri);
        proxies.is_some_and(|(proxies, uri)| proxies.intercept(&uri).is_some())
    }

    /// The user may name a server on this machine or network; only then may redirects lead there.
    async fn reach_of(&self, url: &Url) -> Result<Reach, Failure> {
        check(url)?;
        let addresses = match (reach::literal(url), url.domain()) {
            (Some(ip), _) => vec![ip],
            (None, Some(name)) if !self.is_proxied(url) => {
                // A name without addresses fails later, with the reason.
                let found = self.lookup.addresses(name.to_owned()).await;
                found.unwrap_or_default()
            }
            _ => Vec::new(),
        };
        // A public name with one private address is still a public server.
        let is_private = !addresses.is_empty() && !addresses.into_iter().any(is_public);
        Ok(match is_private {
            true => Reach::PrivateOnly,
            false => Reach::PublicOnly,
        })
    }
}

fn check(url: &Url) -> Result<(), Failure> {
    let refused = |message: String| Err(Failure::Refused(bad_request(message)));
    if !matches!(url.scheme(), "http" | "https") {
        return refused(format!(
            "`{}:` is not supported; use an http or https address",
            url.scheme()
        ));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return refused(format!(
            "the address of {} contains a name or a password, which could end up in logs; remove it",
            host_of(url)
        ));
    }
    Ok(())
}

fn redirect(from: &Url, location: &HeaderValue) -> Result<Url, Failure> {
    let refused = |why: &str| {
        let from = display_url(from);
        let message = format!("{from} redirects {why}; the redirect was refused");
        Failure::Refused(Error::new(Code::Unreachable, message))
    };
    // UTF-8 as it is, as some servers write it, included.
    let text = std::str::from_utf8(location.as_bytes()).ok();
    let next = text.and_then(|text| from.join(text).ok());
    let next = next.ok_or_else(|| refused("to an invalid address"))?;
    if from.scheme() == "https" && next.scheme() == "http" {
        return Err(refused(
            "from https to http, which others can read and change",
        ));
    }
    Ok(next)
}

/// A token as a header's value, which no log shows.
fn secret_value(token: &SecretString) -> Result<HeaderValue, Failure> {
    let value = HeaderValue::from_str(token.expose_secret());
    let mut value = value.map_err(|_| {
        let message = "the token has characters that no header can have";
        Failure::Refused(bad_request(message))
    })?;
    value.set_sensitive(true);
    Ok(value)
}

fn failed(url: &Url, error: &reqwest::Error) -> Failure {
    if let Some(lack) = own_lack(error) {
        return Failure::Passing(lack);
    }
    let cause = root_cause(error);
    let mut source = error.source();
    while let Some(inner) = source {
        match inner.downcast_ref() {
            Some(reach::Unfit::Private) => return Failure::Refused(reach::refusal(url)),
            Some(reach::Unfit::Public) => {
                let message = format!("the address of {} has just changed", host_of(url));
                return Failure::Passing(Error::new(Code::Unreachable, message).hint("try again"));
            }
            None => source = inner.source(),
        }
    }
    let host = host_of(url);
    let message = if error.is_connect() {
        format!("{host} cannot be reached: {cause}")
    } else {
        format!("the connection to {host} broke: {cause}")
    };
    Failure::Passing(
        Error::new(Code::Unreachable, message)
            .hint("check the network connection and proxy settings"),
    )
}

/// Returns the root cause. The errors above it only repeat the URL or "error sending request".
pub fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

pub(crate) fn host_of(url: &Url) -> String {
    match (url.host_str(), url.port()) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (Some(host), None) => host.to_owned(),
        (None, _) => "the server".to_owned(),
    }
}

/// Returns a URL for messages and records: without the query, which holds the signature of a signed URL, and without a password.
pub fn display_url(url: &Url) -> String {
    format!("{}://{}{}", url.scheme(), host_of(url), url.path())
}

/// Returns why an answer with these headers is none, as the end of a sentence.
pub(crate) fn refused_redirect(headers: &HeaderMap) -> String {
    let to = headers.get(header::LOCATION);
    let to = to.and_then(|to| Url::parse(to.to_str().ok()?).ok());
    let to = to.map_or_else(|| "another address".to_owned(), |to| display_url(&to));
    format!("redirects to {to}, which is not followed")
}
