//! Checks the `Host` and `Origin` of every request, and answers allowed origins with CORS headers.

use crate::Edge;
use axum::{
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header, uri::Authority},
    middleware::Next,
    response::{IntoResponse, Response},
};
use std::{net::IpAddr, sync::Arc};
use tierbar_core::{
    Code, Error,
    origin::{self, OriginKind},
};
use tierbar_http::error::Failure;

/// The paths of the API, not of the page.
const API: [&str; 4] = ["/v1/", "/api/", "/tierbar/", "/metrics"];
/// How long a browser may remember a preflight, in seconds; browsers cap it at two hours or less.
const PREFLIGHT_SECONDS: &str = "7200";

/// Marks a request that came over TLS.
#[derive(Debug, Clone, Copy)]
pub struct TlsMark;

/// Returns the address of this server, such as `http://127.0.0.1:11435`, as a request reached it; `None` if the request names none.
pub fn address_of(request: &Request<Body>) -> Option<String> {
    let host = request.headers().get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok());
    let authority = request.uri().authority().map(Authority::as_str);
    Some(format!("{}://{}", scheme(request), authority.or(host)?))
}

fn scheme(request: &Request<Body>) -> &'static str {
    match request.extensions().get::<TlsMark>() {
        Some(TlsMark) => "https",
        None => "http",
    }
}

/// Why a request is refused, and the origin of the page, if it may read that.
type RefusedRequest = (Error, Option<HeaderValue>);

/// Refuses other names (DNS rebinding) and other sites' pages (a site that calls localhost).
pub async fn same_site(
    State(edge): State<Arc<Edge>>,
    mut request: Request<Body>,
    next: Next,
) -> Response {
    let (origin, refused) = match check(&edge, &request) {
        Ok(None) => return next.run(request).await,
        Ok(Some(origin)) => (origin, None),
        Err((error, None)) => return Failure(error).into_response(),
        Err((error, Some(origin))) => (origin, Some(error)),
    };
    let mut response = if is_preflight(&request) {
        preflight(&request)
    } else if let Some(error) = refused {
        Failure(error).into_response()
    } else {
        // A session belongs to our own page.
        request.headers_mut().remove(header::COOKIE);
        next.run(request).await
    };
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    headers.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static(
            "location, retry-after, request-id, x-request-id, x-tierbar-queue, x-tierbar-tier, x-tierbar-model, x-tierbar-why, x-tierbar-stepped-down-from, x-tierbar-chain, x-tierbar-tried, x-tierbar-fallback-from, x-tierbar-context, x-tierbar-triage",
        ),
    );
    response
}

/// Returns the origin of another site's page that may call; `None` for our own page and for programs.
///
/// # Errors
/// `Forbidden` for a name that is not this server's, and for a page that may not call.
fn check(edge: &Edge, request: &Request<Body>) -> Result<Option<HeaderValue>, RefusedRequest> {
    let forbidden = |message: &str| Error::new(Code::Forbidden, message);
    let Some(host) = named_host(request) else {
        return Err((
            forbidden("the request has no Host header, or several"),
            None,
        ));
    };
    let config = edge.services.config();
    if !is_own_name(&host, edge.address.ip(), &config.server.names) {
        let error = forbidden(&format!("this server is not \"{}\"", host.host())).hint(
            "use localhost, 127.0.0.1 or the address that Tierbar listens on, or add the name to `names` \
             of [server] in config.toml",
        );
        return Err((error, None));
    }
    let Some(origin) = request.headers().get(header::ORIGIN) else {
        if is_foreign_page(request) {
            let error = forbidden("pages of other sites cannot call this server")
                .hint("open the address directly, or call it from a program");
            return Err((error, None));
        }
        return Ok(None);
    };
    if origin.as_bytes() == format!("{}://{host}", scheme(request)).as_bytes() {
        return Ok(None);
    }
    let named = String::from_utf8_lossy(origin.as_bytes());
    let kind = origin::kind(&named);
    if kind == OriginKind::Program || config.allowed_origins.iter().any(|own| *own == named) {
        return Ok(Some(origin.clone()));
    }
    let mut reader = None;
    if kind == OriginKind::Local {
        edge.services.refuse_origin(&named);
        reader = Some(origin.clone());
    }
    let error = forbidden(&format!("pages of {named} cannot call this server"));
    Err((error.hint(way_in(&named, kind)), reader))
}

/// Returns how the owner lets an origin in. The command is shown only for what is an origin, since people copy it.
fn way_in(named: &str, kind: OriginKind) -> String {
    match kind {
        OriginKind::Program | OriginKind::Local => format!(
            "to let this page in, click Allow in Tierbar (Settings > Connect), or run: tierbar origins allow {named}"
        ),
        OriginKind::Public => {
            format!("if you trust this site, allow it with: tierbar origins allow {named}")
        }
        OriginKind::Opaque => "a page that is opened from a file or in a sandboxed frame cannot be told from others: open it \
             from a web server, such as `python3 -m http.server`, then allow that address"
            .to_owned(),
    }
}

/// Returns whether another site's page sent the request without an origin, as browsers do if the page cannot read the
/// answer, such as for an image. A link from anywhere may open our page; the page requests the rest itself.
fn is_foreign_page(request: &Request<Body>) -> bool {
    let says = |name: &str, words: &[&str]| {
        let said = request.headers().get(name).map(HeaderValue::as_bytes);
        said.is_some_and(|said| words.iter().any(|word| said == word.as_bytes()))
    };
    // Another port of this machine is the same site, but another program.
    if !says("sec-fetch-site", &["cross-site", "same-site"]) {
        return false;
    }
    let path = request.uri().path();
    let opened = request.method() == Method::GET
        && says("sec-fetch-mode", &["navigate"])
        && says("sec-fetch-dest", &["document"]);
    !opened || API.iter().any(|api| path.starts_with(api))
}

fn named_host(request: &Request<Body>) -> Option<Authority> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let host = hosts.next();
    // A proxy in front of this server may have read the other one (RFC 9112, 3.2).
    if hosts.next().is_some() {
        return None;
    }
    if let Some(authority) = request.uri().authority() {
        return Some(authority.clone());
    }
    let host = Authority::try_from(host?.as_bytes()).ok()?;
    // A name before `@` is a user's, which a host has none of.
    (!host.as_str().contains('@')).then_some(host)
}

/// Returns whether a host is a name of this server. Any port will do, since a forwarder may listen on another one.
fn is_own_name(host: &Authority, listening: IpAddr, names: &[String]) -> bool {
    // A rebinding attack needs a name, so an address that reached us is ours. Beyond the wildcard address, only
    // loopback and the one listened on.
    let name = host.host().trim_start_matches('[').trim_end_matches(']');
    let is_named = |own: &str| name.eq_ignore_ascii_case(own);
    if is_named("localhost") || names.iter().any(|own| is_named(own)) {
        return true;
    }
    name.parse::<IpAddr>().is_ok_and(|address| {
        address.is_loopback() || address == listening || listening.is_unspecified()
    })
}

fn is_preflight(request: &Request<Body>) -> bool {
    request.method() == Method::OPTIONS
        && request
            .headers()
            .contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

fn preflight(request: &Request<Body>) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("GET, POST, PUT, PATCH, DELETE"),
    );
    // All headers are allowed: clients add their own, and only the token gives access.
    if let Some(wanted) = request
        .headers()
        .get(header::ACCESS_CONTROL_REQUEST_HEADERS)
    {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    headers.insert(
        header::ACCESS_CONTROL_MAX_AGE,
        HeaderValue::from_static(PREFLIGHT_SECONDS),
    );
    response
}

pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers
        .get(header::AUTHORIZATION)?
        .to_str()
        .ok()?
        .split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
