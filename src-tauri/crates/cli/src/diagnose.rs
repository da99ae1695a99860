//! `tierbar diagnose`: the figures of this machine and its tiers as one text, for a report about Tierbar.

use crate::{client::Client, output};
use std::path::PathBuf;
use tierbar_core::{Code, Error};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(home: Option<PathBuf>, args: &Args) -> Result<(), Error> {
    let client = Client::running_or_own(home).await?;
    let answer = client.get("/tierbar/v1/diagnosis").await;
    client.close().await;
    let mut answer = answer?;
    let text = answer
        .as_object_mut()
        .and_then(|figures| figures.remove("text"));
    let Some(text) = text.as_ref().and_then(serde_json::Value::as_str) else {
        return Err(Error::new(
            Code::Internal,
            "the running Tierbar is another version",
        ));
    };
    if args.json {
        output::write_line(&answer.to_string());
    } else {
        output::write(text);
    }
    Ok(())
}
