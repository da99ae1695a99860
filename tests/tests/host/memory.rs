//! The memory of requests: none makes the host allocate more than it is charged for.

use axum::{Json, Router, body::to_bytes, extract::Request};
use futures_util::{StreamExt, future::join_all, stream};
use reqwest::Method;
use serde_json::json;
use std::{convert::Infallible, fs, time::Duration};
use tierbar_tests::{
    binaries::STARTER,
    serving::{Data, Serving},
    wait::within,
};
use tokio::{net::TcpListener, time::sleep};

/// Below the limit of a body.
pub(crate) const LENGTH: usize = 29 << 20;
/// What one request may take besides its body, and all of them together.
pub(crate) const ONE_MIB: u64 = 96;
const ALL_MIB: u64 = 512;
/// Buffers of connections, and whatever else a host does meanwhile.
pub(crate) const NOISE_MIB: u64 = 12;

const ROUTES: [&str; 16] = [
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/embeddings",
    "/v1/rerank",
    "/v1/responses",
    "/v1/responses/compact",
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1/brief",
    "/v1/summarize",
    "/v1/compress",
    "/v1/triage",
    "/api/chat",
    "/api/generate",
    "/api/embed",
    "/v1/context/load",
];

/// Returns a line of the host's status, in MiB.
pub(crate) fn status_mib(host: &Serving, name: &str) -> u64 {
    status_of(host.pid(), name)
}

pub(crate) fn status_of(pid: u32, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib >> 10
}

/// A host whose memory is what it has allocated: the allocator gives each large piece back at once, and keeps one heap, where it would
/// keep one for each thread.
pub(crate) async fn frugal(data: Data) -> (Data, Serving) {
    let data = data
        .with("MALLOC_ARENA_MAX", "1")
        .with("MALLOC_MMAP_THRESHOLD_", "65536")
        .with("MALLOC_TRIM_THRESHOLD_", "0");
    let host = data.serve().await;
    // Once it has measured the machine.
    let (status, _) = host.ask(Method::GET, "/tierbar/v1/diagnosis", None).await;
    assert_eq!(status, 200);
    (data, host)
}

/// Returns what is resident, and sets the peak to it.
pub(crate) fn begin(host: &Serving) -> u64 {
    begin_of(host.pid())
}

pub(crate) fn begin_of(pid: u32) -> u64 {
    loop {
        fs::write(format!("/proc/{pid}/clear_refs"), "5").unwrap();
        let resident = status_of(pid, "VmRSS:");
        // What is freed between the two would count as a rise.
        if status_of(pid, "VmHWM:") <= resident + 2 {
            return resident;
        }
    }
}

/// Returns by how many MiB the memory rose at most since [`begin`] returned `before`.
pub(crate) fn rise_since(host: &Serving, before: u64) -> u64 {
    status_mib(host, "VmHWM:").saturating_sub(before)
}

/// Has a request sent, and returns the status and by how many MiB the host's memory rose meanwhile. A host measures the memory's bandwidth
/// now and then, for which it takes 256 MiB: a rise above `most` is measured twice more, and the median counts.
pub(crate) async fn rise(host: &Serving, most: u64, send: impl AsyncFn() -> u16) -> (u16, u64) {
    let once = async || {
        let before = begin(host);
        (send().await, rise_since(host, before))
    };
    let first = once().await;
    if first.1 <= most {
        return first;
    }
    let mut three = [first, once().await, once().await];
    three.sort_unstable_by_key(|(_, rise)| *rise);
    three[1]
}

/// Sends a body; returns the answer's status once all of it is here.
pub(crate) async fn send(host: &Serving, path: &str, kind: &str, body: String) -> u16 {
    let mut request = host
        .http
        .request(Method::POST, format!("{}{path}", host.url))
        .header("content-type", kind)
        .header("x-tierbar-queue", "never");
    if path.starts_with("/v1/context/") {
        request = request.bearer_auth(&host.token);
    }
    let answer = within("an answer", request.body(body).send())
        .await
        .unwrap();
    let status = answer.status().as_u16();
    within("its body", answer.bytes()).await.unwrap();
    status
}

async fn send_as_owner(host: &Serving, path: &str, body: String) -> u16 {
    let method = if path.ends_with("/config") {
        Method::PATCH
    } else {
        Method::POST
    };
    let request = host.http.request(method, format!("{}{path}", host.url));
    let request = request.bearer_auth(&host.token).body(body);
    let answer = within("an answer", request.send()).await.unwrap();
    answer.status().as_u16()
}

/// Parts between two ends, of at most so many bytes.
pub(crate) fn filled(length: usize, start: &str, part: &str, end: &str) -> String {
    let parts = (length - start.len() - end.len()) / part.len();
    format!("{start}{}{end}", part.repeat(parts))
}

#[cfg_attr(target_vendor = "apple", ignore = "it has no /proc")]
#[tokio::test]
async fn no_request_takes_more_memory_than_it_is_charged() {
    let (_data, host) = frugal(Data::empty("")).await;
    let json = "application/json";
    let mut bombs = Vec::new();
    for path in ROUTES {
        bombs.push((path, json, ["{\"x\":[", "[0],", "0]}"]));
        bombs.push((path, json, ["{\"x\":[", "{\"\":0},", "0]}"]));
        bombs.push((path, json, ["{\"x\":[[", "0,", "0]]}"]));
        let prompt = "{\"model\":\"none\",\"prompt\":\"";
        bombs.push((path, json, [prompt, "word ", "\"}"]));
    }
    for path in [ROUTES[0], "/v1/messages", "/api/chat"] {
        let start =
            "{\"model\":\"none\",\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":\"";
        bombs.push((path, json, [start, "word ", "\"}]}"]));
    }
    for path in ["/v1/responses", "/v1/responses/compact"] {
        bombs.push((
            path,
            json,
            ["{\"model\":\"none\",\"input\":\"", "word ", "\"}"],
        ));
    }
    for path in ["/v1/summarize", "/v1/compress", "/v1/triage"] {
        bombs.push((path, json, ["{\"text\":\"", "word 1 ", "\"}"]));
    }
    let brief = "/v1/brief";
    bombs.push((brief, json, ["{\"lines\":\"[", "[0],", "[0]]\"}"]));
    let lines = "[[0],[0],[0],[0]]\\n";
    bombs.push((brief, json, ["{\"lines\":\"", lines, "\"}"]));
    for kind in ["application/x-ndjson", "text/plain"] {
        bombs.push((brief, kind, ["\"\n", "[[0],[0],[0]]\n", ""]));
        bombs.push((brief, kind, ["{\"m\":[", "[0],", "0]}"]));
        bombs.push((brief, kind, ["", "{\"m\":1}\n", ""]));
        bombs.push((ROUTES[0], kind, ["{\"x\":[", "[0],", "0]}"]));
    }
    for (path, kind, [start, part, end]) in bombs {
        let most = (LENGTH as u64 >> 20) + ONE_MIB + NOISE_MIB;
        let bomb = async || send(&host, path, kind, filled(LENGTH, start, part, end)).await;
        let (_, rise) = rise(&host, most, bomb).await;
        assert!(
            rise <= most,
            "{path} took {rise} MiB for {kind} {start}{part}…"
        );
    }
    // As many values as are read: so many bytes each by the count, and the text of three copies.
    let lists = "[0],".repeat((96 << 20) / (512 + 256 + 12) - 4);
    let numbers = "0,".repeat((96 << 20) / (160 + 6) - 12);
    for (path, values) in ROUTES
        .iter()
        .flat_map(|path| [(path, &lists), (path, &numbers)])
    {
        let body = format!("{{\"x\":[{values}0]}}");
        let most = 2 + ONE_MIB + NOISE_MIB;
        let values = async || send(&host, path, json, body.clone()).await;
        let (status, rise) = rise(&host, most, values).await;
        assert_ne!(status, 413, "{path}");
        assert!(rise <= most, "{path} took {rise} MiB for its values");
    }
}

#[cfg_attr(target_vendor = "apple", ignore = "it has no /proc")]
#[tokio::test]
async fn the_owners_requests_are_charged_too() {
    let (_data, host) = frugal(Data::empty("")).await;
    let (status, chat) = host
        .ask(Method::POST, "/tierbar/v1/chats", Some(json!({})))
        .await;
    assert_eq!(status, 201);
    let chat = format!("/tierbar/v1/chats/{}", chat["id"].as_str().unwrap());
    let messages = format!("{chat}/messages");
    let turns = format!("{chat}/turns");
    let lists = format!("{{\"x\":[{}0]}}", "[0],".repeat(80_000));
    let text = format!(
        "{{\"role\":\"user\",\"content\":\"{}\"}}",
        "word ".repeat((7 << 20) / 5)
    );
    let routes = [
        "/tierbar/v1/config",
        "/tierbar/v1/downloads",
        "/tierbar/v1/keys",
        "/tierbar/v1/tiers/fast/bench",
        "/tierbar/v1/route",
        "/tierbar/v1/chats",
        "/api/pull",
        &messages,
        &turns,
    ];
    for path in routes {
        for body in [&lists, &text] {
            let most = 8 + ONE_MIB + NOISE_MIB;
            let owners = async || send_as_owner(&host, path, body.clone()).await;
            let (status, rise) = rise(&host, most, owners).await;
            assert_ne!(status, 429, "{path}");
            assert!(rise <= most, "{path} took {rise} MiB");
        }
    }
    // Full: it takes no more, and is read.
    let mut answers = Vec::new();
    while answers.last() != Some(&413) {
        assert!(answers.len() < 9, "{answers:?}");
        answers.push(send_as_owner(&host, &messages, text.clone()).await);
    }
    let begun = begin(&host);
    let read = (0..48).map(|_| async {
        let request = host.http.get(format!("{}{chat}", host.url));
        let answer = within("a chat", request.bearer_auth(&host.token).send()).await;
        let answer = answer.unwrap();
        let status = answer.status().as_u16();
        within("its messages", answer.bytes()).await.unwrap();
        status
    });
    let answers = join_all(read).await;
    let rise = status_mib(&host, "VmHWM:").saturating_sub(begun);
    assert!(answers.contains(&200), "none was read: {answers:?}");
    assert!(
        rise <= ALL_MIB + 4 * NOISE_MIB,
        "chats took {rise} MiB: {answers:?}"
    );

    // More than there is room for, each but for its last byte.
    let begun = begin(&host);
    let text: &'static str = text.leak();
    let url = format!("{}{messages}", host.url);
    let sent = (0..80).map(|_| async {
        let (most, last) = text.split_at(text.len() - 1);
        let body = stream::iter([(0, most), (3, last)]).then(async |(pause, part)| {
            sleep(Duration::from_secs(pause)).await;
            Ok::<_, Infallible>(part)
        });
        let request = host.http.post(&url).bearer_auth(&host.token);
        let request = request.body(reqwest::Body::wrap_stream(body));
        let answer = within("an answer", request.send()).await.unwrap();
        answer.status().as_u16()
    });
    let answers = join_all(sent).await;
    let rise = status_mib(&host, "VmHWM:").saturating_sub(begun);
    assert!(answers.contains(&429), "all found room: {answers:?}");
    assert!(
        rise <= ALL_MIB + 4 * NOISE_MIB,
        "they took {rise} MiB: {answers:?}"
    );
}

#[cfg_attr(target_vendor = "apple", ignore = "it has no /proc")]
#[tokio::test]
async fn a_request_to_a_tier_takes_no_more_memory_either() {
    let data = Data::new(&format!("[tiers.fast]\nmodel = \"{STARTER}\"\n"));
    let (_data, host) = frugal(data).await;
    let warm = host.chat("fast", json!({"max_tokens": 1})).await;
    assert_eq!(warm.status(), 200);
    let openai = "{\"model\":\"fast\",\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"image_url\",\
        \"image_url\":{\"url\":\"data:image/png;base64,";
    let anthropic = "{\"model\":\"fast\",\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":[\
        {\"type\":\"image\",\"source\":{\"type\":\"base64\",\"media_type\":\"image/png\",\"data\":\"";
    let ollama =
        "{\"model\":\"fast\",\"messages\":[{\"role\":\"user\",\"content\":\"x\",\"images\":[\"";
    let generate = "{\"model\":\"fast\",\"prompt\":\"x\",\"images\":[\"";
    for (path, start, end) in [
        ("/v1/chat/completions", openai, "\"}}]}]}"),
        ("/v1/messages", anthropic, "\"}}]}]}"),
        ("/api/chat", ollama, "\"]}]}"),
        ("/api/generate", generate, "\"]}"),
    ] {
        let body = filled(LENGTH, start, "AAAA", end);
        let most = (LENGTH as u64 >> 20) + ONE_MIB + NOISE_MIB;
        let picture = async || send(&host, path, "application/json", body.clone()).await;
        let (_, rise) = rise(&host, most, picture).await;
        assert!(rise <= most, "{path} took {rise} MiB");
    }
}

#[cfg_attr(target_vendor = "apple", ignore = "it has no /proc")]
#[tokio::test]
async fn a_request_that_passes_takes_no_more_memory_either() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    let answers = |request: Request| async {
        to_bytes(request.into_body(), usize::MAX).await.unwrap();
        Json(json!({"id": "1", "content": [], "output": []}))
    };
    let routes = Router::new().fallback(answers);
    tokio::spawn(async move { axum::serve(listener, routes).await });
    let config = format!(
        r#"
        [tiers.claude]
        model = "m"
        engine = {{ endpoint = "http://{server}", dialect = "anthropic" }}
        [tiers.gpt]
        model = "m"
        engine = {{ endpoint = "http://{server}" }}
        [chains.claude-chain]
        steps = ["claude"]
        [chains.gpt-chain]
        steps = ["gpt"]
        "#
    );
    let (_data, host) = frugal(Data::empty(&config)).await;
    let message = "\"max_tokens\":9,\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"},\
        {\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"";
    let unsigned = "\"},{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"unsigned\"}]}]}";
    for (path, server, start, end) in [
        ("/v1/messages", "claude", message, "\"}]}]}"),
        ("/v1/messages", "claude", message, unsigned),
        ("/v1/responses", "gpt", "\"input\":\"", "\"}"),
    ] {
        for model in [server.to_owned(), format!("{server}-chain")] {
            let body = filled(
                LENGTH,
                &format!("{{\"model\":\"{model}\",{start}"),
                "word ",
                end,
            );
            let before = begin(&host);
            let status = send(&host, path, "application/json", body).await;
            let rise = status_mib(&host, "VmHWM:").saturating_sub(before);
            assert_eq!(status, 200, "{path} {model}");
            let most = (LENGTH as u64 >> 20) + ONE_MIB + NOISE_MIB;
            assert!(rise <= most, "{path} took {rise} MiB for {model} {end}");
        }
    }
}

#[cfg_attr(target_vendor = "apple", ignore = "it has no /proc")]
#[tokio::test]
async fn all_requests_together_take_no_more_than_their_share() {
    let (_data, host) = frugal(Data::empty("")).await;
    let text = filled(LENGTH, "{\"model\":\"none\",\"prompt\":\"", "word ", "\"}");
    let before = begin(&host);
    let sent = (0..24).map(|_| send(&host, "/api/generate", "application/json", text.clone()));
    let answers = join_all(sent).await;
    let rise = status_mib(&host, "VmHWM:").saturating_sub(before);
    assert!(answers.contains(&429), "all found room: {answers:?}");
    assert!(answers.contains(&404), "none found room: {answers:?}");
    assert!(rise <= ALL_MIB + 4 * NOISE_MIB, "they took {rise} MiB");
    // All of it is given back.
    let body = filled(LENGTH, "{\"model\":\"none\",\"prompt\":\"", "word ", "\"}");
    assert_eq!(
        send(&host, "/api/generate", "application/json", body).await,
        404
    );
}
