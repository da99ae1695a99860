//! Chats with tools and with thinking. The test models know neither, so they get a template that does; what they say is
//! held to its form by the grammar.

use crate::support::{SMOLLM, Worker, model};
use serde_json::{Value, json};

/// ChatML with tool calls as JSON between tags, and thinking between tags: the form that Qwen's models have made common.
const TEMPLATE: &str = include_str!("../../../../../tests/fixtures/tools.jinja");

async fn worker(folder: &tempfile::TempDir) -> Worker {
    let path = folder.path().join("template.jinja");
    std::fs::write(&path, TEMPLATE.trim_end()).unwrap();
    let path = path.to_str().unwrap();
    Worker::start(
        &model(SMOLLM),
        &["--context", "2048", "--chat-template", path],
    )
    .await
}

/// What the model is to do now it has seen done before: it is too small to come to it by itself.
fn rehearsed() -> Value {
    let mut messages = Vec::new();
    for city in ["Rome", "Oslo", "Lima", "Cairo"] {
        let call = json!({"id": city, "type": "function", "function": {"name": "get_weather",
                          "arguments": json!({"city": city}).to_string()}});
        messages
            .push(json!({"role": "user", "content": format!("What is the weather in {city}?")}));
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
    }
    messages.push(question()[0].clone());
    Value::Array(messages)
}

fn question() -> Value {
    json!([{"role": "user", "content": "What is the weather in Paris?"}])
}

fn weather() -> Value {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}},
                        "required": ["city"], "additionalProperties": false});
    json!([{"type": "function", "function": {"name": "get_weather", "description": "The weather of a city",
                                             "parameters": schema}}])
}

#[tokio::test]
async fn a_required_tool_is_called_with_valid_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let worker = worker(&folder).await;
    let mut request = json!({"messages": rehearsed(), "tools": weather(), "tool_choice": "required", "max_tokens": 120,
                             "temperature": 0, "cache_prompt": false});
    let (status, answer) = worker.post("/v1/chat/completions", &request).await;
    assert_eq!(status, 200, "{answer}");
    let choice = &answer["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls", "{answer}");
    let call = &choice["message"]["tool_calls"][0];
    assert_eq!(call["function"]["name"], "get_weather");
    assert!(call["id"].as_str().is_some_and(|id| !id.is_empty()));
    let arguments = call["function"]["arguments"].as_str().unwrap();
    let read: Value = serde_json::from_str(arguments).unwrap();
    assert!(read["city"].is_string(), "{arguments}");

    request["stream"] = json!(true);
    let events = worker.stream("/v1/chat/completions", &request).await;
    let (mut name, mut streamed, mut finish) = (String::new(), String::new(), Value::Null);
    for event in &events[..events.len() - 1] {
        let chunk: Value = serde_json::from_str(event).unwrap();
        let choice = &chunk["choices"][0];
        assert!(
            choice["delta"]["content"]
                .as_str()
                .is_none_or(str::is_empty),
            "{chunk}"
        );
        if let Some(call) = choice["delta"]["tool_calls"].get(0) {
            name += call["function"]["name"].as_str().unwrap_or_default();
            streamed += call["function"]["arguments"].as_str().unwrap_or_default();
        }
        if !choice["finish_reason"].is_null() {
            finish = choice["finish_reason"].clone();
        }
    }
    assert_eq!(
        (name.as_str(), &finish),
        ("get_weather", &json!("tool_calls"))
    );
    assert_eq!(streamed, arguments);
}

#[tokio::test]
async fn tools_are_chosen_and_their_results_returned() {
    let folder = tempfile::tempdir().unwrap();
    let worker = worker(&folder).await;
    let mut tools = weather();
    let time = json!({"type": "function", "function": {"name": "get_time", "parameters": {"type": "object", "properties": {}}}});
    tools.as_array_mut().unwrap().push(time);
    let choice = json!({"type": "function", "function": {"name": "get_time"}});
    let (call, id) = (
        json!({"name": "get_weather", "arguments": "{\"city\": \"Paris\"}"}),
        "call_1",
    );
    let mut messages = question();
    let more = [
        json!({"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": call}]}),
        json!({"role": "tool", "tool_call_id": id, "content": "It rains."}),
    ];
    messages.as_array_mut().unwrap().extend(more);
    let request = json!({"messages": messages, "tools": tools, "tool_choice": choice});
    let (_, rendered) = worker.post("/apply-template", &request).await;
    let prompt = rendered["prompt"].as_str().unwrap();
    let (offered, rest) = prompt.split_once("</tools>").unwrap();
    assert!(
        offered.contains("get_time") && !offered.contains("get_weather"),
        "{prompt}"
    );
    assert!(
        rest.contains(
            "<tool_call>\n{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\"}}"
        ),
        "{prompt}"
    );
    assert!(rest.contains("<tool_response>\nIt rains."), "{prompt}");
}

/// A forecast with what a grammar can hold, and a small model would not.
fn forecast() -> Value {
    let unit = json!({"enum": ["celsius", "fahrenheit"]});
    let days = json!({"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 14}, "minItems": 1, "maxItems": 3});
    let schema = json!({"type": "object", "properties": {"unit": unit, "days": days}, "required": ["unit", "days"],
                        "additionalProperties": false});
    json!({"type": "function", "function": {"name": "get_forecast", "parameters": schema}})
}

/// The names and arguments of an answer's calls.
fn calls(message: &Value) -> Vec<(&str, Value)> {
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    calls
        .map(|call| {
            let arguments = call["function"]["arguments"].as_str().unwrap();
            let arguments =
                serde_json::from_str(arguments).unwrap_or_else(|error| panic!("{error}: {call}"));
            (call["function"]["name"].as_str().unwrap(), arguments)
        })
        .collect()
}

fn check_forecast(arguments: &Value) {
    let unit = arguments["unit"].as_str().unwrap();
    assert!(["celsius", "fahrenheit"].contains(&unit), "{arguments}");
    let days = arguments["days"].as_array().unwrap();
    let known = |day: &Value| day.as_i64().is_some_and(|day| (1..=14).contains(&day));
    assert!(
        (1..=3).contains(&days.len()) && days.iter().all(known),
        "{arguments}"
    );
    assert_eq!(arguments.as_object().unwrap().len(), 2, "{arguments}");
}

#[tokio::test]
async fn a_forced_call_is_valid_in_every_form_and_behind_thinking() {
    let folder = tempfile::tempdir().unwrap();
    let mut tools = weather();
    tools.as_array_mut().unwrap().push(forecast());
    let named = json!({"type": "function", "function": {"name": "get_forecast"}});
    let allowed =
        json!({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named]}});
    for (form, worker) in [
        ("native", worker(&folder).await),
        ("generic", Worker::smollm().await),
    ] {
        assert_eq!(worker.get("/props").await["tools"], form);
        for choice in [&named, &allowed] {
            for seed in 0..3 {
                let thinks = form == "native" && seed > 0;
                let request = json!({"messages": question(), "tools": tools, "tool_choice": choice, "parallel_tool_calls": false,
                    "max_tokens": 200, "temperature": 1, "seed": seed, "think": thinks, "thinking_budget_tokens": 10});
                let (status, answer) = worker.post("/v1/chat/completions", &request).await;
                assert_eq!(status, 200, "{answer}");
                let choice = &answer["choices"][0];
                assert_eq!(choice["finish_reason"], "tool_calls", "{answer}");
                let message = &choice["message"];
                assert_eq!(message["content"], Value::Null, "{answer}");
                assert_eq!(message["reasoning_content"].is_string(), thinks, "{answer}");
                let calls = calls(message);
                assert_eq!(calls.len(), 1, "{answer}");
                assert_eq!(calls[0].0, "get_forecast");
                check_forecast(&calls[0].1);
            }
        }
    }
}

#[tokio::test]
async fn a_template_without_tools_renders_calls_as_text() {
    let worker = Worker::smollm().await;
    let render = async |request: &Value| {
        let (status, rendered) = worker.post("/apply-template", request).await;
        assert_eq!(status, 200, "{rendered}");
        rendered["prompt"].as_str().unwrap().to_owned()
    };
    let mut messages = question();
    let function = json!({"name": "get_weather", "arguments": "{\"city\": \"Paris\"}"});
    messages.as_array_mut().unwrap().extend([
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": "a", "type": "function", "function": function}]}),
        json!({"role": "tool", "tool_call_id": "a", "content": "It rains."}),
    ]);
    let call = r#"<|im_start|>assistant
<tool_call>{"name":"get_weather","arguments":{"city":"Paris"}}</tool_call><|im_end|>
<|im_start|>user
<tool_response>
It rains.
</tool_response><|im_end|>"#;
    let mut request = json!({"messages": messages, "tools": weather()});
    let offered = render(&request).await;
    assert!(
        offered.contains(r#"{"name":"get_weather","description":"The weather of a city""#),
        "{offered}"
    );
    assert!(offered.contains(call), "{offered}");
    for more in [
        json!({"tools": []}),
        json!({"tools": weather(), "tool_choice": "none"}),
    ] {
        for (key, value) in more.as_object().unwrap() {
            request[key] = value.clone();
        }
        let silent = render(&request).await;
        assert!(
            silent.contains(call) && !silent.contains("You can call"),
            "{silent}"
        );
    }

    // The older form, in and out.
    let function = weather()[0]["function"].clone();
    let mut request = json!({"messages": question(), "functions": [function], "function_call": {"name": "get_weather"},
        "max_tokens": 100, "temperature": 0});
    let (status, answer) = worker.post("/v1/chat/completions", &request).await;
    assert_eq!(status, 200, "{answer}");
    let choice = &answer["choices"][0];
    assert_eq!(choice["finish_reason"], "function_call", "{answer}");
    assert!(choice["message"].get("tool_calls").is_none(), "{answer}");
    let called = &choice["message"]["function_call"];
    assert_eq!(called["name"], "get_weather");
    let arguments: Value = serde_json::from_str(called["arguments"].as_str().unwrap()).unwrap();
    assert!(arguments["city"].is_string(), "{arguments}");
    request["stream"] = json!(true);
    let (mut name, mut arguments, mut finish) = (String::new(), String::new(), Value::Null);
    for event in worker.stream("/v1/chat/completions", &request).await {
        let Ok(chunk) = serde_json::from_str::<Value>(&event) else {
            continue;
        };
        let choice = &chunk["choices"][0];
        let piece = &choice["delta"]["function_call"];
        name += piece["name"].as_str().unwrap_or_default();
        arguments += piece["arguments"].as_str().unwrap_or_default();
        if !choice["finish_reason"].is_null() {
            finish = choice["finish_reason"].clone();
        }
    }
    assert_eq!(
        (json!(name), json!(arguments), finish),
        (
            called["name"].clone(),
            called["arguments"].clone(),
            json!("function_call")
        )
    );
}

#[tokio::test]
async fn schemas_that_cannot_be_followed_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    for worker in [worker(&folder).await, Worker::smollm().await] {
        let tool = |name: &str, schema: Value| json!({"type": "function", "function": {"name": name, "parameters": schema}});
        let ask = async |tools: Value, choice: &str| {
            let request = json!({"messages": question(), "tools": tools, "tool_choice": choice, "parallel_tool_calls": false,
                "max_tokens": 60, "temperature": 1, "seed": 1});
            worker.post("/v1/chat/completions", &request).await
        };
        for choice in ["auto", "required"] {
            for (schema, part) in [
                (
                    json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}),
                    "\"odd\"",
                ),
                (
                    json!({"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}}),
                    "\"odd\"",
                ),
                (
                    json!({"type": "object", "properties": {"a": {"type": "sting"}}}),
                    "\"odd\"",
                ),
                (
                    json!({"type": "object", "properties": {"a": {"enum": vec!["x".repeat(1000); 1100]}}}),
                    "limit",
                ),
            ] {
                let (status, answer) = ask(
                    json!([
                        tool("plain", json!({"type": "object"})),
                        tool("odd", schema)
                    ]),
                    choice,
                )
                .await;
                assert_eq!(status, 400, "{choice}: {answer}");
                let message = answer["error"]["message"].as_str().unwrap();
                assert!(
                    message.contains(part) && message.contains("`tools`"),
                    "{choice}: {message}"
                );
            }
        }
        let tree = json!({"type": "object", "properties": {"n": {"enum": [1]}, "child": {"$ref": "#"}}, "required": ["n"]});
        let (status, answer) = ask(json!([tool("tree", tree)]), "required").await;
        assert_eq!(status, 200, "{answer}");
        let many: Vec<_> = (0..500)
            .map(|at| tool(&format!("tool_{at}"), json!({"type": "object"})))
            .collect();
        let (status, answer) = ask(json!(many), "required").await;
        // Their description alone is more than the context.
        assert_eq!(
            (status, &answer["error"]["code"]),
            (400, &json!("context_length_exceeded")),
            "{answer}"
        );
        let contradiction = json!({"type": "object", "properties": {"a": {"type": "string", "minLength": 3, "maxLength": 2}}, "required": ["a"]});
        let (status, answer) = ask(json!([tool("never", contradiction)]), "required").await;
        assert_eq!(status, 400, "{answer}");
    }
}

#[tokio::test]
async fn tools_that_cannot_be_offered_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let worker = worker(&folder).await;
    for (more, part) in [
        (
            json!({"tool_choice": "required"}),
            "`tools` has no function",
        ),
        (
            json!({"tools": weather(), "tool_choice": "some"}),
            "`tool_choice`",
        ),
        (
            json!({"tools": weather(), "tool_choice": {"function": {"name": "gone"}}}),
            "`tool_choice` names \"gone\", which is not among the `tools`",
        ),
        (
            json!({"tools": weather(), "grammar": "root ::= \"a\""}),
            "cannot be combined",
        ),
        (
            json!({"tools": [{"type": "function", "function": {"name": "x".repeat(2 << 20)}}]}),
            "limit",
        ),
    ] {
        let mut request = json!({"messages": question()});
        for (key, value) in more.as_object().unwrap() {
            request[key] = value.clone();
        }
        let (status, answer) = worker.post("/v1/chat/completions", &request).await;
        assert_eq!(status, 400, "{part}: {answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(part), "{part}: {message}");
    }
}

#[tokio::test]
async fn thinking_is_separate_and_off_by_default() {
    let folder = tempfile::tempdir().unwrap();
    let worker = worker(&folder).await;
    let prompt = async |more: Value| {
        let mut request = json!({"messages": question()});
        for (key, value) in more.as_object().unwrap() {
            request[key] = value.clone();
        }
        let (_, rendered) = worker.post("/apply-template", &request).await;
        rendered["prompt"].as_str().unwrap().to_owned()
    };
    for (more, thinks) in [
        (json!({}), false),
        (
            json!({"chat_template_kwargs": {"enable_thinking": true}}),
            true,
        ),
        (
            json!({"chat_template_kwargs": {"enable_thinking": false}, "think": true}),
            false,
        ),
        (json!({"reasoning_effort": "low"}), true),
        (json!({"reasoning_effort": "none"}), false),
        (json!({"think": true}), true),
        (json!({"think": "high"}), true),
    ] {
        let ends_open = prompt(more.clone()).await.trim_end().ends_with("<think>");
        assert_eq!(ends_open, thinks, "{more}");
    }

    // A budget ends the thinking; what comes after it is the answer.
    let request = json!({"messages": question(), "think": true, "thinking_budget_tokens": 12, "max_tokens": 60,
                         "temperature": 0, "ignore_eos": true});
    let (status, answer) = worker.post("/v1/chat/completions", &request).await;
    assert_eq!(status, 200, "{answer}");
    let message = &answer["choices"][0]["message"];
    let thought = message["reasoning_content"].as_str().unwrap();
    let spoken = message["content"].as_str().unwrap();
    assert!(!thought.is_empty() && !spoken.is_empty(), "{message}");
    for text in [thought, spoken] {
        assert!(!text.contains("think>"), "{text}");
    }
    let (_, counted) = worker.post("/tokenize", &json!({"content": thought})).await;
    let tokens = counted["tokens"].as_array().unwrap().len();
    assert!((8..=16).contains(&tokens), "{tokens}: {thought}");
}
