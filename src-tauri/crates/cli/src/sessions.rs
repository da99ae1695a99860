//! `tierbar sessions`: lists browsers that are signed in, and signs them out.

use crate::{
    client::{Client, read},
    output,
};
use jiff::{Timestamp, tz::TimeZone};
use serde::Deserialize;
use serde_json::json;
use std::path::PathBuf;
use tierbar_core::Error;

const PATH: &str = "/tierbar/v1/sessions";

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
    /// List browsers that are signed in, the last used first
    List,
    /// Sign out all browsers
    End,
}

#[derive(Debug, Deserialize)]
struct SessionList {
    sessions: Vec<Session>,
}

#[derive(Debug, Deserialize)]
struct Session {
    created_ms: u64,
    used_ms: u64,
}

pub(crate) async fn run(home: Option<PathBuf>, args: Args) -> Result<(), Error> {
    match args.command {
        None | Some(Command::List) => {
            let client = Client::running_or_own(home).await?;
            let outcome = list(&client, args.json).await;
            client.close().await;
            outcome
        }
        Some(Command::End) => {
            let client = Client::running(home.as_ref())?;
            client.delete(PATH).await?;
            output::write_outcome(
                args.json,
                &json!({"signed_out": "all"}),
                "All browsers are signed out.",
            );
            Ok(())
        }
    }
}

async fn list(client: &Client, as_json: bool) -> Result<(), Error> {
    let listed = client.get(PATH).await?;
    if as_json {
        output::write_json(&listed);
        return Ok(());
    }
    let SessionList { sessions } = read(listed)?;
    if sessions.is_empty() {
        output::error_line("No browser is signed in. To sign one in, run: tierbar link");
    }
    for session in &sessions {
        output::write_line(&render_session(session, &TimeZone::system()));
    }
    Ok(())
}

fn render_session(session: &Session, zone: &TimeZone) -> String {
    let time = |at_ms: u64| {
        let at = i64::try_from(at_ms).unwrap_or_default();
        let at = Timestamp::from_millisecond(at).unwrap_or_default();
        at.to_zoned(zone.clone()).strftime("%F %R").to_string()
    };
    format!(
        "signed in {}, last used {}",
        time(session.created_ms),
        time(session.used_ms)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_has_its_times() {
        let session = Session {
            created_ms: 1_763_769_600_123,
            used_ms: 1_763_776_800_000,
        };
        assert_eq!(
            render_session(&session, &TimeZone::UTC),
            "signed in 2025-11-22 00:00, last used 2025-11-22 02:00"
        );
    }
}
