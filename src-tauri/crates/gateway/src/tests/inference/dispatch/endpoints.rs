//! Servers that are not ours: what they are asked, and what becomes of those that fail.

use super::*;
use tierbar_core::{
    config::Dialect,
    lease::{Address, Endpoint, Foreign},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// A bench whose tier is elsewhere, and the server there: it says this to its one request, and then holds the connection
/// until the client leaves, or, if it is to cut, closes it. It reports the requests.
async fn elsewhere(
    url: bool,
    model: Option<&str>,
    says: String,
    cuts: bool,
) -> (Bench, JoinHandle<String>) {
    at(bench().await, url, model, says, cuts).await
}

async fn at(
    bench: Bench,
    url: bool,
    model: Option<&str>,
    says: String,
    cuts: bool,
) -> (Bench, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let at = if url {
        Address::Url(format!("http://127.0.0.1:{port}"))
    } else {
        Address::Port(port)
    };
    let model = model.map(str::to_owned);
    let dialect = Dialect::OpenAi;
    let foreign = Endpoint::Foreign(Foreign { at, model, dialect });
    bench.loaded.send_replace(Some(Ok(foreign)));
    let asked = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let asked = read(&mut stream).await;
        stream.write_all(says.as_bytes()).await.unwrap();
        if !cuts {
            // Ends when the client has closed the connection, whether in order or not.
            let _ = stream.read(&mut [0]).await;
        }
        asked
    });
    (bench, asked)
}

async fn read(stream: &mut TcpStream) -> String {
    let (mut asked, mut piece) = (String::new(), [0; 4096]);
    while !asked.ends_with('}') {
        let length = stream.read(&mut piece).await.unwrap();
        asked += std::str::from_utf8(&piece[..length]).unwrap();
    }
    asked
}

#[tokio::test]
async fn a_server_gets_its_own_model_name_or_none() {
    for url in [true, false] {
        for (model, sent) in [
            (
                Some("qwen3:8b"),
                r#"{"model":"qwen3:8b","stream":true,"messages":[]}"#,
            ),
            (None, r#"{"stream":true,"messages":[]}"#),
        ] {
            let (mut bench, asked) = elsewhere(url, model, format!("{HEAD}{STREAM}"), true).await;
            let response = bench.post(CHAT, ASKS_STREAM).await;
            assert_eq!(response.headers()["x-tierbar-tier"], "fast");
            assert_eq!(text(response).await, STREAM);
            let asked = asked.await.unwrap();
            assert!(
                asked.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"),
                "{asked}"
            );
            assert!(asked.ends_with(sent), "{asked}");
            assert!(!asked.to_lowercase().contains("authorization"), "{asked}");
            bench.released().await;
        }
    }
}

#[tokio::test]
async fn a_disconnect_closes_the_endpoints_connection() {
    for url in [true, false] {
        let head = format!("{HEAD}data: {{\"choices\":[]}}\n\n");
        let (mut bench, left) = elsewhere(url, None, head, false).await;
        let response = bench.post(CHAT, ASKS_STREAM).await;
        let mut body = response.into_body().into_data_stream();
        assert_eq!(
            body.next().await.unwrap().unwrap(),
            "data: {\"choices\":[]}\n\n"
        );
        drop(body);
        left.await.unwrap();
        bench.released().await;
    }
}

#[tokio::test]
async fn an_endpoint_that_breaks_off_ends_with_an_error_event() {
    let head = format!("{HEAD}data: {{\"choices\":[]}}\n\ndata: {{");
    let (mut bench, _asked) = elsewhere(true, None, head, true).await;
    let reply = text(bench.post(CHAT, ASKS_STREAM).await).await;
    assert!(reply.starts_with("data: {\"choices\":[]}\n\n"), "{reply}");
    assert!(reply.contains("\"code\":\"unreachable\""), "{reply}");
    assert!(
        reply.contains("the endpoint of fast, http://127.0.0.1:"),
        "{reply}"
    );
    bench.released().await;
}

#[tokio::test]
async fn a_stream_without_done_after_a_finish_reason_is_whole() {
    let said =
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n";
    let (mut bench, _asked) = elsewhere(true, None, format!("{HEAD}{said}"), true).await;
    let reply = text(bench.post(CHAT, ASKS_STREAM).await).await;
    assert_eq!(reply, format!("{said}\ndata: [DONE]\n\n"));
    bench.released().await;
}

#[tokio::test]
async fn the_end_is_not_waited_for_behind_done() {
    for said in [STREAM, STREAM.strip_suffix('\n').unwrap()] {
        // The server keeps the connection.
        let (mut bench, _asked) = elsewhere(true, None, format!("{HEAD}{said}"), false).await;
        // And leaves out the line that ends its last event.
        assert_eq!(text(bench.post(CHAT, ASKS_STREAM).await).await, STREAM);
        bench.released().await;
    }
}

#[tokio::test]
async fn an_unrequested_stream_becomes_a_whole_answer() {
    let said = concat!(
        "data: {\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\n\n: waiting\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"lo\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
    );
    let (mut bench, _asked) = elsewhere(true, None, format!("{HEAD}{said}"), false).await;
    let answer = bench
        .post(CHAT, r#"{"model": "fast", "messages": []}"#)
        .await;
    assert_eq!(answer.headers()["content-type"], "application/json");
    assert_eq!(answer.headers()["x-tierbar-tier"], "fast");
    let whole = json(answer).await;
    assert_eq!(whole["object"], "chat.completion");
    assert_eq!(whole["choices"][0]["message"]["content"], "Hello");
    assert_eq!(whole["choices"][0]["finish_reason"], "stop");
    bench.released().await;
    for (says, reply) in [
        ("data: [DONE]\n\n", "events without an answer"),
        ("data: {\"error\":{\"message\":\"no room\"}}\n\n", "no room"),
        (
            "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
            "unreachable",
        ),
    ] {
        let (mut bench, _asked) = elsewhere(true, None, format!("{HEAD}{says}"), true).await;
        let refused = bench
            .post(CHAT, r#"{"model": "fast", "messages": []}"#)
            .await;
        assert_eq!(refused.status(), 502, "{says}");
        let body = text(refused).await;
        assert!(body.contains(reply), "{body}");
        bench.released().await;
    }
}

#[tokio::test]
async fn an_endpoint_that_hangs_is_given_up() {
    for says in [String::new(), format!("{HEAD}data: {{\"choices\":[]}}\n\n")] {
        let impatient = Bench::with("127.0.0.1:11435", Duration::from_secs(2), |_| ()).await;
        let (mut bench, _asked) = at(impatient, true, None, says, false).await;
        let reply = text(bench.post(CHAT, ASKS_STREAM).await).await;
        assert!(reply.contains("was silent for too long"), "{reply}");
        bench.released().await;
    }
}

#[tokio::test]
async fn an_endpoints_redirects_are_not_followed() {
    let moved =
        "HTTP/1.1 307 Moved\r\nlocation: http://127.0.0.1:9/v1?key=1\r\ncontent-length: 0\r\n\r\n";
    let (bench, _asked) = elsewhere(true, None, moved.to_owned(), true).await;
    let response = bench.post(CHAT, ASKS_STREAM).await;
    assert_eq!(response.status(), 502);
    let reply = text(response).await;
    assert!(
        reply.contains("redirects to http://127.0.0.1:9/v1, which is not followed"),
        "{reply}"
    );
    assert!(!reply.contains("key=1"), "{reply}");
}

#[tokio::test]
async fn a_forced_stop_ends_an_endpoints_answers() {
    let head = format!("{HEAD}data: {{\"choices\":[]}}\n\n");
    let (bench, _asked) = elsewhere(true, None, head, false).await;
    let response = bench.post(CHAT, ASKS_STREAM).await;
    let mut body = response.into_body().into_data_stream();
    assert_eq!(
        body.next().await.unwrap().unwrap(),
        "data: {\"choices\":[]}\n\n"
    );
    let stopped = Error::new(Code::TierStopped, "fast was stopped");
    bench.ended.send_replace(Some(stopped.clone()));
    let last = body.next().await.unwrap().unwrap();
    assert_eq!(last, format!("\n{}", error::last_event(&stopped)));
}

#[tokio::test]
async fn an_openai_endpoint_is_not_asked_to_count_tokens() {
    let (mut bench, asked) = elsewhere(true, None, String::new(), true).await;
    let refused = bench
        .post("/v1/messages/count_tokens", r#"{"messages": []}"#)
        .await;
    assert_eq!(refused.status(), 400);
    let reply = text(refused).await;
    assert!(
        reply.contains("tokens are counted by Tierbar's own engine"),
        "{reply}"
    );
    bench.released().await;
    asked.abort();
    assert!(asked.await.unwrap_err().is_cancelled());
}

#[tokio::test]
async fn unusable_statuses_are_not_passed_on() {
    for url in [true, false] {
        for says in [
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
            "HTTP/1.1 307 Temporary Redirect\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 500 Internal Server Error\r\ncontent-type: text/html\r\ncontent-length: 2\r\n\r\nNo",
        ] {
            let (bench, _asked) = elsewhere(url, None, says.to_owned(), true).await;
            // A command whose connection breaks is asked why.
            let why = Error::new(Code::WorkerCrashed, "it fell over");
            if !url {
                bench.ended.send_replace(Some(why));
            }
            let answer = bench.post(CHAT, ASKS_STREAM).await;
            assert_eq!(answer.status(), 502, "{says}");
            let reply = json(answer).await;
            let codes = [json!("unreachable"), json!("worker_crashed")];
            assert!(codes.contains(&reply["error"]["code"]), "{reply}");
        }
    }
}

#[tokio::test]
async fn an_endpoints_call_as_text_is_a_call() {
    let text = "<think>Hm.</think>{\"name\": \"look\", \"arguments\": {\"at\": 1}}";
    let message = json!({"role": "assistant", "content": text});
    let body = json!({"choices": [{"message": message, "finish_reason": "stop"}]}).to_string();
    let length = body.len();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
    let says = format!("{head}\r\ncontent-length: {length}\r\n\r\n{body}");
    for url in [true, false] {
        let (mut bench, _asked) = elsewhere(url, None, says.clone(), true).await;
        let schema = json!({"type": "object", "properties": {"at": {"type": "integer"}}});
        let request = json!({"model": "fast", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}],
            "tools": [{"name": "look", "input_schema": schema}]});
        let answer = json(bench.post("/v1/messages", request.to_string()).await).await;
        assert_eq!(answer["stop_reason"], "tool_use", "{answer}");
        let blocks = answer["content"].as_array().unwrap();
        assert_eq!(blocks[0]["thinking"], "Hm.", "{answer}");
        assert_eq!(blocks[1]["name"], "look", "{answer}");
        assert_eq!(blocks[1]["input"], json!({"at": 1}), "{answer}");
        assert_eq!(blocks.len(), 2, "{answer}");
        bench.released().await;
    }
}
