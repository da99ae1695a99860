use super::*;
use std::{fs, path::Path};
use tempfile::TempDir;

impl Stage {
    /// Has the worker call a tool and end its answer.
    pub(super) fn call(&self, name: &str, arguments: &Value) {
        let function = json!({"name": name, "arguments": arguments.to_string()});
        let call = json!({"index": 0, "id": "call-1", "type": "function", "function": function});
        let chunk = json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]});
        self.words.send(format!("data: {chunk}\n\n")).unwrap();
        self.finish_as("tool_calls");
    }

    async fn act(&self, folder: &Path, reading: bool) -> (String, Follower) {
        // On macOS, the folder for temporary files lies behind a link.
        let folder = folder.canonicalize().unwrap();
        let agent = json!({"folder": folder, "allow": {"reading": reading}});
        let turn = self.begin(json!({"text": "Q", "agent": agent})).await;
        let follower = self.follow(&turn, 0).await;
        (turn, follower)
    }

    pub(super) async fn answer(&self, turn: &str, body: Value) -> u16 {
        let path = format!("{}/turns/{turn}/consent", self.path());
        let answer = self.bench.ask("POST", &path, body.to_string()).await;
        answer.status().as_u16()
    }
}

/// The next event of this type.
pub(super) async fn event(follower: &mut Follower, kind: &str) -> Value {
    loop {
        let (_, event) = follower.next().await.unwrap();
        assert_ne!(event["type"], "failed", "{event}");
        if event["type"] == kind {
            return event;
        }
    }
}

#[tokio::test]
async fn a_file_is_written_once_a_person_allows_it() {
    let mut stage = Stage::new().await;
    let folder = TempDir::new().unwrap();
    let (turn, mut events) = stage.act(folder.path(), false).await;
    let first = stage.requests.recv().await.unwrap();
    assert_eq!(first["tools"][3]["function"]["name"], "write_file");
    assert_eq!(
        stage
            .answer(&turn, json!({"id": "", "allow": "once"}))
            .await,
        409
    );
    stage.call("write_file", &json!({"path": "a", "content": "x\n"}));
    let question = event(&mut events, "consent").await["question"].clone();
    assert_eq!(question["title"], "Create this file?");
    assert_eq!(question["act"], "write");
    assert_eq!(question["scopes"], json!(["once", "folder"]));
    let id = question["id"].as_str().unwrap();
    // Neither another question's answer counts, nor a scope that is not offered, nor a word that is none.
    for wrong in [
        json!({"id": "x", "allow": "once"}),
        json!({"id": id, "allow": "exact"}),
        json!({"id": id, "allow": "yes"}),
    ] {
        assert_eq!(stage.answer(&turn, wrong.clone()).await, 400, "{wrong}");
    }
    let refuse = json!({"id": id, "allow": null});
    assert_eq!(stage.answer(&turn, refuse).await, 204);
    let refused = event(&mut events, "consent_answered").await;
    assert_eq!(refused["allow"], Value::Null);
    let second = stage.requests.recv().await.unwrap();
    let last = second["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["role"], "tool");
    assert!(!folder.path().join("a").exists());

    stage.call("write_file", &json!({"path": "a", "content": "x\n"}));
    let question = event(&mut events, "consent").await["question"].clone();
    let allow = json!({"id": question["id"], "allow": "once"});
    assert_eq!(stage.answer(&turn, allow).await, 204);
    let step = event(&mut events, "tool_call").await;
    assert_eq!(
        (&step["id"], &step["name"]),
        (&json!("step-1"), &json!("write_file"))
    );
    let result = event(&mut events, "tool_result").await;
    assert_eq!(result["failed"], false, "{result}");
    assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"x\n");
    stage.requests.recv().await.unwrap();
    stage.say("Done.");
    stage.finish();
    let last = event(&mut events, "finished").await;
    let parts = last["message"]["parts"].as_array().unwrap();
    let kinds: Vec<_> = parts.iter().map(|part| &part["type"]).collect();
    assert_eq!(kinds, ["tool_call", "tool_result", "text"]);
    assert_eq!(parts[2]["text"], "Done.");
    assert_eq!(last["message"]["finish"], "stop");
}

#[tokio::test]
async fn a_document_is_read_and_never_sent_as_its_bytes() {
    let mut stage = Stage::new().await;
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("plan.pdf"), "%PDF-1.5\n…").unwrap();
    fs::write(folder.path().join("program"), b"\x7fELF\0").unwrap();
    fs::write(folder.path().join("a.eml"), "From: a@b").unwrap();
    fs::write(folder.path().join("page.html"), "<p>x</p>\n").unwrap();
    let (_turn, mut events) = stage.act(folder.path(), true).await;
    for (name, expected, failed) in [
        (
            "plan.pdf",
            "[1 of 2 pages is damaged.]\n\nplan.pdf of 12 bytes",
            false,
        ),
        ("program", "program is no text", true),
        (
            "a.eml",
            "[1 of 2 pages is damaged.]\n\na.eml of 9 bytes",
            false,
        ),
        // It may have to be changed.
        ("page.html", "<p>x</p>\n", false),
    ] {
        stage.requests.recv().await.unwrap();
        stage.call("read_file", &json!({"path": name}));
        let result = event(&mut events, "tool_result").await;
        let seen = (result["text"].as_str(), result["failed"] == true);
        assert_eq!(seen, (Some(expected), failed), "{name}");
    }
    stage.requests.recv().await.unwrap();
    stage.say("It says so.");
    stage.finish();
    event(&mut events, "finished").await;
}

#[tokio::test]
async fn reading_can_be_allowed_in_general() {
    let mut stage = Stage::new().await;
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("a"), "the content").unwrap();
    let (_turn, mut events) = stage.act(folder.path(), true).await;
    stage.requests.recv().await.unwrap();
    stage.call("read_file", &json!({"path": "a"}));
    let result = event(&mut events, "tool_result").await;
    assert_eq!(result["text"], "the content");
    let second = stage.requests.recv().await.unwrap();
    let seen = second["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    let seen = seen.as_str().unwrap();
    assert!(
        seen.starts_with("BEGIN DATA") && seen.contains("the content"),
        "{seen}"
    );
    stage.say("It says so.");
    stage.finish();
    event(&mut events, "finished").await;
}

#[tokio::test]
async fn an_answer_without_a_step_says_so_and_has_no_marks() {
    let mut stage = Stage::new().await;
    let folder = TempDir::new().unwrap();
    let (_turn, mut events) = stage.act(folder.path(), true).await;
    stage.requests.recv().await.unwrap();
    for words in [
        "<think>Hm.\nEND DA",
        "TA 6\nWell.</think>",
        "BEGIN DA",
        "TA 7 from x\nThe author is ",
        "Alex.\nEND",
        " DATA 7",
    ] {
        stage.say(words);
    }
    stage.finish();
    let last = event(&mut events, "finished").await;
    assert_eq!(last["message"]["finish"], "no_step");
    let parts = &last["message"]["parts"];
    assert_eq!(parts[0]["type"], "reasoning");
    assert_eq!(parts[0]["text"], "Hm.\nWell.");
    assert_eq!(parts[1]["text"], "The author is Alex.\n");
}

#[tokio::test]
async fn a_turn_that_waits_for_consent_can_be_stopped() {
    let mut stage = Stage::new().await;
    let folder = TempDir::new().unwrap();
    let (turn, mut events) = stage.act(folder.path(), true).await;
    stage.requests.recv().await.unwrap();
    stage.call("run_command", &json!({"command": "touch a"}));
    event(&mut events, "consent").await;
    assert_eq!(
        stage.status_of("DELETE", &format!("/turns/{turn}")).await,
        204
    );
    event(&mut events, "finished").await;
    assert!(!folder.path().join("a").exists());
}

#[tokio::test]
async fn a_folder_is_checked_before_there_is_a_turn() {
    let stage = Stage::new().await;
    let home = std::env::home_dir().unwrap();
    let inside = tempfile::tempdir_in(&home).unwrap();
    let check = async |folder: &str| {
        let body = json!({"folder": folder}).to_string();
        let path = "/tierbar/v1/agent/folder";
        let answer = stage.bench.ask("POST", path, body).await;
        (answer.status().as_u16(), json(answer).await)
    };
    let name = inside.path().file_name().unwrap().to_str().unwrap();
    let (status, checked) = check(&format!("~/{name}")).await;
    assert_eq!(status, 200, "{checked}");
    let real = inside.path().canonicalize().unwrap();
    assert_eq!(checked["folder"], real.to_str().unwrap());
    for (folder, why) in [
        ("toy", "\"toy\" is not an absolute path"),
        ("", "\"\" is not an absolute path"),
        ("/no/such/folder", "there is no folder /no/such/folder"),
    ] {
        let (status, refused) = check(folder).await;
        assert_eq!(status, 400, "{folder}");
        assert_eq!(refused["error"]["message"], why, "{folder}");
    }
}

#[tokio::test]
async fn an_agent_has_no_folder_with_the_token() {
    let stage = Stage::new().await;
    for agent in [
        json!({"folder": "/"}),
        json!({"folder": "/no/such/folder"}),
        json!({"folder": "toy"}),
        json!({"search": "google"}),
        // Without a key.
        json!({"search": "brave"}),
        json!({"documents": ["Nowhere"]}),
        json!({"documents": "Papers"}),
        json!({"everything": true}),
    ] {
        let path = format!("{}/turns", stage.path());
        let body = json!({"text": "Q", "agent": agent}).to_string();
        let status = stage.bench.ask("POST", &path, body).await.status();
        assert_eq!(status, 400, "{agent}");
    }
    assert_eq!(stage.chat().await["messages"], json!([]));
}

/// A turn of a model that chooses a word. `tools`: whether its template has tools.
async fn choose_a_word(tools: bool, marks: &Value) {
    let mut stage = Stage::new().await;
    let model = json!({
        "id": "small", "path": "/models/small.gguf", "size_bytes": 1, "keeper": "tierbar", "error": null, "reference": null,
        "sha256": null, "tiers": ["fast"], "fit": null, "marks": marks, "input_modalities": [], "profiles": [], "sampling": {},
        "account": {
            "architecture": "llama", "name": "Small", "quant": "Q4_1", "file_bytes": 1, "parts": 1, "dense_bytes": 1,
            "embedding_bytes": 1, "per_layer_embedding_bytes": 0, "expert_bytes": 0, "parameters": 1, "tied_output": true,
            "layers": 1, "heads": 1, "kv_heads": 1, "experts": 0, "experts_used": 0, "embedding": 1, "vocabulary": 1,
            "context_train": 2048, "chat_template": true, "thinking": false, "tools": tools,
            "kv": {"full_elements_per_token": 1, "sliding_elements_per_cell": 0, "window": 0, "state_bytes": 0},
        },
    });
    stage
        .bench
        .asked
        .keep(vec![serde_json::from_value(model).unwrap()]);
    let turn = stage
        .begin(json!({"text": "Q", "agent": {"documents": true}}))
        .await;
    let mut events = stage.follow(&turn, 0).await;
    let first = stage.requests.recv().await.unwrap();
    assert_eq!(first["grammar"], r#"root ::= "documents" | "chat""#);
    assert_eq!(first["tools"], Value::Null);
    stage.say("chat");
    stage.finish();
    stage.requests.recv().await.unwrap();
    stage.say("Hello.");
    stage.finish();
    let last = event(&mut events, "finished").await;
    assert_eq!(last["message"]["parts"][0]["text"], "Hello.");
}

#[tokio::test]
async fn a_model_whose_template_has_no_tools_chooses_a_word() {
    choose_a_word(false, &json!([])).await;
}

#[tokio::test]
async fn a_model_that_was_measured_better_by_text_chooses_a_word() {
    let score = |right: u32| json!({"right": right, "milliseconds": 900});
    let mark = json!({
        "judgment": "agent", "version": "1", "taken_at": "2026-11-26T12:00:00Z", "model": "small", "size_bytes": 1, "sha256": null,
        "right": 10, "of": 12, "passed": true, "milliseconds": null,
        "first_steps": {"thinking": false, "calls": score(4), "text": score(10)},
    });
    choose_a_word(true, &json!([mark])).await;
}

#[tokio::test]
async fn documents_are_searched_where_reading_is_allowed() {
    let mut stage = Stage::new().await;
    let agent = json!({"documents": true, "allow": {"reading": true}});
    let turn = stage.begin(json!({"text": "Q", "agent": agent})).await;
    let mut events = stage.follow(&turn, 0).await;
    let first = stage.requests.recv().await.unwrap();
    assert_eq!(first["tools"][0]["function"]["name"], "search_documents");
    stage.call("search_documents", &json!({"query": "tower"}));
    let result = event(&mut events, "tool_result").await;
    assert_eq!(result["text"], "no passage has anything to do with it");
    stage.requests.recv().await.unwrap();
    stage.say("There is none.");
    stage.finish();
    event(&mut events, "finished").await;
}

impl Stage {
    /// A program's streamed run that may use a folder, and its id.
    async fn run(&self, folder: &Path) -> (String, Follower) {
        let folder = folder.canonicalize().unwrap();
        let body = json!({"input": "Q", "folder": folder, "stream": true});
        let answer = self.bench.ask("POST", "/v1/agent", body.to_string()).await;
        assert_eq!(answer.status(), 200);
        let mut follower = Follower {
            body: answer.into_body(),
            read: String::new(),
        };
        let begun = event(&mut follower, "begun").await;
        (begun["run"].as_str().unwrap().to_owned(), follower)
    }

    async fn answer_run(&self, run: &str, body: &Value) -> u16 {
        let path = format!("/v1/agent/{run}/consent");
        let answer = self.bench.ask("POST", &path, body.to_string()).await;
        answer.status().as_u16()
    }
}

#[tokio::test]
async fn a_program_runs_an_agent_and_answers_its_question() {
    let mut stage = Stage::new().await;
    let folder = TempDir::new().unwrap();
    let (run, mut events) = stage.run(folder.path()).await;
    stage.requests.recv().await.unwrap();
    stage.call("write_file", &json!({"path": "a", "content": "x\n"}));
    let question = event(&mut events, "consent").await["question"].clone();
    let allow = json!({"id": question["id"], "allow": "once"});
    assert_eq!(stage.answer_run("another", &allow).await, 404);
    assert_eq!(stage.answer_run(&run, &allow).await, 204);
    let result = event(&mut events, "tool_result").await;
    assert_eq!(result["failed"], false, "{result}");
    assert!(folder.path().join("a").exists());
    stage.requests.recv().await.unwrap();
    stage.say("Done.");
    stage.finish();
    let last = event(&mut events, "finished").await;
    assert_eq!(last["message"]["finish"], "stop");
    // Nothing of it is in a chat.
    assert_eq!(stage.chat().await["messages"], json!([]));
}

#[tokio::test]
async fn a_run_ends_with_its_client() {
    let mut stage = Stage::new().await;
    let folder = TempDir::new().unwrap();
    let (run, mut events) = stage.run(folder.path()).await;
    stage.requests.recv().await.unwrap();
    stage.call("write_file", &json!({"path": "a", "content": "x\n"}));
    event(&mut events, "consent").await;
    drop(events);
    // As long as the run is there, it is another question's answer.
    let other = json!({"id": "another", "allow": null});
    let gone = async {
        while stage.answer_run(&run, &other).await != 404 {
            tokio::task::yield_now().await;
        }
    };
    let gone = tokio::time::timeout(std::time::Duration::from_secs(30), gone).await;
    assert!(gone.is_ok(), "the run goes on without its client");
    assert!(!folder.path().join("a").exists());
}

#[tokio::test]
async fn what_is_allowed_is_listed_and_revoked_for_turns_that_run() {
    let mut stage = Stage::new().await;
    let folder = TempDir::new().unwrap();
    let (turn, mut events) = stage.act(folder.path(), false).await;
    stage.requests.recv().await.unwrap();
    let path = "/tierbar/v1/agent/grants";
    let write = |name: &str| json!({"path": name, "content": "x\n"});
    stage.call("write_file", &write("a"));
    let question = event(&mut events, "consent").await["question"].clone();
    let allow = json!({"id": question["id"], "allow": "folder"});
    assert_eq!(stage.answer(&turn, allow).await, 204);
    event(&mut events, "tool_result").await;
    stage.requests.recv().await.unwrap();
    stage.call("write_file", &write("b"));
    // Without a question.
    event(&mut events, "tool_result").await;
    stage.requests.recv().await.unwrap();
    let listed = json(stage.bench.get(path).await).await["grants"].clone();
    assert_eq!(
        (&listed[0]["title"], &listed[0]["chat"]),
        (&json!("Change files"), &json!(stage.chat))
    );
    let one = format!("{path}/{}", listed[0]["id"].as_str().unwrap());
    assert_eq!(stage.bench.ask("DELETE", &one, "").await.status(), 204);
    assert_eq!(stage.bench.ask("DELETE", &one, "").await.status(), 404);
    stage.call("write_file", &write("c"));
    let question = event(&mut events, "consent").await["question"].clone();
    let refuse = json!({"id": question["id"], "allow": null});
    assert_eq!(stage.answer(&turn, refuse).await, 204);
    let none = json(stage.bench.ask("DELETE", path, "").await).await;
    assert_eq!(none["revoked"], 0);
    stage.requests.recv().await.unwrap();
    stage.say("Done.");
    stage.finish();
    event(&mut events, "finished").await;
    assert!(!folder.path().join("c").exists());
}

#[tokio::test]
async fn a_whole_run_refuses_what_would_ask() {
    let stage = Stage::new().await;
    let folder = TempDir::new().unwrap();
    stage.call("write_file", &json!({"path": "a", "content": "x\n"}));
    stage.say("That was not allowed.");
    stage.finish();
    let path = folder.path().canonicalize().unwrap();
    let body = json!({"input": [{"role": "user", "content": "Q"}], "folder": path});
    let answer = stage.bench.ask("POST", "/v1/agent", body.to_string()).await;
    assert_eq!(answer.status(), 200);
    let answer = json(answer).await;
    assert_eq!(answer["text"], "That was not allowed.");
    assert_eq!(answer["refused"][0]["title"], "Create this file?");
    assert!(!folder.path().join("a").exists());
}

#[tokio::test]
async fn a_call_that_is_written_as_text_asks_and_is_not_shown() {
    let mut stage = Stage::new().await;
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("a"), "old\n").unwrap();
    let (turn, mut events) = stage.act(folder.path(), false).await;
    stage.requests.recv().await.unwrap();
    let call = json!({"name": "edit_file", "arguments": {"path": "a", "old": "old", "new": "new"}});
    stage.say("<think>I ed");
    stage.say("it it.</think>\n<tool_");
    stage.say(&format!("call>{call}</tool_call>\n"));
    stage.finish();
    let thought = event(&mut events, "reasoning").await;
    assert!(thought["text"].as_str().unwrap().starts_with("I ed"));
    let question = event(&mut events, "consent").await["question"].clone();
    assert_eq!(question["title"], "Change this file?");
    let allow = json!({"id": question["id"], "allow": "once"});
    assert_eq!(stage.answer(&turn, allow).await, 204);
    let step = event(&mut events, "tool_call").await;
    assert_eq!(step["name"], "edit_file");
    event(&mut events, "tool_result").await;
    assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"new\n");
    let second = stage.requests.recv().await.unwrap();
    let called = second["messages"]
        .as_array()
        .unwrap()
        .iter()
        .rev()
        .nth(1)
        .unwrap();
    assert_eq!(called["tool_calls"][0]["function"]["name"], "edit_file");
    // What only looks like a call at first is the answer.
    stage.say("```json\n{\"name\": \"Ada\"}");
    stage.say("\n```");
    stage.finish();
    let last = event(&mut events, "finished").await;
    let parts = last["message"]["parts"].as_array().unwrap();
    let texts: Vec<_> = parts.iter().filter(|part| part["type"] == "text").collect();
    assert_eq!(
        texts,
        [&json!({"type": "text", "text": "```json\n{\"name\": \"Ada\"}\n```"})]
    );
    let reasoning = parts.iter().find(|part| part["type"] == "reasoning");
    assert_eq!(reasoning.unwrap()["text"], "I edit it.");
}

#[tokio::test]
async fn a_call_behind_thoughts_without_a_beginning_is_not_shown() {
    let mut stage = Stage::new().await;
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("a"), "old\n").unwrap();
    let (turn, mut events) = stage.act(folder.path(), false).await;
    stage.requests.recv().await.unwrap();
    let call = json!({"name": "edit_file", "arguments": {"path": "a", "old": "old", "new": "new"}});
    stage.say("I ed");
    stage.say("it it.</thi");
    stage.say("nk>\n<tool_");
    stage.say(&format!("call>{call}</tool_call>\n"));
    stage.finish();
    let question = event(&mut events, "consent").await["question"].clone();
    let allow = json!({"id": question["id"], "allow": "once"});
    assert_eq!(stage.answer(&turn, allow).await, 204);
    event(&mut events, "tool_result").await;
    stage.requests.recv().await.unwrap();
    stage.say("Done: a < b.");
    stage.finish();
    let last = event(&mut events, "finished").await;
    let parts = last["message"]["parts"].as_array().unwrap();
    let texts = parts.iter().filter(|part| part["type"] == "text");
    let text: String = texts.map(|part| part["text"].as_str().unwrap()).collect();
    assert_eq!(text, "I edit it.\n\nDone: a < b.");
}

#[tokio::test]
async fn a_reply_that_breaks_off_is_shown_as_far_as_it_came() {
    let mut stage = Stage::new().await;
    let folder = TempDir::new().unwrap();
    let (turn, mut events) = stage.act(folder.path(), false).await;
    stage.requests.recv().await.unwrap();
    stage.say("<think>I write it.</think>{\"name\": \"write_");
    event(&mut events, "reasoning").await;
    let stopped = stage.status_of("DELETE", &format!("/turns/{turn}")).await;
    assert_eq!(stopped, 204);
    let last = event(&mut events, "finished").await;
    let parts = last["message"]["parts"].as_array().unwrap();
    assert_eq!(parts.last().unwrap()["text"], "{\"name\": \"write_");
}

async fn undo(stage: &Stage, run: &str, force: bool) -> (u16, Value) {
    let path = format!("/tierbar/v1/agent/runs/{run}/undo");
    let body = json!({"force": force}).to_string();
    let answer = stage.bench.ask("POST", &path, body).await;
    (answer.status().as_u16(), json(answer).await)
}

#[tokio::test]
async fn what_a_run_changed_is_undone() {
    let mut stage = Stage::new().await;
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("a");
    fs::write(&file, "old\r\n").unwrap();
    let (run, mut events) = stage.run(folder.path()).await;
    let writes = [
        json!({"path": "a", "content": "new\n"}),
        json!({"path": "a", "content": "newer\n"}),
        json!({"path": "made/b", "content": "b"}),
    ];
    for (at, write) in writes.iter().enumerate() {
        stage.requests.recv().await.unwrap();
        stage.call("write_file", write);
        if at == 0 {
            let question = event(&mut events, "consent").await["question"].clone();
            let allow = json!({"id": question["id"], "allow": "folder"});
            assert_eq!(stage.answer_run(&run, &allow).await, 204);
        }
        let result = event(&mut events, "tool_result").await;
        assert_eq!(result["failed"], false, "{result}");
    }
    let (status, error) = undo(&stage, &run, true).await;
    assert_eq!(
        (status, &error["error"]["message"]),
        (409, &json!("this run has not ended"))
    );
    stage.requests.recv().await.unwrap();
    stage.say("Done.");
    stage.finish();
    event(&mut events, "finished").await;
    assert_eq!(fs::read(&file).unwrap(), b"newer\r\n");
    let listed = json(stage.bench.get("/tierbar/v1/agent/runs").await).await;
    let listed = &listed["runs"][0];
    assert_eq!(
        (&listed["id"], &listed["chat"]),
        (&json!(run), &Value::Null)
    );
    assert_eq!(listed["files"], json!(["a", "made/b"]));
    fs::write(&file, "mine").unwrap();
    let (status, error) = undo(&stage, &run, false).await;
    assert_eq!(status, 409);
    let message = error["error"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("changed or deleted since: a;"),
        "{message}"
    );
    assert_eq!(fs::read(&file).unwrap(), b"mine");
    let (status, undone) = undo(&stage, &run, true).await;
    assert_eq!((status, &undone["files"]), (200, &json!(["a", "made/b"])));
    assert_eq!(fs::read(&file).unwrap(), b"old\r\n");
    assert!(!folder.path().join("made/b").exists());
    assert_eq!(undo(&stage, &run, true).await.0, 404);
}
