//! `tierbar models rm`: moves a model to the Trash.

use super::list;
use crate::{
    client::{Client, admin_path},
    confirm::confirm,
    output,
};
use tierbar_core::{Error, fit::LibraryModel, units::file_size};

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
    /// Print the outcome as JSON
    #[arg(long)]
    json: bool,
}

pub(super) async fn run(client: &Client, args: &Args) -> Result<(), Error> {
    // Looked up before the question, so that the user is not asked to delete a missing model.
    let known = list::find_model(client, &args.model).await?;
    let model = super::absolute_if_path(&args.model);
    let question = format!("Delete {model}{}?", format_size(&known));
    confirm(args.yes, &question, "add --yes", args.json).await?;
    let query: &[_] = if args.permanently {
        &[("permanently", "true")]
    } else {
        &[]
    };
    let path = admin_path(&["models", &model], query);
    let removed = client.delete(&path).await?;
    let sentence = match removed["trashed"] == true {
        true => format!("Moved {model} to the Trash."),
        false => format!("Deleted {model}."),
    };
    output::write_outcome(args.json, &removed, &sentence);
    Ok(())
}

fn format_size(model: &LibraryModel) -> String {
    let size = file_size(model.size_bytes);
    match &model.projector {
        Some(projector) => {
            format!(" ({size}, and its projector {projector} unless another model uses it)")
        }
        None => format!(" ({size})"),
    }
}
