use super::*;
use crate::testing::{Bench, json};
use axum::http::request::Builder;

fn get(path: &str, headers: &[(&str, &str)]) -> Request<Body> {
    with(Request::get(path), headers)
}

fn with(mut builder: Builder, headers: &[(&str, &str)]) -> Request<Body> {
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    builder.body(Body::empty()).unwrap()
}

async fn status(bench: &Bench, path: &str, headers: &[(&str, &str)]) -> u16 {
    bench.send(get(path, headers)).await.status().as_u16()
}

#[tokio::test]
async fn only_this_servers_names_are_accepted() {
    let bench = Bench::new("127.0.0.1:11435").await;
    for own in [
        "localhost",
        "LOCALHOST:11435",
        "127.0.0.1:11435",
        "127.0.0.2",
        "[::1]:11435",
    ] {
        assert_eq!(
            status(&bench, "/health", &[("host", own)]).await,
            200,
            "{own}"
        );
    }
    for foreign in [
        "evil.example",
        "localhost.evil.example",
        "10.0.0.7",
        "127.0.0.1.evil.example:11435",
        "",
    ] {
        assert_eq!(
            status(&bench, "/health", &[("host", foreign)]).await,
            403,
            "{foreign}"
        );
    }
    assert_eq!(status(&bench, "/health", &[]).await, 403);
    let two = [("host", "localhost"), ("host", "evil.example")];
    for path in ["/health", "http://localhost/health"] {
        assert_eq!(status(&bench, path, &two).await, 403);
    }
}

#[tokio::test]
async fn a_network_server_accepts_its_addresses() {
    let named = Bench::new("10.0.0.7:11435").await;
    assert_eq!(
        status(&named, "/health", &[("host", "10.0.0.7:11435")]).await,
        200
    );
    assert_eq!(
        status(&named, "/health", &[("host", "10.0.0.8:11435")]).await,
        403
    );
    let everywhere = Bench::new("0.0.0.0:11435").await;
    assert_eq!(
        status(&everywhere, "/health", &[("host", "10.0.0.8:11435")]).await,
        200
    );
    assert_eq!(
        status(&everywhere, "/health", &[("host", "evil.example")]).await,
        403
    );
}

#[tokio::test]
async fn only_allowed_origins_get_cors_headers() {
    let bench = Bench::new("127.0.0.1:11435").await;
    let host = ("host", "localhost:11435");
    for foreign in [
        "https://evil.example",
        "http://localhost:3000",
        "http://127.0.0.1:11435",
        "null",
        "tauri://evil",
    ] {
        let response = bench
            .send(get("/health", &[host, ("origin", foreign)]))
            .await;
        assert_eq!(response.status(), 403, "{foreign}");
        assert!(
            !response
                .headers()
                .contains_key("access-control-allow-origin")
        );
        assert_eq!(json(response).await["error"]["code"], "forbidden");
    }
    let own = bench
        .send(get(
            "/health",
            &[host, ("origin", "http://localhost:11435")],
        ))
        .await;
    assert_eq!(own.status(), 200);
    for friend in ["tauri://localhost", "https://friend.example"] {
        let response = bench
            .send(get("/health", &[host, ("origin", friend)]))
            .await;
        assert_eq!(response.status(), 200, "{friend}");
        assert_eq!(response.headers()["access-control-allow-origin"], friend);
        assert_eq!(response.headers()["vary"], "origin");
        let exposed = response.headers()["access-control-expose-headers"].clone();
        let exposed: Vec<_> = exposed.to_str().unwrap().split(", ").collect();
        for needed in [
            "location",
            "retry-after",
            "x-tierbar-fallback-from",
            "x-tierbar-queue",
        ] {
            assert!(exposed.contains(&needed), "{needed}");
        }
    }
}

#[tokio::test]
async fn the_apps_window_may_preflight_and_read_its_refusal() {
    let bench = Bench::new("127.0.0.1:11435").await;
    let app = [("host", "localhost"), ("origin", "tauri://localhost")];
    let asks = [
        ("access-control-request-method", "PATCH"),
        ("access-control-request-headers", "authorization"),
    ];
    let request = Request::builder()
        .method("OPTIONS")
        .uri("/tierbar/v1/config");
    let response = bench.send(with(request, &[app, asks].concat())).await;
    assert_eq!(response.status(), 204);
    assert_eq!(
        response.headers()["access-control-allow-headers"],
        "authorization"
    );
    // All methods of the API: the window cannot use a method that is missing here.
    assert_eq!(
        response.headers()["access-control-allow-methods"],
        "GET, POST, PUT, PATCH, DELETE"
    );

    let refused = bench.send(get("/tierbar/v1/config", &app)).await;
    assert_eq!(refused.status(), 401);
    assert_eq!(
        refused.headers()["access-control-allow-origin"],
        "tauri://localhost"
    );
}

#[tokio::test]
async fn admin_needs_the_token_and_reports_a_wrong_one() {
    let bench = Bench::new("127.0.0.1:11435").await;
    let host = ("host", "localhost");
    for path in [
        "status", "events", "log", "models", "config", "chats", "chats/7",
    ] {
        assert_eq!(
            status(&bench, &format!("/tierbar/v1/{path}"), &[host]).await,
            401,
            "{path}"
        );
    }
    let wrong = bench
        .send(get(
            "/tierbar/v1/status",
            &[host, ("authorization", "Bearer wrong")],
        ))
        .await;
    assert_eq!(wrong.headers()["www-authenticate"], "Bearer");
    let error = json(wrong).await;
    assert_eq!(error["error"]["code"], "unauthorized");
    assert_eq!(error["error"]["message"], "the token is wrong");
    assert!(error["error"]["hint"].as_str().unwrap().contains("token"));
    assert_eq!(bench.get("/tierbar/v1/status").await.status(), 200);
}

#[tokio::test]
async fn inference_is_open_only_on_loopback() {
    let host = ("host", "localhost");
    let here = Bench::new("[::1]:11435").await;
    assert_eq!(status(&here, "/v1/models", &[host]).await, 200);
    let beyond = Bench::new("0.0.0.0:11435").await;
    assert_eq!(status(&beyond, "/v1/models", &[host]).await, 401);
    assert_eq!(
        beyond.post("/v1/chat/completions", "{}").await.status(),
        401
    );
    assert_eq!(beyond.get("/v1/models").await.status(), 200);
    assert_eq!(status(&beyond, "/health", &[host]).await, 200);
}

#[tokio::test]
async fn unknown_paths_have_our_own_errors() {
    let bench = Bench::new("127.0.0.1:11435").await;
    for path in [
        "/v1/nothing",
        "/tierbar/v1/nothing",
        "/../Cargo.toml",
        "/nothing",
    ] {
        let response = bench.get(path).await;
        assert_eq!(response.status(), 404, "{path}");
        assert_eq!(json(response).await["error"]["code"], "not_found", "{path}");
    }
    let response = bench.get("/v1/chat/completions").await;
    assert_eq!(
        (
            response.status().as_u16(),
            json(response).await["error"]["code"].as_str()
        ),
        (405, Some("method_not_allowed"))
    );
    let response = bench.get("/tierbar/v1/chats/%ff").await;
    assert_eq!(
        (
            response.status().as_u16(),
            json(response).await["error"]["code"].as_str()
        ),
        (404, Some("not_found"))
    );
}

#[tokio::test]
async fn another_sites_page_can_start_nothing() {
    let bench = Bench::new("127.0.0.1:11435").await;
    let host = ("host", "localhost:11435");
    let (mode, dest) = (("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", "image"));
    // A form, or a fetch without CORS: browsers send it without a preflight, and always name the origin.
    for kind in ["text/plain", "application/x-www-form-urlencoded"] {
        for origin in ["https://evil.example", "http://localhost:3000", "null"] {
            for path in ["/v1/chat/completions", "/v1/context/load"] {
                let request = with(
                    Request::post(path),
                    &[host, ("origin", origin), ("content-type", kind)],
                );
                assert_eq!(bench.send(request).await.status(), 403, "{path} {origin}");
            }
        }
    }
    // For an image, a script or a frame, no origin is named.
    for site in ["cross-site", "same-site"] {
        for path in ["/v1/models", "/tierbar/v1/status", "/health", "/"] {
            let headers = [host, ("sec-fetch-site", site), mode, dest];
            let response = bench.send(get(path, &headers)).await;
            assert_eq!(response.status(), 403, "{path} {site}");
            assert_eq!(json(response).await["error"]["code"], "forbidden");
        }
        let framed = [
            host,
            ("sec-fetch-site", site),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "iframe"),
        ];
        assert_eq!(status(&bench, "/", &framed).await, 403);
        // A link to the page is allowed, and a link to the API is not.
        let link = [
            host,
            ("sec-fetch-site", site),
            ("sec-fetch-mode", "navigate"),
            ("sec-fetch-dest", "document"),
        ];
        assert_ne!(status(&bench, "/", &link).await, 403);
        assert_eq!(status(&bench, "/v1/models", &link).await, 403);
    }
    for site in ["same-origin", "none"] {
        let headers = [host, ("sec-fetch-site", site), mode];
        assert_eq!(status(&bench, "/api/tags", &headers).await, 200, "{site}");
    }
    // Only the allowed lists of models were requested.
    assert_eq!(bench.asked.take(), ["list"; 2]);
}

#[tokio::test]
async fn over_tls_the_pages_origin_is_https() {
    let bench = Bench::new("127.0.0.1:11435").await;
    for (secure, origin, expected) in [
        (true, "https://localhost:11435", 200),
        (true, "http://localhost:11435", 403),
        (false, "https://localhost:11435", 403),
    ] {
        let mut request = get(
            "/health",
            &[("host", "localhost:11435"), ("origin", origin)],
        );
        if secure {
            request.extensions_mut().insert(OverTls);
        }
        assert_eq!(bench.send(request).await.status(), expected, "{origin}");
    }
    for secure in [true, false] {
        let token = format!("Bearer {}", bench.token.as_str());
        let headers = [("host", "localhost"), ("authorization", &*token)];
        let mut request = with(Request::post("/tierbar/v1/session"), &headers);
        if secure {
            request.extensions_mut().insert(OverTls);
        }
        let response = bench.send(request).await;
        let cookie = response.headers()["set-cookie"].to_str().unwrap();
        assert_eq!(cookie.contains("; Secure"), secure, "{cookie}");
    }
}

#[tokio::test]
async fn configured_names_are_accepted() {
    let bench = Bench::configured("0.0.0.0:11435", |config| {
        config.server.names = vec!["mac-mini.local".to_owned()];
    })
    .await;
    for (name, expected) in [
        ("mac-mini.local", 200),
        ("Mac-Mini.local:11435", 200),
        ("mac-mini.local.evil.example", 403),
        ("other.local", 403),
    ] {
        assert_eq!(
            status(&bench, "/health", &[("host", name)]).await,
            expected,
            "{name}"
        );
    }
}

#[tokio::test]
async fn each_request_has_an_id_the_clients_if_valid() {
    let bench = Bench::new("127.0.0.1:11435").await;
    let named = |id: &'static str| {
        let mut request = get("/health", &[("host", "localhost")]);
        let id = axum::http::HeaderValue::from_bytes(id.as_bytes()).unwrap();
        request.headers_mut().insert("x-request-id", id);
        request
    };
    let id_of = |response: &Response| response.headers()["x-request-id"].clone();
    let given = bench.send(named("nightly-7")).await;
    assert_eq!(id_of(&given), "nightly-7");
    let made = id_of(&bench.get("/health").await);
    assert!(made.to_str().unwrap().starts_with("req_") && made.len() > 12);
    let long = "x".repeat(65).leak();
    for bad in ["", "two words", "\u{e4}", &*long] {
        let id = id_of(&bench.send(named(bad)).await);
        assert!(id.to_str().unwrap().starts_with("req_"), "{bad}: {id:?}");
        assert_ne!(id, made);
    }
    // Even where every request is refused.
    let refused = bench
        .send(get("/health", &[("host", "evil.example")]))
        .await;
    assert_eq!(refused.status(), 403);
    assert!(refused.headers().contains_key("x-request-id"));
}
