//! Finds the saved contexts that this model can continue from, by their tokens.

use crate::{
    llama::Token,
    saved_state::{MIN_SWAPPED_TOKENS, SavedState},
};
use parking_lot::{Mutex, MutexGuard};
use std::{
    cmp::Reverse, collections::HashMap, os::unix::fs::MetadataExt, path::Path, sync::Arc,
    time::SystemTime,
};
use tierbar_contexts::{ContextDescription, Contexts, Difference, Draft, Key};
use tierbar_core::{Code, Error, ModelId};

/// A state is not worth reading if the prompt uses less than one part in this many of it.
const WORTH: usize = 10;

#[derive(Debug)]
pub(crate) struct SavedContexts {
    pub(crate) contexts: Contexts,
    pub(crate) key: Key,
    model: ModelId,
    /// Whether a state with more tokens than the prompt is useless, because the model cannot go back in it.
    pub(crate) whole_only: bool,
    /// Whether they were swapped out, and are removed if damaged. Those that were saved by name are kept.
    swapped: bool,
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
    saved: SavedState,
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
        swapped: bool,
    ) -> Self {
        Self {
            contexts,
            key,
            model,
            whole_only,
            swapped,
            known: Mutex::default(),
        }
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
                .max_by_key(|(shared, _, state)| (*shared, Reverse(state.saved.tokens.len())))?;
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
                return Some(state.saved.clone());
            }
            if self.swapped {
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
        let shared = state.saved.usable(prompt);
        let little = shared < MIN_SWAPPED_TOKENS || shared * WORTH < state.saved.tokens.len();
        if self.swapped && little {
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
            .map(|(name, state)| (name.clone(), Arc::clone(&state.saved.tokens)))
            .collect()
    }

    /// Returns the current states, or `None` if the folder does not exist.
    fn known(&self) -> Option<MutexGuard<'_, ContextIndex>> {
        let mut known = self.known.lock();
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
            let back = saved.back.map(|back| back.tokens);
            let state = match before.remove(&saved.name) {
                Some(state) if state.stamp == stamp => Ok(state),
                _ => self
                    .read_state(&saved.name, back)
                    .map(|saved| IndexedState {
                        stamp,
                        saved,
                        whole: None,
                    }),
            };
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
        self.known.lock().seen = None;
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
        let state = self.read_state(name, None)?;
        Ok((saved, state))
    }

    fn read_state(&self, name: &str, back: Option<usize>) -> Result<SavedState, Error> {
        Ok(SavedState {
            path: self.contexts.path(name),
            tokens: self.contexts.tokens(name)?.into(),
            back: back.filter(|_| self.whole_only),
            whole_only: self.whole_only,
            swapped: self.swapped,
        })
    }

    fn mismatch(&self, saved: &ContextDescription, difference: Difference) -> Error {
        let (name, own) = (&saved.name, &self.key);
        let (why, hint) = match difference {
            Difference::Model => {
                let (other, own) = (&saved.model, &self.model);
                (
                    format!(
                        "with another model, \"{other}\"; this is \"{own}\" with other weights"
                    ),
                    "load it with its own model, or save it again",
                )
            }
            Difference::Template => (
                "with another chat template".to_owned(),
                "use the same model file on both machines, or save it again",
            ),
            Difference::KvCache => {
                let [other, own] = [&saved.key, own].map(|key| key.kv_cache.as_str());
                (
                    format!("with a {other} KV cache; this tier uses {own}"),
                    "change the tier's `kv_cache` back, or save it again",
                )
            }
            Difference::Engine => {
                let [other, own] = [&saved.key, own].map(|key| &key.engine);
                (
                    format!("by another engine version, {other}; this is {own}"),
                    "save it again, or use the same version of Tierbar on both machines",
                )
            }
        };
        let message = format!("the saved context \"{name}\" was saved {why}");
        Error::new(Code::ContextMismatch, message).hint(hint)
    }
}
