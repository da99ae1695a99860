//! Vectors of texts, as a server of OpenAI's dialect answers them.

use super::{
    EMBEDDINGS, Inference, dispatch,
    hints::Hints,
    request::Request,
    wire::{Timings, Usage},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use tierbar_core::{Code, Error, TierId, json::short};

/// The longest answer that is read, in bytes, and the most numbers in it: a thousand texts by four thousand.
const LONGEST: usize = 24 << 20;
const MOST_NUMBERS: usize = 4 << 20;

/// The vectors of a request's texts, in their order, and what they took.
#[derive(Debug, Default)]
pub struct Vectors {
    pub vectors: Vec<Vec<f32>>,
    /// Zero where the server does not say.
    pub prompt_tokens: u64,
    /// Those of our own worker.
    pub timings: Option<Timings>,
    /// How many texts were longer than the context and cut, as far as the server says.
    pub truncated: usize,
}

#[derive(Debug, Deserialize)]
struct VectorAnswer {
    data: Vec<Vector>,
    usage: Option<Usage>,
    #[serde(default, deserialize_with = "short")]
    timings: Option<Timings>,
    #[serde(default, deserialize_with = "short")]
    truncated: Option<usize>,
}

#[derive(Debug, Deserialize)]
struct Vector {
    #[serde(default)]
    index: usize,
    embedding: Vec<f32>,
}

/// Asks for vectors with `fields` such as `model` and `input`.
///
/// # Errors
/// Why there is no answer; `Unreachable` for an answer in another form, or with other than `count` vectors.
pub async fn fetch(
    inference: &Arc<Inference>,
    hints: Hints,
    fields: Value,
    count: usize,
) -> Result<Vectors, Error> {
    let request = Request::of(EMBEDDINGS, hints, fields)?;
    parse_answer(&dispatch::fetch(inference, request).await?, count)
}

/// The fields of a request for the vectors of these texts from a tier.
pub fn fields(tier: &TierId, texts: &[String]) -> Value {
    json!({"model": tier, "input": texts, "encoding_format": "float"})
}

/// Reads an answer.
///
/// # Errors
/// `Unreachable` for an answer in another form, or with other than `count` vectors.
pub fn parse_answer(answer: &[u8], count: usize) -> Result<Vectors, Error> {
    let foreign = |why: String| {
        let message = format!("the model's server did not answer in OpenAI's form: {why}");
        Error::new(Code::Unreachable, message)
    };
    if answer.len() > LONGEST {
        let most = LONGEST >> 20;
        return Err(foreign(format!("it is longer than {most} MiB")));
    }
    if answer.iter().filter(|byte| **byte == b',').count() > MOST_NUMBERS {
        return Err(foreign(format!("it has more than {MOST_NUMBERS} numbers")));
    }
    let VectorAnswer {
        mut data,
        usage,
        timings,
        truncated,
    } = serde_json::from_slice(answer).map_err(|error| foreign(error.to_string()))?;
    if data.len() != count {
        return Err(foreign(format!("{} vectors for {count} texts", data.len())));
    }
    data.sort_by_key(|vector| vector.index);
    Ok(Vectors {
        vectors: data.into_iter().map(|vector| vector.embedding).collect(),
        prompt_tokens: usage.unwrap_or_default().prompt_tokens,
        timings,
        truncated: truncated.unwrap_or(0),
    })
}
