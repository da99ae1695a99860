//! `POST /api/pull`: a download, followed to its end. It goes on when the client leaves.

use super::{
    details::{Library, digest},
    failure,
    name::OllamaModelName,
    schema::OllamaPulled,
};
use axum::{
    Extension, Json,
    body::{Body, Bytes},
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use std::{convert::Infallible, sync::Arc};
use tierbar_core::{
    Code, Error,
    download::{DownloadState, DownloadStatus},
    status::Status,
};
use tierbar_http::{
    error::Failure,
    reach::{SEND_TOKEN, Sender},
};
use tierbar_inference::{Inference, body, route, services::models::DownloadRequest};
use tokio::sync::watch;

/// Downloads a model.
#[utoipa::path(
    post,
    path = "/api/pull",
    operation_id = "ollamaPull",
    request_body = OllamaModelName,
    reach(Inference, Writes, Spends),
    responses(
        (
            status = 200,
            description = "The progress as lines of JSON, or the end alone",
            content((String = "application/x-ndjson"), (OllamaPulled = "application/json")),
        ),
    ),
)]
pub(super) async fn pull(
    State(inference): State<Arc<Inference>>,
    Extension(sender): Extension<Sender>,
    body: Body,
) -> Result<Response, Failure> {
    let named: OllamaModelName = body::object(body).await?;
    let download = match is_here(&inference, named.model()?).await {
        true => None,
        false if sender == Sender::Owner => Some(Download::begin(inference, named.model()?).await?),
        false => {
            let message = "the token is required to download a model";
            return Err(Failure(
                Error::new(Code::Unauthorized, message).hint(SEND_TOKEN),
            ));
        }
    };
    if !named.streams() {
        if let Some(mut download) = download {
            while download.line().await?.is_some() {}
        }
        return Ok(Json(success()).into_response());
    }
    let begun = download
        .as_ref()
        .map(|_| json!({"status": "pulling manifest"}));
    let lines = stream::iter(begun).chain(stream::unfold(Some(download), |following| async {
        let mut following = following?;
        let line = match &mut following {
            Some(download) => download.line().await,
            None => Ok(None),
        };
        Some(match line {
            Ok(Some(line)) => (line, Some(following)),
            Ok(None) => (success(), None),
            Err(error) => (failure::error_body(&error), None),
        })
    }));
    let lines = lines.map(|line| Ok::<_, Infallible>(Bytes::from(format!("{line}\n"))));
    let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
    Ok((kind, Body::from_stream(lines)).into_response())
}

/// As a tier's, as a model's in the library, or as one that was fetched by this name.
async fn is_here(inference: &Inference, wanted: &str) -> bool {
    let library = Library::read(inference).await;
    let tiers = inference.tiers.snapshot();
    let wanted = route::without_latest_tag(wanted, &tiers);
    let named = tiers.iter().find(|tier| tier.id.as_str() == wanted);
    library.has(wanted) || named.is_some_and(|tier| library.of_tier(tier).is_some())
}

struct Download {
    inference: Arc<Inference>,
    changes: watch::Receiver<Arc<Status>>,
    id: String,
    /// What was reported last.
    rendered: Option<Value>,
}

fn success() -> Value {
    json!({"status": "success"})
}

impl Download {
    async fn begin(inference: Arc<Inference>, reference: &str) -> Result<Self, Error> {
        // From before it begins, so that nothing of it is missed.
        let changes = inference.services.watch();
        let pull = DownloadRequest {
            reference: reference.to_owned(),
            ..DownloadRequest::default()
        };
        let (download, _) = inference.models.download(pull).await?;
        Ok(Self {
            inference,
            changes,
            id: download.id,
            rendered: None,
        })
    }

    /// Waits for something to report; `None` once the download is done. Fails if it does not go on by itself.
    async fn line(&mut self) -> Result<Option<Value>, Error> {
        loop {
            self.changes.mark_unchanged();
            let status = self.inference.services.status();
            let mut downloads = status.downloads.iter();
            let Some(download) = downloads.find(|download| download.id == self.id) else {
                let removed = Error::new(Code::Cancelled, "the download was removed");
                return Err(removed.hint("pull the model again to fetch it"));
            };
            if download.state == DownloadState::Done {
                return Ok(None);
            }
            let line = progress(download)?;
            if line.is_some() && line != self.rendered {
                self.rendered.clone_from(&line);
                return Ok(line);
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
fn progress(download: &DownloadStatus) -> Result<Option<Value>, Error> {
    Ok(match download.state {
        DownloadState::Queued | DownloadState::Done => None,
        DownloadState::Downloading | DownloadState::Waiting => {
            let mut line = json!({
                "status": format!("pulling {}", download.file),
                "digest": format!("sha256:{}", digest(&download.reference, None)),
            });
            if let Some(total) = download.total_bytes {
                line["total"] = total.into();
                line["completed"] = download.received_bytes.into();
            }
            Some(line)
        }
        DownloadState::Verifying => Some(json!({"status": "verifying sha256 digest"})),
        DownloadState::Paused => {
            let error = Error::new(Code::Paused, "the download was paused");
            return Err(error.hint("pull the model again to resume it"));
        }
        DownloadState::Failed => {
            let reason = download.reason.as_deref();
            let message = reason.unwrap_or("the download has failed");
            return Err(Error::new(Code::Unreachable, message));
        }
    })
}
