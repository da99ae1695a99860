//! Conversations that are in memory when a worker has to go, and the next one that goes on with them.

use crate::support::{GEMMA, SHALLOW, SMOLLM, Worker, first_chunk, model, numbers};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    time::{Duration, SystemTime},
};
use tempfile::TempDir;

const CHAT: &str = "/v1/chat/completions";
const COMPLETE: &str = "/v1/completions";

async fn worker(name: &str, folder: &TempDir, mib: &str, extra: &[&str]) -> Worker {
    let swapped = folder.path().to_str().unwrap();
    let swapped = ["--swapped", swapped, "--swapped-mib", mib];
    let arguments = [&["--context", "2048"][..], &swapped[..], extra].concat();
    let worker = Worker::start(&model(name), &arguments).await;
    worker.ready();
    worker
}

/// Asks it to go, and waits until it has.
pub(crate) async fn leave(mut worker: Worker) {
    let pid = i32::try_from(worker.child.id().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::TERM).unwrap();
    assert!(worker.exit().await.success());
}

fn files(folder: &TempDir) -> Vec<PathBuf> {
    let all = fs::read_dir(folder.path()).unwrap();
    all.map(|file| file.unwrap().path()).collect()
}

fn question(prompt: &str) -> Value {
    json!({"prompt": prompt, "max_tokens": 12, "temperature": 0})
}

fn chat(messages: &[Value]) -> Value {
    json!({"messages": messages, "max_tokens": 24, "temperature": 0})
}

fn number(answer: &Value, field: &str) -> u64 {
    answer["timings"][field].as_u64().unwrap()
}

fn answer_of(answer: &Value) -> Value {
    answer["choices"][0]["message"].clone()
}

/// A second turn after a swap and without one.
async fn goes_on_by_itself(name: &str) {
    // Without a chat template a model may end at once, at a marker of ChatML.
    let ask = |messages: &[Value]| {
        let mut body = chat(messages);
        body["ignore_eos"] = json!(true);
        body
    };
    let folder = tempfile::tempdir().unwrap();
    let mut messages = vec![
        // Longer than Gemma's sliding window of 512 tokens.
        json!({"role": "user", "content": format!("Know these: {} What is the largest?", numbers(1, 250))}),
    ];
    let first = worker(name, &folder, "1024", &[]).await;
    let other = Worker::start(&model(name), &["--context", "2048"]).await;
    let (_, answer) = first.post(CHAT, &ask(&messages)).await;
    let (_, same) = other.post(CHAT, &ask(&messages)).await;
    assert_eq!(answer_of(&answer), answer_of(&same));
    leave(first).await;

    messages.push(answer_of(&answer));
    messages.push(json!({"role": "user", "content": "And the smallest?"}));
    let second = worker(name, &folder, "1024", &[]).await;
    let (_, swapped) = second.post(CHAT, &ask(&messages)).await;
    let (_, stayed) = other.post(CHAT, &ask(&messages)).await;
    let held = answer["usage"]["prompt_tokens"].as_u64().unwrap();
    assert!(number(&swapped, "cache_n") > held, "{swapped}");
    assert_eq!(
        number(&swapped, "cache_n"),
        number(&stayed, "cache_n"),
        "{swapped} {stayed}"
    );
    assert!(number(&swapped, "prompt_n") < 40, "{swapped}");
    assert_eq!(answer_of(&swapped), answer_of(&stayed));
}

#[tokio::test]
async fn smollm2_continues_a_swapped_conversation() {
    goes_on_by_itself(SMOLLM).await;
}

#[tokio::test]
async fn gemma_3_continues_a_swapped_conversation() {
    goes_on_by_itself(GEMMA).await;
}

/// A model that forgets cannot go back from the end of the answer by itself.
#[tokio::test]
async fn gemma_3_reuses_the_prompt_of_a_changed_answer() {
    let folder = tempfile::tempdir().unwrap();
    let first = worker(GEMMA, &folder, "1024", &[]).await;
    let other = Worker::start(&model(GEMMA), &["--context", "2048"]).await;
    // Longer than Gemma's sliding window of 512 tokens.
    let list = numbers(1, 250);
    let (_, answer) = first.post(COMPLETE, &question(&list)).await;
    other.post(COMPLETE, &question(&list)).await;
    let held = answer["usage"]["prompt_tokens"].as_u64().unwrap();
    leave(first).await;

    let changed = question(&format!("{list}\n1, 2, 3, 4, 5, 6, 7,"));
    let second = worker(GEMMA, &folder, "1024", &[]).await;
    let (_, swapped) = second.post(COMPLETE, &changed).await;
    let (_, stayed) = other.post(COMPLETE, &changed).await;
    let cached = number(&swapped, "cache_n");
    assert!(cached + 8 >= held && cached <= held, "{swapped}");
    // In memory a few more cells are left than a file has: it may go back to that token itself.
    assert!(number(&stayed, "cache_n") <= cached + 1, "{stayed}");
    assert_eq!(swapped["choices"][0]["text"], stayed["choices"][0]["text"]);
}

#[tokio::test]
async fn an_interrupted_answer_keeps_its_prefill() {
    let folder = tempfile::tempdir().unwrap();
    let first = worker(SHALLOW, &folder, "1024", &[]).await;
    let list = numbers(1, 100);
    let endless = json!({"prompt": list, "max_tokens": 1500, "ignore_eos": true, "stream": true});
    let stream = first_chunk(first.send(COMPLETE, endless.to_string()).await).await;
    leave(first).await;
    drop(stream);
    let second = worker(SHALLOW, &folder, "1024", &[]).await;
    let (_, answer) = second.post(COMPLETE, &question(&list)).await;
    assert_eq!(number(&answer, "prompt_n"), 1, "{answer}");
}

#[tokio::test]
async fn a_prefix_of_a_longer_conversation_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let list = numbers(1, 150);
    for to in [100, 150] {
        let one = worker(SMOLLM, &folder, "1024", &[]).await;
        let (_, answer) = one.post(COMPLETE, &question(&numbers(1, to))).await;
        if to > 100 {
            assert!(number(&answer, "cache_n") > 280, "{answer}");
        }
        leave(one).await;
        assert_eq!(files(&folder).len(), 1);
    }
    // Nothing new is in memory.
    let before = fs::metadata(&files(&folder)[0]).unwrap();
    let one = worker(SMOLLM, &folder, "1024", &[]).await;
    let (_, answer) = one
        .post(COMPLETE, &json!({"prompt": list, "max_tokens": 1}))
        .await;
    assert_eq!(number(&answer, "prompt_n"), 1, "{answer}");
    leave(one).await;
    let after = fs::metadata(&files(&folder)[0]).unwrap();
    assert_eq!(files(&folder).len(), 1);
    let inode = |file: &fs::Metadata| std::os::unix::fs::MetadataExt::ino(file);
    assert_eq!(inode(&before), inode(&after));
    assert!(after.modified().unwrap() > before.modified().unwrap());
    assert_eq!(after.permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn short_and_uncached_conversations_are_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let one = worker(SHALLOW, &folder, "1024", &[]).await;
    one.post(COMPLETE, &question("One, two, three,")).await;
    let mut alone = question(&numbers(1, 100));
    alone["cache_prompt"] = json!(false);
    one.post(COMPLETE, &alone).await;
    leave(one).await;
    assert_eq!(files(&folder), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn the_oldest_conversations_are_removed_at_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let size = || {
        let files = files(&folder).into_iter();
        files
            .map(|file| fs::metadata(file).unwrap().len())
            .sum::<u64>()
    };
    let talk = async |from: u32, mib: &str| {
        let one = worker(SMOLLM, &folder, mib, &[]).await;
        one.post(COMPLETE, &question(&numbers(from, from + 80)))
            .await;
        leave(one).await;
    };
    talk(100, "1024").await;
    // Two and a half of them; they are of one length.
    let mib = (size() * 5 / 2) >> 20;
    for from in [300, 500] {
        talk(from, &mib.to_string()).await;
        assert!(size() <= mib << 20);
    }
    let mib = &*mib.to_string();
    assert_eq!(files(&folder).len(), 2);
    let last = worker(SMOLLM, &folder, mib, &[]).await;
    for (from, found) in [(500, true), (300, true), (100, false)] {
        let (_, answer) = last
            .post(COMPLETE, &question(&numbers(from, from + 80)))
            .await;
        assert_eq!(number(&answer, "prompt_n") == 1, found, "{from}: {answer}");
    }
    drop(last);
    // Nothing that is larger than all of it, and nothing beyond a bound that has become smaller.
    let small = worker(SMOLLM, &folder, "2", &[]).await;
    assert_eq!(files(&folder), Vec::<PathBuf>::new());
    small.post(COMPLETE, &question(&numbers(1, 100))).await;
    leave(small).await;
    assert_eq!(files(&folder), Vec::<PathBuf>::new());
}

#[tokio::test]
async fn damaged_and_old_files_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let list = numbers(1, 100);
    let one = worker(SHALLOW, &folder, "1024", &[]).await;
    one.post(COMPLETE, &question(&list)).await;
    leave(one).await;
    let path = files(&folder).remove(0);
    let whole = fs::read(&path).unwrap();
    let mut damaged = whole.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    fs::write(&path, damaged).unwrap();
    let two = worker(SHALLOW, &folder, "1024", &[]).await;
    let (status, answer) = two.post(COMPLETE, &question(&list)).await;
    assert_eq!((status, number(&answer, "cache_n")), (200, 0));
    assert!(!path.exists());
    drop(two);
    // What a kill leaves of a file that has its name, and of one that has none yet.
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let draft = folder.path().join(".draft-abc");
    fs::write(&draft, &whole).unwrap();
    let three = worker(SHALLOW, &folder, "1024", &[]).await;
    assert!(!path.exists() && draft.exists());
    let (_, answer) = three.post(COMPLETE, &question(&list)).await;
    assert_eq!(number(&answer, "cache_n"), 0);
    drop(three);
    let past = |days: u64| SystemTime::now() - Duration::from_secs(days * 24 * 3600);
    let age = |path: &PathBuf, days| {
        let file = fs::File::options().append(true).open(path).unwrap();
        file.set_modified(past(days)).unwrap();
    };
    age(&draft, 1);
    fs::write(&path, &whole).unwrap();
    age(&path, 6);
    let four = worker(SHALLOW, &folder, "1024", &[]).await;
    assert!(path.exists() && !draft.exists());
    drop(four);
    age(&path, 8);
    drop(worker(SHALLOW, &folder, "1024", &[]).await);
    assert!(!path.exists());
}

#[tokio::test]
async fn a_state_of_another_configuration_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let outer = tempfile::tempdir().unwrap();
    let template = outer.path().join("other.jinja");
    fs::write(&template, "{{ messages[0].content }}").unwrap();
    let template = ["--chat-template", template.to_str().unwrap()];
    let list = numbers(1, 100);
    let cases: [(&str, &[&str]); 4] = [
        (SHALLOW, &[]),
        (GEMMA, &[]),
        (SHALLOW, &template),
        (SHALLOW, &["--kv-cache", "q8_0"]),
    ];
    for (name, extra) in cases {
        let one = worker(name, &folder, "1024", extra).await;
        let (_, answer) = one.post(COMPLETE, &question(&list)).await;
        assert_eq!(number(&answer, "cache_n"), 0, "{name} {extra:?}: {answer}");
        leave(one).await;
    }
    // Each has its own.
    assert_eq!(files(&folder).len(), 4);
    let one = worker(SHALLOW, &folder, "1024", &[]).await;
    let (_, answer) = one.post(COMPLETE, &question(&list)).await;
    assert_eq!(number(&answer, "prompt_n"), 1, "{answer}");
}

#[tokio::test]
async fn nothing_is_kept_without_a_folder_or_host() {
    let outer = tempfile::tempdir().unwrap();
    let folder = tempfile::tempdir_in(outer.path()).unwrap();
    let prompt = question(&numbers(1, 100));
    let one = worker(SHALLOW, &folder, "1024", &[]).await;
    one.post(COMPLETE, &prompt).await;
    let path = folder.path().to_owned();
    drop(folder);
    leave(one).await;
    assert!(!path.exists());
    let folder = tempfile::tempdir().unwrap();
    let mut two = worker(SHALLOW, &folder, "1024", &[]).await;
    two.post(COMPLETE, &prompt).await;
    drop(two.stdin.take());
    assert!(two.exit().await.success());
    assert_eq!(files(&folder), Vec::<PathBuf>::new());
}

/// The process's own memory that no file is behind, in bytes.
fn anonymous(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    let kib = line.unwrap().split_whitespace().nth(1).unwrap();
    kib.parse::<u64>().unwrap() << 10
}

#[tokio::test]
async fn a_trim_frees_checkpoints_and_keeps_conversations() {
    let one = Worker::start(&model(GEMMA), &["--context", "8192"]).await;
    let pid = one.ready().pid;
    let list = numbers(1, 800);
    one.post(COMPLETE, &question(&list)).await;
    let before = anonymous(pid);
    let (status, freed) = one.post("/trim", &json!({})).await;
    assert_eq!(status, 200, "{freed}");
    let checkpoints = freed["checkpoint_bytes"].as_u64().unwrap();
    assert!(checkpoints > 1 << 20, "{freed}");
    let after = anonymous(pid);
    assert!(
        before - after >= checkpoints / 2,
        "{before} {after} {freed}"
    );
    let (_, again) = one.post("/trim", &json!({})).await;
    assert_eq!(again["checkpoint_bytes"], 0);
    let longer = format!("{list} 800, 801,");
    let (_, answer) = one.post(COMPLETE, &question(&longer)).await;
    assert_eq!(answer["choices"][0]["finish_reason"], "length", "{answer}");
}
