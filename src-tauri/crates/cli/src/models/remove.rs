//! `tierbar models rm`: moves a model to the Trash.

use super::list;
use crate::{
    client::{Client, admin},
    output,
};
use std::io::{IsTerminal, stdin};
use tierbar_core::{Code, Error, units::file_size};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Model ID
    #[arg(value_name = "MODEL")]
    model: String,
    /// Delete the model permanently if it cannot be moved to the Trash
    #[arg(long)]
    permanently: bool,
    /// Delete without confirmation
    #[arg(long, short)]
    yes: bool,
}

pub(super) async fn run(client: &Client, args: &Args) -> Result<(), Error> {
    let model = super::absolute_if_path(&args.model);
    if !args.yes && !confirmed(client, &model).await? {
        return Err(Error::new(Code::Cancelled, "nothing was deleted"));
    }
    let query: &[_] = if args.permanently {
        &[("permanently", "true")]
    } else {
        &[]
    };
    let removed = client.delete(&admin(&["models", &model], query)).await?;
    output::line(&if removed["trashed"] == true {
        format!("Moved {model} to the Trash.")
    } else {
        format!("Deleted {model}.")
    });
    Ok(())
}

async fn confirmed(client: &Client, model: &str) -> Result<bool, Error> {
    if !stdin().is_terminal() {
        let message = "deleting a model needs confirmation, and there is no terminal to ask in";
        return Err(Error::new(Code::BadRequest, message).hint("add --yes"));
    }
    let models = list::all(client).await?.models;
    let size = models
        .iter()
        .find(|known| known.id.as_str() == model || known.path == model)
        .map_or_else(String::new, |known| {
            let size = file_size(known.size_bytes);
            match &known.projector {
                Some(projector) => {
                    format!(" ({size}, and its projector {projector} unless another model uses it)")
                }
                None => format!(" ({size})"),
            }
        });
    output::prompt(&format!("Delete {model}{size}? [y/N] "));
    let answer = tokio::task::spawn_blocking(|| {
        let mut answer = String::new();
        stdin().read_line(&mut answer).map(|_| answer)
    });
    let answer = answer.await.ok().and_then(Result::ok).unwrap_or_default();
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
