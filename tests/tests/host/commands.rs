//! The command line, with and without a host that runs.

use crate::FAST;
use reqwest::Method;
use serde_json::{Value, json};
use std::{fs, process::Stdio};
use tierbar_core::{TierState, status::Status};
use tierbar_tests::{serving::Data, wait::within};
use tokio::io::AsyncWriteExt;

#[tokio::test]
async fn chat_once_works_without_a_host_and_leaves_no_process() {
    // The context ends the answer of a small model that does not end it.
    let data = Data::new(&FAST.replace("2048", "256"));
    let (code, answer, stderr) = data
        .run(&["chat", "--once", "What is the capital of France?"])
        .await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(!answer.trim().is_empty(), "{stderr}");
    let (code, _, stderr) = data.run(&["status"]).await;
    assert_eq!(code, Some(3));
    assert!(stderr.contains("tierbar serve"), "{stderr}");
    data.serve().await;
}

#[tokio::test]
async fn with_a_host_the_commands_are_its_clients() {
    let data = Data::new(&FAST.replace("2048", "256"));
    let host = data.serve().await;
    let (code, shown, stderr) = data.run(&["tier", "start", "fast"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(shown.contains("ready"), "{shown}");
    let pid = host.tier("fast").await.pid;

    let (code, answer, stderr) = data
        .run(&["chat", "--tier", "fast", "--once", "Say hello."])
        .await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(!answer.trim().is_empty());
    assert_eq!(
        host.tier("fast").await.pid,
        pid,
        "it was answered by another process"
    );
    let (_, chats) = host.ask(Method::GET, "/tierbar/v1/chats", None).await;
    assert_eq!(chats, json!({"chats": [], "total": 0}));

    let (_, json, _) = data.run(&["status", "--json"]).await;
    let status: Status = serde_json::from_str(&json).unwrap();
    assert_eq!(status.tiers[0].pid, pid);
    let (_, json, _) = data.run(&["models", "--json"]).await;
    let models: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(models["models"][0]["account"]["quant"], "Q4_1");

    let (code, _, _) = data.run(&["tier", "stop", "fast"]).await;
    assert_eq!(code, Some(0));
    assert_eq!(host.tier("fast").await.state, TierState::Stopped);

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("1700000000000.conversation.json");
    let question = json!({"role": "user", "content": [{"type": "text", "text": "Which river?"}]});
    let chat = json!({"name": "Rivers", "createdAt": 1_700_000_000_000_u64, "messages": [{"versions": [question]}]});
    fs::write(&file, chat.to_string()).unwrap();
    let (code, shown, stderr) = data.run(&["chats", "import", file.to_str().unwrap()]).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(shown.contains("1 chat with 1 message"), "{shown}");
    let (_, json, _) = data.run(&["chats", "search", "rive", "--json"]).await;
    let found: Value = serde_json::from_str(&json).unwrap();
    let id = found[0]["id"].as_str().unwrap();
    let (_, shown, _) = data.run(&["chats", "show", id]).await;
    assert!(shown.contains("## You\n\n> Which river?"), "{shown}");
    let (_, shown, _) = data.run(&["chats", "delete", id]).await;
    assert!(shown.contains("tierbar chats restore"), "{shown}");
}

/// Returns the command's output, given these lines on stdin.
async fn typed(data: &Data, arguments: &[&str], lines: &str) -> String {
    let mut command = data.tierbar(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(lines.as_bytes()).await.unwrap();
    drop(stdin);
    let output = within("the command", child.wait_with_output()).await;
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn a_terminal_conversation_is_a_chat_that_can_continue() {
    let data = Data::new(&FAST.replace("2048", "256"));
    let host = data.serve().await;
    let chat = ["chat", "--tier", "fast"];
    let answer = typed(&data, &chat, "What is the capital of France?\n").await;
    assert!(!answer.trim().is_empty());

    let listed = typed(&data, &["chats"], "").await;
    let (_, rest) = listed.trim().split_once(' ').unwrap();
    assert!(rest.ends_with("What is the capital of France?"), "{listed}");

    // A chat of known length: a sampled answer may fill the context and leave no room for another question.
    let short = json!({"model": "fast"});
    let (_, short) = host
        .ask(Method::POST, "/tierbar/v1/chats", Some(short))
        .await;
    let short = short["id"].as_str().unwrap();
    let path = format!("/tierbar/v1/chats/{short}");
    for (role, content) in [("user", "What is two and two?"), ("assistant", "Four.")] {
        let message = json!({"role": role, "content": content});
        let messages = format!("{path}/messages");
        let (status, _) = host.ask(Method::POST, &messages, Some(message)).await;
        assert_eq!(status, 201);
    }
    let shown = typed(&data, &["chat", "--resume", short], "Say hello.\n").await;
    assert!(
        shown.starts_with("> What is two and two?\nFour.\n"),
        "{shown}"
    );
    let (_, stored) = host.ask(Method::GET, &path, None).await;
    let messages = stored["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 4);
    assert_eq!(messages[3]["parent"], messages[2]["id"]);
}

#[tokio::test]
async fn errors_go_to_stderr_with_a_hint_and_an_exit_code() {
    let data = Data::new("[tiers.fast]\n");
    let _host = data.serve().await;
    for (arguments, code, part) in [
        (&["tier", "start", "turbo"][..], 4, "the tiers are fast"),
        (&["tier", "start", "fast"], 4, "[tiers.fast]"),
        (
            &["chat", "--tier", "fast", "--once", "Hi"],
            4,
            "[tiers.fast]",
        ),
        (
            &["chat", "--tier", "turbo", "--once", "Hi"],
            4,
            "use one of: auto, fast",
        ),
        (&["tier", "restart", "fast"], 2, "unrecognized subcommand"),
        (&[], 2, "Usage"),
    ] {
        let (exit, stdout, stderr) = data.run(arguments).await;
        assert_eq!(
            (exit, &*stdout),
            (Some(code), ""),
            "{arguments:?}: {stderr}"
        );
        assert!(stderr.contains(part), "{arguments:?}: {stderr}");
    }
}
