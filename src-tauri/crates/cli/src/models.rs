//! `tierbar models`: the models that are here, and those that can be had.

mod fit;
mod list;
mod pull;
mod remove;
mod search;
mod verify;

use crate::client::Client;
use std::path::{Path, PathBuf};
use tierbar_core::{Code, Error};

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

/// A model as the host is asked for it: of a path the whole, since the host runs in another folder.
fn asked(model: &str) -> String {
    let is_path = model.starts_with("./") || model.starts_with("../");
    if !is_path && !Path::new(model).is_file() {
        return model.to_owned();
    }
    let whole = std::path::absolute(model).ok();
    let whole = whole.and_then(|path| path.to_str().map(str::to_owned));
    whole.unwrap_or_else(|| model.to_owned())
}

impl Command {
    /// Whether it may be said twice: nothing has been told or changed before its answer is here.
    fn only_asks(&self) -> bool {
        matches!(self, Self::List(_) | Self::Fit(_) | Self::Search { .. })
    }

    async fn run(&self, client: &mut Client, home: Option<&PathBuf>) -> Result<(), Error> {
        match self {
            Self::List(args) => list::run(client, args).await,
            Self::Fit(args) => fit::run(client, args).await,
            Self::Pull(args) => pull::run(client, home, args).await,
            Self::Import { path: Some(path) } => list::import(client, path).await,
            Self::Import { path: None } => list::of_other_apps(client).await,
            Self::Rm(args) => remove::run(client, args).await,
            Self::Verify { model } => verify::run(client, model.as_deref()).await,
            Self::Search { words } => search::run(client, &words.join(" ")).await,
        }
    }
}

pub(crate) async fn run(home: Option<PathBuf>, args: Args) -> Result<(), Error> {
    let mut client = Client::running_or_own(home.clone()).await?;
    let command = args.command.unwrap_or(Command::List(args.list));
    let outcome = loop {
        let outcome = command.run(&mut client, home.as_ref()).await;
        // The host was another command's, and has ended with that.
        let over = matches!(&outcome, Err(error) if error.code == Code::ShuttingDown);
        if !(over && command.only_asks() && !client.is_own()) {
            break outcome;
        }
        client = client.next(home.clone()).await?;
    };
    client.close().await;
    outcome
}

#[cfg(test)]
mod tests {
    use super::asked;

    #[test]
    fn a_path_is_made_whole_and_a_name_stays() {
        let here = std::env::current_dir().unwrap();
        let whole = |name: &str| here.join(name).to_str().unwrap().to_owned();
        // Tests run in the crate's folder.
        assert_eq!(asked("Cargo.toml"), whole("Cargo.toml"));
        assert_eq!(asked("./gone.gguf"), whole("gone.gguf"));
        for name in [
            "gone.gguf",
            "owner/repo:Q4_0",
            "gemma-4-e4b",
            "src",
            "~/m.gguf",
            "/m.gguf",
        ] {
            assert_eq!(asked(name), name);
        }
    }
}
