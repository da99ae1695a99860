//! The memory of what other servers and programs send: answers, errors, messages and lists. None makes the host allocate much more than
//! its bytes. Prints the table of `docs/benchmarks.md`.

mod crowd;
mod entrances;
mod hostile;
mod table;

use crate::{
    FAST,
    memory::{begin_of, filled, frugal, status_of},
};
use hostile::{Hostile, initialized};
use reqwest::Method;
use serde_json::json;
use std::sync::atomic::Ordering;
use table::Table;
use tierbar_tests::serving::{Data, Serving};

const MIB: usize = 1 << 20;
/// What may be made of what arrives, besides its bytes.
const PEAK_MIB: u64 = 64;
/// What may stay of it.
const KEPT_MIB: u64 = 16;

const CHAT: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";
const RESPONSES: &str = "/v1/responses";
const OLLAMA: &str = "/api/chat";
const EMBEDDINGS: &str = "/v1/embeddings";
const RERANK: &str = "/v1/rerank";

/// A tier of each dialect, and chains.
fn endpoints(server: &str) -> String {
    let tier = |name: &str, more: &str| {
        format!("[tiers.{name}]\nmodel = \"m\"\nengine = {{ endpoint = \"{server}\"{more} }}\n")
    };
    let chains = (0..30).map(|number| {
        let name = format!("gpt{number}");
        tier(&name, "") + &format!("[chains.{name}-chain]\nsteps = [\"{name}\"]\nretries = 0\n")
    });
    tier("gpt", "") + &tier("claude", ", dialect = \"anthropic\"") + &chains.collect::<String>()
}

#[cfg_attr(target_vendor = "apple", ignore = "it has no /proc")]
#[tokio::test]
async fn no_refusal_takes_much_more_memory_than_its_bytes() {
    let (hostile, server) = Hostile::start().await;
    let (_data, host) = frugal(Data::empty(&endpoints(&server))).await;
    let mut table = Table::new(&host, &hostile);
    let json = "application/json";
    let long = filled(
        16 * MIB,
        "{\"error\":{\"message\":\"no\"},\"x\":[",
        "[0],",
        "0]}",
    );
    let all = filled(
        64 << 10,
        "{\"error\":{\"message\":\"no\"},\"x\":[",
        "[0],",
        "0]}",
    );
    let within_it = filled(
        64 << 10,
        "{\"error\":{\"message\":\"no\",\"x\":[",
        "[0],",
        "0]}}",
    );
    for (what, body) in [
        ("a long refusal", &long),
        ("a refusal at its limit", &all),
        ("an error at its limit", &within_it),
    ] {
        for status in [400, 404] {
            hostile.will_answer(status, json, body.clone());
            for path in [CHAT, MESSAGES, RESPONSES, OLLAMA] {
                table
                    .ask(&format!("{what} ({status})"), path, "gpt", false)
                    .await;
            }
            table
                .ask(&format!("{what} ({status})"), CHAT, "chain", false)
                .await;
            table
                .ask(&format!("{what} ({status})"), MESSAGES, "claude", false)
                .await;
            table
                .ask(&format!("{what} ({status})"), CHAT, "claude", false)
                .await;
        }
    }
    hostile.will_answer(200, json, long);
    for (path, model) in [
        (CHAT, "gpt"),
        (OLLAMA, "gpt"),
        (CHAT, "claude"),
        (MESSAGES, "claude"),
    ] {
        table.ask("an error in a success", path, model, false).await;
    }
    table.check();
}

#[cfg_attr(target_vendor = "apple", ignore = "it has no /proc")]
#[tokio::test]
async fn no_answer_takes_much_more_memory_than_its_bytes() {
    let (hostile, server) = Hostile::start().await;
    let (_data, host) = frugal(Data::empty(&endpoints(&server))).await;
    let mut table = Table::new(&host, &hostile);
    let json = "application/json";
    let values =
        |length, start: &str| filled(length, "{\"x\":[0,", "[0],", &format!("0],{start}}}"));
    let chat = "\"choices\":[{\"message\":{\"content\":\"Hi\"}}]";
    let message = "\"content\":[{\"type\":\"text\",\"text\":\"Hi\"}]";
    let response = "\"output\":[],\"status\":\"completed\"";
    // As much as is read, and as much as arrives.
    for length in [230 << 10, 63 * MIB] {
        for (form, path, model) in [
            (chat, CHAT, "gpt"),
            (chat, OLLAMA, "gpt"),
            (chat, MESSAGES, "gpt"),
            (chat, CHAT, "chain"),
            (message, CHAT, "claude"),
            (message, MESSAGES, "claude"),
            (response, RESPONSES, "gpt"),
        ] {
            hostile.will_answer(200, json, values(length, form));
            table.ask("values", path, model, false).await;
            table.ask("values", path, model, true).await;
        }
    }
    let text = ("{\"choices\":[{\"message\":{\"content\":\"", "\"}}]}");
    let block = ("{\"content\":[{\"type\":\"text\",\"text\":\"", "\"}]}");
    let item = (
        "{\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"",
        "\"}]}]}",
    );
    let reasoning = (
        "{\"output\":[{\"type\":\"reasoning\",\"encrypted_content\":\"",
        "\"}]}",
    );
    let image = (
        "{\"output\":[{\"type\":\"image_generation_call\",\"result\":\"",
        "\"}]}",
    );
    for (length, path, model, (start, end)) in [
        (15, CHAT, "gpt", text),
        (15, OLLAMA, "gpt", text),
        (63, OLLAMA, "gpt", text),
        (15, CHAT, "chain", text),
        (15, CHAT, "claude", block),
        (15, MESSAGES, "gpt", text),
        (15, MESSAGES, "claude", block),
        (15, RESPONSES, "claude", block),
        (15, RESPONSES, "gpt", item),
        (15, RESPONSES, "gpt", reasoning),
        (15, RESPONSES, "gpt", image),
    ] {
        for (what, part) in [("words", "word "), ("escaped words", "w\\u00f6rd\\n ")] {
            hostile.will_answer(200, json, filled(length * MIB, start, part, end));
            table.ask(what, path, model, false).await;
            table.ask(what, path, model, true).await;
        }
    }
    let start = "{\"choices\":[{\"message\":{\"tool_calls\":[{\"id\":\"1\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"a\\\":[";
    hostile.will_answer(200, json, filled(15 * MIB, start, "[0],", "0]}\"}}]}}]}"));
    for path in [OLLAMA, MESSAGES] {
        table.ask("a call's arguments", path, "gpt", false).await;
    }
    // As many numbers as are read, as many as are encoded, and as much as arrives.
    for length in [7 * MIB, 12 * MIB, 63 * MIB] {
        let start = "{\"data\":[{\"index\":0,\"embedding\":[";
        hostile.will_answer(200, json, filled(length, start, "0,", "0]}]}"));
        table.ask("a vector", "/api/embed", "gpt", false).await;
        table.ask("a vector", EMBEDDINGS, "gpt", false).await;
        table.ask("a vector", EMBEDDINGS, "gpt", true).await;
    }
    let scores = filled(63 * MIB, "{\"results\":[", "[0],", "0]}");
    hostile.will_answer(200, json, scores);
    table.ask("scores", RERANK, "gpt", false).await;
    table.check();
}

#[cfg_attr(target_vendor = "apple", ignore = "it has no /proc")]
#[tokio::test]
async fn no_stream_takes_much_more_memory_than_its_bytes() {
    let (hostile, server) = Hostile::start().await;
    let (_data, host) = frugal(Data::empty(&endpoints(&server))).await;
    let mut table = Table::new(&host, &hostile);
    let events = "text/event-stream";
    let forms = [
        (
            CHAT,
            "gpt",
            "\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\",\"NAME\":[VALUES]}}]",
        ),
        (
            OLLAMA,
            "gpt",
            "\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\",\"NAME\":[VALUES]}}]",
        ),
        (
            CHAT,
            "chain",
            "\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\",\"NAME\":[VALUES]}}]",
        ),
        (
            CHAT,
            "claude",
            "\"type\":\"content_block_start\",\"index\":NAME,\"content_block\":{\"type\":\"tool_use\",\"id\":\"1\",\"name\":\"f\",\"input\":{\"a\":[VALUES]}}",
        ),
        (
            MESSAGES,
            "claude",
            "\"type\":\"content_block_start\",\"index\":NAME,\"content_block\":{\"type\":\"x\",\"a\":[VALUES]}",
        ),
        (
            RESPONSES,
            "gpt",
            "\"type\":\"response.output_text.delta\",\"response\":{\"NAME\":[VALUES]}",
        ),
    ];
    for (path, model, form) in forms {
        let event = |name: usize, values: usize| {
            let values = "[0],".repeat(values / 4) + "0";
            let event = form
                .replace("NAME", &name.to_string())
                .replace("VALUES", &values);
            format!("data: {{{event}}}\n\n")
        };
        let many: String = (0..4000).map(|name| event(name, 4 << 10)).collect();
        for (what, body) in [
            ("an event at its limit", event(1, 110 << 10)),
            ("a long event", event(1, 15 * MIB)),
            ("many events", many),
        ] {
            hostile.will_answer(200, events, body);
            for stream in [false, true] {
                table.ask(what, path, model, stream).await;
            }
        }
    }
    // What each event repeats.
    let name = "a".repeat(MIB - 100);
    let begins =
        format!("data: {{\"type\":\"message_start\",\"message\":{{\"id\":\"{name}\"}}}}\n\n");
    let more = "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\n";
    hostile.will_answer(200, events, begins + &more.repeat(2000));
    table.ask("a long id", CHAT, "claude", true).await;
    let endless = format!("data: {}", "[0],".repeat(16 * MIB));
    hostile.will_answer(200, events, endless);
    for (path, model) in [(CHAT, "gpt"), (CHAT, "claude"), (RESPONSES, "gpt")] {
        table.ask("a line without an end", path, model, true).await;
    }
    table.check();
}

#[cfg_attr(target_vendor = "apple", ignore = "it has no /proc")]
#[tokio::test]
async fn no_list_or_message_takes_much_more_memory_than_its_bytes() {
    let (hostile, server) = Hostile::start().await;
    // Id 1 is that of the list of tools, after the handshake.
    let welcome = initialized(&json!(0));
    let program = |length: usize| {
        let begins = TOOLS.replace("ID", "1");
        let count = (length - begins.len()) / 4;
        let script = format!(
            "read a; echo '{welcome}'; read b; read c; awk 'BEGIN {{ printf \"%s\", \"{}\"; \
             for (i = 0; i < {count}; i++) printf \"[0],\"; print \"0]}}}}]}}}}\" }}'; sleep 60",
            begins.replace('"', "\\\"")
        );
        json!(["/bin/sh", "-c", script])
    };
    let config = format!(
        "[mcp.address]\nurl = \"{server}/mcp\"\n[mcp.small]\ncommand = {}\n[mcp.large]\ncommand = {}\n",
        program(120 << 10),
        program(3 * MIB)
    );
    let data = Data::empty(&config).with("HF_ENDPOINT", &server);
    let (_data, host) = frugal(data).await;
    let mut table = Table::new(&host, &hostile);
    let json = "application/json";
    let hit = "{\"id\":\"a/b\"},";
    let no_file = "{\"type\":\"\",\"path\":\"\"},";
    let card = "{\"sha\":null,\"cardData\":{\"license\":[";
    let info = "{\"sha\":null,\"x\":[";
    for (what, path, body) in [
        (
            "a search of the hub",
            "search?q=a",
            filled(4 * MIB - 1, "[", hit, "{}]"),
        ),
        (
            "values in a search",
            "search?q=a",
            filled(4 * MIB - 1, "[", "[0],", "{}]"),
        ),
        (
            "a repository's card",
            "repository?id=a/b",
            filled(8 * MIB - 1, card, "\"\",", "\"\"]}}"),
        ),
        (
            "a repository",
            "repository?id=a/b",
            filled(8 * MIB - 1, info, "[0],", "0]}"),
        ),
        (
            "a repository's files",
            "repository?id=a/tree",
            filled(4 * MIB - 1, "[", no_file, "{}]"),
        ),
    ] {
        let bytes = body.len();
        hostile.will_answer(200, json, body);
        let path = format!("/tierbar/v1/hub/{path}");
        let act = async {
            host.send(Method::GET, &path, None).await;
        };
        table.measure(what.to_owned(), bytes, act).await;
    }
    let tools = TOOLS.replace("ID", "1");
    for (what, name, body) in [
        (
            "tools of an address, at their limit",
            "address",
            filled((256 << 10) - 1, &tools, "[0],", "0]}}]}}"),
        ),
        (
            "tools of an address",
            "address",
            filled(4 * MIB, &tools, "[0],", "0]}}]}}"),
        ),
    ] {
        let bytes = body.len();
        hostile.will_answer(200, json, body);
        table
            .measure(what.to_owned(), bytes, list_tools(&host, name))
            .await;
    }
    for (what, name, bytes) in [
        ("tools of a program, at their limit", "small", 120 << 10),
        ("tools of a program", "large", 3 * MIB),
    ] {
        let act = async {
            list_tools(&host, name).await;
            hostile.requests.fetch_add(1, Ordering::Relaxed);
        };
        table.measure(what.to_owned(), bytes, act).await;
    }
    table.check();
}

#[cfg_attr(target_vendor = "apple", ignore = "it has no /proc")]
#[tokio::test]
async fn no_list_of_a_store_takes_much_more_memory_than_its_bytes() {
    let (hostile, server) = Hostile::start().await;
    let config =
        format!("[contexts]\nstore = \"s3://b\"\nendpoint = \"{server}\"\naccess_key = \"k\"\n");
    let (_data, host) = frugal(Data::empty(&config)).await;
    let mut table = Table::new(&host, &hostile);
    for (name, value) in [
        ("context-passphrase", "correct horse battery"),
        ("context-store", "s"),
    ] {
        let path = format!("/tierbar/v1/secrets/{name}");
        let (status, value) = (204, json!({"value": value}));
        assert_eq!(
            host.send(Method::PUT, &path, Some(value)).await.status(),
            status
        );
    }
    let start = "<ListBucketResult><NextContinuationToken>a</NextContinuationToken>";
    let version = format!(
        "<Contents><Key>a</Key><Size>1</Size><ETag>{}</ETag></Contents>",
        "a".repeat(4000)
    );
    for (what, part) in [
        ("a list of a store", "<Contents/><a/><a/><a/>"),
        ("versions in a list of a store", &version),
    ] {
        let body = filled(4 * MIB, start, part, "</ListBucketResult>");
        let bytes = body.len();
        hostile.will_answer(200, "application/xml", body);
        let act = async {
            host.send(Method::GET, "/v1/context/store", None).await;
        };
        table.measure(what.to_owned(), bytes, act).await;
    }
    table.check();
}

const TOOLS: &str = "{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"tools\":[{\"name\":\"a\",\"inputSchema\":{\"x\":[";

async fn list_tools(host: &Serving, name: &str) {
    let path = format!("/tierbar/v1/mcp-servers/{name}/test");
    host.send(Method::POST, &path, None).await;
}

#[cfg_attr(target_vendor = "apple", ignore = "it has no /proc")]
#[tokio::test]
async fn json_in_a_text_takes_little_memory_of_the_worker() {
    let (_data, host) = frugal(Data::new(FAST)).await;
    assert_eq!(
        host.chat("fast", json!({"max_tokens": 1})).await.status(),
        200
    );
    let worker = host.tier("fast").await.pid.unwrap();
    let text = filled(4 * MIB, "{\"a\":[", "[0],", "0]}");
    let call = json!({"id": "1", "type": "function", "function": {"name": "f", "arguments": text}});
    let called = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    let result = json!({"role": "tool", "tool_call_id": "1", "content": "x"});
    let tool =
        json!({"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}});
    let plain = json!({"role": "user", "content": text});
    let mut most = 4 + PEAK_MIB;
    for (what, fields) in [
        ("a schema's text", json!({"guided_json": text})),
        ("a prompt", json!({"messages": [plain]})),
        (
            "a call's arguments",
            json!({"messages": [called, result], "tools": [tool]}),
        ),
    ] {
        let before = begin_of(worker);
        assert_eq!(host.chat("fast", fields).await.status(), 400);
        let rise = status_of(worker, "VmHWM:").saturating_sub(before);
        println!("the worker, {what} of 4 MiB: {rise} MiB");
        // The tokens of a text take some memory too, whatever is in it.
        if what == "a prompt" {
            most += rise;
        }
        assert!(rise <= most, "{what}: {rise} MiB");
    }
}
