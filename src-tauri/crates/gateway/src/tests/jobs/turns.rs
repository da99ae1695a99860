//! Turns over the API, with a worker whose words the test lets go one by one.

mod agent;
mod full;
mod mcp;

use crate::testing::{Bench, json, text};
use axum::{
    Router,
    body::{Body, Bytes},
    http::header,
    response::IntoResponse,
    routing::post,
};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use std::{convert::Infallible, sync::Arc};
use tierbar_core::{Modality, TierState};
use tierbar_inference::CHAT;
use tokio::sync::{Mutex, mpsc, watch};

/// What the worker is made to say; dropped, its stream ends.
type Words = mpsc::UnboundedSender<String>;

/// A gateway whose worker streams what is sent, with the requests that it got.
struct Stage {
    bench: Bench,
    words: Words,
    requests: mpsc::UnboundedReceiver<Value>,
    chat: String,
}

impl Stage {
    async fn new() -> Self {
        let bench = Bench::new("127.0.0.1:11435").await;
        let (words, said) = mpsc::unbounded_channel::<String>();
        let (asked, requests) = mpsc::unbounded_channel();
        let said = Arc::new(Mutex::new(said));
        let answer = move |body: Bytes| {
            let _gone = asked.send(serde_json::from_slice(&body).unwrap());
            let said = Arc::clone(&said);
            // An answer that has ended takes none of the next one's words.
            let words = stream::unfold(false, move |ended| {
                let said = Arc::clone(&said);
                async move {
                    if ended {
                        return None;
                    }
                    let word = said.lock().await.recv().await?;
                    let ends = word.contains("[DONE]");
                    Some((Ok::<_, Infallible>(Bytes::from(word)), ends))
                }
            });
            let kind = [(header::CONTENT_TYPE, "text/event-stream")];
            std::future::ready((kind, Body::from_stream(words)).into_response())
        };
        bench.load(Router::new().route(CHAT, post(answer)));
        let made = json(bench.ask("POST", "/tierbar/v1/chats", "{}").await).await;
        let chat = made["id"].as_str().unwrap().to_owned();
        Self {
            bench,
            words,
            requests,
            chat,
        }
    }

    fn path(&self) -> String {
        format!("/tierbar/v1/chats/{}", self.chat)
    }

    /// Begins a turn; its id.
    async fn begin(&self, body: Value) -> String {
        let path = format!("{}/turns", self.path());
        let answer = self.bench.ask("POST", &path, body.to_string()).await;
        assert_eq!(answer.status(), 201);
        json(answer).await["id"].as_str().unwrap().to_owned()
    }

    fn say(&self, word: &str) {
        let chunk = json!({"choices": [{"index": 0, "delta": {"content": word}}]});
        self.words.send(format!("data: {chunk}\n\n")).unwrap();
    }

    fn finish(&self) {
        self.finish_as("stop");
    }

    fn finish_as(&self, reason: &str) {
        let chunk = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]});
        let end = format!("data: {chunk}\n\ndata: [DONE]\n\n");
        self.words.send(end).unwrap();
    }

    async fn follow(&self, turn: &str, after: u64) -> Follower {
        let path = format!("{}/turns/{turn}/events?after={after}", self.path());
        let answer = self.bench.get(&path).await;
        assert_eq!(answer.status(), 200);
        Follower {
            body: answer.into_body(),
            read: String::new(),
        }
    }

    async fn chat(&self) -> Value {
        json(self.bench.get(&self.path()).await).await
    }

    async fn status_of(&self, method: &str, path: &str) -> u16 {
        let path = format!("{}{path}", self.path());
        self.bench.ask(method, &path, "").await.status().as_u16()
    }
}

struct Follower {
    body: Body,
    read: String,
}

impl Follower {
    /// The next event and its number; `None` at the stream's end.
    async fn next(&mut self) -> Option<(u64, Value)> {
        loop {
            if let Some((event, rest)) = self.read.split_once("\n\n") {
                let field = |name: &str| {
                    let line = event.lines().find_map(|line| line.strip_prefix(name))?;
                    Some(line.trim().to_owned())
                };
                let found = field("id:").zip(field("data:"));
                self.read = rest.to_owned();
                if let Some((id, data)) = found {
                    return Some((id.parse().unwrap(), serde_json::from_str(&data).unwrap()));
                }
                continue;
            }
            let mut body = std::mem::take(&mut self.body).into_data_stream();
            let bytes = body.next().await?.unwrap();
            self.body = Body::new(axum::body::Body::from_stream(body));
            self.read.push_str(std::str::from_utf8(&bytes).unwrap());
        }
    }

    /// Reads until the text so far is this one; the number of its last event.
    async fn text(&mut self, wanted: &str) -> u64 {
        let mut text = String::new();
        while let Some((number, event)) = self.next().await {
            if event["type"] == "text" {
                text += event["text"].as_str().unwrap();
                if text == wanted {
                    return number;
                }
                assert!(wanted.starts_with(&text), "{text}");
            }
        }
        panic!("it ended after {text:?}");
    }

    /// The last event.
    async fn last(&mut self) -> Value {
        let mut last = Value::Null;
        while let Some((_, event)) = self.next().await {
            last = event;
        }
        last
    }
}

fn texts(chat: &Value) -> Vec<&str> {
    let messages = chat["messages"].as_array().unwrap().iter();
    let text = |message: &'_ Value| message.pointer("/parts/0/text").is_some();
    messages
        .filter(|message| text(message))
        .map(|message| message["parts"][0]["text"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn an_answer_is_followed_live_and_stored_with_its_figures() {
    let mut stage = Stage::new().await;
    let question = json!({"text": "Capital of France?", "options": {"temperature": 0}});
    let turn = stage.begin(question).await;
    let mut follower = stage.follow(&turn, 0).await;
    stage.say("Par");
    follower.text("Par").await;
    assert_eq!(stage.chat().await["turn"], turn.as_str());
    stage.say("is");
    follower.text("is").await;
    stage.finish();
    let last = follower.last().await;
    assert_eq!(last["type"], "finished");
    let chat = stage.chat().await;
    assert_eq!(texts(&chat), ["Capital of France?", "Paris"]);
    let answer = &chat["messages"][1];
    assert_eq!(&last["message"], answer);
    assert_eq!(
        (&answer["tier"], &answer["model"], &answer["finish"]),
        (&json!("fast"), &json!("small"), &json!("stop"))
    );
    assert!(answer["time_to_first_token_ms"].as_f64().unwrap() > 0.0);
    assert_eq!(
        (&chat["turn"], &chat["leaf"]),
        (&Value::Null, &answer["id"])
    );
    assert_eq!(chat["title"], "Capital of France?");
    let sent = stage.requests.recv().await.unwrap();
    let question = json!([{"role": "user", "content": "Capital of France?"}]);
    assert_eq!(sent["messages"], question);
    assert_eq!(sent["temperature"], 0);
    stage.bench.released().await;
}

#[tokio::test]
async fn an_answer_is_stored_with_where_its_time_went() {
    let stage = Stage::new().await;
    stage
        .bench
        .status
        .send_modify(|status| Arc::make_mut(status).tiers[0].state = TierState::Stopped);
    let turn = stage.begin(json!({"text": "?"})).await;
    let mut follower = stage.follow(&turn, 0).await;
    stage.say("<think>Hm");
    follower.text("<think>Hm").await;
    stage.say("</think>Yes");
    follower.text("</think>Yes").await;
    let speculation =
        json!({"drafted": 3, "accepted": 1, "by_model": 0, "saved_ms": -4.5, "rested": true});
    let end = json!({
        "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2},
        "timings": {"prompt_ms": 400.0, "predicted_ms": 250.0, "speculation": speculation},
    });
    let end = format!("data: {end}\n\ndata: [DONE]\n\n");
    stage.words.send(end).unwrap();
    follower.last().await;
    let answer = &stage.chat().await["messages"][1];
    let times = &answer["times"];
    assert_eq!(
        (&times["prefill_ms"], &times["decode_ms"]),
        (&json!(400.0), &json!(250.0))
    );
    assert_eq!(times["speculation"], speculation);
    for measured in ["load_ms", "thinking_ms"] {
        assert!(times[measured].as_f64().unwrap() > 0.0, "{times}");
    }
    assert_eq!(answer["decode_tokens_per_second"], 8.0);
}

#[tokio::test]
async fn a_follower_can_leave_and_rejoin_where_it_was() {
    let stage = Stage::new().await;
    let turn = stage.begin(json!({"text": "?"})).await;
    let mut first = stage.follow(&turn, 0).await;
    stage.say("a");
    let number = first.text("a").await;
    drop(first);
    stage.say("b");
    stage.say("c");
    let mut rejoined = stage.follow(&turn, number).await;
    rejoined.text("bc").await;
    let mut late = stage.follow(&turn, 0).await;
    let joined = loop {
        let (_, event) = late.next().await.unwrap();
        if event["type"] == "text" {
            break event;
        }
    };
    assert_eq!(
        (&joined["text"], &joined["tokens"]),
        (&json!("abc"), &json!(3))
    );
    assert!(joined["decode_ms"].is_u64(), "{joined}");
    stage.finish();
    assert_eq!(rejoined.last().await, late.last().await);
    assert_eq!(texts(&stage.chat().await), ["?", "abc"]);
    // What has just ended can still be read, also with the header that browsers send.
    let mut ended = stage.follow(&turn, 0).await;
    assert_eq!(ended.last().await["type"], "finished");
}

#[tokio::test]
async fn a_second_turn_is_refused_with_the_running_one() {
    let stage = Stage::new().await;
    let turn = stage.begin(json!({"text": "?"})).await;
    let path = format!("{}/turns", stage.path());
    let refused = stage.bench.ask("POST", &path, r#"{"text": "!"}"#).await;
    assert_eq!(refused.status(), 409);
    let error = json(refused).await;
    assert_eq!(
        error
            .pointer("/error/details/turn")
            .or(error.pointer("/error/turn")),
        Some(&json!(turn)),
        "{error}"
    );
    // Files are read before a question waits for other turns.
    let empty = json!({"type": "image", "name": "a.png", "media_type": "image/png", "data": ""});
    let question = json!({"text": "!", "parts": [empty]}).to_string();
    let refused = stage.bench.ask("POST", &path, question).await;
    assert_eq!(refused.status(), 400);
    assert_eq!(json(refused).await["error"]["message"], "a.png is empty");
    stage.say("a");
    stage.finish();
    stage.follow(&turn, 0).await.last().await;
    stage.begin(json!({"text": "!"})).await;
}

#[tokio::test]
async fn what_a_turn_keeps_is_charged_until_its_end() {
    let stage = Stage::new().await;
    // 58 MiB by the count of its values.
    let options = format!("[{}0]", "[0],".repeat(80_000));
    let body = format!(r#"{{"text": "?", "options": {{"x": {options}}}}}"#);
    let mut answers = Vec::new();
    while answers.last() != Some(&429) {
        assert!(answers.len() < 16, "{answers:?}");
        let chat = json(stage.bench.ask("POST", "/tierbar/v1/chats", "{}").await).await;
        let path = format!("/tierbar/v1/chats/{}/turns", chat["id"].as_str().unwrap());
        let answer = stage.bench.ask("POST", &path, body.clone()).await;
        answers.push(answer.status().as_u16());
    }
    assert!(answers.len() > 3, "{answers:?}");
}

#[tokio::test]
async fn a_turn_counts_toward_requests_at_once() {
    let stage = Stage::new().await;
    let config = &stage.bench.config;
    config.lock().unwrap().server.requests_at_once = 1;
    let turn = stage.begin(json!({"text": "?"})).await;
    let answer = stage.bench.post(CHAT, r#"{"messages": []}"#).await;
    assert_eq!(answer.status(), 429);
    let other = json(stage.bench.ask("POST", "/tierbar/v1/chats", "{}").await).await;
    let other = format!("/tierbar/v1/chats/{}", other["id"].as_str().unwrap());
    let turns = format!("{other}/turns");
    let refused = stage.bench.ask("POST", &turns, r#"{"text": "!"}"#).await;
    assert_eq!(refused.status(), 429);
    assert!(refused.headers().contains_key(header::RETRY_AFTER));
    let error = json(refused).await["error"].take();
    assert_eq!(error["code"], "overloaded", "{error}");
    assert!(texts(&json(stage.bench.get(&other).await).await).is_empty());
    stage.say("a");
    stage.finish();
    stage.follow(&turn, 0).await.last().await;
    stage.begin(json!({"text": "!"})).await;
}

#[tokio::test]
async fn a_stop_keeps_what_has_arrived() {
    let mut stage = Stage::new().await;
    let turn = stage.begin(json!({"text": "?"})).await;
    let mut follower = stage.follow(&turn, 0).await;
    stage.say("half");
    follower.text("half").await;
    assert_eq!(
        stage.status_of("DELETE", &format!("/turns/{turn}")).await,
        204
    );
    let last = follower.last().await;
    assert_eq!(last["message"]["finish"], "stopped");
    assert_eq!(texts(&stage.chat().await), ["?", "half"]);
    // Once more is no error.
    assert_eq!(
        stage.status_of("DELETE", &format!("/turns/{turn}")).await,
        204
    );
    stage.bench.released().await;
}

#[tokio::test]
async fn a_turn_follows_the_settings_of_its_chat() {
    let mut stage = Stage::new().await;
    let settings = json!({
        "instructions": "Answer in German.", "sampling": {"temperature": 0.7, "max_tokens": 9}, "thinking": false,
    });
    let path = stage.path();
    let patch = async |fields: &Value| {
        let answer = stage.bench.ask("PATCH", &path, fields.to_string());
        answer.await.status().as_u16()
    };
    assert_eq!(patch(&settings).await, 200);
    assert_eq!(patch(&json!({"sampling": {"top_p": 7}})).await, 400);
    assert_eq!(patch(&json!({"title": "Greetings"})).await, 200);
    let chat = stage.chat().await;
    for (name, value) in settings.as_object().unwrap() {
        assert_eq!(&chat[name], value);
    }
    let turn = stage.begin(json!({"text": "?", "options": {"temperature": 0}}));
    let turn = turn.await;
    stage.finish();
    stage.follow(&turn, 0).await.last().await;
    let sent = stage.requests.recv().await.unwrap();
    let system = json!({"role": "system", "content": "Answer in German."});
    assert_eq!(sent["messages"][0], system);
    assert_eq!(
        (&sent["temperature"], &sent["max_tokens"]),
        (&json!(0), &json!(9))
    );
    assert_eq!(sent["think"], false);
    let unset = json!({"thinking": null, "sampling": {}, "instructions": ""});
    let answer = stage.bench.ask("PATCH", &path, unset.to_string()).await;
    let chat = json(answer).await;
    for (name, value) in unset.as_object().unwrap() {
        assert_eq!(&chat[name], value);
    }
}

#[tokio::test]
async fn a_question_is_sent_with_its_files() {
    let mut stage = Stage::new().await;
    let file = json!({"type": "file", "name": "a.rs", "media_type": "text/plain", "text": "fn"});
    let image =
        json!({"type": "image", "name": "a.png", "media_type": "image/png", "data": "AAAA"});
    let body = json!({"text": "Why?", "model": "fast", "parts": [file, image]});
    let turn = stage.begin(body).await;
    stage.say("So.");
    stage.finish();
    stage.follow(&turn, 0).await.last().await;
    let sent = stage.requests.recv().await.unwrap();
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}});
    let text = json!({"type": "text", "text": "File \"a.rs\":\n\nfn\n\nWhy?"});
    assert_eq!(sent["messages"][0]["content"], json!([image, text]));
    let parts = stage.chat().await["messages"][0]["parts"].clone();
    let file = &parts[0]["file"];
    assert_eq!((&file["name"], &file["bytes"]), (&json!("a.rs"), &json!(2)));

    let edited = json!({"type": "stored", "sha256": file["sha256"]});
    let turn = stage.begin(json!({"text": "How?", "parent": null, "parts": [edited]}));
    let turn = turn.await;
    stage.finish();
    stage.follow(&turn, 0).await.last().await;
    let sent = stage.requests.recv().await.unwrap();
    assert_eq!(
        sent["messages"][0]["content"],
        "File \"a.rs\":\n\nfn\n\nHow?"
    );
}

#[tokio::test]
async fn an_earlier_image_does_not_block_a_tier_of_text() {
    let mut stage = Stage::new().await;
    let image =
        json!({"type": "image", "name": "a.png", "media_type": "image/png", "data": "AAAA"});
    let shown = json!({"text": "What?", "model": "fast", "parts": [image]});
    let turn = stage.begin(shown.clone()).await;
    stage.say("A cat.");
    stage.finish();
    stage.follow(&turn, 0).await.last().await;
    stage.requests.recv().await.unwrap();

    stage
        .bench
        .tiers(|tiers| tiers[0].input_modalities = vec![Modality::Text]);
    let turn = stage.begin(json!({"text": "Why?", "model": "fast"})).await;
    stage.say("So.");
    stage.finish();
    let last = stage.follow(&turn, 0).await.last().await;
    assert_eq!(last["type"], "finished", "{last}");
    let sent = stage.requests.recv().await.unwrap();
    let contents = sent["messages"].as_array().unwrap().iter();
    let contents: Vec<_> = contents.map(|message| &message["content"]).collect();
    assert_eq!(contents, ["[a.png]\n\nWhat?", "A cat.", "Why?"]);

    // A question that has one itself is refused.
    let turn = stage.begin(shown).await;
    let last = stage.follow(&turn, 0).await.last().await;
    assert_eq!(last["code"], "bad_request", "{last}");
    let message = last["message"].as_str().unwrap();
    assert!(message.contains("takes text"), "{message}");
}

#[tokio::test]
async fn presets_are_saved_listed_and_deleted() {
    let Stage { bench, .. } = Stage::new().await;
    let names = async || {
        let listed = json(bench.get("/tierbar/v1/presets").await).await;
        let presets = listed["presets"].as_array().unwrap().clone();
        let names = presets
            .iter()
            .map(|preset| preset["name"].as_str().unwrap());
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    let status = async |method: &str, name: &str| {
        let body = r#"{"instructions": "Be kind."}"#;
        let path = format!("/tierbar/v1/presets/{name}");
        bench.ask(method, &path, body).await.status().as_u16()
    };
    let built_in = names().await;
    assert_eq!(status("PUT", "Kind").await, 200);
    assert_eq!(names().await.last().unwrap(), "Kind");
    assert_eq!(status("PUT", &built_in[0]).await, 409);
    assert_eq!(status("DELETE", &built_in[0]).await, 409);
    assert_eq!(status("DELETE", "Kind").await, 204);
    assert_eq!(status("DELETE", "Kind").await, 404);
    assert_eq!(names().await, built_in);
}

#[tokio::test]
async fn an_answer_that_repeats_itself_is_ended() {
    let mut stage = Stage::new().await;
    let turn = stage.begin(json!({"text": "?"})).await;
    for _ in 0..30 {
        stage.say("I am sorry, I cannot do that. ");
    }
    let last = stage.follow(&turn, 0).await.last().await;
    assert_eq!(last["message"]["finish"], "repetition");
    assert!(texts(&stage.chat().await)[1].len() < 600);
    stage.bench.released().await;
}

#[tokio::test]
async fn an_answer_at_its_limit_continues_in_its_message() {
    let mut stage = Stage::new().await;
    let turn = stage.begin(json!({"text": "?"})).await;
    stage.say("One");
    stage.finish_as("length");
    stage.follow(&turn, 0).await.last().await;
    stage.requests.recv().await.unwrap();
    let answer = stage.chat().await["messages"][1]["id"].clone();
    let body = json!({"continue": true, "parent": answer});
    let turn = stage.begin(body.clone()).await;
    let mut follower = stage.follow(&turn, 0).await;
    stage.say(", two");
    follower.text("One, two").await;
    stage.finish();
    let last = follower.last().await;
    assert_eq!(last["message"]["id"], answer);
    let chat = stage.chat().await;
    assert_eq!(texts(&chat), ["?", "One, two"]);
    assert_eq!(chat["messages"][1]["finish"], "stop");
    let sent = stage.requests.recv().await.unwrap();
    assert_eq!(sent["continue_final_message"], true);
    let begun = json!({"role": "assistant", "content": "One"});
    assert_eq!(sent["messages"][1], begun);

    let path = format!("{}/turns", stage.path());
    let refused = stage.bench.ask("POST", &path, body.to_string()).await;
    assert_eq!(refused.status(), 400, "it is complete now");
}

#[tokio::test]
async fn an_answer_to_which_nothing_is_added_stays_as_it_was() {
    let stage = Stage::new().await;
    let turn = stage.begin(json!({"text": "?"})).await;
    stage.say("One");
    stage.finish_as("length");
    stage.follow(&turn, 0).await.last().await;
    let before = stage.chat().await;
    let turn = stage.begin(json!({"continue": true})).await;
    let chunk = json!({"choices": [{"index": 0, "delta": {"reasoning_content": "Hm"}}]});
    stage.words.send(format!("data: {chunk}\n\n")).unwrap();
    let last = stage.follow(&turn, 0).await.last().await;
    assert_eq!(last["type"], "failed", "thoughts begin an answer again");
    assert_eq!(stage.chat().await["messages"], before["messages"]);
}

#[tokio::test]
async fn the_end_of_the_host_ends_a_turn_with_its_text() {
    let mut stage = Stage::new().await;
    let turn = stage.begin(json!({"text": "Count."})).await;
    stage.say("One, two");
    stage.follow(&turn, 0).await.text("One, two").await;
    stage.bench.closing.cancel();
    stage.bench.released().await;
    let chat = stage.chat().await;
    assert_eq!(texts(&chat), ["Count.", "One, two"]);
    assert_eq!(chat["messages"][1]["finish"], "error");
}

#[tokio::test]
async fn wrong_options_leave_no_question_behind() {
    let stage = Stage::new().await;
    for options in [json!({"keep_alive": {}}), json!({"n": 2})] {
        let path = format!("{}/turns", stage.path());
        let question = json!({"text": "Hello?", "options": options});
        let answer = stage.bench.ask("POST", &path, question.to_string()).await;
        assert_eq!(answer.status(), 400, "{options}");
    }
    assert_eq!(stage.chat().await["messages"], json!([]));
}

#[tokio::test]
async fn a_turn_stopped_before_its_first_token_has_no_answer() {
    let stage = Stage::new().await;
    let turn = stage.begin(json!({"text": "?"})).await;
    assert_eq!(
        stage.status_of("DELETE", &format!("/turns/{turn}")).await,
        204
    );
    let chat = stage.chat().await;
    assert_eq!(texts(&chat), ["?"]);
    assert_eq!(chat["leaf"], chat["messages"][0]["id"]);
    assert_eq!(chat["messages"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_failure_is_the_last_event_and_keeps_the_text() {
    let stage = Stage::new().await;
    let turn = stage.begin(json!({"text": "?"})).await;
    let mut follower = stage.follow(&turn, 0).await;
    stage.say("so far");
    follower.text("so far").await;
    let error = json!({"error": {"message": "out of memory", "code": "worker_crashed"}});
    stage.words.send(format!("data: {error}\n\n")).unwrap();
    let last = follower.last().await;
    assert_eq!(
        (&last["type"], &last["code"]),
        (&json!("failed"), &json!("worker_crashed"))
    );
    let chat = stage.chat().await;
    let answer = &chat["messages"][1];
    assert_eq!(&last["answer"], answer);
    assert_eq!(answer["finish"], "error");
    assert_eq!(answer["failure"]["code"], "worker_crashed");
    assert_eq!(answer["failure"]["message"], last["message"]);
    assert!(answer["decode_tokens_per_second"].is_null(), "{answer}");

    let unknown = stage.begin(json!({"text": "!", "model": "gpt-5"})).await;
    let last = stage.follow(&unknown, 0).await.last().await;
    assert_eq!(
        (&last["code"], &last["answer"]),
        (&json!("model_unknown"), &Value::Null)
    );
    let chat = stage.chat().await;
    assert_eq!(texts(&chat), ["?", "so far", "!"]);
    let failure = &chat["messages"][2]["failure"];
    assert_eq!(failure["code"], "model_unknown");
    assert_eq!(
        (&failure["message"], &failure["hint"]),
        (&last["message"], &last["hint"])
    );
}

#[tokio::test]
async fn a_turn_that_panics_fails_and_keeps_the_text() {
    let mut stage = Stage::new().await;
    let turn = stage.begin(json!({"text": "?"})).await;
    let mut follower = stage.follow(&turn, 0).await;
    stage.say("half");
    follower.text("half").await;
    // The worker's stream breaks, and the stand-in for its lease panics when it is asked why.
    stage.bench.ended = watch::Sender::new(None);
    stage.words = mpsc::unbounded_channel().0;
    let last = follower.last().await;
    assert_eq!(
        (&last["type"], &last["code"]),
        (&json!("failed"), &json!("internal"))
    );
    let chat = stage.chat().await;
    assert_eq!(last["answer"], chat["messages"][1]);
    assert_eq!(chat["messages"][1]["finish"], "error");
    assert_eq!(texts(&chat), ["?", "half"]);
    assert_eq!(chat["turn"], Value::Null);
    stage.bench.released().await;
}

#[tokio::test]
async fn a_regenerated_answer_is_beside_the_first() {
    let mut stage = Stage::new().await;
    let first = stage.begin(json!({"text": "?"})).await;
    stage.say("one");
    stage.finish();
    stage.follow(&first, 0).await.last().await;
    let second = stage.begin(json!({})).await;
    stage.say("two");
    stage.finish();
    stage.follow(&second, 0).await.last().await;
    let chat = stage.chat().await;
    assert_eq!(texts(&chat), ["?", "one", "two"]);
    let messages = &chat["messages"];
    assert_eq!(messages[1]["parent"], messages[0]["id"]);
    assert_eq!(messages[2]["parent"], messages[0]["id"]);
    assert_eq!(chat["leaf"], messages[2]["id"]);
    for _ in 0..2 {
        let sent = stage.requests.recv().await.unwrap();
        assert_eq!(sent["messages"].as_array().unwrap().len(), 1);
    }
}

#[tokio::test]
async fn a_null_parent_begins_a_branch_and_a_missing_one_goes_on() {
    let mut stage = Stage::new().await;
    for (question, messages) in [
        (json!({"text": "first"}), 1),
        (json!({"text": "next"}), 3),
        (json!({"text": "edited", "parent": null}), 1),
        (json!({"text": "next"}), 3),
    ] {
        let turn = stage.begin(question.clone()).await;
        stage.say("answer");
        stage.finish();
        stage.follow(&turn, 0).await.last().await;
        let sent = stage.requests.recv().await.unwrap();
        let sent = sent["messages"].as_array().unwrap();
        assert_eq!(sent.len(), messages, "{question}");
    }
    let chat = stage.chat().await;
    let roots = chat["messages"].as_array().unwrap().iter();
    let roots = roots.filter(|message| message["parent"].is_null());
    assert_eq!(roots.count(), 2);
}

#[tokio::test]
async fn a_deleted_chat_ends_its_turn() {
    let mut stage = Stage::new().await;
    let turn = stage.begin(json!({"text": "?"})).await;
    let mut follower = stage.follow(&turn, 0).await;
    stage.say("a");
    follower.text("a").await;
    assert_eq!(stage.status_of("DELETE", "").await, 204);
    assert_eq!(follower.last().await["type"], "finished");
    assert_eq!(stage.status_of("GET", "").await, 404);
    stage.bench.released().await;
}

#[tokio::test]
async fn a_restored_chat_has_what_had_arrived_of_its_answer() {
    let stage = Stage::new().await;
    let turn = stage.begin(json!({"text": "?"})).await;
    let mut follower = stage.follow(&turn, 0).await;
    stage.say("a");
    follower.text("a").await;
    assert_eq!(stage.status_of("DELETE", "").await, 204);
    assert_eq!(stage.status_of("DELETE", "").await, 404);
    assert_eq!(stage.status_of("POST", "/restore").await, 200);
    assert_eq!(texts(&stage.chat().await), ["?", "a"]);

    let message = stage.chat().await["messages"][0]["id"].clone();
    let fork = json!({"message": message}).to_string();
    let path = format!("{}/fork", stage.path());
    let forked = stage.bench.ask("POST", &path, fork).await;
    assert_eq!(forked.status(), 201);
    let id = json(forked).await["id"].as_str().unwrap().to_owned();
    let path = format!("/tierbar/v1/chats/{id}");
    let forked = json(stage.bench.ask("GET", &path, "").await).await;
    assert_eq!(texts(&forked), ["?"]);
}

#[tokio::test]
async fn an_ended_turn_is_forgotten_and_its_message_stays() {
    let stage = Stage::new().await;
    let turn = stage.begin(json!({"text": "?"})).await;
    stage.say("a");
    stage.finish();
    let last = stage.follow(&turn, 0).await.last().await;
    tokio::time::pause();
    // In memory it has no event of that number; the stored message is the last event of every follower.
    let (mut late, event) = loop {
        tokio::time::advance(tierbar_jobs::turns::KEPT).await;
        let mut late = stage.follow(&turn, 99).await;
        if let Some(event) = late.next().await {
            break (late, event);
        }
    };
    assert_eq!(event, (100, last));
    assert_eq!(late.next().await, None);
    let path = format!("/turns/{turn}");
    assert_eq!(stage.status_of("DELETE", &path).await, 204);
    assert_eq!(texts(&stage.chat().await), ["?", "a"]);
}

#[tokio::test]
async fn unknown_chats_turns_and_questions_are_refused() {
    let stage = Stage::new().await;
    for (method, path) in [
        ("GET", "/turns/none/events"),
        ("GET", "/turns/%ff/events"),
        ("DELETE", "/turns/none"),
    ] {
        assert_eq!(stage.status_of(method, path).await, 404, "{path}");
    }
    let path = format!("{}/turns", stage.path());
    for (body, status) in [
        ("{}", 400),
        (r#"{"text": " "}"#, 400),
        (r#"{"text": 7}"#, 400),
        (r#"{"text": "?", "parent": 99}"#, 404),
        (r#"{"text": "?", "parent": -1}"#, 400),
        (r#"{"text": "?", "options": {"stream": false}}"#, 400),
        (r#"{"text": "?", "options": {"messages": []}}"#, 400),
        ("[]", 400),
    ] {
        let answer = stage.bench.ask("POST", &path, body).await;
        assert_eq!(answer.status(), status, "{body}: {}", text(answer).await);
    }
    let elsewhere = stage
        .bench
        .ask("POST", "/tierbar/v1/chats/none/turns", r#"{"text": "?"}"#);
    assert_eq!(elsewhere.await.status(), 404);
    assert!(texts(&stage.chat().await).is_empty());
}
