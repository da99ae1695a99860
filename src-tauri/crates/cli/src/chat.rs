//! `tierbar chat`: one question, or a conversation, in the terminal.

use crate::{client::Client, output};
use futures_util::StreamExt;
use reqwest::Method;
use rustyline::{DefaultEditor, error::ReadlineError};
use serde_json::{Value, json};
use sse_stream::SseByteStream;
use std::{
    io::{IsTerminal, Read},
    path::PathBuf,
};
use tierbar_core::{Code, Error, TierId};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Tier that answers [default: auto, the smallest that can]
    #[arg(long, value_name = "NAME")]
    tier: Option<String>,
    /// Ask one question, print the answer and exit; "-" reads the question from stdin
    #[arg(long, value_name = "PROMPT")]
    once: Option<String>,
}

pub(crate) async fn run(home: Option<PathBuf>, args: Args) -> Result<(), Error> {
    let prompt = args.once.map(question).transpose()?;
    let client = Client::running_or_own(home).await?;
    let mut conversation = Conversation {
        client: &client,
        model: args.tier.unwrap_or_else(|| TierId::AUTO.to_owned()),
        messages: Vec::new(),
    };
    let outcome = match prompt {
        Some(prompt) => conversation.ask(prompt).await.map(|_| ()),
        None => conversation.hold().await,
    };
    client.close().await;
    outcome
}

fn question(once: String) -> Result<String, Error> {
    if once != "-" {
        return Ok(once);
    }
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| {
            Error::new(
                Code::BadRequest,
                format!("the question on stdin cannot be read: {error}"),
            )
        })?;
    Ok(text)
}

struct Conversation<'a> {
    client: &'a Client,
    model: String,
    messages: Vec<Value>,
}

/// How an answer ended, for the conversation.
#[derive(Debug, PartialEq, Eq)]
enum Answered {
    Whole,
    /// Ctrl-C; what had come stays in the conversation.
    Interrupted,
}

impl Conversation<'_> {
    /// Reads questions until the end of input.
    async fn hold(&mut self) -> Result<(), Error> {
        let mut editor = DefaultEditor::new().map_err(|error| {
            Error::new(
                Code::Internal,
                format!("the terminal cannot be read: {error}"),
            )
        })?;
        if std::io::stdin().is_terminal() {
            output::error_line("Ask away. Ctrl-C stops an answer, Ctrl-D ends.");
        }
        loop {
            let read = tokio::task::spawn_blocking(move || {
                let line = editor.readline("> ");
                (editor, line)
            });
            let (returned, line) = read.await.map_err(|error| {
                Error::new(
                    Code::Internal,
                    format!("the terminal's reader failed: {error}"),
                )
            })?;
            editor = returned;
            match line {
                Ok(line) if line.trim().is_empty() => {}
                Ok(line) => {
                    let _full = editor.add_history_entry(&line);
                    if let Err(error) = self.ask(line).await {
                        output::error(&error);
                        self.messages.pop();
                    }
                }
                Err(ReadlineError::Eof | ReadlineError::Interrupted) => return Ok(()),
                Err(error) => {
                    return Err(Error::new(
                        Code::Internal,
                        format!("the terminal cannot be read: {error}"),
                    ));
                }
            }
        }
    }

    /// Asks one question and prints the answer as it comes.
    async fn ask(&mut self, prompt: String) -> Result<Answered, Error> {
        self.messages
            .push(json!({"role": "user", "content": prompt}));
        let mut text = String::new();
        let answered = tokio::select! {
            streamed = self.stream(&mut text) => streamed.map(|()| Answered::Whole),
            // Dropping the stream closes the connection, which ends the generation.
            interrupted = tokio::signal::ctrl_c() => interrupted
                .map(|()| Answered::Interrupted)
                .map_err(|error| Error::new(Code::Internal, format!("no signal handler: {error}"))),
        };
        if !text.is_empty() && !text.ends_with('\n') {
            output::line("");
        }
        if answered.is_ok() {
            self.messages
                .push(json!({"role": "assistant", "content": text}));
        }
        answered
    }

    async fn stream(&self, text: &mut String) -> Result<(), Error> {
        let body = json!({"model": self.model, "messages": self.messages, "stream": true});
        let response = self
            .client
            .send(Method::POST, "/v1/chat/completions", Some(&body))
            .await?;
        let tier = header(&response, "x-tierbar-tier");
        let mut events = SseByteStream::new(response.bytes_stream());
        while let Some(event) = events.next().await {
            let event = event.map_err(|error| broken_off(&error.to_string()))?;
            let Some(data) = event.data else { continue };
            if data == "[DONE]" {
                return Ok(());
            }
            let chunk: Value = serde_json::from_str(&data)
                .map_err(|error| broken_off(&format!("an event that is not JSON, {error}")))?;
            if let Some(error) = Error::from_openai_body(&chunk) {
                return Err(error);
            }
            if let Some(piece) = chunk["choices"][0]["delta"]["content"].as_str() {
                output::write(piece);
                text.push_str(piece);
            }
            if let Some(rate) = chunk["timings"]["predicted_per_second"].as_f64()
                && std::io::stderr().is_terminal()
            {
                output::error_line(&format!("\n[{tier} · {rate:.1} tok/s]"));
            }
        }
        Err(broken_off("the connection ended"))
    }
}

fn header(response: &reqwest::Response, name: &str) -> String {
    let value = response.headers().get(name);
    value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_owned()
}

fn broken_off(reason: &str) -> Error {
    Error::new(
        Code::WorkerCrashed,
        format!("the answer broke off: {reason}"),
    )
}
