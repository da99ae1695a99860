//! Tierbar as an MCP server, as clients of its protocol use it.

use crate::FAST;
use reqwest::Method;
use rmcp::{
    RoleClient,
    model::CallToolRequestParams,
    serve_client,
    service::RunningService,
    transport::{
        StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use serde_json::{Value, json};
use std::{fs, process::Stdio};
use tierbar_tests::{
    serving::Data,
    wait::{until, within},
};

async fn call(
    client: &RunningService<RoleClient, ()>,
    tool: &'static str,
    arguments: Value,
) -> Value {
    let Value::Object(arguments) = arguments else {
        panic!("arguments are an object");
    };
    let request = CallToolRequestParams::new(tool).with_arguments(arguments);
    let result = within(tool, client.call_tool(request)).await.unwrap();
    serde_json::to_value(result).unwrap()
}

#[tokio::test]
async fn mcp_clients_use_the_tools_over_stdio_and_http() {
    let data = Data::new(FAST);
    let mut command = data.tierbar(&["mcp"]);
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let pipes = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let over_stdio = within("a client", serve_client((), pipes)).await.unwrap();
    let early = call(&over_stdio, "list_models", json!({})).await;
    assert_eq!(early["isError"], true, "{early}");
    let words = early["content"][0]["text"].as_str().unwrap();
    assert!(words.starts_with("Tierbar is not running"), "{words}");

    let host = data.serve().await;
    let place = tempfile::tempdir().unwrap();
    let document = place.path().join("lights.md");
    fs::write(&document, "# Towers\n\nPainted every seven years.\n").unwrap();
    let added = ["documents", "add", document.to_str().unwrap()];
    assert_eq!(data.run(&added).await.0, Some(0));
    until("a document that is read", async || {
        let (_, documents) = host.ask(Method::GET, "/tierbar/v1/documents", None).await;
        (documents["sources"][0]["indexed"] == 1).then_some(())
    })
    .await;

    let address = format!("{}/mcp", host.url);
    let config = StreamableHttpClientTransportConfig::with_uri(address);
    let transport = StreamableHttpClientTransport::with_client(
        host.http.clone(),
        config.auth_header(host.token.clone()),
    );
    let over_http = within("a client", serve_client((), transport)).await;
    let over_http = over_http.unwrap();
    for client in [&over_stdio, &over_http] {
        let tools = within("the tools", client.list_all_tools()).await.unwrap();
        assert_eq!(tools.len(), 5, "{tools:?}");
        let question = json!({"question": "painted towers", "count": 1});
        let found = call(client, "search_documents", question).await;
        let passage = &found["structuredContent"]["passages"][0];
        let file = passage["file"].as_str().unwrap_or_default();
        assert!(file.ends_with("lights.md"), "{found}");
        assert_eq!(passage["headings"], json!(["Towers"]));
        let models = call(client, "list_models", json!({})).await;
        assert_eq!(models["structuredContent"]["models"][1]["name"], "fast");
        // No model is needed for this one.
        let triage = call(client, "triage", json!({"text": "Hello!"})).await;
        assert_eq!(triage["structuredContent"]["type"], "greeting", "{triage}");
    }

    over_http.cancel().await.unwrap();
    over_stdio.cancel().await.unwrap();
    let ended = within("the command's end", child.wait()).await.unwrap();
    assert!(ended.success(), "{ended}");
}
