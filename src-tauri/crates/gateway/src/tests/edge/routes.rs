//! Requests in unusual forms: none gets in where the usual form does not.

use crate::testing::Bench;
use axum::{
    body::Body,
    http::{Request, StatusCode, Version, header},
};

const EVERYWHERE: &str = "0.0.0.0:11435";
const HOST: (&str, &str) = ("host", "localhost");
/// The usual forms of routes that need a key or the token.
const CLOSED: [&str; 6] = [
    "/tierbar/v1/status",
    "/tierbar/v1/keys",
    "/v1/models",
    "/api/tags",
    "/v1/context",
    "/metrics",
];

async fn status(
    bench: &Bench,
    (method, uri): (&str, &str),
    version: Version,
    headers: &[(&str, &str)],
) -> StatusCode {
    let mut request = Request::builder().method(method).uri(uri).version(version);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = bench.send(request.body(Body::empty()).unwrap()).await;
    response.status()
}

async fn get(bench: &Bench, uri: &str, headers: &[(&str, &str)]) -> StatusCode {
    status(bench, ("GET", uri), Version::HTTP_11, headers).await
}

#[tokio::test]
async fn no_other_spelling_of_a_path_gets_in() {
    let bench = Bench::new(EVERYWHERE).await;
    for path in CLOSED {
        assert_eq!(get(&bench, path, &[HOST]).await, 401, "{path}");
        let rest = &path[1..];
        let last = path.rfind('/').unwrap() + 1;
        for other in [
            format!("/{path}"),
            format!("{path}/"),
            format!("{path}//"),
            format!("/.{path}"),
            format!("/%2e{path}"),
            format!("/x/..{path}"),
            format!("/x/%2e%2e{path}"),
            format!("/%2f{rest}"),
            format!("/{}%2f{}", &path[1..last], &path[last..]),
            format!("{path}%00"),
            format!("{path};x=1"),
            format!("/openapi.json/..{path}"),
            path.to_uppercase(),
        ] {
            let found = get(&bench, &other, &[HOST]).await;
            assert!([401, 404].contains(&found.as_u16()), "{other}: {found}");
        }
        for query in ["?", "?x=/health", "?token=x"] {
            let asked = format!("{path}{query}");
            assert_eq!(get(&bench, &asked, &[HOST]).await, 401, "{asked}");
        }
    }
    assert!(bench.asked.take().is_empty());
}

#[tokio::test]
async fn no_method_or_version_gets_in() {
    let bench = Bench::new(EVERYWHERE).await;
    for path in CLOSED {
        for method in [
            "GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", "BREW",
        ] {
            for version in [Version::HTTP_10, Version::HTTP_11, Version::HTTP_2] {
                let found = status(&bench, (method, path), version, &[HOST]).await;
                let expected: &[u16] = match method {
                    "GET" | "HEAD" => &[401],
                    // A method that no route has lets no sender in.
                    _ => &[401, 405],
                };
                let found = found.as_u16();
                assert!(
                    expected.contains(&found),
                    "{method} {path} {version:?}: {found}"
                );
            }
        }
        // As a preflight without an origin, which no browser sends.
        let asks = [HOST, ("access-control-request-method", "GET")];
        let found = status(&bench, ("OPTIONS", path), Version::HTTP_11, &asks).await;
        assert_eq!(found, 405, "{path}");
    }
    assert!(bench.asked.take().is_empty());
}

#[tokio::test]
async fn a_whole_address_as_the_target_is_checked_too() {
    let bench = Bench::new(EVERYWHERE).await;
    for (uri, headers, expected) in [
        ("http://localhost/health", &[HOST][..], 200),
        // The header does not count beside a whole address (RFC 9112, 3.2.2).
        ("http://localhost/health", &[("host", "evil.example")], 200),
        ("http://evil.example/health", &[HOST], 403),
        ("http://evil.example/health", &[], 403),
        ("http://localhost@evil.example/health", &[HOST], 403),
        ("http://localhost/tierbar/v1/status", &[HOST], 401),
        ("http://localhost/v1/models", &[HOST], 401),
    ] {
        assert_eq!(get(&bench, uri, headers).await, expected, "{uri}");
    }
}

#[tokio::test]
async fn a_host_is_one_name_without_a_user() {
    let bench = Bench::new(EVERYWHERE).await;
    for host in [
        "evil.example@localhost",
        "localhost@evil.example",
        "@localhost",
        "localhost.",
        "localhost evil.example",
        "localhost,evil.example",
        "localhost/evil.example",
        "http://localhost",
    ] {
        let found = get(&bench, "/health", &[("host", host)]).await;
        assert_eq!(found, 403, "{host}");
    }
    // HTTP/1.0 has no need of a host; this server has.
    let old = status(&bench, ("GET", "/health"), Version::HTTP_10, &[]).await;
    assert_eq!(old, 403);
}

#[tokio::test]
async fn only_the_first_of_several_credentials_counts() {
    let bench = Bench::new(EVERYWHERE).await;
    let token = bench.token.as_str();
    let right = format!("Bearer {token}");
    let right = (header::AUTHORIZATION.as_str(), right.as_str());
    let wrong = (header::AUTHORIZATION.as_str(), "Bearer wrong");
    for (credentials, expected) in [
        (&[right][..], 200),
        (&[wrong, right], 401),
        (&[right, wrong], 200),
    ] {
        let headers = [&[HOST], credentials].concat();
        for path in ["/tierbar/v1/status", "/v1/context"] {
            let found = get(&bench, path, &headers).await;
            assert_eq!(found, expected, "{path} {expected}");
        }
    }
    for other in [
        format!("Basic {token}"),
        format!("Bearer{token}"),
        format!("Bearer {token} {token}"),
        format!("Bearer {token},{token}"),
        format!("Bearer \"{token}\""),
        format!("Bearer {}", token.to_lowercase()),
        format!("Bearer {}", &token[1..]),
        "Bearer".to_owned(),
        "Bearer ".to_owned(),
        token.to_owned(),
    ] {
        let headers = [HOST, ("authorization", other.as_str())];
        for path in ["/tierbar/v1/status", "/v1/context"] {
            assert_eq!(get(&bench, path, &headers).await, 401, "{path} {other}");
        }
    }
    // This header is of keys alone.
    let as_key = [HOST, ("x-api-key", token)];
    assert_eq!(get(&bench, "/tierbar/v1/status", &as_key).await, 401);
}

#[tokio::test]
async fn without_a_browsers_marks_a_request_is_a_programs() {
    let bench = Bench::new("127.0.0.1:11435").await;
    for marks in [
        &[][..],
        &[("sec-fetch-mode", "navigate")],
        &[("sec-fetch-site", "none")],
        &[("referer", "http://evil.example/")],
    ] {
        let headers = [&[HOST], marks].concat();
        assert_eq!(get(&bench, "/v1/models", &headers).await, 200, "{marks:?}");
        let owners = get(&bench, "/tierbar/v1/status", &headers).await;
        assert_eq!(owners, 401, "{marks:?}");
    }
    // An origin counts without them.
    let headers = [HOST, ("origin", "http://evil.example")];
    assert_eq!(get(&bench, "/v1/models", &headers).await, 403);
}
