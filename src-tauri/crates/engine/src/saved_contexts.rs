//! Finds the saved contexts that this model can continue from, by their tokens.

use crate::{
    llama::Token,
    saved_state::{MIN_SWAPPED_TOKENS, SavedState, usable},
};
use std::{
    cmp::Reverse,
    collections::HashMap,
    os::unix::fs::MetadataExt,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::SystemTime,
};
use tierbar_contexts::{ContextDescription, Contexts, Difference, Draft, Key};
use tierbar_core::{Code, Error, ModelId};

/// A state is not worth reading if the prompt uses less than one part in this many of it.
const WORTH: usize = 10;

/// What the states were saved for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatePurpose {
    /// They were saved by name and are kept, even if damaged.
    Named,
    /// They were swapped out and are removed if damaged.
    Swap,
}

#[derive(Debug)]
pub(crate) struct SavedContexts {
    contexts: Contexts,
    key: Key,
    model: ModelId,
    /// Whether a state with more tokens than the prompt is useless, because the model cannot go back in it.
    whole_only: bool,
    purpose: StatePurpose,
    /// The states with our key.
    known: Mutex<ContextIndex>,
}

#[derive(Debug, Default)]
struct ContextIndex {
    /// The modification time of the folder when it was read.
    seen: Option<SystemTime>,
    /// By name.
    states: HashMap<String, IndexedState>,
}

#[derive(Debug)]
struct IndexedState {
    stamp: FileVersion,
    tokens: Arc<[Token]>,
    /// The number of tokens at its checkpoint.
    back: Option<usize>,
    /// Whether the file is undamaged; `None` until it is checked.
    whole: Option<bool>,
}

/// Identifies a version of a file: its inode, and the seconds and nanoseconds of its modification time.
type FileVersion = (u64, i64, i64);

fn stamp(path: &Path) -> Option<FileVersion> {
    let file = std::fs::metadata(path).ok()?;
    Some((file.ino(), file.mtime(), file.mtime_nsec()))
}

impl SavedContexts {
    /// `model` is the name to report; states are matched by `key`.
    pub(crate) fn new(
        contexts: Contexts,
        key: Key,
        model: ModelId,
        whole_only: bool,
        purpose: StatePurpose,
    ) -> Self {
        Self {
            contexts,
            key,
            model,
            whole_only,
            purpose,
            known: Mutex::default(),
        }
    }

    pub(crate) fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    /// Returns the state that covers most of the prompt. Blocks for microseconds, or longer after a save.
    pub(crate) fn find(&self, prompt: &[Token]) -> Option<SavedState> {
        let mut known = self.known()?;
        // Those that cannot be read now: the next prompt tries them again.
        let mut unread = Vec::new();
        loop {
            let states = known
                .states
                .iter_mut()
                .filter(|(name, state)| state.whole != Some(false) && !unread.contains(*name));
            let (shared, name, state) = states
                .map(|(name, state)| (self.shared(state, prompt), name, state))
                .max_by_key(|(shared, _, state)| (*shared, Reverse(state.tokens.len())))?;
            if shared == 0 {
                return None;
            }
            // Verified once, not for each request.
            let whole = match state.whole {
                Some(whole) => whole,
                None => match self.contexts.check(name) {
                    Err(error) if error.code != Code::Corrupt => {
                        tracing::warn!("a saved conversation is not used: {error}");
                        unread.push(name.clone());
                        continue;
                    }
                    checked => checked.is_ok(),
                },
            };
            state.whole = Some(whole);
            if whole {
                return Some(SavedState {
                    path: self.contexts.path(name),
                    tokens: Arc::clone(&state.tokens),
                    back: state.back.filter(|_| self.whole_only),
                    whole_only: self.whole_only,
                    swapped: self.purpose == StatePurpose::Swap,
                });
            }
            if self.purpose == StatePurpose::Swap {
                tracing::warn!(
                    "a swapped-out conversation is damaged; its prompt is evaluated again"
                );
                let _gone = self.contexts.remove(name);
            } else {
                tracing::warn!("the saved context \"{name}\" is damaged");
            }
        }
    }

    /// Returns how many tokens of the prompt the state covers.
    fn shared(&self, state: &IndexedState, prompt: &[Token]) -> usize {
        let IndexedState { tokens, back, .. } = state;
        let shared = usable(tokens, *back, self.whole_only, prompt);
        let little = shared < MIN_SWAPPED_TOKENS || shared * WORTH < tokens.len();
        if self.purpose == StatePurpose::Swap && little {
            return 0;
        }
        shared
    }

    /// Returns the tokens of each state by name.
    pub(crate) fn all(&self) -> Vec<(String, Arc<[Token]>)> {
        let known = self.known();
        let states = known.iter().flat_map(|known| &known.states);
        let sound = states.filter(|(_, state)| state.whole != Some(false));
        sound
            .map(|(name, state)| (name.clone(), Arc::clone(&state.tokens)))
            .collect()
    }

    /// Returns the current states, or `None` if the folder does not exist.
    fn known(&self) -> Option<MutexGuard<'_, ContextIndex>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = self.contexts.changed()?;
        if known.seen != Some(changed) {
            known.seen = self.refresh(&mut known).then_some(changed);
        }
        Some(known)
    }

    /// Returns whether all could be read.
    fn refresh(&self, known: &mut ContextIndex) -> bool {
        let Ok(ours) = self.contexts.list() else {
            return false;
        };
        let (mut before, mut all) = (std::mem::take(&mut known.states), true);
        for saved in ours.into_iter().filter(|saved| saved.key == self.key) {
            let Some(stamp) = stamp(&self.contexts.path(&saved.name)) else {
                continue;
            };
            let kept = before
                .remove(&saved.name)
                .filter(|state| state.stamp == stamp);
            let state = kept.map_or_else(
                || {
                    Ok(IndexedState {
                        stamp,
                        tokens: self.contexts.tokens(&saved.name)?.into(),
                        back: saved.back.map(|back| back.tokens),
                        whole: None,
                    })
                },
                Ok,
            );
            match state {
                Ok(state) => {
                    known.states.insert(saved.name, state);
                }
                Err(Error { code, .. }) => all &= code != Code::Storage,
            }
        }
        all
    }

    /// Begins a context, which replaces another one of its name or is refused.
    pub(crate) fn draft(&self, name: &str, replaces: bool) -> Result<Draft, Error> {
        let draft = self.contexts.draft(name)?;
        match replaces {
            true => Ok(draft),
            false => draft.without_replacing(),
        }
    }

    /// Gives a written state its name.
    pub(crate) fn seal(
        &self,
        draft: Draft,
        tokens: usize,
        bytes: u64,
    ) -> Result<ContextDescription, Error> {
        let saved = draft.seal(self.model.clone(), tokens, self.key.clone(), bytes);
        // After two renames within one clock tick, the folder has the same time.
        self.known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .seen = None;
        saved
    }

    /// Returns the context with this name, to load it.
    ///
    /// # Errors
    /// [`Code::ContextUnknown`], [`Code::ContextMismatch`] with what differs, [`Code::Corrupt`].
    pub(crate) fn named(&self, name: &str) -> Result<(ContextDescription, SavedState), Error> {
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

    fn mismatch(&self, saved: &ContextDescription, difference: Difference) -> Error {
        let name = &saved.name;
        let (why, hint) = match difference {
            Difference::Model => (
                format!(
                    "was saved with another model, \"{}\"; this is \"{}\" with other weights",
                    saved.model, self.model
                ),
                "load it with its own model, or save it again",
            ),
            Difference::Template => (
                "was saved with another chat template".to_owned(),
                "use the same model file on both machines, or save it again",
            ),
            Difference::KvCache => (
                format!(
                    "was saved with a {} KV cache; this tier uses {}",
                    saved.key.kv_cache.as_str(),
                    self.key.kv_cache.as_str()
                ),
                "change the tier's `kv_cache` back, or save it again",
            ),
            Difference::Engine => (
                format!(
                    "was saved by another engine version, {}; this is {}",
                    saved.key.engine, self.key.engine
                ),
                "save it again, or use the same version of Tierbar on both machines",
            ),
        };
        Error::new(
            Code::ContextMismatch,
            format!("the saved context \"{name}\" {why}"),
        )
        .hint(hint)
    }
}
