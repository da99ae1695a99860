//! `POST /api/pull`: a download, followed to its end. It goes on when the client leaves.

use super::{
    details::{Library, digest},
    failure, name,
    name::OllamaModelName,
    schema::{Errors, OllamaPullAnswer},
};
use axum::{
    Json,
    body::{Body, Bytes},
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use futures_util::stream;
use serde_json::{Value, json};
use std::{convert::Infallible, sync::Arc};
use tierbar_core::{
    Code, Error,
    download::{DownloadState, DownloadStatus, Include, Priority},
    status::Status,
};
use tierbar_http::error::Failure;
use tierbar_inference::{Inference, body, services::models::DownloadRequest};
use tokio::sync::watch;

/// Downloads a model.
#[utoipa::path(
    post,
    path = "/api/pull",
    tag = "ollama",
    operation_id = "ollamaPull",
    request_body = OllamaModelName,
    reach(Owner, Writes, Spends),
    responses(
        (
            status = 200,
            description = "The progress as lines of JSON, or the end alone",
            content((String = "application/x-ndjson"), (OllamaPullAnswer = "application/json")),
        ),
        Errors,
    ),
)]
pub(super) async fn pull(
    State(inference): State<Arc<Inference>>,
    body: Body,
) -> Result<Response, Failure> {
    let named: OllamaModelName = body::object(body).await?;
    let following = if is_here(&inference, named.model()?).await {
        DownloadProgress::Here
    } else {
        // From before it begins, so that nothing of it is missed.
        let changes = inference.services.watch();
        let pull = DownloadRequest {
            reference: named.model()?.to_owned(),
            priority: Priority::default(),
            anyway: false,
            include: Include::default(),
            tier: None,
            folder: None,
        };
        let (download, _) = inference.models.download(pull).await?;
        DownloadProgress::Begun(Download {
            inference,
            changes,
            id: download.id,
            rendered: None,
        })
    };
    if named.streams() {
        let lines = stream::unfold(following, |following| async {
            let (line, following) = following.next().await?;
            Some((
                Ok::<_, Infallible>(Bytes::from(format!("{line}\n"))),
                following,
            ))
        });
        let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
        return Ok((kind, Body::from_stream(lines)).into_response());
    }
    Ok(Json(following.end().await?).into_response())
}

/// As a tier's, as a model's in the library, or as one that was fetched by this name.
async fn is_here(inference: &Inference, wanted: &str) -> bool {
    let library = Library::read(inference).await;
    let tiers = inference.tiers.snapshot();
    let wanted = name::without_latest_tag(wanted, &tiers);
    let named = tiers.iter().find(|tier| tier.id.as_str() == wanted);
    library.has(wanted) || named.is_some_and(|tier| library.of_tier(tier).is_some())
}

/// Where the writer of a download is.
enum DownloadProgress {
    /// There is nothing to fetch.
    Here,
    Begun(Download),
    Going(Download),
    Over,
}

struct Download {
    inference: Arc<Inference>,
    changes: watch::Receiver<Arc<Status>>,
    id: String,
    /// What was reported last.
    rendered: Option<Value>,
}

/// What a download has come to.
enum Turn {
    Line(Value),
    Done,
}

impl DownloadProgress {
    /// The next line; `None` after the last.
    async fn next(self) -> Option<(Value, Self)> {
        let mut download = match self {
            Self::Here => return Some((success(), Self::Over)),
            Self::Begun(download) => {
                return Some((json!({"status": "pulling manifest"}), Self::Going(download)));
            }
            Self::Going(download) => download,
            Self::Over => return None,
        };
        Some(match download.turn().await {
            Ok(Turn::Line(line)) => (line, Self::Going(download)),
            Ok(Turn::Done) => (success(), Self::Over),
            Err(error) => (failure::error_body(&error), Self::Over),
        })
    }

    /// The last line alone.
    async fn end(self) -> Result<Value, Error> {
        if let Self::Begun(mut download) | Self::Going(mut download) = self {
            while let Turn::Line(_) = download.turn().await? {}
        }
        Ok(success())
    }
}

fn success() -> Value {
    json!({"status": "success"})
}

impl Download {
    /// Waits for something to report.
    ///
    /// # Errors
    /// Why it does not go on by itself.
    async fn turn(&mut self) -> Result<Turn, Error> {
        loop {
            self.changes.mark_unchanged();
            let status = self.inference.services.status();
            let mut downloads = status.downloads.iter();
            let Some(download) = downloads.find(|download| download.id == self.id) else {
                let removed = Error::new(Code::Cancelled, "the download was removed");
                return Err(removed.hint("pull the model again to fetch it"));
            };
            if let Some(turn) = download_turn(download)? {
                match turn {
                    Turn::Line(line) if self.rendered.as_ref() == Some(&line) => {}
                    Turn::Line(line) => {
                        self.rendered = Some(line.clone());
                        return Ok(Turn::Line(line));
                    }
                    Turn::Done => return Ok(Turn::Done),
                }
            }
            tokio::select! {
                () = self.inference.closing.cancelled() => return Err(shutdown_error()),
                changed = self.changes.changed() => changed.map_err(|_| shutdown_error())?,
            }
        }
    }
}

fn shutdown_error() -> Error {
    Error::new(Code::ShuttingDown, "Tierbar is shutting down")
        .hint("the download continues when Tierbar starts again")
}

/// `None` while there is nothing to report.
fn download_turn(download: &DownloadStatus) -> Result<Option<Turn>, Error> {
    let why = |otherwise: &str| {
        download
            .reason
            .clone()
            .unwrap_or_else(|| otherwise.to_owned())
    };
    let line = match download.state {
        DownloadState::Queued => return Ok(None),
        DownloadState::Downloading | DownloadState::Waiting => {
            let mut line = json!({
                "status": format!("pulling {}", download.file),
                "digest": format!("sha256:{}", digest(&download.reference, None)),
            });
            if let Some(total) = download.total_bytes {
                line["total"] = total.into();
                line["completed"] = download.received_bytes.into();
            }
            line
        }
        DownloadState::Verifying => json!({"status": "verifying sha256 digest"}),
        DownloadState::Done => return Ok(Some(Turn::Done)),
        DownloadState::Paused => {
            let error = Error::new(Code::Paused, "the download was paused");
            return Err(error.hint("pull the model again to resume it"));
        }
        DownloadState::Failed => {
            return Err(Error::new(
                Code::Unreachable,
                why("the download has failed"),
            ));
        }
    };
    Ok(Some(Turn::Line(line)))
}
