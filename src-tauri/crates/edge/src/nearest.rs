//! What a request that no route takes was for: a wrong base URL, a misspelled path, or another method.

use crate::openapi::API_DESCRIPTION;
use axum::http::{Method, Uri};
use serde::{Deserialize, de::IgnoredAny};
use std::{collections::BTreeMap, sync::LazyLock};
use tierbar_core::{Code, Error};
use tierbar_http::error::Failure;

/// Of a part of a path (Damerau-Levenshtein).
const SIMILAR: f64 = 0.7;
/// Longer paths are not compared.
const LONGEST: usize = 200;

/// Methods by path, in which `{name}` stands for any part.
static ROUTES: LazyLock<BTreeMap<String, Vec<String>>> = LazyLock::new(|| {
    #[derive(Default, Deserialize)]
    struct Document {
        paths: BTreeMap<String, BTreeMap<String, IgnoredAny>>,
    }
    let Document { paths } = serde_json::from_str(API_DESCRIPTION).unwrap_or_default();
    let routes = paths.into_iter().map(|(path, methods)| {
        let methods = methods.into_keys().map(|name| name.to_uppercase());
        (path, methods.collect())
    });
    routes.collect()
});

/// Returns the refusal of a path that no route has.
pub(crate) fn no_such_path(path: &str) -> Error {
    let shown: String = path.chars().take(LONGEST).collect();
    let message = match not_here(path) {
        Some(what) => format!("Tierbar has no {what}: no route matches {shown}"),
        None => format!("no route matches {shown}"),
    };
    Error::new(Code::NotFound, message).hint(hint(path))
}

/// What a path is for in the APIs whose clients call here, where Tierbar has nothing of it.
fn not_here(path: &str) -> Option<&'static str> {
    let mut parts = path
        .trim_start_matches('/')
        .split('/')
        .skip_while(|part| *part == "v1");
    Some(match parts.next()? {
        "audio" => "speech and no transcription",
        "images" => "image generation",
        "videos" => "video generation",
        "moderations" => "moderation",
        "batches" => "batches",
        "messages" if parts.next() == Some("batches") => "batches",
        "realtime" => "realtime sessions",
        "fine_tuning" => "fine-tuning",
        "uploads" => "uploads",
        "files" => "stored files",
        "assistants" | "threads" => "assistants",
        "conversations" => "stored conversations",
        "evals" => "evals",
        _ => return None,
    })
}

/// Refuses a method that a path does not have.
pub async fn method_not_allowed(method: Method, uri: Uri) -> Failure {
    let path = uri.path();
    // Uploading one is refused with what to do instead.
    if path == "/v1/files" {
        return Failure(no_such_path(path));
    }
    let message = format!("{path} does not accept {method}");
    let error = Error::new(Code::MethodNotAllowed, message);
    let filled = ROUTES.iter().find(|(route, _)| is_filled(route, path));
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
    match whole.as_str() {
        "/v1" => {
            return "it is the base URL of OpenAI clients, which add the route, such as POST /v1/chat/completions".to_owned();
        }
        "/api" => {
            return "the base URL of Ollama clients is without /api; they add the route, such as POST /api/chat".to_owned();
        }
        _ => {}
    }
    // `/api/chat/completions`, or a base URL that has a route already.
    for extra in 1..parts.len() {
        if let Some(route) = fixed_route(&format!("/v1{}", clean(&parts[extra..]))) {
            let extra = clean(&parts[..extra]);
            return format!(
                "the client's base URL must end in /v1, not in {extra}; the route is {route}"
            );
        }
    }
    for extra in 0..parts.len() {
        let begun = client_routes(&clean(&parts[extra..]));
        if !begun.is_empty() {
            return format!("did you mean {}? {LIST}", begun.join(" or "));
        }
    }
    let lower = whole.to_lowercase();
    let likely = ROUTES.keys().filter_map(|route| likeness(route, &lower));
    let nearest = likely.max_by(|(one, _), (other, _)| one.total_cmp(other));
    match nearest.and_then(|(_, path)| route(&path)) {
        Some(route) => format!("did you mean {route}? {LIST}"),
        None => LIST.to_owned(),
    }
}

/// Returns a path with the methods of its route, such as `POST /v1/messages`.
fn route(path: &str) -> Option<String> {
    let (_, methods) = ROUTES.iter().find(|(route, _)| is_filled(route, path))?;
    Some(with_methods(path, methods))
}

/// As [`route`], of a path without parts that may be any.
fn fixed_route(path: &str) -> Option<String> {
    let methods = ROUTES.get(path).filter(|_| !path.contains('{'))?;
    Some(with_methods(path, methods))
}

fn with_methods(path: &str, methods: &[String]) -> String {
    format!("{} {path}", methods.join(" or "))
}

/// Returns the clients' routes that are or begin with what is left of a path: `/chat` is of `/v1/chat/completions` and of `/api/chat`.
fn client_routes(tail: &str) -> Vec<String> {
    let bases = ["/v1", "/api"].map(|base| format!("{base}{tail}"));
    let of_base = |base: &String| {
        let routes = ROUTES.iter().filter(move |(route, _)| {
            let rest = route.strip_prefix(base.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        let fixed = routes.filter(|(route, _)| !route.contains('{'));
        let named = fixed.map(|(route, methods)| with_methods(route, methods));
        named.collect::<Vec<_>>()
    };
    bases.iter().flat_map(of_base).collect()
}

/// Whether a path is one of a route's: equal, but for the parts where the route takes any.
fn is_filled(route: &str, path: &str) -> bool {
    let mut given = path.split('/');
    let fits = route.split('/').all(|part| {
        let given = given.next();
        given.is_some_and(|given| part == given || is_any(part) && !given.is_empty())
    });
    fits && given.next().is_none()
}

fn is_any(part: &str) -> bool {
    part.starts_with('{')
}

/// Returns how well a path fits a route with misspelled parts, and the path without the mistakes; `None` if it does not. A part that may
/// be any says nothing, so what stands before it must be as it is.
fn likeness(route: &str, path: &str) -> Option<(f64, String)> {
    let wanted: Vec<_> = route.split('/').collect();
    let given: Vec<_> = path.split('/').collect();
    if wanted.len() != given.len() {
        return None;
    }
    let literal = wanted.iter().rposition(|part| is_any(part)).unwrap_or(0);
    let mut likeness = 1.0;
    let mut filled = Vec::new();
    for (at, (&part, &given)) in wanted.iter().zip(&given).enumerate() {
        if is_any(part) && !given.is_empty() {
            filled.push(given);
            continue;
        }
        if part != given {
            let alike = strsim::normalized_damerau_levenshtein(part, given);
            if at < literal || alike < SIMILAR {
                return None;
            }
            likeness *= alike;
        }
        filled.push(part);
    }
    Some((likeness, filled.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_servers_have_is_named() {
        for (path, message) in [
            (
                "/v1/audio/speech",
                "Tierbar has no speech and no transcription: no route matches /v1/audio/speech",
            ),
            (
                "/v1/images/generations",
                "Tierbar has no image generation: no route matches /v1/images/generations",
            ),
            (
                "/v1/messages/batches",
                "Tierbar has no batches: no route matches /v1/messages/batches",
            ),
            (
                "/v1/files/file-1",
                "Tierbar has no stored files: no route matches /v1/files/file-1",
            ),
            ("/v1/chat", "no route matches /v1/chat"),
            ("/audios", "no route matches /audios"),
        ] {
            assert_eq!(no_such_path(path).message, message);
        }
    }

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
            (
                "/v1",
                "it is the base URL of OpenAI clients, which add the route, such as POST /v1/chat/completions",
            ),
            (
                "/v1/",
                "it is the base URL of OpenAI clients, which add the route, such as POST /v1/chat/completions",
            ),
            (
                "/api/chat/completions",
                "the client's base URL must end in /v1, not in /api; the route is POST /v1/chat/completions",
            ),
            (
                "/v1/chat/completions/chat/completions",
                "the client's base URL must end in /v1, not in /v1/chat/completions; the route is POST /v1/chat/completions",
            ),
            (
                "/v1/messages/v1/messages",
                "the client's base URL has one /v1/messages too many; the route is POST /v1/messages",
            ),
            (
                "/chat",
                "did you mean POST /v1/chat/completions or POST /api/chat? GET /openapi.json lists the routes",
            ),
            (
                "/api/v1/chat",
                "did you mean POST /v1/chat/completions or POST /api/chat? GET /openapi.json lists the routes",
            ),
            (
                "/api/chats",
                "did you mean POST /api/chat? GET /openapi.json lists the routes",
            ),
            // Nothing here is like these.
            ("/v1/messages/batches", "GET /openapi.json lists the routes"),
            (
                "/v1/images/generations",
                "GET /openapi.json lists the routes",
            ),
            ("/v1/moderations", "GET /openapi.json lists the routes"),
            ("/v1/fine_tuning/jobs", "GET /openapi.json lists the routes"),
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
}
