//! Sounds in messages. There is no model here that hears: a projector of weights that mean nothing shows that what it makes of
//! a sound reaches the model where, and as, llama-server brings it there.

use crate::support::{
    SMOLLM, Worker, model,
    sound::{rising, write},
    write_recorded_media,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

const CHAT: &str = "/v1/chat/completions";
/// As for images: probabilities differ by as much from one division of a prompt into evaluations to another.
const SAME: f64 = 0.03;
/// Of SmolLM2's embeddings.
const WIDTH: u32 = 576;

struct Hearing {
    worker: Worker,
    _folder: tempfile::TempDir,
}

async fn hearing() -> Hearing {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mmproj.gguf");
    write(WIDTH, &path);
    let arguments = ["--context", "2048", "--projector", path.to_str().unwrap()];
    let worker = Worker::start(&model(SMOLLM), &arguments).await;
    worker.ready();
    Hearing {
        worker,
        _folder: folder,
    }
}

fn audio_request(file: &[u8]) -> Value {
    json!({"type": "input_audio", "input_audio": {"data": BASE64_STANDARD.encode(file), "format": "wav"}})
}

fn about(file: &[u8]) -> Value {
    let question = json!({"type": "text", "text": "What do you hear?"});
    json!({"messages": [{"role": "user", "content": [audio_request(file), question]}], "max_tokens": 12, "temperature": 0})
}

fn cached(answer: &Value) -> u64 {
    answer["timings"]["cache_n"].as_u64().unwrap()
}

fn prompted(answer: &Value) -> u64 {
    answer["usage"]["prompt_tokens"].as_u64().unwrap()
}

impl Hearing {
    async fn answer(&self, request: &Value) -> Value {
        let (status, answer) = self.worker.post(CHAT, request).await;
        assert_eq!(status, 200, "{answer}");
        answer
    }

    /// The likeliest first tokens with their probabilities.
    async fn first(&self, request: &Value) -> Vec<(String, f64)> {
        let mut request = request.clone();
        for (key, value) in [
            ("max_tokens", json!(1)),
            ("logprobs", json!(true)),
            ("top_logprobs", json!(20)),
            ("cache_prompt", json!(false)),
        ] {
            request[key] = value;
        }
        let answer = self.answer(&request).await;
        likely(&answer["choices"][0]["logprobs"]["content"][0]["top_logprobs"])
    }
}

fn likely(top: &Value) -> Vec<(String, f64)> {
    let each = top.as_array().unwrap().iter();
    each.map(|one| {
        let token = one["token"].as_str().unwrap().to_owned();
        (token, one["logprob"].as_f64().unwrap().exp())
    })
    .collect()
}

/// The largest distance of the probabilities that both know; infinite where less than half are known to both.
fn distance(one: &[(String, f64)], other: &[(String, f64)]) -> f64 {
    let known = one.iter().filter_map(|(token, probability)| {
        let (_, their) = other.iter().find(|(name, _)| name == token)?;
        Some((probability - their).abs())
    });
    let known: Vec<f64> = known.collect();
    if known.len() < 10 {
        return f64::INFINITY;
    }
    known.into_iter().fold(0.0, f64::max)
}

#[tokio::test]
async fn sounds_are_distinguished_and_reused() {
    let hearing = hearing().await;
    let props = hearing.worker.get("/props").await;
    assert_eq!(props["modalities"], json!({"vision": false, "audio": true}));
    let (one, other) = (about(&rising(1)), about(&rising(4)));
    let first = hearing.answer(&one).await;
    assert_eq!(cached(&first), 0);
    let again = hearing.answer(&one).await;
    assert_eq!(again["choices"], first["choices"]);
    assert_eq!(cached(&again), prompted(&first) - 1);
    let another = hearing.answer(&other).await;
    assert_eq!(prompted(&another), prompted(&first));
    assert!(cached(&another) < prompted(&first) / 2, "{another}");
    let (heard_one, heard_other) = (hearing.first(&one).await, hearing.first(&other).await);
    assert!(distance(&heard_one, &hearing.first(&one).await) < SAME);
    let apart = distance(&heard_one, &heard_other);
    assert!(apart > SAME, "{apart}");
}

#[tokio::test]
async fn sounds_match_llama_server() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../tests/fixtures/media.json"
    );
    let recorded: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let cases = recorded["sounds"].as_array().unwrap();
    assert!(cases.len() >= 3);
    let hearing = hearing().await;
    for (number, case) in cases.iter().enumerate() {
        let mut request = case["request"].clone();
        for message in request["messages"].as_array_mut().unwrap() {
            for part in message["content"].as_array_mut().unwrap() {
                if let Some(of) = part["rising"].as_u64() {
                    *part = audio_request(&rising(u8::try_from(of).unwrap()));
                }
            }
        }
        let apart = distance(
            &hearing.first(&request).await,
            &likely(&case["top_logprobs"]),
        );
        assert!(apart < SAME, "case {number}: {apart}");
        let answer = hearing.answer(&request).await;
        assert_eq!(prompted(&answer), case["prompt_tokens"], "case {number}");
    }
}

#[tokio::test]
async fn invalid_sounds_are_refused() {
    let hearing = hearing().await;
    let whole = rising(1);
    let mut fast = whole.clone();
    fast[24..28].copy_from_slice(&u32::MAX.to_le_bytes());
    for (file, expected) in [
        (&whole[..20], "truncated or damaged"),
        (&b"not a sound at all"[..], "unknown format"),
        (&fast[..], "samples per second"),
    ] {
        let (status, answer) = hearing.worker.post(CHAT, &about(file)).await;
        assert_eq!(status, 400, "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(expected), "{message}");
    }
    hearing.answer(&about(&whole)).await;
}

#[test]
fn the_written_projector_and_sounds_equal_the_recorded() {
    write_recorded_media(|folder| {
        write(WIDTH, &folder.join("sounds.mmproj"));
        for of in [1, 4] {
            std::fs::write(folder.join(format!("rising-{of}.wav")), rising(of)).unwrap();
        }
    });
}
