//! WebSockets over real connections; those that wait for minutes, over one in memory with a clock of its own.

mod waiting;

use super::Account;
use crate::testing::{Bench, json, tier};
use axum::{
    Router,
    body::Body,
    http::header,
    response::{IntoResponse, Response},
    routing::post,
};
use futures_util::{SinkExt, StreamExt, stream};
use serde_json::{Value, json};
use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
};
use tempfile::TempDir;
use tierbar_core::{Code, Error, TierState, keys::KeyLimits, status::EngineKind};
use tierbar_edge::keys::{Keys, Sender};
use tierbar_inference::caller::Account as _;
use tierbar_store::Store;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{
        self, Message,
        client::IntoClientRequest,
        protocol::{CloseFrame, frame::coding::CloseCode},
    },
};

type Requests = Arc<Mutex<Vec<Value>>>;
type Client = WebSocketStream<TcpStream>;

/// Opened once, it lets the answer to "gated" pass.
static GATE: Notify = Notify::const_new();

/// Returns a program's account, and the folder of its keys.
pub(super) async fn account() -> (Account, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chats.db");
    let store = tokio::task::spawn_blocking(move || Store::open(&path));
    let keys = Keys::open(store.await.unwrap().unwrap()).await.unwrap();
    let account = Account::of(&Arc::new(keys), &Sender::Program).unwrap();
    (account, folder)
}

#[tokio::test]
async fn a_revoked_key_does_not_end_a_running_answer() {
    let (account, _folder) = account().await;
    let added = account.keys.add("a".to_owned(), KeyLimits::default());
    let (_, secret) = added.await.unwrap();
    let key = account.keys.find(&secret).unwrap();
    let sender = Sender::Key(key.id().to_owned());
    let account = Account::of(&account.keys, &sender).unwrap();
    account.keys.revoke("a").await.unwrap();
    account.weigh().grow(9).unwrap();
    assert!(Account::of(&account.keys, &sender).is_err());
}

/// A worker that says what the last message says, fails at "fail", waits at "gated" and never ends at "forever".
fn worker(requests: &Requests) -> Router {
    let requests = Arc::clone(requests);
    let answer = move |body: String| {
        let request: Value = serde_json::from_str(&body).unwrap();
        requests.lock().unwrap().push(request.clone());
        std::future::ready(respond(&request))
    };
    Router::new().route("/v1/chat/completions", post(answer))
}

fn respond(request: &Value) -> Response {
    let last = request["messages"].as_array().unwrap().last().unwrap();
    let said = last["content"].as_str().unwrap();
    let chunk = |choice: Value| format!("data: {}\n\n", json!({"choices": [choice]}));
    let text = chunk(json!({"delta": {"content": said}}));
    let rest = match said {
        "refuse" => {
            let error = Error::new(Code::ContextExceeded, "too long");
            return tierbar_http::error::Failure(error).into_response();
        }
        "fail" => {
            let error = Error::new(Code::WorkerCrashed, "it ended");
            format!("data: {}\n\n", error.openai_body())
        }
        "gated" => {
            let rest = chunk(json!({"delta": {}, "finish_reason": "stop"})) + "data: [DONE]\n\n";
            let body = Body::from_stream(stream::once(async move {
                GATE.notified().await;
                Ok::<_, Infallible>(text + &rest)
            }));
            return ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response();
        }
        "forever" => {
            let first = stream::iter([Ok::<_, Infallible>(text)]);
            let body = Body::from_stream(first.chain(stream::pending()));
            return ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response();
        }
        _ => chunk(json!({"delta": {}, "finish_reason": "stop"})) + "data: [DONE]\n\n",
    };
    ([(header::CONTENT_TYPE, "text/event-stream")], text + &rest).into_response()
}

struct SocketServer {
    bench: Bench,
    requests: Requests,
    address: SocketAddr,
}

impl SocketServer {
    async fn new() -> Self {
        let bench = Bench::new("127.0.0.1:11435").await;
        let requests = Requests::default();
        bench.load(worker(&requests));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = bench.router.clone();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self {
            bench,
            requests,
            address,
        }
    }

    async fn open(&self, headers: &[(&'static str, &str)]) -> Result<Client, tungstenite::Error> {
        let url = format!("ws://{}/v1/responses", self.address);
        let mut request = url.into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        let stream = TcpStream::connect(self.address).await.unwrap();
        client_async(request, stream)
            .await
            .map(|(client, _)| client)
    }

    async fn opened(&self) -> Client {
        self.open(&[]).await.unwrap()
    }

    /// The last request's messages, as role and content.
    fn last_messages(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        let messages = requests.last().unwrap()["messages"].as_array().unwrap();
        let said = |message: &Value| {
            let word = |key: &str| message[key].as_str().unwrap_or_default().to_owned();
            format!("{}: {}", word("role"), word("content"))
        };
        messages.iter().map(said).collect()
    }
}

async fn send(client: &mut Client, message: Value) {
    client
        .send(Message::text(message.to_string()))
        .await
        .unwrap();
}

async fn next(client: &mut Client) -> Value {
    loop {
        match client.next().await.unwrap().unwrap() {
            Message::Text(text) => return serde_json::from_str(&text).unwrap(),
            Message::Ping(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Reads up to the last event of a turn.
async fn turn(client: &mut Client) -> Vec<Value> {
    let mut events = Vec::new();
    loop {
        events.push(next(client).await);
        let kind = events.last().unwrap()["type"].as_str().unwrap();
        if let "error" | "response.completed" | "response.failed" | "response.incomplete" = kind {
            return events;
        }
    }
}

fn create(input: Value) -> Value {
    json!({"type": "response.create", "store": false, "input": input})
}

fn after(id: &str, input: Value) -> Value {
    let mut message = create(input);
    message["previous_response_id"] = json!(id);
    message
}

/// Has a turn, and returns the last event.
async fn last(client: &mut Client, message: Value) -> Value {
    send(client, message).await;
    turn(client).await.pop().unwrap()
}

/// Has a turn, and returns the id of its response.
async fn answered(client: &mut Client, message: Value) -> String {
    let last = last(client, message).await;
    assert_eq!(last["type"], "response.completed", "{last}");
    last["response"]["id"].as_str().unwrap().to_owned()
}

fn closed(frame: Option<Result<Message, tungstenite::Error>>) -> CloseFrame {
    match frame {
        Some(Ok(Message::Close(Some(frame)))) => frame,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_turn_has_the_events_of_a_stream_over_http() {
    let served = SocketServer::new().await;
    let mut client = served.opened().await;
    send(&mut client, create(json!("Hello"))).await;
    let events = turn(&mut client).await;
    let kinds: Vec<_> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    let numbers: Vec<_> = events
        .iter()
        .map(|event| event["sequence_number"].as_u64())
        .collect();
    assert_eq!(numbers, (0..9).map(Some).collect::<Vec<_>>());
    // The next one, sent while it answers nothing, and two that are sent at once.
    for input in ["one", "two", "three"] {
        send(&mut client, create(json!(input))).await;
    }
    for input in ["one", "two", "three"] {
        let events = turn(&mut client).await;
        let response = &events.last().unwrap()["response"];
        assert_eq!(response["output"][0]["content"][0]["text"], input);
        assert_eq!(events[0]["sequence_number"], 0);
    }
    // Each turn counts like a request over HTTP.
    let metrics = served.bench.get("/metrics").await;
    let metrics = crate::testing::text(metrics).await;
    let turns = "{path=\"/v1/responses\",status=\"200\",tier=\"fast\",code=\"\"} 4";
    assert!(metrics.contains(turns), "{metrics}");
    let opened = "{path=\"/v1/responses\",status=\"101\",tier=\"\",code=\"\"} 1";
    assert!(metrics.contains(opened), "{metrics}");
}

#[tokio::test]
async fn events_of_a_server_elsewhere_arrive_as_messages() {
    // No line names an event, and OpenAI's chats' last one follows.
    let event = |event: Value| format!("data: {event}\n\n");
    let item = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]});
    let begins = json!({"type": "response.created", "response": {"id": "resp_1", "output": []}});
    let ends =
        json!({"type": "response.completed", "response": {"id": "resp_1", "output": [item]}});
    let said = event(begins.clone()) + &event(ends.clone()) + "data: [DONE]\n\n";
    let served = SocketServer::new().await;
    let answer = move || {
        let said = said.clone();
        async move { ([(header::CONTENT_TYPE, "text/event-stream")], said) }
    };
    let routes = Router::new().route("/v1/responses", post(answer));
    served.bench.endpoint("cloud", routes).await;
    let mut cloud = tier("cloud", Some("m"), TierState::Ready);
    cloud.engine = EngineKind::Endpoint;
    served.bench.tiers(|tiers| tiers.push(cloud));
    let mut client = served.opened().await;
    let mut message = create(json!("Hello?"));
    for _ in 0..2 {
        message["model"] = json!("cloud");
        send(&mut client, message).await;
        assert_eq!(turn(&mut client).await, [begins.clone(), ends.clone()]);
        message = after("resp_1", json!("Sure?"));
    }
}

#[tokio::test]
async fn a_response_is_continued_with_what_came_before() {
    let served = SocketServer::new().await;
    let mut client = served.opened().await;
    let first = answered(&mut client, create(json!("cobalt"))).await;
    let last = last(
        &mut client,
        after(&first, json!([{"role": "user", "content": "Which?"}])),
    )
    .await;
    assert_eq!(last["response"]["previous_response_id"], json!(first));
    let messages = ["user: cobalt", "assistant: cobalt", "user: Which?"];
    assert_eq!(served.last_messages(), messages);
    let second = last["response"]["id"].as_str().unwrap().to_owned();
    answered(&mut client, after(&second, json!("Sure?"))).await;
    assert_eq!(served.last_messages()[..3], messages);
    assert_eq!(served.last_messages().len(), 5);
    // A new conversation has nothing of the old one.
    answered(&mut client, create(json!("Hello"))).await;
    assert_eq!(served.last_messages(), ["user: Hello"]);
}

#[tokio::test]
async fn only_the_last_response_of_this_connection_is_known() {
    let served = SocketServer::new().await;
    let mut client = served.opened().await;
    let unknown = |event: &Value| {
        assert_eq!(event["type"], "error", "{event}");
        assert_eq!(event["status"], 400);
        assert_eq!(event["error"]["code"], "previous_response_not_found");
    };
    let none = last(&mut client, after("resp_none", json!("Hi"))).await;
    unknown(&none);
    let first = answered(&mut client, create(json!("copper"))).await;
    let mut other = served.opened().await;
    unknown(&last(&mut other, after(&first, json!("Which?"))).await);
    // An answer without a question, an answer that breaks off, and a refusal leave nothing to continue.
    let orphan = json!([{"type": "function_call_output", "call_id": "gone", "output": "7"}]);
    for (input, status) in [(orphan, 400), (json!("refuse"), 400), (json!("fail"), 0)] {
        let first = answered(&mut client, create(json!("ember"))).await;
        let failed = last(&mut client, after(&first, input.clone())).await;
        match status {
            0 => assert_eq!(failed["type"], "response.failed", "{input}"),
            _ => assert_eq!(failed["status"], status, "{input} {failed}"),
        }
        unknown(&last(&mut client, after(&first, json!("stale"))).await);
    }
    // A failed beginning of another conversation does not touch this one.
    let first = answered(&mut client, create(json!("ember"))).await;
    last(&mut client, create(json!("refuse"))).await;
    answered(&mut client, after(&first, json!("Which?"))).await;
}

#[tokio::test]
async fn what_is_no_turn_is_refused_and_the_connection_goes_on() {
    let served = SocketServer::new().await;
    let mut client = served.opened().await;
    let text = |text: &str| Message::text(text.to_owned());
    let with = |field: &str, value: Value| {
        let mut message = create(json!("Hi"));
        message[field] = value;
        Message::text(message.to_string())
    };
    for (message, part) in [
        (text(""), "empty"),
        (text("{\"type\": "), "the message is not JSON"),
        (text("[1]"), "not a JSON object"),
        (text("{\"model\": \"fast\", \"messages\": []}"), "no `type`"),
        (text("{\"type\": \"session.update\"}"), "session.update"),
        (Message::binary(vec![1, 2, 3]), "binary"),
        (with("stream", json!(false)), "`stream`"),
        (with("background", json!(true)), "`background`"),
        (with("generate", json!(false)), "`generate`"),
        (with("stream_id", json!("a")), "`stream_id`"),
        (with("input", json!(7)), "`input`"),
        (with("conversation", json!("conv_1")), "`conversation`"),
        (with("model", json!("gone")), "gone"),
    ] {
        client.send(message.clone()).await.unwrap();
        let refused = turn(&mut client).await.pop().unwrap();
        assert_eq!(refused["type"], "error", "{message:?}");
        assert!(refused["status"].as_u64() >= Some(400), "{refused}");
        let why = refused["error"]["message"].as_str().unwrap();
        assert!(why.contains(part), "{message:?} {why}");
    }
    for field in ["stream", "generate"] {
        client.send(with(field, json!(true))).await.unwrap();
        assert_eq!(
            turn(&mut client).await.pop().unwrap()["type"],
            "response.completed"
        );
    }
}

#[tokio::test]
async fn a_connection_is_refused_as_a_request_is() {
    let served = SocketServer::new().await;
    let status = |refused: Result<Client, tungstenite::Error>| match refused {
        Err(tungstenite::Error::Http(response)) => response.status().as_u16(),
        other => panic!("{other:?}"),
    };
    let foreign = served.open(&[("origin", "https://evil.example")]).await;
    assert_eq!(status(foreign), 403);
    let rebound = served.open(&[("host", "evil.example")]).await;
    assert_eq!(status(rebound), 403);
    let invalid = served.open(&[("authorization", "Bearer tb-wrong")]).await;
    assert_eq!(status(invalid), 401);
    served
        .open(&[("origin", "https://friend.example")])
        .await
        .unwrap();
    served.bench.config.lock().unwrap().server.require_keys = true;
    assert_eq!(status(served.open(&[]).await), 401);
    // No WebSocket at all.
    let plain = served.bench.get("/v1/responses").await;
    assert_eq!(plain.status(), 400);
    let error = json(plain).await["error"].take();
    assert!(error["hint"].as_str().unwrap().contains("POST"), "{error}");
}

/// Sends a request over a connection that stays open, and returns the status.
async fn over(stream: &mut TcpStream, method: &str, path: &str, body: &str) -> u16 {
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let length = loop {
        answer.push(stream.read_u8().await.unwrap());
        if answer.ends_with(b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&answer);
            let length = head.split_once("content-length: ").unwrap().1;
            break length.split_once('\r').unwrap().0.parse().unwrap();
        }
    };
    stream.read_exact(&mut vec![0; length]).await.unwrap();
    String::from_utf8_lossy(&answer[9..12]).parse().unwrap()
}

#[tokio::test]
async fn one_connection_may_use_each_api_and_become_a_websocket() {
    let served = SocketServer::new().await;
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let chat = r#"{"model": "fast", "max_tokens": 9, "stream": false, "messages": [{"role": "user", "content": "refuse"}]}"#;
    for (method, path, status) in [
        ("POST", "/v1/messages", 400),
        ("POST", "/api/chat", 400),
        ("POST", "/v1/responses", 400),
        ("GET", "/v1/models", 200),
        ("GET", "/v1/responses", 400),
    ] {
        let body = if method == "POST" { chat } else { "" };
        assert_eq!(
            over(&mut stream, method, path, body).await,
            status,
            "{path}"
        );
    }
    let (mut client, _) = client_async("ws://localhost/v1/responses", stream)
        .await
        .unwrap();
    answered(&mut client, create(json!("Hi"))).await;
}

#[tokio::test]
async fn a_keys_limits_hold_for_each_turn() {
    let served = SocketServer::new().await;
    let limits = json!({"name": "phone", "requests_per_minute": 2}).to_string();
    let made = json(served.bench.ask("POST", "/tierbar/v1/keys", limits).await).await;
    let key = format!("Bearer {}", made["key"].as_str().unwrap());
    let mut client = served.open(&[("authorization", &key)]).await.unwrap();
    for _ in 0..2 {
        answered(&mut client, create(json!("Hi"))).await;
    }
    let refused = last(&mut client, create(json!("Hi"))).await;
    assert_eq!(
        (&refused["status"], &refused["error"]["code"]),
        (&json!(429), &json!("overloaded"))
    );
    let revoked = served
        .bench
        .ask("DELETE", "/tierbar/v1/keys/phone", "")
        .await;
    assert!(revoked.status().is_success());
    let refused = last(&mut client, create(json!("Hi"))).await;
    assert_eq!(refused["status"], 401, "{refused}");
}

#[tokio::test]
async fn a_client_that_leaves_cancels_its_answer() {
    let mut served = SocketServer::new().await;
    for closes in [true, false] {
        let mut client = served.opened().await;
        send(&mut client, create(json!("forever"))).await;
        while next(&mut client).await["type"] != "response.output_text.delta" {}
        assert_eq!(*served.bench.leases.borrow(), 1);
        if closes {
            client.close(None).await.unwrap();
        } else {
            drop(client);
        }
        served.bench.released().await;
    }
}

#[tokio::test]
async fn a_client_that_sends_too_much_gets_what_waits() {
    let mut served = SocketServer::new().await;
    let mut client = served.opened().await;
    send(&mut client, create(json!("gated"))).await;
    for _ in 0..19 {
        send(&mut client, create(json!("Hi"))).await;
    }
    // Once it is answered, all before it have arrived.
    let ping = Message::Ping(Default::default());
    client.send(ping).await.unwrap();
    while !matches!(client.next().await.unwrap().unwrap(), Message::Pong(_)) {}
    GATE.notify_one();
    // The first, and those that may wait.
    for nth in 0..17 {
        let last = turn(&mut client).await.pop().unwrap();
        assert_eq!(last["type"], "response.completed", "{nth}: {last}");
    }
    let refused = turn(&mut client).await.pop().unwrap();
    assert_eq!(refused["error"]["code"], "overloaded", "{refused}");
    assert_eq!(closed(client.next().await).code, CloseCode::Policy);
    served.bench.released().await;
    assert_eq!(served.requests.lock().unwrap().len(), 17);
}

#[tokio::test]
async fn a_huge_message_is_refused_before_it_arrives() {
    let served = SocketServer::new().await;
    let mut client = served.opened().await;
    // The head of a masked text frame of a terabyte.
    let head = [0x81, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 1, 2, 3, 4];
    client.get_mut().write_all(&head).await.unwrap();
    client.get_mut().write_all(&[b'x'; 100_000]).await.unwrap();
    let refused = next(&mut client).await;
    assert_eq!(
        (&refused["status"], &refused["error"]["code"]),
        (&json!(413), &json!("payload_too_large"))
    );
    assert_eq!(closed(client.next().await).code, CloseCode::Size);
}

#[tokio::test]
async fn what_is_no_websocket_ends_it() {
    let served = SocketServer::new().await;
    let mut client = served.opened().await;
    let http = "POST /v1/messages HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(2);
    client.get_mut().write_all(http.as_bytes()).await.unwrap();
    assert_eq!(next(&mut client).await["error"]["code"], "bad_request");
    assert_eq!(closed(client.next().await).code, CloseCode::Protocol);
}

#[tokio::test]
async fn messages_are_charged_as_they_arrive_and_while_kept() {
    let served = SocketServer::new().await;
    let mut client = served.opened().await;
    let story = "word ".repeat(200_000);
    let first = answered(
        &mut client,
        create(json!([{"role": "user", "content": story}])),
    )
    .await;
    // Question and answer are in memory, and what the question has grown the buffer by in which it arrived.
    let held = served.bench.keys.held();
    assert!((2_980_000..3_000_000).contains(&held), "{held}");
    let mut all = served.bench.keys.weigh(None).of_the_owner();
    all.grow((512 << 20) - held - 1_000_000).unwrap();
    let long = create(json!("x".repeat(1_500_000))).to_string();
    client.send(Message::text(long)).await.unwrap();
    let refused = next(&mut client).await;
    assert_eq!(
        (&refused["status"], &refused["error"]["code"]),
        (&json!(429), &json!("overloaded"))
    );
    assert_eq!(closed(client.next().await).code, CloseCode::Again);
    drop((client, all));
    let mut other = served.opened().await;
    let gone = last(&mut other, after(&first, json!("Hi"))).await;
    assert_eq!(gone["error"]["code"], "previous_response_not_found");
    // Each connection gives back what it held.
    assert_eq!(served.bench.keys.held(), 0);
}

#[tokio::test]
async fn a_server_that_ends_says_so() {
    let served = SocketServer::new().await;
    let mut client = served.opened().await;
    answered(&mut client, create(json!("Hi"))).await;
    served.bench.closing.cancel();
    assert_eq!(next(&mut client).await["error"]["code"], "shutting_down");
    assert_eq!(closed(client.next().await).code, CloseCode::Away);
}
