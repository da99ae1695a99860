//! The list of models in Anthropic's form, a page at a time.
//!
//! Shapes: Anthropic's API reference, "List models".

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

const PAGE: usize = 20;
const LARGEST_PAGE: usize = 1000;

/// Which part of the list is wanted.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Page {
    limit: Option<usize>,
    after_id: Option<String>,
    before_id: Option<String>,
}

/// Returns a page of entries, which are in OpenAI's form.
pub fn list(entries: &[Value], page: &Page) -> Value {
    let position = |id: &Option<String>| {
        let id = id.as_deref()?;
        entries.iter().position(|entry| entry["id"] == id)
    };
    let limit = page.limit.unwrap_or(PAGE).clamp(1, LARGEST_PAGE);
    let begin = position(&page.after_id).map_or(0, |at| at + 1);
    let (begin, end) = match position(&page.before_id) {
        Some(end) => (end.saturating_sub(limit).max(begin), end),
        None => (begin, entries.len().min(begin + limit)),
    };
    let shown = entries.get(begin..end).unwrap_or_default();
    let has_more = match page.before_id {
        Some(_) => begin > 0,
        None => end < entries.len(),
    };
    let id = |entry: Option<&Value>| entry.map(|entry| entry["id"].clone());
    json!({
        "data": shown.iter().map(one).collect::<Vec<_>>(),
        "has_more": has_more,
        "first_id": id(shown.first()),
        "last_id": id(shown.last()),
    })
}

/// Returns one entry.
pub fn one(entry: &Value) -> Value {
    let created = entry["created"].as_i64();
    let created = created.and_then(|created| Timestamp::from_second(created).ok());
    json!({
        "type": "model",
        "id": entry["id"],
        "display_name": entry["id"],
        "created_at": created.unwrap_or(Timestamp::UNIX_EPOCH).to_string(),
        "tierbar": entry["tierbar"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_in_both_directions() {
        let entries: Vec<_> = ["a", "b", "c", "d", "e"]
            .map(|id| json!({"id": id, "tierbar": {}}))
            .into();
        let shown = |page: Page| {
            let list = list(&entries, &page);
            let ids = list["data"].as_array().unwrap().iter();
            let ids: String = ids.map(|entry| entry["id"].as_str().unwrap()).collect();
            (ids, list["has_more"] == true, list["last_id"].clone())
        };
        let page = |limit, after: Option<&str>, before: Option<&str>| Page {
            limit: Some(limit),
            after_id: after.map(str::to_owned),
            before_id: before.map(str::to_owned),
        };
        for (page, ids, more) in [
            (Page::default(), "abcde", false),
            (page(2, None, None), "ab", true),
            (page(2, Some("b"), None), "cd", true),
            (page(2, Some("d"), None), "e", false),
            (page(2, Some("e"), None), "", false),
            (page(2, None, Some("d")), "bc", true),
            (page(2, None, Some("b")), "a", false),
            (page(9, None, Some("a")), "", false),
            (page(2, Some("b"), Some("e")), "cd", true),
            (page(0, Some("gone"), None), "a", true),
        ] {
            let (found, has_more, last) = shown(page);
            assert_eq!((found.as_str(), has_more), (ids, more));
            assert_eq!(
                last.as_str(),
                ids.char_indices().last().map(|(at, _)| &ids[at..])
            );
        }
    }
}
