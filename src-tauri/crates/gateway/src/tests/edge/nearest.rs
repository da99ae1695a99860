use crate::testing::{Bench, json};
use axum::{body::Body, http::Request};

#[tokio::test]
async fn refusals_have_the_form_of_the_dialect() {
    let bench = Bench::new("127.0.0.1:11435").await;
    let batches = json(bench.get("/v1/messages/batches").await).await;
    assert_eq!(batches["type"], "error", "{batches}");
    assert_eq!(batches["error"]["type"], "not_found_error", "{batches}");
    let said = batches["error"]["message"].as_str().unwrap();
    assert!(
        said.contains("no route matches /v1/messages/batches"),
        "{said}"
    );
    for path in ["/v1/v1/messages", "/messages"] {
        let request = Request::get(path)
            .header("host", "localhost")
            .header("anthropic-version", "2023-06-01")
            .body(Body::empty());
        let refused = json(bench.send(request.unwrap()).await).await;
        assert_eq!(refused["type"], "error", "{refused}");
        assert!(refused["request_id"].is_string(), "{refused}");
    }
    let unversioned = json(bench.get("/v1/v1/messages").await).await;
    assert_eq!(unversioned["type"], "error", "{unversioned}");
    for path in ["/v1/api/tags", "/v1/v1/api/chat", "/api/nothing"] {
        let refused = json(bench.get(path).await).await;
        assert!(refused["error"].is_string(), "{refused}");
    }
    let request = Request::get("/v1/chat/completions")
        .header("host", "localhost")
        .body(Body::empty());
    let refused = bench.send(request.unwrap()).await;
    assert_eq!(refused.status(), 405);
    let refused = json(refused).await;
    assert_eq!(refused["error"]["hint"], "send POST", "{refused}");
}
