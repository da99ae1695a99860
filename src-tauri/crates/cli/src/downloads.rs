//! `tierbar downloads`: lists and manages downloads.

use crate::{
    Group,
    client::{Client, Events, admin_path, read_answer, read_field, with_client},
    output,
};
use reqwest::Method;
use serde_json::{Value, json};
use std::{fmt::Display, path::PathBuf};
use tierbar_core::{
    Code, Error,
    download::{DownloadState, DownloadStatus},
    units::file_size,
};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Pause a download and keep the partial file
    Pause {
        /// Download ID, as listed by `tierbar downloads`
        id: String,
    },
    /// Resume a paused or failed download
    Resume {
        /// Download ID, as listed by `tierbar downloads`
        id: String,
    },
    /// Cancel a download and delete the partial file
    Cancel {
        /// Download ID, as listed by `tierbar downloads`
        id: String,
    },
}

pub(crate) async fn run(home: Option<PathBuf>, args: Group<Command>) -> Result<(), Error> {
    let client = match &args.command {
        // A host of our own would end with this command.
        Some(Command::Resume { .. }) => Client::running(home.as_ref())?,
        _ => Client::running_or_own(home).await?,
    };
    with_client(client, async |client| match args.command {
        None => list(client, args.json).await,
        Some(Command::Pause { id }) => {
            set_state(client, &id, DownloadState::Paused, args.json).await
        }
        Some(Command::Resume { id }) => {
            set_state(client, &id, DownloadState::Queued, args.json).await
        }
        Some(Command::Cancel { id }) => cancel(client, &id, args.json).await,
    })
    .await
}

async fn set_state(
    client: &Client,
    id: &str,
    state: DownloadState,
    as_json: bool,
) -> Result<(), Error> {
    let path = admin_path(&["downloads", id], &[]);
    let changed = client.patch(&path, &json!({"state": state})).await?;
    output::write_answer(as_json, changed, |download| {
        render_download(&download) + "\n"
    })
}

async fn cancel(client: &Client, id: &str, as_json: bool) -> Result<(), Error> {
    client.delete(&admin_path(&["downloads", id], &[])).await?;
    output::write_outcome(as_json, &json!({"cancelled": id}), "Canceled the download.");
    Ok(())
}

async fn list(client: &Client, as_json: bool) -> Result<(), Error> {
    let listed = client.get("/tierbar/v1/downloads").await?;
    if as_json {
        output::write_json(&listed);
        return Ok(());
    }
    let downloads: Vec<DownloadStatus> = read_field(listed, "downloads")?;
    let none = "There are no downloads. To start one: tierbar models pull gemma-4-e4b";
    output::write(&output::lines(&downloads, none, render_download));
    if client.is_own() && downloads.iter().any(|it| it.state.is_under_way()) {
        output::error_line(
            "Downloads continue while Tierbar is running. Open the app or run `tierbar serve`.",
        );
    }
    Ok(())
}

fn render_download(download: &DownloadStatus) -> String {
    format!("{}  {}  {}", download.id, download.file, progress(download))
}

/// Returns the state and figures, such as `43 % of 5 GB · 62.9 MB/s · 1 min 2 s left`.
pub(crate) fn progress(download: &DownloadStatus) -> String {
    let mut parts = vec![match (download.percent(), download.total_bytes) {
        (Some(percent), Some(total)) => format!("{percent} % of {}", file_size(total)),
        _ => file_size(download.received_bytes),
    }];
    let state = match download.state {
        DownloadState::Downloading => None,
        DownloadState::Queued => Some("queued"),
        DownloadState::Waiting => Some("waiting"),
        DownloadState::Verifying => Some("verifying"),
        DownloadState::Paused => Some("paused"),
        DownloadState::Failed => Some("failed"),
        DownloadState::Done => Some("done"),
    };
    parts.extend(state.map(str::to_owned));
    if download.bytes_per_second > 0 && download.state == DownloadState::Downloading {
        let rate = download.bytes_per_second / 100_000;
        parts.push(format!("{}.{} MB/s", rate / 10, rate % 10));
        parts.extend(download.eta_seconds.map(time_left));
    }
    parts.extend(download.reason.clone());
    parts.join(" · ")
}

fn time_left(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s left"),
        60..3600 => format!("{} min {} s left", seconds / 60, seconds % 60),
        _ => format!("{} h {} min left", seconds / 3600, seconds / 60 % 60),
    }
}

/// What to do about a download that stopped before its end.
pub(crate) const RESUME_HINT: &str = "the partial file is kept; run the same command to resume";

/// A stream of the downloads as they change.
pub(crate) struct Updates(Events);

impl Updates {
    pub(crate) async fn open(client: &Client) -> Result<Self, Error> {
        let events = client.events(Method::GET, "/tierbar/v1/events", None);
        Ok(Self(events.await?))
    }

    /// Returns all downloads once one has changed; the first call returns at once.
    pub(crate) async fn next(&mut self) -> Result<Vec<DownloadStatus>, Error> {
        while let Some(mut event) = self.0.next().await.map_err(disconnected)? {
            if let Value::Array(downloads) = event.data["downloads"].take() {
                return read_answer(downloads.into());
            }
        }
        Err(disconnected("the event stream ended"))
    }
}

fn disconnected(why: impl Display) -> Error {
    let message = format!("lost the connection to Tierbar: {why}");
    Error::new(Code::ShuttingDown, message).hint(RESUME_HINT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_shows_state_rate_and_time_left() {
        let mut download: DownloadStatus = serde_json::from_value(json!({
            "id": "1", "reference": "a/b", "file": "b.gguf", "state": "downloading", "priority": "normal",
            "received_bytes": 536_870_912, "total_bytes": 1_073_741_824, "bytes_per_second": 62_914_560,
            "eta_seconds": 62, "reason": null, "warnings": []
        }))
        .unwrap();
        assert_eq!(
            progress(&download),
            "50 % of 1.1 GB · 62.9 MB/s · 1 min 2 s left"
        );
        download.state = DownloadState::Waiting;
        download.reason = Some("no network".to_owned());
        assert_eq!(progress(&download), "50 % of 1.1 GB · waiting · no network");
        download.total_bytes = None;
        assert_eq!(progress(&download), "537 MB · waiting · no network");
    }
}
