//! The tables of fields beside what becomes of each field, and the documentation made from them.

use crate::testing::{Bench, json};
use axum::{Json, Router, routing::post};
use serde_json::{Map, Value, json};
use std::{
    fmt::Write as _,
    path::Path,
    sync::{Arc, Mutex},
};
use tierbar_request_fields::{
    CHAT, CHAT_ADDITIONS, COMPLETION_ADDITIONS, COMPLETIONS, EMBEDDINGS, Effect, FOREIGN_TO_CHATS,
    FOREIGN_TO_COMPLETIONS, FOREIGN_TO_MESSAGES, FOREIGN_TO_OLLAMA, FOREIGN_TO_OPTIONS,
    FOREIGN_TO_RESPONSES, Field, GENERATION_ADDITIONS, MESSAGES, OLLAMA_ADDITIONS, OLLAMA_CHAT,
    OLLAMA_EMBED, OLLAMA_EMBEDDINGS, OLLAMA_GENERATE, OLLAMA_OPTIONS, RESPONSES, TABLES, Table,
};

/// A dialect's request, and what the worker gets of it.
struct Probe {
    bench: Bench,
    path: &'static str,
    base: Value,
    got: Arc<Mutex<Value>>,
}

impl Probe {
    async fn new(path: &'static str, base: Value) -> Self {
        let bench = Bench::new("127.0.0.1:11435").await;
        let got = Arc::new(Mutex::new(Value::Null));
        let heard = Arc::clone(&got);
        let answer = async move |Json(request): Json<Value>| {
            *heard.lock().unwrap() = request;
            let message = json!({"role": "assistant", "content": "Hi"});
            let choice =
                json!({"index": 0, "message": message, "text": "Hi", "finish_reason": "stop"});
            // As long as the sample of `dimensions`.
            let data = json!([{"index": 0, "embedding": vec![1.0; 64]}]);
            Json(json!({"choices": [choice], "data": data}))
        };
        let paths = ["/v1/chat/completions", "/v1/completions", "/v1/embeddings"];
        let routes = paths.into_iter().fold(Router::new(), |routes, path| {
            routes.route(path, post(answer.clone()))
        });
        bench.load(routes);
        Self {
            bench,
            path,
            base,
            got,
        }
    }

    /// What the worker gets, or why it gets nothing.
    async fn ask(&self, fields: Map<String, Value>) -> Result<Value, String> {
        let mut request = self.base.clone();
        request.as_object_mut().unwrap().extend(fields);
        *self.got.lock().unwrap() = Value::Null;
        let response = self.bench.post(self.path, request.to_string()).await;
        let status = response.status();
        if status != 200 {
            assert_eq!(status, 400, "{request}");
            return Err(json(response).await.to_string());
        }
        Ok(self.got.lock().unwrap().take())
    }
}

/// What a field needs beside it.
fn companion(name: &str) -> Option<(&'static str, Value)> {
    match name {
        "top_logprobs" => Some(("logprobs", json!(true))),
        "tool_choice" | "parallel_tool_calls" => Some((
            "tools",
            json!([{"name": "look", "type": "function", "input_schema": {"type": "object"}, "parameters": {}}]),
        )),
        _ => None,
    }
}

/// Holds a table against what the worker gets of a request with and without each field. `place`: the object that the field is in.
async fn check(table: &Table, path: &'static str, base: Value, place: Option<&str>) {
    let probe = Probe::new(path, base).await;
    for Field { name, effect, .. } in table.fields {
        let with = |value: Option<Value>| {
            let beside = companion(name).map(|(name, value)| (name.to_owned(), value));
            let own = value.map(|value| ((*name).to_owned(), value));
            let fields: Map<String, Value> = beside.into_iter().chain(own).collect();
            match place {
                Some(place) => Map::from_iter([(place.to_owned(), fields.into())]),
                None => fields,
            }
        };
        let sample = table.field(name).unwrap().sample();
        let shown = match place {
            Some(place) => format!("`{place}.{name}`"),
            None => format!("`{name}`"),
        };
        let plain = probe.ask(with(None)).await.unwrap();
        let asked = probe.ask(with(Some(sample))).await;
        match (effect, asked) {
            (Effect::Refused { .. }, Err(why)) => {
                assert!(why.contains(&shown), "{path}: {why}");
            }
            (Effect::Refused { .. }, Ok(got)) => panic!("{path}: {name} passed as {got}"),
            (Effect::Honored(_), asked) => assert_ne!(asked, Ok(plain), "{path}: {name}"),
            (Effect::Harmless(_), asked) => {
                let mut got = asked.unwrap();
                if got.as_object_mut().unwrap().shift_remove(*name).is_some() {
                    let tables = [&CHAT, &GENERATION_ADDITIONS, &CHAT_ADDITIONS];
                    let passed = tables.iter().find_map(|table| table.field(name));
                    let harmless =
                        passed.is_none_or(|field| matches!(field.effect, Effect::Harmless(_)));
                    assert!(harmless, "{path}: {name} is passed on");
                }
                assert_eq!(got, plain, "{path}: {name}");
            }
        }
    }
}

#[tokio::test]
async fn responses_fields_do_what_the_table_says() {
    for table in [&RESPONSES, &FOREIGN_TO_RESPONSES] {
        check(table, "/v1/responses", json!({"input": "Hello"}), None).await;
    }
}

#[tokio::test]
async fn anthropics_fields_do_what_the_table_says() {
    let base = json!({"max_tokens": 5, "messages": [{"role": "user", "content": "Hello"}]});
    for table in [&MESSAGES, &FOREIGN_TO_MESSAGES] {
        check(table, "/v1/messages", base.clone(), None).await;
    }
}

#[tokio::test]
async fn ollamas_fields_do_what_the_tables_say() {
    let chat = json!({"messages": [{"role": "user", "content": "Hello"}]});
    let prompt = json!({"prompt": "Hello"});
    check(&OLLAMA_CHAT, "/api/chat", chat.clone(), None).await;
    for table in [&OLLAMA_ADDITIONS, &FOREIGN_TO_OLLAMA] {
        check(table, "/api/chat", chat.clone(), None).await;
    }
    check(&FOREIGN_TO_OLLAMA, "/api/generate", prompt.clone(), None).await;
    for table in [&OLLAMA_OPTIONS, &FOREIGN_TO_OPTIONS] {
        check(table, "/api/chat", chat.clone(), Some("options")).await;
    }
    check(&OLLAMA_GENERATE, "/api/generate", prompt.clone(), None).await;
    check(&OLLAMA_EMBED, "/api/embed", json!({"input": "Hello"}), None).await;
    check(&OLLAMA_EMBEDDINGS, "/api/embeddings", prompt, None).await;
}

/// These requests are relayed as they came. What the engine reads of them is held against the tables there.
#[tokio::test]
async fn openais_refused_fields_are_refused_by_name() {
    for (tables, path, base) in [
        (
            &[
                &CHAT,
                &GENERATION_ADDITIONS,
                &CHAT_ADDITIONS,
                &FOREIGN_TO_CHATS,
            ][..],
            "/v1/chat/completions",
            json!({"messages": [{"role": "user", "content": "Hello"}]}),
        ),
        (
            &[
                &COMPLETIONS,
                &GENERATION_ADDITIONS,
                &COMPLETION_ADDITIONS,
                &FOREIGN_TO_COMPLETIONS,
            ],
            "/v1/completions",
            json!({"prompt": "Hello"}),
        ),
        (&[&EMBEDDINGS], "/v1/embeddings", json!({"input": "Hello"})),
    ] {
        let probe = Probe::new(path, base).await;
        for field in tables.iter().flat_map(|table| table.fields) {
            let name = field.name;
            let beside = companion(name).map(|(name, value)| (name.to_owned(), value));
            let own = (name.to_owned(), field.sample());
            let asked = probe.ask(beside.into_iter().chain([own]).collect()).await;
            match (field.effect, asked) {
                (Effect::Refused { .. }, Err(why)) => {
                    assert!(why.contains(&format!("`{name}`")), "{why}")
                }
                (Effect::Refused { .. }, Ok(_)) => panic!("{path}: {name} is not refused"),
                (_, Ok(got)) => assert_eq!(got[name], field.sample(), "{path}: {name}"),
                (_, Err(why)) => panic!("{path}: {name}: {why}"),
            }
        }
    }
}

#[tokio::test]
async fn another_server_gets_every_field() {
    let bench = Bench::new("127.0.0.1:11435").await;
    let got = Arc::new(Mutex::new(Value::Null));
    let heard = Arc::clone(&got);
    let answer = async move |Json(request): Json<Value>| {
        *heard.lock().unwrap() = request;
        Json(json!({"choices": [{"message": {"content": "Hi"}}]}))
    };
    bench
        .endpoint(
            "far",
            Router::new().route("/v1/chat/completions", post(answer)),
        )
        .await;
    bench.tiers(|tiers| {
        let mut far = crate::testing::tier("far", Some("m"), tierbar_core::TierState::Ready);
        far.engine = tierbar_core::status::EngineKind::Endpoint;
        tiers.push(far);
    });
    let request = json!({"model": "far", "messages": [], "modalities": ["text", "audio"]});
    let response = bench
        .post("/v1/chat/completions", request.to_string())
        .await;
    assert_eq!(response.status(), 200);
    assert_eq!(got.lock().unwrap()["modalities"], request["modalities"]);
}

fn rendered() -> String {
    let mut text = String::new();
    for table in TABLES {
        let _ = write!(
            text,
            "\n### {}\n\nFrom {}.\n\n| field | | |\n|---|---|---|\n",
            table.title, table.source
        );
        for field in table.fields {
            let (effect, note) = match field.effect {
                Effect::Honored(how) => ("honored".to_owned(), how.to_owned()),
                Effect::Harmless(why) => ("no effect".to_owned(), why.to_owned()),
                Effect::Refused { unless, instead } => {
                    let values = unless.iter().filter(|&&value| value != "null");
                    let values: Vec<_> = values.map(|value| format!("`{value}`")).collect();
                    // Empty values are accepted of all others.
                    let accepts = match values.is_empty() || unless.contains(&"false") {
                        true => String::new(),
                        false => format!(", but for {}", values.join(" or ")),
                    };
                    (format!("refused{accepts}"), instead.to_owned())
                }
            };
            let note = match field.values.in_words() {
                Some(values) if note.is_empty() => values,
                Some(values) => format!("{values}; {note}"),
                None => note,
            };
            let _ = writeln!(
                text,
                "| `{}` | {effect} | {} |",
                field.name,
                note.replace('|', "\\|")
            );
        }
    }
    text + "\n"
}

/// The tables of `docs/api.md`. `TIERBAR_WRITE_FIELDS=1` writes them.
#[test]
fn the_documented_fields_are_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/api.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once("<!-- fields -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end of fields -->").unwrap();
    let wanted = format!(
        "{before}<!-- fields -->\n{}<!-- end of fields -->{after}",
        rendered()
    );
    if std::env::var_os("TIERBAR_WRITE_FIELDS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        wanted,
        "docs/api.md is out of date: set TIERBAR_WRITE_FIELDS=1 and run this test"
    );
}
