//! `tierbar agent`: lists what agents may do without asking again, and revokes it.

use crate::{
    client::{Client, admin, read},
    output,
};
use jiff::{Timestamp, tz::TimeZone};
use serde_json::{Value, json};
use std::path::PathBuf;
use tierbar_core::{Error, chat::agent::AgentGrant};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List what agents may do without asking again
    Grants,
    /// Have agents ask again before they do something
    Revoke {
        /// ID of what was allowed
        #[arg(required_unless_present = "all")]
        id: Option<String>,
        /// Revoke all that was allowed
        #[arg(long, conflicts_with = "id")]
        all: bool,
    },
}

pub(crate) async fn run(home: Option<PathBuf>, args: Args) -> Result<(), Error> {
    let client = Client::running_or_own(home).await?;
    let outcome = call(&client, args.command, args.json).await;
    client.close().await;
    outcome
}

async fn call(client: &Client, command: Command, as_json: bool) -> Result<(), Error> {
    let path = admin(&["agent", "grants"], &[]);
    match command {
        Command::Grants => list(client.get(&path).await?, as_json),
        Command::Revoke { id: Some(id), .. } => {
            let path = admin(&["agent", "grants", &id], &[]);
            client.delete(&path).await?;
            let sentence = "Revoked. Agents ask before they do this again.";
            output::done(as_json, &json!({"revoked": 1}), sentence);
            Ok(())
        }
        Command::Revoke { id: None, .. } => {
            let answer = client.delete(&path).await?;
            output::done(as_json, &answer, "Revoked. Agents ask again each time.");
            Ok(())
        }
    }
}

fn list(mut answer: Value, as_json: bool) -> Result<(), Error> {
    if as_json {
        output::json(&answer["grants"]);
        return Ok(());
    }
    let grants: Vec<AgentGrant> = read(answer["grants"].take())?;
    if grants.is_empty() {
        output::line("Agents ask each time: nothing is allowed beyond once.");
    }
    for grant in &grants {
        output::line(&text(grant, &TimeZone::system()));
    }
    Ok(())
}

/// A grant with its id on one line, and where and until when it holds below it.
fn text(grant: &AgentGrant, zone: &TimeZone) -> String {
    let mut text = format!("{}  {}", grant.id, grant.title);
    if let Some(what) = &grant.what {
        for line in what.lines() {
            text += &format!("\n    {line}");
        }
    }
    let place = grant.folder.as_ref().map(|folder| format!("in {folder}"));
    let chat = match &grant.chat {
        Some(chat) => format!("in chat {chat}"),
        None => "in every chat".to_owned(),
    };
    let end = match grant.until {
        Some(until) => {
            let at = i64::try_from(until).unwrap_or_default();
            let at = Timestamp::from_second(at).unwrap_or_default();
            format!("until {}", at.to_zoned(zone.clone()).strftime("%F %R"))
        }
        None => "until you revoke it".to_owned(),
    };
    let where_and_when: Vec<_> = place.into_iter().chain([chat, end]).collect();
    text + "\n  " + &where_and_when.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_says_where_and_until_when_it_holds() {
        let mut grant = AgentGrant {
            id: "a".into(),
            title: "Run this command".into(),
            what: Some("make test".into()),
            folder: Some("/work".into()),
            chat: None,
            since: 0,
            until: None,
        };
        let shown = |grant: &AgentGrant| text(grant, &TimeZone::UTC);
        assert_eq!(
            shown(&grant),
            "a  Run this command\n    make test\n  in /work, in every chat, until you revoke it"
        );
        (grant.what, grant.chat, grant.until) = (None, Some("c".into()), Some(60));
        assert_eq!(
            shown(&grant),
            "a  Run this command\n  in /work, in chat c, until 1970-01-01 00:01"
        );
    }
}
