use crate::testing::Bench;
use axum::{
    body::Body,
    http::{Request, Response},
};
use tierbar_edge::{
    now_ms, random_text,
    sessions::{FRESH_MS, HALF, IDLE_MS, hash, is_fresh},
    token::Token,
};

const STATUS: (&str, &str) = ("GET", "/tierbar/v1/status");

async fn bench() -> Bench {
    Bench::new("127.0.0.1:11435").await
}

/// A session's two headers.
pub(in crate::tests) struct Browser {
    pub(in crate::tests) cookie: String,
    pub(in crate::tests) page: String,
}

impl Browser {
    async fn sign_in(bench: &Bench) -> Self {
        let begun = bench
            .ask("POST", "/tierbar/v1/session", Body::empty())
            .await;
        assert_eq!(begun.status(), 204);
        let header = |name: &str| begun.headers()[name].to_str().unwrap().to_owned();
        let cookie = header("set-cookie");
        assert!(cookie.contains("HttpOnly; SameSite=Strict"), "{cookie}");
        assert!(!cookie.contains(bench.token.as_str()));
        Self {
            cookie: cookie.split(';').next().unwrap().to_owned(),
            page: header("x-tierbar-session"),
        }
    }

    async fn send(&self, bench: &Bench, route: (&str, &str), body: &str) -> Response<Body> {
        send(bench, route, Some(&self.cookie), Some(&self.page), body).await
    }

    fn hash(&self, token: &Token) -> [u8; 32] {
        let (_, cookie) = self.cookie.split_once('=').unwrap();
        hash(token, cookie, &self.page)
    }

    /// Which began then.
    pub(in crate::tests) async fn begun(bench: &Bench, begun_ms: u64) -> Self {
        let (cookie, page) = (random_text().unwrap(), random_text().unwrap());
        let hash = hash(&bench.token, &cookie, &page);
        let stored = bench.store.add_session(hash, IDLE_MS, begun_ms);
        stored.await.unwrap();
        Self {
            cookie: format!("tierbar_session_11435={cookie}"),
            page,
        }
    }
}

async fn send(
    bench: &Bench,
    (method, path): (&str, &str),
    cookie: Option<&str>,
    page: Option<&str>,
    body: &str,
) -> Response<Body> {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost");
    if let Some(cookie) = cookie {
        request = request.header("cookie", cookie);
    }
    if let Some(page) = page {
        request = request.header(&HALF, page);
    }
    let body = Body::from(body.to_owned());
    bench.send(request.body(body).unwrap()).await
}

#[tokio::test]
async fn a_session_needs_both_halves() {
    let bench = bench().await;
    let (browser, other) = (
        Browser::sign_in(&bench).await,
        Browser::sign_in(&bench).await,
    );
    assert_ne!(browser.cookie, other.cookie);
    assert_eq!(browser.send(&bench, STATUS, "").await.status(), 200);
    let crumbs = format!("theme=dark; {}", browser.cookie);
    for (cookie, page, status) in [
        (Some(&*crumbs), Some(&*browser.page), 200),
        // What another program's port receives.
        (Some(&*browser.cookie), None, 401),
        (None, Some(&*browser.page), 401),
        (Some(&*browser.cookie), Some(&*other.page), 401),
        (Some("tierbar_session_11435="), Some(""), 401),
    ] {
        let answer = send(&bench, STATUS, cookie, page, "").await;
        assert_eq!(answer.status(), status, "{cookie:?} {page:?}");
    }
    let (_, secret) = browser.cookie.split_once('=').unwrap();
    let bearer = Request::get(STATUS.1)
        .header("host", "localhost")
        .header("authorization", format!("Bearer {secret}"));
    let refused = bench.send(bearer.body(Body::empty()).unwrap()).await;
    assert_eq!(refused.status(), 401);
}

#[tokio::test]
async fn a_one_time_code_begins_one_session_and_nothing_else() {
    let bench = bench().await;
    let created = bench
        .ask("POST", "/tierbar/v1/session/code", Body::empty())
        .await;
    assert_eq!(created.status(), 201);
    let created = crate::testing::json(created).await;
    let code = created["code"].as_str().unwrap().to_owned();
    assert_eq!(created["expires_in_seconds"], 600);
    let bearer = async |method: &str, path: &str| {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "localhost")
            .header("authorization", format!("Bearer {code}"));
        bench.send(request.body(Body::empty()).unwrap()).await
    };
    let begin = "/tierbar/v1/session";
    for (method, path) in [
        STATUS,
        ("DELETE", begin),
        ("POST", "/tierbar/v1/session/code"),
    ] {
        assert_eq!(bearer(method, path).await.status(), 401, "{method} {path}");
    }
    let begun = bearer("POST", begin).await;
    assert_eq!(begun.status(), 204);
    let header = |name: &str| begun.headers()[name].to_str().unwrap().to_owned();
    let cookie = header("set-cookie");
    let browser = Browser {
        cookie: cookie.split(';').next().unwrap().to_owned(),
        page: header("x-tierbar-session"),
    };
    assert_eq!(browser.send(&bench, STATUS, "").await.status(), 200);
    assert_eq!(bearer("POST", begin).await.status(), 401);
    // Else it would renew itself for ever.
    let another = browser
        .send(&bench, ("POST", "/tierbar/v1/session/code"), "")
        .await;
    assert_eq!(another.status(), 401);
}

#[tokio::test]
async fn a_session_ends_by_its_page_or_by_the_owner() {
    let bench = bench().await;
    let (one, two) = (
        Browser::sign_in(&bench).await,
        Browser::sign_in(&bench).await,
    );
    let end = ("DELETE", "/tierbar/v1/session");
    assert_eq!(one.send(&bench, end, "").await.status(), 204);
    assert_eq!(one.send(&bench, STATUS, "").await.status(), 401);
    assert_eq!(two.send(&bench, STATUS, "").await.status(), 200);
    let ended = bench
        .ask("DELETE", "/tierbar/v1/sessions", Body::empty())
        .await;
    assert_eq!(ended.status(), 204);
    assert_eq!(two.send(&bench, STATUS, "").await.status(), 401);
}

#[tokio::test]
async fn a_session_ends_all_others() {
    let bench = bench().await;
    let mut browsers = Vec::new();
    for _ in 0..3 {
        browsers.push(Browser::sign_in(&bench).await);
    }
    let ended = browsers[1].send(&bench, ("DELETE", "/tierbar/v1/sessions"), "");
    assert_eq!(ended.await.status(), 204);
    for (browser, status) in browsers.iter().zip([401, 200, 401]) {
        assert_eq!(browser.send(&bench, STATUS, "").await.status(), status);
    }
}

#[tokio::test]
async fn a_new_token_ends_all_sessions() {
    let bench = bench().await;
    let browser = Browser::sign_in(&bench).await;
    let folder = tempfile::tempdir().unwrap();
    let new = Token::open(&folder.path().join("token")).unwrap();
    for (token, known) in [(&bench.token, true), (&new, false)] {
        let hash = browser.hash(token);
        let used = bench.store.use_session(hash, IDLE_MS, now_ms()).await;
        assert_eq!(used.unwrap().is_some(), known);
    }
}

#[tokio::test]
async fn hosts_on_other_ports_have_cookies_of_their_own() {
    let (one, two) = (bench().await, Bench::new("127.0.0.1:11436").await);
    let (of_one, of_two) = (Browser::sign_in(&one).await, Browser::sign_in(&two).await);
    assert!(of_one.cookie.starts_with("tierbar_session_11435="));
    // A browser sends both cookies to both.
    let cookies = format!("{}; {}", of_two.cookie, of_one.cookie);
    for (bench, page) in [(&one, &of_one.page), (&two, &of_two.page)] {
        let answer = send(bench, STATUS, Some(&cookies), Some(page), "").await;
        assert_eq!(answer.status(), 200);
    }
    let (_, secret) = of_one.cookie.split_once('=').unwrap();
    let former = format!("tierbar_session={secret}");
    let answer = send(&one, STATUS, Some(&former), Some(&of_one.page), "").await;
    assert_eq!(answer.status(), 401);
}

#[test]
fn a_session_from_the_future_is_old() {
    for (begun, fresh) in [
        (FRESH_MS, true),
        (2 * FRESH_MS, true),
        (FRESH_MS - 1, false),
        (2 * FRESH_MS + 1, false),
        (u64::MAX, false),
    ] {
        assert_eq!(is_fresh(begun, 2 * FRESH_MS), fresh, "{begun}");
    }
}

#[tokio::test]
async fn after_the_clock_is_set_back_access_is_not_widened() {
    let bench = bench().await;
    let browser = Browser::begun(&bench, now_ms() + 3_600_000).await;
    assert_eq!(browser.send(&bench, STATUS, "").await.status(), 200);
    let key = ("POST", "/tierbar/v1/keys");
    let refused = browser.send(&bench, key, r#"{"name": "a"}"#).await;
    assert_eq!(refused.status(), 403);
}

#[tokio::test]
async fn a_session_lasts_while_it_is_used() {
    let bench = bench().await;
    let browser = Browser::sign_in(&bench).await;
    let (hash, start) = (browser.hash(&bench.token), now_ms());
    let day = 24 * 3_600_000;
    for days in [10, 20, 30] {
        let used = bench.store.use_session(hash, IDLE_MS, start + days * day);
        assert!(used.await.unwrap().is_some(), "day {days}");
    }
    let used = bench.store.use_session(hash, IDLE_MS, start + 45 * day);
    assert_eq!(used.await.unwrap(), None);
}

#[tokio::test]
async fn only_a_new_session_widens_access() {
    let bench = bench().await;
    let new = Browser::sign_in(&bench).await;
    let old = Browser::begun(&bench, now_ms() - FRESH_MS - 1).await;
    let config = ("PATCH", "/tierbar/v1/config");
    let turns = ("POST", "/tierbar/v1/chats/none/turns");
    let consents = [
        ("POST", "/v1/agent/none/consent"),
        ("POST", "/tierbar/v1/chats/none/turns/none/consent"),
    ];
    for (route, body) in [
        (config, r#"{"server": {"network": true}}"#),
        (config, r#"{"listen": "0.0.0.0:1"}"#),
        (config, r#"{"allowed_origins": ["https://evil.example"]}"#),
        (config, r#"{"log": {"prompts": true}}"#),
        (config, r#"{"queue": {"webhook_hosts": ["evil.example"]}}"#),
        (config, r#"{"schedules": {"night": {"at": "02:00"}}}"#),
        (
            config,
            r#"{"tiers": {"fast": {"engine": {"endpoint": "https://evil.example"}}}}"#,
        ),
        (("POST", "/tierbar/v1/keys"), r#"{"name": "a"}"#),
        (("PUT", "/tierbar/v1/secrets/hub"), r#"{"value": "x"}"#),
        (("DELETE", "/tierbar/v1/secrets/hub"), ""),
        (("GET", "/tierbar/v1/queue/secret"), ""),
        (("POST", "/v1/agent"), r#"{"input": []}"#),
        (turns, r#"{"text": "a", "agent": {}}"#),
        (consents[0], r#"{"id": "a", "allow": "once"}"#),
        (consents[1], r#"{"id": "a", "allow": "once"}"#),
        (("POST", "/tierbar/v1/documents"), r#"{"path": "/"}"#),
        (config, r#"{"models_dir": "/"}"#),
        (config, r#"{"mcp": {"a": {}}}"#),
        (config, r#"{"a_setting_of_tomorrow": 1}"#),
    ] {
        let refused = old.send(&bench, route, body).await;
        assert_eq!(refused.status(), 403, "{route:?} {body}");
        let error = crate::testing::json(refused).await;
        assert_eq!(error["error"]["sign_in_again"], true, "{error}");
        let passed = new.send(&bench, route, body).await;
        assert_ne!(passed.status(), 403, "{route:?} {body}");
    }
    // The test services' answer to any patch.
    let passed = old.send(&bench, config, r#"{"policy": {}}"#).await;
    assert_eq!(passed.status(), 400);
    for (route, body) in [
        (turns, r#"{"text": "a"}"#),
        (consents[0], r#"{"id": "a", "allow": null}"#),
        (consents[1], r#"{"id": "a", "allow": null}"#),
    ] {
        let passed = old.send(&bench, route, body).await;
        assert_eq!(passed.status(), 404, "{route:?} {body}");
    }
    // Else a session would renew itself for ever.
    for browser in [&old, &new] {
        let begin = ("POST", "/tierbar/v1/session");
        assert_eq!(browser.send(&bench, begin, "").await.status(), 401);
    }
}
