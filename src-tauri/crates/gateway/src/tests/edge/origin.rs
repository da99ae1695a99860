use crate::testing::{Bench, json};
use axum::http::request::Builder;
use axum::{body::Body, http::Request, response::Response};
use tierbar_edge::origin::TlsMark;

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
        "https://localhost.evil.example",
        "null",
        "file://",
        "http://localhost:3000/path",
        "appx://evil",
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
    assert_eq!(bench.status.borrow().refused_origins, []);
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
async fn pages_of_installed_programs_may_use_models_only() {
    let bench = Bench::new("127.0.0.1:11435").await;
    let host = ("host", "localhost:11435");
    for program in [
        "app://obsidian.md",
        "vscode-file://vscode-app",
        "tauri://localhost",
    ] {
        let page = [host, ("origin", program)];
        let models = bench.send(get("/v1/models", &page)).await;
        assert_eq!(models.status(), 200, "{program}");
        assert_eq!(models.headers()["access-control-allow-origin"], program);
        assert!(
            !models
                .headers()
                .contains_key("access-control-allow-credentials")
        );
        assert_eq!(status(&bench, "/tierbar/v1/status", &page).await, 401);
        let preflight = Request::builder().method("OPTIONS").uri("/api/chat");
        let asks = [("access-control-request-method", "POST")];
        let preflight = with(preflight, &[&page[..], &asks].concat());
        assert_eq!(bench.send(preflight).await.status(), 204);
    }
}

#[tokio::test]
async fn another_origins_page_has_no_saved_contexts() {
    let bench = Bench::new("127.0.0.1:11435").await;
    let host = ("host", "localhost:11435");
    let token = format!("Bearer {}", bench.token.as_str());
    for origin in [
        "app://obsidian.md",
        "tauri://localhost",
        "https://friend.example",
    ] {
        let page = [host, ("origin", origin)];
        for (method, path) in [
            ("GET", "/v1/context"),
            ("POST", "/v1/context/save"),
            ("POST", "/v1/context/load"),
            ("POST", "/v1/context/delete"),
        ] {
            let request = Request::builder().method(method).uri(path);
            let refused = bench.send(with(request, &page)).await;
            assert_eq!(refused.status(), 401, "{method} {path} {origin}");
            assert_eq!(refused.headers()["access-control-allow-origin"], origin);
            let error = json(refused).await;
            assert_eq!(error["error"]["message"], "the token is required");
        }
        // Our own window has such an origin too, and sends the token.
        let owner = [host, ("origin", origin), ("authorization", &*token)];
        assert_eq!(status(&bench, "/v1/context", &owner).await, 200, "{origin}");
    }
}

#[tokio::test]
async fn a_session_is_of_no_use_to_another_origins_page() {
    let bench = Bench::new("127.0.0.1:11435").await;
    let begun = bench.ask("POST", "/tierbar/v1/session", "").await;
    let cookie = begun.headers()["set-cookie"].to_str().unwrap();
    let cookie = cookie.split(';').next().unwrap();
    let half = begun.headers()["x-tierbar-session"].to_str().unwrap();
    let session = [
        ("host", "localhost:11435"),
        ("cookie", cookie),
        ("x-tierbar-session", half),
    ];
    let path = "/tierbar/v1/status";
    assert_eq!(status(&bench, path, &session).await, 200);
    for origin in [
        "tauri://localhost",
        "app://obsidian.md",
        "https://friend.example",
    ] {
        let page = [&session[..], &[("origin", origin)]].concat();
        assert_eq!(status(&bench, path, &page).await, 401, "{origin}");
    }
    let own = [&session[..], &[("origin", "http://localhost:11435")]].concat();
    assert_eq!(status(&bench, path, &own).await, 200);
}

#[tokio::test]
async fn a_local_page_is_refused_until_it_is_allowed() {
    let bench = Bench::new("127.0.0.1:11435").await;
    let origin = "http://localhost:3000";
    let page = [("host", "localhost:11435"), ("origin", origin)];
    let preflight = || {
        let request = Request::builder().method("OPTIONS").uri("/v1/models");
        let asks = [("access-control-request-method", "GET")];
        with(request, &[&page[..], &asks].concat())
    };
    // The page may read how to be let in, for which its preflight passes.
    assert_eq!(bench.send(preflight()).await.status(), 204);
    let refused = bench.send(get("/v1/models", &page)).await;
    assert_eq!(refused.status(), 403);
    assert_eq!(refused.headers()["access-control-allow-origin"], origin);
    let error = json(refused).await;
    let hint = error["error"]["hint"].as_str().unwrap();
    assert!(hint.contains("tierbar origins allow http://localhost:3000"));
    assert_eq!(bench.asked.take(), [""; 0]);

    let list = json(bench.get("/tierbar/v1/origins").await).await;
    assert_eq!(
        list["allowed"],
        serde_json::json!(["https://friend.example"])
    );
    assert_eq!(list["refused"][0]["origin"], origin);
    let typed = r#"{"origin": "HTTP://localhost:3000/"}"#;
    let allowed = bench.ask("POST", "/tierbar/v1/origins", typed).await;
    let list = json(allowed).await;
    assert_eq!(list["allowed"][1], origin);
    assert_eq!(list["refused"], serde_json::json!([]));
    let models = bench.send(get("/v1/models", &page)).await;
    assert_eq!(models.status(), 200);

    let path = "/tierbar/v1/origins?origin=http%3A%2F%2Flocalhost%3A3000";
    let revoked = json(bench.ask("DELETE", path, "").await).await;
    assert_eq!(
        revoked["allowed"],
        serde_json::json!(["https://friend.example"])
    );
    assert_eq!(status(&bench, "/v1/models", &page).await, 403);
    // Forgotten as well, though it is not allowed.
    assert_eq!(bench.ask("DELETE", path, "").await.status(), 200);
    assert_eq!(bench.ask("DELETE", path, "").await.status(), 404);
    for wrong in ["*", "null", "localhost:3000", "file://"] {
        let body = serde_json::json!({"origin": wrong}).to_string();
        let answer = bench.ask("POST", "/tierbar/v1/origins", body).await;
        assert_eq!(answer.status(), 400, "{wrong}");
    }
}

#[tokio::test]
async fn an_editors_view_is_let_in_alone() {
    let bench = Bench::new("127.0.0.1:11435").await;
    let view = |origin: &'static str| [("host", "localhost:11435"), ("origin", origin)];
    let (mine, other) = ("vscode-webview://1a2b", "vscode-webview://3c4d");
    assert_eq!(status(&bench, "/v1/models", &view(mine)).await, 403);
    let list = json(bench.get("/tierbar/v1/origins").await).await;
    assert_eq!(list["refused"][0]["origin"], mine);
    let body = serde_json::json!({"origin": mine}).to_string();
    bench.ask("POST", "/tierbar/v1/origins", body).await;
    assert_eq!(status(&bench, "/v1/models", &view(mine)).await, 200);
    assert_eq!(status(&bench, "/v1/models", &view(other)).await, 403);
}

#[tokio::test]
async fn each_refused_page_is_told_how_to_be_let_in() {
    let bench = Bench::new("127.0.0.1:11435").await;
    for (origin, hint) in [
        (
            "http://192.168.1.5:8123",
            "run: tierbar origins allow http://192.168.1.5:8123",
        ),
        (
            "vscode-webview://1a2b",
            "run: tierbar origins allow vscode-webview://1a2b",
        ),
        ("https://evil.example", "if you trust this site"),
        ("null", "open it from a web server"),
        ("http://a' ; rm -rf ~", "open it from a web server"),
    ] {
        let page = [("host", "localhost"), ("origin", origin)];
        let error = json(bench.send(get("/health", &page)).await).await;
        let given = error["error"]["hint"].as_str().unwrap();
        assert!(given.contains(hint), "{origin}: {given}");
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
            request.extensions_mut().insert(TlsMark);
        }
        assert_eq!(bench.send(request).await.status(), expected, "{origin}");
    }
    for secure in [true, false] {
        let token = format!("Bearer {}", bench.token.as_str());
        let headers = [("host", "localhost"), ("authorization", &*token)];
        let mut request = with(Request::post("/tierbar/v1/session"), &headers);
        if secure {
            request.extensions_mut().insert(TlsMark);
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
