//! The files of a vector store.

use super::{Page, file_id, file_of};
use serde::Serialize;
use serde_json::{Map, Value};
use tierbar_core::{
    Error, bad_request,
    documents::{DocumentFile, FileState},
};
use tierbar_store::{FileRange, MOST_ID};
use utoipa::ToSchema;

/// A file of a vector store, in OpenAI's form.
#[derive(Debug, Serialize, ToSchema)]
pub struct VectorStoreFile {
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
    pub fn new(store: &str, file: DocumentFile) -> Self {
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
pub struct VectorStoreFiles {
    #[schema(value_type = String)]
    object: &'static str,
    data: Vec<VectorStoreFile>,
    first_id: Option<String>,
    last_id: Option<String>,
    has_more: bool,
}

/// A page of a store's files, as the database is asked for it.
#[derive(Debug)]
pub struct FilePage {
    /// With one file more than the page has.
    pub range: FileRange,
    /// It is found backwards, from the file that comes after it.
    backwards: bool,
    limit: usize,
}

impl FilePage {
    /// `None` for files in a state that none has.
    ///
    /// # Errors
    /// `BadRequest` for a page that is not valid.
    pub fn of(page: &Page) -> Result<Option<Self>, Error> {
        let limit = page.limit()?;
        // Those just before a file are found from there on, backwards.
        let backwards = page.before.is_some() && page.after.is_none();
        let descending = page.is_descending()?;
        let (after, before) = (
            file_number(page.after.as_deref())?,
            file_number(page.before.as_deref())?,
        );
        let (above, below) = match descending {
            true => (before, after),
            false => (after, before),
        };
        let state = match page.filter.as_deref() {
            None | Some("") => None,
            Some("in_progress") => Some(FileState::Waiting),
            Some("completed") => Some(FileState::Indexed),
            Some("failed") => Some(FileState::Failed),
            Some("cancelled") => return Ok(None),
            Some(_) => {
                let message =
                    "`filter` is not valid; send in_progress, completed, failed or cancelled";
                return Err(bad_request(message));
            }
        };
        Ok(Some(Self {
            range: FileRange {
                above,
                below,
                state,
                descending: descending != backwards,
                limit: limit + 1,
            },
            backwards,
            limit: limit as usize,
        }))
    }

    /// Lists what the database has found.
    pub fn list(&self, store: &str, mut files: Vec<DocumentFile>) -> VectorStoreFiles {
        let has_more = files.len() > self.limit;
        files.truncate(self.limit);
        if self.backwards {
            files.reverse();
        }
        VectorStoreFiles::new(store, files, has_more)
    }
}

impl VectorStoreFiles {
    pub fn new(store: &str, files: Vec<DocumentFile>, has_more: bool) -> Self {
        let data: Vec<_> = files
            .into_iter()
            .map(|file| VectorStoreFile::new(store, file))
            .collect();
        Self {
            object: "list",
            first_id: data.first().map(|file| file.id.clone()),
            last_id: data.last().map(|file| file.id.clone()),
            data,
            has_more,
        }
    }
}

/// Returns the number of a file with this id; `None` for none.
///
/// # Errors
/// `BadRequest` for what is no file's id.
pub fn file_number(id: Option<&str>) -> Result<Option<u64>, Error> {
    let Some(id) = id.filter(|id| !id.is_empty()) else {
        return Ok(None);
    };
    let number = file_of(id).filter(|number| *number <= MOST_ID);
    let wrong = || bad_request(format!("\"{id:.100}\" is not the id of a file"));
    number.map(Some).ok_or_else(wrong)
}
