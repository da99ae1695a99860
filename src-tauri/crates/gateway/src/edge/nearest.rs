//! What a request that no route takes was for: a wrong base URL, a misspelled path, or another method.

use crate::{edge::openapi::DOCUMENT, http::error::Failure};
use axum::http::{Method, Uri};
use serde::{Deserialize, de::IgnoredAny};
use std::{collections::BTreeMap, sync::LazyLock};
use tierbar_core::{Code, Error};

/// Of two paths (Jaro-Winkler).
const SIMILAR: f64 = 0.9;
/// Longer paths are not compared.
const LONGEST: usize = 200;

/// Methods by path, in which `{name}` stands for any part.
static ROUTES: LazyLock<BTreeMap<String, Vec<String>>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct Document {
        paths: BTreeMap<String, BTreeMap<String, IgnoredAny>>,
    }
    let Document { paths } = serde_json::from_str(DOCUMENT).unwrap_or_else(|_| Document {
        paths: BTreeMap::new(),
    });
    let upper = |methods: BTreeMap<String, IgnoredAny>| {
        let names = methods.into_keys().map(|name| name.to_uppercase());
        names.collect()
    };
    paths
        .into_iter()
        .map(|(path, methods)| (path, upper(methods)))
        .collect()
});

/// Returns the refusal of a path that no route has.
pub(crate) fn no_such_path(path: &str) -> Error {
    let shown: String = path.chars().take(LONGEST).collect();
    Error::new(Code::NotFound, format!("no route matches {shown}")).hint(hint(path))
}

/// Refuses a method that a path does not have.
pub(crate) async fn method_not_allowed(method: Method, uri: Uri) -> Failure {
    let path = uri.path();
    let error = Error::new(
        Code::MethodNotAllowed,
        format!("{path} does not accept {method}"),
    );
    let filled = ROUTES
        .iter()
        .find(|(route, _)| fill(route, path).as_deref() == Some(path));
    Failure(match filled {
        Some((_, methods)) => error.hint(format!("send {}", methods.join(" or "))),
        None => error,
    })
}

fn hint(path: &str) -> String {
    const LIST: &str = "GET /openapi.json lists the routes";
    if path.len() > LONGEST {
        return LIST.to_owned();
    }
    // As most servers read it: `//` is `/`, and the last one says nothing.
    let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
    let clean = |parts: &[&str]| format!("/{}", parts.join("/"));
    let whole = clean(&parts);
    if let Some(route) = route(&whole) {
        return format!("did you mean {route}, without further slashes?");
    }
    // `/v1/v1/models`, or `/v1/api/tags`: what precedes a route belongs to the base URL.
    for extra in 1..parts.len() {
        if let Some(route) = route(&clean(&parts[extra..])) {
            let extra = clean(&parts[..extra]);
            return format!("the client's base URL has one {extra} too many; the route is {route}");
        }
    }
    if let Some(route) = route(&format!("/v1{whole}")) {
        return format!("the client's base URL must end in /v1; the route is {route}");
    }
    let filled = ROUTES.keys().filter_map(|route| fill(route, &whole));
    let nearest = filled
        .map(|filled| (strsim::jaro_winkler(&whole.to_lowercase(), &filled), filled))
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .filter(|(similarity, _)| *similarity >= SIMILAR)
        .and_then(|(_, filled)| route(&filled));
    match nearest {
        Some(route) => format!("did you mean {route}? {LIST}"),
        None => LIST.to_owned(),
    }
}

/// Returns a path with the methods of its route, such as `POST /v1/messages`.
fn route(path: &str) -> Option<String> {
    let (_, methods) = ROUTES
        .iter()
        .find(|(route, _)| fill(route, path).as_deref() == Some(path))?;
    Some(format!("{} {path}", methods.join(" or ")))
}

/// Returns a route with the parts of a path where it takes any; `None` if they have not as many parts.
fn fill(route: &str, path: &str) -> Option<String> {
    let mut given = path.split('/');
    let mut filled = Vec::new();
    for part in route.split('/') {
        let given = given.next()?;
        filled.push(if part.starts_with('{') && !given.is_empty() {
            given
        } else {
            part
        });
    }
    given.next().is_none().then(|| filled.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, json};
    use axum::{body::Body, http::Request};

    #[test]
    fn a_wrong_base_url_and_a_misspelled_path_are_told() {
        for (path, said) in [
            (
                "/v1/v1/chat/completions",
                "the client's base URL has one /v1 too many; the route is POST /v1/chat/completions",
            ),
            (
                "/v1/v1/messages",
                "the client's base URL has one /v1 too many; the route is POST /v1/messages",
            ),
            (
                "/v1/api/chat",
                "the client's base URL has one /v1 too many; the route is POST /api/chat",
            ),
            (
                "/openai/v1/models",
                "the client's base URL has one /openai too many; the route is GET /v1/models",
            ),
            (
                "/chat/completions",
                "the client's base URL must end in /v1; the route is POST /v1/chat/completions",
            ),
            (
                "/models/fast",
                "the client's base URL must end in /v1; the route is GET /v1/models/fast",
            ),
            (
                "/v1/models/",
                "did you mean GET /v1/models, without further slashes?",
            ),
            (
                "//v1//chat/completions",
                "did you mean POST /v1/chat/completions, without further slashes?",
            ),
            (
                "/v1/chat/completion",
                "did you mean POST /v1/chat/completions? GET /openapi.json lists the routes",
            ),
            (
                "/v1/Embedings",
                "did you mean POST /v1/embeddings? GET /openapi.json lists the routes",
            ),
            (
                "/api/shows",
                "did you mean POST /api/show? GET /openapi.json lists the routes",
            ),
            (
                "/v1/responses/resp_1/cancels",
                "did you mean POST /v1/responses/resp_1/cancel? GET /openapi.json lists the routes",
            ),
            ("/wp-login.php", "GET /openapi.json lists the routes"),
            ("/", "GET /openapi.json lists the routes"),
        ] {
            assert_eq!(hint(path), said, "{path}");
        }
        assert_eq!(
            hint(&format!("/v1/{}", "x/".repeat(100_000))),
            "GET /openapi.json lists the routes"
        );
    }

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
        let request = Request::get("/v1/chat/completions")
            .header("host", "localhost")
            .body(Body::empty());
        let refused = bench.send(request.unwrap()).await;
        assert_eq!(refused.status(), 405);
        let refused = json(refused).await;
        assert_eq!(refused["error"]["hint"], "send POST", "{refused}");
    }
}
