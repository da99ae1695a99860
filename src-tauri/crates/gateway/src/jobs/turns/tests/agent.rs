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
async fn an_agent_has_no_folder_with_the_token() {
    let stage = Stage::new().await;
    for agent in [
        json!({"folder": "/"}),
        json!({"folder": "/no/such/folder"}),
        json!({"search": "google"}),
        json!({"everything": true}),
    ] {
        let path = format!("{}/turns", stage.path());
        let body = json!({"text": "Q", "agent": agent}).to_string();
        let status = stage.bench.ask("POST", &path, body).await.status();
        assert_eq!(status, 400, "{agent}");
    }
    assert_eq!(stage.chat().await["messages"], json!([]));
}
