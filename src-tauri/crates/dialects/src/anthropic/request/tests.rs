use super::*;
use tierbar_core::Code;

#[test]
fn an_effort_alone_does_not_ask_for_thoughts() {
    let reply = |more: Value| {
        let mut request = json!({"max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}]});
        request
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let chat = chat(request).unwrap();
        (chat["think"].clone(), chat["reasoning_effort"].clone())
    };
    let effort = json!({"effort": "high"});
    assert_eq!(reply(json!({})), (Value::Null, Value::Null));
    assert_eq!(
        reply(json!({"output_config": effort})),
        (json!(false), json!("high"))
    );
    let adaptive = json!({"output_config": effort, "thinking": {"type": "adaptive"}});
    assert_eq!(reply(adaptive), (json!(true), json!("high")));
}

#[test]
fn a_prefilled_answer_is_continued_unless_the_model_thinks() {
    let goes_on = |content: Value, thinking: &str| {
        let said =
            json!([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": content}]);
        let request = json!({"max_tokens": 1, "messages": said, "thinking": {"type": thinking}});
        chat(request).unwrap()["continue_final_message"] == true
    };
    assert!(goes_on(json!("{"), "disabled"));
    assert!(goes_on(json!([{"type": "text", "text": "{"}]), "disabled"));
    assert!(!goes_on(json!("{"), "enabled"));
    let call = json!({"type": "tool_use", "id": "a", "name": "look", "input": {}});
    assert!(!goes_on(
        json!([{"type": "text", "text": "I look"}, call]),
        "disabled"
    ));
    let asked = chat(json!({"max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}]}));
    assert_eq!(asked.unwrap()["continue_final_message"], Value::Null);
}

#[test]
fn a_later_system_message_is_added_to_the_users() {
    let user = |content: &str| json!({"role": "user", "content": content});
    let system = json!({"role": "system", "content": [{"type": "text", "text": "Skills."}]});
    let reply = |system_field: Value, messages: Value| {
        let request =
            json!({"model": "m", "max_tokens": 1, "system": system_field, "messages": messages});
        chat(request).unwrap()["messages"].clone()
    };
    let reminder = "<system-reminder>\nSkills.\n</system-reminder>";
    assert_eq!(
        reply(Value::Null, json!([user("Hi"), system])),
        json!([user(&format!("Hi\n\n{reminder}"))])
    );
    let part = json!({"type": "text", "text": "Look"});
    let image = json!({"type": "image", "source": {"type": "url", "url": "data:,"}});
    let looks = json!({"role": "user", "content": [part, image]});
    let parts = reply(Value::Null, json!([looks, system]));
    assert_eq!(
        parts[0]["content"][2],
        json!({"type": "text", "text": reminder})
    );
    let said = json!({"role": "assistant", "content": "Yes"});
    assert_eq!(
        reply(Value::Null, json!([user("Hi"), said, system])),
        json!([user("Hi"), said, user(reminder)])
    );
    // At the beginning there is a place for it.
    let first = json!({"role": "system", "content": "Be brief.\n\nSkills."});
    assert_eq!(
        reply("Be brief.".into(), json!([system, user("Hi")])),
        json!([first, user("Hi")])
    );
}

fn chat(request: Value) -> Result<Value, Error> {
    let request: MessageFields = tierbar_inference::body::parse(request.to_string().as_bytes())?;
    request.into_chat(&fields::MESSAGES).map(Value::Object)
}

#[test]
fn what_is_named_otherwise_is_renamed_and_the_rest_passes() {
    let chat = chat(json!({
        "model": "fast", "max_tokens": 9, "stop_sequences": ["END"], "temperature": 0.5, "top_k": 3,
        "cache_prompt": false, "metadata": {"user_id": "me"}, "stream": true,
        "system": [{"type": "text", "text": "Be brief."}],
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {"type": "object"}}},
        "messages": [{"role": "user", "content": "Hi"}],
    }))
    .unwrap();
    assert_eq!(
        chat,
        json!({
            "temperature": 0.5, "top_k": 3, "cache_prompt": false, "stream": true,
            "model": "fast", "max_tokens": 9, "stop": ["END"], "user": "me",
            "think": true, "thinking_budget_tokens": 1024, "reasoning_effort": "low",
            "response_format": {"type": "json_schema", "json_schema": {"name": "output", "schema": {"type": "object"}}},
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
            "stream_options": {"include_usage": true},
        })
    );
}

#[test]
fn a_user_and_a_service_tier_have_openais_names() {
    let reply = |more: Value| {
        let mut request = json!({"messages": [{"role": "user", "content": "Hi"}]});
        request
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let chat = chat(request).unwrap();
        let field = |name: &str| chat.get(name).cloned();
        (field("user"), field("service_tier"), field("metadata"))
    };
    let longest = "u".repeat(LONGEST_USER);
    let longer = format!("{longest}u");
    for (user, passed) in [(&longest, Some(json!(longest))), (&longer, None)] {
        let more = json!({"metadata": {"user_id": user}});
        assert_eq!(reply(more), (passed, None, None));
    }
    for (tier, passed) in [
        ("auto", Some(json!("auto"))),
        ("standard_only", Some(json!("default"))),
        ("of_next_year", None),
    ] {
        let more = json!({"service_tier": tier, "metadata": {"user_id": null}});
        assert_eq!(reply(more), (None, passed, None), "{tier}");
    }
}

#[test]
fn options_of_a_stream_are_sent_with_a_stream_alone() {
    for stream in [Value::Null, json!(false)] {
        let request = json!({"stream": stream, "messages": [{"role": "user", "content": "Hi"}]});
        assert_eq!(chat(request).unwrap().get("stream_options"), None);
    }
}

#[test]
fn a_choice_is_among_the_tools_that_are_offered() {
    let search = json!({"type": "web_search_20250305", "name": "web_search"});
    let look = json!({"name": "look", "input_schema": {"type": "object"}});
    let chosen = |tools: Value, choice: Value| {
        let said = json!([{"role": "user", "content": "Hi"}]);
        let request = json!({"tools": tools, "tool_choice": choice, "messages": said});
        chat(request).map(|chat| {
            (
                chat.get("tools").is_some(),
                chat.get("tool_choice").cloned(),
            )
        })
    };
    let any = json!({"type": "any", "disable_parallel_tool_use": true});
    let auto = json!({"type": "auto"});
    assert_eq!(chosen(json!([search]), auto).unwrap(), (false, None));
    assert_eq!(
        chosen(json!([search, look]), any.clone()).unwrap(),
        (true, Some(json!("required")))
    );
    let search_it = json!({"type": "tool", "name": "web_search"});
    for (tools, choice, part) in [
        (json!([search]), any.clone(), "`tools` has none"),
        (json!([]), any, "`tools` has none"),
        (json!([search, look]), search_it, "\"web_search\""),
    ] {
        let error = chosen(tools, choice).unwrap_err();
        assert_eq!(error.code, Code::BadRequest);
        assert!(error.message.contains(part), "{error}");
    }
}

#[test]
fn only_the_last_message_must_not_become_empty() {
    let said = |content: Value| json!({"role": "user", "content": content});
    let odd = said(json!([{"type": "container_upload", "file_id": "f"}]));
    let refused = chat(json!({"messages": [odd]})).unwrap_err();
    assert_eq!(refused.code, Code::BadRequest);
    let hi = said(json!("Hi"));
    let reply = chat(json!({"messages": [odd, hi]})).unwrap();
    assert_eq!(reply["messages"], json!([hi]));
}

#[test]
fn disabled_thinking_is_off_and_only_schemas_are_formats() {
    let asked = |extra: (&str, Value)| {
        let mut request = json!({"messages": [{"role": "user", "content": "Hi"}]});
        request[extra.0] = extra.1;
        request
    };
    let off = chat(asked(("thinking", json!({"type": "disabled"}))));
    assert_eq!(off.unwrap()["think"], false);
    let adaptive = chat(asked(("thinking", json!({"type": "adaptive"}))));
    assert_eq!(adaptive.unwrap()["think"], true);
    let other = chat(asked(("output_format", json!({"type": "xml"}))));
    assert_eq!(other.unwrap_err().code, Code::BadRequest);
    let none = chat(json!({"model": "fast"})).unwrap_err();
    assert!(none.message.contains("messages"), "{none}");
}

#[test]
fn an_unknown_kind_of_thinking_and_several_answers_are_refused() {
    let refused = |more: Value| {
        let mut request = json!({"messages": [{"role": "user", "content": "Hi"}]});
        request
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        chat(request).err().map(|error| error.message)
    };
    for (more, named) in [
        (json!({"thinking": {"type": "bogus"}}), "`thinking.type`"),
        (json!({"n": 4}), "`n`"),
        (json!({"compaction": {"type": "enabled"}}), "`compaction`"),
    ] {
        let message = refused(more).unwrap();
        assert!(message.starts_with(named), "{message}");
    }
    for fine in [
        json!({"thinking": {"type": "between_tools"}, "n": 1}),
        json!({"compaction": null}),
    ] {
        assert_eq!(refused(fine.clone()), None, "{fine}");
    }
    // What is counted is the conversation as it is.
    let request =
        json!({"messages": [{"role": "user", "content": "Hi"}], "compaction": {"type": "enabled"}});
    let request: MessageFields =
        tierbar_inference::body::parse(request.to_string().as_bytes()).unwrap();
    assert!(request.into_chat(&fields::COUNT_TOKENS).is_ok());
}
