//! The worker's process: its start and end, and invalid input.

use crate::support::{GEMMA, HANG, SHALLOW, SMOLLM, Worker, first_chunk, model};
use futures_util::StreamExt;
use serde_json::json;
use std::{fs, os::unix::fs::PermissionsExt, time::Duration};
use tierbar_core::Code;

const LONG: &str =
    r#"{"prompt": "Once upon a time", "stream": true, "ignore_eos": true, "max_tokens": 900}"#;

#[tokio::test]
async fn the_handshake_reports_what_was_allocated() {
    let worker = Worker::start(&model(SMOLLM), &["--context", "512", "--kv-cache", "q8_0"]).await;
    let ready = worker.ready();
    assert_eq!(Some(ready.pid), worker.child.id());
    assert_eq!(ready.context_tokens, 512);
    // 30 layers of 3 KV heads of 64, K and V, 34 bytes for 32 cells.
    assert_eq!(ready.memory.kv_bytes, 512 * 30 * 2 * 3 * 64 * 34 / 32);
    let weights = ready.memory.weights_mapped_bytes + ready.memory.weights_bytes;
    assert!(weights > 90_000_000, "{ready:?}");
    assert!(ready.memory.compute_bytes > 0);
    assert_eq!(
        fs::metadata(&worker.socket).unwrap().permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(
        worker.get("/props").await["memory"]["kv_bytes"],
        ready.memory.kv_bytes
    );
}

#[tokio::test]
async fn mapped_weights_have_no_copy_in_another_layout() {
    let weights = async |arguments: &[&str]| {
        let worker = Worker::start(&model(GEMMA), arguments).await;
        worker.ready().memory
    };
    let mapped = weights(&["--mapped"]).await;
    assert_eq!(mapped.weights_bytes, 0);
    let all = mapped.weights_mapped_bytes;
    // Whatever this CPU's own layouts are, nothing is lost.
    let free = weights(&[]).await;
    assert!(free.weights_mapped_bytes + free.weights_bytes >= all);
}

/// Without a GPU the arguments change nothing; the answer of a model whose output the CPU was told to hold shows that
/// llama.cpp takes them.
#[tokio::test]
async fn gpu_layers_do_not_change_the_answers() {
    let prompt = r#"{"prompt": "Once upon a time", "max_tokens": 8, "temperature": 0}"#;
    let answer = async |arguments: &[&str]| {
        let worker = Worker::start(&model(GEMMA), arguments).await;
        worker.ready();
        let answer = worker.send("/v1/completions", prompt).await;
        let answer: serde_json::Value = answer.json().await.unwrap();
        answer["choices"][0]["text"].clone()
    };
    let whole = answer(&[]).await;
    assert!(whole.as_str().is_some_and(|text| !text.is_empty()));
    for layers in ["0", "5"] {
        assert_eq!(answer(&["--gpu-layers", layers]).await, whole);
    }
}

#[tokio::test]
async fn the_context_is_limited_by_the_training_context() {
    let worker = Worker::start(
        &model(SMOLLM),
        &["--context", "1000000", "--kv-cache", "q4_0"],
    )
    .await;
    assert_eq!(worker.ready().context_tokens, 8192);
}

#[tokio::test]
async fn one_core_is_always_left_free() {
    let worker = Worker::start(&model(SMOLLM), &["--context", "256", "--threads", "60000"]).await;
    worker.ready();
    let cores = std::thread::available_parallelism().unwrap().get();
    assert_eq!(worker.get("/props").await["threads"], (cores - 1).max(1));
}

#[tokio::test]
async fn a_load_reports_progress_and_has_low_priority() {
    let worker = Worker::smollm().await;
    assert!(worker.loaded.is_sorted(), "{:?}", worker.loaded);
    assert_eq!(worker.loaded.last(), Some(&100));
    let niceness = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        fields.split(' ').nth(16).unwrap().parse::<i32>().unwrap()
    };
    let ours = niceness(std::process::id());
    assert_eq!(niceness(worker.ready().pid), (ours + 5).min(19));
}

#[tokio::test]
async fn a_paused_worker_resumes_where_it_was() {
    let worker = Worker::smollm().await;
    let request = json!({"prompt": "1, 2, 3,", "max_tokens": 200, "temperature": 0, "ignore_eos": true, "stream": true});
    let response = worker.send("/v1/completions", request.to_string()).await;
    let mut body = first_chunk(response).await;
    let (status, _) = worker.post("/yield", &json!({"seconds": 60})).await;
    assert_eq!(status, 200);
    // What was on its way comes; then nothing does, and others wait too.
    let silence = Duration::from_secs(2);
    while let Ok(Some(_)) = tokio::time::timeout(silence, body.next()).await {}
    let left = worker.get("/props").await["yields_seconds"]
        .as_f64()
        .unwrap();
    assert!(left > 0.0 && left <= 60.0);
    let (status, _) = worker.post("/yield", &json!({"seconds": 0})).await;
    assert_eq!(status, 200);
    let mut rest = String::new();
    while let Some(chunk) = body.next().await {
        rest += std::str::from_utf8(&chunk.unwrap()).unwrap();
    }
    assert!(rest.ends_with("data: [DONE]\n\n"), "{rest}");
    assert!(rest.contains("\"predicted_n\":200"), "{rest}");
    for seconds in [json!(-1), json!(61), json!("x"), json!(1e300)] {
        let (status, _) = worker.post("/yield", &json!({"seconds": seconds})).await;
        assert_eq!(status, 400, "{seconds}");
    }
}

#[tokio::test]
async fn clients_may_leave_during_a_pause() {
    let worker = Worker::smollm().await;
    let request =
        json!({"prompt": "1, 2, 3,", "max_tokens": 200, "ignore_eos": true, "stream": true});
    let response = worker.send("/v1/completions", request.to_string()).await;
    let body = first_chunk(response).await;
    worker.post("/yield", &json!({"seconds": 60})).await;
    drop(body);
    let forgotten = async {
        while worker.get("/props").await["generations"]["cancelled"] != 1 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(HANG, forgotten).await.unwrap();
}

#[tokio::test]
async fn closed_stdin_ends_the_worker() {
    let mut worker = Worker::smollm().await;
    assert!(worker.socket.exists());
    worker.stdin.take();
    assert!(worker.exit().await.success());
    assert!(!worker.socket.exists());
}

#[tokio::test]
async fn sigterm_ends_the_worker_during_an_answer() {
    let mut worker = Worker::smollm().await;
    let body = first_chunk(worker.send("/v1/completions", LONG).await).await;
    let pid =
        rustix::process::Pid::from_raw(i32::try_from(worker.child.id().unwrap()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(worker.exit().await.success());
    drop(body);
}

/// Asks once more, so that there was a step since the client left, and looks how its request ended.
async fn cancelled_one(worker: &Worker) {
    let (status, _) = worker
        .post("/v1/completions", &json!({"prompt": "hi", "max_tokens": 1}))
        .await;
    assert_eq!(status, 200);
    // The disconnect arrives on another connection than later requests.
    let counted = async {
        loop {
            let generations = &worker.get("/props").await["generations"];
            let of = |what: &str| generations[what].as_u64().unwrap();
            if [of("running"), of("done"), of("cancelled"), of("failed")] == [0, 1, 1, 0] {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(HANG, counted).await.unwrap();
}

#[tokio::test]
async fn a_disconnect_cancels_generation() {
    let worker = Worker::smollm().await;
    drop(first_chunk(worker.send("/v1/completions", LONG).await).await);
    cancelled_one(&worker).await;
}

#[tokio::test]
async fn a_disconnect_cancels_prefill() {
    let worker = Worker::smollm().await;
    let prompt =
        json!({"prompt": vec![5; 1000], "max_tokens": 1, "cache_prompt": false}).to_string();
    let waiting = worker.send("/v1/completions", prompt);
    let props = async { while worker.get("/props").await["generations"]["running"] != 1 {} };
    tokio::select! {
        response = waiting => panic!("it answered: {response:?}"),
        () = props => {}
    }
    cancelled_one(&worker).await;
}

#[tokio::test]
async fn a_prompt_beyond_the_context_is_refused() {
    let worker = Worker::smollm().await;
    let long = "word ".repeat(200_000);
    let chat = json!({"messages": [{"role": "user", "content": long}], "stream": true});
    for (path, body) in [
        ("/v1/chat/completions", chat),
        ("/v1/completions", json!({"prompt": long})),
    ] {
        let (status, answer) = worker.post(path, &body).await;
        assert_eq!(status, 400);
        assert_eq!(answer["error"]["code"], "context_length_exceeded");
        assert_eq!(answer["error"]["context_tokens"], 1024);
        assert!(
            answer["error"]["prompt_tokens"].as_u64().unwrap() >= 200_000,
            "{answer}"
        );
    }
}

#[tokio::test]
async fn a_prompt_that_fills_the_context_gets_one_token() {
    let worker = Worker::shallow().await;
    let exactly = json!({"prompt": vec![5; 1023], "ignore_eos": true});
    let (status, answer) = worker.post("/v1/completions", &exactly).await;
    assert_eq!(
        (status, &answer["choices"][0]["finish_reason"]),
        (200, &json!("length"))
    );
    let (status, _) = worker
        .post("/v1/completions", &json!({"prompt": vec![5; 1024]}))
        .await;
    assert_eq!(status, 400);
}

#[tokio::test]
async fn bad_requests_are_refused_with_the_field() {
    let worker = Worker::smollm().await;
    let chat = "/v1/chat/completions";
    let message = r#""messages": [{"role": "user", "content": "hi"}]"#;
    let cases = [
        (chat, "{not json".to_owned()),
        (chat, "[]".to_owned()),
        (chat, r#"{"messages": []}"#.to_owned()),
        (chat, r#"{"messages": "hi"}"#.to_owned()),
        (chat, r#"{"messages": [1]}"#.to_owned()),
        (chat, r#"{"messages": [{"role": "user"}]}"#.to_owned()),
        (
            chat,
            r#"{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}"#.to_owned(),
        ),
        (chat, format!(r#"{{{message}, "temperature": "hot"}}"#)),
        (chat, format!(r#"{{{message}, "grammar": "root ::= ("}}"#)),
        (
            chat,
            format!(
                r#"{{{message}, "grammar": "root ::= {}"}}"#,
                "(".repeat(60_000)
            ),
        ),
        (
            chat,
            format!(r#"{{{message}, "grammar": "{}"}}"#, "#".repeat(300_000)),
        ),
        (chat, format!(r#"{{{message}, "max_tokens": -5}}"#)),
        (
            chat,
            format!(r#"{{{message}, "json_schema": {{"type": "nonsense"}}}}"#),
        ),
        (
            chat,
            format!(r#"{{{message}, "logit_bias": {{"999999": 1}}}}"#),
        ),
        ("/v1/completions", r#"{"prompt": ""}"#.to_owned()),
        ("/v1/completions", r#"{"prompt": [999999]}"#.to_owned()),
        ("/v1/completions", r#"{"prompt": [-1]}"#.to_owned()),
        ("/v1/completions", "{}".to_owned()),
        ("/tokenize", "{}".to_owned()),
    ];
    for (path, body) in cases {
        let response = worker.send(path, body.clone()).await;
        assert_eq!(response.status(), 400, "{body}");
        let answer: serde_json::Value = response.json().await.unwrap();
        assert_eq!(answer["error"]["code"], "bad_request", "{body}");
        assert!(!answer["error"]["message"].as_str().unwrap().is_empty());
    }
    let (status, _) = worker
        .post("/v1/completions", &json!({"prompt": "hi", "max_tokens": 1}))
        .await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn an_incomplete_model_fails_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read(model(SMOLLM)).unwrap();
    let cases: [(&str, &[u8]); 4] = [
        ("empty", b""),
        ("text", b"this is no model"),
        ("header", &whole[..4096]),
        ("half", &whole[..whole.len() / 2]),
    ];
    for (name, bytes) in cases {
        let path = folder.path().join(format!("{name}.gguf"));
        fs::write(&path, bytes).unwrap();
        let mut worker = Worker::start(&path, &[]).await;
        let failure = worker.failure();
        assert_eq!(failure.code, Code::ModelInvalid, "{name}: {failure:?}");
        assert!(
            failure.message.contains(&*path.to_string_lossy()),
            "{failure:?}"
        );
        assert_eq!(worker.exit().await.code(), Some(1));
    }
    let worker = Worker::start(&folder.path().join("absent.gguf"), &[]).await;
    assert_eq!(worker.failure().code, Code::ModelMissing);
}

/// The starter model's header with the first `mark` and what follows it written over, before a file as long as the whole.
fn damaged(
    folder: &std::path::Path,
    mark: &[u8],
    offset: usize,
    bytes: &[u8],
) -> std::path::PathBuf {
    let whole = fs::read(model(SMOLLM)).unwrap();
    let mut header = whole[..2 << 20].to_vec();
    let found = header.windows(mark.len()).position(|window| window == mark);
    let at = found.unwrap() + mark.len() + offset;
    header[at..at + bytes.len()].copy_from_slice(bytes);
    let path = folder.join("damaged.gguf");
    fs::write(&path, header).unwrap();
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_len(whole.len() as u64).unwrap();
    path
}

/// llama.cpp ends the process over each of these.
#[tokio::test]
async fn files_that_abort_llama_cpp_are_refused_first() {
    let folder = tempfile::tempdir().unwrap();
    for (mark, offset, bytes, part) in [
        (
            &b"llama.attention.layer_norm_rms_epsilon"[..],
            4,
            &(-1f32).to_le_bytes()[..],
            "layer_norm_rms_epsilon is -1",
        ),
        (
            b"llama.attention.head_count_kv",
            4,
            &[2],
            "2 heads of keys for 9",
        ),
        // The token behind is as long as another.
        (b"<repo_name>", 8, b"<|im_end|>", "two tokens"),
        // Its type: 32-bit integers are as long as floats.
        (b"blk.0.attn_norm.weight", 4 + 8, &[26], "is of type I32"),
    ] {
        let path = damaged(folder.path(), mark, offset, bytes);
        let mut worker = Worker::start(&path, &[]).await;
        let failure = worker.failure();
        assert_eq!(failure.code, Code::ModelInvalid, "{failure:?}");
        assert!(failure.message.contains(part), "{failure:?}");
        assert_eq!(worker.exit().await.code(), Some(1), "{part}");
    }
}

#[tokio::test]
async fn a_context_smaller_than_a_batch_works() {
    let worker = Worker::start(&model(SHALLOW), &["--context", "100"]).await;
    assert_eq!(worker.ready().context_tokens, 256);
    let prompt = vec![1000; 250];
    let (status, answer) = worker
        .post(
            "/v1/completions",
            &json!({"prompt": prompt, "max_tokens": 1}),
        )
        .await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["usage"]["prompt_tokens"], 250);
}
