//! Access from other machines, and over TLS.

use super::{ANSWER, Serving, chat};
use reqwest::StatusCode;
use serde_json::{Value, json};
use std::net::{IpAddr, UdpSocket};
use tierbar_core::Code;
use tierbar_skip::skip;
use tokio::process::Command;

/// Returns an address of this machine other than loopback, if there is one. Connecting a datagram socket sends nothing.
pub(super) fn outside() -> Option<IpAddr> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("198.51.100.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|ip| !ip.is_loopback() && !ip.is_unspecified())
}

#[tokio::test]
async fn a_public_address_needs_explicit_consent() {
    let Err(error) = Serving::start("0.0.0.0:0", "").await else {
        panic!("it listens");
    };
    assert_eq!(error.code, Code::ConfigInvalid);
    assert!(
        error.message.contains("any machine on this network"),
        "{error}"
    );
    assert!(error.message.contains("network = true"), "{error}");

    let serving = Serving::start("0.0.0.0:0", "[server]\nnetwork = true\n")
        .await
        .unwrap();
    let notices = serving.host.running().status().await.unwrap().notices;
    assert!(
        notices.iter().any(|notice| notice.contains("unencrypted")),
        "{notices:?}"
    );
    serving.host.shutdown().await;
}

#[tokio::test]
async fn remotely_a_key_allows_inference_and_the_token_all() {
    let serving = Serving::start("0.0.0.0:0", "[server]\nnetwork = true\n")
        .await
        .unwrap();
    let key = serving
        .key(json!({"name": "laptop", "requests_per_minute": 3}))
        .await;
    // Without a network, loopback must do: the rules depend on where the server listens.
    let at = outside().unwrap_or(IpAddr::from([127, 0, 0, 1]));
    let url = format!("http://{at}:{}", serving.port());
    let post = |path: &str| {
        serving
            .http
            .post(format!("{url}{path}"))
            .json(&chat("Hello"))
    };
    let get = |path: &str| serving.http.get(format!("{url}{path}"));
    const CHAT: &str = "/v1/chat/completions";

    assert_eq!(get("/health").send().await.unwrap().status(), 200);
    assert_eq!(post(CHAT).send().await.unwrap().status(), 401);
    assert_eq!(get("/v1/models").send().await.unwrap().status(), 401);
    let wrong = post(CHAT).bearer_auth("ollama").send().await.unwrap();
    assert_eq!(wrong.status(), 401);
    for request in [
        post(CHAT).bearer_auth(&key),
        post(CHAT).header("x-api-key", &key),
    ] {
        let answer = request.send().await.unwrap();
        assert_eq!(answer.status(), 200);
        assert!(answer.headers().contains_key("x-request-id"));
        assert!(answer.text().await.unwrap().contains(ANSWER));
    }
    let admin = get("/tierbar/v1/status")
        .bearer_auth(&key)
        .send()
        .await
        .unwrap();
    assert_eq!(admin.status(), 401);
    let token = serving.host.token();
    let admin = get("/tierbar/v1/status")
        .bearer_auth(token)
        .send()
        .await
        .unwrap();
    assert_eq!(admin.status(), 200);
    assert_eq!(
        post(CHAT).bearer_auth(token).send().await.unwrap().status(),
        200
    );

    assert_eq!(
        post(CHAT).bearer_auth(&key).send().await.unwrap().status(),
        200
    );
    let limited = post(CHAT).bearer_auth(&key).send().await.unwrap();
    assert_eq!(limited.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(limited.headers().contains_key("retry-after"));
    serving.host.shutdown().await;
}

#[tokio::test]
async fn keys_and_their_remaining_tokens_survive_a_restart() {
    let serving = Serving::start("127.0.0.1:0", "").await.unwrap();
    let key = serving
        .key(json!({"name": "nightly", "tokens_per_day": 10}))
        .await;
    let ask = |url: &str| {
        let url = format!("{url}/v1/chat/completions");
        serving
            .http
            .post(url)
            .json(&chat("Hello"))
            .bearer_auth(&key)
    };
    let answer = ask(serving.host.url()).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    serving.host.shutdown().await;
    let host = tierbar_host::Host::start(tierbar_host::HostOptions {
        home: Some(serving.data.path().to_owned()),
        listen: Some("127.0.0.1:0".to_owned()),
        worker: Some(std::env::current_exe().unwrap()),
        kind: tierbar_host::HostKind::Cli,
    })
    .await
    .unwrap();
    let refused = ask(host.url()).send().await.unwrap();
    assert_eq!(refused.status(), 429);
    let error: Value = refused.json().await.unwrap();
    let message = error["error"]["message"].as_str().unwrap();
    assert_eq!(message, "the key nightly has used its 10 tokens per day");
    host.shutdown().await;
}

/// Returns curl's output, or why it failed.
async fn curl(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("curl")
        .args([
            "--silent",
            "--show-error",
            "--noproxy",
            "*",
            "--max-time",
            "60",
        ])
        .args(arguments)
        .output()
        .await
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    if output.status.success() {
        Ok(text(output.stdout))
    } else {
        Err(text(output.stderr))
    }
}

#[tokio::test]
async fn tls_works_only_for_clients_that_trust_the_certificate() {
    let config = "[server]\nnetwork = true\ntls = true\n";
    let serving = Serving::start("0.0.0.0:0", config).await.unwrap();
    let key = serving.key(json!({"name": "laptop"})).await;
    let fingerprint = serving.host.fingerprint().unwrap().to_owned();
    let notices = serving.host.running().status().await.unwrap().notices;
    assert!(
        notices.iter().any(|notice| notice.contains(&fingerprint)),
        "{notices:?}"
    );
    assert!(!notices.iter().any(|notice| notice.contains("unencrypted")));

    let at = outside().map_or("localhost".to_owned(), |ip| ip.to_string());
    let url = format!("https://{at}:{}/v1/chat/completions", serving.port());
    let certificate = serving.data.path().join("certificate.pem");
    let certificate = certificate.to_str().unwrap();
    let authorization = format!("Authorization: Bearer {key}");
    let mut body = chat("Hello");
    body["stream"] = true.into();
    let body = body.to_string();
    let request = ["--header", &authorization, "--data", &body, &url];
    let answered = curl(&[&["--cacert", certificate], &request[..]].concat())
        .await
        .unwrap();
    assert!(answered.ends_with("data: [DONE]\n\n"), "{answered}");
    let refused = curl(&request).await.unwrap_err();
    assert!(refused.contains("certificate"), "{refused}");
    let unknown = curl(&["--cacert", certificate, "--data", &body, &url])
        .await
        .unwrap();
    assert!(unknown.contains("an API key is required"), "{unknown}");
    // The command line and the windows of this machine work without TLS.
    let local = format!("{}/health", serving.host.url());
    assert!(curl(&[&local]).await.unwrap().contains("ok"));
    serving.host.shutdown().await;
}

/// No program on this machine sends from a network address to loopback.
#[tokio::test]
async fn loopback_needs_tls_from_a_network_address() {
    let Some(ip) = outside() else {
        return skip("this machine has no address on a network");
    };
    let config = "[server]\nnetwork = true\ntls = true\n";
    let serving = Serving::start("0.0.0.0:0", config).await.unwrap();
    let local = format!("{}/health", serving.host.url());
    let plain = ["--interface", &ip.to_string(), &local];
    let answer = curl(&plain).await.unwrap();
    assert!(answer.contains("requires TLS"), "{answer}");
    serving.host.shutdown().await;
}
