//! `tierbar link`.

use crate::output;
use serde_json::json;
use std::path::PathBuf;
use tierbar_core::{Code, Error};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Prints only the link, so that `open "$(tierbar link)"` works.
pub(crate) async fn run(home: Option<PathBuf>, args: &Args) -> Result<(), Error> {
    let running = tierbar_host::running(home.as_deref()).ok_or_else(|| {
        Error::new(Code::ShuttingDown, "Tierbar is not running")
            .hint("open the app or run `tierbar serve`")
    })?;
    let link = running.sign_in_link().await?;
    if args.json {
        output::line(&json!({"link": link}).to_string());
    } else {
        output::line(&link);
    }
    Ok(())
}
