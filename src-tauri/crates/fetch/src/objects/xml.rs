//! What an S3 server answers in XML: a page of a list, or an error.

use super::{Object, is_plain};
use quick_xml::de::from_str;
use serde::Deserialize;

/// The longest code or message of an error, in letters.
const LONGEST_REASON: usize = 300;

#[derive(Debug, Deserialize)]
enum Answer {
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

/// A page of a list.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) objects: Vec<Object>,
    /// Where the next page begins.
    pub(super) next: Option<String>,
}

/// Reads a `ListBucketResult`. Objects whose names are not ours are left out.
pub(super) fn read_page(text: &str, prefix: &str) -> Option<Page> {
    let Ok(Answer::ListBucketResult(listing)) = from_str(text) else {
        return None;
    };
    let object = |entry: Contents| {
        let name = entry.key.as_deref()?.strip_prefix(prefix)?;
        Some(Object {
            name: is_plain(name).then(|| name.to_owned())?,
            bytes: entry.size?.parse().ok()?,
            version: entry.version,
        })
    };
    Some(Page {
        objects: listing.contents.into_iter().filter_map(object).collect(),
        next: listing.next_continuation_token,
    })
}

/// Reads the code and the message of an `Error`.
pub(super) fn read_failure(text: &str) -> Option<(String, String)> {
    let Ok(Answer::Error(Failure { code, message })) = from_str(text) else {
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
