//! What the head of an answer must say before a byte of its body is taken.

use super::source::Trouble;
use crate::web::{Answer, told};
use tierbar_core::{Code, Error};

/// What the first answer told of the file; later ones must agree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) total: Option<u64>,
    pub(super) etag: Option<String>,
    pub(super) last_modified: Option<String>,
}

impl Known {
    pub(super) fn of(answer: &Answer) -> Self {
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

    /// For `If-Range`, which takes no weak validator.
    pub(super) fn validator(&self) -> Option<String> {
        let strong = self.etag.clone().filter(|etag| !etag.starts_with("W/"));
        strong.or_else(|| self.last_modified.clone())
    }

    /// Whether `answer` is of another version of the file. What either does not tell is no difference.
    pub(super) fn differs(&self, answer: &Answer) -> bool {
        let other = Self::of(answer);
        let differ = |one: &Option<String>, two: &Option<String>| matches!((one, two), (Some(one), Some(two)) if one != two);
        let sizes = matches!((self.total, other.total), (Some(one), Some(two)) if one != two);
        // A date says less than an ETag, and servers behind one name differ in it.
        let dates = (self.etag.is_none() || other.etag.is_none())
            && differ(&self.last_modified, &other.last_modified);
        sizes || differ(&self.etag, &other.etag) || dates
    }
}

/// A server that does not do what HTTP says.
pub(super) fn wrong(answer: &Answer, what: &str) -> Trouble {
    Trouble::Wrong(
        Error::new(
            Code::Corrupt,
            format!(
                "the server answers wrongly for {}: {what}",
                told(&answer.url)
            ),
        )
        .hint("What has arrived is kept. Try again later, or another source."),
    )
}

fn check_encoding(answer: &Answer) -> Result<(), Trouble> {
    match &answer.content_encoding {
        Some(encoding) => Err(wrong(
            answer,
            &format!("compressed as `{encoding}`, unasked"),
        )),
        None => Ok(()),
    }
}

/// A 206 that was asked for bytes `start..end`.
pub(super) fn check_part(
    answer: &Answer,
    (start, end): (u64, u64),
    known: &Known,
) -> Result<(), Trouble> {
    check_encoding(answer)?;
    let Some(range) = answer.content_range else {
        return Err(wrong(
            answer,
            "part of the file without a valid Content-Range",
        ));
    };
    let (Some((from, to)), Some(_)) = (range.bytes, range.total) else {
        return Err(wrong(answer, "a Content-Range without bytes or size"));
    };
    if known.differs(answer) {
        return Err(Trouble::Changed);
    }
    if from != start || to > end {
        let told = format!("bytes {from}..{to}, where {start}..{end} were asked for");
        return Err(wrong(answer, &told));
    }
    if answer
        .content_length
        .is_some_and(|length| length != to - from)
    {
        return Err(wrong(
            answer,
            "a Content-Length that is not its Content-Range's",
        ));
    }
    Ok(())
}

/// A 200, which is the whole file.
pub(super) fn check_whole(answer: &Answer) -> Result<(), Trouble> {
    check_encoding(answer)
}

/// Whether the first bytes of a file are a web page's: a login, an error, a hotel's network.
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
    Err(Trouble::Fatal(
        Error::new(
            Code::Corrupt,
            format!(
                "{} is a web page, not a file to download",
                told(&answer.url)
            ),
        )
        .hint(
            "Open the address in a browser: it may want a login, or a network may want one first.",
        ),
    ))
}
