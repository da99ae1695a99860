//! `tierbar chat`: a conversation in the terminal, which the chat window shows too, or one question.

mod agent;
mod commands;
mod conversation;
mod facts;
mod files;
mod once;
mod printer;

use crate::{
    chats,
    client::{Client, with_host},
    output,
};
use agent::AgentArgs;
use std::{fmt::Display, path::PathBuf};
use tierbar_chats::ChatSummary;
use tierbar_core::{Code, Error};

#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("printed").args(["once", "list"])))]
pub(crate) struct Args {
    /// Tier that answers [default: auto, the smallest that can]
    #[arg(long, value_name = "NAME")]
    tier: Option<String>,
    /// Ask one question without saving it, print the answer and exit; "-" reads the question from stdin
    #[arg(long, value_name = "PROMPT", conflicts_with_all = ["resume", "list"])]
    once: Option<String>,
    /// Continue the chat with this ID, and join its running answer
    #[arg(long, value_name = "ID", conflicts_with = "list")]
    resume: Option<String>,
    /// What to do when the chat no longer fits the context: refuse to answer, or drop or summarize the oldest messages [default: the
    /// chat's last choice, or refuse]
    #[arg(long, value_name = "CHOICE", value_parser = ["refuse", "drop", "summarize"], conflicts_with_all = ["once", "list"])]
    when_full: Option<String>,
    /// Text, document, image or sound file to send with the first question; may be repeated
    #[arg(long, value_name = "PATH", conflicts_with = "list")]
    file: Vec<PathBuf>,
    /// List saved chats with their IDs
    #[arg(long)]
    list: bool,
    /// Print the answer of --once, or the chats of --list, as JSON
    #[arg(long, requires = "printed")]
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
    with_host(home, async |client| {
        if args.list {
            list(client, args.json).await
        } else if let Some(prompt) = prompt {
            once::ask(client, args.tier, &prompt, &args.file, args.json).await
        } else {
            conversation::hold(client, args, agent).await
        }
    })
    .await
}

async fn list(client: &Client, as_json: bool) -> Result<(), Error> {
    let mut listed = client.get("/tierbar/v1/chats").await?;
    output::write_answer(
        as_json,
        listed["chats"].take(),
        |all: Vec<ChatSummary>| match &*all {
            [] => chats::NONE.to_owned(),
            all => all.iter().map(|chat| chats::heading(chat) + "\n").collect(),
        },
    )
}

fn broken_off(why: impl Display) -> Error {
    let message = format!("the answer was interrupted: {why}");
    Error::new(Code::WorkerCrashed, message)
}
