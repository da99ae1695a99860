use crate::testing::{Bench, json, text};
use axum::http::header;
use axum::{body::Body, http::Request};
use serde_json::Value;
use utoipa::openapi::{self, Object, RefOr, Schema};

/// The configuration is answered whole: each key that has a default, but for tables that are left out while they are empty.
fn require_keys(table: &mut Object) {
    let has_default = |key: &RefOr<Schema>| {
        let key = serde_json::to_value(key).unwrap();
        !key["default"].is_null() && key["default"] != serde_json::json!({})
    };
    let keys = table.properties.iter().filter(|(_, key)| has_default(key));
    let keys: Vec<_> = keys.map(|(name, _)| name.clone()).collect();
    if !keys.is_empty() {
        table.required.extend(keys);
        table.required.sort();
        table.required.dedup();
    }
}

/// As `docs/openapi.json` has it.
fn collected(mut api: openapi::OpenApi) -> String {
    // A path may have slashes in its last part, which OpenAPI has no way to write.
    let paths = std::mem::take(&mut api.paths.paths).into_iter();
    api.paths.paths = paths
        .map(|(path, item)| (path.replace("{*", "{"), item))
        .collect();
    for (name, schema) in &mut api.components.as_mut().unwrap().schemas {
        if let (true, RefOr::T(Schema::Object(table))) = (name.ends_with("Config"), schema) {
            require_keys(table);
        }
    }
    api.to_pretty_json().unwrap() + "\n"
}

/// `TIERBAR_WRITE_OPENAPI=1 cargo quick-test -p tierbar-gateway openapi` writes it.
#[cfg(openapi)]
#[tokio::test]
async fn the_served_document_describes_the_routes() {
    let mut bench = Bench::new("127.0.0.1:11435").await;
    let collected = collected(bench.api.take().unwrap());
    if std::env::var_os("TIERBAR_WRITE_OPENAPI").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/openapi.json");
        // The served document is the one that this program was compiled with.
        return std::fs::write(path, &collected).unwrap();
    }
    let served = text(bench.get("/openapi.json").await).await;
    assert!(
        served == collected,
        "docs/openapi.json is out of date; write it with TIERBAR_WRITE_OPENAPI=1"
    );
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
    let served = json(bench.get("/openapi.json").await).await;
    for (path, methods) in served["paths"].as_object().unwrap() {
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
                !reply.contains("no route matches"),
                "{method} {path}: {reply}"
            );
        }
    }
}
