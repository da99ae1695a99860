//! The network of a command: an HTTP proxy on this machine, the one place that it can connect to.
//!
//! The proxy resolves names itself, connects to the very address that it has checked, and to none inside this machine or network. It
//! counts connections and bytes. Programs find it by the variables that they know (`HTTPS_PROXY`); one that ignores these has no network.

mod server;
#[cfg(test)]
mod tests;

use crate::Limits;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode, Uri, Version,
    body::Incoming,
    client::conn::http1 as client,
    header::{self, HeaderName, HeaderValue},
    server::conn::http1,
    service::service_fn,
    upgrade,
};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use server::{Rules, Server};
use std::{
    collections::BTreeSet,
    convert::Infallible,
    io,
    net::Ipv4Addr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};
use tokio::{io::copy_bidirectional, net::TcpListener, sync::Semaphore};

/// How many different refusals are reported.
const REPORTED: usize = 8;
/// Of a server, in bytes.
const LONGEST_NAME: usize = 253;
/// Until a client can be accepted again, such as after too many open files.
const PAUSE: Duration = Duration::from_millis(50);
/// Which variables name a proxy, to one program or another.
const VARIABLES: [&str; 6] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
];
/// Headers of one connection, not of what is forwarded.
const OF_CONNECTION: [&str; 6] = [
    "connection",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "upgrade",
];

/// What a command has done with the network.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkUse {
    /// Those to servers, and attempts.
    pub connections: u64,
    pub sent_bytes: u64,
    pub received_bytes: u64,
    /// Why connections were refused or failed, each reason once, as sentences without a period.
    pub refusals: Vec<String>,
}

/// Returns the variables by which programs find the proxy at a port.
pub(crate) fn variables(port: u16) -> impl Iterator<Item = (&'static str, String)> {
    let proxy = VARIABLES.map(|name| (name, format!("http://127.0.0.1:{port}")));
    // No server is exempt. Node uses proxies when it is asked to.
    let others = [
        ("NO_PROXY", ""),
        ("no_proxy", ""),
        ("NODE_USE_ENV_PROXY", "1"),
    ];
    let others = others.map(|(name, value)| (name, value.to_owned()));
    proxy.into_iter().chain(others)
}

/// A running proxy. It ends with this process.
#[derive(Debug)]
pub(crate) struct Proxy {
    traffic: Arc<Traffic>,
    pub(crate) port: u16,
}

/// What all connections have in common.
#[derive(Debug)]
struct Traffic {
    limits: Limits,
    rules: Rules,
    clients: Arc<Semaphore>,
    servers: Arc<Semaphore>,
    connections: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
    refusals: Mutex<BTreeSet<String>>,
}

/// An answer of the proxy's own.
struct Refusal(StatusCode, String);

type Body = UnsyncBoxBody<Bytes, hyper::Error>;

impl Proxy {
    pub(crate) fn start(limits: Limits) -> io::Result<Self> {
        Self::with_rules(limits, server::OUTSIDE)
    }

    fn with_rules(limits: Limits, rules: Rules) -> io::Result<Self> {
        let places = usize::try_from(limits.connections_at_once).unwrap_or(Semaphore::MAX_PERMITS);
        let places = places.min(Semaphore::MAX_PERMITS / 2);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            // They look up names, and stay when a client that wanted one is gone.
            .max_blocking_threads(places.max(1))
            .build()?;
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let traffic = Arc::new(Traffic {
            limits,
            rules,
            // Some for those that are refused, or that wait for their next request.
            clients: Arc::new(Semaphore::new(places * 2)),
            servers: Arc::new(Semaphore::new(places)),
            connections: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            refusals: Mutex::default(),
        });
        let serving = Arc::clone(&traffic);
        thread::Builder::new()
            .name("proxy".to_owned())
            .spawn(move || runtime.block_on(serve(listener, serving)))?;
        Ok(Self { traffic, port })
    }

    pub(crate) fn used(&self) -> NetworkUse {
        let traffic = &self.traffic;
        let of = |number: &AtomicU64| number.load(Ordering::Relaxed);
        NetworkUse {
            connections: of(&traffic.connections),
            sent_bytes: of(&traffic.sent),
            received_bytes: of(&traffic.received),
            refusals: traffic.refusals.lock().iter().cloned().collect(),
        }
    }
}

async fn serve(listener: std::net::TcpListener, traffic: Arc<Traffic>) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let Ok(place) = Arc::clone(&traffic.clients).try_acquire_owned() else {
            traffic.note("more requests wait than the proxy takes at a time");
            continue;
        };
        let traffic = Arc::clone(&traffic);
        tokio::spawn(async move {
            let service = service_fn(|request| answer(request, &traffic));
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            // A client that breaks off gets no answer.
            let _ = connection.with_upgrades().await;
            drop(place);
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    traffic: &Arc<Traffic>,
) -> Result<Response<Body>, Infallible> {
    let answer = if request.method() == Method::CONNECT {
        tunnel(request, traffic).await
    } else {
        forward(request, traffic).await
    };
    Ok(answer.unwrap_or_else(|Refusal(status, why)| {
        traffic.note(&why);
        let mut response = Response::new(whole(format!("Tierbar's sandbox: {why}.\n")));
        *response.status_mut() = status;
        let text = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, text);
        response
    }))
}

/// Connects a client to a server, and passes on what either says.
async fn tunnel(
    request: Request<Incoming>,
    traffic: &Arc<Traffic>,
) -> Result<Response<Body>, Refusal> {
    let mut server = connect(request.uri(), traffic).await?;
    tokio::spawn(async move {
        if let Ok(client) = upgrade::on(request).await {
            // It ends with both, or with a fault of either; why it was the proxy's own is noted.
            let _ = copy_bidirectional(&mut TokioIo::new(client), &mut server).await;
        }
    });
    Ok(Response::new(whole(String::new())))
}

/// Sends a request to its server, and returns the answer.
async fn forward(
    mut request: Request<Incoming>,
    traffic: &Arc<Traffic>,
) -> Result<Response<Body>, Refusal> {
    let uri = request.uri().clone();
    let host = host_of(&uri).filter(|_| uri.scheme_str() == Some("http"));
    let Some(host) = host.and_then(|host| HeaderValue::from_str(&host).ok()) else {
        let why = "the proxy takes requests for http:// addresses, and CONNECT for all others";
        return Err(Refusal(StatusCode::BAD_REQUEST, why.to_owned()));
    };
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = path.parse().unwrap_or_default();
    *request.version_mut() = Version::HTTP_11;
    remove_headers_of_connection(request.headers_mut());
    request.headers_mut().insert(header::HOST, host);
    let server = connect(&uri, traffic).await?;
    let failed = |error: hyper::Error| {
        let why = format!("{} broke off: {error}", uri.host().unwrap_or_default());
        Refusal(StatusCode::BAD_GATEWAY, why)
    };
    let (mut sender, connection) = client::handshake(TokioIo::new(server))
        .await
        .map_err(failed)?;
    // Ends after the answer, or with the client that reads it.
    tokio::spawn(connection);
    let mut response = sender.send_request(request).await.map_err(failed)?;
    remove_headers_of_connection(response.headers_mut());
    Ok(response.map(BodyExt::boxed_unsync))
}

async fn connect(uri: &Uri, traffic: &Arc<Traffic>) -> Result<Server, Refusal> {
    let default = (uri.scheme_str() == Some("http")).then_some(80);
    let host = uri.host().filter(|host| host.len() <= LONGEST_NAME);
    let (Some(host), Some(port)) = (host, uri.port_u16().or(default)) else {
        let why = "the address has no name of a server, or no port".to_owned();
        return Err(Refusal(StatusCode::BAD_REQUEST, why));
    };
    Server::connect(host, port, traffic).await
}

fn host_of(uri: &Uri) -> Option<String> {
    let host = uri.host()?;
    Some(match uri.port() {
        None => host.to_owned(),
        Some(port) => format!("{host}:{port}"),
    })
}

fn remove_headers_of_connection(headers: &mut HeaderMap) {
    let named = headers.get_all(header::CONNECTION).iter();
    let named: Vec<HeaderName> = named
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in OF_CONNECTION {
        headers.remove(name);
    }
}

fn whole(text: String) -> Body {
    Full::from(text)
        .map_err(|never| match never {})
        .boxed_unsync()
}

impl Traffic {
    /// Keeps a refusal for the report.
    fn note(&self, why: &str) {
        let mut refusals = self.refusals.lock();
        if refusals.len() < REPORTED {
            refusals.insert(why.to_owned());
        }
    }

    fn too_many(&self) -> String {
        let most = self.limits.connections_at_once;
        format!("{most} connections are open, the most at a time")
    }
}
