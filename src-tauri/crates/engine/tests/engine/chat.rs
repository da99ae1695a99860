//! Chats with tools and with thinking. The test models know neither, so they get a template that does; what they say is
//! held to its form by the grammar.

use crate::support::{SMOLLM, Worker, model};
use serde_json::{Value, json};

/// ChatML with tool calls as JSON between tags, and thinking between tags: the form that Qwen's models have made common.
const TEMPLATE: &str = r#"{%- if tools %}
    {{- '<|im_start|>system\nYou may call functions: answer with a JSON object within <tool_call></tool_call> tags.\n<tools>' }}
    {%- for tool in tools %}
        {{- '\n' }}{{- tool | tojson }}
    {%- endfor %}
    {{- '\n</tools><|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'assistant' %}
        {{- '<|im_start|>assistant\n' }}
        {%- if message.reasoning_content %}
            {{- '<think>\n' + message.reasoning_content + '\n</think>\n\n' }}
        {%- endif %}
        {%- if message.content %}
            {{- message.content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for call in message.tool_calls %}
                {%- if message.content or not loop.first %}
                    {{- '\n' }}
                {%- endif %}
                {{- '<tool_call>\n{"name": "' }}
                {{- call.function.name }}
                {{- '", "arguments": ' }}
                {{- call.function.arguments | tojson }}
                {{- '}\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\n' }}
    {%- elif message.role == 'tool' %}
        {{- '<|im_start|>user\n<tool_response>\n' + message.content + '\n</tool_response><|im_end|>\n' }}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking %}
        {{- '<think>\n' }}
    {%- endif %}
{%- endif %}"#;

async fn worker(folder: &tempfile::TempDir) -> Worker {
    let path = folder.path().join("template.jinja");
    std::fs::write(&path, TEMPLATE).unwrap();
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

#[tokio::test]
async fn tools_that_cannot_be_offered_are_refused() {
    let plain = Worker::smollm().await;
    let request = json!({"messages": question(), "tools": weather()});
    let (status, answer) = plain.post("/v1/chat/completions", &request).await;
    assert_eq!(status, 400, "{answer}");
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("does not support tools")
    );

    let folder = tempfile::tempdir().unwrap();
    let worker = worker(&folder).await;
    for (more, part) in [
        (json!({"tool_choice": "required"}), "`tools` is empty"),
        (
            json!({"tools": weather(), "tool_choice": "some"}),
            "`tool_choice`",
        ),
        (
            json!({"tools": weather(), "tool_choice": {"function": {"name": "x"}}}),
            "not among",
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
