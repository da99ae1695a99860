//! An encoder of images beside the generation of tokens: what it takes of memory, when it computes, and when it does not.

use crate::support::{
    GEMMA, HANG, Worker, model,
    projector::{GEMMA_3, GEMMA_3_BLOCKS, GEMMA_4, QWEN_2, SLOW, plain, striped, stripes, write},
    sound,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use std::path::Path;
use tierbar_core::budget::MediaProjector;

const CHAT: &str = "/v1/chat/completions";

struct Seeing {
    worker: Worker,
    folder: tempfile::TempDir,
}

fn slow(path: &Path) {
    write(SLOW, path);
}

async fn seeing(write: impl FnOnce(&Path)) -> Seeing {
    seeing_with(write, &[]).await
}

async fn seeing_with(write: impl FnOnce(&Path), extra: &[&str]) -> Seeing {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mmproj.gguf");
    write(&path);
    let path = path.to_str().unwrap();
    let arguments = [&["--context", "4096", "--projector", path], extra].concat();
    let worker = Worker::start(&model(GEMMA), &arguments).await;
    worker.ready();
    Seeing { worker, folder }
}

fn about(file: &[u8]) -> Value {
    let url = format!("data:image/png;base64,{}", BASE64_STANDARD.encode(file));
    let part = json!({"type": "image_url", "image_url": {"url": url}});
    media_request(&part, "What do you see?")
}

fn media_request(medium: &Value, question: &str) -> Value {
    let parts = json!([medium, {"type": "text", "text": question}]);
    json!({"messages": [{"role": "user", "content": parts}], "max_tokens": 4, "temperature": 0})
}

impl Seeing {
    async fn answer(&self, request: &Value) -> Value {
        let (status, answer) = self.worker.post(CHAT, request).await;
        assert_eq!(status, 200, "{answer}");
        answer
    }

    async fn encodings(&self) -> Value {
        self.worker.get("/props").await["encodings"].clone()
    }

    async fn pause(&self, seconds: f64) {
        let (status, answer) = self
            .worker
            .post("/yield", &json!({"seconds": seconds}))
            .await;
        assert_eq!(status, 200, "{answer}");
    }

    /// Until one more stands still. It would have come to its end otherwise.
    async fn is_held(&self, done: u64) {
        let held = async {
            loop {
                let encodings = self.encodings().await;
                assert_eq!(encodings["done"], done, "it did not stand still");
                if encodings["held"] == 1 {
                    return;
                }
            }
        };
        tokio::time::timeout(HANG, held).await.unwrap();
    }
}

/// The process's own memory that no file is behind, in bytes.
fn anonymous(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    let kib = line.unwrap().split_whitespace().nth(1).unwrap();
    kib.parse::<u64>().unwrap() << 10
}

/// What encoding takes beside a projector's weights, and what was planned, in bytes.
async fn takes(seeing: &Seeing, request: &Value) -> (u64, u64) {
    let path = seeing.folder.path().join("mmproj.gguf");
    let account = tierbar_gguf::projector(&path).unwrap();
    let planned = account.load_bytes(4096, 512) - account.bytes;
    // The model's own buffers, as far as they are touched.
    let long = json!({"prompt": "Hello. ".repeat(600), "max_tokens": 1});
    assert_eq!(seeing.worker.post("/v1/completions", &long).await.0, 200);
    let pid = seeing.worker.ready().pid;
    let before = anonymous(pid);
    let answer = seeing.answer(request);
    tokio::pin!(answer);
    let mut most = 0;
    loop {
        tokio::select! {
            _ = &mut answer => break,
            () = tokio::time::sleep(std::time::Duration::from_millis(5)) => most = anonymous(pid).max(most),
        }
    }
    (anonymous(pid).max(most) - before, planned)
}

#[tokio::test]
async fn encoding_stays_within_the_planned_memory() {
    for kind in [GEMMA_3, GEMMA_4, QWEN_2] {
        let seeing = seeing(|path| write(kind, path)).await;
        let (took, planned) = takes(&seeing, &about(&plain(1120, 840))).await;
        // Nothing was measured otherwise.
        assert!(took > 64 << 20, "{took}");
        assert!(took <= planned, "{took} of {planned}");
    }
    let hearing = seeing(|path| sound::write_gemma(640, path)).await;
    let sound = BASE64_STANDARD.encode(sound::rising_for(1, 30));
    let part = json!({"type": "input_audio", "input_audio": {"data": sound, "format": "wav"}});
    let (took, planned) = takes(&hearing, &media_request(&part, "What do you hear?")).await;
    assert!(took > 64 << 20, "{took}");
    assert!(took <= planned, "{took} of {planned}");
}

#[tokio::test]
async fn a_pause_during_encoding_does_not_change_the_image() {
    let seeing = seeing(slow).await;
    let mut request = about(&stripes(1));
    request["logprobs"] = json!(true);
    // From its beginning.
    seeing.pause(60.0).await;
    let (first, ()) = tokio::join!(seeing.answer(&request), async {
        seeing.is_held(0).await;
        seeing.pause(0.0).await;
    });
    // And in its middle: what was made of an image before is kept, so it is another one.
    let mut other = about(&stripes(2));
    other["logprobs"] = json!(true);
    let (second, ()) = tokio::join!(seeing.answer(&other), async {
        while seeing.encodings().await["running"] == 0 {}
        seeing.pause(60.0).await;
        seeing.is_held(1).await;
        seeing.pause(0.0).await;
    });
    let alone = self::seeing(slow).await;
    for (request, paused) in [(&request, &first), (&other, &second)] {
        let answer = alone.answer(request).await;
        assert_eq!(
            answer["choices"][0]["message"],
            paused["choices"][0]["message"]
        );
    }
}

#[tokio::test]
async fn a_disconnect_cancels_a_paused_image() {
    let seeing = seeing(slow).await;
    seeing.pause(60.0).await;
    let request = about(&stripes(1));
    tokio::select! {
        answer = seeing.answer(&request) => panic!("{answer}"),
        () = seeing.is_held(0) => {}
    }
    let ended = async { while seeing.encodings().await["running"] != 0 {} };
    tokio::time::timeout(HANG, ended).await.unwrap();
    let ended = json!({"running": 0, "held": 0, "gave_way": 0, "done": 0, "cancelled": 1});
    assert_eq!(seeing.encodings().await, ended);
    assert!(
        seeing.worker.get("/props").await["yields_seconds"]
            .as_f64()
            .unwrap()
            > 0.0
    );
}

#[tokio::test]
async fn tokens_and_an_image_are_computed_in_turn() {
    let seeing = seeing(slow).await;
    let story = json!({"prompt": "Once", "max_tokens": 2000, "ignore_eos": true, "stream": true});
    let stream = seeing
        .worker
        .send("/v1/completions", story.to_string())
        .await;
    let stream = crate::support::first_chunk(stream).await;
    seeing.answer(&about(&stripes(1))).await;
    let encodings = seeing.encodings().await;
    assert!(encodings["gave_way"].as_u64().unwrap() > 0, "{encodings}");
    drop(stream);
}

/// Seconds of CPU that the process has used, of all its threads.
fn cpu_seconds(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // Behind the name in brackets, which may hold spaces: user and system time are the 12th and 13th, in hundredths.
    let fields = stat.rsplit_once(") ").unwrap().1.split_whitespace();
    let ticks = fields.skip(11).take(2);
    ticks
        .map(|ticks| ticks.parse::<f64>().unwrap())
        .sum::<f64>()
        / 100.0
}

/// With `TIERBAR_CANCELS=20` (`make bench-cancel`), prints how long the encoder computes after its client has left.
#[tokio::test]
#[ignore = "slow"]
async fn a_canceled_image_is_computed_no_further() {
    let cancels = std::env::var("TIERBAR_CANCELS").map_or(1_u8, |text| text.parse().unwrap());
    for threads in ["1", "2"] {
        let arguments = ["--threads", threads];
        let seeing = seeing_with(|path| write(GEMMA_3_BLOCKS, path), &arguments).await;
        let pid = seeing.worker.ready().pid;
        let mut seconds = Vec::new();
        for cancel in 0..cancels {
            // Another image each time: what was made of one before is kept.
            let request = about(&striped(cancel, 896, 896));
            let mut before = 0.0;
            tokio::select! {
                answer = seeing.answer(&request) => panic!("{answer}"),
                () = async {
                    while seeing.encodings().await["running"] == 0 {}
                    let moment = 40 * u64::from(cancel % 20);
                    tokio::time::sleep(std::time::Duration::from_millis(moment)).await;
                    before = cpu_seconds(pid);
                } => {}
            }
            let ended = async { while seeing.encodings().await["running"] != 0 {} };
            tokio::time::timeout(HANG, ended).await.unwrap();
            seconds.push(cpu_seconds(pid) - before);
        }
        let encodings = seeing.encodings().await;
        assert_eq!(encodings["cancelled"], cancels, "{encodings}");
        seconds.sort_by(f64::total_cmp);
        println!(
            "{threads} threads, {cancels} cancels: {:.2} s of CPU at the median, {:.2} s at most",
            seconds[seconds.len() / 2],
            seconds[seconds.len() - 1]
        );
    }
}
