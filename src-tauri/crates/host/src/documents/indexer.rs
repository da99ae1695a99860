//! The owner of the index: reads files that wait, one at a time, until nothing waits.

use super::{
    DocumentIndex, State,
    embed::{AnswerFn, BATCH, Embedder},
    extract::{self, Unread},
    files,
};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    mem,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tierbar_core::{Code, Error, TierId};
use tierbar_documents::{
    Facts, Refusal,
    chunks::{Chunk, Size, chunks},
    extraction::{ExtractedDocument, OutputReader},
    pictured,
};
use tierbar_fetch::blocking;
use tierbar_store::{NewDocument, NewPassage, Store, WaitingFile};
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// Files are written in several steps: for so long nothing must change before a look.
const SETTLING: Duration = Duration::from_secs(1);
const LONGEST_SETTLING: u32 = 10;
/// For so long changes do not interrupt the reading: in a folder where some file always changes, little would be read.
const UNDISTURBED: Duration = Duration::from_secs(10);
/// How often to look where the system reports all changes, in case it has lost some, and where it does not.
const LOOK: Duration = Duration::from_secs(600);
const LOOK_BLIND: Duration = Duration::from_secs(60);
/// How often to try again what an embedder could not do, or to see whether there is one now.
const RETRY: Duration = Duration::from_secs(20);
/// How long words of a text that has changed may stay in the index: taking them out reads all of it.
const FORGETTING: Duration = Duration::from_secs(24 * 60 * 60);
/// Passages without vectors that are fetched at once.
const FETCHED: usize = 512;

pub(crate) struct Indexer {
    store: Store,
    bell: watch::Sender<()>,
    rung: watch::Receiver<()>,
    looked: Option<Instant>,
    state: Arc<Mutex<State>>,
    embedder: Embedder,
    /// `tierbar-extract`, or why it is not there.
    program: Result<PathBuf, Error>,
}

impl Indexer {
    pub(crate) fn new(
        index: &DocumentIndex,
        answer: AnswerFn,
        program: Result<PathBuf, Error>,
    ) -> Self {
        let tiers = Arc::clone(&index.tiers);
        Self {
            store: index.store.clone(),
            bell: index.bell.clone(),
            rung: index.bell.subscribe(),
            looked: None,
            state: Arc::clone(&index.state),
            embedder: Embedder { tiers, answer },
            program,
        }
    }

    /// Runs until the host ends. A file that is being read then is read again by the next host.
    pub(crate) async fn run(mut self, closing: CancellationToken) {
        closing.run_until_cancelled(self.forever()).await;
    }

    async fn forever(&mut self) {
        if let Err(error) = self.store.clear_documents().await {
            tracing::warn!("what was left of earlier documents could not be removed: {error}");
        }
        let mut watch = files::Watch::new(self.bell.clone());
        let mut is_blind = true;
        let mut is_empty = false;
        loop {
            let pause = if is_blind { LOOK_BLIND } else { LOOK };
            let is_due = !self.has_looked_within(pause);
            if self.is_rung() || is_due {
                self.rung.mark_unchanged();
                (is_blind, is_empty) = self.look(&mut watch).await.unwrap_or_else(|error| {
                    tracing::warn!("the documents could not be looked for: {error}");
                    (true, false)
                });
                self.looked = Some(Instant::now());
                // Also where there are no sources: a removal may have been interrupted.
                if let Err(error) = self.store.forget_removed_words(FORGETTING).await {
                    tracing::warn!("words of removed documents stay in the index: {error}");
                }
            }
            let is_whole = self.work().await.unwrap_or_else(|error| {
                tracing::warn!("the documents could not be read: {error}");
                self.state.lock().problem = Some(error.to_text("; "));
                false
            });
            self.state.lock().file = None;
            let wait = match (is_empty, is_whole) {
                // Who adds something rings.
                (true, _) => LOOK,
                (false, true) => LOOK_BLIND,
                (false, false) => RETRY,
            };
            if timeout(wait, self.rung.changed()).await.is_ok() {
                self.settle().await;
            }
        }
    }

    fn is_rung(&self) -> bool {
        self.rung.has_changed().unwrap_or_default()
    }

    /// Until nothing has changed for a while. The bell stays rung.
    async fn settle(&mut self) {
        for _ in 0..LONGEST_SETTLING {
            self.rung.mark_unchanged();
            sleep(SETTLING).await;
            if !self.is_rung() {
                break;
            }
        }
        self.rung.mark_changed();
    }

    /// Finds the files of all sources. Returns whether changes may go unnoticed, and whether there are no sources.
    async fn look(&self, watch: &mut files::Watch) -> Result<(bool, bool), Error> {
        let sources = self.store.document_sources(None).await?;
        let unwatched = files::Watch::new(self.bell.clone());
        let mut followed = mem::replace(watch, unwatched);
        if sources.is_empty() {
            self.state.lock().left_out.clear();
            return Ok((false, true));
        }
        // Watched first, so that no change falls in between.
        let (followed, all, found) = blocking("a look for documents", move || {
            let all = followed.follow(&sources);
            let found: Vec<_> = sources
                .into_iter()
                .filter_map(|source| Some((files::scan(&source)?, source)))
                .collect();
            Ok((followed, all, found))
        })
        .await?;
        *watch = followed;
        let mut left_out = HashMap::new();
        for (mut scan, source) in found {
            if !scan.in_cloud.is_empty() {
                let known = self.store.document_files_in(source.id, &source.path);
                scan.keep(known.await?);
            }
            left_out.extend(scan.left_out().map(|sentence| (source.id, sentence)));
            let mut files = scan.files;
            for folder in &scan.unreadable {
                let known = self.store.document_files_in(source.id, &folder.path);
                files.extend(known.await?);
            }
            self.store.sync_documents(source.id, files).await?;
        }
        self.state.lock().left_out = left_out;
        Ok((!all, false))
    }

    /// Reads what waits. Returns whether nothing is left to do; `false` also when it is interrupted by changes or a pause.
    async fn work(&self) -> Result<bool, Error> {
        let Some(program) = self.begin() else {
            return Ok(false);
        };
        // Behind the last file for which this computer lacked something: it may lack it each time.
        let mut after = 0;
        while let Some(file) = self.store.next_document_after(after).await? {
            if self.is_interrupted() {
                return Ok(false);
            }
            self.state.lock().file = Some(file.path.clone());
            let id = file.id;
            match self.read_file(program, file).await? {
                None => self.state.lock().done += 1,
                Some(lack) => {
                    tracing::warn!("a document is read later: {lack}");
                    self.state.lock().problem = Some(lack.to_text("; "));
                    after = id;
                }
            }
        }
        Ok(self.embed_unread().await? && after == 0)
    }

    /// Makes the vectors that are missing. Each batch is stored at once, so that a pause loses none; a search leaves out a document's
    /// vectors until it has all of them. Returns whether nothing is left to do.
    async fn embed_unread(&self) -> Result<bool, Error> {
        loop {
            if self.is_interrupted() {
                return Ok(false);
            }
            let Some(embedder) = self.embedder.tier() else {
                // There may be one later.
                return Ok(false);
            };
            let (_, model) = &embedder;
            let unread = self.store.passages_without_vectors(model, FETCHED).await?;
            let Some(file) = unread.first().map(|passage| passage.file) else {
                return Ok(true);
            };
            let path = self.store.document(file).await.map(|file| file.path).ok();
            let name = path.as_deref().map(name_of).unwrap_or_default();
            self.state.lock().file = path;
            for batch in unread.chunks(BATCH) {
                let texts: Vec<String> = batch
                    .iter()
                    .map(|passage| {
                        let title = match passage.title.as_str() {
                            "" => name.as_str(),
                            title => title,
                        };
                        text_of(title, &passage.headings, &passage.text)
                    })
                    .collect();
                let Some(vectors) = self.embed_batch(file, &embedder, &texts).await else {
                    return Ok(false);
                };
                let ids = batch.iter().map(|passage| passage.id);
                let vectors = ids.zip(vectors).collect();
                self.store.put_passage_vectors(file, model, vectors).await?;
            }
        }
    }

    /// Returns the program that reads files.
    fn begin(&self) -> Option<&PathBuf> {
        let mut state = self.state.lock();
        state.done = 0;
        state.problem = self.program.as_ref().err().map(|error| error.to_text("; "));
        self.program.as_ref().ok()
    }

    fn is_interrupted(&self) -> bool {
        let is_rung = self.is_rung() && !self.has_looked_within(UNDISTURBED);
        self.state.lock().paused || is_rung
    }

    fn has_looked_within(&self, time: Duration) -> bool {
        self.looked.is_some_and(|looked| looked.elapsed() < time)
    }

    /// Reads a file. Returns what this computer lacked for it, if it is to be read later.
    ///
    /// # Errors
    /// Why no file can be read.
    async fn read_file(&self, program: &Path, file: WaitingFile) -> Result<Option<Error>, Error> {
        let path = PathBuf::from(&file.path);
        let opening = path.clone();
        let open = tokio::task::spawn_blocking(move || extract::open(&opening));
        let opened = open.await.unwrap_or_else(|ended| {
            Err(Refusal(format!("Opening this file did not finish: {ended}.")).into())
        });
        let (bytes, sha256) = match opened {
            Ok(opened) => opened,
            Err(Unread::Refused(Refusal(why))) => {
                let failed = self.store.fail_document(file, String::new(), why);
                return failed.await.map(|()| None);
            }
            Err(Unread::Lack(lack)) => return Ok(Some(lack)),
            Err(Unread::NoProgram(error)) => return Err(error),
        };
        if sha256 == file.sha256 {
            return self.store.keep_document(file).await.map(|()| None);
        }
        let name = path.file_name().unwrap_or_default();
        let reader = OutputReader::default();
        let read = extract::extract(program, bytes, name, file.read_pictures, reader);
        let read = match read.await {
            Ok(extracted) => self.see(extracted).await,
            Err(Unread::Refused(refusal)) => Err(refusal),
            // It waits, and is read again.
            Err(Unread::Lack(lack)) => return Ok(Some(lack)),
            Err(Unread::NoProgram(error)) => return Err(error),
        };
        match read {
            Ok(Some((passages, facts))) => self.keep(file, sha256, passages, facts).await?,
            Ok(None) => {}
            Err(Refusal(why)) => self.store.fail_document(file, sha256, why).await?,
        }
        Ok(None)
    }

    /// Has a model write down the text of pages that are pictures. Returns `None` if the user pauses meanwhile.
    ///
    /// # Errors
    /// Why there is nothing to search.
    async fn see(
        &self,
        extracted: ExtractedDocument,
    ) -> Result<Option<(Vec<Chunk>, Facts)>, Refusal> {
        let (mut passages, mut facts) = (extracted.passages, extracted.facts);
        if facts.pictured.is_empty() {
            return Ok(Some((passages, facts)));
        }
        let (mut read, mut by) = (Vec::new(), String::new());
        if let Some((tier, model)) = self.embedder.eyes() {
            for picture in extracted.pictures {
                if self.state.lock().paused {
                    return Ok(None);
                }
                let page = picture.page;
                match self.embedder.text_of_page(&tier, picture).await {
                    Ok(text) => {
                        read.push(page);
                        passages.extend(chunks(&text, Size::default()));
                    }
                    Err(error) => {
                        self.state.lock().problem = Some(error.to_text("; "));
                        break;
                    }
                }
            }
            by = model;
        }
        passages.sort_by_key(|passage| passage.page);
        let pages = facts.pages.unwrap_or_default();
        let left = facts.pictured.iter().filter(|page| !read.contains(*page));
        let left: Vec<u32> = left.copied().collect();
        if passages.is_empty() && left.is_empty() {
            return Err(Refusal("The pictures in this PDF hold no text.".to_owned()));
        }
        let notices = [
            facts.notice.take(),
            pictured::read_by(&by, &read, pages),
            pictured::pictured_pages_notice(&left, pages),
        ];
        let notice = notices.into_iter().flatten().collect::<Vec<_>>().join(" ");
        if passages.is_empty() {
            return Err(Refusal(notice));
        }
        facts.notice = Some(notice);
        Ok(Some((passages, facts)))
    }

    async fn keep(
        &self,
        file: WaitingFile,
        sha256: String,
        passages: Vec<Chunk>,
        facts: Facts,
    ) -> Result<(), Error> {
        let title = facts.title.clone().unwrap_or_else(|| name_of(&file.path));
        let embedder = self.embedder.tier();
        let vectors = match &embedder {
            // Rather than wait in memory, a longer document is found by its words meanwhile.
            Some(embedder) if passages.len() <= FETCHED => {
                self.vectors(file.id, embedder, &title, &passages).await
            }
            _ => Vec::new(),
        };
        let embedder = embedder.map(|(_, model)| model);
        let mut vectors = vectors.into_iter();
        let passages = passages.into_iter().map(|chunk| NewPassage {
            headings: chunk.trail,
            page: chunk.page,
            line: chunk.line,
            fresh: chunk.fresh,
            text: chunk.text,
            vector: vectors.next(),
        });
        let document = NewDocument {
            sha256,
            kind: facts.kind,
            title: facts.title,
            pages: facts.pages,
            notice: facts.notice,
            embedder,
            passages: passages.collect(),
        };
        self.store.put_document(file, document).await
    }

    /// Returns the vectors of a new document's first passages: of all, unless something ends it early. The document is then found by
    /// its words until [`Self::embed_unread`] has made the others.
    async fn vectors(
        &self,
        file: u64,
        embedder: &(TierId, String),
        title: &str,
        chunks: &[Chunk],
    ) -> Vec<Vec<u8>> {
        let mut made = Vec::with_capacity(chunks.len());
        for batch in chunks.chunks(BATCH) {
            let texts: Vec<String> = batch
                .iter()
                .map(|chunk| text_of(title, &chunk.trail, &chunk.text))
                .collect();
            let Some(vectors) = self.embed_batch(file, embedder, &texts).await else {
                break;
            };
            made.extend(vectors);
        }
        made
    }

    /// Returns the vectors of a batch of a file's texts; `None` if the file is not wanted now, or the embedder, a tier with its model,
    /// fails or is replaced.
    async fn embed_batch(
        &self,
        file: u64,
        embedder: &(TierId, String),
        texts: &[String],
    ) -> Option<Vec<Vec<u8>>> {
        if self.is_unwanted(file).await {
            return None;
        }
        match self.embedder.embed(&embedder.0, texts).await {
            // Once the tier has another model, that one may have made them.
            Ok(vectors) => {
                Some(vectors).filter(|_| self.embedder.tier().as_ref() == Some(embedder))
            }
            Err(error) => {
                self.state.lock().problem = Some(error.to_text("; "));
                None
            }
        }
    }

    /// Whether the user has paused, or removed what this file belongs to.
    async fn is_unwanted(&self, file: u64) -> bool {
        if self.state.lock().paused {
            return true;
        }
        let found = self.store.document(file).await;
        found.is_err_and(|error| error.code == Code::NotFound)
    }
}

/// What an embedder reads of a passage: a paragraph alone often does not say what it is about.
fn text_of(title: &str, headings: &[String], text: &str) -> String {
    let mut whole = title.to_owned();
    for heading in headings {
        // A passage begins with its own heading.
        if !text.starts_with(heading.as_str()) {
            whole.push_str(" › ");
            whole.push_str(heading);
        }
    }
    if !whole.is_empty() {
        whole.push('\n');
    }
    whole + text
}

fn name_of(path: &str) -> String {
    let name = Path::new(path).file_stem().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
