//! `tierbar chat --once`: one question, and its answer, which is not saved.

use super::{broken_off, facts, files, printer::AnswerPrinter};
use crate::{
    client::{Client, Events, header},
    confirm::no_signals,
    output,
    reading::Input,
};
use reqwest::Method;
use serde_json::{Value, json};
use std::path::PathBuf;
use tierbar_chats::thinking::split;
use tierbar_core::{Code, Error, TierId, bad_request};

/// The longest question, in bytes.
const LONGEST: u64 = 30 << 20;

/// Returns the question, from stdin for "-".
pub(super) async fn question(once: String) -> Result<String, Error> {
    let text = if once == "-" {
        Input::open(None)?.text(LONGEST).await?
    } else {
        once
    };
    if text.trim().is_empty() {
        return Err(bad_request("the question is empty"));
    }
    Ok(text)
}

/// Prints the answer to one question, which is not saved.
pub(super) async fn ask(
    client: &Client,
    tier: Option<String>,
    prompt: &str,
    files: &[PathBuf],
    as_json: bool,
) -> Result<(), Error> {
    let model = tier.unwrap_or_else(|| TierId::AUTO.to_owned());
    let content = files::content(prompt, &files::read_all(files).await?);
    let messages = json!([{"role": "user", "content": content}]);
    let body = json!({"model": model, "messages": messages, "stream": true});
    let mut shown = AnswerPrinter {
        gathers: as_json,
        ..AnswerPrinter::default()
    };
    let answered = tokio::select! {
        streamed = stream(client, &body, &mut shown) => streamed,
        // Dropping the stream closes the connection, which ends the generation.
        interrupted = tokio::signal::ctrl_c() => Err(match interrupted {
            Ok(()) => Error::new(Code::Cancelled, "the answer was stopped"),
            Err(error) => no_signals(error),
        }),
    };
    if !as_json {
        shown.end_line();
        return answered.map(drop);
    }
    let answered = answered?;
    let (thought, answer) = split(&shown.gathered);
    let reasoning = [answered.reasoning.trim(), thought].join("\n");
    output::write_json(&json!({
        "tier": answered.tier,
        "model": answered.model,
        "answer": answer,
        "reasoning": reasoning.trim(),
        "tokens_per_second": answered.rate,
    }));
    Ok(())
}

/// The facts of an answer beside its text.
struct OnceAnswer {
    tier: String,
    model: String,
    reasoning: String,
    /// `None` where the server reports none.
    rate: Option<f64>,
}

async fn stream(
    client: &Client,
    body: &Value,
    shown: &mut AnswerPrinter,
) -> Result<OnceAnswer, Error> {
    let path = "/v1/chat/completions";
    let response = client.send(Method::POST, path, Some(body)).await?;
    let mut streamed = OnceAnswer {
        tier: header(&response, "x-tierbar-tier")
            .unwrap_or_default()
            .to_owned(),
        model: header(&response, "x-tierbar-model")
            .unwrap_or_default()
            .to_owned(),
        reasoning: String::new(),
        rate: None,
    };
    let mut events = Events::from_response(response);
    while let Some(event) = events.next().await.map_err(broken_off)? {
        let chunk = event.data;
        // The end of the stream.
        if chunk.is_null() {
            return Ok(streamed);
        }
        if let Some(error) = Error::from_openai_body(&chunk) {
            return Err(error);
        }
        let delta = &chunk["choices"][0]["delta"];
        if let Some(piece) = delta["reasoning_content"].as_str() {
            streamed.reasoning.push_str(piece);
        }
        if let Some(piece) = delta["content"].as_str() {
            shown.add(piece);
        }
        if let Some(rate) = chunk["timings"]["predicted_per_second"].as_f64() {
            streamed.rate = Some(rate);
            let experts = serde_json::from_value(chunk["timings"]["experts"].clone());
            facts::show_speed(&streamed.tier, rate, "", experts.ok());
        }
    }
    Err(broken_off("the connection ended"))
}
