//! Checks the head of an answer before its body is read.

use super::source::Trouble;
use crate::web::{Answer, display_url};
use tierbar_core::{Code, Error};

/// The file's properties in the first answer. Later answers must agree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FileProperties {
    pub(super) total: Option<u64>,
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
}

impl FileProperties {
    pub(super) fn from_answer(answer: &Answer) -> Self {
        let total = match answer.status {
            206 => answer.content_range.and_then(|range| range.total),
            _ => answer.content_length,
        };
        Self {
            total,
            etag: answer.etag.clone(),
            last_modified: answer.last_modified.clone(),
        }
    }

    /// Returns the validator for `If-Range`, which must not be a weak one.
    pub(super) fn validator(&self) -> Option<String> {
        let strong = self.etag.clone().filter(|etag| !etag.starts_with("W/"));
        strong.or_else(|| self.last_modified.clone())
    }

    /// Returns whether `answer` is of another version of the file. A missing field is no difference.
    pub(super) fn differs(&self, answer: &Answer) -> bool {
        let other = Self::from_answer(answer);
        let differ = |one: &Option<String>, two: &Option<String>| matches!((one, two), (Some(one), Some(two)) if one != two);
        let sizes = matches!((self.total, other.total), (Some(one), Some(two)) if one != two);
        // Dates count only without ETags: servers behind one name may differ in them.
        let dates = (self.etag.is_none() || other.etag.is_none())
            && differ(&self.last_modified, &other.last_modified);
        sizes || differ(&self.etag, &other.etag) || dates
    }
}

/// The error for an answer that violates HTTP.
pub(super) fn invalid_answer(answer: &Answer, what: &str) -> Trouble {
    let file = display_url(&answer.url);
    let message = format!("the server sent an invalid answer for {file}: {what}");
    Trouble::Wrong(
        Error::new(Code::Corrupt, message)
            .hint("the partial file is kept; try again later, or download from another source"),
    )
}

pub(super) fn check_encoding(answer: &Answer) -> Result<(), Trouble> {
    let Some(encoding) = &answer.content_encoding else {
        return Ok(());
    };
    let what = format!("unrequested compression `{encoding}`");
    Err(invalid_answer(answer, &what))
}

/// Checks a 206 for bytes `start..end`.
pub(super) fn check_part(
    answer: &Answer,
    (start, end): (u64, u64),
    known: &FileProperties,
) -> Result<(), Trouble> {
    check_encoding(answer)?;
    let invalid = |what: &str| Err(invalid_answer(answer, what));
    let Some(range) = answer.content_range else {
        return invalid("a partial answer without a valid Content-Range");
    };
    let (Some((from, to)), Some(_)) = (range.bytes, range.total) else {
        return invalid("a Content-Range without bytes or size");
    };
    if known.differs(answer) {
        return Err(Trouble::Changed);
    }
    if from != start || to > end {
        return invalid(&format!("bytes {from}..{to} instead of {start}..{end}"));
    }
    match answer.content_length {
        Some(length) if length != to - from => {
            invalid("a Content-Length that contradicts its Content-Range")
        }
        _ => Ok(()),
    }
}

/// Checks that the first bytes of a file are not a web page, such as a login, an error or a captive portal.
pub(super) fn check_page(answer: &Answer, first: &[u8]) -> Result<(), Trouble> {
    let text = first.trim_ascii_start();
    let begins = |tag: &str| {
        text.get(..tag.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(tag.as_bytes()))
    };
    let is_html = |kind: &String| kind.to_ascii_lowercase().contains("html");
    let page = begins("<!doctype html")
        || begins("<html")
        || (text.starts_with(b"<") && answer.content_type.as_ref().is_some_and(is_html));
    if !page {
        return Ok(());
    }
    let from = display_url(&answer.url);
    let message = format!("{from} is a web page, not a file to download");
    Err(Trouble::Fatal(Error::new(Code::Corrupt, message).hint(
        "open the address in a browser; the site or the network may require a login",
    )))
}
