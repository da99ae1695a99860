//! AWS Signature Version 4, by which S3 authenticates a request.
//!
//! Source: Amazon's "Authenticating Requests: Using the Authorization Header (AWS Signature Version 4)", whose examples are
//! the tests.

use data_encoding::HEXLOWER;
use hmac::{Hmac, KeyInit, Mac};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use std::fmt::Write;

const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
const PATH: &AsciiSet = &UNRESERVED.remove(b'/');

pub(super) fn encode_path(path: &str) -> String {
    utf8_percent_encode(path, PATH).to_string()
}

/// The query in the order that is signed.
pub(super) fn encode_query(query: &[(&str, &str)]) -> String {
    let encode = |text| utf8_percent_encode(text, UNRESERVED).to_string();
    let mut pairs: Vec<_> = query
        .iter()
        .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
        .collect();
    pairs.sort();
    pairs.join("&")
}

/// SHA-256, in hex.
pub(super) fn hash(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}

#[derive(Debug)]
pub(super) struct Signer<'a> {
    pub(super) access_key: &'a str,
    pub(super) secret: &'a SecretString,
    pub(super) region: &'a str,
}

/// What is signed.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) method: &'a str,
    /// Encoded.
    pub(super) path: &'a str,
    /// Encoded and sorted.
    pub(super) query: &'a str,
    /// Names in lower case, sorted.
    pub(super) headers: &'a [(&'a str, &'a str)],
    /// SHA-256 of the body, in hex.
    pub(super) body: &'a str,
    /// As `20130524T000000Z`.
    pub(super) time: &'a str,
}

impl Signer<'_> {
    /// The value of the `Authorization` header.
    pub(super) fn authorize(&self, request: &Request<'_>) -> String {
        let Request {
            method,
            path,
            query,
            headers,
            body,
            time,
        } = request;
        let names: Vec<_> = headers.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let lines = headers
            .iter()
            .fold(String::new(), |mut lines, (name, value)| {
                let _infallible = writeln!(lines, "{name}:{}", value.trim());
                lines
            });
        let canonical = format!("{method}\n{path}\n{query}\n{lines}\n{names}\n{body}");
        let date = time.get(..8).unwrap_or_default();
        let scope = format!("{date}/{}/s3/aws4_request", self.region);
        let text = format!(
            "AWS4-HMAC-SHA256\n{time}\n{scope}\n{}",
            hash(canonical.as_bytes())
        );
        let start = format!("AWS4{}", self.secret.expose_secret());
        let key = [date, self.region, "s3", "aws4_request"]
            .into_iter()
            .fold(start.into_bytes(), |key, part| mac(&key, part));
        let signature = HEXLOWER.encode(&mac(&key, &text));
        format!(
            "AWS4-HMAC-SHA256 Credential={}/{scope},SignedHeaders={names},Signature={signature}",
            self.access_key
        )
    }
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn signature(
        method: &str,
        path: &str,
        query: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> String {
        let secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".to_owned().into();
        let signer = Signer {
            access_key: "AKIAIOSFODNN7EXAMPLE",
            secret: &secret,
            region: "us-east-1",
        };
        let time = "20130524T000000Z";
        let mut all = vec![
            ("host", "examplebucket.s3.amazonaws.com"),
            ("x-amz-content-sha256", body),
            ("x-amz-date", time),
        ];
        all.extend(headers);
        all.sort_unstable();
        let authorization = signer.authorize(&Request {
            method,
            path,
            query,
            headers: &all,
            body,
            time,
        });
        authorization.rsplit_once('=').unwrap().1.to_owned()
    }

    #[test]
    fn requests_are_signed_as_in_amazons_examples() {
        assert_eq!(
            signature("GET", "/test.txt", "", &[("range", "bytes=0-9")], EMPTY),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
        let put = [
            ("date", "Fri, 24 May 2013 00:00:00 GMT"),
            ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
        ];
        let body = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
        assert_eq!(
            signature("PUT", &encode_path("/test$file.text"), "", &put, body),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"
        );
        let list = encode_query(&[("prefix", "J"), ("max-keys", "2")]);
        assert_eq!(
            signature("GET", "/", &list, &[], EMPTY),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
        );
        assert_eq!(hash(b""), EMPTY);
    }

    #[test]
    fn paths_and_queries_are_encoded() {
        assert_eq!(encode_path("/a b/ü+~"), "/a%20b/%C3%BC%2B~");
        assert_eq!(encode_query(&[("b", "/"), ("a", "x y")]), "a=x%20y&b=%2F");
    }
}
