//! The real host and the real worker with a real model, as clients see them.

#![expect(clippy::unwrap_used, reason = "a test fails by its panic")]

mod answers;
mod appliance;
mod arrivals;
mod assignments;
mod bad_input;
mod bare_environment;
mod catalog;
mod command_line;
mod commands;
mod configuration;
mod connect;
mod contexts;
mod conversations;
mod documents;
mod embedder;
mod ends;
mod engines;
mod expansion;
mod files;
mod gpu;
mod guard;
mod hub;
mod journal;
mod library;
mod mcp;
mod measures;
mod media;
mod memory;
mod outage;
mod paging;
mod passing;
mod pulls;
mod queue;
mod safety;
mod secrets;
mod setup;
mod support;
mod tasks;
mod turns;
mod volumes;
mod waiting;

use futures_util::StreamExt;
use reqwest::Response;
use serde_json::Value;
use tierbar_tests::wait::within;

/// One tier with the starter model.
const FAST: &str = "[tiers.fast]\nmodel = \"SmolLM2-135M-Instruct.Q4_1.gguf\"\ncontext = 2048\n";

/// Returns the command line of a process.
fn arguments_of(pid: u32) -> String {
    let ps = std::process::Command::new("ps")
        .args(["-ww", "-o", "args=", "-p", &pid.to_string()])
        .output()
        .unwrap();
    String::from_utf8(ps.stdout).unwrap()
}

/// The events of a stream, one at a time.
struct Events {
    response: Response,
    text: String,
}

impl Events {
    fn of(response: Response) -> Self {
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self {
            response,
            text: String::new(),
        }
    }

    /// The next event's data; `None` at the stream's end.
    async fn next(&mut self) -> Option<String> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let data: Vec<_> = event
                    .lines()
                    .filter_map(|line| line.strip_prefix("data: "))
                    .collect();
                let data = data.join("\n");
                self.text = rest.to_owned();
                if !data.is_empty() {
                    return Some(data);
                }
                continue;
            }
            let bytes = within("an event", self.response.chunk()).await.unwrap()?;
            self.text += std::str::from_utf8(&bytes).unwrap();
        }
    }

    async fn next_json(&mut self) -> Value {
        serde_json::from_str(&self.next().await.unwrap()).unwrap()
    }

    /// Reads until there is text.
    async fn words(&mut self) -> String {
        loop {
            let chunk = self.next_json().await;
            assert!(chunk.get("error").is_none(), "{chunk}");
            if let Some(words) = chunk["choices"][0]["delta"]["content"].as_str()
                && !words.is_empty()
            {
                return words.to_owned();
            }
        }
    }

    /// Returns the remaining events.
    async fn rest(mut self) -> Vec<String> {
        let events = futures_util::stream::unfold(&mut self, |events| async {
            let event = events.next().await?;
            Some((event, events))
        });
        events.collect().await
    }
}
