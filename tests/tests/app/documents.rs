//! A person's folders in the real app, with a model that the test plays: papers are searched, and a project is mended.

use axum::{
    Router,
    body::Bytes,
    http::header,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde_json::{Value, json};
use std::{fs, path::Path, slice};
use tierbar_skip::skip;
use tierbar_tests::{
    desk::Desk,
    wait::{until, within},
    web_driver::{DrivenApp, SETTINGS},
};
use tokio::net::UnixListener;

/// Gives the desk one tier, whose model answers requests with these messages, in OpenAI's form.
///
/// It is a tier of this machine, because an endpoint would get no passages unless it is named. Its command only leads the host
/// to a socket of the test.
fn play(desk: &Desk, answer: fn(&Value) -> Value) {
    let socket = desk.home().join("model.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let complete = move |body: Bytes| async move {
        let request: Value = serde_json::from_slice(&body).unwrap();
        stream(&answer(&request))
    };
    let routes = Router::new()
        .route("/health", get(|| async {}))
        .route("/v1/chat/completions", post(complete));
    tokio::spawn(async move { axum::serve(listener, routes).await });
    let script = "ln -sf \"$0\" \"$1\" && exec sleep infinity";
    let command = json!(["/bin/sh", "-c", script, socket, "{socket}"]);
    desk.configure(&format!(
        "listen = \"127.0.0.1:0\"\n\
         [tiers.primary]\nengine = {{ command = {command}, memory = \"64MiB\" }}\n"
    ));
}

/// A whole message as a stream.
fn stream(message: &Value) -> Response {
    let finish = if message["tool_calls"].is_null() {
        "stop"
    } else {
        "tool_calls"
    };
    let usage = json!({"prompt_tokens": 60, "completion_tokens": 12, "total_tokens": 72});
    let delta = json!({"choices": [{"index": 0, "delta": message}]});
    let end =
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage});
    let events = format!("data: {delta}\n\ndata: {end}\n\ndata: [DONE]\n\n");
    ([(header::CONTENT_TYPE, "text/event-stream")], events).into_response()
}

/// The fact that one of the papers has.
const FACT: &str = "every 47 minutes";

fn write_papers(folder: &Path) {
    fs::create_dir(folder).unwrap();
    let tides = "# Tides\n\nQuillmoor has two tides a day, and its lamp burns through both.\n";
    let pilots = "The pilots of Quillmoor put to sea when the keeper lights the lamp.\n";
    let lamp = format!(
        "<!doctype html><html><head><title>The Lamp</title></head><body><h1>The Lamp</h1>\
         <p>The keeper winds the lamp of Quillmoor {FACT}.</p></body></html>\n"
    );
    for (name, text) in [
        ("tides.md", tides),
        ("pilots.txt", pilots),
        ("lamp.html", lamp.as_str()),
    ] {
        fs::write(folder.join(name), text).unwrap();
    }
}

/// Answers with the fact, and cites the passage of the prompt that has it.
fn cite(request: &Value) -> Value {
    let prompt = request["messages"][1]["content"].as_str().unwrap();
    let mut passages = prompt.split("Passage [").skip(1);
    let passage = passages.find(|passage| passage.contains(FACT));
    let number = passage.and_then(|passage| passage.split(']').next());
    let content = match number {
        Some(number) => format!("The keeper winds it {FACT} [{number}]."),
        None => "The documents do not say it.".to_owned(),
    };
    json!({"role": "assistant", "content": content})
}

#[tokio::test]
async fn a_folder_dropped_onto_a_chat_is_searched() {
    let desk = Desk::new().await;
    play(&desk, cite);
    let papers = desk.home().join("Harbour Papers");
    write_papers(&papers);
    let app = DrivenApp::start(&desk).await;
    app.element("composer").await;
    // This call returns after the page's own, by which it listens for drops.
    let dropped = "const done = arguments[arguments.length - 1];\
                   window.__TAURI_INTERNALS__.invoke('dropped_folders').then(done)";
    assert_eq!(app.run_async(dropped).await, json!([]));

    desk.display
        .drop_files("Tierbar", slice::from_ref(&papers))
        .await;
    until("the offer", async || {
        let offer = app.texts("dropped").await;
        offer.first()?.contains("“Harbour Papers”").then_some(())
    })
    .await;
    app.click("dropped-search").await;
    app.click("dropped-documents").await;
    app.switch_to(SETTINGS).await;
    until("the end of reading", async || {
        let sources = app.texts("document-source").await;
        let source = sources.first()?;
        let is_read = source.contains("3 documents") && !source.contains("to read");
        is_read.then_some(())
    })
    .await;

    app.type_into("documents-question", "How often is the lamp wound?")
        .await;
    app.click("documents-ask").await;
    let citation = app.find("[data-testid=\"documents-answer\"] button").await;
    let answer = app.texts("documents-answer").await.concat();
    assert!(
        answer.contains(&format!("The keeper winds it {FACT}")),
        "{answer}"
    );
    within("a click", app.session.click(&citation))
        .await
        .unwrap();
    app.element("passage").await;
    let shown = app.texts("passage").await.concat();
    assert!(shown.contains("Harbour Papers/lamp.html"), "{shown}");
    let marked = "return document.querySelector('[data-testid=\"passage\"] mark').innerText";
    let marked = app.run(marked, Vec::new()).await;
    assert!(
        marked.as_str().is_some_and(|text| text.contains(FACT)),
        "{marked}"
    );
}

const TEST: &str = "sh test.sh";
const MENDED: &str = "echo $(($1 + $2))\n";

/// Writes a project whose test fails.
fn write_project(folder: &Path) {
    fs::create_dir(folder).unwrap();
    fs::write(folder.join("sum.sh"), "echo $(($1 - $2))\n").unwrap();
    let test = "sum=$(sh sum.sh 2 3)\n\
                test \"$sum\" = 5 || { echo \"2 + 3 is not $sum\"; exit 1; }\n\
                echo \"the sum is right\"\n";
    fs::write(folder.join("test.sh"), test).unwrap();
}

/// Runs the test, mends the file, runs the test again, and reports its result.
fn mend(request: &Value) -> Value {
    let messages = request["messages"].as_array().unwrap();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    let results: Vec<_> = results.map(|result| &result["content"]).collect();
    let (name, arguments) = match results[..] {
        [] | [_, _] => ("run_command", json!({"command": TEST})),
        [_] => ("write_file", json!({"path": "sum.sh", "content": MENDED})),
        [.., last] => {
            let report = if last.as_str().unwrap().contains("the sum is right") {
                "The test succeeds now."
            } else {
                "The test still fails."
            };
            return json!({"role": "assistant", "content": report});
        }
    };
    let function = json!({"name": name, "arguments": arguments.to_string()});
    let id = format!("call-{}", results.len());
    let call = json!({"index": 0, "id": id, "type": "function", "function": function});
    json!({"role": "assistant", "tool_calls": [call]})
}

#[tokio::test]
async fn an_agent_mends_a_failing_test() {
    if let Err(error) = tierbar_sandbox::enforcement() {
        return skip(&error.to_string());
    }
    let desk = Desk::new().await;
    play(&desk, mend);
    let project = desk.home().join("project");
    write_project(&project);
    let app = DrivenApp::start(&desk).await;
    app.type_into("composer", &format!("/agent {}", project.display()))
        .await;
    app.click("send").await;
    app.element("agent").await;
    app.type_into("composer", "Mend the failing test.").await;
    app.click("send").await;

    // Three clicks, and the answer comes: it would wait for a fourth.
    for (title, what) in [
        ("Run this command?", TEST),
        ("Change this file?", "sum.sh"),
        ("Run this command?", TEST),
    ] {
        until(&format!("the question \"{title}\""), async || {
            let question = app.texts("consent").await;
            question.first()?.contains(title).then_some(())
        })
        .await;
        assert_eq!(app.texts("consent-what").await, [what]);
        app.click("consent-once").await;
    }
    app.answered(1).await;
    assert_eq!(fs::read_to_string(project.join("sum.sh")).unwrap(), MENDED);

    let script = "return [...document.querySelectorAll('[data-testid=\"tool\"]')].map(tool => tool.textContent)";
    let steps = app.run(script, Vec::new()).await;
    let steps: Vec<String> = serde_json::from_value(steps).unwrap();
    let [failing, change, passing] = &steps[..] else {
        panic!("{steps:?}");
    };
    assert!(failing.contains("Failed"), "{failing}");
    assert!(failing.contains("2 + 3 is not -1"), "{failing}");
    assert!(change.contains("sum.sh is written"), "{change}");
    assert!(passing.contains("the sum is right"), "{passing}");
    assert!(!passing.contains("Failed"), "{passing}");
    let answer = app.texts("message-assistant").await.concat();
    assert!(answer.contains("The test succeeds now."), "{answer}");
}
