//! The saved contexts that this model can go on from, by their tokens.

use crate::{generate::SavedState, llama::Token};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::SystemTime,
};
use tierbar_contexts::{Contexts, Difference, Draft, Key, Saved};
use tierbar_core::{Code, Error, ModelId};

#[derive(Debug)]
pub(crate) struct Saves {
    contexts: Contexts,
    key: Key,
    model: ModelId,
    /// Of those with our key.
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// As the folder was then.
    seen: Option<SystemTime>,
    /// By name.
    states: HashMap<String, State>,
}

#[derive(Debug)]
struct State {
    /// When it was saved and how large it is: what tells it from another of the same name.
    stamp: (u64, u64),
    tokens: Arc<[Token]>,
}

impl Saves {
    /// `model` is the name that is told; the key is what counts.
    pub(crate) fn new(contexts: Contexts, key: Key, model: ModelId) -> Self {
        Self {
            contexts,
            key,
            model,
            known: Mutex::default(),
        }
    }

    pub(crate) fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    /// The state that holds the longest beginning of the prompt. Blocking, for microseconds unless one was saved since.
    pub(crate) fn find(&self, prompt: &[Token]) -> Option<SavedState> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = self.contexts.changed()?;
        if known.seen != Some(changed) {
            self.look(&mut known);
            known.seen = Some(changed);
        }
        let shared = |tokens: &[Token]| {
            let same = tokens.iter().zip(prompt);
            same.take_while(|(saved, asked)| saved == asked).count()
        };
        let states = known.states.iter();
        let (shared, name, tokens) = states
            .map(|(name, State { tokens, .. })| (shared(tokens), name, tokens))
            .max_by_key(|(shared, _, tokens)| (*shared, std::cmp::Reverse(tokens.len())))?;
        (shared > 0).then(|| SavedState {
            path: self.contexts.path(name),
            tokens: Arc::clone(tokens),
            checked: false,
        })
    }

    fn look(&self, known: &mut Known) {
        let mut before = std::mem::take(&mut known.states);
        let ours = self.contexts.list().unwrap_or_default();
        for saved in ours.into_iter().filter(|saved| saved.key == self.key) {
            let stamp = (saved.created, saved.bytes);
            let kept = before
                .remove(&saved.name)
                .filter(|state| state.stamp == stamp);
            let read = || {
                let tokens = self.contexts.tokens(&saved.name).ok()?.into();
                Some(State { stamp, tokens })
            };
            if let Some(state) = kept.or_else(read) {
                known.states.insert(saved.name, state);
            }
        }
    }

    pub(crate) fn draft(&self, name: &str) -> Result<Draft, Error> {
        self.contexts.draft(name)
    }

    /// Gives a written state its name.
    pub(crate) fn seal(&self, draft: Draft, tokens: usize, bytes: u64) -> Result<Saved, Error> {
        draft.seal(self.model.clone(), tokens, self.key.clone(), bytes)
    }

    /// The context of this name, to be loaded here.
    ///
    /// # Errors
    /// [`Code::ContextUnknown`], [`Code::ContextMismatch`] with what differs, [`Code::Corrupt`].
    pub(crate) fn named(&self, name: &str) -> Result<(Saved, SavedState), Error> {
        let saved = self.contexts.get(name)?;
        if let Some(difference) = saved.key.difference(&self.key) {
            return Err(self.mismatch(&saved, difference));
        }
        self.contexts.check(name)?;
        let tokens = self.contexts.tokens(name)?.into();
        let path = self.contexts.path(name);
        let state = SavedState {
            path,
            tokens,
            checked: true,
        };
        Ok((saved, state))
    }

    fn mismatch(&self, saved: &Saved, difference: Difference) -> Error {
        let name = &saved.name;
        let (why, hint) = match difference {
            Difference::Model => (
                format!(
                    "was saved with another model: \"{}\", and this is \"{}\" with other weights",
                    saved.model, self.model
                ),
                "load it with the model that it was saved with, or save it again",
            ),
            Difference::Template => (
                "was saved with another chat template".to_owned(),
                "save it again",
            ),
            Difference::KvCache => (
                format!(
                    "was saved with a {} KV cache, and this tier's is {}",
                    saved.key.kv_cache.as_str(),
                    self.key.kv_cache.as_str()
                ),
                "set the tier's `kv_cache` as it was, or save it again",
            ),
            Difference::Engine => (
                format!(
                    "was saved by another version of the engine, {}",
                    saved.key.engine
                ),
                "save it again",
            ),
        };
        Error::new(
            Code::ContextMismatch,
            format!("the saved context \"{name}\" {why}"),
        )
        .hint(hint)
    }
}
