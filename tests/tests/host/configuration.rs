//! The configuration file of a running host.

use crate::FAST;
use reqwest::Method;
use serde_json::{Value, json};
use std::fs;
use tierbar_tests::{
    serving::{Data, Serving},
    wait::until,
};

async fn notice(host: &Serving, part: &str) -> String {
    until(part, async || {
        let notices = host.status().await.notices;
        notices.into_iter().find(|notice| notice.contains(part))
    })
    .await
}

#[tokio::test]
async fn a_saved_file_takes_effect_and_an_invalid_one_is_reported() {
    let data = Data::new(FAST);
    let host = data.serve().await;
    assert_eq!(
        host.chat("fast", json!({"max_tokens": 1})).await.status(),
        200
    );
    let before = host.tier("fast").await.pid;

    data.configure(&format!("{}[tiers.spare]\n", FAST.replace("2048", "1024")));
    until("the new tier", async || {
        let tiers = host.status().await.tiers;
        tiers
            .iter()
            .any(|tier| tier.id.as_str() == "spare")
            .then_some(())
    })
    .await;
    assert_eq!(
        host.chat("fast", json!({"max_tokens": 1})).await.status(),
        200
    );
    assert_eq!(host.tier("fast").await.context_tokens, 1024);
    assert_ne!(
        host.tier("fast").await.pid,
        before,
        "the changed tier was not loaded again"
    );

    data.configure("[tiers.fast]\ncontext = 3\n");
    let shown = notice(&host, "config.toml line 2").await;
    assert!(shown.contains("tiers.fast.context: 3 tokens"), "{shown}");
    assert_eq!(host.tier("fast").await.context_tokens, 1024);

    data.configure(&format!("{FAST}colour = \"red\"\n"));
    let shown = notice(&host, "colour").await;
    assert!(
        shown.contains("config.toml line 4: the key tiers.fast.colour is unknown"),
        "{shown}"
    );
    assert_eq!(host.status().await.tiers.len(), 1);
}

#[tokio::test]
async fn a_patch_keeps_comments_and_applies_to_the_next_request() {
    let text = format!("# mine\nlisten = \"127.0.0.1:1\"\n{FAST}# the end\n");
    let data = Data::new(&text);
    let host = data.serve().await;
    assert_eq!(
        host.chat("fast", json!({"max_tokens": 1})).await.status(),
        200
    );
    let patch = json!({"listen": "127.0.0.1:2", "tiers": {"fast": {"context": 512}}});
    let (status, body) = host
        .ask(Method::PATCH, "/tierbar/v1/config", Some(patch))
        .await;
    assert_eq!(
        (status, &body["config"]["tiers"]["fast"]["context"]),
        (200, &json!(512))
    );
    let path = data.path().join("config.toml");
    assert_eq!(body["path"], path.to_str().unwrap());
    let expected = text.replace("2048", "512").replace(":1\"", ":2\"");
    assert_eq!(fs::read_to_string(path).unwrap(), expected);
    notice(&host, "Restart Tierbar to listen on 127.0.0.1:2").await;

    let prompt = "word ".repeat(600);
    let (status, body) = host
        .ask(
            Method::POST,
            "/v1/completions",
            Some(json!({"prompt": prompt})),
        )
        .await;
    assert_eq!(
        (status, &body["error"]["context_tokens"]),
        (400, &json!(512)),
        "{body}"
    );

    for (wrong, code) in [
        (json!({"tiers": {"fast": {"context": 0}}}), "config_invalid"),
        (json!({"tears": {}}), "bad_request"),
    ] {
        let (status, body) = host
            .ask(Method::PATCH, "/tierbar/v1/config", Some(wrong))
            .await;
        assert_eq!((status, &body["error"]["code"]), (400, &json!(code)));
    }
    let (_, body) = host
        .ask(
            Method::PATCH,
            "/tierbar/v1/config",
            Some(json!({"tiers": {"fast": null}})),
        )
        .await;
    assert_eq!(body["config"]["tiers"], json!({}));
    until("the tier's end", async || {
        host.status().await.tiers.is_empty().then_some(())
    })
    .await;
}

#[tokio::test]
async fn an_mcp_server_is_tried_out_before_it_is_written() {
    let data = Data::empty("# mine\n");
    let host = data.serve().await;
    let put = async |name: &str, body: Value| {
        let path = format!("/tierbar/v1/mcp-servers/{name}");
        host.ask(Method::PUT, &path, Some(body)).await
    };
    let written = || fs::read_to_string(data.path().join("config.toml")).unwrap();
    let server = json!({"url": "http://127.0.0.1:9/mcp", "tools": ["search"], "network": false});
    let (status, body) = put("notes", json!({"server": server})).await;
    assert_eq!(
        (status, &body["error"]["saved"]),
        (502, &json!(false)),
        "{body}"
    );
    assert_eq!(written(), "# mine\n");

    let (status, body) = put("notes", json!({"server": server, "anyway": true})).await;
    assert_eq!(status, 200, "{body}");
    let problem = body["problem"].as_str().unwrap();
    assert!(problem.contains("cannot be reached"), "{problem}");
    let text = written();
    assert!(
        text.contains("# mine") && !text.contains("network"),
        "{text}"
    );
    let change = json!({"server": {"tools": ["fetch"]}, "anyway": true});
    let (status, body) = put("notes", change).await;
    assert_eq!(status, 200, "{body}");
    let (_, config) = host.ask(Method::GET, "/tierbar/v1/config", None).await;
    let notes = &config["config"]["mcp"]["notes"];
    assert_eq!(
        (&notes["url"], &notes["tools"]),
        (&server["url"], &json!(["fetch"]))
    );

    let text = written();
    for (name, wrong, code) in [
        ("notes", json!({"folder": "/a"}), "config_invalid"),
        ("notes", json!({"colour": "red"}), "bad_request"),
        ("Notes", server.clone(), "config_invalid"),
    ] {
        let (status, body) = put(name, json!({"server": wrong, "anyway": true})).await;
        assert_eq!(
            (status, &body["error"]["code"]),
            (400, &json!(code)),
            "{name}: {body}"
        );
        assert_eq!(written(), text, "{name}: {wrong}");
    }
}

#[tokio::test]
async fn an_invalid_file_stops_the_start_and_names_the_line() {
    let data = Data::new("# one\n[tiers.fast]\nkv_cache = \"f15\"\n");
    let (code, stdout, stderr) = data.run(&["serve", "--listen", "127.0.0.1:0"]).await;
    assert_eq!((code, &*stdout), (Some(2), ""));
    assert!(
        stderr.contains("config.toml line 3: tiers.fast.kv_cache"),
        "{stderr}"
    );
}

#[tokio::test]
async fn chats_survive_a_restart() {
    let data = Data::new(FAST);
    let mut host = data.serve().await;
    let (status, chat) = host
        .ask(
            Method::POST,
            "/tierbar/v1/chats",
            Some(json!({"model": "fast"})),
        )
        .await;
    assert_eq!(status, 201);
    let messages = format!(
        "/tierbar/v1/chats/{}/messages",
        chat["id"].as_str().unwrap()
    );
    let message = json!({"role": "user", "content": "What is the sea?"});
    let (status, chat) = host.ask(Method::POST, &messages, Some(message)).await;
    assert_eq!((status, &chat["title"]), (201, &json!("What is the sea?")));
    host.child.kill().await.unwrap();

    let host = data.serve().await;
    let (_, listed) = host.ask(Method::GET, "/tierbar/v1/chats", None).await;
    assert_eq!(listed["chats"], json!([chat]));
    let path = format!("/tierbar/v1/chats/{}", chat["id"].as_str().unwrap());
    let (_, whole) = host.ask(Method::GET, &path, None).await;
    let text = json!([{"type": "text", "text": "What is the sea?"}]);
    assert_eq!(whole["messages"][0]["parts"], text);
    assert_eq!(host.send(Method::DELETE, &path, None).await.status(), 204);
    let (status, gone): (u16, Value) = host.ask(Method::GET, &path, None).await;
    assert_eq!((status, &gone["error"]["code"]), (404, &json!("not_found")));
}
