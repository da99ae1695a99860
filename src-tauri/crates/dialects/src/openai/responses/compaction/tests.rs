use super::*;

fn window(items: Value) -> Window {
    Window::read(Some(items)).unwrap()
}

/// The types of items, and what messages say.
fn shape(items: &[Value]) -> Vec<String> {
    let of = |item: &Value| match kind(item) {
        "message" => {
            let part = &item["content"][0];
            let said = part["text"].as_str().unwrap_or(kind(part)).to_owned();
            format!("{}: {said}", item["role"].as_str().unwrap())
        }
        other => other.to_owned(),
    };
    items.iter().map(of).collect()
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn assistant(text: &str) -> Value {
    json!({"role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn call(id: &str) -> Value {
    json!({"type": "function_call", "call_id": id, "name": "look", "arguments": "{\"at\": 1}"})
}

#[test]
fn what_was_said_becomes_the_text_and_the_question_stays() {
    let window = window(json!([
        {"type": "message", "role": "developer", "content": "Be brief."},
        user("Launch on Tuesday."),
        assistant("Noted."),
        {"type": "reasoning", "summary": []},
        call("a"),
        {"type": "function_call_output", "call_id": "a", "output": "sunny"},
        user("What did we decide?"),
    ]));
    assert_eq!(
        window.text,
        "User: Launch on Tuesday.\n\nAssistant: Noted.\n\nAssistant calls: look({\"at\": 1})\n\nResult: sunny\n\n"
    );
    assert_eq!(window.left_out, ["input[3]: reasoning"]);
    let output = window.output("Tuesday it is.");
    assert_eq!(
        shape(&output),
        [
            "developer: Be brief.",
            "compaction",
            "user: What did we decide?"
        ]
    );
    for item in output.iter().filter(|item| kind(item) == "message") {
        assert!(item["id"].as_str().unwrap().starts_with("msg_"), "{item}");
        assert_eq!(item["status"], "completed");
    }
    assert_eq!(summary("input[1]", &output[1]).unwrap(), "Tuesday it is.");
}

#[test]
fn calls_without_a_result_and_images_are_kept() {
    let image = json!({"type": "input_image", "image_url": "data:image/png;base64,AAAA"});
    let output = window(json!([
        {"role": "user", "content": [image]},
        user("Look."), call("a"), call("b"),
        {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "4"}, image]},
    ]))
    .output("They look.");
    assert_eq!(
        shape(&output),
        [
            "user: input_image",
            "user: input_image",
            "compaction",
            "function_call"
        ]
    );
    assert_eq!(output[3]["call_id"], "b");
    assert_eq!(output[3]["status"], "completed");
    assert_eq!(output[0]["content"][0]["detail"], "auto");
}

#[test]
fn a_summary_is_summarized_with_what_follows() {
    let before = window(json!("A long story.")).output("A story.");
    assert_eq!(shape(&before), ["compaction"]);
    let again = window(json!([before[0], assistant("Once."), user("Go on.")]));
    assert_eq!(
        again.text,
        "Summary of what came before:\nA story.\n\nAssistant: Once.\n\n"
    );
}

#[test]
fn what_cannot_be_compacted_is_refused_with_its_place() {
    let theirs = json!({"type": "compaction", "encrypted_content": "gAAAAABpM0Yj"});
    for (input, part) in [
        (json!([]), "empty"),
        (
            json!([{"role": "system", "content": "Be brief."}]),
            "no text",
        ),
        (json!([user("Hi."), theirs]), "`input[1]`"),
        (json!([{"type": "compaction"}]), "encrypted_content"),
        (
            json!([user("Hi."), {"type": "compaction", "encrypted_content": "tierbar-summary:%"}]),
            "`input[1]`",
        ),
        (
            json!([{"type": "function_call_output", "call_id": "a", "output": ""}]),
            "\"a\"",
        ),
        (json!(7), "`input`"),
    ] {
        let error = Window::read(Some(input.clone())).unwrap_err();
        assert!(error.message.contains(part), "{input}: {error}");
    }
    assert!(Window::read(None).is_err());
}
