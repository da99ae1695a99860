//! A vector store: a collection of documents.

use super::{Page, page::cut, store_id};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tierbar_core::Error;
use tierbar_store::Collection;
use utoipa::ToSchema;

/// A collection of documents, in OpenAI's form.
#[derive(Debug, Serialize, ToSchema)]
pub struct VectorStore {
    pub id: String,
    #[schema(value_type = String)]
    object: &'static str,
    /// The collection's name.
    pub name: String,
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
pub struct VectorStoreList {
    #[schema(value_type = String)]
    object: &'static str,
    data: Vec<VectorStore>,
    first_id: Option<String>,
    last_id: Option<String>,
    has_more: bool,
}

impl VectorStoreList {
    /// Returns a page of the collections, which are by name.
    ///
    /// # Errors
    /// `BadRequest` for a page that is not valid.
    pub fn page_of(collections: Vec<Collection>, page: &Page) -> Result<Self, Error> {
        let mut stores: Vec<VectorStore> = collections.into_iter().map(VectorStore::from).collect();
        // `desc`, the default, keeps their order.
        if !page.is_descending()? {
            stores.reverse();
        }
        let (data, has_more) = cut(stores, page, |store| store.id.clone())?;
        Ok(Self {
            object: "list",
            first_id: data.first().map(|store| store.id.clone()),
            last_id: data.last().map(|store| store.id.clone()),
            data,
            has_more,
        })
    }
}

/// A vector store to be returned or named. Other fields of OpenAI's API are refused where they would change something.
#[derive(Debug, Deserialize, ToSchema)]
pub struct NewVectorStore {
    /// The name of a collection that has documents.
    pub name: Option<String>,
}

/// What has become of a vector store.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeletedVectorStore {
    id: String,
    #[schema(value_type = String)]
    object: &'static str,
    deleted: bool,
}

impl DeletedVectorStore {
    pub fn new(id: String) -> Self {
        Self {
            id,
            object: "vector_store.deleted",
            deleted: true,
        }
    }
}
