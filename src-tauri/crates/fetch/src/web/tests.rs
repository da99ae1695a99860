use super::*;
use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Mutex,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
    task::JoinHandle,
};
use tracing_subscriber::util::SubscriberInitExt as _;

/// Answers each request, by its path, with the bytes that `reply` gives, and records the requests.
struct Server {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
    serving: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Server {
    async fn start(reply: impl Fn(&str) -> String + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let serving = tokio::spawn({
            let heads = heads.clone();
            async move {
                let mut silent = Vec::new();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    let mut stream = BufReader::new(stream);
                    let mut head = String::new();
                    while !head.ends_with("\r\n\r\n") {
                        if stream.read_line(&mut head).await.unwrap_or(0) == 0 {
                            break;
                        }
                    }
                    let text = reply(head.split(' ').nth(1).unwrap_or_default());
                    heads.lock().unwrap().push(head);
                    let _ = stream.get_mut().write_all(text.as_bytes()).await;
                    if text.contains("X-Silent") || text.is_empty() {
                        silent.push(stream);
                    }
                }
            }
        });
        Self {
            address,
            heads,
            serving,
        }
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    fn url(&self, host: &str, path: &str) -> Url {
        Url::parse(&format!("http://{host}:{}{path}", self.address.port())).unwrap()
    }
}

fn found(body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
}

fn moved(to: &str) -> String {
    format!(
        "HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
}

fn options() -> WebOptions {
    WebOptions {
        proxies: false,
        ..WebOptions::default()
    }
}

/// A client for which two names are public servers (this test's own), and two lead inside.
fn outside() -> Web {
    let table = [
        ("hub.test", "93.184.216.34"),
        ("storage.test", "2606:2800:220:1::1"),
        ("inside.test", "127.0.0.1"),
        ("router.test", "192.168.1.1"),
        ("both.test", "93.184.216.34"),
        ("both.test", "10.0.0.1"),
    ];
    let lookup = Lookup::table(&table, IpAddr::V4(Ipv4Addr::LOCALHOST));
    Web::with_lookup(options(), lookup).unwrap()
}

async fn text(web: &Web, get: Get) -> Result<String, Error> {
    let bytes = web.get(get).await?.bytes(1000).await?;
    Ok(String::from_utf8(bytes.to_vec()).unwrap())
}

#[tokio::test]
async fn public_servers_may_redirect_only_to_public_ones() {
    // The port of the one server that all names lead to.
    let port = Arc::new(std::sync::OnceLock::new());
    let server = Server::start({
        let port = port.clone();
        move |path| match path.strip_prefix("/to/") {
            Some(hosts) => {
                let (host, rest) = hosts.split_once('/').unwrap_or((hosts, ""));
                let path = if rest.is_empty() {
                    "end".to_owned()
                } else {
                    format!("to/{rest}")
                };
                moved(&format!("http://{host}:{}/{path}", port.get().unwrap()))
            }
            None => found("arrived"),
        }
    })
    .await;
    port.set(server.address.port()).unwrap();
    let web = outside();
    let to = |from: &str, host: &str| Get::new(server.url(from, &format!("/to/{host}")));
    for host in ["storage.test", "both.test"] {
        assert_eq!(
            text(&web, to("hub.test", host)).await.unwrap(),
            "arrived",
            "{host}"
        );
    }
    for host in [
        "127.0.0.1",
        "2130706433",
        "0x7f.1",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "[::1]",
        "[::]",
        "[fe80::1]",
        "[fd00::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "inside.test",
        "router.test",
    ] {
        let error = text(&web, to("hub.test", host)).await.unwrap_err();
        assert_eq!(error.code, Code::Unreachable, "{host}: {error}");
        assert!(
            error.message.contains("inside this machine or network"),
            "{host}: {error}"
        );
    }
    let arrivals = server
        .heads()
        .iter()
        .filter(|head| head.starts_with("GET /end"))
        .count();
    assert_eq!(arrivals, 2, "a refused server got a request");

    // A private address beside a public one opens nothing.
    let error = text(&web, to("both.test", "127.0.0.1")).await.unwrap_err();
    assert_eq!(error.code, Code::Unreachable, "{error}");

    // A request to an inner address may be redirected to others.
    for from in ["127.0.0.1", "inside.test"] {
        for host in ["127.0.0.1", "inside.test", "storage.test"] {
            assert_eq!(
                text(&web, to(from, host)).await.unwrap(),
                "arrived",
                "{from} → {host}"
            );
        }
        // But not by a public server on the way.
        for host in ["127.0.0.1", "inside.test"] {
            let error = text(&web, to(from, &format!("storage.test/{host}"))).await;
            assert_eq!(
                error.unwrap_err().code,
                Code::Unreachable,
                "{from} → {host}"
            );
        }
    }
}

#[tokio::test]
async fn a_private_name_that_turns_public_after_a_redirect_is_refused() {
    let server = Server::start(|path| match path {
        "/to" => moved("/end"),
        _ => found("arrived"),
    })
    .await;
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let addresses = &["10.0.0.1", "10.0.0.1", "93.184.216.34"];
    let web = Web::with_lookup(options(), Lookup::changing(addresses, here)).unwrap();
    let error = text(&web, Get::new(server.url("name.test", "/to")))
        .await
        .unwrap_err();
    assert!(error.message.contains("has just changed"), "{error}");
}

#[tokio::test]
async fn a_name_that_turns_public_gets_no_private_reach() {
    let server = Server::start(|path| match path {
        "/to" => moved("http://127.0.0.1/end"),
        _ => found("arrived"),
    })
    .await;
    let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
    for (addresses, why) in [
        (&["10.0.0.1", "93.184.216.34"][..], "has just changed"),
        (&["93.184.216.34", "10.0.0.1"], "inside this machine"),
    ] {
        let web = Web::with_lookup(options(), Lookup::changing(addresses, here)).unwrap();
        let error = text(&web, Get::new(server.url("name.test", "/to")))
            .await
            .unwrap_err();
        assert!(error.message.contains(why), "{error}");
    }
    assert_eq!(server.heads(), Vec::<String>::new());
}

#[tokio::test]
async fn get_public_does_not_reach_inside() {
    let server = Server::start(|_| found("arrived")).await;
    let web = outside();
    for (host, arrives) in [
        ("hub.test", true),
        ("both.test", true),
        ("inside.test", false),
        ("router.test", false),
        ("127.0.0.1", false),
    ] {
        let answer = web.get_public(Get::new(server.url(host, "/"))).await;
        assert_eq!(answer.is_ok(), arrives, "{host}");
    }
}

#[tokio::test]
async fn the_token_stays_with_the_server_that_it_is_for() {
    let port = Arc::new(std::sync::OnceLock::new());
    let server = Server::start({
        let port = port.clone();
        move |path| match path {
            "/a" => moved("/b"),
            "/b" => moved(&format!("http://storage.test:{}/c", port.get().unwrap())),
            _ => found(""),
        }
    })
    .await;
    port.set(server.address.port()).unwrap();
    let mut get = Get::new(server.url("hub.test", "/a"));
    get.token = Some(SecretString::from("hf_secret"));
    text(&outside(), get).await.unwrap();
    let sent_token: Vec<bool> = server
        .heads()
        .iter()
        .map(|head| head.contains("Bearer hf_secret"))
        .collect();
    assert_eq!(sent_token, [true, true, false]);
}

#[tokio::test]
async fn a_token_can_have_a_header_of_its_own() {
    let server = Server::start(|_| found("")).await;
    let mut get = Get::new(server.url("hub.test", "/a"));
    get.token = Some(SecretString::from("a-key"));
    get.token_header = Some("X-Subscription-Token");
    text(&outside(), get.clone()).await.unwrap();
    let head = server.heads()[0].to_lowercase();
    assert!(head.contains("x-subscription-token: a-key"), "{head}");
    assert!(!head.contains("authorization"), "{head}");
    get.token = Some(SecretString::from("two\nlines"));
    let error = text(&outside(), get).await.unwrap_err();
    assert!(!error.message.contains("lines"), "{error:?}");
}

#[tokio::test]
async fn debug_errors_and_logs_contain_no_token_or_signature() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer({
            let log = log.clone();
            move || log.clone()
        })
        .finish();
    // For the whole process, as `log` has no other way: what other tests log is no matter.
    subscriber.try_init().unwrap();
    let server = Server::start(|path| match path {
        "/a" => moved("/b?signature=hidden"),
        _ => "HTTP/1.1 403 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned(),
    })
    .await;
    let mut get = Get::new(server.url("hub.test", "/a"));
    get.token = Some(SecretString::from("hf_secret"));
    let web = outside();
    let answer = web.fetch(&get).await.unwrap();
    let error = answer.refusal().unwrap();
    assert!(server.heads()[0].contains("hf_secret"));
    let shown = format!("{get:?} {web:?} {answer:?} {error:?} {error}");
    assert!(
        !shown.contains("hf_secret") && !shown.contains("hidden"),
        "{shown}"
    );
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("connect"), "nothing was logged: {log}");
    assert!(!log.contains("hf_secret"), "{log}");
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn at_most_ten_redirects_are_followed() {
    let server = Server::start(|path| match path[1..].parse::<u32>() {
        Ok(0) => found("arrived"),
        Ok(left) => moved(&format!("/{}", left - 1)),
        Err(_) => moved("http://[not an address"),
    })
    .await;
    let web = outside();
    let arrived = text(&web, Get::new(server.url("hub.test", "/10"))).await;
    assert_eq!(arrived.unwrap(), "arrived");
    let error = text(&web, Get::new(server.url("hub.test", "/11")))
        .await
        .unwrap_err();
    assert!(error.message.contains("more than 10 times"), "{error}");
    let error = text(&web, Get::new(server.url("hub.test", "/x")))
        .await
        .unwrap_err();
    assert!(error.message.contains("invalid address"), "{error}");
}

#[test]
fn a_redirect_never_leaves_https() {
    let from = Url::parse("https://hub.test/a").unwrap();
    let to = |location| redirect(&from, &HeaderValue::from_static(location));
    assert_eq!(to("/b").unwrap().as_str(), "https://hub.test/b");
    assert_eq!(
        to("//storage.test/b").unwrap().as_str(),
        "https://storage.test/b"
    );
    assert!(matches!(to("http://hub.test/a"), Err(Failure::Refused(_))));
    let raw = HeaderValue::from_bytes("/模型.gguf?file=ü".as_bytes()).unwrap();
    let raw = redirect(&from, &raw).unwrap();
    assert_eq!(raw.path(), "/%E6%A8%A1%E5%9E%8B.gguf");
    assert_eq!(raw.query(), Some("file=%C3%BC"));
    let plain = Url::parse("http://hub.test/a").unwrap();
    let up = redirect(&plain, &HeaderValue::from_static("https://hub.test/a"));
    assert_eq!(up.unwrap().scheme(), "https");
}

#[tokio::test]
async fn only_http_urls_without_credentials_are_requested() {
    let server = Server::start(|path| match path {
        "/file" => moved("file:///etc/passwd"),
        "/user" => moved("http://me:word@hub.test/"),
        _ => found(""),
    })
    .await;
    let web = outside();
    let mut urls = vec![
        server.url("hub.test", "/file"),
        server.url("hub.test", "/user"),
    ];
    for url in [
        "ftp://hub.test/",
        "file:///etc/passwd",
        "http://me@hub.test/",
        "http://:word@hub.test/",
    ] {
        urls.push(Url::parse(url).unwrap());
    }
    for url in urls {
        let error = text(&web, Get::new(url)).await.unwrap_err();
        assert_eq!(error.code, Code::BadRequest, "{error}");
        assert!(!error.message.contains("word@"), "{error}");
    }
    assert_eq!(server.heads().len(), 2);
}

#[tokio::test]
async fn a_silent_server_times_out() {
    let server = Server::start(|path| match path {
        "/mute" => String::new(),
        _ => "HTTP/1.1 200 OK\r\nX-Silent: 1\r\nContent-Length: 10\r\n\r\nhalf".to_owned(),
    })
    .await;
    let options = WebOptions {
        stall: Duration::from_secs(1),
        ..options()
    };
    let web = Web::new(options).unwrap();
    let error = text(&web, Get::new(server.url("127.0.0.1", "/mute")))
        .await
        .unwrap_err();
    assert!(
        error.code == Code::Unreachable && error.message.contains("did not answer"),
        "{error}"
    );
    let mut answer = web
        .get(Get::new(server.url("127.0.0.1", "/half")))
        .await
        .unwrap();
    assert_eq!(answer.chunk().await.unwrap().unwrap(), "half");
    let error = answer.chunk().await.unwrap_err();
    assert!(error.message.contains("sent almost nothing for"), "{error}");
}

#[tokio::test]
async fn a_server_that_sends_almost_nothing_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(async move {
        let mut streams = tokio::task::JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            streams.spawn(async move {
                let mut stream = BufReader::new(stream);
                let mut line = String::new();
                stream.read_line(&mut line).await.unwrap();
                // Enough bytes at a time to be no stall, or too few.
                let size = if line.contains("/trickle") { 2048 } else { 1 };
                let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n";
                stream.get_mut().write_all(head.as_bytes()).await?;
                loop {
                    stream.get_mut().write_all(&vec![b'x'; size]).await?;
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                #[expect(unreachable_code, reason = "the type of the block")]
                std::io::Result::Ok(())
            });
        }
    });
    let options = WebOptions {
        stall: Duration::from_secs(1),
        ..options()
    };
    let web = Web::new(options).unwrap();
    let get = |path| Get::new(format!("http://127.0.0.1:{port}{path}").parse().unwrap());
    let mut dribble = web.get(get("/dribble")).await.unwrap();
    let error = loop {
        match dribble.chunk().await {
            Ok(chunk) => assert!(chunk.is_some()),
            Err(error) => break error,
        }
    };
    assert!(error.message.contains("nothing for"), "{error}");

    // A file may trickle; a document, which the user waits for, may not.
    let waited_for = async || {
        let trickle = web.get(get("/trickle")).await.unwrap();
        trickle.bytes(usize::MAX).await.unwrap_err()
    };
    let mut error = waited_for().await;
    // A machine that stands still for a second hears nothing for so long.
    for _ in 0..10 {
        if !error.message.contains("nothing for") {
            break;
        }
        error = waited_for().await;
    }
    assert!(
        error.code == Code::Unreachable && error.message.contains("did not arrive within"),
        "{error}"
    );
    serving.abort();
}

#[tokio::test]
async fn documents_are_bounded_and_uncompressed() {
    let server = Server::start(|_| found("[1, 2, 3]")).await;
    let web = outside();
    let list = async |limit| {
        let answer = web.get(Get::new(server.url("hub.test", "/list"))).await;
        answer.unwrap().bytes(limit).await
    };
    assert_eq!(list(9).await.unwrap(), "[1, 2, 3]");
    let error = list(8).await.unwrap_err();
    assert!(
        error.code == Code::Corrupt && error.message.contains("more than 8 bytes"),
        "{error}"
    );
    for head in server.heads() {
        assert!(
            head.to_lowercase()
                .contains("accept-encoding: identity\r\n"),
            "{head}"
        );
    }
}

#[tokio::test]
async fn headers_of_a_redirect_are_kept() {
    let hash = "AB".repeat(32);
    let server = Server::start(move |path| match path {
        "/a" => format!(
            "HTTP/1.1 302 Found\r\nLocation: /b\r\nX-Linked-Etag: \"{hash}\"\r\n\
             Content-Length: 0\r\nConnection: close\r\n\r\n"
        ),
        _ => "HTTP/1.1 200 OK\r\nETag: \"other\"\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello".to_owned(),
    })
    .await;
    let answer = outside()
        .get(Get::new(server.url("hub.test", "/a")))
        .await
        .unwrap();
    assert_eq!(answer.sha256, Some("ab".repeat(32)));
    assert_eq!(answer.etag.as_deref(), Some("\"other\""));
    assert_eq!(answer.url.path(), "/b");
}

#[tokio::test]
async fn ranges_are_requested_in_http_form() {
    let server = Server::start(|_| found("")).await;
    let mut get = Get::new(server.url("hub.test", "/"));
    get.range = Some(ByteRange {
        start: 5,
        end: Some(9),
    });
    get.if_range = Some("\"one\"".to_owned());
    let web = outside();
    web.get(get.clone()).await.unwrap();
    get.range = Some(ByteRange {
        start: 5,
        end: None,
    });
    web.get(get).await.unwrap();
    let heads = server.heads();
    assert!(
        heads[0].contains("range: bytes=5-8\r\n") && heads[0].contains("if-range: \"one\"\r\n")
    );
    assert!(heads[1].contains("range: bytes=5-\r\n"));
}

#[test]
fn a_content_range_is_read_strictly() {
    let read = |text| ContentRange::parse(text);
    let range = |bytes, total| Some(ContentRange { bytes, total });
    assert_eq!(read("bytes 0-9/10"), range(Some((0, 10)), Some(10)));
    assert_eq!(read("bytes 5-9/*"), range(Some((5, 10)), None));
    assert_eq!(read("bytes */10"), range(None, Some(10)));
    for wrong in [
        "",
        "bytes",
        "bytes 0-9",
        "items 0-9/10",
        "bytes 9-5/10",
        "bytes 0-10/10",
        "bytes -5/10",
        "bytes +0-9/10",
        "bytes 0-18446744073709551615/*",
        "bytes 0-9/ten",
        "bytes 0-99999999999999999999/*",
    ] {
        assert_eq!(read(wrong), None, "{wrong}");
    }
}
