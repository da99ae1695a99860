//! Saved contexts: written by one worker, and gone on from by the next.

use crate::support::{GEMMA, SHALLOW, SMOLLM, WORKER, Worker, model, numbers};
use serde_json::{Value, json};
use std::{fs, path::Path};
use tempfile::TempDir;
use tokio::process::Command;

const SAVE: &str = "/v1/context/save";
const LOAD: &str = "/v1/context/load";
const COMPLETE: &str = "/v1/completions";

async fn worker(name: &str, folder: &TempDir, extra: &[&str]) -> Worker {
    let contexts = folder.path().to_str().unwrap();
    let arguments = [&["--context", "2048", "--contexts", contexts], extra].concat();
    let worker = Worker::start(&model(name), &arguments).await;
    worker.ready();
    worker
}

fn list() -> String {
    numbers(1, 60)
}

fn question(prompt: &str) -> Value {
    json!({"prompt": prompt, "max_tokens": 12, "temperature": 0})
}

async fn goes_on_after_a_restart(name: &str) {
    let folder = tempfile::tempdir().unwrap();
    // Longer than Gemma's sliding window of 512 tokens.
    let list = numbers(1, 250);
    let first = worker(name, &folder, &[]).await;
    let (_, expected) = first.post(COMPLETE, &question(&list)).await;
    let (status, saved) = first
        .post(SAVE, &json!({"name": "numbers", "prompt": list}))
        .await;
    assert_eq!(status, 200, "{saved}");
    let tokens = saved["tokens"].as_u64().unwrap();
    assert!(tokens > 600, "{saved}");
    drop(first);

    let second = worker(name, &folder, &[]).await;
    let (_, answer) = second.post(COMPLETE, &question(&list)).await;
    assert_eq!(answer["timings"]["cache_n"], tokens, "{answer}");
    assert_eq!(answer["timings"]["prompt_n"], 1);
    assert_eq!(answer["choices"][0]["text"], expected["choices"][0]["text"]);
    // It is a beginning of longer prompts too, and of none that only begins like it.
    let longer = question(&format!("{list} 250, 251,"));
    let (_, answer) = second.post(COMPLETE, &longer).await;
    let cached = answer["timings"]["cache_n"].as_u64().unwrap();
    assert!(cached >= tokens - 2, "{answer}");
    let (_, other) = second
        .post(COMPLETE, &question("Something else altogether"))
        .await;
    assert_eq!(other["timings"]["cache_n"], 0, "{other}");
    // The rest of the prompt is what counts: a state that holds more is cut.
    let shorter = question(&list[..400]);
    let (_, shorter) = second.post(COMPLETE, &shorter).await;
    assert_eq!(shorter["choices"][0]["finish_reason"], "length");
}

#[tokio::test]
async fn smollm2_continues_a_saved_context_after_a_restart() {
    goes_on_after_a_restart(SMOLLM).await;
}

#[tokio::test]
async fn gemma_3_continues_a_saved_context_after_a_restart() {
    goes_on_after_a_restart(GEMMA).await;
}

/// Its caches of both kinds of layers are recognized in what llama.cpp writes, which reads what is made of them.
#[tokio::test]
async fn gemma_3_continues_a_compact_context() {
    let folder = tempfile::tempdir().unwrap();
    let first = worker(GEMMA, &folder, &[]).await;
    let asked = json!({"name": "numbers", "prompt": list(), "form": "compact"});
    let (status, saved) = first.post(SAVE, &asked).await;
    assert_eq!(
        (status, &saved["form"]),
        (200, &json!("compact")),
        "{saved}"
    );
    let [bytes, raw_bytes] = ["bytes", "raw_bytes"].map(|key| saved[key].as_u64().unwrap());
    assert!(bytes * 3 < raw_bytes * 2, "{saved}");
    drop(first);
    let second = worker(GEMMA, &folder, &[]).await;
    let (_, answer) = second.post(COMPLETE, &question(&list())).await;
    assert_eq!(answer["timings"]["cache_n"], saved["tokens"], "{answer}");
    assert_eq!(answer["timings"]["prompt_n"], 1);
    let text = answer["choices"][0]["text"].as_str().unwrap();
    assert!(text.contains("60, 61"), "{text}");
}

#[tokio::test]
async fn a_saved_context_can_be_loaded_and_continued() {
    let folder = tempfile::tempdir().unwrap();
    let mut messages = vec![
        json!({"role": "system", "content": format!("Know these: {}", list())}),
        json!({"role": "user", "content": "What is the capital of France?"}),
    ];
    let first = worker(SHALLOW, &folder, &[]).await;
    let (status, saved) = first
        .post(SAVE, &json!({"name": "talk", "messages": messages}))
        .await;
    assert_eq!(status, 200, "{saved}");
    drop(first);
    let second = worker(SHALLOW, &folder, &[]).await;
    let (status, loaded) = second.post(LOAD, &json!({"name": "talk"})).await;
    assert_eq!(status, 200, "{loaded}");
    assert_eq!(loaded["timings"]["cache_n"], saved["tokens"]);
    assert_eq!(loaded["timings"]["prompt_n"], 0);
    let chat =
        |messages: &[Value]| json!({"messages": messages, "max_tokens": 8, "temperature": 0});
    let path = "/v1/chat/completions";
    let (_, answer) = second.post(path, &chat(&messages)).await;
    assert_eq!(answer["timings"]["cache_n"], saved["tokens"], "{answer}");
    // Another question after the same beginning.
    messages.push(answer["choices"][0]["message"].clone());
    messages.push(json!({"role": "user", "content": "And of Spain?"}));
    drop(second);
    let third = worker(SHALLOW, &folder, &[]).await;
    let (_, answer) = third.post(path, &chat(&messages)).await;
    assert_eq!(answer["timings"]["cache_n"], saved["tokens"], "{answer}");
    let listed = third.get("/v1/context").await;
    assert_eq!(listed["data"][0]["name"], "talk");
    assert_eq!(listed["data"][0]["tokens"], saved["tokens"]);
    let (status, _) = third
        .post("/v1/context/delete", &json!({"name": "talk"}))
        .await;
    assert_eq!(status, 200);
    let (status, gone) = third.post(LOAD, &json!({"name": "talk"})).await;
    assert_eq!(
        (status, &gone["error"]["code"]),
        (404, &json!("context_unknown"))
    );
}

#[tokio::test]
async fn a_context_is_loaded_even_if_mostly_cached() {
    let folder = tempfile::tempdir().unwrap();
    let first = worker(SHALLOW, &folder, &[]).await;
    let long = format!("{} and so on, and on, to the end.", list());
    for (name, prompt) in [("short", "One, two, three."), ("long", &*long)] {
        let request = json!({"name": name, "prompt": prompt});
        let (status, saved) = first.post(SAVE, &request).await;
        assert_eq!(status, 200, "{saved}");
    }
    drop(first);
    let second = worker(SHALLOW, &folder, &[]).await;
    // All but its last words are in memory.
    second.post(COMPLETE, &question(&list())).await;
    for name in ["short", "long"] {
        let (status, loaded) = second.post(LOAD, &json!({"name": name})).await;
        assert_eq!(status, 200, "{loaded}");
        assert_eq!(loaded["timings"]["cache_n"], loaded["tokens"]);
    }
}

#[tokio::test]
async fn the_latest_conversation_is_saved_without_resending() {
    let folder = tempfile::tempdir().unwrap();
    let first = worker(SHALLOW, &folder, &[]).await;
    let (status, nothing) = first.post(SAVE, &json!({"name": "last"})).await;
    assert_eq!(
        (status, &nothing["error"]["code"]),
        (400, &json!("bad_request"))
    );
    let (_, answer) = first.post(COMPLETE, &question(&list())).await;
    let (status, saved) = first.post(SAVE, &json!({"name": "last"})).await;
    assert_eq!(status, 200, "{saved}");
    let usage = &answer["usage"];
    // The last token was sent, and never evaluated.
    assert_eq!(saved["tokens"], usage["total_tokens"].as_u64().unwrap() - 1);
    drop(first);
    let second = worker(SHALLOW, &folder, &[]).await;
    let text = answer["choices"][0]["text"].as_str().unwrap();
    let whole = question(&format!("{}{text} and so on", list()));
    let (_, answer) = second.post(COMPLETE, &whole).await;
    let cached = answer["timings"]["cache_n"].as_u64().unwrap();
    assert!(cached + 2 >= saved["tokens"].as_u64().unwrap(), "{answer}");
}

#[tokio::test]
async fn a_context_of_another_configuration_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let first = worker(SHALLOW, &folder, &[]).await;
    let (status, _) = first
        .post(SAVE, &json!({"name": "mine", "prompt": list()}))
        .await;
    assert_eq!(status, 200);
    drop(first);
    let template = folder.path().join("other.jinja");
    fs::write(&template, "{{ messages[0].content }}").unwrap();
    let template = ["--chat-template", template.to_str().unwrap()];
    let cases: [(&str, &[&str], &str); 3] = [
        (GEMMA, &[], "another model"),
        (SHALLOW, &template, "another chat template"),
        (
            SHALLOW,
            &["--kv-cache", "q8_0"],
            "f16 KV cache; this tier uses q8_0",
        ),
    ];
    for (name, extra, why) in cases {
        let other = worker(name, &folder, extra).await;
        let (status, refused) = other.post(LOAD, &json!({"name": "mine"})).await;
        assert_eq!(status, 409, "{refused}");
        assert_eq!(refused["error"]["code"], "context_mismatch");
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("\"mine\"") && message.contains(why),
            "{message}"
        );
        // Nor is it taken for a prompt that it would fit.
        let (_, answer) = other.post(COMPLETE, &question(&list())).await;
        assert_eq!(answer["timings"]["cache_n"], 0, "{answer}");
    }
}

fn only_file(folder: &Path) -> std::path::PathBuf {
    let mut files = fs::read_dir(folder).unwrap();
    files.next().unwrap().unwrap().path()
}

#[tokio::test]
async fn a_damaged_file_is_never_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let first = worker(SHALLOW, &folder, &[]).await;
    let saved = first
        .post(SAVE, &json!({"name": "one", "prompt": list()}))
        .await;
    assert_eq!(saved.0, 200);
    drop(first);
    let path = only_file(folder.path());
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
    let second = worker(SHALLOW, &folder, &[]).await;
    let (status, refused) = second.post(LOAD, &json!({"name": "one"})).await;
    assert_eq!(
        (status, &refused["error"]["code"]),
        (502, &json!("corrupt"))
    );
    let (status, answer) = second.post(COMPLETE, &question(&list())).await;
    assert_eq!((status, &answer["timings"]["cache_n"]), (200, &json!(0)));
}

#[tokio::test]
async fn concurrent_saves_of_a_name_leave_one_valid_file() {
    let folder = tempfile::tempdir().unwrap();
    let worker = worker(SHALLOW, &folder, &[]).await;
    let request = |text: &str, replace: bool| {
        let prompt = format!("{text} {}", list());
        json!({"name": "both", "prompt": prompt, "replace": replace})
    };
    for (replace, statuses) in [(false, [200, 409]), (true, [200, 200]), (false, [409, 409])] {
        let (a, b) = (request("a", replace), request("b", replace));
        let (first, second) = tokio::join!(worker.post(SAVE, &a), worker.post(SAVE, &b));
        let mut got = [first.0, second.0];
        got.sort_unstable();
        assert_eq!(got, statuses, "replace: {replace}: {first:?} {second:?}");
    }
    let (status, loaded) = worker.post(LOAD, &json!({"name": "both"})).await;
    assert_eq!(status, 200, "{loaded}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_full_disk_keeps_the_old_context() {
    let folder = tempfile::tempdir().unwrap();
    let contexts = folder.path().to_str().unwrap();
    // A file of this worker can have a megabyte: beyond it writes fail, as on a full disk.
    let mut limited = Command::new("sh");
    limited.args([
        "-c",
        "trap '' XFSZ; ulimit -f 1024; exec \"$0\" \"$@\"",
        WORKER,
    ]);
    let arguments = ["--context", "2048", "--contexts", contexts];
    let worker = Worker::start_as(limited, &model(SMOLLM), &arguments).await;
    worker.ready();
    let small = json!({"name": "one", "prompt": "One, two, three"});
    assert_eq!(worker.post(SAVE, &small).await.0, 200);
    let (status, failed) = worker
        .post(
            SAVE,
            &json!({"name": "one", "prompt": list(), "replace": true}),
        )
        .await;
    assert_eq!(
        (status, &failed["error"]["code"]),
        (507, &json!("storage")),
        "{failed}"
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let (status, loaded) = worker.post(LOAD, &json!({"name": "one"})).await;
    assert_eq!(status, 200, "{loaded}");
    let (status, _) = worker.post(COMPLETE, &question(&list())).await;
    assert_eq!(status, 200);
}

/// Unpacking needs room; a good context is not called damaged for want of it, and nothing of it is lost.
#[tokio::test]
async fn a_full_disk_does_not_damage_a_saved_context() {
    let folder = tempfile::tempdir().unwrap();
    let first = worker(SMOLLM, &folder, &[]).await;
    let save = json!({"name": "one", "prompt": list()});
    let (status, saved) = first.post(SAVE, &save).await;
    assert_eq!(status, 200, "{saved}");
    drop(first);
    let kept = fs::read(only_file(folder.path())).unwrap();
    let mut limited = Command::new("sh");
    limited.args([
        "-c",
        "trap '' XFSZ; ulimit -f 1024; exec \"$0\" \"$@\"",
        WORKER,
    ]);
    let contexts = folder.path().to_str().unwrap();
    let arguments = ["--context", "2048", "--contexts", contexts];
    let full = Worker::start_as(limited, &model(SMOLLM), &arguments).await;
    full.ready();
    let load = json!({"name": "one"});
    let (status, refused) = full.post(LOAD, &load).await;
    assert_eq!(
        (status, &refused["error"]["code"]),
        (507, &json!("storage")),
        "{refused}"
    );
    // A prompt that it would have is evaluated.
    let (status, answer) = full.post(COMPLETE, &question(&list())).await;
    assert_eq!((status, &answer["timings"]["cache_n"]), (200, &json!(0)));
    drop(full);
    assert!(fs::read(only_file(folder.path())).unwrap() == kept);
    let second = worker(SMOLLM, &folder, &[]).await;
    let (status, loaded) = second.post(LOAD, &load).await;
    assert_eq!(status, 200, "{loaded}");
    assert_eq!(loaded["timings"]["cache_n"], saved["tokens"]);
}

#[tokio::test]
async fn saving_without_a_folder_is_refused() {
    let worker = Worker::smollm().await;
    for (path, body) in [
        (SAVE, json!({"name": "a", "prompt": "b"})),
        (LOAD, json!({"name": "a"})),
    ] {
        let (status, refused) = worker.post(path, &body).await;
        assert_eq!(status, 400);
        let hint = refused["error"]["hint"].as_str().unwrap();
        assert!(hint.contains("--contexts"), "{refused}");
    }
}

#[tokio::test]
async fn a_saved_context_longer_than_the_tier_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let contexts = folder.path().to_str().unwrap();
    let long = numbers(1, 200);
    let first = worker(SMOLLM, &folder, &[]).await;
    let save = json!({"name": "long", "prompt": format!("Alpha {long}")});
    let (status, saved) = first.post(SAVE, &save).await;
    assert_eq!(status, 200, "{saved}");
    drop(first);
    let arguments = ["--context", "512", "--contexts", contexts];
    let second = Worker::start(&model(SMOLLM), &arguments).await;
    second.ready();
    let (status, refused) = second.post(LOAD, &json!({"name": "long"})).await;
    assert_eq!(status, 400, "{refused}");
    assert_eq!(refused["error"]["code"], "context_length_exceeded");
    assert_eq!(refused["error"]["context_tokens"], 512);
    // A conversation that another slot could lend is not lost to a file that does not fit.
    let short = format!("Alpha {}", &long[..300]);
    let (_, before) = second.post(COMPLETE, &question(&short)).await;
    let again = format!("{short} 77, 78,");
    let (_, after) = second.post(COMPLETE, &question(&again)).await;
    let fresh = json!({"prompt": again, "max_tokens": 12, "temperature": 0, "cache_prompt": false});
    let (_, alone) = second.post(COMPLETE, &fresh).await;
    assert!(
        after["timings"]["cache_n"].as_u64().unwrap() > 50,
        "{before} {after}"
    );
    assert_eq!(after["choices"][0]["text"], alone["choices"][0]["text"]);
}

#[tokio::test]
async fn a_context_saved_again_is_found_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let worker = worker(SHALLOW, &folder, &[]).await;
    let (first, second) = (format!("Alpha {}", list()), format!("Omega {}", list()));
    for prompt in [&first, &second] {
        let (status, _) = worker
            .post(
                SAVE,
                &json!({"name": "n", "prompt": prompt, "replace": true}),
            )
            .await;
        assert_eq!(status, 200);
        let (_, answer) = worker.post(COMPLETE, &question(prompt)).await;
        assert!(
            answer["timings"]["cache_n"].as_u64().unwrap() > 100,
            "{answer}"
        );
    }
    let (_, loaded) = worker.post(LOAD, &json!({"name": "n"})).await;
    assert_eq!(loaded["timings"]["prompt_n"], 0, "{loaded}");
}
