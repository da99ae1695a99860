//! A question as a vector.

use crate::inference::{EMBEDDINGS, Inference, dispatch, hints::Hints, request::Request};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use tierbar_core::{Code, Error, TierId, documents::vectors::normalized};

/// OpenAI's answer.
#[derive(Debug, Deserialize)]
struct Vectors {
    data: Vec<Vector>,
}

#[derive(Debug, Deserialize)]
struct Vector {
    embedding: Vec<f32>,
}

/// Returns a question's vector, of length 1.
pub(super) async fn embed(
    inference: &Arc<Inference>,
    tier: &TierId,
    question: &str,
) -> Result<Vec<f32>, Error> {
    let request = json!({"model": tier, "input": [question], "encoding_format": "float"});
    let request = Request::of(EMBEDDINGS, Hints::default(), request)?;
    let answer = dispatch::fetch(inference, request).await?;
    let foreign = |why: &str| {
        let message = format!("the embedder did not answer in OpenAI's form: {why}");
        Error::new(Code::Unreachable, message)
    };
    let Vectors { mut data } =
        serde_json::from_slice(&answer).map_err(|error| foreign(&error.to_string()))?;
    let vector = data.pop().ok_or_else(|| foreign("no vector"))?;
    Ok(normalized(vector.embedding))
}
