use super::*;
use serde_json::json;

#[test]
fn missing_and_null_fields_are_equal() {
    let chunk: Chunk = serde_json::from_value(json!({
        "id": null, "choices": [{"index": 0, "delta": {"content": null, "tool_calls": null}, "finish_reason": null}],
        "usage": null,
    }))
    .unwrap();
    assert!(!chunk.choices[0].has_content() && chunk.usage.is_none());
    let chunk: Chunk = serde_json::from_value(json!({
        "choices": [{"delta": null}, {"delta": {"tool_calls": [{"index": null, "function": null}]}}],
        "usage": {"prompt_tokens": 5, "completion_tokens": null}, "timings": {"prompt_ms": null},
    }))
    .unwrap();
    let usage = Usage::deserialize(chunk.usage.unwrap()).unwrap();
    assert!(Timings::deserialize(chunk.timings.unwrap()).is_ok());
    assert_eq!((usage.prompt_tokens, usage.completion_tokens), (5, 0));
    let odd = json!({"choices": [], "usage": {"prompt_tokens": -1}, "timings": "fast"});
    let odd: Chunk = serde_json::from_value(odd).unwrap();
    // What these are read as where they are needed: nothing.
    let (usage, timings) = (odd.usage.unwrap(), odd.timings.unwrap());
    assert!(Usage::deserialize(usage).is_err() && Timings::deserialize(timings).is_err());
    let none: Chunk = serde_json::from_value(json!({"choices": null})).unwrap();
    assert!(none.choices.is_empty());
}

#[test]
fn reasoning_has_two_names_and_text_may_be_parts() {
    for (reply, thought) in [
        (
            json!({"reasoning": "hm", "reasoning_content": null}),
            Some("hm"),
        ),
        (
            json!({"reasoning": "hm", "reasoning_content": "hm"}),
            Some("hm"),
        ),
        (
            json!({"reasoning": null, "reasoning_content": "hm"}),
            Some("hm"),
        ),
        (json!({"reasoning": "", "reasoning_content": ""}), None),
        (json!({"reasoning": {"effort": "low"}}), None),
    ] {
        let mut message: Message = serde_json::from_value(reply).unwrap();
        assert_eq!(message.thoughts().as_deref(), thought);
    }
    let parts = json!({"content": [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]});
    let mut message: Message = serde_json::from_value(parts).unwrap();
    assert_eq!(
        (message.text().as_deref(), message.thoughts()),
        (Some("ab"), None)
    );
    for (content, text) in [
        (json!({"text": "a"}), "a"),
        (json!(["a", "b"]), "ab"),
        (json!(7), "7"),
    ] {
        let mut message: Message = serde_json::from_value(json!({"content": content})).unwrap();
        assert_eq!(message.text().unwrap(), text);
    }
    let odd = json!({"content": {"parts": ["a"]}});
    assert!(serde_json::from_value::<Message>(odd).is_err());
    let object: Function =
        serde_json::from_value(json!({"name": "look", "arguments": {"at": 1}})).unwrap();
    assert_eq!(object.arguments.unwrap(), r#"{"at":1}"#);
}

#[test]
fn a_refusal_and_thoughts_among_parts_are_content() {
    let text = json!([{"type": "text", "text": "hm"}]);
    for (reply, thought, text) in [
        (
            json!({"content": null, "refusal": "I can't."}),
            None,
            Some("I can't."),
        ),
        (
            json!({"content": "Yes", "refusal": null}),
            None,
            Some("Yes"),
        ),
        (
            json!({"content": [{"type": "thinking", "thinking": text}]}),
            Some("hm"),
            None,
        ),
        (
            json!({"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Yes"}]}),
            Some("hm"),
            Some("Yes"),
        ),
    ] {
        let choice = json!({"choices": [{"delta": reply}]});
        let chunk: Chunk = serde_json::from_value(choice).unwrap();
        let mut choice = chunk.choices.into_iter().next().unwrap();
        assert!(choice.has_content(), "{reply}");
        let thoughts = choice.delta.thoughts();
        assert_eq!(
            (thoughts.as_deref(), choice.delta.text().as_deref()),
            (thought, text),
            "{reply}"
        );
    }
}

#[test]
fn another_servers_refusal_keeps_its_message() {
    for body in [
        r#"{"error":{"message":"no","code":400}}"#,
        r#"{"error":"no"}"#,
        r#"{"detail":"no"}"#,
    ] {
        assert_eq!(
            error(StatusCode::BAD_REQUEST, body.as_bytes()).message,
            "no"
        );
    }
    let page = error(StatusCode::BAD_GATEWAY, b"<html>");
    assert!(page.message.contains("without an error message"));
    let ours = Error::new(Code::ContextExceeded, "too long");
    let body = ours.openai_body().to_string();
    assert_eq!(error(StatusCode::BAD_GATEWAY, body.as_bytes()), ours);
}

#[test]
fn another_servers_status_gives_the_kind_of_refusal() {
    for (status, body, code) in [
        (400, "{}", Code::BadRequest),
        (422, "{}", Code::BadRequest),
        (401, "{}", Code::Unreachable),
        (404, "{}", Code::ModelUnknown),
        (408, "{}", Code::WorkerTimeout),
        (413, "{}", Code::PayloadTooLarge),
        (429, "{}", Code::Overloaded),
        (500, "{}", Code::Unreachable),
        (504, "{}", Code::WorkerTimeout),
        (
            400,
            r#"{"error":{"message":"m","code":"context_length_exceeded"}}"#,
            Code::ContextExceeded,
        ),
        (
            200,
            r#"{"error":{"message":"m","code":429}}"#,
            Code::Overloaded,
        ),
        (
            200,
            r#"{"error":{"message":"m","code":"rate"}}"#,
            Code::Unreachable,
        ),
    ] {
        let status = StatusCode::from_u16(status).unwrap();
        assert_eq!(error(status, body.as_bytes()).code, code, "{status} {body}");
    }
}

#[test]
fn only_a_404_of_the_path_means_the_path() {
    for of_path in [
        "",
        "404 page not found",
        r#"["error"]"#,
        r#"{"detail":"Not Found"}"#,
        r#"{"error":{"code":404,"message":"File Not Found","type":"not_found_error"}}"#,
        r#"{"error":{"message":"Invalid URL (POST /v1/responses)","type":"invalid_request_error","param":null,"code":null}}"#,
        r#"{"error":"Unexpected endpoint or method. Try /v1/models."}"#,
    ] {
        assert!(is_of_unknown_path(of_path.as_bytes()), "{of_path}");
    }
    for of_content in [
        r#"{"error":{"message":"Item with id 'rs_1' not found.","type":"invalid_request_error","param":"input","code":null}}"#,
        r#"{"error":{"message":"Item with id 'rs_1' not found."}}"#,
        r#"{"error":{"message":"Response with id 'resp_1' not found.","code":404}}"#,
        r#"{"error":{"message":"not found","param":null,"code":"model_not_found"}}"#,
        r#"{"error":{"message":"The model `m` does not exist.","type":"NotFoundError","param":null,"code":404}}"#,
        r#"{"error":"model 'm' not found"}"#,
    ] {
        assert!(!is_of_unknown_path(of_content.as_bytes()), "{of_content}");
    }
}

#[test]
fn an_error_is_read_without_what_is_beside_it() {
    let lists = "[0],".repeat(1 << 20);
    let beside = format!("{{\"x\":[{lists}0],\"error\":{{\"message\":\"no\",\"code\":429}}}}");
    let read = error(StatusCode::OK, beside.as_bytes());
    assert_eq!((read.code, read.message.as_str()), (Code::Overloaded, "no"));
    let within = format!("{{\"error\":{{\"message\":\"no\",\"x\":[{lists}0]}}}}");
    let read = error(StatusCode::BAD_REQUEST, within.as_bytes());
    assert!(read.message.contains("without an error message"), "{read}");
}
