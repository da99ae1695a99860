//! `tierbar secret`: tokens for other services. A value comes from stdin or the terminal, never from the command line,
//! which every program on the machine can read.

use crate::{
    client::{Client, admin, read},
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

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Save a token from stdin or a prompt
    Set {
        /// Service, such as hugging-face
        name: String,
    },
    /// Delete a token
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

pub(crate) async fn run(home: Option<PathBuf>, command: Command) -> Result<(), Error> {
    let value = match &command {
        Command::Set { name } => Some(read_value(name)?),
        Command::Rm { .. } | Command::List => None,
    };
    let client = Client::running_or_own(home).await?;
    let outcome = match command {
        Command::Set { name } => client
            .send(
                Method::PUT,
                &admin(&["secrets", &name], &[]),
                Some(&json!({"value": value})),
            )
            .await
            .map(drop),
        Command::Rm { name } => client
            .delete(&admin(&["secrets", &name], &[]))
            .await
            .map(drop),
        Command::List => list(&client).await,
    };
    client.close().await;
    outcome
}

async fn list(client: &Client) -> Result<(), Error> {
    let SecretList { secrets } = read(client.get("/tierbar/v1/secrets").await?)?;
    for SecretEntry { name, source } in secrets {
        let place = match source.as_deref() {
            None => "not set",
            Some("keychain") => "in the Keychain",
            Some("file") => "in a file in the data folder",
            Some("environment") => "in the environment",
            Some("hugging_face") => "in Hugging Face's token file",
            Some(other) => other,
        };
        output::line(&format!("{name:<16} {place}"));
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
