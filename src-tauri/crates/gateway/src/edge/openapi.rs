//! `GET /openapi.json`: the inference API as OpenAPI 3.1. The document is `docs/openapi.json`, written by hand; tests hold it
//! against the router, here, and the router against it (`tests/tests/house.rs`).

use axum::{http::header, response::IntoResponse};

const DOCUMENT: &str = include_str!("../../../../../docs/openapi.json");

pub(crate) async fn document() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], DOCUMENT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, json, text};
    use axum::{body::Body, http::Request};
    use serde_json::Value;

    fn read() -> Value {
        serde_json::from_str(DOCUMENT).unwrap()
    }

    /// Every `$ref` of the document.
    fn references(part: &Value, found: &mut Vec<String>) {
        match part {
            Value::Object(fields) => {
                if let Some(Value::String(to)) = fields.get("$ref") {
                    found.push(to.clone());
                }
                fields.values().for_each(|value| references(value, found));
            }
            Value::Array(values) => values.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    #[tokio::test]
    async fn the_document_is_served_and_complete() {
        let bench = Bench::new("127.0.0.1:11435").await;
        let served = json(bench.get("/openapi.json").await).await;
        assert_eq!(served["openapi"], "3.1.0");
        assert_eq!(served["info"]["version"], env!("CARGO_PKG_VERSION"));
        let mut found = Vec::new();
        references(&served, &mut found);
        assert!(!found.is_empty());
        for to in found {
            let to = to.strip_prefix('#').unwrap();
            assert!(served.pointer(to).is_some(), "{to}");
        }
    }

    #[tokio::test]
    async fn each_documented_route_exists() {
        let bench = Bench::new("127.0.0.1:11435").await;
        for (path, methods) in read()["paths"].as_object().unwrap() {
            for method in methods.as_object().unwrap().keys() {
                let request = Request::builder()
                    .method(method.to_uppercase().as_str())
                    .uri(path.replace("{id}", "none").replace("{digest}", "none"))
                    .header(header::HOST, "localhost");
                // No body is right: what is there says so, what is not there is not there.
                let answer = bench.send(request.body(Body::from("[]")).unwrap()).await;
                assert_ne!(answer.status(), 405, "{method} {path}");
                let reply = text(answer).await;
                assert!(
                    !reply.contains("there is nothing at"),
                    "{method} {path}: {reply}"
                );
            }
        }
    }
}
