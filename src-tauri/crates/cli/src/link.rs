//! `tierbar link`.

use crate::{client::running, output};
use serde_json::json;
use std::path::PathBuf;
use tierbar_core::Error;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints only the link, so that `open "$(tierbar link)"` works.
pub(crate) async fn run(home: Option<PathBuf>, args: &Args) -> Result<(), Error> {
    let link = running(home.as_ref())?.sign_in_link().await?;
    output::write_outcome(args.json, &json!({"link": link}), &link);
    Ok(())
}
