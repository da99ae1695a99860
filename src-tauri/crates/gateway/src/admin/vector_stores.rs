//! OpenAI's vector stores: the owner's collections of documents, for clients that look for them there. Files come from this machine's
//! disk, so that nothing is uploaded.

use crate::admin::{Admin, AdminState};
use axum::{Json, body::Body, extract::State};
use serde_json::{Map, Value};
use std::convert::Infallible;
use tierbar_core::{Code, Error, bad_request};
use tierbar_dialects::openai::stores::{
    DeletedVectorStore, FilePage, NewVectorStore, Page, StoreQueries, VectorStore, VectorStoreFile,
    VectorStoreFiles, VectorStoreList, VectorStoreResults, VectorStoreSearch, collection_of,
    file_number,
};
use tierbar_http::{Answer, error::Failure, path::Id, request::QueryFields, schema::Refusal};
use tierbar_inference::body;
use tierbar_request_fields::{
    self as fields, Table, VECTOR_STORE, VECTOR_STORE_SEARCH, VECTOR_STORES,
};
use tierbar_store::{FileRange, MOST_ID};

/// Lists the collections of documents as vector stores.
#[utoipa::path(
    get,
    path = "/v1/vector_stores",
    operation_id = "vectorStores",
    reach(Owner, Reads),
    params(Page),
    responses((status = 200, description = "The vector stores", body = VectorStoreList)),
)]
pub(crate) async fn list(
    State(admin): AdminState,
    QueryFields(query): QueryFields<Page>,
) -> Answer<VectorStoreList> {
    let collections = admin.store.document_collections().await?;
    Ok(Json(VectorStoreList::page_of(collections, &query)?))
}

/// Returns the vector store of a collection that has documents. A collection begins with its first file or folder.
#[utoipa::path(
    post,
    path = "/v1/vector_stores",
    operation_id = "createVectorStore",
    reach(Owner, Reads),
    request_body = NewVectorStore,
    responses((status = 200, description = "The vector store", body = VectorStore)),
)]
pub(crate) async fn create(State(admin): AdminState, body: Body) -> Answer<VectorStore> {
    let NewVectorStore { name } = read_body(body, &VECTOR_STORES).await?;
    let name = name.unwrap_or_default();
    let name = name.trim();
    let collections = admin.store.document_collections().await?;
    let known = collections
        .into_iter()
        .find(|collection| collection.name == name);
    let known = known.ok_or_else(|| {
        bad_request(format!("there is no collection \"{name:.100}\": it begins with its first file or folder"))
            .hint("add one with `tierbar documents add PATH --collection NAME` or `POST /tierbar/v1/documents`")
    })?;
    Ok(Json(known.into()))
}

/// Returns a vector store.
#[utoipa::path(
    get,
    path = "/v1/vector_stores/{id}",
    operation_id = "vectorStore",
    reach(Owner, Reads),
    params(("id" = String, Path, description = "A vector store's id")),
    responses((status = 200, description = "The vector store", body = VectorStore)),
)]
pub(crate) async fn get(State(admin): AdminState, Id(id): Id) -> Answer<VectorStore> {
    Ok(Json(store(&admin, &id).await?))
}

/// Returns a vector store, of which nothing can be changed.
#[utoipa::path(
    post,
    path = "/v1/vector_stores/{id}",
    operation_id = "updateVectorStore",
    reach(Owner, Reads),
    params(("id" = String, Path, description = "A vector store's id")),
    request_body = NewVectorStore,
    responses((status = 200, description = "The vector store", body = VectorStore)),
)]
pub(crate) async fn update(
    State(admin): AdminState,
    Id(id): Id,
    body: Body,
) -> Answer<VectorStore> {
    let NewVectorStore { name } = read_body(body, &VECTOR_STORE).await?;
    let store = store(&admin, &id).await?;
    if name.is_some_and(|name| name != store.name) {
        let error = bad_request("`name` cannot be changed: it is the collection's id")
            .hint("remove its files and folders, and add them with the other name");
        return Err(Failure(error));
    }
    Ok(Json(store))
}

/// Forgets a collection's files and folders and their passages. They stay where they are.
#[utoipa::path(
    delete,
    path = "/v1/vector_stores/{id}",
    operation_id = "deleteVectorStore",
    reach(Owner, Writes),
    params(("id" = String, Path, description = "A vector store's id")),
    responses((status = 200, description = "It is forgotten", body = DeletedVectorStore)),
)]
pub(crate) async fn delete(State(admin): AdminState, Id(id): Id) -> Answer<DeletedVectorStore> {
    let collection = admin.jobs.collection(&id).await?.name;
    for source in admin.store.document_sources(None).await? {
        if source.collection == collection {
            admin.documents.remove(source.id).await?;
        }
    }
    Ok(Json(DeletedVectorStore::new(id)))
}

/// Searches a vector store by words and by meaning.
#[utoipa::path(
    post,
    path = "/v1/vector_stores/{id}/search",
    operation_id = "searchVectorStore",
    reach(Owner, Reads, Spends),
    params(("id" = String, Path, description = "A vector store's id")),
    request_body = VectorStoreSearch,
    responses((status = 200, description = "The passages", body = VectorStoreResults)),
)]
pub(crate) async fn search(
    State(admin): AdminState,
    Id(id): Id,
    body: Body,
) -> Answer<VectorStoreResults> {
    let search: VectorStoreSearch = read_body(body, &VECTOR_STORE_SEARCH).await?;
    let StoreQueries {
        texts,
        limit,
        rerank,
    } = search.queries()?;
    let found = admin
        .jobs
        .search_stores(&[id], &texts, limit, rerank)
        .await?;
    Ok(Json(VectorStoreResults::new(texts, found)))
}

/// Lists the files of a vector store.
#[utoipa::path(
    get,
    path = "/v1/vector_stores/{id}/files",
    operation_id = "vectorStoreFiles",
    reach(Owner, Reads),
    params(("id" = String, Path, description = "A vector store's id"), Page),
    responses((status = 200, description = "The files", body = VectorStoreFiles)),
)]
pub(crate) async fn files(
    State(admin): AdminState,
    Id(id): Id,
    QueryFields(query): QueryFields<Page>,
) -> Answer<VectorStoreFiles> {
    let collection = admin.jobs.collection(&id).await?.name;
    let Some(page) = FilePage::of(&query)? else {
        return Ok(Json(VectorStoreFiles::new(&id, Vec::new(), false)));
    };
    let files = admin.store.collection_files(collection, page.range).await?;
    Ok(Json(page.list(&id, files)))
}

/// Returns a file of a vector store.
#[utoipa::path(
    get,
    path = "/v1/vector_stores/{id}/files/{file}",
    operation_id = "vectorStoreFile",
    reach(Owner, Reads),
    params(
        ("id" = String, Path, description = "A vector store's id"),
        ("file" = String, Path, description = "A file's id"),
    ),
    responses((status = 200, description = "The file", body = VectorStoreFile)),
)]
pub(crate) async fn file(
    State(admin): AdminState,
    Id((id, file)): Id<(String, String)>,
) -> Answer<VectorStoreFile> {
    let collection = admin.jobs.collection(&id).await?.name;
    let number = file_number(Some(&file))?.unwrap_or_default();
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
    operation_id = "addVectorStoreFile",
    reach(Owner),
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
    operation_id = "addVectorStoreFiles",
    reach(Owner),
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
    operation_id = "uploadFile",
    reach(Owner),
    responses((status = 400, response = Refusal)),
)]
pub(crate) async fn upload() -> Result<Infallible, Failure> {
    Err(no_upload(""))
}

fn no_upload(store: &str) -> Failure {
    let collection = collection_of(store).unwrap_or_else(|| "NAME".to_owned());
    let error = bad_request(
        "files are not uploaded: a vector store holds files and folders of this machine",
    );
    Failure(error.hint(format!(
        "add them with `tierbar documents add PATH --collection \"{collection}\"` or `POST /tierbar/v1/documents`"
    )))
}

async fn store(admin: &Admin, id: &str) -> Result<VectorStore, Error> {
    Ok(admin.jobs.collection(id).await?.into())
}

async fn read_body<T: serde::de::DeserializeOwned>(body: Body, table: &Table) -> Result<T, Error> {
    let sent: Map<String, Value> = body::object(body).await?;
    fields::check(&[table], &sent)?;
    body::of_value(Value::Object(sent))
}
