//! The tool `file_search` of responses, and searches of vector stores: the owner's documents, for OpenAI's clients.

use super::{DocumentSearch, answer::USUAL, exam::CitationExam};
use crate::{Jobs, exams::has_failed};
use axum::{
    body::Body,
    extract::{Request, State},
    http::{Method, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use memchr::memmem;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tierbar_core::{Code, Error, TierId, bad_request, documents::Passage};
use tierbar_dialects::openai::{
    responses::RESPONSES,
    stores::{FileSearch, FileSearchResults, collection_of},
};
use tierbar_documents::rank::fuse;
pub(super) use tierbar_edge::keys::Sender;
use tierbar_http::{error::Failure, reach::SEND_TOKEN};
use tierbar_inference::{body, headers::TIER};
use tierbar_store::Collection;

/// How the tool is named in a request's body.
const NAME: &[u8] = b"\"file_search\"";
/// What a passage takes of a context, with its title.
const PASSAGE_TOKENS: usize = 240;

/// Runs the search of a request for a response that has the tool, before the request is answered. Only the owner's: an API key allows
/// models and not files.
pub async fn search_files(State(jobs): State<Arc<Jobs>>, request: Request, next: Next) -> Response {
    if request.method() != Method::POST || request.uri().path() != RESPONSES {
        return next.run(request).await;
    }
    match add_passages(&jobs, request).await {
        Ok(request) => next.run(request).await,
        Err(error) => Failure(error).into_response(),
    }
}

/// Whether a request searches documents. It cannot wait in the queue, which stores neither the token nor the owner: any client with
/// the job's id may fetch the answer.
///
/// # Errors
/// `BadRequest` for a tool that cannot be followed.
pub(crate) fn searches_files(path: &str, bytes: &[u8]) -> Result<bool, Error> {
    let path = path.split('?').next();
    Ok(path == Some(RESPONSES) && search_of(bytes)?.is_some())
}

/// The refusal to queue a request that searches documents.
pub(crate) fn not_queued() -> Error {
    let message = "`tools` has `file_search`, which a queued request cannot use: it needs the token, and the queue does not keep that";
    bad_request(message).hint(
        "leave out \"x-tierbar-queue: only\", or search with `POST /v1/vector_stores/{id}/search` and put the passages into `input`",
    )
}

/// The search that a request's body asks for, if it does, with the body's fields.
type RequestedSearch = Option<(FileSearch, Map<String, Value>)>;

fn search_of(bytes: &[u8]) -> Result<RequestedSearch, Error> {
    if memmem::find(bytes, NAME).is_none() {
        return Ok(None);
    }
    let fields: Map<String, Value> = body::parse(bytes)?;
    Ok(FileSearch::of(&fields)?.map(|search| (search, fields)))
}

/// Returns the request, with passages if it searches.
async fn add_passages(jobs: &Arc<Jobs>, request: Request) -> Result<Request, Error> {
    let (mut parts, body) = request.into_parts();
    let bytes = body::read(body, body::INFERENCE_LIMIT).await?;
    let Some((search, mut fields)) = search_of(&bytes)? else {
        return Ok(Request::from_parts(parts, Body::from(bytes)));
    };
    check_sender(parts.extensions.get())?;
    // A request that leaves the choice goes to a tier of this machine, as the documents' own questions do.
    let named = fields.get("model").and_then(Value::as_str);
    let named = named.filter(|model| !matches!(*model, "" | TierId::AUTO));
    let tier = parts.headers.get(&TIER).and_then(|tier| tier.to_str().ok());
    let tier = tier.map(|tier| tier.trim().to_ascii_lowercase());
    let (model, context) = jobs.reader(named.or(tier.as_deref()), false)?;
    let room = context as usize / 2 / PASSAGE_TOKENS;
    let limit = search.limit.unwrap_or(USUAL.min(room)).max(1);
    let queries = vec![search.query];
    let passages = jobs
        .search_stores(&search.stores, &queries, limit, search.rerank)
        .await?;
    let mut distrusted = Vec::new();
    // Who answers is not known before.
    for tier in jobs.inference.tiers.snapshot() {
        if has_failed::<CitationExam>(&jobs.inference, &tier.id).await {
            distrusted.push(tier.id);
        }
    }
    fields.insert("model".to_owned(), json!(model));
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.extensions.insert(FileSearchResults {
        queries,
        passages,
        shows_results: search.shows_results,
        distrusted,
    });
    let body = Body::from(Value::Object(fields).to_string());
    Ok(Request::from_parts(parts, body))
}

fn check_sender(sender: Option<&Sender>) -> Result<(), Error> {
    match sender {
        Some(Sender::Owner) => Ok(()),
        Some(Sender::Key(_) | Sender::Program) => {
            let message = "`file_search` reads the owner's documents, and needs the token";
            Err(Error::new(Code::Forbidden, message).hint(SEND_TOKEN))
        }
        // One that an earlier version has queued.
        None => Err(not_queued()),
    }
}

impl Jobs {
    /// Returns the passages of vector stores that match queries best.
    ///
    /// # Errors
    /// `NotFound` for a store that is not there; those of a search.
    pub async fn search_stores(
        &self,
        stores: &[String],
        queries: &[String],
        limit: usize,
        rerank: bool,
    ) -> Result<Vec<Passage>, Error> {
        let mut collections = Vec::new();
        for store in stores {
            collections.push(Some(self.collection(store).await?.name));
        }
        let mut found: Vec<Vec<Passage>> = Vec::new();
        for query in queries {
            let search = DocumentSearch {
                query: query.clone(),
                limit: Some(limit),
                rerank: Some(rerank),
                ..DocumentSearch::default()
            };
            let each = self.search_each(&search, &collections, |_| true).await?;
            found.extend(each.into_iter().map(|found| found.passages));
        }
        Ok(fuse_passages(found, limit))
    }

    /// Returns the collection of a vector store.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn collection(&self, store: &str) -> Result<Collection, Error> {
        let name = collection_of(store);
        let collections = self.store.document_collections().await?;
        collections
            .into_iter()
            .find(|known| Some(&known.name) == name.as_ref())
            .ok_or_else(|| {
                let message = format!("there is no vector store \"{store:.100}\"");
                Error::new(Code::NotFound, message).hint(
                    "`GET /v1/vector_stores` lists them; `tierbar documents add PATH` makes one",
                )
            })
    }
}

/// The passages of one search as they are, those of several by their ranks: their scores are not comparable.
fn fuse_passages(mut found: Vec<Vec<Passage>>, limit: usize) -> Vec<Passage> {
    if found.len() == 1 {
        return found.pop().unwrap_or_default();
    }
    let ids = |passages: &Vec<Passage>| passages.iter().map(|passage| passage.id).collect();
    let ids: Vec<Vec<u64>> = found.iter().map(ids).collect();
    let lists: Vec<_> = ids.iter().map(|ids| (ids.as_slice(), 1.0)).collect();
    let ranked = fuse(&lists).into_iter().take(limit);
    let passages = ranked.filter_map(|(id, score)| {
        let passage = found.iter().flatten().find(|passage| passage.id == id)?;
        Some(Passage {
            score,
            ..passage.clone()
        })
    });
    passages.collect()
}
