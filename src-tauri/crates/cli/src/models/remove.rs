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
    if !args.yes {
        let question = format!("Delete {model}{}?", format_size(&known));
        confirm(&question, "add --yes", args.json).await?;
    }
    let query: &[_] = if args.permanently {
        &[("permanently", "true")]
    } else {
        &[]
    };
    let removed = client
        .delete(&admin_path(&["models", &model], query))
        .await?;
    if args.json {
        output::write_json(&removed);
    } else if removed["trashed"] == true {
        output::write_line(&format!("Moved {model} to the Trash."));
    } else {
        output::write_line(&format!("Deleted {model}."));
    }
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
