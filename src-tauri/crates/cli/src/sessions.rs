//! `tierbar sessions`.

use crate::{client::Client, output};
use serde_json::json;
use std::path::PathBuf;
use tierbar_core::Error;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Sign out all browsers
    End,
}

pub(crate) async fn run(home: Option<PathBuf>, args: Args) -> Result<(), Error> {
    let client = Client::running(home.as_ref())?;
    match args.command {
        Command::End => client.delete("/tierbar/v1/sessions").await?,
    };
    output::done(
        args.json,
        &json!({"signed_out": "all"}),
        "All browsers are signed out.",
    );
    Ok(())
}
