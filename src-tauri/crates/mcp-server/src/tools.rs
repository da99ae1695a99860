//! The tools: the request that each is, and its answer as fields and as text.

use crate::Api;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use std::{fmt::Write, sync::LazyLock};
use tierbar_core::{
    Code, Error,
    documents::{DocumentSource, FoundPassages, MOST_PASSAGES, Passage},
    json::{read_answer, read_field},
};

/// What a tool has found out.
struct ToolAnswer {
    /// As the tool's output schema has it.
    fields: Value,
    text: String,
}

tierbar_core::words! {
    /// What a client can call; `tools.json` describes each.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
    pub enum Tool {
        SearchDocuments = "search_documents",
        ListCollections = "list_collections",
        Summarize = "summarize",
        Triage = "triage",
        ListModels = "list_models",
    }
}

/// What a model reads about each tool.
static DESCRIBED: LazyLock<Vec<rmcp::model::Tool>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("tools.json")).expect("a test parses the same text")
});

/// Returns the description of each tool.
pub(crate) fn described() -> &'static [rmcp::model::Tool] {
    &DESCRIBED
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    question: String,
    collection: Option<String>,
    count: Option<usize>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Summarize {
    text: String,
    words: Option<u32>,
    model: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Triage {
    text: String,
    model: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoArguments {}

impl Tool {
    /// Calls the tool. Errors are results too, in words for the model and its user.
    pub(crate) async fn call<A: Api>(self, api: &A, arguments: JsonObject) -> CallToolResult {
        let answer = match self {
            Self::SearchDocuments => search(api, arguments).await,
            Self::ListCollections => collections(api, arguments).await,
            Self::Summarize => summarize(api, arguments).await,
            Self::Triage => triage(api, arguments).await,
            Self::ListModels => models(api, arguments).await,
        };
        match answer {
            Ok(ToolAnswer { fields, text }) => {
                let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
                result.structured_content = Some(fields);
                result
            }
            Err(error) => CallToolResult::error(vec![ContentBlock::text(error.to_text(": "))]),
        }
    }
}

fn read_arguments<T: DeserializeOwned>(arguments: JsonObject) -> Result<T, Error> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        let message = format!("the arguments are not valid: {error}");
        Error::new(Code::BadRequest, message)
    })
}

async fn search<A: Api>(api: &A, arguments: JsonObject) -> Result<ToolAnswer, Error> {
    let Search {
        question,
        collection,
        count,
    } = read_arguments(arguments)?;
    if let Some(count) = count
        && !(1..=MOST_PASSAGES).contains(&count)
    {
        let message = format!("count is {count}; it must be between 1 and {MOST_PASSAGES}");
        return Err(Error::new(Code::BadRequest, message));
    }
    let wanted = json!({"query": question, "collection": collection, "limit": count});
    let found = api.send("/v1/documents/search", Some(&wanted)).await?;
    let FoundPassages {
        passages,
        embedder,
        reranked,
    } = read_answer(found)?;
    let mut text = String::new();
    for (number, passage) in (1..).zip(&passages) {
        let place = match passage.place() {
            place if place.is_empty() => place,
            place => format!(", {place}"),
        };
        let (title, path) = (&passage.title, &passage.path);
        text += &format!("[{number}] {title}{place} ({path})\n{}\n\n", passage.text);
    }
    if passages.is_empty() {
        text = match collection {
            Some(name) => format!(
                "No passage of the collection \"{name}\" matches. `list_collections` names the collections."
            ),
            None => "No passage matches.".to_owned(),
        };
    }
    let to_fields = |passage: &Passage| {
        json!({
            "file": passage.path,
            "title": passage.title,
            "collection": passage.collection,
            "headings": passage.headings,
            "page": passage.page,
            "line": passage.line,
            "text": passage.text,
            "score": passage.score,
        })
    };
    let passages: Vec<_> = passages.iter().map(to_fields).collect();
    Ok(ToolAnswer {
        fields: json!({"passages": passages, "embedder": embedder, "reranked": reranked}),
        text: text.trim_end().to_owned(),
    })
}

async fn collections<A: Api>(api: &A, arguments: JsonObject) -> Result<ToolAnswer, Error> {
    let NoArguments {} = read_arguments(arguments)?;
    let documents = api.send("/tierbar/v1/documents", None).await?;
    let sources: Vec<DocumentSource> = read_field(documents, "sources")?;
    let mut names: Vec<&str> = Vec::new();
    for source in &sources {
        if !names.contains(&source.collection.as_str()) {
            names.push(&source.collection);
        }
    }
    let mut text = String::new();
    let mut collections = Vec::new();
    for name in names {
        let of_it = sources.iter().filter(|source| source.collection == name);
        let sum = |count: fn(&DocumentSource) -> u64| of_it.clone().map(count).sum::<u64>();
        let paths: Vec<_> = of_it.clone().map(|source| &source.path[..]).collect();
        let (documents, waiting) = (sum(|source| source.indexed), sum(|source| source.waiting));
        let (failed, passages) = (sum(|source| source.failed), sum(|source| source.passages));
        let _ = writeln!(
            text,
            "{name}: {documents} documents with {passages} passages, {waiting} to be read, {failed} that cannot be read ({})",
            paths.join(", ")
        );
        collections.push(json!({
            "name": name,
            "sources": paths,
            "documents": documents,
            "waiting": waiting,
            "failed": failed,
            "passages": passages,
        }));
    }
    if collections.is_empty() {
        text = "There are no documents. The user adds some in Tierbar's window, or with `tierbar documents add`.".to_owned();
    }
    Ok(ToolAnswer {
        fields: json!({"collections": collections}),
        text: text.trim_end().to_owned(),
    })
}

async fn summarize<A: Api>(api: &A, arguments: JsonObject) -> Result<ToolAnswer, Error> {
    let wanted: Summarize = read_arguments(arguments)?;
    let answer = api.send("/v1/summarize", Some(&json!(wanted))).await?;
    let mut text = field(&answer, "summary").to_owned();
    if answer["fallback"] == true {
        let why = match answer["tier"].is_null() {
            true => "the model failed the test of summaries",
            false => "the model gave no usable summary",
        };
        text += &format!("\n\n(Sentences of the text, chosen by rule: {why}.)");
    }
    Ok(ToolAnswer {
        fields: answer,
        text,
    })
}

async fn triage<A: Api>(api: &A, arguments: JsonObject) -> Result<ToolAnswer, Error> {
    let wanted: Triage = read_arguments(arguments)?;
    let answer = api.send("/v1/triage", Some(&json!(wanted))).await?;
    let cloud = match answer["needs_cloud"] == true {
        true => "needs a larger model",
        false => "needs no larger model",
    };
    let (kind, why) = (field(&answer, "type"), field(&answer, "why"));
    let text = format!("{kind}, urgency {} of 3, {cloud}: {why}", answer["urgency"]);
    Ok(ToolAnswer {
        fields: answer,
        text,
    })
}

async fn models<A: Api>(api: &A, arguments: JsonObject) -> Result<ToolAnswer, Error> {
    #[derive(Deserialize)]
    struct Entry {
        id: String,
        tierbar: Map<String, Value>,
    }
    let NoArguments {} = read_arguments(arguments)?;
    let listed = api.send("/v1/models", None).await?;
    let listed: Vec<Entry> = read_field(listed, "data")?;
    let mut text = String::new();
    let mut models = Vec::new();
    for Entry { id, tierbar } in listed {
        let about = |name: &str| tierbar.get(name).and_then(Value::as_str);
        let list = |name: &str| {
            let items = tierbar.get(name).and_then(Value::as_array);
            let items = items.into_iter().flatten().filter_map(Value::as_str);
            items.collect::<Vec<_>>().join(", ")
        };
        let what = match about("kind").unwrap_or_default() {
            "tier" => {
                let [state, model] = ["state", "model"].map(|name| about(name).unwrap_or_default());
                format!("tier, {state}, model {model}")
            }
            "chain" => format!("chain of {}", list("steps")),
            "model" => format!("model of {}", list("tiers")),
            "router" => "chooses a tier for each request".to_owned(),
            kind => kind.to_owned(),
        };
        let _ = writeln!(text, "{id}: {what}");
        let mut model = Map::from_iter([("name".to_owned(), id.into())]);
        model.extend(tierbar);
        models.push(Value::Object(model));
    }
    Ok(ToolAnswer {
        fields: json!({"models": models}),
        text: text.trim_end().to_owned(),
    })
}

fn field<'a>(answer: &'a Value, name: &str) -> &'a str {
    answer[name].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests;
