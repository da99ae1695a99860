//! `tierbar chat`: a conversation in the terminal, which the chat window shows too, or one question.

mod agent;
mod commands;
mod conversation;
mod facts;
mod files;
mod once;
mod printer;

use crate::client::with_host;
use agent::AgentArgs;
use std::{fmt::Display, path::PathBuf};
use tierbar_core::{Code, Error};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Tier that answers [default: auto, the smallest that can]
    #[arg(long, value_name = "NAME")]
    tier: Option<String>,
    /// Ask one question without saving it, print the answer and exit; "-" reads the question from stdin
    #[arg(long, value_name = "PROMPT", conflicts_with = "resume")]
    once: Option<String>,
    /// Continue the chat with this ID, and join its running answer
    #[arg(long, value_name = "ID")]
    resume: Option<String>,
    /// What to do when the chat no longer fits the context: refuse to answer, or drop or summarize the oldest messages [default: the
    /// chat's last choice, or refuse]
    #[arg(long, value_name = "CHOICE", value_parser = ["refuse", "drop", "summarize"], conflicts_with = "once")]
    when_full: Option<String>,
    /// Text, document, image or sound file to send with the first question; may be repeated
    #[arg(long, value_name = "PATH")]
    file: Vec<PathBuf>,
    /// Print the answer of --once as JSON
    #[arg(long, requires = "once")]
    json: bool,
    #[command(flatten)]
    agent: AgentArgs,
}

pub(crate) async fn run(home: Option<PathBuf>, mut args: Args) -> Result<(), Error> {
    let agent = args.agent.options()?;
    let prompt = match args.once.take() {
        Some(once) => Some(once::question(once).await?),
        None => None,
    };
    with_host(home, async |client| match prompt {
        Some(prompt) => once::ask(client, args.tier, &prompt, &args.file, args.json).await,
        None => conversation::hold(client, args, agent).await,
    })
    .await
}

fn broken_off(why: impl Display) -> Error {
    let message = format!("the answer was interrupted: {why}");
    Error::new(Code::WorkerCrashed, message)
}
