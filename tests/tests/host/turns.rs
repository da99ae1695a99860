//! Turns of chats on the real worker, and data folders of earlier versions.

use super::{Events, FAST, command_line::interrupt};
use reqwest::Method;
use serde_json::{Value, json};
use std::{fs, path::Path, process::Stdio};
use tierbar_core::TierState;
use tierbar_tests::{
    serving::{Data, Serving},
    wait::{until, within},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A chat of one host.
struct Chat<'a> {
    host: &'a Serving,
    path: String,
}

impl<'a> Chat<'a> {
    async fn new(host: &'a Serving) -> Self {
        let body = json!({"model": "fast"});
        let (status, chat) = host
            .ask(Method::POST, "/tierbar/v1/chats", Some(body))
            .await;
        assert_eq!(status, 201);
        Self::of(host, chat["id"].as_str().unwrap())
    }

    fn of(host: &'a Serving, id: &str) -> Self {
        let path = format!("/tierbar/v1/chats/{id}");
        Self { host, path }
    }

    /// Begins a turn; its path.
    async fn begin(&self, text: &str, options: Value) -> String {
        let turns = format!("{}/turns", self.path);
        let body = json!({"text": text, "options": options});
        let (status, begun) = self.host.ask(Method::POST, &turns, Some(body)).await;
        assert_eq!(status, 201, "{begun}");
        format!("{turns}/{}", begun["id"].as_str().unwrap())
    }

    async fn read(&self) -> Value {
        self.host.ask(Method::GET, &self.path, None).await.1
    }

    /// The chat once no turn runs.
    async fn whole(&self) -> Value {
        until("the turn's end", async || {
            Some(self.read().await).filter(|chat| chat["turn"].is_null())
        })
        .await
    }

    async fn follow(&self, turn: &str, after: u64) -> Events {
        let path = format!("{turn}/events?after={after}");
        Events::of(self.host.send(Method::GET, &path, None).await)
    }
}

/// Reads to the end: the text, and the last event.
async fn to_end(events: &mut Events) -> (String, Value) {
    let (mut text, mut last) = (String::new(), Value::Null);
    while let Some(event) = events.next().await {
        last = serde_json::from_str(&event).unwrap();
        if last["type"] == "text" {
            text += last["text"].as_str().unwrap();
        }
    }
    (text, last)
}

/// Reads until words of the answer have come.
async fn some_words(events: &mut Events) -> String {
    let mut text = String::new();
    while text.split_whitespace().count() < 3 {
        let event: Value = serde_json::from_str(&events.next().await.unwrap()).unwrap();
        if event["type"] == "text" {
            text += event["text"].as_str().unwrap();
        }
    }
    text
}

fn text_of(message: &Value) -> &str {
    message["parts"][0]["text"].as_str().unwrap()
}

fn short() -> Value {
    json!({"temperature": 0, "max_tokens": 24})
}

/// It fills the context, so that it still runs when a test acts on it. At a low temperature it would repeat itself, and be stopped for
/// that.
fn endless() -> Value {
    json!({"temperature": 1.2, "seed": 3, "repeat_penalty": 1.1, "ignore_eos": true})
}

#[tokio::test]
async fn an_answer_without_a_listener_is_stored() {
    let data = Data::new(FAST);
    let host = data.serve().await;
    let chat = Chat::new(&host).await;
    let turn = chat.begin("What is the capital of France?", short()).await;
    let whole = chat.whole().await;
    let answer = &whole["messages"][1];
    assert!(!text_of(answer).is_empty());
    assert_eq!(answer["tier"], "fast");
    assert!(answer["decode_tokens_per_second"].as_f64().unwrap() > 0.0);
    // Two followers afterwards read the same, one of them from the middle.
    let (text, last) = to_end(&mut chat.follow(&turn, 0).await).await;
    assert_eq!((text.as_str(), &last["message"]), (text_of(answer), answer));
    let (rest, same) = to_end(&mut chat.follow(&turn, 4).await).await;
    assert!(text.ends_with(&rest), "{rest}");
    assert_eq!(same, last);
}

#[tokio::test]
async fn a_follower_that_leaves_stops_nothing_and_a_stop_does() {
    let data = Data::new(FAST);
    let host = data.serve().await;
    let chat = Chat::new(&host).await;
    let turn = chat.begin("Tell me about the sea.", endless()).await;
    let mut first = chat.follow(&turn, 0).await;
    let mut second = chat.follow(&turn, 0).await;
    some_words(&mut first).await;
    drop(first);
    some_words(&mut second).await;
    assert_eq!(host.tier("fast").await.state, TierState::Busy);
    assert_eq!(host.send(Method::DELETE, &turn, None).await.status(), 204);
    let (_, last) = to_end(&mut second).await;
    assert_eq!(last["message"]["finish"], "stopped");
    assert_eq!(chat.read().await["messages"][1], last["message"]);
    until("the lease's end", async || {
        let state = host.tier("fast").await.state;
        (state == TierState::Ready).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_killed_host_keeps_what_had_arrived_and_the_chat_goes_on() {
    let data = Data::new(FAST);
    let host = data.serve().await;
    let chat = Chat::new(&host).await;
    let id = chat.read().await["id"].as_str().unwrap().to_owned();
    let turn = chat.begin("Tell me about the sea.", endless()).await;
    let words = some_words(&mut chat.follow(&turn, 0).await).await;
    // It is stored about once a second.
    until("what is stored", async || {
        let stored = chat.read().await;
        let text = stored["messages"][1]["parts"][0]["text"].as_str()?;
        text.starts_with(&words).then_some(())
    })
    .await;
    host.kill().await;

    let host = data.serve().await;
    let chat = Chat::of(&host, &id);
    let kept = chat.read().await;
    assert!(text_of(&kept["messages"][1]).starts_with(&words));
    assert_eq!(kept["messages"][1]["finish"], "error");
    assert_eq!(kept["turn"], Value::Null);
    chat.begin("Go on.", short()).await;
    let whole = chat.whole().await;
    assert_eq!(whole["messages"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn a_host_that_ends_stores_all_that_had_arrived() {
    let data = Data::new(FAST);
    let mut host = data.serve().await;
    let chat = Chat::new(&host).await;
    let id = chat.read().await["id"].as_str().unwrap().to_owned();
    let turn = chat.begin("Tell me about the sea.", endless()).await;
    let mut events = chat.follow(&turn, 0).await;
    let mut text = some_words(&mut events).await;
    interrupt(&host.child).await;
    while let Some(event) = events.next().await {
        let event: Value = serde_json::from_str(&event).unwrap();
        text += event["text"].as_str().unwrap_or_default();
    }
    let ended = within("the host's end", host.child.wait()).await.unwrap();
    assert!(ended.success(), "{ended}");

    let host = data.serve().await;
    let kept = Chat::of(&host, &id).read().await;
    let answer = &kept["messages"][1];
    assert!(text_of(answer).starts_with(&text), "{text:?}: {answer}");
    assert_eq!(answer["finish"], "error");
}

/// A second window, which learns of a chat and its turn from the events and joins in mid-answer.
#[tokio::test]
async fn another_window_learns_at_once_of_a_turn_and_joins_it() {
    let data = Data::new(FAST);
    let host = data.serve().await;
    let mut news = Events::of(host.send(Method::GET, "/tierbar/v1/events", None).await);
    assert!(news.next_json().await.get("tiers").is_some());
    let chat = Chat::new(&host).await;
    let begun = chat.begin("Tell me about the sea.", endless()).await;
    let mut first = chat.follow(&begun, 0).await;
    let words = some_words(&mut first).await;

    let listed = loop {
        while news.next_json().await.get("revision").is_none() {}
        let listed = host.ask(Method::GET, "/tierbar/v1/chats", None).await.1;
        if !listed["chats"][0]["turn"].is_null() {
            break listed;
        }
    };
    let listed = &listed["chats"][0];
    let turn = format!(
        "{}/turns/{}",
        Chat::of(&host, listed["id"].as_str().unwrap()).path,
        listed["turn"].as_str().unwrap()
    );
    assert_eq!(turn, begun);
    let mut late = chat.follow(&turn, 0).await;
    let mut text = some_words(&mut late).await;
    assert!(text.starts_with(&words), "{words:?} and then {text:?}");

    assert_eq!(host.send(Method::DELETE, &turn, None).await.status(), 204);
    let (rest, last) = to_end(&mut late).await;
    text += &rest;
    assert_eq!(text, text_of(&last["message"]));
    // The turn's end is an event too.
    loop {
        while news.next_json().await.get("revision").is_none() {}
        let listed = host.ask(Method::GET, "/tierbar/v1/chats", None).await.1;
        if listed["chats"][0]["turn"].is_null() {
            break;
        }
    }
}

/// A chat that has outgrown a context of 512 tokens, but for its last question.
async fn full_chat(host: &Serving) -> Chat<'_> {
    let chat = Chat::new(host).await;
    let messages = format!("{}/messages", chat.path);
    for day in 1..=9 {
        let told = format!(
            "On day {day} the river rose by {day} centimetres, and the people of the town carried sand to the bridge. \
             The mayor thanked them, and the baker brought them bread that was still warm from the oven. Remember this."
        );
        for (role, content) in [("user", told.as_str()), ("assistant", "I remember.")] {
            let body = json!({"role": role, "content": content});
            let (status, added) = host.ask(Method::POST, &messages, Some(body)).await;
            assert_eq!(status, 201, "{added}");
        }
    }
    chat
}

#[tokio::test]
async fn a_chat_past_its_context_goes_on_without_its_oldest() {
    let data = Data::new(&FAST.replace("2048", "512"));
    let host = data.serve().await;
    let chat = full_chat(&host).await;
    let turns = format!("{}/turns", chat.path);
    let refused = chat.begin("What did the baker bring?", short()).await;
    let (_, last) = to_end(&mut chat.follow(&refused, 0).await).await;
    assert_eq!(last["code"], "context_length_exceeded", "{last}");

    // The question is there: it is answered with the choice.
    let mut answers = Vec::new();
    for choice in ["drop", "summarize"] {
        let body = json!({"when_full": choice, "options": short()});
        let (status, begun) = host.ask(Method::POST, &turns, Some(body)).await;
        assert_eq!(status, 201, "{begun}");
        assert_eq!(begun["chat"]["when_full"], choice);
        let turn = format!("{turns}/{}", begun["id"].as_str().unwrap());
        let (text, last) = to_end(&mut chat.follow(&turn, 0).await).await;
        assert_eq!(last["type"], "finished", "{choice}: {last}");
        assert!(!text.is_empty());
        answers.push(last["message"].clone());
    }
    for answer in &answers {
        let left = answer["left_out"]["messages"].as_u64().unwrap();
        assert!(
            (2..18).contains(&left) && left.is_multiple_of(2),
            "{answer}"
        );
        let used = &answer["context"];
        assert_eq!(used["context_tokens"], 512);
        assert!(used["prompt_tokens"].as_u64() <= Some(448), "{answer}");
    }
    assert_eq!(answers[0]["left_out"]["summary"], Value::Null);
    let summary = &answers[1]["left_out"]["summary"];
    assert!(summary.as_str().is_some_and(|summary| !summary.is_empty()));

    // The choice and the summary hold for the next question, and the chat is whole.
    chat.begin("And when?", short()).await;
    let whole = chat.whole().await;
    let messages = whole["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 18 + 1 + 2 + 2);
    let last = &messages[22]["left_out"];
    assert!(last["summary"].is_string(), "{last}");

    let too_long = "Tell me about the sea. ".repeat(100);
    let turn = chat.begin(&too_long, short()).await;
    let (_, last) = to_end(&mut chat.follow(&turn, 0).await).await;
    assert_eq!(last["code"], "context_length_exceeded", "{last}");
}

#[tokio::test]
async fn an_answer_says_how_full_its_context_is() {
    let data = Data::new(FAST);
    let host = data.serve().await;
    let messages = json!([{"role": "user", "content": "Hello."}]);
    let check = async |path: &str, body: Value, fields: &[&str]| {
        let answer = host.send(Method::POST, path, Some(body)).await;
        let header = answer.headers()["x-tierbar-context"].clone();
        let answer: Value = answer.json().await.unwrap();
        let tokens = fields.iter().map(|field| answer.pointer(field)?.as_u64());
        let tokens = tokens.sum::<Option<u64>>().unwrap();
        assert_eq!(header, format!("{tokens}/2048"), "{path}");
    };
    let chat = json!({"model": "fast", "messages": messages, "max_tokens": 4});
    check(
        "/v1/chat/completions",
        chat.clone(),
        &["/usage/prompt_tokens"],
    )
    .await;
    let read = ["/usage/input_tokens", "/usage/cache_read_input_tokens"];
    check("/v1/messages", chat.clone(), &read).await;
    let mut ollama = chat;
    ollama["stream"] = false.into();
    check("/api/chat", ollama, &["/prompt_eval_count"]).await;
}

#[tokio::test]
async fn ctrl_c_stops_the_turn_and_the_conversation_goes_on() {
    let data = Data::new(&FAST.replace("2048", "512"));
    let host = data.serve().await;
    let mut command = data.tierbar(&["chat", "--tier", "fast"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let question = b"Write a very long story about the sea.\n";
    stdin.write_all(question).await.unwrap();
    let mut first = [0; 8];
    let read = within("the first words", stdout.read_exact(&mut first)).await;
    read.unwrap();
    interrupt(&child).await;
    let (_, listed) = host.ask(Method::GET, "/tierbar/v1/chats", None).await;
    let chat = Chat::of(&host, listed["chats"][0]["id"].as_str().unwrap());
    let whole = chat.whole().await;
    let answer = &whole["messages"][1];
    assert_eq!(answer["finish"], "stopped");
    assert!(text_of(answer).as_bytes().starts_with(&first), "{answer}");

    // The end of input is no Ctrl-C: the second answer is printed whole.
    stdin.write_all(b"Hello.\n").await.unwrap();
    drop(stdin);
    let drained = async {
        let mut rest = Vec::new();
        stdout.read_to_end(&mut rest).await
    };
    within("the second answer", drained).await.unwrap();
    let ended = within("the command", child.wait()).await.unwrap();
    assert!(ended.success(), "{ended}");
    let whole = chat.whole().await;
    let messages = whole["messages"].as_array().unwrap();
    assert_eq!((messages.len(), &messages[2]["parent"]), (4, &answer["id"]));

    // A command that answers one question has not done so.
    let question = "Write a very long story about the sea.";
    let mut command = data.tierbar(&["chat", "--tier", "fast", "--once", question]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let read = child.stdout.as_mut().unwrap().read_exact(&mut first);
    within("the first words", read).await.unwrap();
    interrupt(&child).await;
    let ended = within("the command", child.wait()).await.unwrap();
    assert_eq!(ended.code(), Some(130));
}

#[tokio::test]
async fn a_resumed_chat_joins_its_running_turn() {
    let data = Data::new(FAST);
    let host = data.serve().await;
    let chat = Chat::new(&host).await;
    let id = chat.read().await["id"].as_str().unwrap().to_owned();
    let turn = chat.begin("Tell me about the sea.", endless()).await;
    let words = some_words(&mut chat.follow(&turn, 0).await).await;
    let mut command = data.tierbar(&["chat", "--resume", &id]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let begins = format!("> Tell me about the sea.\n{words}");
    let mut shown = vec![0; begins.len()];
    let read = within("the first words", stdout.read_exact(&mut shown)).await;
    read.unwrap();
    assert_eq!(String::from_utf8_lossy(&shown), begins);
    interrupt(&child).await;
    let whole = chat.whole().await;
    assert_eq!(whole["messages"][1]["finish"], "stopped");
    // It asks for input then, of which there is none.
    drop(stdin);
    let mut rest = Vec::new();
    let read = within("the end", stdout.read_to_end(&mut rest)).await;
    read.unwrap();
    let ended = within("the command", child.wait()).await.unwrap();
    assert!(ended.success(), "{ended}");
    let shown = begins + &String::from_utf8_lossy(&rest);
    let answer = text_of(&whole["messages"][1]);
    assert!(
        shown.starts_with(&format!("> Tell me about the sea.\n{answer}")),
        "{shown}"
    );
}

#[tokio::test]
async fn a_piped_question_that_is_refused_fails_the_command() {
    let data = Data::new("[tiers.fast]\n");
    let _host = data.serve().await;
    let mut command = data.tierbar(&["chat", "--tier", "turbo"]);
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"Hello?\n").await.unwrap();
    drop(stdin);
    let output = within("the command", child.wait_with_output()).await;
    let output = output.unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(4), "{stderr}");
    assert!(stderr.contains("use one of: auto, fast"), "{stderr}");
}

#[tokio::test]
async fn an_agents_folder_is_checked_before_its_chat() {
    let data = Data::new("[tiers.fast]\n");
    let host = data.serve().await;
    let (code, _, errors) = data.run(&["chat", "--agent", "/"]).await;
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("choose a folder"), "{errors}");
    let (_, chats) = host.ask(Method::GET, "/tierbar/v1/chats", None).await;
    assert_eq!(chats["chats"], json!([]));
}

/// See `tests/fixtures/data-2026-11/README.md`.
#[tokio::test]
async fn a_data_folder_of_november_2026_opens_unchanged() {
    let data = Data::empty("");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/data-2026-11");
    for name in ["config.toml", "downloads.json", "tierbar.db"] {
        fs::copy(fixture.join(name), data.path().join(name)).unwrap();
    }
    let config = fs::read(data.path().join("config.toml")).unwrap();
    let host = data.serve().await;
    let get = async |path: &str| host.ask(Method::GET, path, None).await.1;

    let chats = get("/tierbar/v1/chats").await;
    let chats = chats["chats"].as_array().unwrap();
    assert_eq!(chats.len(), 3);
    let titled = chats.iter().find(|chat| chat["model"] == "heavy").unwrap();
    let chat = get(&format!(
        "/tierbar/v1/chats/{}",
        titled["id"].as_str().unwrap()
    ))
    .await;
    let texts: Vec<_> = chat["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(text_of)
        .collect();
    assert_eq!(texts, ["Answer in one word.", "Name a colour.", "Bl"]);

    let config_read = get("/tierbar/v1/config").await;
    let tiers = &config_read["config"]["tiers"];
    assert_eq!(tiers["primary"]["kv_cache"], "q8_0");
    assert_eq!(tiers["primary"]["idle_unload"], "30m");
    assert_eq!(config_read["config"]["policy"]["home"], "primary");
    assert_eq!(fs::read(data.path().join("config.toml")).unwrap(), config);

    let keys = get("/tierbar/v1/keys").await;
    assert_eq!(keys["keys"][0]["name"], "laptop");
    let queue = get("/tierbar/v1/queue").await;
    assert_eq!(queue["jobs"].as_array().unwrap().len(), 1);
    let log = get("/tierbar/v1/log").await;
    assert!(log["entries"].as_array().unwrap().len() >= 3);
    let notices = host.status().await.notices;
    assert!(
        notices.iter().all(|notice| !notice.contains("unknown")),
        "{notices:?}"
    );
}
