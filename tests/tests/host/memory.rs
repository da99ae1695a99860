//! The memory of requests: none makes the host allocate more than it is charged for.

use reqwest::Method;
use std::fs;
use tierbar_tests::{
    serving::{Data, Serving},
    wait::within,
};

/// Below the limit of a body.
const LENGTH: usize = 31 << 20;
/// Four times the body's text, and the values of its JSON.
const CHARGED_MIB: u64 = 4 * 32 + 64;
/// The body itself, while it arrives, and what an allocator holds back.
const OWN_MIB: u64 = 96;

const ROUTES: [&str; 14] = [
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/embeddings",
    "/v1/responses",
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

/// Returns a line of a process's status, in MiB.
fn status_mib(host: &Serving, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", host.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib >> 10
}

/// Sends a body, and returns by how many MiB the host's memory rose meanwhile.
async fn rise(host: &Serving, path: &str, kind: &str, body: String) -> u64 {
    let before = status_mib(host, "VmRSS:");
    // Sets the peak to what is resident now.
    fs::write(format!("/proc/{}/clear_refs", host.pid()), "5").unwrap();
    let request = host
        .http
        .request(Method::POST, format!("{}{path}", host.url))
        .header("content-type", kind)
        .header("x-tierbar-queue", "never");
    let answer = within("an answer", request.body(body).send())
        .await
        .unwrap();
    within("its body", answer.bytes()).await.unwrap();
    status_mib(host, "VmHWM:").saturating_sub(before)
}

fn filled(start: &str, part: &str, end: &str) -> String {
    let parts = (LENGTH - start.len() - end.len()) / part.len();
    format!("{start}{}{end}", part.repeat(parts))
}

#[cfg_attr(target_vendor = "apple", ignore = "it has no /proc")]
#[tokio::test]
async fn no_request_takes_more_memory_than_it_is_charged() {
    let data = Data::empty("");
    let host = data.serve().await;
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
        let rise = rise(&host, path, kind, filled(start, part, end)).await;
        assert!(
            rise <= CHARGED_MIB + OWN_MIB,
            "{path} took {rise} MiB for {kind} {start}{part}…"
        );
    }
}
