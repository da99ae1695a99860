//! Documents: what is searched, passages that match, and answers from them.

use crate::admin::AdminState;
use axum::{
    Json,
    body::Body,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response, sse::Event},
};
use futures_util::{StreamExt, stream};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tierbar_core::{
    Code, Error, Modality,
    documents::{
        DocumentAnswer, DocumentFile, DocumentSource, Documents, FileText, FoundPassages, Passage,
    },
    status::EngineKind,
};
use tierbar_documents::extraction::to_file;
use tierbar_fetch::blocking;
use tierbar_http::{
    Answer,
    error::Failure,
    path::Id,
    request::{JsonBody, QueryFields},
    sse::{self, json_event},
};
use tierbar_inference::body;
pub(super) use tierbar_jobs::documents::{DocumentEvent, DocumentQuestion, DocumentSearch};
use tierbar_store::MOST_ID;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;
use utoipa::{IntoParams, ToSchema};

/// Lists the files and folders that are searched, and what the indexer does.
#[utoipa::path(
    get,
    path = "/tierbar/v1/documents",
    operation_id = "documents",
    reach(Owner, Reads),
    responses((status = 200, description = "The documents", body = Documents)),
)]
pub(crate) async fn status(State(admin): AdminState) -> Answer<Documents> {
    Ok(Json(admin.documents.status().await?))
}

/// A file or folder to search.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct NewDocuments {
    /// A full path, such as `/Users/me/Papers` or `~/Papers`.
    path: String,
    /// The collection that it belongs to; `Documents` without it.
    collection: Option<String>,
}

/// Adds a file or folder, and begins to read it.
#[utoipa::path(
    post,
    path = "/tierbar/v1/documents",
    operation_id = "addDocuments",
    reach(Owner, Writes, Opens),
    request_body = NewDocuments,
    responses((status = 201, description = "The file or folder", body = DocumentSource)),
)]
pub(crate) async fn add(
    State(admin): AdminState,
    JsonBody(NewDocuments { path, collection }): JsonBody<NewDocuments>,
) -> Result<(StatusCode, Json<DocumentSource>), Failure> {
    let added = admin.documents.add(path, collection).await?;
    Ok((StatusCode::CREATED, Json(added)))
}

/// What the indexer shall do.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct IndexingChange {
    /// Whether it stops once the file that it reads is done.
    paused: bool,
}

/// Pauses or resumes indexing, until Tierbar quits.
#[utoipa::path(
    patch,
    path = "/tierbar/v1/documents",
    operation_id = "changeIndexing",
    reach(Owner, Writes),
    request_body = IndexingChange,
    responses((status = 200, description = "The documents", body = Documents)),
)]
pub(crate) async fn change(
    State(admin): AdminState,
    JsonBody(IndexingChange { paused }): JsonBody<IndexingChange>,
) -> Answer<Documents> {
    admin.documents.set_paused(paused);
    Ok(Json(admin.documents.status().await?))
}

/// Forgets a file or folder and its passages. It stays where it is.
#[utoipa::path(
    delete,
    path = "/tierbar/v1/documents/{source}",
    operation_id = "removeDocuments",
    reach(Owner, Writes),
    params(("source" = u64, Path, description = "The id of a file or folder that was added")),
    responses((status = 204, description = "It is forgotten")),
)]
pub(crate) async fn remove(
    State(admin): AdminState,
    Id(source): Id,
) -> Result<StatusCode, Failure> {
    admin.documents.remove(number(&source)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// How a file or folder is to be read.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct DocumentSourceChange {
    /// Whether a model of this machine writes down the text of pages that are pictures, at most 40 of a document. It is loaded for that.
    read_pictures: bool,
}

/// Has pages that are pictures read by a model, or no longer. Files with a notice are read again for it.
#[utoipa::path(
    patch,
    path = "/tierbar/v1/documents/{source}",
    operation_id = "changeDocuments",
    reach(Owner, Writes, Spends),
    params(("source" = u64, Path, description = "The id of a file or folder that was added")),
    request_body = DocumentSourceChange,
    responses((status = 200, description = "The documents", body = Documents)),
)]
pub(crate) async fn change_source(
    State(admin): AdminState,
    Id(source): Id,
    JsonBody(DocumentSourceChange { read_pictures }): JsonBody<DocumentSourceChange>,
) -> Answer<Documents> {
    let tiers = admin.inference.tiers.snapshot();
    let sees = tiers.iter().any(|tier| {
        tier.engine != EngineKind::Endpoint && tier.takes(Modality::Image) == Some(true)
    });
    if read_pictures && !sees {
        let message = "no tier of this machine has a model that reads images";
        let hint = "assign one whose file for images, the projector, is beside it, under Models";
        return Err(Failure(Error::new(Code::ModelMissing, message).hint(hint)));
    }
    let source = number(&source)?;
    admin.documents.read_pictures(source, read_pictures).await?;
    Ok(Json(admin.documents.status().await?))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct FilesAfter {
    /// The id of the last file that is known.
    #[serde(default)]
    after: u64,
}

/// Files of a source.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DocumentFiles {
    files: Vec<DocumentFile>,
}

/// Lists the files of a source by id, at most 1000 at a time, with what is known of them and why some cannot be read.
#[utoipa::path(
    get,
    path = "/tierbar/v1/documents/{source}/files",
    operation_id = "documentFiles",
    reach(Owner, Reads),
    params(("source" = u64, Path, description = "The id of a file or folder that was added"), FilesAfter),
    responses((status = 200, description = "The files", body = DocumentFiles)),
)]
pub(crate) async fn files(
    State(admin): AdminState,
    Id(source): Id,
    QueryFields(FilesAfter { after }): QueryFields<FilesAfter>,
) -> Answer<DocumentFiles> {
    let (source, after) = (number(&source)?, after.min(MOST_ID));
    let files = admin.store.document_files(source, after).await?;
    Ok(Json(DocumentFiles { files }))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct FileName {
    /// The file's name, such as `report.pdf`.
    name: String,
}

/// Returns the text of a file for a question: a text as it is, a document as it is read for a search. It is not kept.
#[utoipa::path(
    post,
    path = "/tierbar/v1/documents/text",
    operation_id = "fileText",
    reach(Owner, Reads),
    params(FileName),
    request_body(content = String, content_type = "application/octet-stream", description = "The file, of at most 30 MiB"),
    responses((status = 200, description = "Its text", body = FileText)),
)]
pub(crate) async fn text(
    State(admin): AdminState,
    QueryFields(FileName { name }): QueryFields<FileName>,
    body: Body,
) -> Answer<FileText> {
    let bytes = body::read(body, body::INFERENCE_LIMIT).await?;
    let copied = blocking("a copy of the file", move || {
        Ok((to_file(&name, &bytes[..])?, name))
    });
    let (file, name) = copied.await?;
    Ok(Json(admin.services.read_file(file, name).await?))
}

/// A passage among its neighbors.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PassageContext {
    /// Those before it, it, and those behind it, in the order of the document.
    passages: Vec<Passage>,
}

/// Returns a passage with those before and behind it, to be read where it stands.
#[utoipa::path(
    get,
    path = "/tierbar/v1/passages/{id}",
    reach(Owner, Reads),
    params(("id" = u64, Path, description = "The id of a passage")),
    responses((status = 200, description = "The passages", body = PassageContext)),
)]
pub(crate) async fn passage(State(admin): AdminState, Id(id): Id) -> Answer<PassageContext> {
    let passages = admin.store.passages_around(number(&id)?).await?;
    Ok(Json(PassageContext { passages }))
}

/// Searches the documents by words and by meaning.
#[utoipa::path(
    post,
    path = "/v1/documents/search",
    operation_id = "searchDocuments",
    reach(Owner, Reads, Spends),
    request_body = DocumentSearch,
    responses((status = 200, description = "The passages that match best", body = FoundPassages)),
)]
pub(crate) async fn search(
    State(admin): AdminState,
    JsonBody(search): JsonBody<DocumentSearch>,
) -> Answer<FoundPassages> {
    Ok(Json(admin.jobs.search_documents(&search).await?))
}

/// Answers a question from the documents, with the passages that say so.
#[utoipa::path(
    post,
    path = "/v1/documents/ask",
    operation_id = "askDocuments",
    reach(Owner, Reads, Spends),
    request_body = DocumentQuestion,
    responses(
        (
            status = 200,
            description = "The answer, whole or as events whose data is a `DocumentEvent`",
            content((DocumentAnswer = "application/json"), (DocumentEvent = "text/event-stream")),
        ),
    ),
)]
pub(crate) async fn ask(
    State(admin): AdminState,
    JsonBody(asked): JsonBody<DocumentQuestion>,
) -> Result<Response, Failure> {
    let (sender, events) = mpsc::unbounded_channel();
    let jobs = Arc::clone(&admin.jobs);
    if !asked.stream {
        drop(events);
        return Ok(Json(jobs.ask_documents(asked, &sender).await?).into_response());
    }
    let answering = tokio::spawn(async move {
        let last = match jobs.ask_documents(asked, &sender).await {
            Ok(answer) => DocumentEvent::Answer { answer },
            Err(error) => DocumentEvent::Error {
                code: error.code.as_str().to_owned(),
                message: error.message,
                hint: error.hint,
            },
        };
        let _ = sender.send(last);
    });
    // A client that leaves ends the answer.
    let following = (events, AbortOnDropHandle::new(answering));
    let events = stream::unfold(following, |(mut events, answering)| async move {
        let event = json_event(Event::default(), &events.recv().await?);
        Some((event, (events, answering)))
    });
    let closing = admin.inference.closing.clone().cancelled_owned();
    Ok(sse::response(events.take_until(closing)))
}

/// An id of the store, which has no larger ones.
fn number(id: &str) -> Result<u64, Error> {
    let number = id.parse().ok().filter(|id| *id <= MOST_ID);
    number.ok_or_else(|| Error::new(Code::NotFound, format!("there is no document \"{id}\"")))
}
