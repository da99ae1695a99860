use super::*;
use tierbar_core::Code;

fn messages(role: &str, blocks: Value) -> Result<Vec<Value>, Error> {
    let mut messages = Vec::new();
    into_messages(role, serde_json::from_value(blocks).unwrap(), &mut messages)?;
    Ok(messages)
}

#[test]
fn tool_results_come_first_and_their_images_with_the_text() {
    let image = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}});
    let blocks = json!([
        {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "4"}, image]},
        {"type": "tool_result", "tool_use_id": "b", "content": "no file", "is_error": true},
        {"type": "tool_result", "tool_use_id": "c"},
        {"type": "text", "text": "And now?"},
    ]);
    assert_eq!(
        messages("user", blocks).unwrap(),
        [
            json!({"role": "tool", "tool_call_id": "a", "content": "4"}),
            json!({"role": "tool", "tool_call_id": "b", "content": "Error: no file"}),
            json!({"role": "tool", "tool_call_id": "c", "content": ""}),
            json!({"role": "user", "content": [
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                {"type": "text", "text": "And now?"},
            ]}),
        ]
    );
}

#[test]
fn what_the_model_said_is_one_message() {
    let blocks = json!([
        {"type": "thinking", "thinking": "hm", "signature": ""},
        {"type": "redacted_thinking", "data": "…"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "a", "name": "look", "input": {"at": 1}},
    ]);
    let function = json!({"name": "look", "arguments": "{\"at\":1}"});
    assert_eq!(
        messages("assistant", blocks).unwrap(),
        [json!({
            "role": "assistant", "content": "I look.", "reasoning_content": "hm",
            "tool_calls": [{"id": "a", "type": "function", "function": function}],
        })]
    );
}

#[test]
fn a_call_without_input_has_no_arguments() {
    for call in [
        json!({"type": "tool_use", "id": "a", "name": "look"}),
        json!({"type": "tool_use", "id": "a", "name": "look", "input": null}),
    ] {
        let message = messages("assistant", json!([call])).unwrap().remove(0);
        let function = &message["tool_calls"][0]["function"];
        assert_eq!(function["arguments"], "{}", "{call}");
    }
}

#[test]
fn text_alone_is_a_text_and_a_documents_text_is_text() {
    let blocks = json!([{"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}]);
    assert_eq!(messages("user", blocks).unwrap()[0]["content"], "Hi");
    let document = json!([{"type": "document", "title": "T", "source": {"type": "text", "media_type": "text/plain", "data": "D"}}]);
    assert_eq!(messages("user", document).unwrap()[0]["content"], "T\n\nD");
}

#[test]
fn unsupported_content_is_refused_by_name() {
    for (role, blocks) in [
        (
            "user",
            json!([{"type": "tool_use", "id": "a", "name": "look", "input": {}}]),
        ),
        (
            "assistant",
            json!([{"type": "tool_result", "tool_use_id": "a"}]),
        ),
        ("user", json!([{"text": "no type"}])),
        ("user", json!([7])),
    ] {
        let error = messages(role, blocks.clone()).unwrap_err();
        assert_eq!(error.code, Code::BadRequest, "{blocks}");
    }
}

#[test]
fn what_others_did_for_the_model_is_left_out_and_the_rest_stays() {
    let used = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": []});
    let text = json!({"type": "text", "text": "Found."});
    assert_eq!(
        messages("assistant", json!([used, found, text])).unwrap(),
        [json!({"role": "assistant", "content": "Found."})]
    );
    let unknown =
        json!([{"type": "container_upload", "file_id": "f"}, {"type": "text", "text": "Hi"}]);
    let hi = [json!({"role": "user", "content": "Hi"})];
    assert_eq!(messages("user", unknown).unwrap(), hi);
    assert!(
        messages(
            "user",
            json!([{"type": "container_upload", "file_id": "f"}])
        )
        .unwrap()
        .is_empty()
    );
}

#[test]
fn a_search_result_is_text_and_a_stored_pdf_a_line() {
    let found = json!({"type": "search_result", "source": "https://a.example", "title": "T",
        "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]});
    let reply = "T\nhttps://a.example\n\none\n\ntwo";
    let said = messages("user", json!([found])).unwrap();
    assert_eq!(said[0]["content"], reply);
    let result = json!([{"type": "tool_result", "tool_use_id": "a", "content": [found]}]);
    assert_eq!(
        messages("user", result).unwrap(),
        [json!({"role": "tool", "tool_call_id": "a", "content": reply})]
    );
    for source in [
        json!({"type": "url", "url": "https://a.example/a.pdf"}),
        json!({"type": "file", "file_id": "f"}),
    ] {
        let pdf = json!([{"type": "document", "title": "T", "source": source}]);
        let said = messages("user", pdf).unwrap();
        assert_eq!(said[0]["content"], format!("T\n\n{OMITTED}"));
    }
}

#[test]
fn a_pdf_is_a_file_and_follows_the_result_of_a_tool() {
    let source = json!({"type": "base64", "media_type": "application/pdf", "data": "AAAA"});
    let pdf = json!({"type": "document", "title": "T", "source": source, "cache_control": {"type": "ephemeral"}});
    let file = json!({"type": "file", "file": {"filename": "T.pdf", "file_data": "data:application/pdf;base64,AAAA"}});
    let text = json!({"type": "text", "text": "Sum it up."});
    assert_eq!(
        messages("user", json!([pdf, text])).unwrap(),
        [json!({"role": "user", "content": [file, text]})]
    );
    let result = json!([{"type": "tool_result", "tool_use_id": "a", "content": [pdf]}]);
    assert_eq!(
        messages("user", result).unwrap(),
        [
            json!({"role": "tool", "tool_call_id": "a", "content": ""}),
            json!({"role": "user", "content": [file]}),
        ]
    );
    let omitted = format!("T.pdf\n\n{OMITTED}");
    let omitted = json!({"type": "text", "text": omitted});
    assert_eq!(part_of_block(pdf).unwrap(), Some(omitted));
}

#[test]
fn a_block_of_an_unknown_kind_is_refused_with_its_place() {
    let refused = |blocks: Value| {
        let content: Content = serde_json::from_value(blocks).unwrap();
        check_kinds("messages[2].content", content.blocks()).err()
    };
    let text = json!({"type": "text", "text": "Hi"});
    let error = refused(json!([text, {"type": "bogus"}])).unwrap();
    assert_eq!(error.code, Code::BadRequest);
    assert_eq!(
        error.message,
        "`messages[2].content[1]` has the type \"bogus\""
    );
    assert!(error.hint.unwrap().starts_with("send one of text, image"));
    let result =
        json!({"type": "tool_result", "tool_use_id": "a", "content": [text, {"type": "bogus"}]});
    let error = refused(json!([result])).unwrap();
    assert!(
        error
            .message
            .starts_with("`messages[2].content[0].content[1]`"),
        "{error}"
    );
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"type": "web_search_result"}]});
    for fine in [json!("Hi"), json!([text]), json!([found])] {
        assert_eq!(refused(fine.clone()), None, "{fine}");
    }
}

#[test]
fn a_summary_is_read_and_a_sealed_one_refused() {
    let summed = json!([{"type": "compaction", "content": "They met."}]);
    for role in ["user", "assistant"] {
        let said = messages(role, summed.clone()).unwrap();
        let said = said[0]["content"].as_str().unwrap();
        assert!(said.contains("They met."), "{said}");
    }
    let failed = json!([{"type": "compaction", "content": null}]);
    assert!(messages("user", failed).unwrap().is_empty());
    let sealed = json!([{"type": "compaction", "encrypted_content": "…"}]);
    assert!(messages("user", sealed).is_err());
}

#[test]
fn what_no_model_gets_is_named_by_its_place() {
    let pdf = json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"}});
    let text = json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "D"}});
    let blocks = json!([
        text,
        {"type": "redacted_thinking", "data": "…"},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "Hi"}, pdf]},
    ]);
    let content: Content = serde_json::from_value(blocks).unwrap();
    let mut left_out = Vec::new();
    add_left_out("messages[0].content", content.blocks(), &mut left_out);
    for (files_sent, places) in [
        (
            false,
            &[
                "messages[0].content[2]: server_tool_use",
                "messages[0].content[3].content[1]: document",
            ][..],
        ),
        (true, &["messages[0].content[2]: server_tool_use"]),
    ] {
        assert_eq!(LeftOut::named(&left_out, files_sent), places);
    }
}
