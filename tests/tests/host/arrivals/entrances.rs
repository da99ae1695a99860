//! What an agent's tools return, and what clients send, each at the limit of its entrance.

use super::{
    CHAT, EMBEDDINGS, MESSAGES, MIB, OLLAMA, RERANK, RESPONSES, endpoints, filled,
    hostile::{Hostile, initialized, one_tool},
    table::Table,
};
use crate::{
    Events,
    memory::{LENGTH, frugal, send},
};
use reqwest::Method;
use serde_json::{Value, json};
use std::{fmt::Write as _, fs, sync::atomic::Ordering};
use tierbar_skip::skip;
use tierbar_tests::serving::{Data, Serving};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

const JSON: &str = "application/json";
const HTML: &str = "text/html";
/// The limits of a message from a program and from an address, with room for what is around its result.
const FROM_PROGRAM: usize = 4 * MIB - 100;
const FROM_ADDRESS: usize = (256 << 10) - 100;
/// The values that a program's message can have.
const VALUES: usize = 120 << 10;
/// The limit of a page, and of a search's answer.
const PAGE: usize = 4 * MIB;

/// An MCP server that answers each request with the file of its kind.
const PROGRAM: &str = r#"n=0
while read -r line; do
  case "$line" in
    *notifications/*) continue ;;
    *tools/call*) result=call ;;
    *tools/list*) result=list ;;
    *) result=hello ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":' "$n"; cat "$result"; echo '}'
  n=$((n + 1))
done"#;

/// Has an agent use the one tool that it is offered, and allows that. Returns the event with the result.
async fn use_tool(host: &Serving, options: &Value) -> Value {
    let mut run =
        json!({"model": "gpt", "input": "Q", "stream": true, "way": "calls", "servers": []});
    for (field, value) in options.as_object().unwrap() {
        run[field] = value.clone();
    }
    let mut events = Events::of(host.send(Method::POST, "/v1/agent", Some(run)).await);
    let run = events.next_json().await["run"].clone();
    let mut result = Value::Null;
    loop {
        let event = events.next_json().await;
        match event["type"].as_str().unwrap() {
            "consent" => {
                let allow = json!({"id": event["question"]["id"], "allow": "once"});
                let path = format!("/v1/agent/{}/consent", run.as_str().unwrap());
                let answered = host.send(Method::POST, &path, Some(allow)).await;
                assert_eq!(answered.status(), 204);
            }
            "tool_result" => result = event,
            "failed" => panic!("{event}"),
            "finished" => return result,
            _ => {}
        }
    }
}

/// A page whose links all repeat its base, and one whose elements are never closed.
fn hostile_pages() -> [String; 2] {
    let mut links = String::new();
    for number in 0..300 {
        write!(links, "<a href={number}>x</a>").unwrap();
    }
    let base = "a".repeat(PAGE - links.len() - 100);
    [
        format!("<base href='/{base}/'>{links}"),
        filled(PAGE, "<p>x", "<svg>", ""),
    ]
}

#[cfg_attr(target_vendor = "apple", ignore = "it has no /proc")]
#[tokio::test]
async fn no_result_of_a_tool_takes_much_more_memory() {
    if let Err(error) = tierbar_sandbox::enforcement() {
        return skip(&error.to_string());
    }
    let (hostile, server) = Hostile::start().await;
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let hello = initialized(&json!(0));
    fs::write(folder.join("hello"), hello["result"].to_string()).unwrap();
    fs::write(folder.join("list"), one_tool().to_string()).unwrap();
    let program = folder.join("program.sh");
    fs::write(&program, PROGRAM).unwrap();
    let config = format!(
        "{}[mcp.address]\nurl = \"{server}/calls\"\n[mcp.program]\ncommand = {}\nfolder = \"{}\"\n",
        endpoints(&server),
        json!(["/bin/sh", program]),
        folder.display()
    );
    // A page has to be of a public server, which the proxy stands for.
    let data = Data::empty(&config)
        .with("HTTP_PROXY", &server)
        .with("NO_PROXY", "127.0.0.1");
    let (_data, host) = frugal(data).await;
    let mut table = Table::new(&host, &hostile);
    let program = json!({"servers": ["program"]});
    let address = json!({"servers": ["address"]});
    let page = json!({"pages": true});
    let search = json!({"search": server});
    let words = |length| {
        let start = "{\"content\":[{\"type\":\"text\",\"text\":\"";
        filled(length, start, "word ", "\"}]}")
    };
    let values = |length| {
        let start = "{\"content\":[],\"structuredContent\":{\"x\":[";
        filled(length, start, "[0],", "0]}}")
    };
    let hit = "{\"url\":\"\"},";
    let hits = filled(PAGE, "{\"results\":[", hit, "{\"url\":\"\"}]}");
    let no_hits = filled(PAGE, "{\"results\":[],\"x\":[", "[0],", "0]}");
    let [links, unclosed] = hostile_pages();
    for (what, tool, kind, body) in [
        ("a program's result", &program, JSON, words(FROM_PROGRAM)),
        ("values of a program", &program, JSON, values(VALUES)),
        ("an address's result", &address, JSON, words(FROM_ADDRESS)),
        ("values of an address", &address, JSON, values(FROM_ADDRESS)),
        ("a page", &page, HTML, filled(PAGE, "<p>", "word ", "</p>")),
        ("a page's links", &page, HTML, links),
        ("a page's elements", &page, HTML, unclosed),
        ("a search's hits", &search, JSON, hits),
        ("values in a search's answer", &search, JSON, no_hits),
    ] {
        let bytes = body.len();
        fs::write(folder.join("call"), &body).unwrap();
        hostile.will_answer(200, kind, body);
        let act = async {
            let result = use_tool(&host, tool).await;
            assert_eq!(result["failed"], false, "{what}: {result}");
            if *tool == program {
                hostile.requests.fetch_add(1, Ordering::Relaxed);
            }
        };
        table.measure(what.to_owned(), bytes, act).await;
    }
    table.check();
}

/// Sends a message over a WebSocket, and reads all events of the response.
async fn send_over_socket(host: &Serving, message: &str) {
    let address = host.url.strip_prefix("http://").unwrap();
    let mut socket = TcpStream::connect(address).await.unwrap();
    let opening = format!(
        "GET {RESPONSES} HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    socket.write_all(opening.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101"), "{head:?}");
    // A text in one frame, whose mask of zeros changes nothing.
    let length = u64::try_from(message.len()).unwrap().to_be_bytes();
    let frame = [&[0x81, 0xff][..], &length[..], &[0; 4][..]].concat();
    socket.write_all(&frame).await.unwrap();
    socket.write_all(message.as_bytes()).await.unwrap();
    loop {
        let _opcode = socket.read_u8().await.unwrap();
        let length = match socket.read_u8().await.unwrap() {
            126 => u64::from(socket.read_u16().await.unwrap()),
            127 => socket.read_u64().await.unwrap(),
            short => u64::from(short),
        };
        let mut event = vec![0; usize::try_from(length).unwrap()];
        socket.read_exact(&mut event).await.unwrap();
        let event: Value = serde_json::from_slice(&event).unwrap_or_default();
        match event["type"].as_str() {
            Some("response.completed") => return,
            Some("response.failed" | "error") => panic!("{event}"),
            _ => {}
        }
    }
}

#[cfg_attr(target_vendor = "apple", ignore = "it has no /proc")]
#[tokio::test]
async fn no_clients_data_takes_more_memory_than_charged() {
    let (hostile, server) = Hostile::start().await;
    let (_data, host) = frugal(Data::empty(&endpoints(&server))).await;
    let mut table = Table::new(&host, &hostile);
    // It has the form of each API.
    let vector = json!({"index": 0, "embedding": [0]});
    let choice = json!({"message": {"content": "Hi"}});
    let answer = json!({"id": "1", "choices": [choice], "content": [], "output": [], "data": [vector], "results": []});
    hostile.will_answer(200, JSON, answer.to_string());
    let question = "{\"role\":\"user\",\"content\":\"Hi\"}";
    let function = "\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}";
    let chat = format!(
        "\"messages\":[{question},{{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{{\"id\":\"1\",\"type\":\"function\",{function}}}]}},\
         {{\"role\":\"tool\",\"tool_call_id\":\"1\",\"content\":\""
    );
    let message = format!(
        "\"max_tokens\":9,\"messages\":[{question},{{\"role\":\"assistant\",\"content\":[{{\"type\":\"tool_use\",\"id\":\"1\",\"name\":\"f\",\"input\":{{}}}}]}},\
         {{\"role\":\"user\",\"content\":[{{\"type\":\"tool_result\",\"tool_use_id\":\"1\",\"content\":\""
    );
    let response = "\"input\":[{\"type\":\"function_call\",\"call_id\":\"1\",\"name\":\"f\",\"arguments\":\"{}\"},\
        {\"type\":\"function_call_output\",\"call_id\":\"1\",\"output\":\"";
    let ollama = format!(
        "\"stream\":false,\"messages\":[{question},{{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{{\"function\":{{\"name\":\"f\",\"arguments\":{{}}}}}}]}},\
         {{\"role\":\"tool\",\"tool_name\":\"f\",\"content\":\""
    );
    let ranked = "\"query\":\"Hi\",\"documents\":[\"";
    for (what, path, model, start, end) in [
        ("a client's tool", CHAT, "gpt", &*chat, "\"}]}"),
        ("a client's tool", MESSAGES, "gpt", &*message, "\"}]}]}"),
        ("a client's tool", MESSAGES, "claude", &*message, "\"}]}]}"),
        ("a client's tool", RESPONSES, "gpt", response, "\"}]}"),
        ("a client's tool", OLLAMA, "gpt", &*ollama, "\"}]}"),
        ("a text to embed", EMBEDDINGS, "gpt", "\"input\":\"", "\"}"),
        (
            "a text to embed",
            "/api/embed",
            "gpt",
            "\"input\":\"",
            "\"}",
        ),
        ("a text to rank", RERANK, "gpt", ranked, "\"]}"),
    ] {
        let start = format!("{{\"model\":\"{model}\",{start}");
        let body = filled(LENGTH, &start, "word ", end);
        let bytes = body.len();
        let act = async {
            let status = send(&host, path, JSON, body).await;
            assert_eq!(status, 200, "{what}: {model} for {path}");
        };
        let what = format!("{what}: {model} for {path}");
        table.measure_request(what, bytes, act).await;
    }
    let called = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"triage\",\"arguments\":{\"x\":[";
    let body = filled(VALUES, called, "[0],", "0]}}}");
    let bytes = body.len();
    let act = async {
        let request = host.http.post(format!("{}/mcp", host.url));
        let request = request.header("accept", "application/json, text/event-stream");
        let request = request.header("content-type", JSON).body(body);
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200);
        answer.bytes().await.unwrap();
        hostile.requests.fetch_add(1, Ordering::Relaxed);
    };
    table
        .measure("values of an MCP client".to_owned(), bytes, act)
        .await;
    let created = "{\"type\":\"response.create\",\"model\":\"gpt\",\"input\":\"";
    let message = filled(LENGTH, created, "word ", "\"}");
    // The buffer in which it arrives and the conversation are in memory besides, and charged as well.
    let (what, bytes) = ("a message over a WebSocket", 3 * message.len());
    let act = send_over_socket(&host, &message);
    table.measure_request(what.to_owned(), bytes, act).await;
    let message = filled(100 << 10, created, "word ", "\"}");
    let start = "{\"id\":\"1\",\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"";
    let answer = filled(15 * MIB, start, "word ", "\"}]}]}");
    let (what, bytes) = ("a response over a WebSocket", answer.len());
    hostile.will_answer(200, JSON, answer);
    let act = send_over_socket(&host, &message);
    table.measure(what.to_owned(), bytes, act).await;
    table.check();
}
