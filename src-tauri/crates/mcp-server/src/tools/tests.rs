use super::*;

/// An API that answers every request in one way.
struct ScriptedApi(fn(&str, Option<&Value>) -> Result<Value, Error>);

impl Api for ScriptedApi {
    async fn send(&self, path: &str, body: Option<&Value>) -> Result<Value, Error> {
        (self.0)(path, body)
    }
}

/// Calls a tool; gives the whole result.
async fn call(
    tool: Tool,
    arguments: Value,
    api: fn(&str, Option<&Value>) -> Result<Value, Error>,
) -> Value {
    let Value::Object(arguments) = arguments else {
        panic!("arguments are an object");
    };
    let result = tool.call(&ScriptedApi(api), arguments).await;
    serde_json::to_value(result).unwrap()
}

#[test]
fn each_tool_is_described_and_reads_alone() {
    let names = described().iter().map(|tool| &*tool.name);
    assert!(names.eq(Tool::ALL.iter().map(|tool| tool.as_str())));
    for (tool, described) in Tool::ALL.into_iter().zip(described()) {
        let described = serde_json::to_value(described).unwrap();
        assert_eq!(described["annotations"]["readOnlyHint"], true, "{tool:?}");
        let input = &described["inputSchema"];
        assert_eq!(input["additionalProperties"], false, "{tool:?}");
        for (schema, what) in [(input, "input"), (&described["outputSchema"], "output")] {
            assert_eq!(schema["type"], "object", "{tool:?}'s {what}");
            for name in schema["required"].as_array().unwrap() {
                let field = &schema["properties"][name.as_str().unwrap()];
                assert!(field.is_object(), "{tool:?}'s {what} {name}");
            }
        }
    }
    assert_eq!(Tool::find("Triage"), None);
    let search = &described()[0].input_schema;
    assert_eq!(search["properties"]["count"]["maximum"], MOST_PASSAGES);
}

#[tokio::test]
async fn passages_come_with_their_file_page_and_text() {
    let question = json!({"question": "how often?", "collection": "Papers", "count": 3});
    let found = call(Tool::SearchDocuments, question, |path, body| {
        assert_eq!(path, "/v1/documents/search");
        let wanted = json!({"query": "how often?", "collection": "Papers", "limit": 3});
        assert_eq!(body, Some(&wanted));
        let passage = json!({
            "id": 7, "file": 2, "path": "/papers/towers.pdf", "title": "Towers", "collection": "Papers",
            "headings": ["Upkeep"], "page": 12, "line": null, "text": "Painted every seven years.", "score": 0.5,
        });
        Ok(json!({"passages": [passage], "embedder": null, "reranked": false}))
    })
    .await;
    assert_eq!(found["isError"], false, "{found}");
    let passage = &found["structuredContent"]["passages"][0];
    assert_eq!(passage["file"], "/papers/towers.pdf");
    assert_eq!(passage["page"], 12);
    assert_eq!(passage["text"], "Painted every seven years.");
    assert_eq!(
        found["content"][0]["text"],
        "[1] Towers, Upkeep, page 12 (/papers/towers.pdf)\nPainted every seven years."
    );
    let none = call(
        Tool::SearchDocuments,
        json!({"question": "x", "collection": "Papres"}),
        |_, _| Ok(json!({"passages": [], "embedder": null, "reranked": false})),
    )
    .await;
    let text = none["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("\"Papres\"") && text.contains("`list_collections`"));
}

#[tokio::test]
async fn a_count_out_of_its_range_is_refused_with_the_range() {
    for count in [0, 51, 500] {
        let question = json!({"question": "x", "count": count});
        let refused = call(Tool::SearchDocuments, question, |_, _| unreachable!()).await;
        assert_eq!(refused["isError"], true, "{count}");
        assert_eq!(
            refused["content"][0]["text"],
            format!("count is {count}; it must be between 1 and 50")
        );
    }
}

#[tokio::test]
async fn collections_sum_what_their_sources_have() {
    let found = call(Tool::ListCollections, json!({}), |path, body| {
        assert_eq!((path, body), ("/tierbar/v1/documents", None));
        let source = |id: u64, collection: &str, indexed: u64| {
            json!({
                "id": id, "path": format!("/{id}"), "collection": collection, "is_folder": true, "is_missing": false,
                "indexed": indexed, "waiting": 1, "failed": 0, "noticed": 0, "read_pictures": false, "passages": 10, "without_vectors": 0,
            })
        };
        let sources = [source(1, "Papers", 3), source(2, "Mail", 1), source(3, "Papers", 4)];
        Ok(json!({"sources": sources, "indexing": {
            "state": "idle", "file": null, "done": 0, "waiting": 0, "embedder": null, "problem": null,
        }}))
    })
    .await;
    assert_eq!(
        found["structuredContent"]["collections"],
        json!([
            {"name": "Papers", "sources": ["/1", "/3"], "documents": 7, "waiting": 2, "failed": 0, "passages": 20},
            {"name": "Mail", "sources": ["/2"], "documents": 1, "waiting": 1, "failed": 0, "passages": 10},
        ])
    );
}

#[tokio::test]
async fn models_are_listed_with_their_state() {
    let found = call(Tool::ListModels, json!({}), |path, body| {
        assert_eq!((path, body), ("/v1/models", None));
        Ok(json!({"object": "list", "data": [
            {"id": "auto", "tierbar": {"kind": "router", "input_modalities": ["text"]}},
            {"id": "fast", "tierbar": {"kind": "tier", "state": "ready", "model": "small"}},
            {"id": "work", "tierbar": {"kind": "chain", "steps": ["fast", "queue"]}},
        ]}))
    })
    .await;
    let models = &found["structuredContent"]["models"];
    assert_eq!(
        models[1],
        json!({"name": "fast", "kind": "tier", "state": "ready", "model": "small"})
    );
    assert_eq!(
        found["content"][0]["text"],
        "auto: chooses a tier for each request\nfast: tier, ready, model small\nwork: chain of fast, queue"
    );
}

#[tokio::test]
async fn a_text_is_summarized_and_a_message_classified() {
    let summary = call(
        Tool::Summarize,
        json!({"text": "Long.", "words": 20}),
        |path, body| {
            assert_eq!(path, "/v1/summarize");
            let wanted = json!({"text": "Long.", "words": 20, "model": null});
            assert_eq!(body, Some(&wanted));
            Ok(json!({"summary": "Short.", "words": 1, "fallback": true, "tier": "primary"}))
        },
    )
    .await;
    let text = summary["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("Short.\n\n(Sentences of the text"));
    assert_eq!(summary["structuredContent"]["tier"], "primary");
    let message = json!({"text": "The server is on fire", "model": "fast"});
    let triage = call(Tool::Triage, message, |path, body| {
        assert_eq!(path, "/v1/triage");
        assert_eq!(body.unwrap()["model"], "fast");
        Ok(json!({"type": "alert", "urgency": 3, "needs_cloud": false, "why": "it informs"}))
    })
    .await;
    assert_eq!(
        triage["content"][0]["text"],
        "alert, urgency 3 of 3, needs no larger model: it informs"
    );
}

#[tokio::test]
async fn errors_are_results_in_words() {
    let error = async |tool: Tool, arguments: Value| {
        let result = call(tool, arguments, |_, _| {
            Err(Error::new(Code::ShuttingDown, "Tierbar is not running").hint("open the app"))
        })
        .await;
        assert_eq!(result["isError"], true, "{result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        error(Tool::ListModels, json!({})).await,
        "Tierbar is not running: open the app"
    );
    let missing = error(Tool::SearchDocuments, json!({"query": "x"})).await;
    assert!(
        missing.starts_with("the arguments are not valid: unknown field `query`, expected"),
        "{missing}"
    );
    let missing = error(Tool::Triage, json!({})).await;
    assert!(missing.ends_with("missing field `text`"), "{missing}");
}
