//! Constraints on answers in the forms of vLLM's API, and where answers end.

use crate::support::Worker;
use serde_json::{Value, json};

async fn chat(worker: &Worker, fields: Value) -> (u16, Value) {
    let mut request = json!({"messages": [{"role": "user", "content": "Tell me about the sea."}], "max_tokens": 24, "seed": 7});
    for (name, value) in fields.as_object().unwrap() {
        request[name] = value.clone();
    }
    worker.post("/v1/chat/completions", &request).await
}

#[tokio::test]
async fn an_answer_has_the_form_that_is_asked_for() {
    let worker = Worker::smollm().await;
    let schema = json!({"type": "object", "properties": {"n": {"enum": [7]}}, "required": ["n"], "additionalProperties": false});
    for (fields, allowed) in [
        (
            json!({"guided_choice": ["blue whale", "crab"]}),
            &["blue whale", "crab"][..],
        ),
        (
            json!({"structured_outputs": {"choice": ["crab"]}}),
            &["crab"],
        ),
        (
            json!({"guided_grammar": "root ::= \"a\" [0-1]"}),
            &["a0", "a1"],
        ),
    ] {
        let (_, answer) = chat(&worker, fields).await;
        let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
        assert!(allowed.contains(&text), "{text}");
    }
    for fields in [
        json!({"guided_json": schema}),
        json!({"structured_outputs": {"json": schema}}),
    ] {
        let (_, answer) = chat(&worker, fields).await;
        let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(text).unwrap(),
            json!({"n": 7})
        );
    }
    let (_, answer) = chat(
        &worker,
        json!({"guided_regex": r"^\d{3}-[A-F]{2}( (yes|no))?$"}),
    )
    .await;
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
    let (digits, letters) = text.split_at(4);
    assert!(
        digits.ends_with('-') && digits[..3].bytes().all(|one| one.is_ascii_digit()),
        "{text}"
    );
    assert!(
        letters[..2].bytes().all(|one| (b'A'..=b'F').contains(&one)),
        "{text}"
    );
    let (status, body) = chat(&worker, json!({"guided_regex": r"\bsea\b"})).await;
    assert_eq!(status, 400);
    assert!(
        body["error"]["message"]
            .as_str()
            .unwrap()
            .contains("`guided_regex`"),
        "{body}"
    );
}

#[tokio::test]
async fn an_answer_is_valid_by_each_keyword_of_its_schema() {
    let worker = Worker::smollm().await;
    let form = |schema: Value| json!({"type": "json_schema", "json_schema": {"name": "a", "schema": schema}});
    let share = json!({"type": "number", "exclusiveMinimum": 0, "maximum": 1});
    for path in ["/v1/chat/completions", "/v1/completions"] {
        let request = json!({"messages": [{"role": "user", "content": "A number."}], "prompt": "A number:",
                             "max_tokens": 24, "seed": 7, "response_format": form(share.clone())});
        let (_, answer) = worker.post(path, &request).await;
        let choice = &answer["choices"][0];
        let text = choice["text"]
            .as_str()
            .or(choice["message"]["content"].as_str());
        let number: f64 = text.unwrap().trim().parse().unwrap();
        assert!(number > 0.0 && number <= 1.0, "{path}: {answer}");
    }
    let code = form(json!({"type": "string", "pattern": "^[A-F]{2}[0-9]$"}));
    let (_, answer) = chat(&worker, json!({"response_format": code})).await;
    let text = answer["choices"][0]["message"]["content"].as_str().unwrap();
    let code: String = serde_json::from_str(text).unwrap();
    assert!(
        code.len() == 3 && code.ends_with(|last: char| last.is_ascii_digit()),
        "{text}"
    );
    for (schema, place) in [
        (
            json!({"properties": {"a": {"not": {}}}}),
            "`not` at `#/properties/a`",
        ),
        (
            json!({"type": "integer", "minimum": 5, "maximum": 3}),
            "`#`",
        ),
        (json!({"type": "strng"}), "`#`"),
        (json!(false), "`#`"),
    ] {
        let (status, body) = chat(&worker, json!({"response_format": form(schema)})).await;
        let message = body["error"]["message"].as_str().unwrap();
        assert_eq!(status, 400, "{body}");
        assert!(message.starts_with(place), "{message}");
    }
    let look = json!({"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}});
    let seven = json!({"type": "object", "properties": {"n": {"enum": [7]}}, "required": ["n"]});
    let both = json!({"tools": [look], "response_format": form(seven), "max_tokens": 60});
    let (status, answer) = chat(&worker, both).await;
    assert_eq!(status, 200, "{answer}");
    let message = &answer["choices"][0]["message"];
    let called = message["tool_calls"][0]["function"]["name"] == "look";
    let text = message["content"].as_str().unwrap_or_default();
    let formed = serde_json::from_str::<Value>(text).is_ok_and(|read| read == json!({"n": 7}));
    assert!(called != formed, "{answer}");
}

#[tokio::test]
async fn an_answer_has_at_least_so_many_tokens() {
    let worker = Worker::smollm().await;
    // Its own choice would be to end at once.
    let ends = json!({"logit_bias": {"2": 30}, "temperature": 0});
    let (_, short) = chat(&worker, ends.clone()).await;
    assert_eq!(short["usage"]["completion_tokens"], 1);
    let mut fields = ends;
    fields["min_tokens"] = json!(5);
    let (_, answer) = chat(&worker, fields).await;
    assert_eq!(
        answer["usage"]["completion_tokens"], 6,
        "five, and the end: {answer}"
    );
    let stops = json!({"stop": [" ", "e", "a"], "min_tokens": 5});
    let (_, answer) = chat(&worker, stops).await;
    assert!(
        answer["usage"]["completion_tokens"].as_u64().unwrap() > 5,
        "no stop string before: {answer}"
    );
}

#[tokio::test]
async fn a_token_can_end_an_answer() {
    let worker = Worker::smollm().await;
    let complete = async |fields: Value| {
        let mut request =
            json!({"prompt": "1, 2, 3, 4, 5, 6, 7, 8, 9,", "max_tokens": 12, "temperature": 0});
        for (name, value) in fields.as_object().unwrap() {
            request[name] = value.clone();
        }
        worker.post("/v1/completions", &request).await.1["choices"][0].clone()
    };
    let (_, comma) = worker.post("/tokenize", &json!({"content": ","})).await;
    let comma = comma["tokens"][0].clone();
    let answer = complete(json!({"stop_token_ids": [comma]})).await;
    assert_eq!(answer["text"], " 10");
    assert_eq!(answer["finish_reason"], "stop");
    assert_eq!(answer["stop_reason"], comma);
}

#[tokio::test]
async fn a_character_that_is_cut_is_left_out() {
    let worker = Worker::smollm().await;
    let fields = json!({"grammar": "root ::= \"sea \" [\\U0001F300-\\U0001F5FF]", "max_tokens": 3});
    let (_, whole) = chat(&worker, fields.clone()).await;
    let text = whole["choices"][0]["message"]["content"].as_str().unwrap();
    assert_eq!(whole["choices"][0]["finish_reason"], "length", "{whole}");
    assert!("sea ".starts_with(text), "{text:?}");
    let request = json!({"messages": [{"role": "user", "content": "Tell me about the sea."}], "seed": 7, "stream": true,
                         "grammar": fields["grammar"], "max_tokens": 3});
    let events = worker.stream("/v1/chat/completions", &request).await;
    assert!(!events.concat().contains('\u{fffd}'), "{events:?}");
}
