use crate::testing::{Bench, json, text};
use axum::{
    body::Body,
    http::{Request, StatusCode, header},
    response::Response,
};
use serde_json::{Value, json as value};

async fn send(bench: &Bench, headers: &[(&str, &str)], method: &str, params: Value) -> Response {
    let message = value!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let mut request = Request::post("/mcp")
        .header(header::HOST, "localhost")
        .header(header::ACCEPT, "application/json, text/event-stream")
        .header(header::CONTENT_TYPE, "application/json");
    for (name, given) in headers {
        request = request.header(*name, *given);
    }
    let request = request.body(Body::from(message.to_string())).unwrap();
    bench.send(request).await
}

/// The message that an answer's stream holds.
async fn answer(response: Response) -> Value {
    assert_eq!(response.status(), StatusCode::OK);
    let events = text(response).await;
    let mut data = events.lines().filter_map(|line| line.strip_prefix("data:"));
    let data = data.find(|data| !data.trim().is_empty());
    serde_json::from_str(data.unwrap_or_else(|| panic!("no message in {events}"))).unwrap()
}

async fn call(bench: &Bench, headers: &[(&str, &str)], tool: &str, arguments: Value) -> Value {
    let params = value!({"name": tool, "arguments": arguments});
    let mut answer = answer(send(bench, headers, "tools/call", params).await).await;
    answer["result"].take()
}

#[tokio::test]
async fn a_client_finds_the_tools_and_calls_one() {
    let bench = Bench::new("127.0.0.1:11435").await;
    let hello = value!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    });
    let hello = answer(send(&bench, &[], "initialize", hello).await).await;
    assert_eq!(hello["result"]["serverInfo"]["name"], "tierbar");
    assert_eq!(hello["result"]["protocolVersion"], "2025-06-18");
    let tools = answer(send(&bench, &[], "tools/list", value!({})).await).await;
    let tools = tools["result"]["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["name"] == "search_documents"));
    let models = call(&bench, &[], "list_models", value!({})).await;
    let fast = &models["structuredContent"]["models"][1];
    assert_eq!(
        (&fast["name"], &fast["state"]),
        (&value!("fast"), &value!("ready")),
        "{models}"
    );
    let unknown = value!({"name": "rm", "arguments": {}});
    let unknown = answer(send(&bench, &[], "tools/call", unknown).await).await;
    let message = unknown["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("there is no tool \"rm\""), "{unknown}");
}

#[tokio::test]
async fn a_message_of_many_values_is_refused() {
    let bench = Bench::new("127.0.0.1:11435").await;
    for (lists, status) in [
        (30_000, StatusCode::OK),
        (40_000, StatusCode::PAYLOAD_TOO_LARGE),
    ] {
        let arguments = value!({"text": "Hello!", "x": vec![[0]; lists]});
        let params = value!({"name": "triage", "arguments": arguments});
        let answer = send(&bench, &[], "tools/call", params).await;
        assert_eq!(answer.status(), status, "{lists}");
    }
}

#[tokio::test]
async fn documents_are_the_owners() {
    let bench = Bench::new("127.0.0.1:11435").await;
    let question = || value!({"question": "lighthouses"});
    let refused = call(&bench, &[], "search_documents", question()).await;
    assert_eq!(refused["isError"], true, "{refused}");
    let words = refused["content"][0]["text"].as_str().unwrap();
    assert!(words.starts_with("the token is required"), "{words}");
    let token = format!("Bearer {}", bench.token.as_str());
    let found = call(
        &bench,
        &[("authorization", token.as_str())],
        "search_documents",
        question(),
    )
    .await;
    assert_eq!(
        found["structuredContent"]["passages"],
        value!([]),
        "{found}"
    );
    let elsewhere = [
        ("authorization", token.as_str()),
        ("origin", "https://evil.example"),
    ];
    let response = send(&bench, &elsewhere, "tools/list", value!({})).await;
    assert_eq!(response.status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_server_that_requires_keys_requires_them_here_too() {
    let bench = Bench::configured("127.0.0.1:11435", |config| {
        config.server.require_keys = true;
    })
    .await;
    let refused = send(&bench, &[], "tools/list", value!({})).await;
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(json(refused).await["error"]["code"], "unauthorized");
    let key = [("x-api-key", "tb-never-made")];
    let refused = send(&bench, &key, "tools/list", value!({})).await;
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    let token = format!("Bearer {}", bench.token.as_str());
    let listed = send(
        &bench,
        &[("authorization", token.as_str())],
        "tools/list",
        value!({}),
    )
    .await;
    assert_eq!(listed.status(), StatusCode::OK);
    // There is no stream to follow, and no session to end.
    for method in ["GET", "DELETE"] {
        let response = bench.ask(method, "/mcp", Body::empty()).await;
        assert_eq!(
            response.status(),
            StatusCode::METHOD_NOT_ALLOWED,
            "{method}"
        );
    }
}
