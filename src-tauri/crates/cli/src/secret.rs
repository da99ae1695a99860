//! `tierbar secret`: tokens for other services. A value comes from stdin or the terminal, never from the command line,
//! which every program on the machine can read.

use crate::{
    Group,
    client::{admin_path, with_host},
    output,
};
use serde::Deserialize;
use serde_json::json;
use std::{
    io::{IsTerminal, Read, stdin},
    path::PathBuf,
};
use tierbar_core::{Error, bad_request};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
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
struct SecretEntry {
    name: String,
    source: Option<String>,
}

pub(crate) async fn run(home: Option<PathBuf>, args: Group<Command>) -> Result<(), Error> {
    let value = match &args.command {
        Some(Command::Set { name }) => read_value(name)?,
        _ => String::new(),
    };
    with_host(home, async |client| match args.command {
        Some(Command::Set { name }) => {
            let path = admin_path(&["secrets", &name], &[]);
            client.put(&path, &json!({"value": value})).await?;
            let sentence = format!("Saved the token for {name}.");
            output::write_outcome(args.json, &json!({"saved": name}), &sentence);
            Ok(())
        }
        Some(Command::Rm { name }) => {
            client.delete(&admin_path(&["secrets", &name], &[])).await?;
            let sentence = format!("Deleted the token for {name}.");
            output::write_outcome(args.json, &json!({"deleted": name}), &sentence);
            Ok(())
        }
        None | Some(Command::List) => {
            let listed = client.get("/tierbar/v1/secrets").await?;
            let none = "There are no tokens.";
            output::write_list(args.json, listed, "secrets", none, describe)
        }
    })
    .await
}

fn describe(secret: &SecretEntry) -> String {
    let place = match secret.source.as_deref() {
        None => "not set",
        Some("keychain") => "in the Keychain",
        Some("file") => "in a file in the data folder",
        Some("environment") => "in the environment",
        Some("hugging_face") => "in Hugging Face's token file",
        Some(other) => other,
    };
    format!("{:<16} {place}", secret.name)
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
    match read {
        Ok(value) => Ok(value.trim().to_owned()),
        Err(error) => Err(bad_request(format!("the token cannot be read: {error}"))),
    }
}
