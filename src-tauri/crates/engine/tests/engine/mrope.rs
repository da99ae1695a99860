//! Images for models that number their positions in rows and columns (M-RoPE): many rows of one position, and text that goes
//! on some positions later. The models are of weights that mean nothing, and talk nonsense that tells any two pasts apart.

use crate::support::{
    HANG, Worker,
    projector::{self, GRID, striped, stripes},
    qwen::{self, Family},
    write_recorded_media,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::{
    path::{Path, PathBuf},
    sync::Mutex,
};
use tempfile::TempDir;

const CHAT: &str = "/v1/chat/completions";
/// How far a token is from the next likely one, in the logarithm, differs by as much from one place in the cache to another:
/// 0.36 was measured, and 0.1 without any image. Attention is summed up in 16 bits, by place.
const NEAR: f64 = 0.75;
/// And by 0.004 of the model with a recurrent layer.
const NEARER: f64 = 0.05;
/// Of the tokens that are compared, in tenths.
const LEAST_TENTHS: usize = 6;
const SAVE: &str = "/v1/context/save";
const FAMILIES: [Family; 2] = [Family::Attention, Family::Hybrid];

fn files(family: Family, folder: &Path) -> [PathBuf; 2] {
    let paths = ["model.gguf", "mmproj.gguf"].map(|name| folder.join(name));
    qwen::write(family, &paths[0]);
    projector::write(GRID, &paths[1]);
    paths
}

/// By the names that they are recorded with.
fn file(name: &str) -> Vec<u8> {
    match name {
        "wide.png" => striped(2, 168, 84),
        "large.png" => striped(1, 560, 420),
        other => {
            let of = other.strip_prefix("stripes-").unwrap();
            stripes(of.strip_suffix(".png").unwrap().parse().unwrap())
        }
    }
}

#[test]
fn the_written_models_and_images_equal_the_recorded() {
    write_recorded_media(|folder| {
        for family in FAMILIES {
            let [model, _] = files(family, folder);
            std::fs::rename(model, folder.join(family.file())).unwrap();
        }
        for name in ["wide.png", "large.png"] {
            std::fs::write(folder.join(name), file(name)).unwrap();
        }
    });
}

struct Seeing {
    worker: Worker,
    compared: Mutex<Compared>,
    _folder: TempDir,
}

async fn seeing(family: Family, extra: &[&str]) -> Seeing {
    let folder = tempfile::tempdir().unwrap();
    let [model, projector] = files(family, folder.path());
    let mut arguments = vec!["--projector", projector.to_str().unwrap()];
    arguments.extend(extra);
    let worker = Worker::start(&model, &arguments).await;
    worker.ready();
    Seeing {
        worker,
        compared: Mutex::default(),
        _folder: folder,
    }
}

impl Seeing {
    async fn answer(&self, request: &Value) -> Value {
        let (status, answer) = self.worker.post(CHAT, request).await;
        assert_eq!(status, 200, "{answer}");
        answer
    }

    /// Without anything that is held.
    async fn fresh(&self, request: &Value) -> Value {
        let mut request = request.clone();
        request["cache_prompt"] = json!(false);
        let answer = self.answer(&request).await;
        assert_eq!(cached(&answer), 0);
        answer
    }

    /// Answered with what is held as without it.
    async fn checked(&self, request: &Value) -> Value {
        let answer = self.answer(request).await;
        let fresh = self.fresh(request).await;
        assert_eq!(prompted(&answer), prompted(&fresh));
        let (answered, fresh) = (tokens(&answer, 0), tokens(&fresh, 0));
        self.compared.lock().unwrap().add(&answered, &fresh);
        answer
    }

    async fn tokens(&self, text: &str) -> u64 {
        let request = json!({"content": text});
        let (_, answer) = self.worker.post("/tokenize", &request).await;
        answer["tokens"].as_array().unwrap().len() as u64
    }
}

fn picture(file: &[u8]) -> Value {
    let url = format!("data:image/png;base64,{}", BASE64_STANDARD.encode(file));
    json!({"type": "image_url", "image_url": {"url": url}})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn message(role: &str, content: impl Into<Value>) -> Value {
    json!({"role": role, "content": content.into()})
}

fn talk(messages: &[Value]) -> Value {
    json!({"messages": messages, "max_tokens": 24, "temperature": 0, "ignore_eos": true, "logprobs": true, "top_logprobs": 2})
}

fn chat_request(parts: Vec<Value>) -> Value {
    talk(&[message("user", parts)])
}

fn answer_text(answer: &Value) -> &str {
    answer["choices"][0]["message"]["content"].as_str().unwrap()
}

/// The tokens of a choice, and how far each is from the next likely one.
fn tokens(answer: &Value, choice: usize) -> Vec<(String, f64)> {
    let content = &answer["choices"][choice]["logprobs"]["content"];
    let each = content.as_array().unwrap().iter();
    each.map(|one| {
        let of = |rank: usize| one["top_logprobs"][rank]["logprob"].as_f64().unwrap();
        let token = one["token"].as_str().unwrap();
        // llama-server returns control tokens without their names.
        let token = if token.starts_with("<|") { "" } else { token };
        (token.to_owned(), of(0) - of(1))
    })
    .collect()
}

/// Answers that were compared, token by token: the same tokens, about as far from the next likely ones, up to one that is
/// nearly a tie.
#[derive(Default)]
struct Compared {
    same: usize,
    all: usize,
}

impl Compared {
    fn add(&mut self, ours: &[(String, f64)], expected: &[(String, f64)]) {
        self.add_within(NEAR, ours, expected);
    }

    fn add_within(&mut self, near: f64, ours: &[(String, f64)], expected: &[(String, f64)]) {
        assert_eq!(ours.len(), expected.len());
        self.all += expected.len();
        for (place, (our, their)) in ours.iter().zip(expected).enumerate() {
            let turned = our.0 != their.0;
            let distance = if turned {
                our.1 + their.1
            } else {
                (our.1 - their.1).abs()
            };
            assert!(distance < near, "at {place}: {our:?} {their:?}");
            if turned {
                return;
            }
            self.same += 1;
        }
    }
}

/// A tie ends one comparison. Ties in most of them would be another model.
impl Drop for Compared {
    fn drop(&mut self) {
        let Self { same, all } = self;
        assert!(
            std::thread::panicking() || *same * 10 >= *all * LEAST_TENTHS,
            "{same} of {all} tokens"
        );
    }
}

fn cached(answer: &Value) -> u64 {
    answer["timings"]["cache_n"].as_u64().unwrap()
}

fn prompted(answer: &Value) -> u64 {
    answer["usage"]["prompt_tokens"].as_u64().unwrap()
}

#[tokio::test]
async fn answers_about_images_match_llama_server() {
    let mut compared = Compared::default();
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../tests/fixtures/media.json"
    );
    let recorded: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for family in FAMILIES {
        // An image of 300 rows takes several evaluations.
        let seeing = seeing(family, &["--batch", "64"]).await;
        let cases = recorded[family.file()].as_array().unwrap();
        assert!(cases.len() >= 6);
        for case in cases {
            let mut request = case["request"].clone();
            (request["logprobs"], request["top_logprobs"]) = (json!(true), json!(2));
            for message in request["messages"].as_array_mut().unwrap() {
                let parts = message["content"].as_array_mut();
                for part in parts.into_iter().flatten() {
                    if let Some(name) = part["file"].as_str() {
                        *part = picture(&file(name));
                    }
                }
            }
            let expected: Vec<(String, f64)> =
                serde_json::from_value(case["tokens"].clone()).unwrap();
            let answer = seeing.checked(&request).await;
            assert_eq!(prompted(&answer), case["prompt_tokens"], "{case}");
            compared.add(&tokens(&answer, 0), &expected);
            let again = seeing.checked(&request).await;
            compared.add(&tokens(&again, 0), &expected);
            assert_eq!(cached(&again), prompted(&again) - 1, "{case}");
        }
    }
}

#[tokio::test]
async fn a_conversation_continues_after_its_images() {
    for family in FAMILIES {
        let seeing = seeing(family, &[]).await;
        let look = vec![text("Look: "), picture(&file("large.png")), text("Well?")];
        let mut messages = vec![message("user", look)];
        let mut before = seeing.checked(&talk(&messages)).await;
        for next in [
            vec![text("And then?")],
            vec![text("Or "), picture(&file("wide.png"))],
            vec![picture(&file("large.png")), text("again")],
        ] {
            messages.push(message("assistant", answer_text(&before)));
            messages.push(message("user", next));
            let answer = seeing.checked(&talk(&messages)).await;
            assert!(cached(&answer) >= prompted(&before) - 1, "{answer}");
            before = answer;
        }
    }
}

#[tokio::test]
async fn a_different_image_or_question_shares_the_prefix() {
    let mut compared = Compared::default();
    for family in FAMILIES {
        let seeing = seeing(family, &[]).await;
        let about = |image: &str, question: &str| {
            chat_request(vec![text("See "), picture(&file(image)), text(question)])
        };
        let first = seeing.checked(&about("large.png", "What is it?")).await;
        let start = seeing
            .tokens("<|im_start|>user\nSee <|vision_start|>")
            .await;
        let rows = prompted(&first) - seeing.tokens(BEHIND).await - start;
        assert_eq!(rows, 20 * 15);
        let other_image = seeing.checked(&about("wide.png", "What is it?")).await;
        assert_ne!(answer_text(&other_image), answer_text(&first));
        let again = seeing.checked(&about("large.png", "What is it?")).await;
        compared.add(&tokens(&again, 0), &tokens(&first, 0));
        let other_question = seeing.checked(&about("large.png", "Where was it?")).await;
        assert_ne!(answer_text(&other_question), answer_text(&first));
        if family == Family::Attention {
            assert_eq!(cached(&other_image), start);
            let shared = seeing.tokens("<|vision_end|>Wh").await;
            assert_eq!(cached(&other_question), start + rows + shared);
        }
    }
}

/// What is behind the image in the prompt of "What is it?".
const BEHIND: &str = "<|vision_end|>What is it?<|im_end|>\n<|im_start|>assistant\n";

#[tokio::test]
async fn a_large_image_is_scaled_to_the_context() {
    let seeing = seeing(Family::Attention, &["--context", "1024"]).await;
    // At its own size it would have 2,000 rows.
    let photograph = picture(&striped(4, 1400, 1120));
    let look = chat_request(vec![photograph, text("What is it?")]);
    let rows = prompted(&seeing.checked(&look).await);
    assert!((200..=330).contains(&rows), "{rows}");
}

#[tokio::test]
async fn concurrent_images_are_answered_as_single_ones() {
    let mut compared = Compared::default();
    for family in FAMILIES {
        let seeing = seeing(family, &["--slots", "4"]).await;
        let mut requests: Vec<_> = ["large.png", "wide.png", "stripes-1.png"]
            .map(|name| chat_request(vec![picture(&file(name)), text("What is it?")]))
            .into();
        requests.push(talk(&[message("user", "What is it?")]));
        let mut alone = Vec::new();
        for request in &requests {
            alone.push(seeing.fresh(request).await);
        }
        let many = requests.iter().chain(&requests);
        let together = join_all(many.map(|request| seeing.answer(request))).await;
        for (answer, alone) in together.iter().zip(alone.iter().cycle()) {
            compared.add(&tokens(answer, 0), &tokens(alone, 0));
        }
        let mut twice = requests[0].clone();
        twice["n"] = json!(2);
        let twice = seeing.answer(&twice).await;
        for choice in 0..2 {
            compared.add(&tokens(&twice, choice), &tokens(&alone[0], 0));
        }
    }
}

#[tokio::test]
async fn images_without_room_wait_and_complete() {
    let mut compared = Compared::default();
    for family in FAMILIES {
        let arguments = ["--slots", "3", "--context", "512"];
        let seeing = seeing(family, &arguments).await;
        let requests: Vec<_> = (1..4)
            .map(|of| {
                let image = picture(&striped(of, 336, 336));
                let mut request = chat_request(vec![image, text("What is it?")]);
                request["max_tokens"] = json!(100);
                request
            })
            .collect();
        let mut alone = Vec::new();
        for request in &requests {
            alone.push(seeing.fresh(request).await);
        }
        let together = join_all(requests.iter().map(|request| seeing.answer(request))).await;
        for (answer, alone) in together.iter().zip(&alone) {
            compared.add(&tokens(answer, 0), &tokens(alone, 0));
        }
    }
}

#[tokio::test]
async fn a_cancelled_image_is_read_from_the_start() {
    for family in FAMILIES {
        let seeing = seeing(family, &["--batch", "64", "--context", "8192"]).await;
        let mut cut = 0;
        // On a busy machine the client may see too late that it is read.
        for of in 0..40 {
            if cut > 0 && of >= 6 {
                break;
            }
            // 1,200 rows, of which only the first are evaluated when the client goes.
            let image = picture(&striped(of, 1120, 840));
            let parts = vec![text("See "), image, text("What is it?")];
            let request = chat_request(parts);
            let running =
                async { while seeing.worker.get("/props").await["generations"]["running"] == 0 {} };
            tokio::select! {
                _ = seeing.worker.post(CHAT, &request) => {}
                seen = tokio::time::timeout(HANG, running) => seen.unwrap(),
            }
            let answer = seeing.checked(&request).await;
            let start = seeing
                .tokens("<|im_start|>user\nSee <|vision_start|>")
                .await;
            let read = cached(&answer);
            assert!(read <= start || read >= start + 1200, "{answer}");
            cut += usize::from(read <= start);
        }
        // Else nothing was cancelled in time, and nothing shown.
        assert!(cut > 0);
    }
}

#[tokio::test]
async fn a_paused_image_is_read_to_the_end() {
    let mut compared = Compared::default();
    // Its state does not survive an evaluation that is broken off.
    let seeing = seeing(Family::Hybrid, &["--batch", "64", "--slots", "1"]).await;
    // 320 rows, of several evaluations.
    let image = picture(&striped(7, 560, 448));
    let request = chat_request(vec![text("See "), image, text("What is it?")]);
    let fresh = seeing.fresh(&request).await;
    for _ in 0..20 {
        let mut again = request.clone();
        again["cache_prompt"] = json!(false);
        let standing_still = async {
            loop {
                let props = seeing.worker.get("/props").await;
                if props["generations"]["running"] != 0 {
                    let (status, _) = seeing
                        .worker
                        .post("/yield", &json!({"seconds": 0.001}))
                        .await;
                    assert_eq!(status, 200);
                    break;
                }
            }
            std::future::pending().await
        };
        let answer = tokio::select! {
            answer = seeing.answer(&again) => answer,
            () = standing_still => unreachable!(),
        };
        compared.add_within(NEARER, &tokens(&answer, 0), &tokens(&fresh, 0));
    }
}

#[tokio::test]
async fn a_saved_context_with_images_survives_a_restart() {
    let mut compared = Compared::default();
    for family in FAMILIES {
        let folder = tempfile::tempdir().unwrap();
        let contexts = ["--contexts", folder.path().to_str().unwrap()];
        let look = vec![picture(&file("large.png")), text("Well?")];
        let mut messages = vec![message("user", look)];
        let first = seeing(family, &contexts).await;
        let sent = json!({"name": "sent", "messages": messages});
        let (status, saved) = first.worker.post(SAVE, &sent).await;
        assert_eq!(status, 200, "{saved}");
        let answer = first.checked(&talk(&messages)).await;
        assert_eq!(cached(&answer), saved["tokens"].as_u64().unwrap());
        drop(first);

        let second = seeing(family, &contexts).await;
        let again = second.checked(&talk(&messages)).await;
        assert_eq!(cached(&again), saved["tokens"].as_u64().unwrap());
        compared.add(&tokens(&again, 0), &tokens(&answer, 0));
        // What was answered last, without being sent.
        let again = second.answer(&talk(&messages)).await;
        let (status, held) = second.worker.post(SAVE, &json!({"name": "held"})).await;
        assert_eq!(status, 200, "{held}");
        let whole = again["usage"]["total_tokens"].as_u64().unwrap();
        assert_eq!(held["tokens"], whole - 1);
        drop(second);

        let third = seeing(family, &contexts).await;
        let load = json!({"name": "held"});
        let (status, loaded) = third.worker.post("/v1/context/load", &load).await;
        assert_eq!(status, 200, "{loaded}");
        assert_eq!(loaded["timings"]["cache_n"], held["tokens"]);
        messages.push(message("assistant", answer_text(&again)));
        messages.push(message("user", "And then?"));
        let next = third.checked(&talk(&messages)).await;
        // At least the other state: an answer's text does not always tokenize to the same tokens.
        assert!(cached(&next) >= saved["tokens"].as_u64().unwrap(), "{next}");
        // The same image, in a conversation that is not the saved one.
        let look = vec![picture(&file("large.png")), text("Where?")];
        third.checked(&talk(&[message("user", look)])).await;
    }
}
