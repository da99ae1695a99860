//! The vectors of an answer in base64.

use super::json_edit;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use serde::de::IgnoredAny;
use tierbar_chats::import::elements;

/// No request has so many texts.
const MOST_VECTORS: usize = 16_384;

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
