//! Vectors of texts, as a server of OpenAI's dialect answers them.

use super::{
    EMBEDDINGS, Inference, dispatch,
    hints::Hints,
    json_edit,
    request::Request,
    wire::{Timings, Usage, if_known},
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json};
use std::sync::Arc;
use tierbar_chats::import::elements;
use tierbar_core::{Code, Error, TierId};

/// The longest answer that is read, in bytes. Two bytes of it can become a number of four.
const LONGEST: usize = 24 << 20;

/// No request has so many texts.
const MOST_VECTORS: usize = 16_384;

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
struct Answer {
    data: Vec<Vector>,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(default)]
    timings: Option<Timings>,
    #[serde(default, deserialize_with = "if_known")]
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
    read(&dispatch::fetch(inference, request).await?, count)
}

/// The fields of a request for the vectors of these texts from a tier.
#[must_use]
pub fn fields(tier: &TierId, texts: &[String]) -> Value {
    json!({"model": tier, "input": texts, "encoding_format": "float"})
}

/// Encodes the vectors of an answer in base64, as little-endian floats, where its server has ignored that its client wants it so: OpenAI's
/// clients read a list of numbers as bytes.
pub(crate) fn in_base64(answer: Bytes) -> Bytes {
    if serde_json::from_slice::<IgnoredAny>(&answer).is_err() {
        return answer;
    }
    let Some(data) = json_edit::member(&answer, "data").map(|member| member.value) else {
        return answer;
    };
    let list = Some(&answer[data.clone()]).filter(|list| list.starts_with(b"["));
    let Some(vectors) = list.and_then(|list| elements(list, MOST_VECTORS)) else {
        return answer;
    };
    let mut encoded = Vec::new();
    for vector in vectors {
        let separator = if encoded.is_empty() { b'[' } else { b',' };
        encoded.push(separator);
        let numbers = json_edit::member(vector, "embedding").map(|member| member.value);
        let numbers = numbers.and_then(|at| {
            let numbers: Vec<f32> = serde_json::from_slice(&vector[at.clone()]).ok()?;
            Some((at, numbers))
        });
        match numbers {
            Some((at, numbers)) => {
                let bytes: Vec<u8> = numbers.iter().flat_map(|each| each.to_le_bytes()).collect();
                let text = format!("\"{}\"", BASE64_STANDARD.encode(bytes));
                encoded.extend([&vector[..at.start], text.as_bytes(), &vector[at.end..]].concat());
            }
            None => encoded.extend_from_slice(vector),
        }
    }
    if encoded.is_empty() {
        return answer;
    }
    encoded.push(b']');
    [&answer[..data.start], &encoded, &answer[data.end..]]
        .concat()
        .into()
}

/// Reads an answer.
///
/// # Errors
/// `Unreachable` for an answer in another form, or with other than `count` vectors.
pub fn read(answer: &[u8], count: usize) -> Result<Vectors, Error> {
    let foreign = |why: String| {
        let message = format!("the model's server did not answer in OpenAI's form: {why}");
        Error::new(Code::Unreachable, message)
    };
    if answer.len() > LONGEST {
        let most = LONGEST >> 20;
        return Err(foreign(format!("it is longer than {most} MiB")));
    }
    let Answer {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_base64_and_all_else_stays() {
        let answer = r#"{"object":"list", "data": [ {"index":0,"embedding":[1, -0.5],"x":{}}, {"embedding":"AACAPw==","index":1} ],"usage":{"total_tokens":3}}"#;
        let encoded = in_base64(Bytes::from_static(answer.as_bytes()));
        let encoded = String::from_utf8(encoded.to_vec()).unwrap();
        assert_eq!(encoded, answer.replace("[1, -0.5]", "\"AACAPwAAAL8=\""));
        for other in [
            r#"{"data":[]}"#,
            r#"{"error":{"message":"no"}}"#,
            r#"{"data":{"a":1}}"#,
        ] {
            assert_eq!(
                in_base64(Bytes::from_static(other.as_bytes())),
                other.as_bytes(),
                "{other}"
            );
        }
    }
}
