//! `/v1/rerank`: how well documents answer a query, in the form of Jina's and Cohere's APIs.

use super::{
    Engine, EngineState, Refusal,
    embeddings::{MOST_INPUTS, run_jobs},
    parse_body, run_blocking,
};
use crate::{
    bad,
    llama::{Pooling, Token},
};
use axum::{Json, body::Bytes, extract::State};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use tierbar_core::Error;

#[derive(Deserialize)]
struct Request {
    query: String,
    documents: Vec<Document>,
    top_n: Option<usize>,
    #[serde(default)]
    return_documents: bool,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "each of `documents` as a text, or as an object with a `text`"
)]
enum Document {
    Text(String),
    Object { text: String },
}

impl Document {
    fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Object { text } => text,
        }
    }
}

/// The scores are the model's own; which numbers they can be depends on the model.
pub(super) async fn rerank(
    State(engine): EngineState,
    body: Bytes,
) -> Result<Json<Value>, Refusal> {
    if engine.pooling != Some(Pooling::Rank) {
        return Err(bad(format!("{} does not rank documents", engine.id))
            .hint("choose a reranking model for this tier, or name a tier with one")
            .into());
    }
    let Request {
        query,
        documents,
        top_n,
        return_documents,
    } = parse_body(&body)?;
    if !(1..=MOST_INPUTS).contains(&documents.len()) {
        let count = documents.len();
        let why = format!("`documents` has {count} texts; send 1 to {MOST_INPUTS}");
        return Err(bad(why).into());
    }
    if top_n == Some(0) {
        return Err(bad("`top_n` is 0; send 1 or more").into());
    }
    let tokenizer = Arc::clone(&engine);
    let (documents, prompts) = run_blocking(move || {
        let prompts = tokenizer.tokenize_pairs(&query, &documents);
        prompts.map(|prompts| (documents, prompts))
    })
    .await??;
    let tokens: usize = prompts.iter().map(Vec::len).sum();
    let scores = run_jobs(&engine, prompts).await?;
    let scores = scores
        .into_iter()
        .filter_map(|score| score.first().copied());
    let mut ranked: Vec<(usize, f32)> = scores.enumerate().collect();
    // The sort is stable: of equal scores, the earlier document comes first.
    ranked.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    ranked.truncate(top_n.unwrap_or(usize::MAX));
    let result = |(index, score): (usize, f32)| {
        let mut result = json!({"index": index, "relevance_score": score});
        if return_documents {
            result["document"] = json!({"text": documents[index].text()});
        }
        result
    };
    let results: Vec<_> = ranked.into_iter().map(result).collect();
    Ok(Json(json!({
        "object": "list",
        "model": engine.id,
        "results": results,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    })))
}

impl Engine {
    /// A prompt for each document, as llama-server makes it.
    fn tokenize_pairs(
        &self,
        query: &str,
        documents: &[Document],
    ) -> Result<Vec<Vec<Token>>, Error> {
        let empty = |what: String| bad(format!("{what} is empty"));
        if query.is_empty() {
            return Err(empty("`query`".to_owned()));
        }
        let template = self.model.template(Some(c"rerank"));
        let query_tokens = self.model.tokenize(query, false, false)?;
        let mut prompts = Vec::with_capacity(documents.len());
        for (index, document) in documents.iter().enumerate() {
            let text = document.text();
            if text.is_empty() {
                return Err(empty(format!("document {index}")));
            }
            let tokens = match &template {
                Some(template) => {
                    let prompt = fill_template(template, query, text);
                    self.model.tokenize(&prompt, false, true)?
                }
                None => {
                    let document = self.model.tokenize(text, false, false)?;
                    self.model.pair(&query_tokens, &document)
                }
            };
            let what = format!("the query with document {index}");
            self.check_length(&what, index, tokens.len())?;
            prompts.push(tokens);
        }
        Ok(prompts)
    }
}

/// Returns the template with the texts in their places. What looks like a place in a text stays as it is.
fn fill_template(template: &str, query: &str, document: &str) -> String {
    let parts = template.split("{document}");
    let parts: Vec<_> = parts.map(|part| part.replace("{query}", query)).collect();
    parts.join(document)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_takes_each_text_as_it_is() {
        let template = "<q>{query}</q><d>{document}</d>{query}";
        assert_eq!(
            fill_template(template, "a {document}", "b {query}"),
            "<q>a {document}</q><d>b {query}</d>a {document}"
        );
        assert_eq!(fill_template("plain", "a", "b"), "plain");
    }
}
