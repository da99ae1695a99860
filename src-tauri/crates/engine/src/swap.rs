//! Conversations that are in memory when this worker has to go: their states are written, and found again by the next one.

use crate::{
    generate::SavedState,
    llama::Token,
    saves::{Saves, Uses},
};
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tierbar_contexts::{Draft, Key, Swapped};
use tierbar_core::{Error, ModelId};

/// Fewer tokens are read again as fast as their state is written and found.
pub(crate) const LEAST: usize = 96;
/// So long a worker may stay for it. What is not written then is not kept; the host waits longer before it kills.
pub(crate) const LONGEST: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Swap {
    folder: Swapped,
    states: Saves,
    key: Key,
    /// A state that has more than the prompt is of little use: the model cannot go back in it.
    whole_only: bool,
    asked: AtomicBool,
    socket: PathBuf,
}

impl Swap {
    pub(crate) fn new(
        folder: Swapped,
        key: Key,
        model: ModelId,
        whole_only: bool,
        socket: &Path,
    ) -> Self {
        folder.tidy();
        let contexts = folder.contexts().clone();
        Self {
            states: Saves::new(contexts, key.clone(), model, whole_only, Uses::Swap),
            folder,
            key,
            whole_only,
            asked: AtomicBool::new(false),
            socket: socket.to_owned(),
        }
    }

    /// Has the engine's thread write what it holds, and end the process then.
    pub(crate) fn ask(&self) {
        self.asked.store(true, Ordering::Release);
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    /// Ends the process.
    pub(crate) fn leave(&self) -> ! {
        crate::leave(&self.socket)
    }

    /// The state that holds the longest beginning of the prompt, if it is worth being read.
    pub(crate) fn find(&self, prompt: &[Token]) -> Option<SavedState> {
        self.states.find(prompt)
    }

    /// A file for the state of these tokens, of so many bytes. `None` if there is one already, or it is not to be kept.
    pub(crate) fn draft(&self, tokens: &[Token], bytes: u64) -> Result<Option<Draft>, Error> {
        let known = self.states.all();
        let holds = |state: &[Token]| {
            state.starts_with(tokens) && (state.len() == tokens.len() || !self.whole_only)
        };
        if let Some((name, _)) = known.iter().find(|(_, state)| holds(state)) {
            self.folder.touch(name);
            return Ok(None);
        }
        let superfluous: Vec<_> = known
            .into_iter()
            .filter(|(_, state)| tokens.starts_with(state))
            .map(|(name, _)| name)
            .collect();
        self.folder
            .draft(&self.identity(tokens), bytes, &superfluous)
    }

    /// Gives a written state its name, and takes those away that it makes superfluous.
    pub(crate) fn seal(&self, draft: Draft, tokens: &[Token], bytes: u64) -> Result<(), Error> {
        let saved = self.states.seal(draft, tokens.len(), bytes)?;
        for (name, state) in self.states.all() {
            if name != saved.name && tokens.starts_with(&state) {
                let _gone = self.folder.contexts().remove(&name);
            }
        }
        Ok(())
    }

    fn identity(&self, tokens: &[Token]) -> String {
        let key = &self.key;
        let kv = key.kv_cache.as_str();
        format!(
            "{} {} {kv} {} {tokens:?}",
            key.model, key.template, key.engine
        )
    }
}

/// The better of two states for the prompt.
pub(crate) fn longer(
    prompt: &[Token],
    one: Option<SavedState>,
    other: Option<SavedState>,
) -> Option<SavedState> {
    let usable = |state: &Option<SavedState>| state.as_ref().map(|state| state.usable(prompt));
    if usable(&other) > usable(&one) {
        other
    } else {
        one
    }
}

pub(crate) type Swapping = Option<Arc<Swap>>;
