//! Anthropic's clients and servers with nothing but Tierbar between them: what either says arrives as it was said.

use super::*;
use axum::http::{Request, StatusCode};
use futures_util::{StreamExt, stream};
use std::{convert::Infallible, time::Duration};
use tierbar_core::{
    TierId,
    config::{ChainConfig, Engine, Step},
    requests::{RequestOutcome, RequestRecord},
};

/// As Claude Code might write it, and some things that it does not write yet.
const MESSAGE: &str = r#"{ "model" : "fast","max_tokens":32000,
  "system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral","ttl":"1h"}}],
  "thinking":{"type":"enabled","budget_tokens":10000}, "temperature":1.0, "not_yet_known":{"a":[1e2,null]},
  "tools":[{"name":"look","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}},
           {"type":"web_search_20250305","name":"web_search","max_uses":3}],
  "mcp_servers":[{"type":"url","url":"https://mcp.example","name":"m"}],
  "messages":[
    {"role":"user","content":[{"type":"text","text":"Gr\u00fc\u00dfe 😀","cache_control":{"type":"ephemeral"}}]},
    {"role":"assistant","content":[
      {"type":"thinking","thinking":"hm","signature":"c2lnbmVk"},{"type":"redacted_thinking","data":"c2VjcmV0"},
      {"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"hats"}},
      {"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]},
      {"type":"tool_use","id":"toolu_1","name":"look","input":{"at": 1}}]},
    {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","is_error":true,"content":"no hat"},
      {"type":"kind_of_next_year","data":"x"}]}
  ]}
"#;

/// With events and fields that are not known, and a letter of several bytes.
const ANSWER: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"model\":\"claude-x\",\"usage\":{\"input_tokens\":5,\"cache_creation_input_tokens\":11,\"cache_read_input_tokens\":7,\"output_tokens\":1,\"service_tier\":\"standard\"}}}\n\n",
    "event: ping\ndata: {\"type\": \"ping\"}\n\n",
    "event: of_next_year\ndata: {\"type\":\"of_next_year\",\"x\":[1]}\n\n: a comment\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"hm\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"c2ln\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"text_delta\",\"text\":\"Grüße 😀\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"citations_delta\",\"citation\":{\"url\":\"https://a.example\"}}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":1}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"pause_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":9,\"server_tool_use\":{\"web_search_requests\":1}}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

const WHOLE: &str = r#"{"id":"msg_1", "type":"message","role":"assistant","model":"claude-x","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},
 {"type":"text","text":"Ja.","citations":[{"url":"https://a.example"}]}],"stop_reason":"end_turn","stop_sequence":null,"new":{"a":1e2},
 "usage":{"input_tokens":3,"cache_creation_input_tokens":11,"cache_read_input_tokens":4,"output_tokens":2,"service_tier":"priority"}}"#;

fn cloud(server: &str) -> Engine {
    serde_json::from_value(json!({"endpoint": server, "dialect": "anthropic"})).unwrap()
}

/// A Tierbar whose tier is configured as the server that `routes` are.
async fn configured(routes: Router) -> (Bench, String) {
    let (bench, server) = bench(routes, "claude-sonnet-4-6").await;
    let url = format!("http://{server}/");
    let loaded = bench.loaded.borrow().clone().unwrap();
    bench.other("fast", loaded, cloud(&url));
    (bench, server)
}

async fn post(bench: &Bench, body: String) -> Response {
    let request = Request::post(MESSAGES)
        .header(header::HOST, "localhost")
        .header("x-api-key", "the clients own")
        .header("anthropic-version", "2023-06-01")
        .header("anthropic-beta", "context-1m-2025-08-07,of-next-year")
        .header("anthropic-beta", "another")
        .header("user-agent", "claude-cli/2");
    bench.send(request.body(body.into()).unwrap()).await
}

fn streamed() -> String {
    MESSAGE.replacen('{', r#"{"stream":true,"#, 1)
}

/// The message as a server is to get it.
fn for_server(message: &str) -> String {
    message.replacen("\"fast\"", "\"claude-sonnet-4-6\"", 1)
}

fn last_request(bench: &Bench) -> RequestRecord {
    bench.metrics.recent_requests(1).remove(0)
}

#[tokio::test]
async fn a_message_arrives_as_it_was_sent_and_its_answer_too() {
    let answer = || ([(header::CONTENT_TYPE, "application/json")], WHOLE).into_response();
    let (routes, mut asked) = scripted(answer);
    let (mut bench, server) = configured(routes).await;
    let path = format!("/tierbar/v1/secrets/{server}");
    let key = bench.ask("PUT", &path, r#"{"value": "sk-ant-1"}"#).await;
    assert_eq!(key.status(), 204);
    let answer = post(&bench, MESSAGE.to_owned()).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], "application/json");
    assert_eq!(answer.headers()["x-tierbar-tier"], "fast");
    assert_eq!(text(answer).await, WHOLE);
    let asked = asked.recv().await.unwrap();
    assert_eq!(asked.path, MESSAGES);
    assert_eq!(asked.bytes, for_server(MESSAGE));
    let betas: Vec<_> = asked.headers.get_all("anthropic-beta").iter().collect();
    assert_eq!(betas, ["context-1m-2025-08-07,of-next-year", "another"]);
    assert_eq!(asked.headers["anthropic-version"], "2023-06-01");
    assert_eq!(asked.headers["x-api-key"], "sk-ant-1");
    assert!(!asked.headers.contains_key("authorization"));
    bench.released().await;
    let record = last_request(&bench);
    assert_eq!(record.outcome, RequestOutcome::Answered);
    assert_eq!(record.prompt_tokens, Some(3 + 11 + 4));
    assert_eq!(record.completion_tokens, Some(2));
}

#[tokio::test]
async fn a_stream_arrives_byte_for_byte_however_it_is_split() {
    for size in [1, 3, 100, ANSWER.len()] {
        let pieces = move || {
            let pieces = ANSWER.as_bytes().chunks(size);
            let pieces = pieces.map(Ok::<_, Infallible>);
            events(Body::from_stream(stream::iter(pieces)))
        };
        let (routes, mut asked) = scripted(pieces);
        let (mut bench, _) = configured(routes).await;
        let answer = post(&bench, streamed()).await;
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        assert_eq!(text(answer).await, ANSWER);
        assert_eq!(asked.recv().await.unwrap().bytes, for_server(&streamed()));
        bench.released().await;
        let record = last_request(&bench);
        assert_eq!(record.outcome, RequestOutcome::Answered);
        assert_eq!(record.prompt_tokens, Some(5 + 11 + 7));
        assert_eq!(record.completion_tokens, Some(9));
    }
}

#[tokio::test]
async fn the_end_is_not_waited_for_behind_the_last_event() {
    let lingering = || {
        let all = stream::iter([Ok::<_, Infallible>(ANSWER)]);
        events(Body::from_stream(all.chain(stream::pending())))
    };
    let (routes, _asked) = scripted(lingering);
    let (mut bench, _) = configured(routes).await;
    assert_eq!(text(post(&bench, streamed()).await).await, ANSWER);
    bench.released().await;
}

#[tokio::test]
async fn a_last_event_without_a_line_end_arrives() {
    let (routes, _asked) = scripted(|| events(ANSWER.trim_end()));
    let (mut bench, _) = configured(routes).await;
    assert_eq!(text(post(&bench, streamed()).await).await, ANSWER);
    bench.released().await;
    assert_eq!(last_request(&bench).outcome, RequestOutcome::Answered);
}

#[tokio::test]
async fn pings_behind_the_last_event_do_not_hold_the_lease() {
    let pinging = || {
        let pings = stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            Some((Ok(": ping\n\n"), ()))
        });
        let all = stream::iter([Ok::<_, Infallible>(ANSWER)]);
        events(Body::from_stream(all.chain(pings)))
    };
    let (routes, _asked) = scripted(pinging);
    let (mut bench, _) = configured(routes).await;
    let reply = text(post(&bench, streamed()).await).await;
    let pings = reply.strip_prefix(ANSWER).unwrap();
    assert!(pings.replace(": ping\n\n", "").is_empty(), "{pings}");
    bench.released().await;
    assert_eq!(last_request(&bench).outcome, RequestOutcome::Answered);
}

#[tokio::test]
async fn a_client_that_leaves_at_the_last_event_was_answered() {
    let lingering = || {
        let all = stream::iter([Ok::<_, Infallible>(ANSWER)]);
        events(Body::from_stream(all.chain(stream::pending())))
    };
    let (routes, _asked) = scripted(lingering);
    let (mut bench, _) = configured(routes).await;
    let answer = post(&bench, streamed()).await;
    let mut body = answer.into_body().into_data_stream();
    let mut read = Vec::new();
    while read.len() < ANSWER.len() {
        read.extend(body.next().await.unwrap().unwrap());
    }
    drop(body);
    bench.released().await;
    assert_eq!(last_request(&bench).outcome, RequestOutcome::Answered);
}

#[tokio::test]
async fn a_stream_that_breaks_off_ends_with_an_error_in_its_dialect() {
    let letter = ANSWER.find("üße").unwrap();
    let (first, _) = ANSWER.split_once("event: content_block_stop").unwrap();
    let last = ANSWER.find("event: message_stop").unwrap();
    // Within a letter, where the event's name has passed and is taken back; between events; and before the last event.
    for (cut, passes, takes_back) in [
        (
            letter + 1,
            ANSWER[..letter].rfind("data: ").unwrap(),
            "event:\n\n",
        ),
        (first.len(), first.len(), ""),
        (last, last, ""),
    ] {
        let (routes, _asked) = scripted(move || events(&ANSWER.as_bytes()[..cut]));
        let (mut bench, _) = configured(routes).await;
        let reply = text(post(&bench, streamed()).await).await;
        let rest = reply.strip_prefix(&ANSWER[..passes]).unwrap();
        let rest = rest.strip_prefix(takes_back).unwrap().trim_start();
        let rest = rest.strip_prefix("event: error\ndata: ");
        let error: Value = serde_json::from_str(rest.unwrap().trim_end()).unwrap();
        assert_eq!(error["type"], "error");
        assert_eq!(error["error"]["code"], "unreachable", "{error}");
        bench.released().await;
        assert_eq!(last_request(&bench).outcome, RequestOutcome::Failed);
    }
}

#[tokio::test]
async fn an_error_within_a_stream_passes_and_counts() {
    let (begun, _) = ANSWER.split_once("event: content_block_stop").unwrap();
    let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let said = format!("{begun}{error}");
    let script = said.clone();
    let (routes, _asked) = scripted(move || events(script.clone()));
    let (mut bench, _) = configured(routes).await;
    assert_eq!(text(post(&bench, streamed()).await).await, said);
    bench.released().await;
    let record = last_request(&bench);
    assert_eq!(record.outcome, RequestOutcome::Failed);
    assert_eq!(record.prompt_tokens, Some(5 + 11 + 7));
}

#[tokio::test]
async fn a_refusal_passes_with_its_status() {
    const REFUSAL: &str = r#"{"type":"error", "error":{"type":"overloaded_error","message":"Overloaded","of_next_year":1},"request_id":"req_1"}"#;
    for status in [400, 413, 529] {
        let (routes, _asked) = scripted(move || {
            let about = [("content-type", "application/json"), ("retry-after", "7")];
            let status = StatusCode::from_u16(status).unwrap();
            (status, about, REFUSAL).into_response()
        });
        let (bench, _) = configured(routes).await;
        for message in [MESSAGE.to_owned(), streamed()] {
            let refused = post(&bench, message).await;
            assert_eq!(refused.status().as_u16(), status);
            assert_eq!(refused.headers().contains_key("retry-after"), status == 529);
            assert_eq!(refused.headers()["x-tierbar-tier"], "fast");
            assert_eq!(text(refused).await, REFUSAL);
        }
    }
}

#[tokio::test]
async fn a_count_passes_costs_nothing_and_so_do_its_refusals() {
    const COUNTED: &str = r#"{"input_tokens": 2095, "of_next_year":1e2}"#;
    const REFUSAL: &str = r#"{"type":"error", "error":{"type":"not_found_error","message":"model: m"},"request_id":"req_1"}"#;
    for (status, body) in [(200, COUNTED), (404, REFUSAL), (529, REFUSAL)] {
        let (routes, mut asked) = scripted(move || {
            let about = [("content-type", "application/json"), ("retry-after", "7")];
            let status = StatusCode::from_u16(status).unwrap();
            (status, about, body).into_response()
        });
        let (bench, _) = configured(routes).await;
        let limits = r#"{"name": "phone", "tokens_per_day": 1}"#;
        let key = json(bench.ask("POST", "/tierbar/v1/keys", limits).await).await;
        let key = format!("Bearer {}", key["key"].as_str().unwrap());
        // One token would be all that the key has.
        for _ in 0..2 {
            let request = Request::post(COUNT)
                .header(header::HOST, "localhost")
                .header(header::AUTHORIZATION, &key);
            let counted = bench.send(request.body(MESSAGE.into()).unwrap()).await;
            assert_eq!(counted.status().as_u16(), status);
            assert_eq!(counted.headers().contains_key("retry-after"), status == 529);
            assert_eq!(text(counted).await, body);
            assert_eq!(asked.recv().await.unwrap().bytes, for_server(MESSAGE));
        }
        assert_eq!(bench.metrics.recent_requests(9), []);
    }
}

#[tokio::test]
async fn a_disconnect_closes_the_servers_connection() {
    let (leaving, gone) = tokio::sync::oneshot::channel::<()>();
    let held = std::sync::Arc::new(std::sync::Mutex::new(Some(leaving)));
    let (routes, _asked) = scripted(move || {
        let leaving = held.lock().unwrap().take().unwrap();
        let (first, _) = ANSWER.split_once("event: ping").unwrap();
        let first = stream::iter([Ok::<_, Infallible>(first)]);
        let endless = first.chain(stream::pending()).map(move |piece| {
            let _until_dropped = &leaving;
            piece
        });
        events(Body::from_stream(endless))
    });
    let (mut bench, _) = configured(routes).await;
    let mut body = post(&bench, streamed())
        .await
        .into_body()
        .into_data_stream();
    body.next().await.unwrap().unwrap();
    drop(body);
    gone.await.unwrap_err();
    bench.released().await;
    assert_eq!(last_request(&bench).outcome, RequestOutcome::Cancelled);
}

#[tokio::test]
async fn only_a_server_of_the_dialect_gets_what_no_chat_can_say() {
    let (routes, _asked) = scripted(message);
    let bench = Bench::new("127.0.0.1:11435").await;
    bench.load(routes);
    let refused = post(&bench, MESSAGE.to_owned()).await;
    assert_eq!(refused.status(), 400);
    let refused = text(refused).await;
    assert!(refused.contains("mcp_servers"), "{refused}");
}

#[tokio::test]
async fn a_whole_answer_to_a_stream_is_rendered() {
    let (routes, _asked) = scripted(message);
    let (bench, _) = configured(routes).await;
    let reply = text(post(&bench, streamed()).await).await;
    assert!(reply.starts_with("event: message_start\n"), "{reply}");
    assert!(reply.contains("\"text\":\"Yes.\""), "{reply}");
    assert!(
        reply.ends_with("data: {\"type\":\"message_stop\"}\n\n"),
        "{reply}"
    );
}

/// A chain of a server of Anthropic's and the tier of this machine, whose worker answers in OpenAI's form.
struct Night {
    bench: Bench,
    cloud: mpsc::UnboundedReceiver<ReceivedRequest>,
    here: mpsc::UnboundedReceiver<ReceivedRequest>,
}

impl Night {
    async fn new(
        answer: impl Fn() -> Response + Clone + Send + Sync + 'static,
        change: impl FnOnce(&mut ChainConfig),
    ) -> Self {
        let (routes, cloud) = scripted(answer);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        let bench = Bench::new("127.0.0.1:11435").await;
        let sonnet = Endpoint::Foreign(Foreign {
            at: Address::Url(url.clone()),
            model: Some("claude-sonnet-4-6".to_owned()),
            dialect: Dialect::Anthropic,
        });
        bench.other("sonnet", Ok(sonnet), self::cloud(&url));
        let (worker, here) = scripted(|| {
            events(concat!(
                "data: {\"choices\":[{\"delta\":{\"content\":\"Here.\"}}]}\n\n",
                "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
                "data: [DONE]\n\n",
            ))
        });
        bench.load(worker);
        let mut chain = ChainConfig {
            steps: ["sonnet", "fast"]
                .map(|step| Step::try_from(step.to_owned()).unwrap())
                .into(),
            retries: 0,
            mark: true,
            ..ChainConfig::default()
        };
        change(&mut chain);
        let name = TierId::new("night").unwrap();
        bench.config.lock().unwrap().chains.insert(name, chain);
        Self { bench, cloud, here }
    }

    async fn ask(&self, message: &str) -> Response {
        post(&self.bench, message.replacen("\"fast\"", "\"night\"", 1)).await
    }
}

/// What a local model can be asked, too.
fn translatable() -> String {
    let message = streamed();
    let (first, rest) = message.split_once("  \"mcp_servers\"").unwrap();
    let (_, rest) = rest.split_once('\n').unwrap();
    let message = format!("{first}{rest}");
    message.replace(
        ",\n      {\"type\":\"kind_of_next_year\",\"data\":\"x\"}",
        "",
    )
}

#[tokio::test]
async fn the_first_step_of_a_chain_gets_all_of_the_message() {
    let mut night = Night::new(|| events(ANSWER), |_| ()).await;
    let answer = night.ask(&streamed()).await;
    assert_eq!(answer.headers()["x-tierbar-chain"], "night");
    assert_eq!(answer.headers()["x-tierbar-tier"], "sonnet");
    assert_eq!(text(answer).await, ANSWER);
    let asked = night.cloud.recv().await.unwrap();
    assert_eq!(asked.bytes, for_server(&streamed()));
    assert_eq!(
        asked.headers["anthropic-beta"],
        "context-1m-2025-08-07,of-next-year"
    );
    assert!(night.here.try_recv().is_err());
    // A whole answer is put together from events, so that it can move on.
    let answer = json(night.ask(MESSAGE).await).await;
    let blocks = json!([
        {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
        {"type": "text", "text": "Grüße 😀", "citations": [{"url": "https://a.example"}]},
    ]);
    assert_eq!(answer["content"], blocks);
    assert_eq!(answer["usage"]["cache_creation_input_tokens"], 11);
    assert_eq!(answer["stop_reason"], "pause_turn");
    let mut asked = night.cloud.recv().await.unwrap().body;
    assert_eq!(
        asked.as_object_mut().unwrap().remove("stream"),
        Some(json!(true))
    );
    assert_eq!(
        asked,
        serde_json::from_str::<Value>(&for_server(MESSAGE)).unwrap()
    );
}

#[tokio::test]
async fn a_chain_moves_on_before_the_first_token() {
    let error = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let (begun, _) = ANSWER.split_once("event: content_block_start").unwrap();
    let in_stream = format!("{begun}{error}");
    let refusal = || {
        let body = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
        (StatusCode::from_u16(529).unwrap(), Json(body)).into_response()
    };
    let cut = begun.to_owned();
    let answers: [Box<dyn Fn() -> Response + Send + Sync>; 3] = [
        Box::new(refusal),
        Box::new(move || events(in_stream.clone())),
        Box::new(move || events(cut.clone())),
    ];
    for answer in answers {
        let answer = std::sync::Arc::new(answer);
        let mut night = Night::new(move || answer(), |_| ()).await;
        let reply = night.ask(&translatable()).await;
        assert_eq!(reply.headers()["x-tierbar-fallback-from"], "sonnet");
        assert_eq!(reply.headers()["x-tierbar-tier"], "fast");
        let reply = text(reply).await;
        assert!(reply.contains("[Local Fallback] "), "{reply}");
        assert!(reply.contains("\"text\":\"Here.\""), "{reply}");
        assert!(reply.contains("\"fallback_from\":\"sonnet\""), "{reply}");
        assert_eq!(
            night.cloud.recv().await.unwrap().bytes,
            for_server(&translatable())
        );
        let asked = night.here.recv().await.unwrap();
        assert_eq!(asked.path, inference::CHAT);
        assert_eq!(asked.body["messages"][0]["content"], "Be brief.");
    }
}

#[tokio::test]
async fn an_answer_in_another_steps_place_says_so() {
    let mut night = Night::new(
        || events(ANSWER),
        |chain| {
            chain.steps.reverse();
        },
    )
    .await;
    night
        .bench
        .loaded
        .send_replace(Some(Err(Error::new(Code::OverBudget, "no room"))));
    let reply = text(night.ask(&translatable()).await).await;
    let told = "\"message\":{\"id\":\"msg_1\",\"model\":\"claude-x\",";
    assert!(reply.contains(told), "{reply}");
    let event = reply
        .lines()
        .find(|line| line.contains("\"tierbar\""))
        .unwrap();
    let event: Value = serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap();
    let about = &event["message"]["tierbar"];
    assert_eq!(about["fallback_from"], "fast", "{event}");
    assert_eq!(about["tier"], "sonnet");
    let (_, rest) = ANSWER.split_once("\n\n").unwrap();
    assert!(reply.ends_with(rest), "{reply}");
    assert!(!reply.contains("[Local Fallback]"));
    night.cloud.recv().await.unwrap();
}

#[tokio::test]
async fn a_chains_cost_limit_holds_for_what_passes() {
    let mut night = Night::new(
        || events(ANSWER),
        |chain| chain.cost = 0.1.try_into().unwrap(),
    )
    .await;
    let sonnet = TierId::new("sonnet").unwrap();
    {
        let mut config = night.bench.config.lock().unwrap();
        let Engine::Endpoint(engine) = &mut config.tiers.get_mut(&sonnet).unwrap().engine else {
            panic!("an endpoint");
        };
        let price = Some(15.0.try_into().unwrap());
        (engine.input_price, engine.output_price) = (price, price);
    }
    // 32,000 tokens cost 48 cents.
    let reply = night.ask(&translatable()).await;
    assert_eq!(reply.headers()["x-tierbar-tier"], "fast");
    assert!(night.cloud.try_recv().is_err());
    // OpenAI's field limits nothing here.
    for instead in ["", "\"max_completion_tokens\":5,"] {
        let unlimited = translatable().replace("\"max_tokens\":32000,", instead);
        let reply = night.ask(&unlimited).await;
        assert_eq!(reply.headers()["x-tierbar-tier"], "sonnet");
        assert_eq!(night.cloud.recv().await.unwrap().body["max_tokens"], 4096);
    }
}

#[tokio::test]
async fn a_request_that_is_not_sent_says_nothing_of_its_server() {
    let broken = || (StatusCode::INTERNAL_SERVER_ERROR, Json(json!({}))).into_response();
    let mut night = Night::new(broken, |_| ()).await;
    for inexpressible in [false, false, true, false, false] {
        if inexpressible {
            let request = r#"{"model": "night", "input": "Hi", "previous_response_id": "resp_0"}"#;
            let refused = night.bench.post("/v1/responses", request).await;
            assert_eq!(refused.status(), 400);
            continue;
        }
        let reply = night.ask(&translatable()).await;
        assert_eq!(reply.headers()["x-tierbar-tier"], "fast");
    }
    // Three failures in a row: it is skipped from there on.
    for _ in 0..3 {
        night.cloud.try_recv().unwrap();
    }
    assert!(night.cloud.try_recv().is_err());
}

#[tokio::test]
async fn a_silent_server_is_left_for_the_next_step() {
    let mut night = Night::new(
        || {
            let ping = "event: ping\ndata: {\"type\": \"ping\"}\n\n";
            let pings = stream::unfold((), move |()| async move {
                tokio::time::sleep(Duration::from_millis(20)).await;
                Some((Ok::<_, Infallible>(ping), ()))
            });
            events(Body::from_stream(pings))
        },
        |chain| chain.wait = tierbar_core::config::Span::seconds(1),
    )
    .await;
    let reply = night.ask(&translatable()).await;
    assert_eq!(reply.headers()["x-tierbar-tried"], "sonnet=worker_timeout");
    night.here.recv().await.unwrap();
}
