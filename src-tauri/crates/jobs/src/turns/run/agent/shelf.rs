//! The documents that an agent may look into, and the numbers by which its answer cites their passages.

use crate::{Jobs, documents::DocumentSearch};
use parking_lot::Mutex;
use std::sync::Arc;
use tierbar_agent::consent::Collections;
use tierbar_chats::agent::AgentDocuments;
use tierbar_core::{Error, bad_request, documents::Passage, status::TierStatus};

/// As many passages as one search shows the model.
const PASSAGES: usize = 6;

pub(super) struct Shelf {
    jobs: Arc<Jobs>,
    collections: Collections,
    /// The passages that the model has seen, by their numbers.
    numbers: Mutex<Numbers>,
}

impl Shelf {
    /// Opens what the options name; `None` if that is nothing.
    ///
    /// # Errors
    /// `BadRequest` for a collection that does not exist.
    pub(super) async fn open(
        documents: &AgentDocuments,
        jobs: &Arc<Jobs>,
    ) -> Result<Option<Self>, Error> {
        let collections = match documents {
            AgentDocuments::All(false) => return Ok(None),
            AgentDocuments::All(true) => Collections::All,
            AgentDocuments::Collections(names) => {
                let collections = jobs.store.document_collections().await?;
                let known: Vec<_> = collections.into_iter().map(|known| known.name).collect();
                if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
                    let message = format!("there is no collection \"{unknown}\" of documents");
                    let hint = match known.is_empty() {
                        true => "add documents first".to_owned(),
                        false => format!("choose from {}", known.join(", ")),
                    };
                    return Err(bad_request(message).hint(hint));
                }
                if names.is_empty() {
                    return Ok(None);
                }
                Collections::Named(names.clone())
            }
        };
        Ok(Some(Self {
            jobs: Arc::clone(jobs),
            collections,
            numbers: Mutex::default(),
        }))
    }

    pub(super) fn collections(&self) -> &Collections {
        &self.collections
    }

    /// Returns what the model reads of the passages that match best. No model is loaded for it.
    ///
    /// # Errors
    /// What is wrong, for the model.
    pub(super) async fn find(&self, words: &str) -> Result<String, String> {
        let wanted: Vec<Option<String>> = match &self.collections {
            Collections::All => vec![None],
            Collections::Named(names) => names.iter().cloned().map(Some).collect(),
        };
        let search = DocumentSearch {
            query: words.to_owned(),
            limit: Some(PASSAGES),
            ..DocumentSearch::default()
        };
        let is_loaded = |tier: &TierStatus| tier.state.holds_memory();
        let found = self.jobs.search_each(&search, &wanted, is_loaded).await;
        let found = found.map_err(|error| error.message)?;
        let found = found.into_iter().map(|found| found.passages).collect();
        let mut numbers = self.numbers.lock();
        let passages = best(found).into_iter();
        let texts: Vec<_> = passages.map(|passage| numbers.quote(passage)).collect();
        Ok(if texts.is_empty() {
            "no passage has anything to do with it".to_owned()
        } else {
            texts.join("\n\n")
        })
    }
}

/// The best of several searches. Their scores cannot be compared, so the first of each come first.
fn best(found: Vec<Vec<Passage>>) -> Vec<Passage> {
    let mut searches: Vec<_> = found.into_iter().map(Vec::into_iter).collect();
    let mut best = Vec::new();
    loop {
        let before = best.len();
        best.extend(searches.iter_mut().filter_map(Iterator::next));
        if best.len() == before || before >= PASSAGES {
            best.truncate(PASSAGES);
            return best;
        }
    }
}

/// The ids of passages; each has the number of its place, from 1.
#[derive(Debug, Default)]
struct Numbers(Vec<u64>);

impl Numbers {
    /// A passage with its number, which it keeps, and where it stands.
    fn quote(&mut self, passage: Passage) -> String {
        let known = self.0.iter().position(|id| *id == passage.id);
        let at = known.unwrap_or_else(|| {
            self.0.push(passage.id);
            self.0.len() - 1
        });
        let place = passage.place();
        let place = match place.is_empty() {
            true => passage.path,
            false => format!("{}, {place}", passage.path),
        };
        format!("[{}] {} ({place})\n{}", at + 1, passage.title, passage.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(id: u64) -> Passage {
        Passage {
            id,
            file: 1,
            path: "/papers/a.pdf".into(),
            title: "A".into(),
            collection: "Papers".into(),
            headings: vec!["Methods".into()],
            page: Some(3),
            line: None,
            text: "Twice a year.".into(),
            score: 0.0,
        }
    }

    #[test]
    fn a_passage_keeps_its_number() {
        let mut numbers = Numbers::default();
        let first = numbers.quote(passage(7));
        assert_eq!(
            first,
            "[1] A (/papers/a.pdf, Methods, page 3)\nTwice a year."
        );
        assert!(numbers.quote(passage(9)).starts_with("[2] "));
        assert_eq!(numbers.quote(passage(7)), first);
    }

    #[test]
    fn results_alternate_between_collections() {
        let ids = |from: u64| (from..from + 6).map(passage).collect::<Vec<_>>();
        let best = best(vec![ids(10), Vec::new(), ids(20)]);
        let best: Vec<_> = best.iter().map(|passage| passage.id).collect();
        assert_eq!(best, [10, 20, 11, 21, 12, 22]);
    }
}
