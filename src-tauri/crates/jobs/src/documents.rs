//! Passages that answer a question, and answers from them.
//!
//! A search fuses two rankings, by words and by meaning, and has a reranker order the best if there is one. Nothing of it leaves this
//! machine: an endpoint's embedder or reranker is not asked. Who writes the answer is the request's own choice.

mod answer;
mod exam;
mod file_search;

pub use answer::{DocumentEvent, DocumentQuestion};
pub use file_search::search_files;
pub(crate) use file_search::{not_queued, searches_files};

use crate::Jobs;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use tierbar_core::{
    Code, Error, ModelKind, TierId, bad_request,
    documents::{FoundPassages, MOST_PASSAGES, Passage, vectors::normalized},
    status::{EngineKind, TierStatus},
};
use tierbar_documents::rank::fuse_search;
use tierbar_http::request::check_range;
use tierbar_inference::{Inference, RERANK, dispatch, hints::Hints, request::Request, vectors};
use tierbar_store::{MOST_ID, Place};
use utoipa::ToSchema;

/// How many passages each ranking has before they are fused,
const RANKED: usize = 50;
/// and how many a reranker reads.
const RERANKED: usize = 20;
const USUAL: usize = 8;
const LONGEST_QUERY: usize = 4000;

/// What to search for, and where.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
pub struct DocumentSearch {
    pub query: String,
    /// The collection to search; without one, all of them.
    pub collection: Option<String>,
    /// One document to search, by its id.
    pub file: Option<u64>,
    /// How many passages. Default: 8.
    #[schema(minimum = 1, maximum = 50)]
    pub limit: Option<usize>,
    /// Whether a reranker orders the best passages, if a tier has one; yes without it.
    pub rerank: Option<bool>,
}

impl Jobs {
    /// Returns the passages that match a question best.
    ///
    /// # Errors
    /// `BadRequest` for a query that is empty or too long, or a limit out of its range; `Storage` if the index cannot be read.
    pub async fn search_documents(&self, search: &DocumentSearch) -> Result<FoundPassages, Error> {
        let meaning = self.meaning(check_query(&search.query)?, |_| true).await;
        let collection = search.collection.clone();
        let found = self.find_passages(search, collection, meaning.as_ref(), |_| true);
        found.await
    }

    /// As [`Self::search_documents`], in each of these collections, and in all of them at `None`. The question is embedded once, and
    /// only the models of the tiers that help are asked.
    pub(crate) async fn search_each(
        &self,
        search: &DocumentSearch,
        collections: &[Option<String>],
        helps: fn(&TierStatus) -> bool,
    ) -> Result<Vec<FoundPassages>, Error> {
        let meaning = self.meaning(check_query(&search.query)?, helps).await;
        let mut found = Vec::new();
        for collection in collections {
            let passages = self.find_passages(search, collection.clone(), meaning.as_ref(), helps);
            found.push(passages.await?);
        }
        Ok(found)
    }

    /// The embedder's name and what it makes of the question; `None` without an embedder: words find passages too.
    async fn meaning(
        &self,
        query: &str,
        helps: fn(&TierStatus) -> bool,
    ) -> Option<(String, Vec<f32>)> {
        let (tier, model) = local_tier(&self.inference, ModelKind::Embedding, helps)?;
        let fields = vectors::fields(&tier, &[query.to_owned()]);
        let answer = vectors::fetch(&self.inference, Hints::default(), fields, 1).await;
        let answer =
            answer.inspect_err(|error| tracing::debug!("a search goes by words alone: {error}"));
        Some((model, normalized(answer.ok()?.vectors.pop()?)))
    }

    async fn find_passages(
        &self,
        search: &DocumentSearch,
        collection: Option<String>,
        meaning: Option<&(String, Vec<f32>)>,
        helps: fn(&TierStatus) -> bool,
    ) -> Result<FoundPassages, Error> {
        let query = search.query.trim();
        let limit = search.limit.unwrap_or(USUAL);
        let limit = check_range("limit", limit, 1..=MOST_PASSAGES)?;
        let place = || Place {
            collection: collection.clone(),
            file: search.file.map(|file| file.min(MOST_ID)),
        };
        let store = &self.store;
        let by_words = store.passages_with_words(query, place(), RANKED).await?;
        let by_meaning: Vec<u64> = match meaning {
            Some((model, vector)) => {
                let alike = store.passages_like(model, vector.clone(), place(), RANKED);
                alike.await?.into_iter().map(|(id, _)| id).collect()
            }
            None => Vec::new(),
        };
        let fused = fuse_search(&by_words, &by_meaning);
        let most = limit.max(RERANKED);
        let ids = fused.iter().take(most).map(|(id, _)| *id).collect();
        let mut passages = self.store.passages(ids).await?;
        for passage in &mut passages {
            let score = fused.iter().find(|(id, _)| *id == passage.id);
            passage.score = score.map_or(0.0, |(_, score)| *score);
        }
        let wanted = search.rerank != Some(false) && passages.len() > 1;
        let reranker = local_tier(&self.inference, ModelKind::Reranking, helps);
        let reranked = match reranker.filter(|_| wanted) {
            Some((tier, _)) => rerank(&self.inference, &tier, query, &mut passages)
                .await
                .inspect_err(|error| tracing::debug!("a search is not reranked: {error}"))
                .is_ok(),
            None => false,
        };
        passages.truncate(limit);
        Ok(FoundPassages {
            passages,
            embedder: meaning.map(|(model, _)| model.clone()),
            reranked,
        })
    }
}

/// The question, without white space around it.
fn check_query(query: &str) -> Result<&str, Error> {
    let query = query.trim();
    if query.is_empty() {
        return Err(bad_request("the question is empty"));
    }
    if query.len() > LONGEST_QUERY {
        return Err(bad_request(format!(
            "the question has {} bytes, and may have {LONGEST_QUERY}",
            query.len()
        )));
    }
    Ok(query)
}

/// The tier on this machine whose model is for that and that helps, and the model's name.
fn local_tier(
    inference: &Inference,
    kind: ModelKind,
    helps: fn(&TierStatus) -> bool,
) -> Option<(TierId, String)> {
    let mut tiers = inference.tiers.snapshot().into_iter();
    tiers.find_map(|tier| {
        let is_one = tier.kind == kind && tier.engine != EngineKind::Endpoint && helps(&tier);
        let model = tier.model.filter(|_| is_one)?;
        Some((tier.id, model.as_str().to_owned()))
    })
}

#[derive(Debug, Deserialize)]
struct RerankAnswer {
    results: Vec<RerankScore>,
}

#[derive(Debug, Deserialize)]
struct RerankScore {
    index: usize,
    relevance_score: f32,
}

/// Orders the best passages by a reranker's scores; those that it has not read stay behind them.
async fn rerank(
    inference: &Arc<Inference>,
    tier: &TierId,
    query: &str,
    passages: &mut Vec<Passage>,
) -> Result<(), Error> {
    let best = passages.iter().take(RERANKED);
    let texts: Vec<_> = best.map(|passage| passage.text.as_str()).collect();
    let request = json!({"model": tier, "query": query, "documents": texts});
    let request = Request::of(RERANK, Hints::default(), request)?;
    let answer = dispatch::fetch(inference, request).await?;
    let RerankAnswer { mut results } = serde_json::from_slice(&answer).map_err(|error| {
        let message = format!("the reranker did not answer in its form: {error}");
        Error::new(Code::Unreachable, message)
    })?;
    results.sort_by(|one, other| other.relevance_score.total_cmp(&one.relevance_score));
    let mut left: Vec<Option<Passage>> = std::mem::take(passages).into_iter().map(Some).collect();
    for result in results {
        if let Some(mut passage) = left.get_mut(result.index).and_then(Option::take) {
            passage.score = result.relevance_score;
            passages.push(passage);
        }
    }
    passages.extend(left.into_iter().flatten());
    Ok(())
}
