//! Files written by hand after the shapes that the programs write.

use super::*;
use crate::{ChatMessage, Finish, Role, branch};
use proptest::prelude::*;
use serde_json::json;

fn read_one(value: &Value) -> (ImportedChat, Vec<(OmittedPart, u64)>) {
    let mut omissions = Omissions::default();
    let chat = read(
        value.to_string().as_bytes(),
        &BTreeSet::new(),
        &mut omissions,
    );
    (chat.expect("a chat"), counts(&omissions))
}

fn counts(omissions: &Omissions) -> Vec<(OmittedPart, u64)> {
    let list = omissions.list().into_iter();
    list.map(|omission| (omission.what, omission.count))
        .collect()
}

/// The texts of the shown branch.
fn shown(chat: &Chat) -> Vec<String> {
    let branch = chat.leaf.map(|leaf| branch(&chat.messages, leaf));
    let branch = branch.unwrap_or_default().into_iter();
    branch.map(ChatMessage::text).collect()
}

fn called(id: &str, name: &str, arguments: &str) -> Part {
    Part::ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    }
}

fn returned(id: &str, text: &str) -> Part {
    Part::ToolResult {
        id: id.to_owned(),
        text: text.to_owned(),
        failed: false,
    }
}

#[test]
fn a_file_is_split_into_its_chats() {
    let split = |json: &str| -> Vec<String> {
        let elements = elements(json.as_bytes(), 3).unwrap().into_iter();
        elements
            .map(|element| String::from_utf8_lossy(element).trim().to_owned())
            .collect()
    };
    assert_eq!(split(r#" {"a": [1, 2]} "#), [r#"{"a": [1, 2]}"#]);
    assert_eq!(
        split(r#"[{"a": ",]\"["}, {"b": [1, {}]},3]"#),
        [r#"{"a": ",]\"["}"#, r#"{"b": [1, {}]}"#, "3"]
    );
    assert!(split(" [ ] ").is_empty());
    for more in ["[1,2,3,4]", "[1,2,3,4,5,6]"] {
        assert_eq!(elements(more.as_bytes(), 3), None, "{more}");
    }
}

#[test]
fn what_has_no_known_form_is_counted() {
    let mut omissions = Omissions::default();
    for element in [
        "3",
        "{",
        "{}",
        r#"{"messages": []}"#,
        r#"{"messages": [3], "leaf": null}"#,
    ] {
        let chat = read(element.as_bytes(), &BTreeSet::new(), &mut omissions);
        assert_eq!(chat, None, "{element}");
    }
    assert_eq!(counts(&omissions), [(OmittedPart::UnknownChats, 5)]);
    let mut omissions = Omissions::default();
    let empty = r#"{"title": "x", "mapping": {}}"#;
    let chat = read(empty.as_bytes(), &BTreeSet::new(), &mut omissions);
    assert_eq!(chat, None);
    assert_eq!(counts(&omissions), [(OmittedPart::EmptyChats, 1)]);
}

#[test]
fn an_exported_chat_reads_back() {
    let file = json!({
        "id": "1f", "title": "France", "model": "heavy", "created_at": "2026-11-26T08:15:00.000000Z",
        "updated_at": "2026-11-26T08:16:00.000000Z", "when_full": "drop", "pinned": true, "turn": null, "leaf": 9,
        "messages": [
            {"id": 7, "parent": null, "role": "user", "parts": [
                {"type": "image", "file": {"sha256": "00", "media_type": "image/png", "name": "a.png", "bytes": 3}},
                {"type": "text", "text": "?"},
            ]},
            {"id": 9, "parent": 7, "role": "assistant", "parts": [{"type": "text", "text": "Paris"}], "finish": "stop"},
        ],
    });
    let (imported, omitted) = read_one(&file);
    assert_eq!(imported.source, "tierbar:1f");
    assert_eq!(
        (imported.chat.summary.model.as_str(), imported.chat.leaf),
        ("heavy", Some(9))
    );
    assert!(imported.chat.summary.pinned);
    assert_eq!(shown(&imported.chat), ["[a.png]\n\n?", "Paris"]);
    assert!(imported.chat.messages[0].parts[0].file().is_none());
    assert_eq!(omitted, [(OmittedPart::Images, 1)]);

    // With its files, it has them.
    let mut omissions = Omissions::default();
    let with = read(
        file.to_string().as_bytes(),
        &BTreeSet::from(["00".to_owned()]),
        &mut omissions,
    );
    let parts = with.unwrap().chat.messages.remove(0).parts;
    assert_eq!(parts[0].file().unwrap().name, "a.png");
    assert!(counts(&omissions).is_empty());
}

#[test]
fn what_a_chat_cannot_be_set_to_becomes_the_default() {
    let file = |fields: Value| {
        let mut file = json!({
            "id": "1f", "title": "x".repeat(501), "model": "heavy", "created_at": "", "updated_at": "", "when_full": "refuse",
            "thinking": true, "leaf": 1,
            "messages": [{"id": 1, "parent": null, "role": "user", "parts": [{"type": "text", "text": "?"}]}],
        });
        let fields = fields.as_object().unwrap().clone();
        file.as_object_mut().unwrap().extend(fields);
        read_one(&file).0.chat.summary
    };
    let kept = file(json!({"model": " heavy ", "sampling": {"temperature": 0.5}}));
    assert_eq!((kept.model.as_str(), kept.title.len()), ("heavy", 500));
    assert_eq!(kept.settings.thinking, Some(true));
    assert_eq!(kept.settings.sampling.values.temperature, Some(0.5));
    for fields in [
        json!({"sampling": {"temperature": 99}}),
        json!({"instructions": "x".repeat(32_001)}),
    ] {
        assert_eq!(file(fields).settings, AnswerSettings::default());
    }
    for model in [String::new(), " ".to_owned(), "x".repeat(501)] {
        assert_eq!(file(json!({"model": model})).model, TierId::AUTO);
    }
}

#[test]
fn a_chatgpt_conversation_keeps_its_branches() {
    let message = |role: &str, content: Value| json!({"author": {"role": role}, "content": content, "recipient": "all", "metadata": {"model_slug": "gpt-4o"}});
    let text = |text: &str| json!({"content_type": "text", "parts": [text]});
    let picture =
        json!({"content_type": "image_asset_pointer", "asset_pointer": "file-service://x"});
    let mut call = message(
        "assistant",
        json!({"content_type": "code", "text": "search()"}),
    );
    call["recipient"] = json!("web");
    let file = json!({
        "title": "  France ", "create_time": 1_700_000_000.5, "update_time": 1_700_000_100, "conversation_id": "6f0",
        "current_node": "second",
        "mapping": {
            "root": {"parent": null, "message": null, "children": ["hidden"]},
            "hidden": {"parent": "root", "message": message("system", text("")), "children": ["ask"]},
            "ask": {"parent": "hidden", "children": ["first", "call"], "message": message("user",
                json!({"content_type": "multimodal_text", "parts": [picture, "Which city?"]}))},
            "first": {"parent": "ask", "message": message("assistant", text("Berlin"))},
            "call": {"parent": "ask", "message": call, "children": ["result"]},
            "result": {"parent": "call", "message": message("tool", text("Paris…")), "children": ["thought"]},
            "thought": {"parent": "result", "children": ["second"], "message": message("assistant",
                json!({"content_type": "thoughts", "thoughts": [{"summary": "s", "content": "Look."}]}))},
            "second": {"parent": "thought", "message": message("assistant", text("Paris"))},
        },
    });
    let (imported, omitted) = read_one(&file);
    assert_eq!(imported.source, "chatgpt:6f0");
    assert_eq!(imported.chat.summary.title, "France");
    assert_eq!(imported.created_ms, Some(1_700_000_000_500));
    assert_eq!(imported.updated_ms, Some(1_700_000_100_000));
    assert_eq!(shown(&imported.chat), ["Which city?", "Paris"]);
    let parents: Vec<_> = imported
        .chat
        .messages
        .iter()
        .map(|message| message.parent)
        .collect();
    assert_eq!(parents, [None, Some(1), Some(1)]);
    let second = &imported.chat.messages[2];
    assert_eq!(
        second.parts[..3],
        [
            called("call-0", "web", "search()"),
            returned("call-0", "Paris…"),
            Part::Reasoning {
                text: "Look.\n".into()
            }
        ]
    );
    assert_eq!(second.answer.model.as_deref(), Some("gpt-4o"));
    assert_eq!(second.answer.finish, Some(Finish::Stop));
    assert_eq!(omitted, [(OmittedPart::Images, 1)]);
}

#[test]
fn a_tool_call_without_a_result_is_imported() {
    let node = |role: &str, recipient: &str, parent: Value| {
        let message =
            json!({"author": {"role": role}, "recipient": recipient, "content": {"parts": ["x"]}});
        json!({"parent": parent, "message": message})
    };
    let file = json!({"title": "t", "current_node": "result", "mapping": {
        "ask": node("user", "all", Value::Null),
        "first": node("assistant", "python", json!("ask")),
        "more": node("user", "all", json!("first")),
        "call": node("assistant", "python", json!("more")),
        "result": node("tool", "all", json!("call")),
    }});
    let (imported, _) = read_one(&file);
    let messages = &imported.chat.messages;
    let roles: Vec<_> = messages.iter().map(|message| message.role).collect();
    let (user, assistant) = (Role::User, Role::Assistant);
    assert_eq!(roles, [user, assistant, user, assistant]);
    assert_eq!(messages[1].parts, [called("call-0", "python", "x")]);
    assert_eq!(messages[3].parts.len(), 2);
    assert_eq!(imported.chat.leaf, Some(4));
}

#[test]
fn a_tree_that_leads_in_circles_ends() {
    let node = |parent: &str| json!({"parent": parent, "message": {"author": {"role": "user"}, "content": {"parts": ["x"]}}});
    let file = json!({"mapping": {"a": node("b"), "b": node("a"), "c": node("gone"), "d": node("c")}, "current_node": "a"});
    let (imported, _) = read_one(&file);
    assert_eq!(imported.chat.messages.len(), 2);
    assert_eq!(imported.chat.leaf, Some(2));
}

/// One thought before each of many answers.
#[test]
fn a_tree_of_copies_ends_where_it_is_too_large() {
    let thoughts = json!([{"content": "x".repeat(1 << 20)}]);
    let mut mapping = json!({"root": {"message": {"author": {"role": "assistant"},
        "content": {"content_type": "thoughts", "thoughts": thoughts}}}});
    for answer in 0..1000 {
        mapping[answer.to_string()] = json!({"parent": "root", "message": {
            "author": {"role": "assistant"}, "content": {"parts": ["y"]}}});
    }
    let (imported, _) = read_one(&json!({"mapping": mapping}));
    assert_eq!(imported.chat.messages.len(), 17);
}

#[test]
fn an_open_webui_chat_keeps_reasoning_and_branches() {
    let file = json!({
        "id": "a1", "user_id": "u", "title": "France", "created_at": 1_700_000_000, "updated_at": 1_700_000_100, "pinned": true,
        "chat": {
            "title": "France", "models": ["gemma"], "params": {"system": "Be brief."},
            "history": {"currentId": "m2", "messages": {
                "m1": {"id": "m1", "parentId": null, "childrenIds": ["m2", "m3"], "role": "user", "content": "Which city?",
                    "files": [{"type": "image", "url": "data:"}, {"type": "file", "name": "a.pdf"}]},
                "m2": {"id": "m2", "parentId": "m1", "role": "assistant", "model": "gemma", "content":
                    "<details type=\"reasoning\" done=\"true\" duration=\"2\">\n<summary>Thought</summary>\n> Look.\n> Well.\n</details>\nParis\n\
                     <details type=\"tool_calls\" done=\"true\" id=\"7\" name=\"search\" arguments=\"&quot;{\\&quot;q\\&quot;: 1}&quot;\" result=\"A &amp; B\">\n\
                     <summary>Tool</summary>\n</details>\
                     <details type=\"tool_calls\" done=\"true\">\n<summary>Tool</summary>\n</details>"},
                "m3": {"id": "m3", "parentId": "m1", "role": "assistant", "model": "gemma", "content": "Berlin"},
            }},
        },
    });
    let (imported, omitted) = read_one(&file);
    assert_eq!(imported.source, "open-webui:a1");
    assert!(imported.chat.summary.pinned);
    assert_eq!(shown(&imported.chat), ["Be brief.", "Which city?", "Paris"]);
    assert_eq!(imported.chat.messages.len(), 4);
    assert_eq!(
        imported.chat.messages[2].parts[..3],
        [
            Part::Reasoning {
                text: "Look.\nWell.".into()
            },
            called("7", "search", r#"{"q": 1}"#),
            returned("7", "A & B"),
        ]
    );
    assert_eq!(
        omitted,
        [
            (OmittedPart::Images, 1),
            (OmittedPart::Files, 1),
            (OmittedPart::Tools, 1)
        ]
    );
}

#[test]
fn calls_that_no_chat_can_hold_are_not_read() {
    let call = "<details type=\"tool_calls\" name=\"\"></details>";
    let content = call.repeat(open_webui::MOST_CALLS + 7);
    let answer = json!({"role": "assistant", "content": content});
    let file = json!({"chat": {"history": {"messages": {"a": answer}}}});
    let (imported, omitted) = read_one(&file);
    let parts = &imported.chat.messages[0].parts;
    assert_eq!(parts.len(), open_webui::MOST_CALLS);
    let size: usize = parts.iter().map(Part::text_size).sum();
    assert!(size > 16 << 20, "{size}");
    assert_eq!(omitted, [(OmittedPart::Tools, 7)]);
}

#[test]
fn an_lm_studio_chat_keeps_its_versions() {
    let user = |text: &str| {
        json!({"type": "singleStep", "role": "user", "content": [{"type": "text", "text": text},
        {"type": "file", "fileIdentifier": "1.png", "fileType": "image"}]})
    };
    let block = |text: &str, style: Value| json!({"type": "contentBlock", "content": [{"type": "text", "text": text}], "style": style});
    let answer = |text: &str| {
        json!({"type": "multiStep", "role": "assistant", "senderInfo": {"senderName": "gemma"}, "steps": [
        block("Look.", json!({"type": "thinking", "ended": true})),
        {"type": "contentBlock", "content": [{"type": "toolCallRequest", "callId": 3, "name": "look", "parameters": {"q": 1}}]},
        {"type": "toolStatus", "callId": 3},
        {"type": "contentBlock", "content": [{"type": "toolCallResult", "callId": 3, "content": "Found"}]},
        block(text, Value::Null), {"type": "debugInfoBlock"}]})
    };
    let file = json!({
        "name": "France", "pinned": false, "createdAt": 1_700_000_000_000_u64, "assistantLastMessagedAt": 1_700_000_100_000_u64,
        "systemPrompt": "Be brief.", "messages": [
            {"versions": [user("Which city?")], "currentlySelected": 0},
            {"versions": [answer("Berlin"), answer("Paris"), answer("Rome")], "currentlySelected": 1},
            {"versions": [user("Thanks")], "currentlySelected": 0},
        ],
    });
    let (imported, omitted) = read_one(&file);
    assert_eq!(imported.source, "lm-studio:1700000000000");
    assert_eq!(imported.updated_ms, Some(1_700_000_100_000));
    assert_eq!(
        shown(&imported.chat),
        ["Be brief.", "Which city?", "Paris", "Thanks"]
    );
    assert_eq!(imported.chat.messages.len(), 6);
    let paris = &imported.chat.messages[3];
    assert_eq!(paris.role, Role::Assistant);
    assert_eq!(paris.answer.model.as_deref(), Some("gemma"));
    assert_eq!(
        paris.parts[1..3],
        [called("3", "look", r#"{"q":1}"#), returned("3", "Found")]
    );
    assert_eq!(omitted, [(OmittedPart::Images, 2)]);
}

#[test]
fn escaped_reasoning_is_read() {
    let reasoning = |inside: &str| {
        let content = format!(
            "<details type=\"reasoning\">\n<summary>Thought</summary>\n{inside}\n</details>\nyes"
        );
        let messages = json!({"1": {"parentId": null, "role": "assistant", "content": content}});
        let file =
            json!({"id": "w", "chat": {"history": {"messages": messages, "currentId": "1"}}});
        let (imported, _) = read_one(&file);
        assert_eq!(shown(&imported.chat), ["yes"]);
        match imported.chat.messages[0].parts[0].clone() {
            Part::Reasoning { text } => text,
            other => panic!("{other:?}"),
        }
    };
    let escaped = "&gt; is a &lt; b?\n&gt; &amp;lt; yes";
    assert_eq!(reasoning(escaped), "is a < b?\n&lt; yes");
    assert_eq!(reasoning("> is a &lt; b?"), "is a &lt; b?");
}

#[test]
fn a_question_of_a_picture_alone_is_kept() {
    let message = |role: &str, content: Value| json!({"author": {"role": role}, "content": content, "recipient": "all", "metadata": {}});
    let picture = json!({"content_type": "multimodal_text", "parts": [{"content_type": "image_asset_pointer"}]});
    let answer = json!({"content_type": "text", "parts": ["a cat"]});
    let chatgpt = json!({"title": "T", "current_node": "b", "mapping": {
        "a": {"parent": null, "message": message("user", picture)},
        "b": {"parent": "a", "message": message("assistant", answer)},
    }});
    let open_webui = json!({"id": "w", "chat": {"history": {"currentId": "2", "messages": {
        "1": {"parentId": null, "role": "user", "content": "", "files": [{"type": "image"}]},
        "2": {"parentId": "1", "role": "assistant", "content": "a cat"},
    }}}});
    let version = |role: &str, content: Value| json!({"versions": [{"role": role, "content": content}], "currentlySelected": 0});
    let lm_studio = json!({"name": "n", "messages": [
        version("user", json!([{"type": "file", "fileType": "image"}])),
        version("assistant", json!([{"type": "text", "text": "a cat"}])),
    ]});
    for file in [chatgpt, open_webui, lm_studio] {
        let (imported, omitted) = read_one(&file);
        assert_eq!(shown(&imported.chat), ["[image]", "a cat"], "{file}");
        assert_eq!(omitted, [(OmittedPart::Images, 1)]);
    }
}

#[test]
fn times_are_read_in_seconds_to_nanoseconds() {
    for time in [
        json!(1_700_000_000),
        json!(1_700_000_000.0),
        json!(1_700_000_000_000_u64),
        json!(1_700_000_000_000_000_u64),
        json!(1_700_000_000_000_000_000_u64),
    ] {
        assert_eq!(millis(&time), Some(1_700_000_000_000), "{time}");
    }
    for none in [json!(null), json!("today"), json!(-1), json!(0)] {
        assert_eq!(millis(&none), None, "{none}");
    }
}

proptest! {
    #[test]
    fn any_array_is_split_into_its_elements(texts in proptest::collection::vec(".*", 0..8)) {
        let values = texts.iter().map(|text| json!({"a": [text, {"c": text}], "b": text}));
        let values: Vec<Value> = values.collect();
        let file = serde_json::to_vec(&values).unwrap();
        let split = elements(&file, 8).unwrap().into_iter().map(|element| serde_json::from_slice(element).unwrap());
        prop_assert_eq!(split.collect::<Vec<Value>>(), values);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(file in proptest::collection::vec(any::<u8>(), 0..64)) {
        let mut omissions = Omissions::default();
        for element in elements(&file, 64).unwrap() {
            let _chat = read(element, &BTreeSet::new(), &mut omissions);
        }
    }
}
