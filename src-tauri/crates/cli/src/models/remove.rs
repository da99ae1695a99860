//! Deleting a model.

use super::list;
use crate::{
    client::{Client, admin},
    output,
};
use std::io::{IsTerminal, stdin};
use tierbar_core::{Code, Error, budget::gib};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A model's id
    #[arg(value_name = "MODEL")]
    model: String,
    /// Delete it for good where it cannot be moved to the Trash
    #[arg(long)]
    permanently: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

pub(super) async fn run(client: &Client, args: &Args) -> Result<(), Error> {
    let model = super::asked(&args.model);
    if !args.yes && !confirmed(client, &model).await? {
        return Err(Error::new(Code::Cancelled, "nothing was deleted"));
    }
    let query: &[_] = if args.permanently {
        &[("permanently", "true")]
    } else {
        &[]
    };
    let removed = client.delete(&admin(&["models", &model], query)).await?;
    output::line(if removed["trashed"] == true {
        "It is in the Trash."
    } else {
        "It is deleted."
    });
    Ok(())
}

async fn confirmed(client: &Client, model: &str) -> Result<bool, Error> {
    if !stdin().is_terminal() {
        let message = "without a terminal nobody can be asked whether to delete it";
        return Err(Error::new(Code::BadRequest, message).hint("say --yes"));
    }
    let models = list::all(client).await?.models;
    let size = models
        .iter()
        .find(|known| known.id.as_str() == model || known.path == model)
        .map_or_else(String::new, |known| format!(" ({})", gib(known.size_bytes)));
    output::prompt(&format!("Delete {model}{size}? [y/N] "));
    let answer = tokio::task::spawn_blocking(|| {
        let mut answer = String::new();
        stdin().read_line(&mut answer).map(|_| answer)
    });
    let answer = answer.await.ok().and_then(Result::ok).unwrap_or_default();
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
