//! `tierbar tier use|start|stop`.

use crate::{
    client::{Client, read},
    models::use_in,
    output,
    status::tier_line,
};
use serde_json::{Value, json};
use std::path::PathBuf;
use tierbar_core::{Code, Error, TierId};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
    /// Print the tier as JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Use a model in a tier
    Use {
        /// Name of the tier, such as fast; embedder or reranker for a model of that kind
        #[arg(value_name = "TIER")]
        tier: String,
        /// Model ID, as listed by `tierbar models`
        #[arg(value_name = "MODEL")]
        model: String,
    },
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

pub(crate) async fn run(home: Option<PathBuf>, args: Args) -> Result<(), Error> {
    let as_json = args.json;
    match args.command {
        Command::Use { tier, model } => {
            let client = Client::running_or_own(home).await?;
            let outcome = use_in::choose_named(&client, &tier, &model, as_json).await;
            client.close().await;
            outcome
        }
        Command::Start { name } => call(home, name, "start", json!({}), as_json).await,
        Command::Stop { name, force } => {
            call(home, name, "stop", json!({"force": force}), as_json).await
        }
    }
}

async fn call(
    home: Option<PathBuf>,
    name: String,
    verb: &str,
    body: Value,
    as_json: bool,
) -> Result<(), Error> {
    let client = Client::running(home.as_ref())?;
    let tier = TierId::new(name).map_err(|reason| Error::new(Code::TierUnknown, reason))?;
    let path = format!("/tierbar/v1/tiers/{tier}/{verb}");
    let status = client.post(&path, &body).await?;
    if as_json {
        output::json(&status);
    } else {
        output::write(&tier_line(&read(status)?));
    }
    Ok(())
}
