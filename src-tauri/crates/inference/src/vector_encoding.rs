//! What a client asks of vectors, where another program ignores it: base64, and their length.

use super::EMBEDDINGS;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use bytes::Bytes;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::ops::Range;
use tierbar_chats::import::elements;
use tierbar_core::{Error, TierId, bad_request, json_edit};

/// No request has so many texts.
const MOST_VECTORS: usize = 16_384;
/// The most numbers of an answer, by its commas: 2,048 texts by 3,072. A number of two bytes takes nine while it is encoded.
const MOST_NUMBERS: usize = 6_400_000;
/// So many numbers are encoded at once. Their bytes can be divided by three, so that only the last ones have padding.
const AT_ONCE: usize = 3 << 10;

/// What a request says of its vectors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VectorForm {
    in_base64: bool,
    length: Option<usize>,
}

impl VectorForm {
    /// `None` for a request to a path that is not for vectors.
    pub(crate) fn of_request(path: &str, fields: &Value) -> Option<Self> {
        let length = fields["dimensions"].as_u64();
        (path == EMBEDDINGS).then(|| Self {
            in_base64: fields["encoding_format"] == "base64",
            length: length.and_then(|length| usize::try_from(length).ok()),
        })
    }

    pub(crate) fn encode(self, answer: Bytes) -> Bytes {
        match self.in_base64 {
            true => in_base64(answer),
            false => answer,
        }
    }

    /// The refusal of vectors with another length, as our own engine refuses the request. Beside others, they could not be compared.
    pub(crate) fn fault(self, tier: &TierId, answer: &[u8]) -> Option<Error> {
        let (wanted, length) = (self.length?, first_length(answer)?);
        let message = format!("`dimensions` is {wanted}; the embeddings of {tier} have {length}");
        let hint = "omit `dimensions`, or set it in the server of the tier";
        (length != wanted).then(|| bad_request(message).hint(hint))
    }
}

/// Where the vectors of an answer are, and each of them.
fn vectors_of(answer: &[u8]) -> Option<(Range<usize>, Vec<&[u8]>)> {
    let data = json_edit::member(answer, "data")?.value;
    let list = Some(&answer[data.clone()]).filter(|list| list.starts_with(b"["))?;
    Some((data, elements(list, MOST_VECTORS)?))
}

fn first_length(answer: &[u8]) -> Option<usize> {
    let (_, vectors) = vectors_of(answer)?;
    let vector = vectors.first()?;
    let numbers = &vector[json_edit::member(vector, "embedding")?.value];
    if let Ok(numbers) = serde_json::from_slice::<Vec<IgnoredAny>>(numbers) {
        return Some(numbers.len());
    }
    let text: String = serde_json::from_slice(numbers).ok()?;
    let bytes = BASE64_STANDARD.decode(text).ok()?;
    Some(bytes.len() / size_of::<f32>())
}

/// Encodes the vectors of an answer in base64, as little-endian floats, where its server has ignored that its client wants it so: OpenAI's
/// clients read a list of numbers as bytes. An answer with more numbers than any has stays as it is.
fn in_base64(answer: Bytes) -> Bytes {
    let numbers = memchr::memchr_iter(b',', &answer).count();
    if numbers > MOST_NUMBERS || serde_json::from_slice::<IgnoredAny>(&answer).is_err() {
        return answer;
    }
    let Some((data, vectors)) = vectors_of(&answer).filter(|(_, all)| !all.is_empty()) else {
        return answer;
    };
    let mut encoded = answer[..data.start].to_vec();
    let mut separator = b'[';
    for vector in vectors {
        encoded.push(separator);
        separator = b',';
        let numbers = json_edit::member(vector, "embedding").map(|member| member.value);
        let numbers = numbers.and_then(|at| {
            let numbers: Vec<f32> = serde_json::from_slice(&vector[at.clone()]).ok()?;
            Some((at, numbers))
        });
        match numbers {
            Some((at, numbers)) => {
                encoded.extend_from_slice(&vector[..at.start]);
                encoded.push(b'"');
                for part in numbers.chunks(AT_ONCE) {
                    let bytes: Vec<u8> = part.iter().flat_map(|each| each.to_le_bytes()).collect();
                    encoded.extend_from_slice(BASE64_STANDARD.encode(bytes).as_bytes());
                }
                encoded.push(b'"');
                encoded.extend_from_slice(&vector[at.end..]);
            }
            None => encoded.extend_from_slice(vector),
        }
    }
    encoded.push(b']');
    encoded.extend_from_slice(&answer[data.end..]);
    encoded.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_vector_is_encoded_as_one() {
        let numbers: Vec<u16> = (0..=2 * 3072).collect();
        let answer = serde_json::json!({"data": [{"embedding": numbers}]});
        let bytes = numbers
            .iter()
            .flat_map(|&number| f32::from(number).to_le_bytes());
        let bytes: Vec<u8> = bytes.collect();
        let expected = serde_json::json!({"data": [{"embedding": BASE64_STANDARD.encode(bytes)}]});
        let encoded = in_base64(Bytes::from(answer.to_string()));
        assert_eq!(encoded, expected.to_string().as_bytes());
    }

    #[test]
    fn an_answer_with_too_many_numbers_stays() {
        let numbers = "0,".repeat(MOST_NUMBERS + 1);
        let answer = Bytes::from(format!("{{\"data\":[{{\"embedding\":[{numbers}0]}}]}}"));
        assert!(in_base64(answer.clone()) == answer);
    }

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

    #[test]
    fn vectors_of_another_length_are_refused() {
        let tier = TierId::new("cloud").unwrap();
        for (answer, length) in [
            (r#"{"data":[{"embedding":[1, -0.5, 2]}]}"#, Some(3)),
            (r#"{"data":[ {"embedding":"AACAPwAAAL8="} ]}"#, Some(2)),
            (r#"{"data":[]}"#, None),
            (r#"{"data":[{"embedding":{}}]}"#, None),
            (r#"{"error":{"message":"no"}}"#, None),
        ] {
            assert_eq!(first_length(answer.as_bytes()), length, "{answer}");
            let fault = |wanted| {
                let form = VectorForm {
                    in_base64: false,
                    length: wanted,
                };
                form.fault(&tier, answer.as_bytes())
            };
            assert!(fault(None).is_none() && fault(length).is_none(), "{answer}");
            assert_eq!(fault(Some(1)).is_some(), length.is_some(), "{answer}");
        }
    }
}
