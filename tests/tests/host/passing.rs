//! Claude Code through a chain to a simulated server of Anthropic's: with its cache breakpoints, byte for byte.

use axum::{
    Router,
    body::Body,
    extract::State,
    http::{HeaderMap, header},
    response::{IntoResponse, Response},
    routing::post,
};
use futures_util::stream;
use reqwest::Method;
use serde_json::{Value, json};
use std::convert::Infallible;
use tierbar_tests::{
    serving::Data,
    wait::{until, within},
};
use tokio::{net::TcpListener, sync::mpsc};

/// As Claude Code sends it after a tool's result, with its order of fields.
const REQUEST: &str = r#"{"model":"nightly","messages":[{"role":"user","content":[{"type":"text","text":"<system-reminder>\nToday's date is 2026-11-28.\n</system-reminder>"},{"type":"text","text":"Rename the hat \u2014 in Gr\u00fc\u00dfe.md"}]},{"role":"assistant","content":[{"type":"thinking","thinking":"The file comes first.","signature":"EqQBCgIYAhIkYzJsbmJtVmtJRzltSUhSb2IzVm5hSFE9"},{"type":"redacted_thinking","data":"EmwKAhgBEgxzZWNyZXQ="},{"type":"text","text":"I'll read it."},{"type":"tool_use","id":"toolu_01A","name":"Read","input":{"file_path":"/tmp/Gr\u00fc\u00dfe.md","limit":1e2}}]},{"role":"user","content":[{"tool_use_id":"toolu_01A","type":"tool_result","content":"     1\u2192hat 😀\n","cache_control":{"type":"ephemeral"}}]}],"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2.0"},{"type":"text","text":"You are Claude Code, Anthropic's official CLI for Claude.","cache_control":{"type":"ephemeral"}},{"type":"text","text":"Be brief.\n# Environment","cache_control":{"type":"ephemeral"}}],"tools":[{"name":"Read","description":"Reads a file.","input_schema":{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"file_path":{"type":"string"},"limit":{"type":"number"}},"required":["file_path"],"additionalProperties":false}},{"type":"web_search_20250305","name":"web_search","max_uses":8,"cache_control":{"type":"ephemeral"}}],"metadata":{"user_id":"user_0a1b_account__session_8d2c"},"max_tokens":32000,"thinking":{"budget_tokens":31999,"type":"enabled"},"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},"stream":true}"#;

const ANSWER: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_01\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-sonnet-4-6\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":1000,\"cache_creation_input_tokens\":10000,\"cache_read_input_tokens\":100000,\"cache_creation\":{\"ephemeral_5m_input_tokens\":10000,\"ephemeral_1h_input_tokens\":0},\"output_tokens\":1,\"service_tier\":\"standard\"}}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}      }\n\n",
    "event: ping\ndata: {\"type\": \"ping\"}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"Now it is known.\"} }\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"c2lnbmVk\"}  }\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0    }\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"toolu_01B\",\"name\":\"Edit\",\"input\":{}}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"new\\\":\\\"Hüte 😀\\\"}\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":1 }\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":500},\"context_management\":{\"applied_edits\":[]}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"      }\n\n",
);

const BETA: &str =
    "claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27";
const KEY: &str = "sk-ant-of-the-owner";

type Arrived = (HeaderMap, String);

async fn answer(
    State(arrived): State<mpsc::UnboundedSender<Arrived>>,
    headers: HeaderMap,
    body: String,
) -> Response {
    arrived.send((headers, body)).unwrap();
    // Pieces that end within letters, and a connection that stays open.
    let pieces = ANSWER.as_bytes().chunks(13).map(Ok::<_, Infallible>);
    let open = futures_util::StreamExt::chain(stream::iter(pieces), stream::pending());
    let kind = [(header::CONTENT_TYPE, "text/event-stream; charset=utf-8")];
    (kind, Body::from_stream(open)).into_response()
}

#[tokio::test]
async fn claude_code_passes_through_a_chain_byte_for_byte() {
    let (report, mut arrived) = mpsc::unbounded_channel();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    let routes = Router::new().route("/v1/messages", post(answer));
    let routes = routes.with_state(report);
    tokio::spawn(async move { axum::serve(listener, routes).await });
    let data = Data::empty(&format!(
        r#"
        [tiers.sonnet]
        model = "claude-sonnet-4-6"
        engine = {{ endpoint = "http://{server}", dialect = "anthropic", input_price = 3.0, output_price = 15.0 }}
        [chains.nightly]
        steps = ["sonnet", "queue"]
        budget = "5 USD a month"
        "#
    ));
    let host = data.serve().await;
    let secret = format!("/tierbar/v1/secrets/{server}");
    let given = host.send(Method::PUT, &secret, Some(json!({"value": KEY})));
    assert_eq!(given.await.status(), 204);

    let request = host
        .http
        .post(format!("{}/v1/messages?beta=true", host.url))
        .header("content-type", "application/json")
        .header("anthropic-version", "2023-06-01")
        .header("anthropic-beta", BETA)
        .header("x-api-key", "of-the-client")
        .header("x-app", "cli")
        .header("user-agent", "claude-cli/2.0.50 (external, cli)")
        .body(REQUEST);
    let reply = within("an answer", request.send()).await.unwrap();
    assert_eq!(reply.status(), 200);
    assert_eq!(reply.headers()["content-type"], "text/event-stream");
    assert_eq!(reply.headers()["x-tierbar-tier"], "sonnet");
    assert_eq!(within("its end", reply.text()).await.unwrap(), ANSWER);

    let (headers, body) = arrived.recv().await.unwrap();
    let sent = REQUEST.replacen("\"nightly\"", "\"claude-sonnet-4-6\"", 1);
    assert_eq!(body, sent);
    assert_eq!(headers["anthropic-version"], "2023-06-01");
    assert_eq!(headers["anthropic-beta"], BETA);
    assert_eq!(headers["x-api-key"], KEY);

    // 1000 tokens at $3 a million, 10,000 at 1.25 times and 100,000 at a tenth of that, and 500 at $15.
    let request = until("its record", async || {
        let listed = host.ask(Method::GET, "/tierbar/v1/requests?limit=1", None);
        let mut requests = listed.await.1["requests"].take();
        requests.get_mut(0).map(Value::take)
    })
    .await;
    assert_eq!(request["outcome"], "answered", "{request}");
    assert_eq!(request["prompt_tokens"], 111_000);
    assert_eq!(request["paid"], 0.078, "{request}");
}
