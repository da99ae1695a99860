//! The tools: what a model reads about each, the request that it is, and its answer as fields and as text.

use crate::Api;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, ToolAnnotations};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use std::{fmt::Write, sync::Arc};
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    SearchDocuments,
    ListCollections,
    Summarize,
    Triage,
    ListModels,
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
    pub(crate) const ALL: [Self; 5] = [
        Self::SearchDocuments,
        Self::ListCollections,
        Self::Summarize,
        Self::Triage,
        Self::ListModels,
    ];

    pub(crate) fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        self.words().0
    }

    /// Returns its name, its title and its description.
    fn words(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::SearchDocuments => (
                "search_documents",
                "Search Documents",
                "Searches the user's own documents by words and by meaning, on this computer. Returns the passages that match best, \
                 each with its file, page and text.",
            ),
            Self::ListCollections => (
                "list_collections",
                "List Document Collections",
                "Lists the collections of the user's documents: their folders and files, and how much of them can be searched.",
            ),
            Self::Summarize => (
                "summarize",
                "Summarize a Text",
                "Summarizes a text of any length with a model of Tierbar. May take minutes, since the model may have to load first.",
            ),
            Self::Triage => (
                "triage",
                "Classify a Message",
                "Classifies a message: its type, how urgent it is, and whether it needs a larger model.",
            ),
            Self::ListModels => (
                "list_models",
                "List Models",
                "Lists what Tierbar can run: tiers with their model and state, chains of tiers, and models. Each name can be the \
                 `model` of the other tools.",
            ),
        }
    }

    pub(crate) fn describe(self) -> rmcp::model::Tool {
        let (name, title, description) = self.words();
        let hints = ToolAnnotations::with_title(title)
            .read_only(true)
            .open_world(false);
        rmcp::model::Tool::new(name, description, object(self.input()))
            .with_title(title)
            .with_raw_output_schema(object(self.output()))
            .with_annotations(hints)
    }

    fn input(self) -> Value {
        let model = json!({
            "type": "string",
            "description": "A tier, a chain, a model's id, or `auto`, as `list_models` lists them. Leave it out for the usual tier.",
        });
        let (fields, required) = match self {
            Self::SearchDocuments => (
                json!({
                    "question": {"type": "string", "description": "A question or words, in the language of the documents."},
                    "collection": {
                        "type": "string",
                        "description": "The collection to search, as `list_collections` names it. Leave it out to search all.",
                    },
                    "count": {
                        "type": "integer", "minimum": 1, "maximum": MOST_PASSAGES, "default": 8,
                        "description": "The number of passages.",
                    },
                }),
                vec!["question"],
            ),
            Self::Summarize => (
                json!({
                    "text": {"type": "string", "description": "The text to summarize."},
                    "words": {
                        "type": "integer", "minimum": 10, "maximum": 2000, "default": 200,
                        "description": "About how many words the summary has.",
                    },
                    "model": model,
                }),
                vec!["text"],
            ),
            Self::Triage => (
                json!({
                    "text": {"type": "string", "description": "The message, such as an e-mail with its headers."},
                    "model": model,
                }),
                vec!["text"],
            ),
            Self::ListCollections | Self::ListModels => (json!({}), Vec::new()),
        };
        json!({"type": "object", "properties": fields, "required": required, "additionalProperties": false})
    }

    fn output(self) -> Value {
        let text = || json!({"type": "string"});
        let number = || json!({"type": "integer"});
        let list_of = |fields: Value, required: Value| json!({"type": "array", "items": {"type": "object", "properties": fields, "required": required}});
        let (fields, required) = match self {
            Self::SearchDocuments => {
                let passage = json!({
                    "file": {"type": "string", "description": "The document's path."},
                    "title": text(),
                    "collection": text(),
                    "headings": {"type": "array", "items": text(), "description": "The headings above the passage, the highest first."},
                    "page": {"type": ["integer", "null"], "description": "The page or slide where it begins, from 1."},
                    "line": {"type": ["integer", "null"], "description": "The line where it begins, from 1."},
                    "text": text(),
                    "score": {"type": "number", "description": "How well it matches; only scores of one search can be compared."},
                });
                let always = json!(["file", "title", "collection", "text"]);
                (
                    json!({
                        "passages": list_of(passage, always),
                        "embedder": {
                            "type": ["string", "null"],
                            "description": "The model that compared meanings; null if only words were compared.",
                        },
                        "reranked": {"type": "boolean", "description": "Whether a reranker has ordered the passages."},
                    }),
                    json!(["passages"]),
                )
            }
            Self::ListCollections => {
                let collection = json!({
                    "name": text(),
                    "sources": {"type": "array", "items": text(), "description": "Paths of the files and folders."},
                    "documents": {"type": "integer", "description": "Documents that can be searched."},
                    "waiting": {"type": "integer", "description": "Documents that are still to be read."},
                    "failed": {"type": "integer", "description": "Files that cannot be read."},
                    "passages": number(),
                });
                let always = json!(["name", "sources", "documents"]);
                (
                    json!({"collections": list_of(collection, always)}),
                    json!(["collections"]),
                )
            }
            Self::Summarize => (
                json!({
                    "summary": text(),
                    "words": number(),
                    "fallback": {
                        "type": "boolean",
                        "description": "Whether these are sentences of the text, chosen by rule, because the model gave no usable summary.",
                    },
                    "tier": {"type": ["string", "null"]},
                    "model": {"type": ["string", "null"]},
                }),
                json!(["summary"]),
            ),
            Self::Triage => (
                json!({
                    "type": text(),
                    "urgency": {"type": "integer", "description": "0 whenever, 1 this week, 2 today, 3 now."},
                    "needs_cloud": {"type": "boolean", "description": "Whether a small model would do badly at it."},
                    "why": {"type": "string", "description": "Why a larger model is needed or not."},
                    "tier": {"type": ["string", "null"]},
                    "model": {"type": ["string", "null"]},
                }),
                json!(["type", "urgency", "needs_cloud"]),
            ),
            Self::ListModels => {
                let model = json!({
                    "name": {"type": "string", "description": "What requests name."},
                    "kind": {"type": "string", "enum": ["tier", "chain", "model", "router"]},
                    "state": {"type": "string", "description": "A tier's state: stopped, starting, ready, busy, stopping or failed."},
                    "model": {"type": "string", "description": "A tier's model."},
                    "steps": {"type": "array", "items": text(), "description": "The tiers that a chain tries, in order."},
                    "tiers": {"type": "array", "items": text(), "description": "The tiers that have this model."},
                    "input_modalities": {"type": "array", "items": text()},
                });
                (
                    json!({"models": list_of(model, json!(["name", "kind"]))}),
                    json!(["models"]),
                )
            }
        };
        json!({"type": "object", "properties": fields, "required": required})
    }

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

fn object(value: Value) -> Arc<JsonObject> {
    let Value::Object(object) = value else {
        return Arc::default();
    };
    Arc::new(object)
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
        text += "\n\n(Sentences of the text, chosen by rule: the model gave no usable summary.)";
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
