//! Which part of a list a request wants.

use serde::Deserialize;
use tierbar_core::{Error, bad_request};
use utoipa::IntoParams;

const USUAL_FILES: u32 = 20;
const MOST_FILES: u32 = 100;

/// Which part of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Page {
    /// The id of the last one that is known.
    pub(super) after: Option<String>,
    /// The id of the first one that is known.
    pub(super) before: Option<String>,
    /// How many, at most 100; 20 without it.
    pub(super) limit: Option<u32>,
    /// `asc` or `desc`, which is the default.
    pub(super) order: Option<String>,
    /// Of files, only those in this state: `in_progress`, `completed`, `failed` or `cancelled`.
    pub(super) filter: Option<String>,
}

impl Page {
    pub(super) fn limit(&self) -> Result<u32, Error> {
        let limit = self.limit.unwrap_or(USUAL_FILES);
        if (1..=MOST_FILES).contains(&limit) {
            return Ok(limit);
        }
        Err(bad_request(format!(
            "`limit` is {limit}; send 1 to {MOST_FILES}"
        )))
    }

    pub(super) fn is_descending(&self) -> Result<bool, Error> {
        match self.order.as_deref() {
            None | Some("" | "desc") => Ok(true),
            Some("asc") => Ok(false),
            Some(_) => Err(bad_request("`order` is not valid; send asc or desc")),
        }
    }
}

/// Cuts a page out of a whole list in its order. Returns it, and whether there is more in its direction.
pub(super) fn cut<T>(
    all: Vec<T>,
    page: &Page,
    id: impl Fn(&T) -> String,
) -> Result<(Vec<T>, bool), Error> {
    let limit = page.limit()? as usize;
    let at = |wanted: &str| all.iter().position(|one| id(one) == wanted);
    let begin = match page.after.as_deref() {
        Some(known) => at(known).map(|place| place + 1),
        None => Some(0),
    };
    let end = match page.before.as_deref() {
        Some(known) => at(known),
        None => Some(all.len()),
    };
    let (Some(begin), Some(end)) = (begin, end) else {
        return Err(bad_request("`after` or `before` is not an id in this list"));
    };
    let count = end.saturating_sub(begin);
    // Without a beginning, those just before the end.
    let skipped = match page.after.is_none() && page.before.is_some() {
        true => begin + count.saturating_sub(limit),
        false => begin,
    };
    let cut = all.into_iter().skip(skipped).take(count.min(limit));
    Ok((cut.collect(), count > limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(after: Option<&str>, before: Option<&str>, limit: u32) -> Page {
        Page {
            after: after.map(str::to_owned),
            before: before.map(str::to_owned),
            limit: Some(limit),
            order: None,
            filter: None,
        }
    }

    #[test]
    fn a_page_is_what_stands_behind_or_before_an_id() {
        let cut_page = |asked: Page| cut(vec!["a", "b", "c", "d"], &asked, |one| (*one).to_owned());
        for (asked, wanted, more) in [
            (asked(None, None, 2), vec!["a", "b"], true),
            (asked(Some("b"), None, 2), vec!["c", "d"], false),
            (asked(None, Some("d"), 2), vec!["b", "c"], true),
            (asked(Some("a"), Some("d"), 9), vec!["b", "c"], false),
            (asked(Some("d"), Some("a"), 9), vec![], false),
        ] {
            assert_eq!(cut_page(asked).unwrap(), (wanted, more));
        }
        assert!(cut_page(asked(Some("x"), None, 2)).is_err());
        assert!(cut_page(asked(None, None, 0)).is_err());
    }
}
