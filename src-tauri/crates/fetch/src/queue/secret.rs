//! What of a URL may be written to the disk.
//!
//! A URL may carry a secret: a name and a password, or a signed query. It is kept without them, and its download cannot go on
//! by itself at the next start. An ordinary query, which may name the file, is kept.

use super::Job;
use serde::{Serialize as _, Serializer};
use url::Url;

/// Names of query parameters, or parts of them, for signatures, tokens and passwords: of S3's and Google's presigned URLs, of
/// CloudFront's (`Policy`, `Key-Pair-Id`) and Azure's (`sig`), and of APIs' keys.
const PARTS: [&str; 8] = [
    "x-amz-",
    "x-goog-",
    "signature",
    "token",
    "secret",
    "passw",
    "credential",
    "auth",
];
const NAMES: [&str; 12] = [
    "sig",
    "sign",
    "key",
    "apikey",
    "api_key",
    "api-key",
    "access_key",
    "awsaccesskeyid",
    "googleaccessid",
    "key-pair-id",
    "policy",
    "jwt",
];

/// Returns the URL without its secrets, or `None` if it has none.
pub(super) fn without_secrets(url: &Url) -> Option<Url> {
    let signed = url.query_pairs().any(|(name, _)| {
        let name = name.to_lowercase();
        NAMES.contains(&name.as_str()) || PARTS.iter().any(|part| name.contains(part))
    });
    let user = !url.username().is_empty() || url.password().is_some();
    if !signed && !user {
        return None;
    }
    let mut kept = url.clone();
    if signed {
        // What is left of a signed query is of no use.
        kept.set_query(None);
    }
    // Fails only for a URL without a host, which has neither.
    let _ = kept.set_username("");
    let _ = kept.set_password(None);
    Some(kept)
}

pub(super) fn serialize_without<S: Serializer>(job: &Job, to: S) -> Result<S::Ok, S::Error> {
    let mut job = job.clone();
    for file in &mut job.files {
        file.url = without_secrets(&file.url).unwrap_or_else(|| file.url.clone());
    }
    job.serialize(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_a_token_or_a_password_is_withheld() {
        for (url, kept) in [
            (
                "https://s3.example/b/m.gguf?X-Amz-Algorithm=A&X-Amz-Signature=abc",
                "https://s3.example/b/m.gguf",
            ),
            (
                "https://blob.example/m.gguf?sv=2024&se=2026&SIG=abc",
                "https://blob.example/m.gguf",
            ),
            (
                "https://cdn.example/m.gguf?Expires=1&Key-Pair-Id=K&Policy=p",
                "https://cdn.example/m.gguf",
            ),
            (
                "https://x.example/m.gguf?download=1&access_token=abc",
                "https://x.example/m.gguf",
            ),
            (
                "https://user:word@x.example/m.gguf?download=1",
                "https://x.example/m.gguf?download=1",
            ),
            ("https://user@x.example/m.gguf", "https://x.example/m.gguf"),
        ] {
            let withheld = without_secrets(&Url::parse(url).unwrap());
            assert_eq!(withheld.unwrap().as_str(), kept, "{url}");
        }
    }

    #[test]
    fn a_plain_query_is_kept_since_it_names_the_file() {
        for url in [
            "https://x.example/m.gguf",
            "https://x.example/get?file=m.gguf&version=3&download=true",
        ] {
            assert_eq!(without_secrets(&Url::parse(url).unwrap()), None, "{url}");
        }
    }
}
