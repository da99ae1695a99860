use super::*;
use crate::openai::responses::content::text_part;

fn read(input: Value) -> Result<(Vec<Value>, Vec<String>), Error> {
    let mut messages = Messages::default();
    messages.read(Some(input))?;
    Ok((objects(messages.list), messages.left_out))
}

fn objects(list: Vec<Map<String, Value>>) -> Vec<Value> {
    list.into_iter().map(Value::Object).collect()
}

fn call(id: &str) -> Value {
    json!({"type": "function_call", "id": "fc_1", "call_id": id, "name": "look", "arguments": "{}", "status": "completed"})
}

fn chat_call(id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}})
}

#[test]
fn a_models_turn_of_several_items_is_one_message() {
    let (list, left_out) = read(json!([
        {"role": "user", "content": "Look."},
        {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
         "content": [{"type": "output_text", "text": "I look.", "annotations": []}]},
        call("a"), call("b"),
        {"type": "function_call_output", "call_id": "a", "output": "4"},
        {"type": "function_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "5"}]},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        call("c"),
    ]))
    .unwrap();
    assert_eq!(
        list,
        [
            json!({"role": "user", "content": "Look."}),
            json!({"role": "assistant", "reasoning_content": "hm", "content": "I look.",
                   "tool_calls": [chat_call("a"), chat_call("b")]}),
            json!({"role": "tool", "tool_call_id": "a", "content": "4"}),
            json!({"role": "tool", "tool_call_id": "b", "content": "5"}),
            json!({"role": "assistant", "content": null, "tool_calls": [chat_call("c")]}),
        ]
    );
    assert_eq!(left_out, ["input[7]: web_search_call"]);
}

#[test]
fn a_call_of_the_shell_and_its_result_are_kept() {
    let action = json!({"type": "exec", "command": ["ls"]});
    for (result, id) in [
        ("function_call_output", "call_id"),
        ("local_shell_call_output", "id"),
    ] {
        let (list, left_out) = read(json!([
            {"role": "user", "content": "Look."},
            {"type": "local_shell_call", "id": "lsh_1", "call_id": "a", "action": action, "status": "completed"},
            {"type": result, id: "a", "output": "note"},
        ]))
        .unwrap();
        let call = &list[1]["tool_calls"][0];
        assert_eq!(call["function"]["name"], "local_shell");
        assert_eq!(call["function"]["arguments"], action.to_string());
        assert_eq!(
            list[2],
            json!({"role": "tool", "tool_call_id": "a", "content": "note"})
        );
        assert!(left_out.is_empty());
    }
}

#[test]
fn instructions_come_first_and_neighbours_of_one_role_are_one() {
    let mut messages = Messages::default();
    messages.instruct(&json!("Be brief.")).unwrap();
    let image =
        json!({"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"});
    let items = json!([
        {"role": "developer", "content": "In French."},
        {"role": "user", "content": [{"type": "input_text", "text": "Here:"}, image]},
        {"role": "user", "content": "What is it?"},
    ]);
    messages.read(Some(items)).unwrap();
    let seen = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "auto"}});
    assert_eq!(
        objects(messages.list),
        [
            json!({"role": "system", "content": "Be brief.\n\nIn French."}),
            json!({"role": "user", "content": [text_part("Here:"), seen, text_part("What is it?")]}),
        ]
    );
}

#[test]
fn a_file_is_a_chats_file() {
    for file in [
        json!({"filename": "a.pdf", "file_data": "data:application/pdf;base64,AA=="}),
        json!({"file_url": "https://a.example/a.pdf"}),
    ] {
        let mut part = file.clone();
        part["type"] = "input_file".into();
        part["file_id"] = Value::Null;
        let (list, _) = read(json!([{"role": "user", "content": [part]}])).unwrap();
        let part = json!({"type": "file", "file": file});
        assert_eq!(list, [json!({"role": "user", "content": [part]})]);
    }
}

#[test]
fn what_a_tool_shows_follows_when_all_tools_have_told() {
    let output = |id: &str, output: Value| json!({"type": "function_call_output", "call_id": id, "output": output});
    let image = json!([{"type": "input_image", "image_url": "data:,"}]);
    let (list, _) = read(json!([
        call("a"),
        call("b"),
        output("a", image),
        output("b", json!("5"))
    ]))
    .unwrap();
    assert_eq!(
        list[1..],
        [
            json!({"role": "tool", "tool_call_id": "a", "content": ""}),
            json!({"role": "tool", "tool_call_id": "b", "content": "5"}),
            json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}),
        ]
    );
}

#[test]
fn summarized_thinking_is_marked_and_sealed_thinking_left_out() {
    let summed =
        json!({"type": "reasoning", "summary": [{"type": "summary_text", "text": "in short"}]});
    let sealed = json!({"type": "reasoning", "summary": [], "encrypted_content": "…"});
    let (list, _) = read(json!([summed, sealed, {"role": "assistant", "content": "a"}])).unwrap();
    assert_eq!(
        list,
        [json!({"role": "assistant", "reasoning_content": "in short", "content": "a"})]
    );
}

#[test]
fn a_turn_of_thoughts_alone_says_nothing() {
    let thought = json!({"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]});
    let hi = json!({"role": "user", "content": "Hi"});
    let (list, _) = read(json!([hi, thought, hi])).unwrap();
    let silent = json!({"role": "assistant", "reasoning_content": "hm", "content": ""});
    assert_eq!(list, [hi.clone(), silent, hi]);
}

#[test]
fn what_cannot_be_read_is_refused_with_its_place() {
    for (input, place) in [
        (json!(null), "empty"),
        (json!([]), "empty"),
        (json!(7), "`input`"),
        (json!([7]), "`input[0]`"),
        (json!([{"content": "a"}]), "`input[0]`"),
        (json!([{"role": "tool", "content": "a"}]), "`input[0].role`"),
        (
            json!([{"role": "user", "content": 7}]),
            "`input[0].content`",
        ),
        (
            json!([{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]),
            "`input[0].content[0]`",
        ),
        (
            json!([{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]),
            "data: URI",
        ),
        (
            json!([{"role": "user", "content": [{"type": "input_text"}]}]),
            "`input[0].content[0].text`",
        ),
        (
            json!([{"type": "function_call", "name": "look"}]),
            "`input[0].call_id`",
        ),
        (
            json!([{"type": "function_call_output", "output": "4"}]),
            "`input[0].call_id`",
        ),
        (json!([{"type": "item_reference", "id": "msg_1"}]), "stored"),
    ] {
        let error = read(input.clone()).unwrap_err();
        let reply = format!("{} {}", error.message, error.hint.unwrap_or_default());
        assert!(reply.contains(place), "{input}: {reply}");
    }
}
