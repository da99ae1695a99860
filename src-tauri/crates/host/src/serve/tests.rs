use super::*;
use axum::{
    body::{Body, Bytes},
    routing::{get, post},
};
use std::net::SocketAddr;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    sync::mpsc,
};

const MOMENT: Duration = Duration::from_millis(100);
const REQUEST: &[u8] = b"GET /ping HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

/// Serves `router` while the test runs.
async fn served(router: Router, limits: ClientLimits) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let options = ServeOptions {
        router: router.route("/ping", get(|| async { "pong" })),
        tls: None,
        limits,
        closing: CancellationToken::new(),
    };
    tokio::spawn(serve(listener, options));
    address
}

async fn sent(address: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

/// Reads the rest of the server's output. A reset also ends it.
async fn rest(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(length @ 1..) = stream.read(&mut piece).await {
        answer.extend_from_slice(&piece[..length]);
    }
    String::from_utf8_lossy(&answer).into_owned()
}

async fn pinged(address: SocketAddr) -> String {
    rest(sent(address, REQUEST).await).await
}

#[tokio::test]
async fn partial_requests_do_not_block_other_clients() {
    let limits = ClientLimits {
        connections: 8,
        ..ClientLimits::default()
    };
    let reads = Router::new().route(
        "/",
        post(|body: Bytes| async move { body.len().to_string() }),
    );
    let address = served(reads, limits).await;
    let mut slow = Vec::new();
    for begun in 0..40 {
        let begin: &[u8] = match begun % 4 {
            0 => b"",
            1 => b"GET / HT",
            2 => b"POST / HTTP/1.1\r\nhost: localhost\r\nx-a: b\r\n",
            _ => b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\na",
        };
        slow.push(sent(address, begin).await);
        if begun % 10 == 9 {
            assert!(pinged(address).await.ends_with("pong"));
        }
    }
    // The first client has lost its slot without an answer.
    assert_eq!(rest(slow.remove(0)).await, "");
    // The last still has its slot.
    let mut last = slow.pop().unwrap();
    last.write_all(&[b'a'; 99]).await.unwrap();
    let mut answer = [0; 12];
    last.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
}

#[tokio::test]
async fn endless_and_large_request_heads_end_the_connection() {
    let limits = ClientLimits {
        head: MOMENT,
        ..ClientLimits::default()
    };
    let address = served(Router::new(), limits).await;
    let cut = sent(address, b"GET /ping HTTP/1.1\r\nhost:").await;
    let answer = rest(cut).await;
    assert!(!answer.contains("200"), "{answer}");
    // So does one without another request.
    let idle = sent(address, b"GET /ping HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    assert!(rest(idle).await.ends_with("pong"));

    let address = served(Router::new(), ClientLimits::default()).await;
    let large = format!("GET / HTTP/1.1\r\nx: {}", "y".repeat(HEAD_BYTES + 1));
    let answer = rest(sent(address, large.as_bytes()).await).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    // The connection's buffer would take a little more.
    let whole = format!(
        "GET / HTTP/1.1\r\nhost: localhost\r\nx: {}\r\n\r\n",
        "y".repeat(HEAD_BYTES)
    );
    let answer = rest(sent(address, whole.as_bytes()).await).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(101));
    let answer = rest(sent(address, many.as_bytes()).await).await;
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
}

/// A body of what the test sends. The sender notices when it is dropped.
struct ChannelBody(mpsc::Receiver<Bytes>);

impl http_body::Body for ChannelBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        let received = self.0.poll_recv(context);
        received.map(|piece| piece.map(|piece| Ok(http_body::Frame::data(piece))))
    }
}

fn streaming() -> (Router, mpsc::Sender<Bytes>) {
    let (send, receive) = mpsc::channel(1);
    let receive = Arc::new(parking_lot::Mutex::new(Some(receive)));
    let answer = move || {
        let receive = receive.lock().take().unwrap();
        std::future::ready(Response::new(Body::new(ChannelBody(receive))))
    };
    (Router::new().route("/", get(answer)), send)
}

const STREAM: &[u8] = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";

#[tokio::test]
async fn a_client_that_reads_nothing_is_disconnected() {
    let limits = ClientLimits {
        reading: MOMENT,
        ..ClientLimits::default()
    };
    let (router, send) = streaming();
    let address = served(router, limits).await;
    let _silent = sent(address, STREAM).await;
    let piece = Bytes::from(vec![b'x'; 1 << 20]);
    // More than any system's buffers hold; then the server waits, and finally disconnects.
    let mut taken = 0;
    while send.send(piece.clone()).await.is_ok() {
        taken += 1;
        assert!(taken < 1000, "the stream is being read");
    }
    assert!(send.is_closed());
}

#[tokio::test]
async fn a_silent_stream_stays_open() {
    let limits = ClientLimits {
        head: MOMENT,
        reading: MOMENT,
        ..ClientLimits::default()
    };
    let (router, send) = streaming();
    let address = served(router, limits).await;
    let mut client = sent(address, STREAM).await;
    for word in ["one", "two", "three"] {
        send.send(word.into()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(format!("{word}\r\n").as_bytes()) {
            answer.push(client.read_u8().await.unwrap());
        }
        // As long as the server's limits.
        assert_eq!(
            rest(sent(address, b"GET /").await)
                .await
                .matches("200")
                .count(),
            0
        );
    }
}

#[tokio::test]
async fn shutdown_finishes_answers_and_accepts_no_more() {
    let (router, send) = streaming();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let closing = CancellationToken::new();
    let options = ServeOptions {
        router,
        tls: None,
        limits: ClientLimits::default(),
        closing: closing.clone(),
    };
    let served = tokio::spawn(serve(listener, options));
    let client = sent(address, STREAM).await;
    send.send("first ".into()).await.unwrap();
    send.send("second ".into()).await.unwrap();
    closing.cancel();
    send.send("last".into()).await.unwrap();
    drop(send);
    let answer = rest(client).await;
    assert!(
        answer.contains("first") && answer.contains("last"),
        "{answer}"
    );
    served.await.unwrap();
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_remote_client_without_tls_gets_a_message() {
    let ip = |text: &str| text.parse::<IpAddr>().unwrap();
    for (from, to, here) in [
        ("127.0.0.1", "127.0.0.1", true),
        ("::ffff:127.0.0.1", "::ffff:127.0.0.1", true),
        ("192.168.1.5", "192.168.1.5", true),
        ("::ffff:192.168.1.5", "192.168.1.5", true),
        ("192.168.1.6", "192.168.1.5", false),
        ("::ffff:192.168.1.6", "::ffff:192.168.1.5", false),
        ("fd00::1", "fd00::2", false),
    ] {
        assert_eq!(is_this_machine(ip(from), ip(to)), here, "{from} to {to}");
    }
    let address = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let options = ServeOptions {
            router: wants_tls(),
            tls: None,
            limits: ClientLimits::default(),
            closing: CancellationToken::new(),
        };
        tokio::spawn(serve(listener, options));
        address
    };
    let answer = pinged(address).await;
    assert!(
        answer.starts_with("HTTP/1.1 400") && answer.contains("https://"),
        "{answer}"
    );
}

/// Becomes another protocol, which says when its slot is lost.
async fn upgraded(mut request: axum::extract::Request) -> axum::response::Response {
    let Slot(slot) = request.extensions_mut().remove().unwrap();
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let mut stream = TokioIo::new(upgrade.await.unwrap());
        slot.waits();
        slot.given_up().await;
        let _gone = stream.write_all(b"given up").await;
    });
    let head = axum::response::Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header("connection", "upgrade")
        .header("upgrade", "test");
    head.body(Body::empty()).unwrap()
}

const UPGRADE: &[u8] =
    b"GET /upgrade HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: test\r\n\r\n";

#[tokio::test]
async fn a_connection_that_changes_its_protocol_keeps_its_slot() {
    let limits = ClientLimits {
        connections: 1,
        head: MOMENT,
        ..ClientLimits::default()
    };
    let router = Router::new().route("/upgrade", get(upgraded));
    let address = served(router, limits).await;
    let mut first = sent(address, UPGRADE).await;
    let mut head = [0; 12];
    first.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 101");
    // Another client needs the only slot.
    assert!(pinged(address).await.ends_with("pong"));
    assert!(rest(first).await.ends_with("given up"));
}

#[tokio::test]
async fn a_changed_connection_ends_with_the_server() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let options = ServeOptions {
        router: Router::new().route("/upgrade", get(upgraded)),
        tls: None,
        limits: ClientLimits::default(),
        closing: CancellationToken::new(),
    };
    let closing = options.closing.clone();
    let serving = tokio::spawn(serve(listener, options));
    let mut client = sent(address, UPGRADE).await;
    let mut head = [0; 12];
    client.read_exact(&mut head).await.unwrap();
    closing.cancel();
    // Like a running answer, it is waited for, until the server is dropped.
    tokio::task::yield_now().await;
    assert!(!serving.is_finished());
    serving.abort();
    assert!(rest(client).await.ends_with("given up"));
}
