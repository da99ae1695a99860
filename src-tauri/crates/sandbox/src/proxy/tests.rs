use super::*;
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpListener as Listener, TcpStream, UdpSocket},
};

/// By which tests reach their own servers.
const ANYWHERE: Rules = Rules {
    ports: |_| true,
    address: |_| true,
};

/// Accepts connections, each in a thread, and returns the address.
fn server(serve: impl Fn(TcpStream) + Clone + Send + 'static) -> SocketAddr {
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            thread::spawn(move || serve(stream));
        }
    });
    address
}

fn proxy(limits: Limits) -> Proxy {
    Proxy::with_rules(limits, ANYWHERE).unwrap()
}

fn client(proxy: &Proxy, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", proxy.port)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// What comes until an empty line.
fn head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

/// A request whose answer ends the connection, and that answer.
fn answer(proxy: &Proxy, line: &str) -> String {
    let request = format!("{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let mut text = String::new();
    client(proxy, &request).read_to_string(&mut text).unwrap();
    text
}

fn tunnel(proxy: &Proxy, server: SocketAddr) -> (TcpStream, String) {
    let mut stream = client(proxy, &format!("CONNECT {server} HTTP/1.1\r\n\r\n"));
    let head = head(&mut stream);
    (stream, head)
}

fn echo(mut stream: TcpStream) {
    let mut other = stream.try_clone().unwrap();
    let _ = io::copy(&mut stream, &mut other);
}

#[test]
fn a_request_arrives_without_what_is_the_proxys() {
    let address = server(|mut stream| {
        let request = head(&mut stream);
        let mut body = vec![0; 5];
        stream.read_exact(&mut body).unwrap();
        let text = format!("{request}{}", String::from_utf8(body).unwrap());
        let headers = "Keep-Alive: timeout=5\r\nX-Own: yes\r\nConnection: keep-alive, x-own";
        let length = text.len();
        write!(
            stream,
            "HTTP/1.1 200 OK\r\n{headers}\r\nContent-Length: {length}\r\n\r\n{text}"
        )
        .unwrap();
    });
    let proxy = proxy(Limits::default());
    let request = format!(
        "POST http://{address}/a?b HTTP/1.1\r\nHost: other.example\r\nProxy-Authorization: Basic x\r\nProxy-Connection: keep-alive\r\nX-Hop: 1\r\nAccept: */*\r\nConnection: close, X-Hop\r\nContent-Length: 5\r\n\r\nhello"
    );
    let mut text = String::new();
    client(&proxy, &request).read_to_string(&mut text).unwrap();
    let (answered, arrived) = text.split_once("\r\n\r\n").unwrap();
    assert!(answered.starts_with("HTTP/1.1 200 OK"), "{text}");
    for name in ["keep-alive:", "x-own:"] {
        assert!(!answered.to_lowercase().contains(name), "{text}");
    }
    let arrived = arrived.to_lowercase();
    assert!(arrived.starts_with("post /a?b http/1.1\r\n"), "{arrived}");
    assert!(arrived.ends_with("\r\n\r\nhello"), "{arrived}");
    assert!(
        arrived.contains(&format!("host: {address}\r\n")),
        "{arrived}"
    );
    assert!(arrived.contains("accept: */*"), "{arrived}");
    for name in ["proxy-", "x-hop", "other.example"] {
        assert!(!arrived.contains(name), "{name}: {arrived}");
    }
    let used = proxy.used();
    assert_eq!(used.connections, 1);
    assert!(
        used.sent_bytes > 50 && used.received_bytes > 100,
        "{used:?}"
    );
    assert!(used.refusals.is_empty(), "{used:?}");
}

#[test]
fn a_tunnel_passes_on_what_both_sides_send() {
    let proxy = proxy(Limits::default());
    let (mut stream, head) = tunnel(&proxy, server(echo));
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let sent: Vec<u8> = (0..200_000_u32).map(|number| number as u8).collect();
    let mut writer = stream.try_clone().unwrap();
    let bytes = sent.clone();
    let writing = thread::spawn(move || {
        writer.write_all(&bytes).unwrap();
        writer.shutdown(std::net::Shutdown::Write).unwrap();
    });
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    writing.join().unwrap();
    assert_eq!(received, sent);
    let used = proxy.used();
    assert_eq!((used.sent_bytes, used.received_bytes), (200_000, 200_000));
}

#[test]
fn no_address_inside_is_reached() {
    let proxy = Proxy::start(Limits::default()).unwrap();
    // This machine's own, by which it is known outside. Nothing is sent.
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    let own = socket.connect("198.51.100.1:9");
    let own = own.and_then(|()| socket.local_addr()).ok();
    let own = own.map(|own| own.ip().to_string());
    let inside = [
        "127.0.0.1",
        "localhost",
        "127.1",
        "2130706433",
        "0x7f.1",
        "0.0.0.0",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "[::]",
        "[::1]",
        "[fe80::1]",
        "[fd00::1]",
        "[ff02::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::a00:1]",
        "[2002:7f00:1::1]",
    ];
    for host in inside.into_iter().chain(own.as_deref()) {
        for line in [
            format!("CONNECT {host}:443"),
            format!("GET http://{host}/"),
            format!("GET http://{host}:443/"),
        ] {
            let answer = answer(&proxy, &line);
            assert!(answer.starts_with("HTTP/1.1 403 "), "{line}: {answer}");
            assert!(
                answer.contains("is inside this machine or network"),
                "{line}: {answer}"
            );
        }
    }
    let used = proxy.used();
    assert_eq!((used.sent_bytes, used.received_bytes), (0, 0));
    assert_eq!(used.refusals.len(), REPORTED, "{used:?}");
}

#[test]
fn what_is_no_request_of_the_web_is_refused() {
    let proxy = Proxy::start(Limits::default()).unwrap();
    for (line, status, why) in [
        ("CONNECT 1.1.1.1:22", 403, "port 22 of 1.1.1.1"),
        ("GET http://1.1.1.1:8080/", 403, "port 8080 of 1.1.1.1"),
        ("GET /", 400, "http:// addresses"),
        ("GET https://1.1.1.1/", 400, "http:// addresses"),
        ("GET ftp://1.1.1.1/", 400, "http:// addresses"),
        ("CONNECT 1.1.1.1", 400, "no port"),
        (
            "CONNECT none.invalid:443",
            502,
            "none.invalid was not found",
        ),
    ] {
        let answer = answer(&proxy, line);
        let begins = format!("HTTP/1.1 {status} ");
        assert!(answer.starts_with(&begins), "{line}: {answer}");
        assert!(answer.contains(why), "{line}: {answer}");
    }
    let long = answer(
        &proxy,
        &format!("GET http://{}/", "a".repeat(LONGEST_NAME + 1)),
    );
    assert!(long.starts_with("HTTP/1.1 400 "), "{long}");
    let refusals = proxy.used().refusals;
    assert!(refusals.iter().all(|why| why.len() < 500), "{refusals:?}");
}

#[test]
fn connections_are_counted() {
    let limits = Limits {
        connections_at_once: 2,
        connections: 4,
        ..Limits::default()
    };
    let proxy = proxy(limits);
    let address = server(echo);
    let open = [tunnel(&proxy, address), tunnel(&proxy, address)];
    for (_, head) in &open {
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    }
    let (_, head) = tunnel(&proxy, address);
    assert!(head.starts_with("HTTP/1.1 503 "), "{head}");
    drop(open);
    // Their places are free once the proxy has seen that they are closed.
    let mut made = 2;
    while made < 4 {
        let (_stream, head) = tunnel(&proxy, address);
        made += u32::from(head.starts_with("HTTP/1.1 200 "));
    }
    let text = loop {
        let text = answer(&proxy, &format!("CONNECT {address}"));
        if !text.starts_with("HTTP/1.1 503 ") {
            break text;
        }
    };
    assert!(text.starts_with("HTTP/1.1 403 "), "{text}");
    assert!(text.contains("4 connections were made"), "{text}");
    let used = proxy.used();
    assert_eq!(used.connections, 4);
    assert_eq!(
        used.refusals,
        [
            "2 connections are open, the most at a time",
            "4 connections were made, the most of one command"
        ]
    );
}

#[test]
fn bytes_are_counted_each_way() {
    let most = 3 << 20;
    let limits = Limits {
        sent_bytes: most,
        received_bytes: most,
        ..Limits::default()
    };
    let (counted, arrived) = std::sync::mpsc::channel();
    let reading = server(move |mut stream| {
        let count = io::copy(&mut stream, &mut io::sink());
        // A reset, too, ends it.
        let _ = counted.send(count.unwrap_or(0));
    });
    let sending = proxy(limits);
    let (mut stream, _) = tunnel(&sending, reading);
    let piece = [0; 65536];
    while stream.write_all(&piece).is_ok() {}
    assert!(arrived.recv().unwrap() <= most);
    let used = sending.used();
    assert_eq!(used.sent_bytes, most);
    let why = "3 MiB were sent, the most of one command";
    assert_eq!(used.refusals, [why]);
    let next = answer(&sending, &format!("GET http://{reading}/"));
    assert!(
        next.starts_with("HTTP/1.1 403 ") && next.contains(why),
        "{next}"
    );

    let endless = server(move |mut stream| while stream.write_all(&piece).is_ok() {});
    let receiving = proxy(limits);
    let (mut stream, _) = tunnel(&receiving, endless);
    let count = io::copy(&mut stream, &mut io::sink());
    // One reading may pass it.
    assert!(count.is_ok_and(|count| count < most + (1 << 20)));
    let used = receiving.used();
    assert!(
        (most..most + (1 << 20)).contains(&used.received_bytes),
        "{used:?}"
    );
    assert_eq!(
        used.refusals,
        ["3 MiB were received, the most of one command"]
    );
}
