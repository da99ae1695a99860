//! `tierbar tier`: lists tiers, chooses the model of one, loads and unloads it.

use crate::{
    Group,
    client::{Client, with_host},
    models::use_in,
    output,
    status::tier_line,
};
use serde_json::{Value, json};
use std::path::PathBuf;
use tierbar_core::{Code, Error, TierId};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// List tiers with their state and model
    List,
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
    #[command(visible_alias = "load")]
    Start {
        /// Name of the tier
        name: String,
    },
    /// Unload a tier and wait until its memory is free
    #[command(visible_alias = "unload")]
    Stop {
        /// Name of the tier
        name: String,
        /// Interrupt answers in progress instead of waiting for them
        #[arg(long)]
        force: bool,
    },
}

pub(crate) async fn run(home: Option<PathBuf>, args: Group<Command>) -> Result<(), Error> {
    let as_json = args.json;
    match args.command {
        None | Some(Command::List) => {
            with_host(home, async |client| list(client, as_json).await).await
        }
        Some(Command::Use { tier, model }) => {
            with_host(home, async |client| {
                use_in::choose_named(client, &tier, &model, as_json).await
            })
            .await
        }
        Some(Command::Start { name }) => call(home, name, "start", json!({}), as_json).await,
        Some(Command::Stop { name, force }) => {
            call(home, name, "stop", json!({"force": force}), as_json).await
        }
    }
}

async fn list(client: &Client, as_json: bool) -> Result<(), Error> {
    let mut status = client.get("/tierbar/v1/status").await?;
    let listed = json!({"tiers": status["tiers"].take()});
    let none = "There are no tiers. To set them up: tierbar setup";
    output::write_list(as_json, listed, "tiers", none, tier_line)
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
    output::write_answer(as_json, status, |tier| tier_line(&tier) + "\n")
}
