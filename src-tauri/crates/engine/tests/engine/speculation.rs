//! Drafted tokens change the speed of an answer, and nothing else.

use crate::support::{GEMMA, SHALLOW, SMOLLM, Worker, completions, model};
use serde_json::{Value, json};

/// Greedy in effect where no tie is near, but not of the kind whose drafts depend on how this machine rounds.
const NEARLY_GREEDY: f64 = 0.01;

async fn answers(worker: &Worker, prompts: &[(String, Value)], temperature: f64) -> Vec<Value> {
    let mut answers = Vec::new();
    for (prompt, tokens) in prompts {
        let request =
            json!({"prompt": prompt, "max_tokens": tokens, "temperature": temperature, "seed": 1});
        let (status, answer) = worker.post("/v1/completions", &request).await;
        assert_eq!(status, 200, "{answer}");
        answers.push(answer);
    }
    answers
}

fn texts(answers: &[Value]) -> Vec<&Value> {
    answers
        .iter()
        .map(|answer| &answer["choices"][0]["text"])
        .collect()
}

/// Prompts whose answers are far from a tie: rounding differs between one token and several.
fn prompts(name: &str) -> Vec<(String, Value)> {
    let mut recorded = completions(name, 1.0);
    assert!(recorded.len() >= 10);
    recorded.sort_by_key(|(prompt, _)| prompt.len());
    // Beyond these, thousands of tokens are read for 32 that are drafted.
    let recorded = recorded.into_iter().take(10);
    let recorded = recorded.map(|(prompt, recorded)| (prompt, recorded["tokens"].clone()));
    [(repeated(), json!(48))]
        .into_iter()
        .chain(recorded)
        .collect()
}

/// A prompt whose answer repeats it. As the first, it is drafted whatever a draft costs.
fn repeated() -> String {
    "a b c d e f g, ".repeat(6) + "a b c d"
}

fn total(answers: &[Value], key: &str) -> u64 {
    let of = |answer: &Value| answer["timings"][key].as_u64().unwrap_or(0);
    answers.iter().map(of).sum()
}

async fn says_the_same(name: &str, guessing: &[&str]) {
    let prompts = prompts(name);
    let arguments = [&["--context", "2048"], guessing].concat();
    let plain = Worker::start(&model(name), &["--context", "2048"]).await;
    plain.ready();
    let expected = answers(&plain, &prompts, NEARLY_GREEDY).await;
    drop(plain);
    let guesses = Worker::start(&model(name), &arguments).await;
    guesses.ready();
    let found = answers(&guesses, &prompts, NEARLY_GREEDY).await;
    assert_eq!(texts(&found), texts(&expected));
    let (guessed, right) = (total(&found, "draft_n"), total(&found, "draft_n_accepted"));
    let generations = guesses.get("/props").await["generations"].clone();
    assert!(
        guessed > 0 && right > 0 && right <= guessed,
        "{right} of {guessed}"
    );
    assert_eq!(total(&expected, "draft_n"), 0);
    for answer in &found {
        let (timings, seen) = (&answer["timings"], &answer["timings"]["speculation"]);
        if !timings["draft_n"].is_null() {
            assert_eq!(seen["drafted"], timings["draft_n"], "{timings}");
            assert_eq!(seen["accepted"], timings["draft_n_accepted"], "{timings}");
        }
    }
    assert_eq!(generations["drafted"], guessed);
    assert_eq!(generations["accepted"], right);
}

#[tokio::test]
async fn smollm2_lookup_does_not_change_the_answer() {
    says_the_same(SMOLLM, &["--lookup"]).await;
}

#[tokio::test]
async fn gemma_3_lookup_does_not_change_the_answer() {
    says_the_same(GEMMA, &["--lookup"]).await;
}

#[tokio::test]
async fn a_draft_model_does_not_change_the_answer() {
    let draft = model(SMOLLM);
    says_the_same(SMOLLM, &["--draft-model", draft.to_str().unwrap()]).await;
}

#[tokio::test]
async fn greedy_answers_are_the_same_also_near_ties() {
    let prompts = [
        (repeated(), json!(128)),
        (
            "A list of words that rhyme: cat, hat,".to_owned(),
            json!(100),
        ),
        ("def area(shape):\n".to_owned(), json!(100)),
    ];
    let plain = Worker::start(&model(SMOLLM), &["--context", "2048"]).await;
    plain.ready();
    let expected = answers(&plain, &prompts, 0.0).await;
    drop(plain);
    let drafts = Worker::start(&model(SMOLLM), &["--context", "2048", "--lookup"]).await;
    drafts.ready();
    let found = answers(&drafts, &prompts, 0.0).await;
    assert_eq!(texts(&found), texts(&expected));
    let generations = drafts.get("/props").await["generations"].clone();
    if generations["drafts_differ"] == true {
        // Several tokens round differently from one on this machine, and an answer says that it had no drafts.
        let rested = |answer: &Value| answer["timings"]["speculation"]["rested"] == true;
        assert!(found.iter().any(rested), "{found:?}");
    } else {
        assert!(total(&found, "draft_n") > 0, "{generations}");
    }
}

#[tokio::test]
async fn a_draft_model_of_another_vocabulary_is_refused() {
    let draft = model(GEMMA);
    let arguments = ["--draft-model", draft.to_str().unwrap()];
    let worker = Worker::start(&model(SMOLLM), &arguments).await;
    assert!(worker.failure().message.contains("vocabulary"));
}

#[tokio::test]
async fn stops_and_limits_apply_within_a_draft() {
    let worker = Worker::start(&model(SMOLLM), &["--context", "1024", "--lookup"]).await;
    worker.ready();
    let prompt = "a b c d e f g, a b c d e f g, a b c d e f g, a b c d";
    for limit in 1..20 {
        let request =
            json!({"prompt": prompt, "max_tokens": limit, "temperature": 0, "ignore_eos": true});
        let (_, answer) = worker.post("/v1/completions", &request).await;
        assert_eq!(answer["usage"]["completion_tokens"], limit, "{answer}");
    }
    let request =
        json!({"prompt": prompt, "max_tokens": 30, "temperature": 0, "stop": ["f g, a b c"]});
    let (_, answer) = worker.post("/v1/completions", &request).await;
    assert_eq!(answer["choices"][0]["finish_reason"], "stop", "{answer}");
    assert_eq!(answer["choices"][0]["text"], " e ");
}

#[tokio::test]
async fn no_drafts_while_evicted_prompts_are_prefilled() {
    let arguments = ["--context", "512", "--slots", "2", "--lookup"];
    let worker = Worker::start(&model(SHALLOW), &arguments).await;
    worker.ready();
    let request = |letter: &str| {
        let prompt = format!("{letter} = 1, {letter} = 2, ").repeat(6);
        json!({"prompt": prompt, "max_tokens": 300, "temperature": 0, "ignore_eos": true})
    };
    let (x, y) = (request("x"), request("y"));
    let path = "/v1/completions";
    let (first, second) = tokio::join!(worker.post(path, &x), worker.post(path, &y));
    for (status, answer) in [first, second] {
        assert_eq!(status, 200, "{answer}");
        assert_eq!(answer["usage"]["completion_tokens"], 300);
    }
}

#[tokio::test]
async fn a_losing_draft_model_is_paused() {
    let draft = model(SMOLLM);
    let arguments = [
        "--context",
        "1024",
        "--draft-model",
        draft.to_str().unwrap(),
    ];
    // A draft model as large as the model, at a temperature that makes its predictions miss.
    let request = json!({"prompt": "Once upon a time", "max_tokens": 200, "temperature": 2, "seed": 1, "ignore_eos": true});
    // Whether it loses is decided by the clock, which a busy machine may bend once.
    let mut rested = Vec::new();
    for _ in 0..3 {
        let worker = Worker::start(&model(SMOLLM), &arguments).await;
        worker.ready();
        let (status, answer) = worker.post("/v1/completions", &request).await;
        assert_eq!(status, 200);
        let drafted = answer["timings"]["draft_n"].as_u64().unwrap_or(0);
        let generations = worker.get("/props").await["generations"].clone();
        rested.push(generations["drafting_rests"] == true && drafted < 400);
    }
    let rests = rested.iter().filter(|rested| **rested).count();
    assert!(rests >= 2, "it rested in {rests} of 3");
}
