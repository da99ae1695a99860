use crate::testing::{Bench, json, text};
use axum::http::header;
use axum::{body::Body, http::Request};
use serde_json::Value;
use std::collections::HashSet;
use tierbar_core::download::Priority;
use tierbar_http::reach::{Part, Reaches};
use utoipa::{
    IntoParams, ToSchema,
    openapi::{self, Object, PathItem, Ref, RefOr, Schema, schema::ArrayItems},
};

/// The groups of routes by how their paths begin; the first that fits counts.
const GROUPS: [(&str, &str); 16] = [
    ("/api/", "ollama"),
    ("/mcp", "tools"),
    ("/tierbar/", "owner"),
    ("/v1/agent", "agent"),
    ("/v1/brief", "tasks"),
    ("/v1/compress", "tasks"),
    ("/v1/context", "contexts"),
    ("/v1/documents", "documents"),
    ("/v1/files", "documents"),
    ("/v1/messages", "anthropic"),
    ("/v1/queue", "queue"),
    ("/v1/summarize", "tasks"),
    ("/v1/triage", "tasks"),
    ("/v1/vector_stores", "documents"),
    ("/v1/", "openai"),
    ("/", "operations"),
];

/// Answers that leave out some of what would be null: their types say which fields they have.
const LEAVES_OUT: [&str; 10] = [
    "ApiKey",
    "ChatSummary",
    "CommandEngine",
    "EndpointEngine",
    "KeyLimits",
    "LibraryModel",
    "OllamaEmbedAnswer",
    "Point",
    "RequestRecord",
    "ScheduleStatus",
];

/// The headers of a request for an answer.
#[allow(dead_code, reason = "described, and never built")]
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
struct RequestHeaders {
    /// The tier that answers, if `model` leaves the choice open: `auto`, empty or missing.
    #[param(rename = "x-tierbar-tier", required = false)]
    tier: String,
    /// Whether the request may be queued: `allow` if it cannot be answered now, `only` in any case, `never` not even by its
    /// chain (docs/queue.md).
    #[param(rename = "x-tierbar-queue", required = false, inline)]
    queue: QueueMode,
    /// Of queued requests, those with a higher priority go first.
    #[param(rename = "x-tierbar-priority", required = false, inline)]
    priority: Priority,
    /// When a queued request expires: a duration such as `2h` or a time such as `2026-01-31T06:00:00Z`, at most a week ahead.
    /// Default: one day.
    #[param(rename = "x-tierbar-deadline", required = false)]
    deadline: String,
    /// The most attempts at a queued request. Default: 300.
    #[param(
        rename = "x-tierbar-attempts",
        required = false,
        minimum = 1,
        maximum = 1000
    )]
    attempts: u32,
    /// The URL that is notified when a queued request ends.
    #[param(
        rename = "x-tierbar-webhook",
        required = false,
        format = "uri",
        max_length = 2048
    )]
    webhook: String,
    /// Repeats with the same key return the same queued request.
    #[param(rename = "idempotency-key", required = false, max_length = 255)]
    idempotency_key: String,
}

#[allow(dead_code, reason = "described, and never built")]
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
enum QueueMode {
    Allow,
    Only,
    Never,
}

/// Adds what all requests for an answer take, and that they may be queued.
#[cfg(openapi)]
fn add_queueing(item: &mut PathItem) {
    let operation = item.post.as_mut().unwrap();
    let headers = RequestHeaders::into_params(|| None).into_iter();
    let parameters = operation.parameters.get_or_insert_default();
    parameters.splice(0..0, headers.map(RefOr::T));
    let queued = RefOr::Ref(Ref::from_response_name("Queued"));
    operation
        .responses
        .responses
        .insert("202".to_owned(), queued);
}

/// Puts the operations of a path in their group, each with its refusals in the group's form.
fn group(path: &str, item: &mut PathItem) {
    let mut groups = GROUPS.into_iter();
    let (_, group) = groups.find(|(begin, _)| path.starts_with(begin)).unwrap();
    let PathItem {
        get,
        put,
        post,
        delete,
        head,
        patch,
        ..
    } = item;
    let refusal = match group {
        "anthropic" => "AnthropicRefusal",
        "ollama" => "OllamaRefusal",
        _ => "Refusal",
    };
    for operation in [get, put, post, delete, head, patch].into_iter().flatten() {
        operation.tags = Some(vec![group.to_owned()]);
        let responses = &mut operation.responses.responses;
        let is_always_refused = responses.keys().all(|status| status.starts_with('4'));
        for status in ["4XX", "5XX"].into_iter().filter(|_| !is_always_refused) {
            let refused = || RefOr::Ref(Ref::from_response_name(refusal));
            responses.entry(status.to_owned()).or_insert_with(refused);
        }
    }
}

/// Requires the properties whose schema is so.
fn require(object: &mut Object, is_so: fn(&Value) -> bool) {
    let is_so = |property: &RefOr<Schema>| is_so(&serde_json::to_value(property).unwrap());
    let names = object.properties.iter();
    let names = names.filter(|(_, property)| is_so(property));
    let names: Vec<_> = names.map(|(name, _)| name.clone()).collect();
    if !names.is_empty() {
        object.required.extend(names);
        object.required.sort();
        object.required.dedup();
    }
}

/// The configuration is answered whole: each key that has a default, but for tables that are left out while they are empty.
fn has_default(key: &Value) -> bool {
    !key["default"].is_null() && key["default"] != serde_json::json!({})
}

/// An answer has all of its fields, too: what it does not know is null.
fn may_be_null(property: &Value) -> bool {
    let is_null = |form: &Value| form == "null" || form["type"] == "null";
    let forms = [&property["type"], &property["oneOf"]];
    let mut forms = forms.into_iter().filter_map(Value::as_array).flatten();
    forms.any(is_null)
}

/// Requires such properties of each object in a schema.
fn require_nullable(schema: &mut RefOr<Schema>) {
    let RefOr::T(schema) = schema else { return };
    match schema {
        Schema::Object(object) => {
            require(object, may_be_null);
            object.properties.values_mut().for_each(require_nullable);
        }
        Schema::AllOf(parts) => parts.items.iter_mut().for_each(require_nullable),
        Schema::OneOf(forms) => forms.items.iter_mut().for_each(require_nullable),
        Schema::Array(list) => {
            if let ArrayItems::RefOrSchema(item) = &mut list.items {
                require_nullable(item);
            }
        }
        _ => {}
    }
}

/// The schemas of requests, in which a missing field is null.
fn asked(api: &Value) -> HashSet<String> {
    let mut found = Vec::new();
    for methods in api["paths"].as_object().unwrap().values() {
        for operation in methods.as_object().unwrap().values() {
            references(&operation["requestBody"], &mut found);
            references(&operation["parameters"], &mut found);
        }
    }
    let mut asked = HashSet::new();
    while let Some(to) = found.pop() {
        let path = to.strip_prefix('#').unwrap();
        let name = path.rsplit('/').next().unwrap();
        if asked.insert(name.to_owned()) {
            references(api.pointer(path).unwrap(), &mut found);
        }
    }
    asked
}

/// The document with each schema that only names itself as `docs/openapi.json` has it, and with what that refers to
/// (`tierbar_http::written`).
fn with_written(api: &openapi::OpenApi) -> Value {
    let mut document = serde_json::to_value(api).unwrap();
    let written: Value = serde_json::from_str(tierbar_edge::openapi::API_DESCRIPTION).unwrap();
    let written = &written["components"]["schemas"];
    let schemas = document["components"]["schemas"].as_object_mut().unwrap();
    let names_itself =
        |name: &str, schema: &Value| schema["$ref"] == format!("#/components/schemas/{name}");
    let mut missing: Vec<_> = schemas
        .iter()
        .filter(|(name, schema)| names_itself(name, schema))
        .map(|(name, _)| name.clone())
        .collect();
    while let Some(name) = missing.pop() {
        let schema = &written[&name];
        assert!(schema.is_object(), "docs/openapi.json has no {name}");
        let mut found = Vec::new();
        references(schema, &mut found);
        let found = found.iter().filter_map(|to| to.rsplit('/').next());
        missing.extend(
            found
                .filter(|to| !schemas.contains_key(*to))
                .map(str::to_owned),
        );
        schemas.insert(name, schema.clone());
    }
    schemas.sort_keys();
    document
}

/// As `docs/openapi.json` has it.
#[cfg(openapi)]
fn collected(mut api: openapi::OpenApi, reaches: &Reaches) -> String {
    // A path may have slashes in its last part, which OpenAPI has no way to write.
    let paths = std::mem::take(&mut api.paths.paths).into_iter();
    api.paths.paths = paths
        .map(|(path, mut item)| {
            group(&path, &mut item);
            let reach = reaches.reach_of(&path, "POST");
            let answers = [Part::Inference, Part::Spends, Part::Counts];
            if reach.is_some_and(|reach| answers.iter().all(|part| reach.has(*part))) {
                add_queueing(&mut item);
            }
            (path.replace("{*", "{"), item)
        })
        .collect();
    let asked = asked(&with_written(&api));
    for (name, schema) in &mut api.components.as_mut().unwrap().schemas {
        match schema {
            RefOr::T(Schema::Object(table)) if name.ends_with("Config") => {
                require(table, has_default);
            }
            _ if asked.contains(name) || LEAVES_OUT.contains(&name.as_str()) => {}
            answer => require_nullable(answer),
        }
    }
    serde_json::to_string_pretty(&with_written(&api)).unwrap() + "\n"
}

/// `TIERBAR_WRITE_OPENAPI=1 cargo quick-test -p tierbar-gateway openapi` writes it.
#[cfg(openapi)]
#[tokio::test]
async fn the_served_document_describes_the_routes() {
    let mut bench = Bench::new("127.0.0.1:11435").await;
    let collected = collected(bench.api.take().unwrap(), &bench.reaches);
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
