//! `tierbar pause` and `tierbar resume`.

use crate::{client::Client, output};
use serde_json::json;
use std::path::PathBuf;
use tierbar_core::{Error, config::Span};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Duration, such as 30m or 2h [default: until `tierbar resume`]
    #[arg(long = "for", value_name = "TIME", value_parser = parse_duration)]
    duration: Option<Span>,
    /// Print the status as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Resume {
    /// Print the status as JSON
    #[arg(long)]
    json: bool,
}

fn parse_duration(text: &str) -> Result<Span, String> {
    Span::try_from(text.to_owned())
}

pub(crate) async fn pause(home: Option<PathBuf>, args: &Args) -> Result<(), Error> {
    let body = args
        .duration
        .map_or_else(|| json!({}), |duration| json!({"for": duration}));
    let client = Client::running(home.as_ref())?;
    let status = client.post("/tierbar/v1/pause", &body).await?;
    let until = args.duration.map_or_else(
        || "until `tierbar resume`".to_owned(),
        |duration| format!("for {duration}"),
    );
    let sentence = format!("Paused {until}. Answers in progress finish; new requests are refused.");
    output::write_outcome(args.json, &status, &sentence);
    Ok(())
}

pub(crate) async fn resume(home: Option<PathBuf>, args: &Resume) -> Result<(), Error> {
    let client = Client::running(home.as_ref())?;
    let status = client.post("/tierbar/v1/resume", &json!({})).await?;
    output::write_outcome(args.json, &status, "Resumed.");
    Ok(())
}
