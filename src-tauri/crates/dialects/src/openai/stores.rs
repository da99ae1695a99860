//! OpenAI's vector stores, as its API has them. Each is a collection of the owner's documents, and its id is the collection's name, so
//! that nothing is kept beside the documents.
//!
//! Shapes: OpenAI's API reference, "Vector stores" and "File search", and the types of its Python package.

mod collections;
mod files;
mod page;
mod search;

pub use collections::{DeletedVectorStore, NewVectorStore, VectorStore, VectorStoreList};
pub use files::{FilePage, VectorStoreFile, VectorStoreFiles, file_number};
pub use page::Page;
pub use search::{StoreQueries, VectorStoreResults, VectorStoreSearch};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Map, Value, json};
use tierbar_core::{Error, TierId, bad_request, documents::Passage};
use tierbar_request_fields::{self as fields, FILE_SEARCH, RANKING_OPTIONS};

/// How many stores, and how many queries, one search takes.
pub(crate) const MOST_AT_ONCE: usize = 8;
/// Of a message, what is searched for.
const LONGEST_QUERY: usize = 4000;
const STORE: &str = "vs_";
const FILE: &str = "file-";

/// Returns the id of a collection.
pub(crate) fn store_id(collection: &str) -> String {
    format!("{STORE}{}", URL_SAFE_NO_PAD.encode(collection))
}

/// Returns the name of the collection with this id; `None` for what is the id of none.
pub fn collection_of(id: &str) -> Option<String> {
    let name = URL_SAFE_NO_PAD.decode(id.strip_prefix(STORE)?).ok()?;
    String::from_utf8(name).ok()
}

pub fn file_id(file: u64) -> String {
    format!("{FILE}{file}")
}

/// Returns a file's number in the store.
pub(crate) fn file_of(id: &str) -> Option<u64> {
    id.strip_prefix(FILE)?.parse().ok()
}

pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// What is known of a passage, in the place of a file's attributes, which documents do not have.
pub fn attributes(passage: &Passage) -> Value {
    let mut attributes = json!({"passage": passage.id});
    for (key, number) in [("page", passage.page), ("line", passage.line)] {
        if let Some(number) = number {
            attributes[key] = json!(number);
        }
    }
    let place = passage.place();
    if !place.is_empty() {
        // As long as an attribute may be.
        attributes["place"] = place.chars().take(512).collect::<String>().into();
    }
    attributes
}

/// Returns whether a reranking model may order what is found. `place`: what the names of the fields begin with.
pub(crate) fn reranks(place: &str, options: Option<&Value>) -> Result<bool, Error> {
    match options {
        None | Some(Value::Null) => Ok(true),
        Some(Value::Object(options)) => {
            fields::check_in(place, &[&RANKING_OPTIONS], options)?;
            Ok(options.get("ranker").is_none_or(|ranker| ranker != "none"))
        }
        Some(_) => {
            let name = place.trim_end_matches('.');
            Err(bad_request(format!("`{name}` must be an object")))
        }
    }
}

/// The passages of a search that a request asks for with the tool `file_search`, for the handler of the request.
#[derive(Debug, Clone)]
pub struct FileSearchResults {
    pub queries: Vec<String>,
    /// The best first.
    pub passages: Vec<Passage>,
    /// Whether the response has the passages, and not only what it cites.
    pub shows_results: bool,
    /// Tiers whose models are known to cite badly.
    pub distrusted: Vec<TierId>,
}

/// The tool `file_search` of a request for a response.
#[derive(Debug, PartialEq, Eq)]
pub struct FileSearch {
    /// The ids of vector stores.
    pub stores: Vec<String>,
    pub query: String,
    pub limit: Option<usize>,
    pub rerank: bool,
    pub shows_results: bool,
}

impl FileSearch {
    /// Returns the search that a request asks for; `None` if it has no such tool, or `tool_choice` excludes it.
    ///
    /// # Errors
    /// `BadRequest` for a tool that cannot be followed.
    pub fn of(request: &Map<String, Value>) -> Result<Option<Self>, Error> {
        let list = |key: &str| {
            let list = request.get(key).and_then(Value::as_array);
            list.map_or(&[][..], Vec::as_slice)
        };
        let tools = list("tools").iter().enumerate();
        let mut searches = tools.filter(|(_, tool)| is_search(tool));
        let Some((index, tool)) = searches.next() else {
            return Ok(None);
        };
        if !is_allowed(request.get("tool_choice")) {
            return Ok(None);
        }
        if searches.next().is_some() {
            return Err(bad_request("`tools` has `file_search` more than once")
                .hint("name all stores in one `vector_store_ids`"));
        }
        let place = format!("tools[{index}].");
        if let Value::Object(tool) = tool {
            fields::check_in(&place, &[&FILE_SEARCH], tool)?;
        }
        let rerank = reranks(
            &format!("{place}ranking_options."),
            tool.get("ranking_options"),
        )?;
        let limit = limit(
            &format!("{place}max_num_results"),
            tool.get("max_num_results"),
        )?;
        let stores = tool["vector_store_ids"].as_array();
        let stores: Option<Vec<_>> = stores
            .into_iter()
            .flatten()
            .map(|id| id.as_str().map(str::to_owned))
            .collect();
        let stores = stores.filter(|stores| (1..=MOST_AT_ONCE).contains(&stores.len()));
        let stores = stores.ok_or_else(|| {
            bad_request(format!(
                "`{place}vector_store_ids` must be a list of 1 to {MOST_AT_ONCE} ids"
            ))
            .hint("`GET /v1/vector_stores` lists them")
        })?;
        let query = question(request.get("input"));
        if query.is_empty() {
            return Err(
                bad_request("`file_search` has no text of the user's to search for")
                    .hint("send a message of the user's in `input`"),
            );
        }
        let shows_results = list("include")
            .iter()
            .any(|one| one == "file_search_call.results");
        Ok(Some(Self {
            stores,
            query,
            limit,
            rerank,
            shows_results,
        }))
    }
}

/// A number of results that is a whole one. Its range is checked with the other fields.
fn limit(name: &str, value: Option<&Value>) -> Result<Option<usize>, Error> {
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let number = value.as_u64().and_then(|number| number.try_into().ok());
    match number {
        Some(number) => Ok(Some(number)),
        None => Err(bad_request(format!("`{name}` must be a whole number"))),
    }
}

fn is_search(tool: &Value) -> bool {
    tool["type"] == "file_search"
}

/// Whether a choice of tools leaves room for the search.
fn is_allowed(choice: Option<&Value>) -> bool {
    let Some(choice) = choice.filter(|choice| !choice.is_null()) else {
        return true;
    };
    if let Some(word) = choice.as_str() {
        return word != "none";
    }
    if choice["type"] == "allowed_tools" {
        let tools = choice["tools"].as_array();
        return choice["mode"] != "none" && tools.into_iter().flatten().any(is_search);
    }
    is_search(choice)
}

/// Returns the text of the user's last message, or its beginning.
fn question(input: Option<&Value>) -> String {
    let text = match input {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => {
            let last = items.iter().rfind(|item| item["role"] == "user");
            match last.map(|item| &item["content"]) {
                Some(Value::String(text)) => text.clone(),
                Some(Value::Array(parts)) => {
                    let texts = parts.iter().filter_map(|part| part["text"].as_str());
                    texts.collect::<Vec<_>>().join("\n")
                }
                _ => String::new(),
            }
        }
        _ => String::new(),
    };
    let text = text.trim();
    text[..text.floor_char_boundary(LONGEST_QUERY)]
        .trim_end()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_collections_name() {
        for name in ["Documents", "Ünïcode / and ? spaces", "a"] {
            let id = store_id(name);
            assert!(
                id.bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)),
                "{id}"
            );
            assert_eq!(collection_of(&id).as_deref(), Some(name));
        }
        for none in ["Documents", "vs_*", "vs_/w"] {
            assert_eq!(collection_of(none), None, "{none}");
        }
        assert_eq!(file_of(&file_id(7)), Some(7));
        assert_eq!(file_of("7"), None);
        assert_eq!(file_name("/a/b.pdf"), "b.pdf");
    }

    fn of(request: Value) -> Result<Option<FileSearch>, Error> {
        FileSearch::of(request.as_object().unwrap())
    }

    fn tool() -> Value {
        json!({"type": "file_search", "vector_store_ids": ["vs_a"], "max_num_results": 3, "ranking_options": {"ranker": "none"}})
    }

    #[test]
    fn the_users_last_words_are_searched() {
        let request = json!({"tools": [{"type": "function", "name": "look"}, tool()], "include": ["file_search_call.results"],
        "input": [
            {"role": "user", "content": "First"},
            {"role": "user", "content": [{"type": "input_text", "text": " When does "}, {"type": "input_image"}, {"type": "input_text", "text": "it end? "}]},
            {"type": "function_call_output", "call_id": "1", "output": "x"},
        ]});
        let wanted = FileSearch {
            stores: vec!["vs_a".to_owned()],
            query: "When does \nit end?".to_owned(),
            limit: Some(3),
            rerank: false,
            shows_results: true,
        };
        assert_eq!(of(request).unwrap(), Some(wanted));
        let long = "é".repeat(LONGEST_QUERY);
        let long = of(json!({"tools": [tool()], "input": long})).unwrap();
        assert_eq!(long.unwrap().query.len(), LONGEST_QUERY);
    }

    #[test]
    fn a_choice_of_tools_may_leave_the_search_out() {
        for (choice, searches) in [
            (json!(null), true),
            (json!("auto"), true),
            (json!("required"), true),
            (json!("none"), false),
            (json!({"type": "file_search"}), true),
            (json!({"type": "function", "name": "look"}), false),
            (
                json!({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "file_search"}]}),
                true,
            ),
            (
                json!({"type": "allowed_tools", "mode": "auto", "tools": []}),
                false,
            ),
        ] {
            let request = json!({"tools": [tool()], "tool_choice": choice, "input": "Hi"});
            assert_eq!(of(request).unwrap().is_some(), searches, "{choice}");
        }
        assert_eq!(of(json!({"input": "Hi"})).unwrap(), None);
    }

    #[test]
    fn what_cannot_be_followed_is_refused_by_name() {
        let refused = |changed: Value| {
            let mut tool = tool();
            tool.as_object_mut()
                .unwrap()
                .extend(changed.as_object().unwrap().clone());
            of(json!({"tools": [tool], "input": "Hi"}))
                .unwrap_err()
                .message
        };
        for (changed, said) in [
            (
                json!({"filters": {"type": "eq", "key": "a", "value": 1}}),
                "`tools[0].filters`",
            ),
            (
                json!({"ranking_options": {"score_threshold": 0.4}}),
                "`tools[0].ranking_options.score_threshold`",
            ),
            (
                json!({"ranking_options": 3}),
                "`tools[0].ranking_options` must",
            ),
            (json!({"max_num_results": 51}), "send 1 to 50"),
            (json!({"max_num_results": "3"}), "a whole number"),
            (json!({"vector_store_ids": []}), "1 to 8 ids"),
            (json!({"vector_store_ids": [7]}), "1 to 8 ids"),
        ] {
            let message = refused(changed.clone());
            assert!(message.contains(said), "{changed}: {message}");
        }
        let twice = json!({"tools": [tool(), tool()], "input": "Hi"});
        assert!(of(twice).unwrap_err().message.contains("more than once"));
        let silent = json!({"tools": [tool()], "input": [{"role": "assistant", "content": "Hi"}]});
        assert!(of(silent).unwrap_err().message.contains("no text"));
    }
}
