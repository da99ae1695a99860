//! `tierbar models`: the models that are here, and those that can be had.

mod fit;
mod list;
mod pull;
mod remove;
mod search;
mod verify;

use crate::client::Client;
use std::path::PathBuf;
use tierbar_core::Error;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: list::Args,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// The models that can be loaded, and where they are
    List(list::Args),
    /// Whether a model fits this machine, line by line
    Fit(fit::Args),
    /// Fetch a model; ends once it is verified. Ctrl-C pauses, and the same command goes on
    Pull(pull::Args),
    /// Use the models of a folder in place; without one, show what other apps have
    Import {
        /// A folder, or a file in it
        path: Option<PathBuf>,
    },
    /// Move a model to the Trash
    Rm(remove::Args),
    /// Read models from end to end and compare them with what was fetched
    Verify {
        /// A model's id [default: all of them]
        model: Option<String>,
    },
    /// Find models on the hub
    Search {
        #[arg(required = true)]
        words: Vec<String>,
    },
}

pub(crate) async fn run(home: Option<PathBuf>, args: Args) -> Result<(), Error> {
    let client = Client::running_or_own(home).await?;
    let command = args.command.unwrap_or(Command::List(args.list));
    let outcome = match command {
        Command::List(args) => list::run(&client, &args).await,
        Command::Fit(args) => fit::run(&client, &args).await,
        Command::Pull(args) => pull::run(&client, &args).await,
        Command::Import { path: Some(path) } => list::import(&client, &path).await,
        Command::Import { path: None } => list::of_other_apps(&client).await,
        Command::Rm(args) => remove::run(&client, &args).await,
        Command::Verify { model } => verify::run(&client, model.as_deref()).await,
        Command::Search { words } => search::run(&client, &words.join(" ")).await,
    };
    client.close().await;
    outcome
}
