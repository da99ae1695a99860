//! `tierbar triage|compress|summarize|brief`: runs a task on a file or on stdin.

use crate::{client::with_host, output, reading};
use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use std::path::PathBuf;
use tierbar_core::Error;

/// The largest input that the API accepts.
const MAX_BYTES: u64 = 30 << 20;

#[derive(Debug, clap::Args)]
pub(crate) struct Input {
    /// File to read [default: stdin]
    file: Option<PathBuf>,
    /// Tier or model to use [default: the task's usual tier]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Print the full answer as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Compress {
    /// Maximum length of the result, in words
    #[arg(long)]
    words: u32,
    #[command(flatten)]
    input: Input,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Summarize {
    /// Maximum length of the result, in words [default: 200]
    #[arg(long)]
    words: Option<u32>,
    #[command(flatten)]
    input: Input,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Brief {
    /// Maximum length of the result, in words [default: 150]
    #[arg(long)]
    words: Option<u32>,
    /// Print an e-mail header with subject, type and urgency above the brief
    #[arg(long, conflicts_with = "json")]
    email: bool,
    #[command(flatten)]
    input: Input,
}

pub(crate) async fn triage(home: Option<PathBuf>, input: Input) -> Result<(), Error> {
    let answer = run(home, "triage", "text", None, &input).await?;
    print(input.json, &answer, |answer| {
        let cloud = if answer["needs_cloud"] == true {
            "needs a larger model"
        } else {
            "needs no cloud"
        };
        let (kind, why) = (field(answer, "type"), field(answer, "why"));
        format!("{kind}, urgency {}, {cloud}: {why}", answer["urgency"])
    });
    Ok(())
}

pub(crate) async fn compress(home: Option<PathBuf>, args: Compress) -> Result<(), Error> {
    let answer = run(home, "compress", "text", Some(args.words), &args.input).await?;
    print(args.input.json, &answer, |answer| field(answer, "text"));
    note_fallback(&answer, "sentences of the text, chosen by rule");
    let missing = answer["missing"].as_array().into_iter().flatten();
    let missing: Vec<_> = missing.filter_map(Value::as_str).collect();
    if !missing.is_empty() {
        output::error_line(&format!("missing from the result: {}", missing.join("; ")));
    }
    if answer["fits"] == false {
        let (words, limit) = (&answer["words"], args.words);
        output::error_line(&format!(
            "the result has {words} words; the limit is {limit}"
        ));
    }
    Ok(())
}

pub(crate) async fn summarize(home: Option<PathBuf>, args: Summarize) -> Result<(), Error> {
    let answer = run(home, "summarize", "text", args.words, &args.input).await?;
    print(args.input.json, &answer, |answer| field(answer, "summary"));
    note_fallback(&answer, "sentences of the text, chosen by rule");
    Ok(())
}

pub(crate) async fn brief(home: Option<PathBuf>, args: Brief) -> Result<(), Error> {
    let answer = run(home, "brief", "lines", args.words, &args.input).await?;
    print(args.input.json, &answer, |answer| {
        let (header, brief) = (field(answer, "header"), field(answer, "brief"));
        if args.email {
            format!("{header}\n{brief}")
        } else {
            brief
        }
    });
    note_fallback(&answer, "the counts themselves");
    let malformed = answer["aggregate"]["malformed"].as_u64().unwrap_or(0);
    if malformed > 0 {
        let first = &answer["aggregate"]["first_malformed"];
        output::error_line(&format!(
            "ignored {malformed} malformed lines; the first is line {first}"
        ));
    }
    Ok(())
}

/// Says what the result is if no model wrote it.
fn note_fallback(answer: &Value, instead: &str) {
    if answer["fallback"] == true {
        let why = match answer["tier"].is_null() {
            true => "the model failed the test of summaries",
            false => "the model gave no usable answer",
        };
        output::error_line(&format!("{why}; these are {instead}"));
    }
}

async fn run(
    home: Option<PathBuf>,
    task: &str,
    field: &str,
    words: Option<u32>,
    input: &Input,
) -> Result<Value, Error> {
    let mut read = reading::Input::open(input.file.as_deref())?;
    let content = match read.media_type()? {
        // Tasks that take text only say so.
        Some(media_type) => {
            let data = BASE64_STANDARD.encode(read.bytes(MAX_BYTES)?);
            json!([reading::media_part(media_type, &data)])
        }
        None => read.text(MAX_BYTES).await?.into(),
    };
    let mut body = json!({field: content});
    if let Some(model) = &input.model {
        body["model"] = json!(model);
    }
    if let Some(words) = words {
        body["words"] = json!(words);
    }
    let path = format!("/v1/{task}");
    with_host(home, async |client| client.post(&path, &body).await).await
}

fn field(answer: &Value, name: &str) -> String {
    answer[name].as_str().unwrap_or_default().to_owned()
}

fn print(as_json: bool, answer: &Value, text: impl Fn(&Value) -> String) {
    if as_json {
        output::write_json(answer);
    } else {
        // An answer may contain terminal escape sequences.
        let text = text(answer);
        output::write_line(&text.replace(|c: char| c.is_control() && c != '\n', " "));
    }
}
