//! What would take for ever, or all of the memory, or the stack: refused with a sentence, and the worker goes on.

use crate::support::{HANG, SMOLLM, WORKER, Worker, model, template};
use serde_json::{Value, json};
use tempfile::TempDir;
use tierbar_core::Code;

async fn with_template(text: &str) -> (Worker, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("template.jinja");
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap();
    let extra = ["--context", "512", "--chat-template", path];
    (Worker::start(&model(SMOLLM), &extra).await, folder)
}

/// The worker still answers.
async fn goes_on(worker: &Worker) {
    let request = json!({"prompt": "1, 2, 3,", "max_tokens": 2, "temperature": 0});
    let (status, answer) = worker.post("/v1/completions", &request).await;
    assert_eq!(status, 200, "{answer}");
}

async fn refused(worker: &Worker, path: &str, request: &Value, part: &str) {
    let (status, answer) = worker.post(path, request).await;
    assert_eq!(status, 400, "{part}: {answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains(part), "{part}: {message}");
}

#[tokio::test]
async fn an_endless_template_is_refused_at_load() {
    let contents = "{% for m in messages %}{{ m.content }}{% endfor %}";
    let (open, close) = ("(".repeat(100_000), ")".repeat(100_000));
    for (template, part) in [
        (
            "{% for i in range(1000000000) %}{% endfor %}",
            "too much memory",
        ),
        ("{{ 'a' * 1000000000 }}", "too much memory"),
        (
            "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x }}",
            "too much memory",
        ),
        (
            "{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}",
            "nested too deeply",
        ),
        (&format!("{{{{ {open}1{close} }}}}"), "nested too deeply"),
        ("{{ 5 is divisibleby 0 }}", "divisibleby"),
    ] {
        let (worker, _folder) = with_template(&format!("{contents}{template}")).await;
        let error = worker.failure();
        assert_eq!(error.code, Code::ModelInvalid);
        assert!(error.message.contains(part), "{part}: {}", error.message);
        assert!(error.hint.is_some());
    }
}

#[tokio::test]
async fn a_looping_template_only_fails_its_request() {
    let (worker, _folder) = with_template(
        "{% for m in messages %}{{ m.content }}{% endfor %}{% if messages[0].content == 'memory' %}{% for i in \
         range(1000000000) %}{% endfor %}{% endif %}{% if messages[0].content == 'nest' %}{% set ns = namespace(x={}) \
         %}{% for i in range(10000) %}{% set ns.x = {'a': ns.x} %}{% endfor %}{{ ns.x | tojson }}{% endif %}{% if \
         messages[0].content == 'time' %}{% for a in range(9999) %}{% for b in range(9999) %}{% if a %}{% endif \
         %}{% endfor %}{% endfor %}{% endif %}",
    )
    .await;
    worker.ready();
    let of = |content: &str| json!({"messages": [{"role": "user", "content": content}]});
    // The others do not wait for it.
    let (long, hello) = (of("time"), of("Hello"));
    let long = refused(&worker, "/apply-template", &long, "too long");
    let short = async {
        let (status, answer) = worker.post("/apply-template", &hello).await;
        assert_eq!((status, &answer["prompt"]), (200, &json!("Hello")));
    };
    tokio::join!(long, short);
    refused(
        &worker,
        "/v1/chat/completions",
        &of("memory"),
        "too much memory",
    )
    .await;
    goes_on(&worker).await;
}

#[tokio::test]
async fn exploding_grammars_are_refused() {
    let worker = Worker::smollm().await;
    let chain = |last: &str, rule: &dyn Fn(u32) -> String| {
        let rules = (0..60).map(rule).collect::<Vec<_>>().join("\n");
        format!("root ::= r0\n{rules}\nr60 ::= {last}")
    };
    for (grammar, part) in [
        (
            r#"root ::= ((("a"{1,1000}){1,1000}){1,1000}){1,1000}"#.into(),
            "repeats too often",
        ),
        (
            r#"root ::= "a"{99999999999999999999999}"#.into(),
            "does not parse",
        ),
        (r#"root ::= root "a" | "b""#.into(), "begins with itself"),
        // Two ways at each of sixty rules.
        (
            chain(r#""c""#, &|n| {
                format!(r#"r{n} ::= r{0} "a" | r{0} "b""#, n + 1)
            }),
            "in too many ways",
        ),
        // It begins with itself behind a rule that only others make empty.
        (
            "root ::= b root root \"x\" | \"y\"\nb ::= c c\nc ::= d\nd ::= \"\" | \"q\"".into(),
            "it takes too",
        ),
        // Each place has thousands of continuations.
        (
            format!("root ::= {}", "[a-z ]* ".repeat(2000)),
            "it takes too",
        ),
        (format!("root ::= {}", "(".repeat(200)), "nested deeper"),
        (format!("root ::= \"{}\"", "a".repeat(100_000)), "limit"),
        ("root ::= nothing".into(), "does not parse"),
        ("root ::= (".into(), "does not parse"),
    ] {
        let request =
            json!({"prompt": "Once upon", "max_tokens": 8, "temperature": 0, "grammar": grammar});
        refused(&worker, "/v1/completions", &request, part).await;
        goes_on(&worker).await;
    }
}

#[tokio::test]
async fn an_impossible_grammar_only_ends_its_answer() {
    let worker = Worker::smollm().await;
    // No token is a NUL byte; behind its end only the end token fits, and that is switched off.
    let prompt = "Once upon";
    let none = json!({"prompt": prompt, "max_tokens": 8, "temperature": 0, "grammar": r#"root ::= "\x00""#});
    let no_end = json!({"messages": [{"role": "user", "content": prompt}], "max_tokens": 8, "ignore_eos": true,
                        "grammar": r#"root ::= "a""#});
    for (path, request) in [("/v1/completions", none), ("/v1/chat/completions", no_end)] {
        refused(&worker, path, &request, "does not allow").await;
        goes_on(&worker).await;
    }
}

#[tokio::test]
async fn recursive_schemas_do_not_harm_the_worker() {
    let worker = Worker::smollm().await;
    let node = json!({"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}});
    let names: Vec<_> = (0..2000).map(|n| format!("e{n}")).collect();
    let ways: Vec<_> = names.iter().map(|name| json!({"const": name})).collect();
    let followed = [
        json!({"$defs": {"node": node}, "$ref": "#/$defs/node"}),
        json!({"type": "string", "maxLength": 1_000_000_000}),
        json!({"enum": names}),
        json!({"oneOf": ways}),
        json!({"type": "string", "pattern": format!("^({})$", names.join("|"))}),
    ];
    let refused_ones = [
        (json!({"$ref": "https://example.invalid/x.json"}), "$ref"),
        (
            json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
            "",
        ),
        (
            json!({"type": "array", "items": {}, "minItems": 1_000_000_000}),
            "",
        ),
        (
            json!({"type": "array", "items": {}, "minItems": 5, "maxItems": 2}),
            "",
        ),
        (
            json!({"type": "string", "pattern": format!("^{}$", "(".repeat(50))}),
            "",
        ),
        (json!({"type": "string", "pattern": "^a{5,2}$"}), ""),
        (
            json!({"type": "string", "pattern": format!("^({})$", "a?".repeat(3000))}),
            "",
        ),
        (json!({"type": 5}), "type"),
        (
            json!({"type": "string", "description": "x".repeat(100_000)}),
            "limit",
        ),
    ];
    let message = json!([{"role": "user", "content": "Go on."}]);
    for schema in followed {
        let request =
            json!({"prompt": "JSON:", "max_tokens": 8, "temperature": 0, "json_schema": schema});
        let (status, answer) = worker.post("/v1/completions", &request).await;
        assert_eq!(status, 200, "{schema}: {answer}");
    }
    for (schema, part) in refused_ones {
        let request =
            json!({"prompt": "JSON:", "max_tokens": 8, "temperature": 0, "json_schema": schema});
        refused(&worker, "/v1/completions", &request, part).await;
        let format = json!({"type": "json_schema", "json_schema": {"schema": schema}});
        let request = json!({"messages": message, "max_tokens": 8, "response_format": format});
        refused(&worker, "/v1/chat/completions", &request, part).await;
        goes_on(&worker).await;
    }
}

#[tokio::test]
async fn endlessly_nested_json_is_refused_everywhere() {
    let path = template("Qwen3.5-4B.jinja");
    let extra = [
        "--context",
        "512",
        "--chat-template",
        path.to_str().unwrap(),
    ];
    let worker = Worker::start(&model(SMOLLM), &extra).await;
    let arguments = |text: String| {
        let call =
            json!({"id": "1", "type": "function", "function": {"name": "f", "arguments": text}});
        json!({"messages": [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": "x"},
        ]})
    };
    let depth = 400_000;
    let lists = "[".repeat(depth) + &"]".repeat(depth);
    let objects = "{\"a\":".repeat(depth) + "1" + &"}".repeat(depth);
    for text in [lists, objects, "[".repeat(3_000_000)] {
        refused(&worker, "/apply-template", &arguments(text), "it ").await;
        goes_on(&worker).await;
    }
    let response = worker
        .send(
            "/apply-template",
            format!("{{\"messages\":{}", "[".repeat(1_000_000)),
        )
        .await;
    assert_eq!(response.status(), 400);
    // As many tools as a request may bring.
    let tools: Vec<_> = (0..900)
        .map(|n| {
            let properties = (0..8).map(|p| (format!("p{p}"), json!({"type": "string"})));
            let properties = Value::Object(properties.collect());
            let schema = json!({"type": "object", "properties": properties});
            json!({"type": "function", "function": {"name": format!("f{n}"), "description": "d", "parameters": schema}})
        })
        .collect();
    let request =
        json!({"messages": [{"role": "user", "content": "a"}], "tools": tools, "max_tokens": 2});
    refused(&worker, "/v1/chat/completions", &request, "").await;
    goes_on(&worker).await;
}

/// Comparing tuples of tuples takes no memory, and for ever.
#[tokio::test]
async fn an_unbounded_template_ends_the_worker_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("endless.jinja");
    let doubled = "{% set ns = namespace(x=1) %}{% for i in range(40) %}{% set ns.x = (ns.x, ns.x) %}{% endfor %}";
    std::fs::write(&path, format!("{doubled}{{% set d = {{ns.x: 1}} %}}")).unwrap();
    let mut worker = tokio::process::Command::new(WORKER)
        .arg("--model")
        .arg(model(SMOLLM))
        .arg("--socket")
        .arg(folder.path().join("w.sock"))
        .arg("--chat-template")
        .arg(&path)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    // It lives as long as this.
    let _stdin = worker.stdin.take();
    let ended = tokio::time::timeout(HANG, worker.wait_with_output()).await;
    let ended = ended.unwrap().unwrap();
    assert_eq!(ended.status.code(), Some(70));
    let contents = String::from_utf8_lossy(&ended.stderr);
    assert!(contents.contains("does not terminate"), "{contents}");
}
