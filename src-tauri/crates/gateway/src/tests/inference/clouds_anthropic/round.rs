//! One Tierbar is the cloud of another: what its model is asked, and what its clients hear, is what it would be without the
//! other between them.

use super::*;

/// The remote worker: it gives this answer, and reports the requests.
struct Round {
    near: Bench,
    far: Bench,
    asked: mpsc::UnboundedReceiver<ReceivedRequest>,
}

async fn round(answer: fn() -> Response) -> Round {
    let far = Bench::new("127.0.0.1:11435").await;
    let (worker, asked) = scripted(answer);
    far.load(worker);
    let (near, _) = bench(far.router.clone(), "fast").await;
    Round { near, far, asked }
}

impl Round {
    /// What the worker is asked, and the answer, through both and by the far one alone.
    async fn both(&mut self, path: &str, ask: &Value) -> [(Value, String); 2] {
        let mut heard = Vec::new();
        for bench in [&self.near, &self.far] {
            let answer = bench.post(path, ask.to_string()).await;
            assert_eq!(answer.status(), 200);
            let answer = text(answer).await;
            let mut asked = self.asked.recv().await.unwrap().body;
            // An option of streams alone, which the far side adds to all.
            asked.as_object_mut().unwrap().remove("stream_options");
            heard.push((asked, answer));
        }
        heard.try_into().unwrap()
    }
}

const PIECES: &str = concat!(
    "data: {\"model\":\"small\",\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":null}}]}\n\n",
    "data: {\"model\":\"small\",\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}]}\n\n",
    "data: {\"model\":\"small\",\"choices\":[{\"delta\":{\"content\":\"I \"}}]}\n\n",
    "data: {\"model\":\"small\",\"choices\":[{\"delta\":{\"content\":\"look.\"}}]}\n\n",
    "data: {\"model\":\"small\",\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"type\":\"function\",\"function\":{\"name\":\"look\",\"arguments\":\"{\\\"at\\\"\"}}]}}]}\n\n",
    "data: {\"model\":\"small\",\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\":1}\"}}]}}]}\n\n",
    "data: {\"model\":\"small\",\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
    "data: {\"model\":\"small\",\"choices\":[],\"usage\":{\"prompt_tokens\":10,\"completion_tokens\":4,\"prompt_tokens_details\":{\"cached_tokens\":7}}}\n\n",
    "data: [DONE]\n\n",
);

fn streamed() -> Response {
    events(PIECES)
}

fn whole() -> Response {
    let function = json!({"name": "look", "arguments": "{\"at\":1}"});
    Json(json!({
        "model": "small",
        "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": "I look.", "reasoning_content": "hm",
            "tool_calls": [{"id": "a", "type": "function", "function": function}],
        }}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14, "prompt_tokens_details": {"cached_tokens": 7}},
    }))
    .into_response()
}

/// A chat of OpenAI's with all that both dialects know.
fn chat() -> Value {
    let call = json!({"id": "c", "type": "function", "function": {"name": "look", "arguments": "{\"at\":2}"}});
    json!({
        "model": "fast", "max_tokens": 4000, "stop": ["END"], "think": true, "thinking_budget_tokens": 1500,
        "tools": [{"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": {"type": "object", "properties": {"at": {"type": "integer"}}}}}],
        "tool_choice": "auto", "parallel_tool_calls": false,
        "response_format": {"type": "json_schema", "json_schema": {"name": "output", "schema": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}}},
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [
                {"type": "text", "text": "What is it?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
            ]},
            {"role": "assistant", "content": "I look.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "a hat"},
            {"role": "user", "content": "Well?"},
        ],
    })
}

#[tokio::test]
async fn an_openai_chat_survives_the_round_trip() {
    let mut round = round(whole).await;
    let [(asked, answer), (_, direct)] = round.both(inference::CHAT, &chat()).await;
    assert_eq!(asked, chat());
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let direct: Value = serde_json::from_str(&direct).unwrap();
    assert_eq!(answer["choices"], direct["choices"]);
    for figure in [
        "/prompt_tokens",
        "/completion_tokens",
        "/total_tokens",
        "/prompt_tokens_details/cached_tokens",
    ] {
        assert_eq!(
            answer["usage"].pointer(figure),
            direct["usage"].pointer(figure),
            "{figure}"
        );
    }
    assert_eq!(answer["model"], "small");
}

#[tokio::test]
async fn an_openai_stream_survives_the_round_trip() {
    let mut round = round(streamed).await;
    let mut chat = chat();
    chat["stream"] = true.into();
    let mut with_usage = chat.clone();
    with_usage["stream_options"] = json!({"include_usage": true});
    let [(asked, answer), _] = round.both(inference::CHAT, &with_usage).await;
    assert_eq!(asked, chat);
    let (mut said, mut finish, mut usage) =
        ([const { String::new() }; 3], Value::Null, Value::Null);
    for line in answer
        .lines()
        .filter_map(|line| line.strip_prefix("data: {"))
    {
        let chunk: Value = serde_json::from_str(&format!("{{{line}")).unwrap();
        let choice = &chunk["choices"][0];
        let parts = [
            "/reasoning_content",
            "/content",
            "/tool_calls/0/function/arguments",
        ];
        for (said, part) in said.iter_mut().zip(parts) {
            *said += choice["delta"]
                .pointer(part)
                .and_then(Value::as_str)
                .unwrap_or_default();
        }
        if choice["finish_reason"].is_string() {
            finish = choice["finish_reason"].clone();
        }
        if chunk["usage"].is_object() {
            usage = chunk["usage"].clone();
        }
    }
    assert_eq!(said, ["hm", "I look.", "{\"at\":1}"]);
    assert_eq!(finish, "tool_calls");
    assert_eq!(
        (&usage["prompt_tokens"], &usage["completion_tokens"]),
        (&json!(10), &json!(4))
    );
    assert!(answer.ends_with("data: [DONE]\n\n"), "{answer}");
}

/// The same in Anthropic's words.
fn ask() -> Value {
    json!({
        "model": "fast", "max_tokens": 4000, "stop_sequences": ["END"],
        "thinking": {"type": "enabled", "budget_tokens": 1500},
        "tools": [{"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "auto"},
        "system": "Be brief.",
        "messages": [
            {"role": "user", "content": [
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
                {"type": "text", "text": "What is it?"},
            ]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "c", "name": "look", "input": {"at": 2}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c", "content": "a hat"},
                {"type": "text", "text": "Well?"},
            ]},
        ],
    })
}

#[tokio::test]
async fn an_anthropic_message_is_the_same_through_another_tierbar() {
    let mut round = round(whole).await;
    let [(asked, answer), (asked_directly, direct)] = round.both(MESSAGES, &ask()).await;
    assert_eq!(asked, asked_directly);
    let without_id = |answer: String| {
        let mut answer: Value = serde_json::from_str(&answer).unwrap();
        answer.as_object_mut().unwrap().remove("id").unwrap();
        answer
    };
    assert_eq!(without_id(answer), without_id(direct));
}

#[tokio::test]
async fn an_anthropic_stream_is_the_same_through_another_tierbar() {
    let mut round = round(streamed).await;
    let mut ask = ask();
    ask["stream"] = true.into();
    let [(asked, answer), (asked_directly, direct)] = round.both(MESSAGES, &ask).await;
    assert_eq!(asked, asked_directly);
    let reply = |answer: &str| {
        let events = answer
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        let events = events.map(|event| serde_json::from_str::<Value>(event).unwrap());
        let mut events: Vec<_> = events.collect();
        assert!(events[0]["message"]["id"].take().is_string());
        // One empty piece more is no other answer.
        events.retain(|event| event["delta"]["partial_json"] != "");
        events
    };
    assert_eq!(reply(&answer), reply(&direct));
}

#[tokio::test]
async fn our_refusal_keeps_its_code_and_figures() {
    let refusal = || {
        let error = Error::new(Code::ContextExceeded, "too long").detail("prompt_tokens", 9);
        tierbar_http::error::Failure(error).into_response()
    };
    let round = round(refusal).await;
    let refused = round.near.post(inference::CHAT, chat().to_string()).await;
    assert_eq!(refused.status(), 400);
    let error = &json(refused).await["error"];
    assert_eq!(error["code"], "context_length_exceeded");
    assert_eq!(error["prompt_tokens"], 9);
    let counted = |path| round.near.post(path, ask().to_string());
    assert_eq!(counted(COUNT).await.status(), 400);
}
