//! The indexer with an embedder that the test plays.

use super::*;
use crate::documents::DocumentIndex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tierbar_core::{
    lease::{BoxFuture, Lease, Purpose, Tiers},
    status::TierStatus,
};
use tierbar_documents::Block;
use tierbar_store::{Place, SeenFile};

/// Passages of a document: two batches, and one that is not full.
const PASSAGES: usize = 2 * BATCH + 3;
/// More than there are.
const ALL: usize = 1000;

/// An embedder whose model a test changes.
#[derive(Debug, Clone)]
struct ScriptedEmbedder {
    model: Arc<Mutex<&'static str>>,
    /// It refuses a request with a text that ends so.
    refused: Arc<Mutex<Option<&'static str>>>,
    /// The texts that it has read.
    texts: Arc<Mutex<Vec<String>>>,
}

impl Tiers for ScriptedEmbedder {
    fn lease_for(&self, _: &TierId, _: Purpose) -> BoxFuture<'_, Result<Box<dyn Lease>, Error>> {
        Box::pin(std::future::pending())
    }
    fn start(&self, _: &TierId) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(std::future::pending())
    }
    fn stop(&self, _: &TierId, _: bool) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(std::future::pending())
    }
    fn expect(&self, _: &TierId) {}
    fn snapshot(&self) -> Vec<TierStatus> {
        let tier = json!({
            "id": "embedder", "kind": "embedding", "model": *self.model.lock(), "state": "ready", "context_tokens": 512,
            "engine": "embedded", "is_starter": false, "aliases": [],
            "kv_cache": "f16", "input_modalities": [],
        });
        vec![serde_json::from_value(tier).unwrap()]
    }
}

struct Bench {
    _folder: TempDir,
    index: DocumentIndex,
    indexer: Indexer,
    embedder: ScriptedEmbedder,
    file: WaitingFile,
}

impl Bench {
    /// One file waits. `reads` is called with the indexer's state and the embedder after each batch, before its answer.
    async fn new(reads: fn(&Mutex<State>, &ScriptedEmbedder)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tierbar.db");
        let store = tokio::task::spawn_blocking(move || Store::open(&path))
            .await
            .unwrap()
            .unwrap();
        let source = store.add_document_source("/d", "Papers", true).await;
        let seen = SeenFile {
            path: "/d/a.md".to_owned(),
            size: 10,
            modified: 1,
        };
        let synced = store.sync_documents(source.unwrap().id, vec![seen]).await;
        assert!(synced.unwrap());
        let file = store.next_document().await.unwrap().unwrap();
        let embedder = ScriptedEmbedder {
            model: Arc::new(Mutex::new("new")),
            refused: Arc::default(),
            texts: Arc::default(),
        };
        let index = DocumentIndex::new(store, Arc::new(embedder.clone()));
        let (played, state) = (embedder.clone(), Arc::clone(&index.state));
        let embed = move |path: &str, request: Value| -> BoxFuture<'static, _> {
            assert_eq!(path, "/v1/embeddings");
            let texts = request["input"].as_array().unwrap();
            assert!(texts.len() <= BATCH, "{} texts", texts.len());
            let ends = |end: &str| {
                texts
                    .iter()
                    .any(|text| text.as_str().unwrap().ends_with(end))
            };
            if played.refused.lock().is_some_and(ends) {
                let refusal = Error::new(Code::BadRequest, "a text is refused");
                return Box::pin(std::future::ready(Err(refusal)));
            }
            let vectors = texts.iter().enumerate();
            let vectors: Vec<_> = vectors
                .map(|(index, _)| json!({"index": index, "embedding": [1.0, 0.0]}))
                .collect();
            let read = texts.iter().map(|text| text.as_str().unwrap().to_owned());
            played.texts.lock().extend(read);
            reads(&state, &played);
            let answer = json!({"data": vectors}).to_string();
            Box::pin(std::future::ready(Ok(axum::body::Bytes::from(answer))))
        };
        let indexer = Indexer::new(&index, Box::new(embed), Ok(PathBuf::from("/no/program")));
        Self {
            _folder: folder,
            index,
            indexer,
            embedder,
            file,
        }
    }

    /// The file has passages, whose vectors are an earlier embedder's.
    async fn embedded_before(&self) {
        let passages = (0..PASSAGES).map(|number| NewPassage {
            text: format!("Passage {number}"),
            vector: Some(tierbar_core::documents::vectors::pack(&[0.0, 1.0])),
            ..NewPassage::default()
        });
        let document = NewDocument {
            embedder: Some("old".to_owned()),
            passages: passages.collect(),
            ..NewDocument::default()
        };
        let store = &self.indexer.store;
        store
            .put_document(self.file.clone(), document)
            .await
            .unwrap();
    }

    async fn unread(&self) -> usize {
        let store = &self.indexer.store;
        let unread = store.passages_without_vectors("new", ALL);
        unread.await.unwrap().len()
    }

    /// The number of passages that a search by meaning finds.
    async fn found(&self) -> usize {
        let store = &self.indexer.store;
        let found = store.passages_like("new", vec![1.0, 0.0], Place::default(), ALL);
        found.await.unwrap().len()
    }

    /// The number of passages that are found by their words alone, as the status has it.
    async fn without_vectors(&self) -> usize {
        let documents = self.index.documents().await.unwrap();
        usize::try_from(documents.sources[0].without_vectors).unwrap()
    }

    fn read(&self) -> usize {
        self.embedder.texts.lock().len()
    }

    /// Continues after each pause, and checks that every passage was read once.
    async fn resume(&self, passages: usize) {
        for _ in 0..=passages {
            self.indexer.state.lock().paused = false;
            if self.indexer.embed_unread().await.unwrap() {
                break;
            }
        }
        assert_eq!((self.unread().await, self.found().await), (0, passages));
        let mut texts = self.embedder.texts.lock().clone();
        assert_eq!(texts.len(), passages);
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), passages, "read twice");
    }
}

fn pause(state: &Mutex<State>, _: &ScriptedEmbedder) {
    state.lock().paused = true;
}

#[tokio::test]
async fn a_pause_ends_a_change_of_embedder_after_one_batch() {
    let bench = Bench::new(pause).await;
    bench.embedded_before().await;
    assert!(!bench.indexer.embed_unread().await.unwrap());
    assert_eq!(bench.read(), BATCH);
    assert_eq!(
        bench.unread().await,
        PASSAGES - BATCH,
        "what was read is kept"
    );
    assert_eq!(bench.found().await, 0, "half of a document is not searched");
    bench.resume(PASSAGES).await;
}

#[tokio::test]
async fn a_pause_keeps_what_was_read_of_a_new_document() {
    let bench = Bench::new(pause).await;
    let blocks = (0..PASSAGES).map(|number| Block {
        text: format!("Chapter {number}"),
        heading: Some(1),
        ..Block::default()
    });
    let texts = (0..PASSAGES).map(|number| Block {
        text: format!("In year {number} the hive gave honey. ").repeat(20),
        ..Block::default()
    });
    let blocks = blocks
        .zip(texts)
        .flat_map(|(heading, text)| [heading, text]);
    let blocks: Vec<Block> = blocks.collect();
    let file = bench.file.clone();
    let kept = bench.indexer.keep(
        file,
        "ab".to_owned(),
        chunks(&blocks, Size::default()),
        Facts::default(),
    );
    kept.await.unwrap();
    assert_eq!(bench.read(), BATCH);
    let sources = bench.index.documents().await.unwrap().sources;
    let passages = usize::try_from(sources[0].passages).unwrap();
    assert!(passages > BATCH, "{passages}");
    assert_eq!((sources[0].indexed, sources[0].waiting), (1, 0));
    assert_eq!(bench.unread().await, passages - BATCH);
    assert_eq!(bench.found().await, 0, "half of a document is not searched");
    bench.resume(passages).await;
}

#[tokio::test]
async fn a_change_of_embedder_leaves_words_until_the_last_batch() {
    let bench = Bench::new(pause).await;
    bench.embedded_before().await;
    assert_eq!(bench.without_vectors().await, PASSAGES);
    assert!(!bench.indexer.embed_unread().await.unwrap());
    assert_eq!(bench.read(), BATCH);
    assert_eq!(bench.without_vectors().await, PASSAGES);
    bench.resume(PASSAGES).await;
    assert_eq!(bench.without_vectors().await, 0);
    *bench.embedder.model.lock() = "newer";
    assert_eq!(bench.without_vectors().await, PASSAGES);
}

#[tokio::test]
async fn a_refused_passage_does_not_block_the_others() {
    let bench = Bench::new(|_, _| {}).await;
    bench.embedded_before().await;
    *bench.embedder.refused.lock() = Some("Passage 3");
    assert!(bench.indexer.embed_unread().await.unwrap());
    assert_eq!(
        (bench.unread().await, bench.found().await),
        (0, PASSAGES - 1)
    );
    assert_eq!(bench.without_vectors().await, 1);
}

#[tokio::test]
async fn an_embedder_that_refuses_any_text_is_tried_again() {
    let bench = Bench::new(|_, _| {}).await;
    bench.embedded_before().await;
    *bench.embedder.refused.lock() = Some("");
    assert!(!bench.indexer.embed_unread().await.unwrap());
    assert_eq!(bench.unread().await, PASSAGES);
    let problem = bench.indexer.state.lock().problem.clone();
    assert_eq!(problem.as_deref(), Some("a text is refused"));
    *bench.embedder.refused.lock() = None;
    bench.resume(PASSAGES).await;
}

#[tokio::test]
async fn changes_right_after_a_look_do_not_interrupt() {
    let mut bench = Bench::new(|_, _| {}).await;
    bench.embedded_before().await;
    bench.index.bell.send_replace(());
    assert!(!bench.indexer.embed_unread().await.unwrap());
    assert_eq!(bench.unread().await, PASSAGES);
    bench.indexer.looked = Some(Instant::now());
    bench.resume(PASSAGES).await;
}

#[tokio::test]
async fn vectors_of_another_model_are_not_stored() {
    let bench = Bench::new(|_, embedder| *embedder.model.lock() = "newer").await;
    bench.embedded_before().await;
    assert!(!bench.indexer.embed_unread().await.unwrap());
    assert_eq!((bench.read(), bench.unread().await), (BATCH, PASSAGES));
}

#[test]
fn an_embedder_gets_title_and_headings() {
    let headings = ["Methods".to_owned(), "Data".to_owned()];
    assert_eq!(
        text_of("A paper", &headings, "Data\nWe count."),
        "A paper › Methods\nData\nWe count."
    );
    assert_eq!(text_of("", &[], "Text"), "Text");
    assert_eq!(name_of("/a/b.c.pdf"), "b.c");
}
