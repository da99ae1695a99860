//! `tierbar models`: lists, downloads, checks and deletes models.

mod choose_tier;
mod fit;
mod list;
pub(crate) mod pull;
mod refresh;
mod remove;
mod search;
mod show;
pub(crate) mod use_in;
mod verify;

use crate::client::Client;
use std::path::{Path, PathBuf};
use tierbar_core::{Code, Error, fit::LibraryModel, judgment::Mark};

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
    /// List models and where they are stored
    List(list::Args),
    /// Check whether a model fits in memory
    Fit(fit::Args),
    /// Download and verify a model; Ctrl-C pauses, the same command resumes
    Pull(pull::Args),
    /// Use the models of a folder in place, or list those of other apps
    Import {
        /// Folder, or a file in it [default: list the models of other apps]
        path: Option<PathBuf>,
        /// Print the models as JSON
        #[arg(long)]
        json: bool,
    },
    /// Move a model to the Trash
    Rm(remove::Args),
    /// Compare models with their recorded checksums
    Verify {
        /// Model ID [default: all models]
        model: Option<String>,
        /// Print a line of JSON for each model
        #[arg(long)]
        json: bool,
    },
    /// Show the recommended models, or one in detail, and what it is trusted with
    Show(show::Args),
    /// Update the files of the recommended models from Hugging Face
    Refresh(refresh::Args),
    /// Search Hugging Face for models
    Search {
        /// Words to search for
        #[arg(required = true)]
        words: Vec<String>,
        /// Print the models as JSON
        #[arg(long)]
        json: bool,
    },
}

pub(crate) async fn installed(client: &Client) -> Result<Vec<LibraryModel>, Error> {
    Ok(list::fetch_models(client).await?.models)
}

/// Returns a line for each judgment of a model, with its state.
pub(crate) fn render_marks(marks: &[Mark]) -> String {
    let line = |mark: &Mark| format!("  {:<16} {}\n", mark.title(), mark.sentence());
    marks.iter().map(line).collect()
}

/// Returns a model as the host has to be given it: a path becomes absolute, since the host runs in another folder.
fn absolute_if_path(model: &str) -> String {
    let is_path = model.starts_with("./") || model.starts_with("../");
    if !is_path && !Path::new(model).is_file() {
        return model.to_owned();
    }
    let path = std::path::absolute(model).ok();
    let path = path.and_then(|path| path.to_str().map(str::to_owned));
    path.unwrap_or_else(|| model.to_owned())
}

impl Command {
    /// Returns whether the command can be repeated: it prints and changes nothing before its answer has come.
    fn is_repeatable(&self) -> bool {
        matches!(
            self,
            Self::List(_) | Self::Fit(_) | Self::Show(_) | Self::Search { .. }
        )
    }

    async fn run(&self, client: &mut Client, home: Option<&PathBuf>) -> Result<(), Error> {
        match self {
            Self::List(args) => list::run(client, args).await,
            Self::Fit(args) => fit::run(client, args).await,
            Self::Pull(args) => pull::run(client, home, args).await,
            Self::Import { path, json } => match path {
                Some(path) => list::import(client, path, *json).await,
                None => list::of_other_apps(client, *json).await,
            },
            Self::Rm(args) => remove::run(client, args).await,
            Self::Verify { model, json } => verify::run(client, model.as_deref(), *json).await,
            Self::Show(args) => show::run(client, args).await,
            Self::Refresh(args) => refresh::run(client, args).await,
            Self::Search { words, json } => search::run(client, &words.join(" "), *json).await,
        }
    }
}

pub(crate) async fn run(home: Option<PathBuf>, args: Args) -> Result<(), Error> {
    let mut client = Client::running_or_own(home.clone()).await?;
    let command = args.command.unwrap_or(Command::List(args.list));
    let outcome = loop {
        let outcome = command.run(&mut client, home.as_ref()).await;
        // The host belonged to another command and ended with it.
        let host_ended = matches!(&outcome, Err(error) if error.code == Code::ShuttingDown);
        if !(host_ended && command.is_repeatable() && !client.is_own()) {
            break outcome;
        }
        client = client.next(home.clone()).await?;
    };
    client.close().await;
    outcome
}

#[cfg(test)]
mod tests {
    use super::absolute_if_path;

    #[test]
    fn a_path_becomes_absolute_and_a_name_stays() {
        let here = std::env::current_dir().unwrap();
        let whole = |name: &str| here.join(name).to_str().unwrap().to_owned();
        // Tests run in the crate's folder.
        assert_eq!(absolute_if_path("Cargo.toml"), whole("Cargo.toml"));
        assert_eq!(absolute_if_path("./gone.gguf"), whole("gone.gguf"));
        for name in [
            "gone.gguf",
            "owner/repo:Q4_0",
            "gemma-4-e4b",
            "src",
            "~/m.gguf",
            "/m.gguf",
        ] {
            assert_eq!(absolute_if_path(name), name);
        }
    }
}
