//! A connection to a server, with what bounds it.

use super::{Refusal, Traffic};
use hyper::StatusCode;
use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};
use tierbar_core::address::is_public;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, lookup_host},
    sync::OwnedSemaphorePermit,
    time::timeout,
};

/// How long one address may take to accept a connection.
const ACCEPT: Duration = Duration::from_secs(10);
/// How many addresses of a name are tried.
const TRIED: usize = 4;

/// What may be connected to. Tests have rules by which they can reach their own servers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) ports: fn(u16) -> bool,
    pub(super) address: fn(SocketAddr) -> bool,
}

/// The ports of the web, outside this machine and network.
pub(super) const OUTSIDE: Rules = Rules {
    ports: |port| matches!(port, 80 | 443),
    address: |address| is_public(address.ip()) && !is_own(address),
};

/// A connection to a server. Its bytes are counted, and it has a place among those that are open.
#[derive(Debug)]
pub(super) struct Server {
    stream: TcpStream,
    traffic: Arc<Traffic>,
    _place: OwnedSemaphorePermit,
}

impl Server {
    pub(super) async fn connect(
        host: &str,
        port: u16,
        traffic: &Arc<Traffic>,
    ) -> Result<Self, Refusal> {
        if !(traffic.rules.ports)(port) {
            let why = format!("port {port} of {host} is not open to commands; 80 and 443 are");
            return Err(Refusal(StatusCode::FORBIDDEN, why));
        }
        let place = Arc::clone(&traffic.servers).try_acquire_owned();
        let place =
            place.map_err(|_| Refusal(StatusCode::SERVICE_UNAVAILABLE, traffic.too_many()))?;
        let most = traffic.limits.connections;
        let one_more = |made: u64| (made < most).then_some(made + 1);
        let (relaxed, made) = (Ordering::Relaxed, &traffic.connections);
        if made.fetch_update(relaxed, relaxed, one_more).is_err() {
            let why = format!("{most} connections were made, the most of one command");
            return Err(Refusal(StatusCode::FORBIDDEN, why));
        }
        for left in [traffic.left_to_send(), traffic.left_to_receive()] {
            left.map_err(|why| Refusal(StatusCode::FORBIDDEN, why.to_string()))?;
        }
        Ok(Self {
            stream: reach(host, port, traffic.rules).await?,
            traffic: Arc::clone(traffic),
            _place: place,
        })
    }
}

/// Looks a name up once, and connects to the first of its addresses that is allowed and accepts.
async fn reach(host: &str, port: u16, rules: Rules) -> Result<TcpStream, Refusal> {
    // An address of IPv6 stands in brackets.
    let name = host.trim_start_matches('[').trim_end_matches(']');
    let found = lookup_host((name, port)).await;
    let found = found.map_err(|error| {
        let why = format!("{host} was not found: {error}");
        Refusal(StatusCode::BAD_GATEWAY, why)
    })?;
    let why = format!("{host} is inside this machine or network, which commands do not reach");
    let mut refusal = Refusal(StatusCode::FORBIDDEN, why);
    for address in found
        .filter(|address| (rules.address)(*address))
        .take(TRIED)
    {
        let why = match timeout(ACCEPT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} s", ACCEPT.as_secs()),
        };
        let why = format!("{host} cannot be reached: {why}");
        refusal = Refusal(StatusCode::BAD_GATEWAY, why);
    }
    Err(refusal)
}

/// Whether an address is one of this machine's own, or of a network of IPv6 that it is in, whose machines have public addresses.
fn is_own(address: SocketAddr) -> bool {
    let any: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // Which address of this machine would be the sender's. This sends nothing.
    let sender = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect(address)?;
        socket.local_addr()
    });
    match (sender.map(|sender| sender.ip()), address.ip()) {
        (Ok(IpAddr::V4(sender)), IpAddr::V4(other)) => sender == other,
        (Ok(IpAddr::V6(sender)), IpAddr::V6(other)) => {
            sender.segments()[..4] == other.segments()[..4]
        }
        // Where no way leads to it.
        _ => false,
    }
}

impl Traffic {
    fn left_to_send(&self) -> io::Result<u64> {
        self.left(&self.sent, self.limits.sent_bytes, "sent")
    }

    fn left_to_receive(&self) -> io::Result<u64> {
        self.left(&self.received, self.limits.received_bytes, "received")
    }

    /// How many more bytes a command may send or receive, if any.
    fn left(&self, so_far: &AtomicU64, most: u64, what: &str) -> io::Result<u64> {
        let left = most.saturating_sub(so_far.load(Ordering::Relaxed));
        if left > 0 {
            return Ok(left);
        }
        let why = format!("{} MiB were {what}, the most of one command", most >> 20);
        self.note(&why);
        Err(io::Error::other(why))
    }
}

impl AsyncRead for Server {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.traffic.left_to_receive()?;
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let count = (buffer.filled().len() - before) as u64;
        self.traffic.received.fetch_add(count, Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Server {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        // One thread has all connections, so that together they send no more.
        let left = usize::try_from(self.traffic.left_to_send()?).unwrap_or(usize::MAX);
        let bytes = &bytes[..bytes.len().min(left)];
        let count = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        self.traffic.sent.fetch_add(count as u64, Ordering::Relaxed);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
