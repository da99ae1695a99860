//! Documents that answers are drawn from: files and folders of this machine, and the passages that are found in them.

pub mod vectors;

use crate::{ModelId, TierId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The collection of what is added without one.
pub const DEFAULT_COLLECTION: &str = "Documents";
/// The most passages that a search returns.
pub const MOST_PASSAGES: usize = 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DocumentKind {
    Pdf,
    Docx,
    Pptx,
    Markdown,
    Html,
    Text,
    Code,
    Mail,
}

/// The text of a file, as a model gets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FileText {
    pub text: String,
    /// What of it is missing or may be wrong, in sentences.
    pub notice: Option<String>,
}

/// A file or folder that was added, and what has become of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DocumentSource {
    pub id: u64,
    pub path: String,
    pub collection: String,
    pub is_folder: bool,
    /// It is not there now, such as on a disconnected disk. Its passages stay.
    pub is_missing: bool,
    /// Why it cannot be read now, in a sentence, such as for a folder that the system does not let Tierbar read. Its passages stay.
    pub problem: Option<String>,
    /// Files that are searched.
    pub indexed: u64,
    /// Files that are still to be read.
    pub waiting: u64,
    /// Files that cannot be read; `GET /tierbar/v1/documents/{source}/files` says why.
    pub failed: u64,
    /// Files that are searched and have a `notice`, such as pages that are pictures.
    pub noticed: u64,
    /// Whether a model of this machine writes down the text of pages that are pictures.
    pub read_pictures: bool,
    pub passages: u64,
    /// Passages that are found by their words alone: those of documents that the embedder has not read to their end, those that it
    /// refuses, and all of them if there is no embedder.
    pub without_vectors: u64,
    /// What of a folder is not searched, how much of it and why, in a sentence; `null` before the first look, and if that is nothing.
    pub left_out: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileState {
    Waiting,
    Indexed,
    Failed,
}

/// A file of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DocumentFile {
    pub id: u64,
    pub source: u64,
    pub path: String,
    pub state: FileState,
    pub kind: Option<DocumentKind>,
    pub title: Option<String>,
    /// Pages or slides.
    pub pages: Option<u32>,
    pub passages: u64,
    pub size_bytes: u64,
    /// Why it cannot be read, or what of it is not read or may be wrong.
    pub notice: Option<String>,
    /// When it was first seen in its source, in seconds since 1970.
    pub added_at: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum IndexingState {
    /// Everything is read.
    #[default]
    Idle,
    Indexing,
    Paused,
}

/// What the indexer does.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Indexing {
    pub state: IndexingState,
    /// The file that is being read.
    pub file: Option<String>,
    /// Files read since there was last nothing to do.
    pub done: u64,
    pub waiting: u64,
    /// The model that reads passages; without one, they are found by their words alone.
    pub embedder: Option<String>,
    /// What keeps it from going on, in a sentence.
    pub problem: Option<String>,
}

/// All documents.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Documents {
    pub sources: Vec<DocumentSource>,
    pub indexing: Indexing,
}

/// A passage of a document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Passage {
    pub id: u64,
    /// The file, by its id.
    pub file: u64,
    pub path: String,
    /// The document's title, or else its file's name.
    pub title: String,
    pub collection: String,
    /// The headings above it, the highest first.
    pub headings: Vec<String>,
    /// The page or slide where it begins, from 1.
    pub page: Option<u32>,
    /// The line where it begins, from 1.
    pub line: Option<u32>,
    pub text: String,
    /// How well it matches. Scores of one search can be compared, and no others.
    pub score: f32,
}

impl Passage {
    /// Where in the document it is: `Methods › Data, page 3`. A heading that is the document's title is not repeated.
    pub fn place(&self) -> String {
        let titled = self.headings.first() == Some(&self.title);
        let headings = self.headings[usize::from(titled)..].join(" › ");
        let page = self.page.map(|page| format!("page {page}"));
        let part = page.or(self.line.map(|line| format!("line {line}")));
        match (headings.is_empty(), part) {
            (_, None) => headings,
            (true, Some(part)) => part,
            (false, Some(part)) => format!("{headings}, {part}"),
        }
    }
}

/// The passages of a search, the best first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FoundPassages {
    pub passages: Vec<Passage>,
    /// The model that compared their meaning; `null` if only words were compared.
    pub embedder: Option<String>,
    /// Whether a reranker has ordered them.
    pub reranked: bool,
}

/// A passage that an answer cites.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Citation {
    /// Its number in the answer's text, such as `[1]`.
    pub number: usize,
    pub passage: Passage,
}

/// How documents were read for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// Passages that were found.
    Passages,
    /// One document as a whole.
    Whole,
    /// One document in parts, whose notes were read together.
    Parts,
}

/// An answer from documents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DocumentAnswer {
    pub answer: String,
    /// The passages that the answer names. Numbers that no passage has were removed from the answer.
    pub citations: Vec<Citation>,
    pub reading: Reading,
    pub tier: Option<TierId>,
    pub model: Option<ModelId>,
    /// What the reader should know, such as that the answer cites nothing.
    pub notice: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passage_says_where_it_is() {
        let mut passage = Passage {
            id: 1,
            file: 1,
            path: "/a/b.pdf".into(),
            title: "B".into(),
            collection: DEFAULT_COLLECTION.into(),
            headings: vec!["Methods".into(), "Data".into()],
            page: Some(3),
            line: None,
            text: String::new(),
            score: 0.0,
        };
        assert_eq!(passage.place(), "Methods › Data, page 3");
        passage.title = "Methods".into();
        assert_eq!(passage.place(), "Data, page 3");
        passage.headings.clear();
        (passage.page, passage.line) = (None, Some(7));
        assert_eq!(passage.place(), "line 7");
        passage.line = None;
        assert_eq!(passage.place(), "");
    }
}
