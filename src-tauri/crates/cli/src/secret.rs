//! `tierbar secret`: tokens for other services. A value comes from stdin or the terminal, never from the command line,
//! which every program on the machine can read.

use crate::{
    client::{Client, admin_path, read},
    output,
};
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;
use std::{
    io::{IsTerminal, Read, stdin},
    path::PathBuf,
};
use tierbar_core::{Code, Error};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Save a token from stdin or a prompt
    Set {
        /// Service, such as hugging-face or brave-search
        name: String,
    },
    /// Delete a token
    #[command(visible_alias = "delete")]
    Rm {
        /// Service, such as hugging-face
        name: String,
    },
    /// List tokens and where they are stored; values are never shown
    List,
}

#[derive(Debug, Deserialize)]
struct SecretList {
    secrets: Vec<SecretEntry>,
}

#[derive(Debug, Deserialize)]
struct SecretEntry {
    name: String,
    source: Option<String>,
}

pub(crate) async fn run(home: Option<PathBuf>, args: Args) -> Result<(), Error> {
    let as_json = args.json;
    let command = args.command.unwrap_or(Command::List);
    let value = match &command {
        Command::Set { name } => Some(read_value(name)?),
        Command::Rm { .. } | Command::List => None,
    };
    let client = Client::running_or_own(home).await?;
    let outcome = match command {
        Command::Set { name } => {
            let path = admin_path(&["secrets", &name], &[]);
            let body = json!({"value": value});
            let stored = client.send(Method::PUT, &path, Some(&body)).await;
            stored.map(|_| {
                let sentence = format!("Saved the token for {name}.");
                output::write_outcome(as_json, &json!({"saved": name}), &sentence);
            })
        }
        Command::Rm { name } => {
            let deleted = client.delete(&admin_path(&["secrets", &name], &[])).await;
            deleted.map(|_| {
                let sentence = format!("Deleted the token for {name}.");
                output::write_outcome(as_json, &json!({"deleted": name}), &sentence);
            })
        }
        Command::List => list(&client, as_json).await,
    };
    client.close().await;
    outcome
}

async fn list(client: &Client, as_json: bool) -> Result<(), Error> {
    let listed = client.get("/tierbar/v1/secrets").await?;
    if as_json {
        output::write_json(&listed);
        return Ok(());
    }
    let SecretList { secrets } = read(listed)?;
    for SecretEntry { name, source } in secrets {
        let place = match source.as_deref() {
            None => "not set",
            Some("keychain") => "in the Keychain",
            Some("file") => "in a file in the data folder",
            Some("environment") => "in the environment",
            Some("hugging_face") => "in Hugging Face's token file",
            Some(other) => other,
        };
        output::write_line(&format!("{name:<16} {place}"));
    }
    Ok(())
}

fn read_value(name: &str) -> Result<String, Error> {
    let read = if stdin().is_terminal() {
        rpassword::prompt_password(format!("Token for {name}: "))
    } else {
        let mut value = String::new();
        // Far longer than any token.
        stdin()
            .take(64 << 10)
            .read_to_string(&mut value)
            .map(|_| value)
    };
    let value = read.map_err(|error| {
        Error::new(
            Code::BadRequest,
            format!("the token cannot be read: {error}"),
        )
    })?;
    Ok(value.trim().to_owned())
}
