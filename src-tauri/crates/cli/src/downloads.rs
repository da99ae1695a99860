//! `tierbar downloads`: lists and manages downloads.

use crate::{
    client::{Client, admin_path, read},
    output,
};
use futures_util::{Stream, StreamExt};
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;
use sse_stream::{Sse, SseByteStream};
use std::{path::PathBuf, pin::Pin};
use tierbar_core::{
    Code, Error,
    download::{DownloadState, DownloadStatus},
    units::file_size,
};

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

pub(crate) async fn run(home: Option<PathBuf>, args: Args) -> Result<(), Error> {
    let client = match &args.command {
        // A host of our own would end with this command.
        Some(Command::Resume { .. }) => Client::running(home.as_ref())?,
        _ => Client::running_or_own(home).await?,
    };
    let as_json = args.json;
    let outcome = match args.command {
        None => list(&client, as_json).await,
        Some(Command::Pause { id }) => {
            set_state(&client, &id, DownloadState::Paused, as_json).await
        }
        Some(Command::Resume { id }) => {
            set_state(&client, &id, DownloadState::Queued, as_json).await
        }
        Some(Command::Cancel { id }) => cancel(&client, &id, as_json).await,
    };
    client.close().await;
    outcome
}

async fn set_state(
    client: &Client,
    id: &str,
    state: DownloadState,
    as_json: bool,
) -> Result<(), Error> {
    let path = admin_path(&["downloads", id], &[]);
    let changed = client.patch(&path, &json!({"state": state})).await?;
    if as_json {
        output::write_json(&changed);
    } else {
        output::write_line(&render_download(&read(changed)?));
    }
    Ok(())
}

async fn cancel(client: &Client, id: &str, as_json: bool) -> Result<(), Error> {
    client.delete(&admin_path(&["downloads", id], &[])).await?;
    output::write_outcome(as_json, &json!({"cancelled": id}), "Canceled the download.");
    Ok(())
}

#[derive(Debug, Deserialize)]
struct DownloadList {
    downloads: Vec<DownloadStatus>,
}

async fn list(client: &Client, as_json: bool) -> Result<(), Error> {
    let listed = client.get("/tierbar/v1/downloads").await?;
    if as_json {
        output::write_json(&listed);
        return Ok(());
    }
    let DownloadList { downloads } = read(listed)?;
    if downloads.is_empty() {
        output::error_line("There are no downloads. To start one: tierbar models pull gemma-4-e4b");
    }
    for download in &downloads {
        output::write_line(&render_download(download));
    }
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
    let mut parts = Vec::new();
    match download.total_bytes {
        Some(total) if total > 0 => {
            let percent = u128::from(download.received_bytes) * 100 / u128::from(total);
            parts.push(format!("{percent} % of {}", file_size(total)));
        }
        _ => parts.push(file_size(download.received_bytes)),
    }
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
pub(crate) struct Updates {
    events: Pin<Box<dyn Stream<Item = Result<Sse, sse_stream::Error>>>>,
}

impl Updates {
    pub(crate) async fn open(client: &Client) -> Result<Self, Error> {
        let response = client.send(Method::GET, "/tierbar/v1/events", None).await?;
        Ok(Self {
            events: Box::pin(SseByteStream::new(response.bytes_stream())),
        })
    }

    /// Returns all downloads once one has changed; the first call returns at once.
    pub(crate) async fn next(&mut self) -> Result<Vec<DownloadStatus>, Error> {
        #[derive(Deserialize)]
        struct DownloadList {
            downloads: Option<Vec<DownloadStatus>>,
        }
        while let Some(event) = self.events.next().await {
            let event = event.map_err(|error| disconnected(&error.to_string()))?;
            let Some(data) = event.data else { continue };
            let changed: DownloadList =
                serde_json::from_str(&data).map_err(|error| disconnected(&error.to_string()))?;
            if let Some(downloads) = changed.downloads {
                return Ok(downloads);
            }
        }
        Err(disconnected("the event stream ended"))
    }
}

fn disconnected(why: &str) -> Error {
    Error::new(
        Code::ShuttingDown,
        format!("lost the connection to Tierbar: {why}"),
    )
    .hint(RESUME_HINT)
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
