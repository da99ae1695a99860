//! `tierbar sessions`.

use crate::{client::Client, output};
use std::path::PathBuf;
use tierbar_core::Error;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Sign out all browsers
    End,
}

pub(crate) async fn run(home: Option<PathBuf>, command: Command) -> Result<(), Error> {
    let client = Client::running(home.as_ref())?;
    match command {
        Command::End => client.delete("/tierbar/v1/sessions").await?,
    };
    output::line("All browsers are signed out.");
    Ok(())
}
