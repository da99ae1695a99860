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
async fn only_names_of_this_server_are_answered() {
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
}

#[tokio::test]
async fn a_server_on_the_network_answers_to_its_addresses() {
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
async fn pages_of_other_sites_are_refused_and_those_allowed_get_the_headers_they_need() {
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
    }
}

#[tokio::test]
async fn the_apps_window_may_ask_first_without_a_token_and_sees_why_it_was_refused() {
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
    // Of all that the API takes: a method that is not named here is one that the window cannot use.
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
async fn admin_needs_the_token_and_a_wrong_one_is_told_apart_from_none() {
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
async fn a_browser_trades_the_token_for_a_cookie_that_is_not_the_token() {
    let bench = Bench::new("127.0.0.1:11435").await;
    let (host, token) = (
        ("host", "localhost"),
        format!("Bearer {}", bench.token.as_str()),
    );
    let refused = bench
        .send(with(Request::post("/tierbar/v1/session"), &[host]))
        .await;
    assert_eq!(refused.status(), 401);
    let trade = with(
        Request::post("/tierbar/v1/session"),
        &[host, ("authorization", &token)],
    );
    let response = bench.send(trade).await;
    assert_eq!(response.status(), 204);
    let cookie = response.headers()["set-cookie"]
        .to_str()
        .unwrap()
        .to_owned();
    assert!(cookie.contains("HttpOnly; SameSite=Strict"), "{cookie}");
    assert!(!cookie.contains(bench.token.as_str()));
    let pair = cookie.split(';').next().unwrap();
    let crumbs = format!("theme=dark; {pair}");
    assert_eq!(
        status(&bench, "/tierbar/v1/status", &[host, ("cookie", &crumbs)]).await,
        200
    );
    assert_eq!(
        status(
            &bench,
            "/tierbar/v1/status",
            &[host, ("cookie", "tierbar_session=")]
        )
        .await,
        401
    );
    let bearer = format!("Bearer {}", pair.split_once('=').unwrap().1);
    assert_eq!(
        status(
            &bench,
            "/tierbar/v1/status",
            &[host, ("authorization", &bearer)]
        )
        .await,
        401
    );
}

#[tokio::test]
async fn inference_is_open_on_loopback_and_needs_the_token_beyond() {
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
async fn what_does_not_exist_is_refused_in_our_own_words() {
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
