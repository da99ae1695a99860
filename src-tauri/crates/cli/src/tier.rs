//! `tierbar tier start|stop`.

use crate::{client::Client, output, status::tier_line};
use serde_json::{Value, json};
use std::path::PathBuf;
use tierbar_core::{Code, Error, TierId};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Load a tier and wait until it is ready
    Start {
        /// Name of the tier
        name: String,
    },
    /// Unload a tier and wait until its memory is free
    Stop {
        /// Name of the tier
        name: String,
        /// Interrupt answers in progress instead of waiting for them
        #[arg(long)]
        force: bool,
    },
}

pub(crate) async fn run(home: Option<PathBuf>, command: Command) -> Result<(), Error> {
    let client = Client::running(home.as_ref())?;
    let (name, verb, body) = match command {
        Command::Start { name } => (name, "start", json!({})),
        Command::Stop { name, force } => (name, "stop", json!({"force": force})),
    };
    let tier = TierId::new(name).map_err(|reason| Error::new(Code::TierUnknown, reason))?;
    let status: Value = client
        .post(&format!("/tierbar/v1/tiers/{tier}/{verb}"), &body)
        .await?;
    let status = serde_json::from_value(status).map_err(|error| {
        Error::new(
            Code::Internal,
            format!("the running Tierbar is another version: {error}"),
        )
    })?;
    output::write(&tier_line(&status));
    Ok(())
}
