//! `tierbar sessions`: lists browsers that are signed in, and signs them out.

use crate::{
    Group,
    client::{Client, with_host},
    output::{self, format_time},
};
use jiff::tz::TimeZone;
use serde::Deserialize;
use serde_json::json;
use std::path::PathBuf;
use tierbar_core::Error;

const PATH: &str = "/tierbar/v1/sessions";

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// List browsers that are signed in, the last used first
    List,
    /// Sign out all browsers
    End,
}

#[derive(Debug, Deserialize)]
struct Session {
    created_ms: u64,
    used_ms: u64,
}

pub(crate) async fn run(home: Option<PathBuf>, args: Group<Command>) -> Result<(), Error> {
    match args.command {
        None | Some(Command::List) => {
            let listed = with_host(home, async |client| client.get(PATH).await).await?;
            let none = "No browser is signed in. To sign one in, run: tierbar link";
            output::write_list(args.json, listed, "sessions", none, |session| {
                render_session(session, &TimeZone::system())
            })
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

fn render_session(session: &Session, zone: &TimeZone) -> String {
    let time = |at_ms: u64| format_time(at_ms / 1000, zone);
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
