//! `tierbar pause` and `tierbar resume`.

use crate::{client::Client, output};
use serde_json::{Value, json};
use std::path::PathBuf;
use tierbar_core::{Error, config::Span};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// For so long, such as 30m or 2h [default: until `tierbar resume`]
    #[arg(long = "for", value_name = "TIME", value_parser = length)]
    length: Option<Span>,
}

fn length(text: &str) -> Result<Span, String> {
    Span::try_from(text.to_owned())
}

pub(crate) async fn pause(home: Option<PathBuf>, args: &Args) -> Result<(), Error> {
    let body = args
        .length
        .map_or_else(|| json!({}), |length| json!({"for": length}));
    let client = Client::running(home.as_ref())?;
    let _: Value = client.post("/tierbar/v1/pause", &body).await?;
    let until = args.length.map_or_else(
        || "until `tierbar resume`".to_owned(),
        |length| format!("for {length}"),
    );
    output::line(&format!(
        "paused {until}: what is being answered is answered to its end, and nothing else"
    ));
    Ok(())
}

pub(crate) async fn resume(home: Option<PathBuf>) -> Result<(), Error> {
    let client = Client::running(home.as_ref())?;
    let _: Value = client.post("/tierbar/v1/resume", &json!({})).await?;
    output::line("resumed");
    Ok(())
}
