//! A client of model servers that the user configured. An answer may take minutes.

use crate::{
    loopback::{build_client, strict_client},
    platform::LOCAL_NETWORK,
    web::{refused_redirect, root_cause},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use http_body_util::{BodyExt, combinators::UnsyncBoxBody};
use secrecy::{ExposeSecret, SecretString};
use std::{io, time::Duration};
use tierbar_core::{Error, address, own_lack};
use url::{Host, Url};

/// An answer whose body is still arriving. Dropping it closes the connection, which tells the server to stop. An error is
/// the end of a sentence, such as `was silent for too long`.
pub type RemoteAnswer = http::Response<UnsyncBoxBody<Bytes, String>>;

const CONNECT: Duration = Duration::from_secs(15);

/// Why a server has not answered.
#[derive(Debug, thiserror::Error)]
pub enum RemoteFailure {
    /// The end of a sentence about the server, such as `cannot be reached (…)`.
    #[error("{0}")]
    Server(String),
    /// What this computer lacks.
    #[error("{}", .0.message)]
    Lack(Error),
}

impl From<String> for RemoteFailure {
    fn from(what: String) -> Self {
        Self::Server(what)
    }
}

/// Cloneable; clones share their connections.
#[derive(Debug, Clone)]
pub struct Remote {
    /// Without the system's proxies, for this machine and network.
    direct: reqwest::Client,
    open: reqwest::Client,
}

impl Remote {
    /// The usual limit: longer than the prefill of a long prompt.
    pub const SILENCE: Duration = Duration::from_secs(300);

    /// `silence`: the longest of a server, before the head of its answer and in its body.
    ///
    /// # Errors
    /// [`Code::Internal`] if the system gives no TLS roots.
    pub fn new(silence: Duration) -> Result<Self, Error> {
        let builder = || strict_client(CONNECT).read_timeout(silence);
        Ok(Self {
            direct: build_client(builder().no_proxy())?,
            open: build_client(builder())?,
        })
    }

    /// Posts JSON to `path` at the server with these headers, and waits for the head of the answer. One of [`Self::key`] goes
    /// nowhere without encryption but near.
    ///
    /// # Errors
    /// [`RemoteFailure`].
    pub async fn post(
        &self,
        server: &str,
        path: &str,
        headers: HeaderMap,
        json: Vec<u8>,
    ) -> Result<RemoteAnswer, RemoteFailure> {
        let url = Url::parse(&format!("{}{path}", server.trim_end_matches('/')))
            .map_err(|error| format!("is not a URL ({error})"))?;
        let has_key = headers.values().any(HeaderValue::is_sensitive);
        if has_key && url.scheme() != "https" && !is_near(&url) {
            let what = "has a key, which is sent only over https: use an https address";
            return Err(what.to_owned().into());
        }
        send(self.request(url, json).headers(headers)).await
    }

    /// Posts JSON to a URL with these headers, and waits for the head of the answer.
    ///
    /// # Errors
    /// As [`Remote::post`].
    pub async fn post_to(
        &self,
        url: &str,
        headers: HeaderMap,
        json: Vec<u8>,
    ) -> Result<RemoteAnswer, RemoteFailure> {
        let url = Url::parse(url).map_err(|error| format!("is not a URL ({error})"))?;
        send(self.request(url, json).headers(headers)).await
    }

    fn request(&self, url: Url, json: Vec<u8>) -> reqwest::RequestBuilder {
        let client = if is_near(&url) {
            &self.direct
        } else {
            &self.open
        };
        client
            .post(url)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(json)
    }

    /// Returns whether the server is on this machine or network, judging by its address.
    pub fn is_near(server: &str) -> bool {
        Url::parse(server).is_ok_and(|url| is_near(&url))
    }

    /// A header's value that is a secret: a scheme, such as `Bearer` or nothing, and the key.
    ///
    /// # Errors
    /// A sentence's end, if no header can hold it.
    pub fn key(scheme: &str, key: &SecretString) -> Result<HeaderValue, String> {
        let value = SecretString::from(format!("{scheme} {}", key.expose_secret()));
        let mut value =
            HeaderValue::from_str(value.expose_secret().trim_start()).map_err(|_| {
                "has a key with characters that a header cannot hold: set it again".to_owned()
            })?;
        value.set_sensitive(true);
        Ok(value)
    }
}

async fn send(request: reqwest::RequestBuilder) -> Result<RemoteAnswer, RemoteFailure> {
    let answer = request.send().await.map_err(|error| {
        if let Some(lack) = own_lack(&error) {
            return RemoteFailure::Lack(lack);
        }
        let cause = root_cause(&error);
        let what = if error.is_timeout() && !error.is_connect() {
            "was silent for too long".to_owned()
        } else {
            let refused = error.url().is_some_and(is_near) && is_host_unreachable(&error);
            unreachable(&cause, LOCAL_NETWORK.filter(|_| refused))
        };
        what.into()
    })?;
    if answer.status().is_redirection() {
        return Err(refused_redirect(answer.headers()).into());
    }
    let (head, body) = http::Response::<reqwest::Body>::from(answer).into_parts();
    let body = body.map_err(|error| {
        if error.is_timeout() {
            "was silent for too long".to_owned()
        } else {
            format!("broke off its answer ({})", root_cause(&error))
        }
    });
    Ok(http::Response::from_parts(head, body.boxed_unsync()))
}

fn is_host_unreachable(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source())
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == io::ErrorKind::HostUnreachable)
}

fn unreachable(cause: &str, remedy: Option<&str>) -> String {
    match remedy {
        Some(remedy) => format!("cannot be reached ({cause}; if it is running, {remedy})"),
        None => format!("cannot be reached ({cause})"),
    }
}

/// Returns whether a server is on this machine or network, judging by its address: there, http is usual. A name without a dot is one of
/// the network, and so is one that ends in `.local` (RFC 6762). Resolvers may ask others for one that ends in `.localhost`.
pub fn is_near(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => address::is_near(ip.into()),
        Some(Host::Ipv6(ip)) => address::is_near(ip.into()),
        Some(Host::Domain(name)) => !name.contains('.') || name.ends_with(".local"),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt;

    /// An error of a layer above the connection.
    #[derive(Debug)]
    struct ConnectError(io::Error);

    impl fmt::Display for ConnectError {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("client error (Connect)")
        }
    }

    impl std::error::Error for ConnectError {
        fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn a_host_that_the_system_hides_is_named_with_the_remedy() {
        let hidden = io::Error::from(io::ErrorKind::HostUnreachable);
        assert!(is_host_unreachable(&ConnectError(hidden)));
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert!(!is_host_unreachable(&refused));
        let text = unreachable("No route to host", Some("allow Tierbar"));
        assert_eq!(
            text,
            "cannot be reached (No route to host; if it is running, allow Tierbar)"
        );
        assert_eq!(unreachable("refused", None), "cannot be reached (refused)");
    }

    #[test]
    fn a_server_is_near_by_its_address() {
        for (url, near) in [
            ("http://localhost", true),
            ("http://gpubox:80", true),
            ("http://a.localhost", false),
            ("http://nas.local", true),
            ("http://[fe80::1]", true),
            ("http://127.0.0.1.example.org", false),
            ("http://local.example", false),
            ("http://[2001:db8::1]", false),
        ] {
            assert_eq!(is_near(&Url::parse(url).unwrap()), near, "{url}");
        }
    }
}
