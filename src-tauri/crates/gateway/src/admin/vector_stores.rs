//! OpenAI's vector stores: the owner's collections of documents, for clients that look for them there. Files come from this machine's
//! disk, so that nothing is uploaded.

use crate::admin::{Admin, models::read_query};
use axum::{
    Json,
    body::Body,
    extract::{Query, State, rejection::QueryRejection},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{convert::Infallible, sync::Arc};
use tierbar_core::{
    Code, Error,
    documents::{DocumentFile, FileState, Passage},
};
use tierbar_dialects::openai::stores::{
    MOST_AT_ONCE, attributes, collection_of, file_id, file_name, file_of, reranks, store_id,
};
use tierbar_http::{
    error::Failure,
    path::{Id, Ids},
    schema::{Errors, Refusal},
};
use tierbar_inference::body;
use tierbar_jobs::documents::MOST_ID;
use tierbar_request_fields::{
    self as fields, Table, VECTOR_STORE, VECTOR_STORE_SEARCH, VECTOR_STORES,
};
use tierbar_store::{Collection, FileRange};
use utoipa::{IntoParams, ToSchema};

const USUAL_RESULTS: usize = 10;
const USUAL_FILES: u32 = 20;
const MOST_FILES: u32 = 100;

/// A collection of documents, in OpenAI's form.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VectorStore {
    id: String,
    #[schema(value_type = String)]
    object: &'static str,
    /// The collection's name.
    name: String,
    /// `in_progress` while files are still to be read.
    #[schema(value_type = String)]
    status: &'static str,
    /// When the first of its files and folders was added, in seconds since 1970.
    created_at: u64,
    #[schema(inline)]
    file_counts: FileCounts,
    /// The files' sizes on disk.
    usage_bytes: u64,
    /// Always empty.
    #[schema(value_type = Object)]
    metadata: Map<String, Value>,
}

#[derive(Debug, Serialize, ToSchema)]
struct FileCounts {
    in_progress: u64,
    completed: u64,
    failed: u64,
    cancelled: u64,
    total: u64,
}

impl From<Collection> for VectorStore {
    fn from(collection: Collection) -> Self {
        let Collection {
            name,
            indexed,
            waiting,
            failed,
            size_bytes,
            added_at,
        } = collection;
        Self {
            id: store_id(&name),
            object: "vector_store",
            name,
            status: if waiting > 0 {
                "in_progress"
            } else {
                "completed"
            },
            created_at: added_at,
            file_counts: FileCounts {
                in_progress: waiting,
                completed: indexed,
                failed,
                cancelled: 0,
                total: indexed + waiting + failed,
            },
            usage_bytes: size_bytes,
            metadata: Map::new(),
        }
    }
}

/// Vector stores.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VectorStoreList {
    #[schema(value_type = String)]
    object: &'static str,
    data: Vec<VectorStore>,
    #[schema(required = true)]
    first_id: Option<String>,
    #[schema(required = true)]
    last_id: Option<String>,
    has_more: bool,
}

/// Which part of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Page {
    /// The id of the last one that is known.
    #[serde(default)]
    after: Option<String>,
    /// The id of the first one that is known.
    #[serde(default)]
    before: Option<String>,
    /// How many, at most 100; 20 without it.
    #[serde(default)]
    limit: Option<u32>,
    /// `asc` or `desc`, which is the default.
    #[serde(default)]
    order: Option<String>,
    /// Of files, only those in this state: `in_progress`, `completed`, `failed` or `cancelled`.
    #[serde(default)]
    filter: Option<String>,
}

impl Page {
    /// # Errors
    /// `BadRequest` for a number that is out of range.
    fn limit(&self) -> Result<u32, Error> {
        let limit = self.limit.unwrap_or(USUAL_FILES);
        if (1..=MOST_FILES).contains(&limit) {
            return Ok(limit);
        }
        Err(bad(format!("`limit` is {limit}; send 1 to {MOST_FILES}")))
    }

    /// # Errors
    /// `BadRequest` for another word.
    fn is_descending(&self) -> Result<bool, Error> {
        match self.order.as_deref() {
            None | Some("" | "desc") => Ok(true),
            Some("asc") => Ok(false),
            Some(_) => Err(bad("`order` is not valid; send asc or desc")),
        }
    }
}

/// Cuts a page out of a whole list in its order. Returns it, and whether there is more in its direction.
fn page<T>(all: Vec<T>, page: &Page, id: impl Fn(&T) -> String) -> Result<(Vec<T>, bool), Error> {
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
        return Err(bad("`after` or `before` is not an id in this list"));
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

/// Lists the collections of documents as vector stores.
#[utoipa::path(
    get,
    path = "/v1/vector_stores",
    tag = "documents",
    operation_id = "vectorStores",
    security(("token" = [])),
    params(Page),
    responses((status = 200, description = "The vector stores", body = VectorStoreList), Errors),
)]
pub(crate) async fn list(
    State(admin): State<Arc<Admin>>,
    query: Result<Query<Page>, QueryRejection>,
) -> Result<Json<VectorStoreList>, Failure> {
    let query = read_query(query)?;
    let collections = admin.store.document_collections().await?;
    let mut stores: Vec<VectorStore> = collections.into_iter().map(VectorStore::from).collect();
    // They are by name. `desc`, the default, keeps that order.
    if !query.is_descending()? {
        stores.reverse();
    }
    let (data, has_more) = page(stores, &query, |store| store.id.clone())?;
    Ok(Json(VectorStoreList {
        object: "list",
        first_id: data.first().map(|store| store.id.clone()),
        last_id: data.last().map(|store| store.id.clone()),
        data,
        has_more,
    }))
}

/// A vector store to be returned or named. Other fields of OpenAI's API are refused where they would change something.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct NewVectorStore {
    /// The name of a collection that has documents.
    #[serde(default)]
    name: Option<String>,
}

/// Returns the vector store of a collection that has documents. A collection begins with its first file or folder.
#[utoipa::path(
    post,
    path = "/v1/vector_stores",
    tag = "documents",
    operation_id = "createVectorStore",
    security(("token" = [])),
    request_body = NewVectorStore,
    responses((status = 200, description = "The vector store", body = VectorStore), Errors),
)]
pub(crate) async fn create(
    State(admin): State<Arc<Admin>>,
    body: Body,
) -> Result<Json<VectorStore>, Failure> {
    let NewVectorStore { name } = read(body, &VECTOR_STORES).await?;
    let name = name.unwrap_or_default();
    let name = name.trim();
    let collections = admin.store.document_collections().await?;
    let known = collections
        .into_iter()
        .find(|collection| collection.name == name);
    let known = known.ok_or_else(|| {
        let shown: String = name.chars().take(100).collect();
        bad(format!("there is no collection \"{shown}\": it begins with its first file or folder"))
            .hint("add one with `tierbar documents add PATH --collection NAME` or `POST /tierbar/v1/documents`")
    })?;
    Ok(Json(known.into()))
}

/// Returns a vector store.
#[utoipa::path(
    get,
    path = "/v1/vector_stores/{id}",
    tag = "documents",
    operation_id = "vectorStore",
    security(("token" = [])),
    params(("id" = String, Path, description = "A vector store's id")),
    responses((status = 200, description = "The vector store", body = VectorStore), Errors),
)]
pub(crate) async fn get(
    State(admin): State<Arc<Admin>>,
    Id(id): Id,
) -> Result<Json<VectorStore>, Failure> {
    Ok(Json(store(&admin, &id).await?))
}

/// Returns a vector store, of which nothing can be changed.
#[utoipa::path(
    post,
    path = "/v1/vector_stores/{id}",
    tag = "documents",
    operation_id = "updateVectorStore",
    security(("token" = [])),
    params(("id" = String, Path, description = "A vector store's id")),
    request_body = NewVectorStore,
    responses((status = 200, description = "The vector store", body = VectorStore), Errors),
)]
pub(crate) async fn update(
    State(admin): State<Arc<Admin>>,
    Id(id): Id,
    body: Body,
) -> Result<Json<VectorStore>, Failure> {
    let NewVectorStore { name } = read(body, &VECTOR_STORE).await?;
    let store = store(&admin, &id).await?;
    if name.is_some_and(|name| name != store.name) {
        let error = bad("`name` cannot be changed: it is the collection's id")
            .hint("remove its files and folders, and add them with the other name");
        return Err(Failure(error));
    }
    Ok(Json(store))
}

/// What has become of a vector store.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeletedVectorStore {
    id: String,
    #[schema(value_type = String)]
    object: &'static str,
    deleted: bool,
}

/// Forgets a collection's files and folders and their passages. They stay where they are.
#[utoipa::path(
    delete,
    path = "/v1/vector_stores/{id}",
    tag = "documents",
    operation_id = "deleteVectorStore",
    security(("token" = [])),
    params(("id" = String, Path, description = "A vector store's id")),
    responses((status = 200, description = "It is forgotten", body = DeletedVectorStore), Errors),
)]
pub(crate) async fn delete(
    State(admin): State<Arc<Admin>>,
    Id(id): Id,
) -> Result<Json<DeletedVectorStore>, Failure> {
    let collection = admin.jobs.collection(&id).await?.name;
    for source in admin.store.document_sources(None).await? {
        if source.collection == collection {
            admin.documents.remove(source.id).await?;
        }
    }
    Ok(Json(DeletedVectorStore {
        id,
        object: "vector_store.deleted",
        deleted: true,
    }))
}

/// What to search a vector store for.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct VectorStoreSearch {
    query: Queries,
    /// At most 50; 10 without it.
    #[serde(default)]
    max_num_results: Option<usize>,
    /// `ranker`: `auto`, or `none` for a search without the reranking model.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    ranking_options: Option<Value>,
}

/// A text, or up to 8.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum Queries {
    One(String),
    Several(Vec<String>),
}

/// The passages that match best.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VectorStoreResults {
    #[schema(value_type = String)]
    object: &'static str,
    search_query: Vec<String>,
    data: Vec<VectorStoreResult>,
    /// Always false: there is one page.
    has_more: bool,
    #[schema(required = true)]
    next_page: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VectorStoreResult {
    file_id: String,
    filename: String,
    /// How well it matches. Scores of one search can be compared, and no others.
    score: f32,
    /// The passage's id, page, line and place.
    #[schema(value_type = Object)]
    attributes: Value,
    #[schema(inline)]
    content: Vec<ResultText>,
}

#[derive(Debug, Serialize, ToSchema)]
struct ResultText {
    #[serde(rename = "type")]
    #[schema(value_type = String)]
    kind: &'static str,
    text: String,
}

impl From<Passage> for VectorStoreResult {
    fn from(passage: Passage) -> Self {
        Self {
            file_id: file_id(passage.file),
            filename: file_name(&passage.path).to_owned(),
            score: passage.score,
            attributes: attributes(&passage),
            content: vec![ResultText {
                kind: "text",
                text: passage.text,
            }],
        }
    }
}

/// Searches a vector store by words and by meaning.
#[utoipa::path(
    post,
    path = "/v1/vector_stores/{id}/search",
    tag = "documents",
    operation_id = "searchVectorStore",
    security(("token" = [])),
    params(("id" = String, Path, description = "A vector store's id")),
    request_body = VectorStoreSearch,
    responses((status = 200, description = "The passages", body = VectorStoreResults), Errors),
)]
pub(crate) async fn search(
    State(admin): State<Arc<Admin>>,
    Id(id): Id,
    body: Body,
) -> Result<Json<VectorStoreResults>, Failure> {
    let search: VectorStoreSearch = read(body, &VECTOR_STORE_SEARCH).await?;
    let rerank = reranks("ranking_options.", search.ranking_options.as_ref())?;
    let queries = match search.query {
        Queries::One(query) => vec![query],
        Queries::Several(queries) => queries,
    };
    if !(1..=MOST_AT_ONCE).contains(&queries.len()) {
        let count = queries.len();
        let error = bad(format!(
            "`query` has {count} texts; send 1 to {MOST_AT_ONCE}"
        ));
        return Err(Failure(error));
    }
    let limit = search.max_num_results.unwrap_or(USUAL_RESULTS);
    let stores = [id];
    let found = admin
        .jobs
        .search_stores(&stores, &queries, limit, rerank)
        .await?;
    Ok(Json(VectorStoreResults {
        object: "vector_store.search_results.page",
        search_query: queries,
        data: found.into_iter().map(VectorStoreResult::from).collect(),
        has_more: false,
        next_page: None,
    }))
}

/// A file of a vector store, in OpenAI's form.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VectorStoreFile {
    id: String,
    #[schema(value_type = String)]
    object: &'static str,
    vector_store_id: String,
    /// `in_progress`, `completed` or `failed`.
    #[schema(value_type = String)]
    status: &'static str,
    /// When it was first seen in a folder, or added, in seconds since 1970.
    created_at: u64,
    /// Its size on disk.
    usage_bytes: u64,
    #[schema(required = true, inline)]
    last_error: Option<FileProblem>,
    /// Its path, and its title if it has one.
    #[schema(value_type = Object)]
    attributes: Map<String, Value>,
}

#[derive(Debug, Serialize, ToSchema)]
struct FileProblem {
    #[schema(value_type = String)]
    code: &'static str,
    message: String,
}

impl VectorStoreFile {
    fn new(store: &str, file: DocumentFile) -> Self {
        let mut attributes = Map::new();
        let known = [("path", Some(file.path)), ("title", file.title)];
        for (key, value) in known {
            if let Some(value) = value {
                attributes.insert(key.to_owned(), value.into());
            }
        }
        let status = match file.state {
            FileState::Waiting => "in_progress",
            FileState::Indexed => "completed",
            FileState::Failed => "failed",
        };
        let problem = file.notice.filter(|_| file.state == FileState::Failed);
        Self {
            id: file_id(file.id),
            object: "vector_store.file",
            vector_store_id: store.to_owned(),
            status,
            created_at: file.added_at,
            usage_bytes: file.size_bytes,
            last_error: problem.map(|message| FileProblem {
                code: "invalid_file",
                message,
            }),
            attributes,
        }
    }
}

/// Files of a vector store.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct VectorStoreFiles {
    #[schema(value_type = String)]
    object: &'static str,
    data: Vec<VectorStoreFile>,
    #[schema(required = true)]
    first_id: Option<String>,
    #[schema(required = true)]
    last_id: Option<String>,
    has_more: bool,
}

/// Lists the files of a vector store.
#[utoipa::path(
    get,
    path = "/v1/vector_stores/{id}/files",
    tag = "documents",
    operation_id = "vectorStoreFiles",
    security(("token" = [])),
    params(("id" = String, Path, description = "A vector store's id"), Page),
    responses((status = 200, description = "The files", body = VectorStoreFiles), Errors),
)]
pub(crate) async fn files(
    State(admin): State<Arc<Admin>>,
    Id(id): Id,
    query: Result<Query<Page>, QueryRejection>,
) -> Result<Json<VectorStoreFiles>, Failure> {
    let query = read_query(query)?;
    let collection = admin.jobs.collection(&id).await?.name;
    let limit = query.limit()?;
    // Those just before a file are found from there on, backwards.
    let backwards = query.before.is_some() && query.after.is_none();
    let descending = query.is_descending()?;
    let (after, before) = (
        cursor(query.after.as_deref())?,
        cursor(query.before.as_deref())?,
    );
    let (above, below) = match descending {
        true => (before, after),
        false => (after, before),
    };
    let state = match query.filter.as_deref() {
        None | Some("") => None,
        Some("in_progress") => Some(FileState::Waiting),
        Some("completed") => Some(FileState::Indexed),
        Some("failed") => Some(FileState::Failed),
        Some("cancelled") => return Ok(Json(file_list(&id, Vec::new(), false))),
        Some(_) => {
            let message = "`filter` is not valid; send in_progress, completed, failed or cancelled";
            return Err(Failure(bad(message)));
        }
    };
    let range = FileRange {
        above,
        below,
        state,
        descending: descending != backwards,
        limit: limit + 1,
    };
    let mut files = admin.store.collection_files(collection, range).await?;
    let has_more = files.len() > limit as usize;
    files.truncate(limit as usize);
    if backwards {
        files.reverse();
    }
    Ok(Json(file_list(&id, files, has_more)))
}

fn file_list(store: &str, files: Vec<DocumentFile>, has_more: bool) -> VectorStoreFiles {
    let data: Vec<_> = files
        .into_iter()
        .map(|file| VectorStoreFile::new(store, file))
        .collect();
    VectorStoreFiles {
        object: "list",
        first_id: data.first().map(|file| file.id.clone()),
        last_id: data.last().map(|file| file.id.clone()),
        data,
        has_more,
    }
}

/// Returns a file of a vector store.
#[utoipa::path(
    get,
    path = "/v1/vector_stores/{id}/files/{file}",
    tag = "documents",
    operation_id = "vectorStoreFile",
    security(("token" = [])),
    params(
        ("id" = String, Path, description = "A vector store's id"),
        ("file" = String, Path, description = "A file's id"),
    ),
    responses((status = 200, description = "The file", body = VectorStoreFile), Errors),
)]
pub(crate) async fn file(
    State(admin): State<Arc<Admin>>,
    Ids(id, file): Ids,
) -> Result<Json<VectorStoreFile>, Failure> {
    let collection = admin.jobs.collection(&id).await?.name;
    let number = cursor(Some(&file))?.unwrap_or_default();
    // One file of the collection, by its id.
    let range = FileRange {
        above: number.checked_sub(1),
        below: Some(number.saturating_add(1).min(MOST_ID)),
        limit: 1,
        ..FileRange::default()
    };
    let found = admin.store.collection_files(collection, range).await?;
    let found = found.into_iter().find(|found| found.id == number);
    let found = found.ok_or_else(|| {
        let message = format!("the vector store has no file \"file-{number}\"");
        Error::new(Code::NotFound, message)
    })?;
    Ok(Json(VectorStoreFile::new(&id, found)))
}

/// Adds a file that was uploaded. Not supported: documents are files of this machine.
#[utoipa::path(
    post,
    path = "/v1/vector_stores/{id}/files",
    tag = "documents",
    operation_id = "addVectorStoreFile",
    security(("token" = [])),
    params(("id" = String, Path, description = "A vector store's id")),
    responses((status = 400, response = Refusal)),
)]
pub(crate) async fn add_file(Id(id): Id) -> Result<Infallible, Failure> {
    Err(no_upload(&id))
}

/// Adds files that were uploaded. Not supported: documents are files of this machine.
#[utoipa::path(
    post,
    path = "/v1/vector_stores/{id}/file_batches",
    tag = "documents",
    operation_id = "addVectorStoreFiles",
    security(("token" = [])),
    params(("id" = String, Path, description = "A vector store's id")),
    responses((status = 400, response = Refusal)),
)]
pub(crate) async fn add_files(Id(id): Id) -> Result<Infallible, Failure> {
    Err(no_upload(&id))
}

/// Uploads a file. Not supported: documents are files of this machine.
#[utoipa::path(
    post,
    path = "/v1/files",
    tag = "documents",
    operation_id = "uploadFile",
    security(("token" = [])),
    responses((status = 400, response = Refusal)),
)]
pub(crate) async fn upload() -> Result<Infallible, Failure> {
    Err(no_upload(""))
}

fn no_upload(store: &str) -> Failure {
    let collection = collection_of(store).unwrap_or_else(|| "NAME".to_owned());
    let error =
        bad("files are not uploaded: a vector store holds files and folders of this machine");
    Failure(error.hint(format!(
        "add them with `tierbar documents add PATH --collection \"{collection}\"` or `POST /tierbar/v1/documents`"
    )))
}

/// # Errors
/// `NotFound` for a store that is not there.
async fn store(admin: &Admin, id: &str) -> Result<VectorStore, Error> {
    Ok(admin.jobs.collection(id).await?.into())
}

/// Reads a request whose fields the table has.
async fn read<T: serde::de::DeserializeOwned>(body: Body, table: &Table) -> Result<T, Error> {
    let sent: Map<String, Value> = body::object(body).await?;
    fields::check(&[table], &sent)?;
    body::of_value(Value::Object(sent))
}

/// # Errors
/// `BadRequest` for what is no file's id.
fn cursor(id: Option<&str>) -> Result<Option<u64>, Error> {
    let Some(id) = id.filter(|id| !id.is_empty()) else {
        return Ok(None);
    };
    let number = file_of(id).filter(|number| *number <= MOST_ID);
    number.map(Some).ok_or_else(|| {
        let shown: String = id.chars().take(100).collect();
        bad(format!("\"{shown}\" is not the id of a file"))
    })
}

fn bad(message: impl Into<String>) -> Error {
    Error::new(Code::BadRequest, message)
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
        let cut = |asked: Page| page(vec!["a", "b", "c", "d"], &asked, |one| (*one).to_owned());
        for (asked, wanted, more) in [
            (asked(None, None, 2), vec!["a", "b"], true),
            (asked(Some("b"), None, 2), vec!["c", "d"], false),
            (asked(None, Some("d"), 2), vec!["b", "c"], true),
            (asked(Some("a"), Some("d"), 9), vec!["b", "c"], false),
            (asked(Some("d"), Some("a"), 9), vec![], false),
        ] {
            assert_eq!(cut(asked).unwrap(), (wanted, more));
        }
        assert!(cut(asked(Some("x"), None, 2)).is_err());
        assert!(cut(asked(None, None, 0)).is_err());
    }
}
