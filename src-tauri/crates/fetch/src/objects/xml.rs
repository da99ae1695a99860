//! What an S3 server answers in XML: a page of a list, or an error.

use super::{Object, is_plain};
use quick_xml::de::Deserializer;
use serde::Deserialize;
use std::num::NonZeroUsize;

/// The longest version of an object, in bytes; a hash has a few dozen.
const LONGEST_VERSION: usize = 200;
/// The most parts of an answer that may stand between the objects of a list: they are kept meanwhile.
const MOST_BETWEEN: usize = 64 << 10;
/// The longest code or message of an error, in letters.
const LONGEST_REASON: usize = 300;

#[derive(Debug, Deserialize)]
enum BucketAnswer {
    ListBucketResult(Listing),
    Error(Failure),
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Listing {
    #[serde(default)]
    contents: Vec<Contents>,
    next_continuation_token: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Contents {
    key: Option<String>,
    size: Option<String>,
    #[serde(default, rename = "ETag")]
    version: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Failure {
    code: String,
    #[serde(default)]
    message: String,
}

fn parse(text: &str) -> Option<BucketAnswer> {
    let mut xml = Deserializer::from_str(text);
    xml.event_buffer_size(NonZeroUsize::new(MOST_BETWEEN));
    BucketAnswer::deserialize(&mut xml).ok()
}

#[derive(Debug)]
pub(super) struct Page {
    pub(super) objects: Vec<Object>,
    pub(super) next: Option<String>,
}

/// Reads a `ListBucketResult`. Objects whose names are not ours are left out.
pub(super) fn read_page(text: &str, prefix: &str) -> Option<Page> {
    let Some(BucketAnswer::ListBucketResult(listing)) = parse(text) else {
        return None;
    };
    let object = |entry: Contents| {
        let name = entry.key.as_deref()?.strip_prefix(prefix)?;
        Some(Object {
            name: is_plain(name).then(|| name.to_owned())?,
            bytes: entry.size?.parse().ok()?,
            version: entry.version,
        })
        .filter(|object| object.version.len() <= LONGEST_VERSION)
    };
    Some(Page {
        objects: listing.contents.into_iter().filter_map(object).collect(),
        next: listing.next_continuation_token,
    })
}

pub(super) fn read_failure(text: &str) -> Option<(String, String)> {
    let Some(BucketAnswer::Error(Failure { code, message })) = parse(text) else {
        return None;
    };
    let short = |text: String| text.chars().take(LONGEST_REASON).collect();
    Some((short(code), short(message)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_of_a_list_is_read() {
        let text = r#"<?xml version="1.0" encoding="UTF-8"?>
            <ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
              <Name>b</Name><Prefix>a&amp;b/</Prefix>
              <Contents><Key>a&amp;b/one.tier</Key><Size>17</Size><ETag>&quot;x&quot;</ETag></Contents>
              <Contents><Size>4</Size><Key>a&amp;b/sub/two</Key></Contents>
              <CommonPrefixes><Prefix>a&amp;b/sub/</Prefix></CommonPrefixes>
              <Contents><Key>other/three</Key><Size>4</Size></Contents>
              <Contents><Key>a&amp;b/four</Key><Size>many</Size></Contents>
              <IsTruncated>true</IsTruncated><NextContinuationToken>t/1=</NextContinuationToken>
            </ListBucketResult>"#;
        let page = read_page(text, "a&b/").unwrap();
        let expected = Object {
            name: "one.tier".to_owned(),
            bytes: 17,
            version: "\"x\"".to_owned(),
        };
        assert_eq!(page.objects, [expected]);
        assert_eq!(page.next.as_deref(), Some("t/1="));
    }

    #[test]
    fn what_is_kept_of_a_list_is_bounded() {
        let object = |version: &str| {
            format!("<Contents><Key>a</Key><Size>1</Size><ETag>{version}</ETag></Contents>")
        };
        let list = |inside: String| {
            let text = format!("<ListBucketResult>{inside}</ListBucketResult>");
            Some(read_page(&text, "")?.objects.len())
        };
        let between = |count: usize| list(object("x") + &"<a/>".repeat(count) + &object("x"));
        assert_eq!(between(1000), Some(2));
        assert_eq!(between(MOST_BETWEEN), None);
        let versions = [200, 201].map(|length| object(&"x".repeat(length)));
        assert_eq!(list(versions.concat()), Some(1));
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in [
            "",
            "hello",
            "<html><body>Sign in</body></html>",
            "<ListBucketResult><",
        ] {
            assert!(read_page(text, "").is_none(), "{text}");
        }
        let text = "<Error><Code>NoSuchBucket</Code><Message>It &lt;is&gt; gone</Message></Error>";
        assert_eq!(
            read_failure(text),
            Some(("NoSuchBucket".to_owned(), "It <is> gone".to_owned()))
        );
        assert_eq!(read_failure("<html></html>"), None);
    }
}
