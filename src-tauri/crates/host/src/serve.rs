//! Connections: each is limited in time and size while it waits for its client, and none of them, however slow or many,
//! blocks the others. A streaming answer may take any time while its client reads it.

mod body;
mod slots;

use axum::{Json, Router, response::IntoResponse};
use hyper::{
    Request, Response, StatusCode, body::Incoming, server::conn::http1, service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use slots::{ConnectionSlots, TakenSlot};
use std::{
    convert::Infallible,
    io,
    net::IpAddr,
    pin::{Pin, pin},
    sync::Arc,
    time::Duration,
};
use tierbar_core::{Code, Error, lease::BoxFuture};
use tierbar_edge::origin::TlsMark;
use tierbar_gateway::{ConnectionSlot, Slot};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// Far more than the clients of one machine's models, and at least twice the requests answered at the same time.
const CONNECTIONS: usize = 512;
/// The limit of a request's head, and so of the connection's buffers.
const HEAD_BYTES: usize = 64 << 10;
/// Files that may be open besides the connections and one upstream connection for each.
const FILES: usize = 1024;
/// The pause before another accept while the system is out of files.
const OUT_OF_FILES: Duration = Duration::from_millis(200);
/// The record type of a TLS client's first message.
const HANDSHAKE: u8 = 0x16;

/// How long the server waits for its clients.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientLimits {
    /// For a complete request head or handshake, from the connection's start or the previous answer.
    pub(crate) head: Duration,
    /// For a client to read any of the data sent to it.
    pub(crate) reading: Duration,
    pub(crate) connections: usize,
}

impl ClientLimits {
    pub(crate) fn with(requests_at_once: u16) -> Self {
        Self {
            connections: CONNECTIONS.max(2 * usize::from(requests_at_once)),
            ..Self::default()
        }
    }
}

impl Default for ClientLimits {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(60),
            reading: Duration::from_secs(120),
            connections: CONNECTIONS,
        }
    }
}

#[derive(Clone)]
pub(crate) struct ServeOptions {
    pub(crate) router: Router,
    pub(crate) tls: Option<TlsAcceptor>,
    pub(crate) limits: ClientLimits,
    pub(crate) closing: CancellationToken,
}

/// Serves until `closing`, and then until running requests are answered. Dropping it ends every connection.
pub(crate) async fn serve(listener: TcpListener, options: ServeOptions) {
    allow_files(FILES + 2 * options.limits.connections);
    let slots = Arc::new(ConnectionSlots::new(options.limits.connections));
    let options = Arc::new(options);
    let mut connections = JoinSet::new();
    loop {
        let stream = tokio::select! {
            () = options.closing.cancelled() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            stream = accept(&listener) => stream,
        };
        // While running requests take all slots, new connections wait in the system's queue.
        let Some(taken) = options.closing.run_until_cancelled(slots.take()).await else {
            break;
        };
        connections.spawn(serve_connection(stream, taken, Arc::clone(&options)));
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            // The client has aborted the connection.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                tracing::warn!("cannot accept connections: {error}");
                sleep(OUT_OF_FILES).await;
            }
        }
    }
}

async fn serve_connection(stream: TcpStream, taken: TakenSlot, options: Arc<ServeOptions>) {
    let taken = Arc::new(taken);
    // Ends a WebSocket too, which has a task of its own.
    let _ends = taken.end_with();
    tokio::select! {
        // Another client needs the slot, and this one has sent no request yet.
        () = taken.given_up() => {}
        () = detect_tls(stream, Arc::clone(&taken), options) => {}
    }
}

/// Detects TLS, if configured. Clients on this machine may do without it.
async fn detect_tls(stream: TcpStream, taken: Arc<TakenSlot>, options: Arc<ServeOptions>) {
    // Send tokens as they come, without buffering.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!("a connection buffers its answers: {error}");
    }
    let mut router = options.router.clone();
    if let Some(tls) = &options.tls {
        let mut first = [0];
        let Ok(Ok(1)) = timeout(options.limits.head, stream.peek(&mut first)).await else {
            return;
        };
        if first == [HANDSHAKE] {
            let accepting = tls.accept(with_write_timeout(stream, &options));
            if let Ok(Ok(stream)) = timeout(options.limits.head, accepting).await {
                serve_http(stream, taken, router, &options, true).await;
            }
            return;
        }
        if !is_from_here(&stream) {
            router = wants_tls();
        }
    }
    let stream = with_write_timeout(stream, &options);
    serve_http(stream, taken, router, &options, false).await;
}

async fn serve_http(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    taken: Arc<TakenSlot>,
    router: Router,
    options: &ServeOptions,
    over_tls: bool,
) {
    let (holds, mut is_held) = mpsc::channel(1);
    let slot = Slot(Arc::new(HeldSlot {
        taken: Arc::clone(&taken),
        _holds: holds,
    }));
    let service = service_fn(move |request: Request<Incoming>| {
        let (router, taken, slot) = (router.clone(), Arc::clone(&taken), slot.clone());
        async move {
            let mut request = request.map(|body| body::request(body, Arc::clone(&taken)));
            if over_tls {
                request.extensions_mut().insert(TlsMark);
            }
            request.extensions_mut().insert(slot);
            // The connection's buffer holds a little more than its size.
            let response: Response<_> = if head_bytes(&request) > HEAD_BYTES {
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE.into_response()
            } else {
                router.oneshot(request).await?
            };
            Ok::<_, Infallible>(response.map(|body| body::answer(body, taken)))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(options.limits.head)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let ended = {
        let mut connection = pin!(connection);
        tokio::select! {
            ended = connection.as_mut() => ended,
            () = options.closing.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!("a connection ended: {error}");
    }
    // A connection that has become a WebSocket lasts as long as that.
    let None = is_held.recv().await;
}

/// A connection's slot for a WebSocket.
#[derive(Debug)]
struct HeldSlot {
    taken: Arc<TakenSlot>,
    _holds: mpsc::Sender<Infallible>,
}

impl ConnectionSlot for HeldSlot {
    fn waits(&self) {
        self.taken.waits();
    }

    fn answers(&self) {
        self.taken.answers();
    }

    fn given_up(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.taken.given_up())
    }
}

/// Returns the length of a request's head as it was sent, but for spaces that may stand around values.
fn head_bytes<B>(request: &Request<B>) -> usize {
    const LINE: usize = "GET  HTTP/1.1\r\n\r\n".len();
    let target = request.uri().to_string().len();
    let fields = request.headers().iter();
    let fields = fields.map(|(name, value)| name.as_str().len() + value.len() + ": \r\n".len());
    LINE + target + fields.sum::<usize>()
}

/// Ends a connection whose client has read nothing for too long. Time without data to send does not count.
fn with_write_timeout(
    stream: TcpStream,
    options: &ServeOptions,
) -> Pin<Box<TimeoutStream<TcpStream>>> {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(options.limits.reading));
    Box::pin(stream)
}

fn is_from_here(stream: &TcpStream) -> bool {
    match (stream.peer_addr(), stream.local_addr()) {
        (Ok(from), Ok(to)) => is_this_machine(from.ip(), to.ip()),
        _ => false,
    }
}

/// Returns whether the client is on this machine: it then connects from the same address.
fn is_this_machine(from: IpAddr, to: IpAddr) -> bool {
    let from = from.to_canonical();
    from.is_loopback() || from == to.to_canonical()
}

fn wants_tls() -> Router {
    Router::new().fallback(async || {
        let message = "this server requires TLS from other machines";
        let error = Error::new(Code::BadRequest, message).hint("use https:// instead of http://");
        (StatusCode::BAD_REQUEST, Json(error.openai_body()))
    })
}

/// Raises the limit of open files: systems start programs with few (macOS: 256) and allow more on request.
fn allow_files(wanted: usize) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = u64::try_from(wanted).unwrap_or(u64::MAX);
    let wanted = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let raised = Rlimit {
        current: Some(wanted),
        maximum,
    };
    if current.is_some_and(|current| current < wanted)
        && let Err(error) = setrlimit(Resource::Nofile, raised)
    {
        tracing::debug!("no more than {current:?} files may be open: {error}");
    }
}

#[cfg(test)]
mod tests;
