//! A search of a vector store.

use super::{MOST_AT_ONCE, attributes, file_id, file_name, reranks};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tierbar_core::{Error, bad_request, documents::Passage};
use utoipa::ToSchema;

const USUAL_RESULTS: usize = 10;

/// What to search a vector store for.
#[derive(Debug, Deserialize, ToSchema)]
pub struct VectorStoreSearch {
    query: Queries,
    /// At most 50; 10 without it.
    max_num_results: Option<usize>,
    /// `ranker`: `auto`, or `none` for a search without the reranking model.
    #[schema(value_type = Option<Object>)]
    ranking_options: Option<Value>,
}

/// A text, or up to 8.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub(super) enum Queries {
    One(String),
    Several(Vec<String>),
}

/// The passages that match best.
#[derive(Debug, Serialize, ToSchema)]
pub struct VectorStoreResults {
    #[schema(value_type = String)]
    object: &'static str,
    search_query: Vec<String>,
    data: Vec<VectorStoreResult>,
    /// Always false: there is one page.
    has_more: bool,
    next_page: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct VectorStoreResult {
    file_id: String,
    filename: String,
    /// How well it matches. Scores of one search can be compared, and no others.
    score: f32,
    /// The passage's id, page, line and place.
    #[schema(value_type = Object)]
    attributes: Value,
    #[schema(inline)]
    content: Vec<ResultText>,
}

#[derive(Debug, Serialize, ToSchema)]
struct ResultText {
    #[serde(rename = "type")]
    #[schema(value_type = String)]
    kind: &'static str,
    text: String,
}

impl From<Passage> for VectorStoreResult {
    fn from(passage: Passage) -> Self {
        Self {
            file_id: file_id(passage.file),
            filename: file_name(&passage.path).to_owned(),
            score: passage.score,
            attributes: attributes(&passage),
            content: vec![ResultText {
                kind: "text",
                text: passage.text,
            }],
        }
    }
}

/// What a search asks for, checked.
#[derive(Debug)]
pub struct StoreQueries {
    pub texts: Vec<String>,
    pub limit: usize,
    /// Whether a reranking model may order what is found.
    pub rerank: bool,
}

impl VectorStoreSearch {
    /// # Errors
    /// `BadRequest` for too many texts or none, and for ranking options that are not valid.
    pub fn queries(self) -> Result<StoreQueries, Error> {
        let rerank = reranks("ranking_options.", self.ranking_options.as_ref())?;
        let texts = match self.query {
            Queries::One(query) => vec![query],
            Queries::Several(queries) => queries,
        };
        if !(1..=MOST_AT_ONCE).contains(&texts.len()) {
            let count = texts.len();
            return Err(bad_request(format!(
                "`query` has {count} texts; send 1 to {MOST_AT_ONCE}"
            )));
        }
        Ok(StoreQueries {
            texts,
            limit: self.max_num_results.unwrap_or(USUAL_RESULTS),
            rerank,
        })
    }
}

impl VectorStoreResults {
    pub fn new(queries: Vec<String>, found: Vec<Passage>) -> Self {
        Self {
            object: "vector_store.search_results.page",
            search_query: queries,
            data: found.into_iter().map(VectorStoreResult::from).collect(),
            has_more: false,
            next_page: None,
        }
    }
}
