//! `tierbar documents`: adds files and folders, searches them, and answers questions from them.

use crate::{
    Group,
    client::{Client, admin_path, read_answer, read_field, with_client},
    output::{self, count},
};
use reqwest::Method;
use serde::Serialize;
use serde_json::{Value, json};
use std::{fmt::Display, path::PathBuf};
use tierbar_core::{
    Code, Error,
    documents::{
        DocumentAnswer, DocumentFile, DocumentSource, Documents, FileState, FoundPassages,
        Indexing, IndexingState, Passage,
    },
};

/// Of a passage, for a line or two of a terminal.
const EXCERPT: usize = 240;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Add files and folders; files that change are read again
    Add {
        /// Files and folders: PDF, Word, PowerPoint, Markdown, HTML, text, code, mail
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// Collection they belong to [default: Documents]
        #[arg(long, value_name = "NAME")]
        collection: Option<String>,
    },
    /// List files and folders, with the progress of reading
    List {
        /// List the files of the source with this ID, and why some cannot be read
        #[arg(long, value_name = "ID")]
        files: Option<u64>,
    },
    /// Search by words and by meaning
    Search {
        /// Words or a question
        #[arg(required = true)]
        words: Vec<String>,
        /// Collection to search [default: all]
        #[arg(long, value_name = "NAME")]
        collection: Option<String>,
        /// Number of passages, 1 to 50
        #[arg(long, short = 'n', value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=50))]
        limit: u32,
    },
    /// Ask a question, and see which passages answer it
    Ask(Ask),
    /// Stop searching a file or folder; it stays where it is
    Rm {
        /// Source ID, as listed by `tierbar documents`
        id: u64,
    },
    /// Have a model transcribe scanned pages
    Pictures {
        /// Source ID, as listed by `tierbar documents`
        id: u64,
        /// Stop transcribing; existing transcripts stay
        #[arg(long)]
        off: bool,
    },
    /// Pause the reading of documents
    Pause,
    /// Resume the reading of documents
    Resume,
}

#[derive(Debug, Serialize, clap::Args)]
pub(crate) struct Ask {
    /// Question
    #[arg(required = true)]
    #[serde(skip)]
    words: Vec<String>,
    /// Collection to answer from [default: all]
    #[arg(long, value_name = "NAME")]
    collection: Option<String>,
    /// ID of one document to answer from, as listed with `--files`
    #[arg(long, value_name = "ID")]
    file: Option<u64>,
    /// Answer from the whole document, in parts if it does not fit the context
    #[arg(long, requires = "file")]
    whole: bool,
    /// Tier or model that answers [default: a tier of this machine]
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
}

pub(crate) async fn run(home: Option<PathBuf>, args: Group<Command>) -> Result<(), Error> {
    let client = match &args.command {
        // A host of our own would end with this command.
        Some(Command::Pause | Command::Resume) => Client::running(home.as_ref())?,
        _ => Client::running_or_own(home).await?,
    };
    let as_json = args.json;
    with_client(client, async |client| match args.command {
        None | Some(Command::List { files: None }) => list(client, as_json).await,
        Some(Command::List { files: Some(id) }) => files(client, id, as_json).await,
        Some(Command::Add { paths, collection }) => {
            add(client, &paths, collection.as_deref(), as_json).await
        }
        Some(Command::Search {
            words,
            collection,
            limit,
        }) => {
            let search =
                json!({"query": words.join(" "), "collection": collection, "limit": limit});
            find(client, &search, as_json).await
        }
        Some(Command::Ask(asked)) => {
            let mut question = json!(asked);
            question["question"] = asked.words.join(" ").into();
            question["stream"] = (!as_json).into();
            ask(client, &question, as_json).await
        }
        Some(Command::Rm { id }) => remove(client, id, as_json).await,
        Some(Command::Pictures { id, off }) => pictures(client, id, !off, as_json).await,
        Some(Command::Pause) => pause(client, true, as_json).await,
        Some(Command::Resume) => pause(client, false, as_json).await,
    })
    .await
}

async fn add(
    client: &Client,
    paths: &[PathBuf],
    collection: Option<&str>,
    as_json: bool,
) -> Result<(), Error> {
    for path in paths {
        let real = std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let body = json!({"path": real, "collection": collection});
        let added = client.post("/tierbar/v1/documents", &body).await?;
        output::write_answer(as_json, added, |source: DocumentSource| {
            format!("Added {} to {}.\n", source.path, source.collection)
        })?;
    }
    note_own(client, true);
    Ok(())
}

async fn list(client: &Client, as_json: bool) -> Result<(), Error> {
    let listed = client.get("/tierbar/v1/documents").await?;
    if as_json {
        output::write_json(&listed);
        return Ok(());
    }
    let Documents { sources, indexing } = read_answer(listed)?;
    if sources.is_empty() {
        output::error_line("There are no documents. To add some: tierbar documents add ~/Papers");
        return Ok(());
    }
    for source in &sources {
        output::write_line(&render_source(source));
    }
    output::write_line(&render_progress(&indexing, &sources));
    note_own(client, indexing.waiting > 0);
    Ok(())
}

/// A command's own host does not read documents.
fn note_own(client: &Client, waiting: bool) {
    if client.is_own() && waiting {
        output::error_line(
            "Documents are read while Tierbar is running. Open the app or run `tierbar serve`.",
        );
    }
}

fn render_source(source: &DocumentSource) -> String {
    let mut parts = vec![count(source.indexed, "document")];
    if source.waiting > 0 {
        parts.push(format!("{} to read", source.waiting));
    }
    if source.failed > 0 {
        parts.push(format!("{} cannot be read", source.failed));
    }
    if source.noticed > 0 {
        parts.push(format!("{} with a note", source.noticed));
    }
    parts.push(count(source.passages, "passage"));
    if source.is_missing {
        parts.push("missing".to_owned());
    }
    let parts = parts.join(" · ");
    let notes = source.problem.iter().chain(&source.left_out);
    let notes: String = notes.map(|what| format!("\n    {what}")).collect();
    format!(
        "{:<3} {}  {}  {parts}{notes}",
        source.id, source.collection, source.path
    )
}

fn render_progress(indexing: &Indexing, sources: &[DocumentSource]) -> String {
    let mut parts = vec![match indexing.state {
        IndexingState::Idle => "All documents are read".to_owned(),
        IndexingState::Indexing => format!("Reading: {} left", indexing.waiting),
        IndexingState::Paused => format!("Paused: {} left", indexing.waiting),
    }];
    parts.extend(indexing.file.clone());
    if let Some(model) = &indexing.embedder {
        parts.push(format!("meaning by {model}"));
        match sources.iter().map(|source| source.without_vectors).sum() {
            0_u64 => {}
            1 => parts.push("1 passage is found by its words only".to_owned()),
            passages => parts.push(format!("{passages} passages are found by their words only")),
        }
    } else {
        parts.push("found by words only: no tier has an embedding model".to_owned());
    }
    parts.extend(indexing.problem.clone());
    parts.join(" · ")
}

async fn files(client: &Client, source: u64, as_json: bool) -> Result<(), Error> {
    let mut after = 0;
    loop {
        let (id, from) = (source.to_string(), after.to_string());
        let path = admin_path(&["documents", &id, "files"], &[("after", &from)]);
        let files: Vec<DocumentFile> = client.list(&path, "files").await?;
        let Some(last) = files.last() else {
            return Ok(());
        };
        after = last.id;
        for file in &files {
            if as_json {
                output::write_json(&serde_json::to_value(file).unwrap_or_default());
            } else {
                output::write_line(&file_line(file));
            }
        }
    }
}

fn file_line(file: &DocumentFile) -> String {
    let mut parts = match file.state {
        FileState::Waiting => vec!["to be read".to_owned()],
        FileState::Failed => Vec::new(),
        FileState::Indexed => vec![count(file.passages, "passage")],
    };
    parts.extend(file.pages.map(|pages| count(pages.into(), "page")));
    parts.extend(file.notice.clone());
    format!("{:<5} {}  {}", file.id, file.path, parts.join(" · "))
}

async fn find(client: &Client, search: &Value, as_json: bool) -> Result<(), Error> {
    let found = client.post("/v1/documents/search", search).await?;
    if as_json {
        output::write_json(&found);
        return Ok(());
    }
    let found: FoundPassages = read_answer(found)?;
    if found.passages.is_empty() {
        output::write_line("No passages match.");
    }
    for (passage, number) in found.passages.iter().zip(1..) {
        output::write_line(&heading(number, passage));
        output::write_line(&format!("    {}", excerpt(&passage.text)));
    }
    if found.embedder.is_none() {
        output::error_line("Only words were compared, because no tier has an embedding model.");
    }
    Ok(())
}

fn heading(number: usize, passage: &Passage) -> String {
    let place = passage.place();
    let separator = if place.is_empty() { "" } else { ", " };
    format!(
        "[{number}] {}{separator}{place}  {}",
        passage.title, passage.path
    )
}

fn excerpt(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    let whole = words.join(" ");
    if whole.chars().count() <= EXCERPT {
        return whole;
    }
    let mut cut: String = whole.chars().take(EXCERPT).collect();
    cut.truncate(cut.rfind(' ').unwrap_or(cut.len()));
    cut + " …"
}

async fn ask(client: &Client, question: &Value, as_json: bool) -> Result<(), Error> {
    let path = "/v1/documents/ask";
    if as_json {
        output::write_json(&client.post(path, question).await?);
        return Ok(());
    }
    let mut events = client.events(Method::POST, path, Some(question)).await?;
    let mut shown = String::new();
    let mut found: Vec<Passage> = Vec::new();
    while let Some(event) = events.next().await.map_err(broken_off)? {
        let event = event.data;
        match event["type"].as_str().unwrap_or_default() {
            "part" => output::error_line(&format!(
                "Reading part {} of {} …",
                event["part"], event["parts"]
            )),
            "passages" => found = read_field(event, "passages")?,
            "text" => {
                let text = event["text"].as_str().unwrap_or_default();
                output::write(text);
                shown.push_str(text);
            }
            "answer" => {
                let answer: DocumentAnswer = read_field(event, "answer")?;
                show(&answer, &shown, &found);
                return Ok(());
            }
            "error" => return Err(error_of_event(&event)),
            _ => {}
        }
    }
    Err(broken_off("the connection ended"))
}

/// Ends an answer of which `shown` is on the terminal, with the passages that it cites, or else those that were found.
fn show(answer: &DocumentAnswer, shown: &str, found: &[Passage]) {
    if shown.is_empty() {
        output::write(&answer.answer);
    }
    output::write_line("");
    if !answer.citations.is_empty() {
        output::write_line("");
    }
    for cited in &answer.citations {
        output::write_line(&heading(cited.number, &cited.passage));
    }
    if let Some(notice) = &answer.notice {
        output::error_line(notice);
    }
    if answer.citations.is_empty() && !found.is_empty() {
        output::error_line("These passages match the question best:");
        for (passage, number) in found.iter().zip(1..) {
            output::error_line(&heading(number, passage));
        }
    }
}

fn error_of_event(event: &Value) -> Error {
    let text = |field: &str| event[field].as_str().map(str::to_owned);
    let code = serde_json::from_value(event["code"].clone()).unwrap_or(Code::Internal);
    Error {
        hint: text("hint"),
        ..Error::new(code, text("message").unwrap_or_default())
    }
}

fn broken_off(why: impl Display) -> Error {
    let message = format!("the answer was interrupted: {why}");
    Error::new(Code::ShuttingDown, message)
}

async fn remove(client: &Client, id: u64, as_json: bool) -> Result<(), Error> {
    client
        .delete(&admin_path(&["documents", &id.to_string()], &[]))
        .await?;
    output::write_outcome(
        as_json,
        &json!({"removed": id}),
        "Removed it from the documents. The files stay where they are.",
    );
    Ok(())
}

async fn pictures(client: &Client, id: u64, read: bool, as_json: bool) -> Result<(), Error> {
    let path = admin_path(&["documents", &id.to_string()], &[]);
    let status = client.patch(&path, &json!({"read_pictures": read})).await?;
    let sentence = match read {
        true => "A model transcribes scanned pages. This takes a while.",
        false => "Scanned pages are skipped.",
    };
    output::write_outcome(as_json, &status, sentence);
    note_own(client, read);
    Ok(())
}

async fn pause(client: &Client, paused: bool, as_json: bool) -> Result<(), Error> {
    let body = json!({"paused": paused});
    let status = client.patch("/tierbar/v1/documents", &body).await?;
    let sentence = match paused {
        true => "Documents are not read until you resume or Tierbar quits.",
        false => "Documents are read again.",
    };
    output::write_outcome(as_json, &status, sentence);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> DocumentSource {
        DocumentSource {
            id: 3,
            path: "/d".to_owned(),
            collection: "Papers".to_owned(),
            is_folder: true,
            is_missing: false,
            problem: None,
            indexed: 1,
            waiting: 0,
            failed: 0,
            noticed: 0,
            read_pictures: false,
            passages: 40,
            without_vectors: 0,
            left_out: None,
        }
    }

    #[test]
    fn a_source_is_listed_with_what_became_of_it() {
        let mut source = source();
        assert_eq!(
            render_source(&source),
            "3   Papers  /d  1 document · 40 passages"
        );
        (source.waiting, source.failed, source.is_missing) = (2, 1, true);
        assert_eq!(
            render_source(&source),
            "3   Papers  /d  1 document · 2 to read · 1 cannot be read · 40 passages · missing"
        );
        source.left_out = Some("Not searched: 2 files (.gitignore)".to_owned());
        source.problem = Some("/d cannot be read: permission denied".to_owned());
        let rendered = render_source(&source);
        assert!(
            rendered.ends_with(
                "missing\n    /d cannot be read: permission denied\n    Not searched: 2 files (.gitignore)"
            ),
            "{rendered}"
        );
    }

    #[test]
    fn passages_that_only_words_find_are_counted() {
        let mut sources = [source(), source()];
        let mut indexing = Indexing {
            embedder: Some("minilm".to_owned()),
            ..Indexing::default()
        };
        let read = "All documents are read · meaning by minilm";
        assert_eq!(render_progress(&indexing, &sources), read);
        sources[0].without_vectors = 1;
        let one = format!("{read} · 1 passage is found by its words only");
        assert_eq!(render_progress(&indexing, &sources), one);
        sources[1].without_vectors = 40;
        let more = format!("{read} · 41 passages are found by their words only");
        assert_eq!(render_progress(&indexing, &sources), more);
        indexing.embedder = None;
        let none = "All documents are read · found by words only: no tier has an embedding model";
        assert_eq!(render_progress(&indexing, &sources), none);
    }

    #[test]
    fn an_excerpt_ends_at_a_word() {
        assert_eq!(excerpt("a\n  b"), "a b");
        let long = excerpt(&"word ".repeat(100));
        assert!(
            long.ends_with("word …") && long.chars().count() < 250,
            "{long}"
        );
    }

    #[test]
    fn an_error_event_is_an_error() {
        let event =
            json!({"type": "error", "code": "not_found", "message": "nothing", "hint": "add some"});
        let error = error_of_event(&event);
        assert_eq!(
            (error.code, error.hint.as_deref()),
            (Code::NotFound, Some("add some"))
        );
    }
}
