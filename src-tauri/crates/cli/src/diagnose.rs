//! `tierbar diagnose`: the figures of this machine and its tiers as one text, for a report about Tierbar.

use crate::{
    client::{read_answer, with_host},
    output,
};
use serde_json::{Map, Value};
use std::path::PathBuf;
use tierbar_core::Error;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) async fn run(home: Option<PathBuf>, args: &Args) -> Result<(), Error> {
    let path = "/tierbar/v1/diagnosis";
    let answer = with_host(home, async |client| client.get(path).await).await?;
    let mut figures: Map<String, Value> = read_answer(answer)?;
    let text = figures.shift_remove("text").unwrap_or_default();
    let text: String = read_answer(text)?;
    if args.json {
        output::write_json(&figures.into());
    } else {
        output::write(&text);
    }
    Ok(())
}
