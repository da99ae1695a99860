//! The saved contexts that this model can go on from, by their tokens.

use crate::{
    generate::{SavedState, usable},
    llama::Token,
    swap::LEAST as LEAST_SWAPPED,
};
use std::{
    cmp::Reverse,
    collections::HashMap,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};
use tierbar_contexts::{Contexts, Difference, Draft, Key, Saved};
use tierbar_core::{Code, Error, ModelId};

/// Fewer tokens of another conversation are not worth reading its state: one part in so many of it.
const WORTH: usize = 10;

/// What the states are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Uses {
    /// Somebody saved them by name: they stay whatever they are.
    Named,
    /// They were swapped out: of no use, they are removed.
    Swap,
}

#[derive(Debug)]
pub(crate) struct Saves {
    contexts: Contexts,
    key: Key,
    model: ModelId,
    /// Of a state that has more than the prompt nothing can be used: the model cannot go back in it.
    whole_only: bool,
    uses: Uses,
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
    stamp: Stamp,
    tokens: Arc<[Token]>,
    /// Where it can be gone back to besides.
    back: Option<usize>,
    /// Whether the file is whole; `None` while nobody has looked.
    whole: Option<bool>,
}

/// What tells a file from another one of the same name: inode, seconds and nanoseconds of its last change.
type Stamp = (u64, i64, i64);

fn stamp(path: &Path) -> Option<Stamp> {
    let file = std::fs::metadata(path).ok()?;
    Some((file.ino(), file.mtime(), file.mtime_nsec()))
}

impl Saves {
    /// `model` is the name that is told; the key is what counts.
    pub(crate) fn new(
        contexts: Contexts,
        key: Key,
        model: ModelId,
        whole_only: bool,
        uses: Uses,
    ) -> Self {
        Self {
            contexts,
            key,
            model,
            whole_only,
            uses,
            known: Mutex::default(),
        }
    }

    pub(crate) fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    /// The state that holds the longest beginning of the prompt. Blocking, for microseconds unless one was saved since.
    pub(crate) fn find(&self, prompt: &[Token]) -> Option<SavedState> {
        let mut known = self.known()?;
        loop {
            let states = known
                .states
                .iter_mut()
                .filter(|(_, state)| state.whole != Some(false));
            let (shared, name, state) = states
                .map(|(name, state)| (self.shared(state, prompt), name, state))
                .max_by_key(|(shared, _, state)| (*shared, Reverse(state.tokens.len())))?;
            if shared == 0 {
                return None;
            }
            // Its bytes are read once, not by each request.
            let whole = state
                .whole
                .unwrap_or_else(|| self.contexts.check(name).is_ok());
            state.whole = Some(whole);
            if whole {
                return Some(SavedState {
                    path: self.contexts.path(name),
                    tokens: Arc::clone(&state.tokens),
                    back: state.back.filter(|_| self.whole_only),
                    whole_only: self.whole_only,
                    swapped: self.uses == Uses::Swap,
                });
            }
            if self.uses == Uses::Swap {
                tracing::warn!(
                    "a conversation that was swapped out is damaged: its prompt is read again"
                );
                let _gone = self.contexts.remove(name);
            } else {
                tracing::warn!("the saved context \"{name}\" is damaged");
            }
        }
    }

    /// How many tokens of the prompt the state gives.
    fn shared(&self, state: &State, prompt: &[Token]) -> usize {
        let State { tokens, back, .. } = state;
        let shared = usable(tokens, *back, self.whole_only, prompt);
        let little = shared < LEAST_SWAPPED || shared * WORTH < tokens.len();
        if self.uses == Uses::Swap && little {
            return 0;
        }
        shared
    }

    /// The tokens of each, by name.
    pub(crate) fn all(&self) -> Vec<(String, Arc<[Token]>)> {
        let known = self.known();
        let states = known.iter().flat_map(|known| &known.states);
        let sound = states.filter(|(_, state)| state.whole != Some(false));
        sound
            .map(|(name, state)| (name.clone(), Arc::clone(&state.tokens)))
            .collect()
    }

    /// What the folder has now; `None` if it is not there.
    fn known(&self) -> Option<MutexGuard<'_, Known>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = self.contexts.changed()?;
        if known.seen != Some(changed) {
            self.look(&mut known);
            known.seen = Some(changed);
        }
        Some(known)
    }

    fn look(&self, known: &mut Known) {
        let mut before = std::mem::take(&mut known.states);
        let ours = self.contexts.list().unwrap_or_default();
        for saved in ours.into_iter().filter(|saved| saved.key == self.key) {
            let Some(stamp) = stamp(&self.contexts.path(&saved.name)) else {
                continue;
            };
            let kept = before
                .remove(&saved.name)
                .filter(|state| state.stamp == stamp);
            let read = || {
                let tokens = self.contexts.tokens(&saved.name).ok()?.into();
                Some(State {
                    stamp,
                    tokens,
                    back: saved.back.map(|back| back.tokens),
                    whole: None,
                })
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
        let saved = draft.seal(self.model.clone(), tokens, self.key.clone(), bytes);
        // Two renames within a tick of the clock leave the folder with one time.
        self.known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .seen = None;
        saved
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
            back: None,
            whole_only: self.whole_only,
            swapped: false,
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
