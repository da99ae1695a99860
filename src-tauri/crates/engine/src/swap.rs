//! Keeps the conversations in memory when the worker ends: their states are written to disk, and the next worker of the
//! model finds them.

use crate::{llama::Token, saved_contexts::SavedContexts};
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tierbar_contexts::{Draft, Key, SwapFolder};
use tierbar_core::{Error, ModelId};

/// How long the worker may take to write them. What is not written by then is lost; the host waits longer before it kills
/// the worker.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct ConversationSwap {
    folder: SwapFolder,
    pub(crate) states: SavedContexts,
    requested: AtomicBool,
    socket: PathBuf,
}

impl ConversationSwap {
    pub(crate) fn new(
        folder: SwapFolder,
        key: Key,
        model: ModelId,
        whole_only: bool,
        socket: &Path,
    ) -> Self {
        folder.tidy();
        let contexts = folder.contexts().clone();
        Self {
            states: SavedContexts::new(contexts, key, model, whole_only, true),
            folder,
            requested: AtomicBool::new(false),
            socket: socket.to_owned(),
        }
    }

    /// Requests that the engine thread write its conversations and then end the process.
    pub(crate) fn request(&self) {
        self.requested.store(true, Ordering::Release);
    }

    pub(crate) fn is_requested(&self) -> bool {
        self.requested.load(Ordering::Acquire)
    }

    /// Ends the process.
    pub(crate) fn exit(&self) -> ! {
        crate::exit(&self.socket)
    }

    /// Creates a file for a state of `bytes` bytes with these tokens. Returns `None` if it is on disk already, or exceeds the
    /// limit.
    pub(crate) fn draft(&self, tokens: &[Token], bytes: u64) -> Result<Option<Draft>, Error> {
        let known = self.states.all();
        let holds = |state: &[Token]| {
            state.starts_with(tokens) && (state.len() == tokens.len() || !self.states.whole_only)
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

    /// Gives a written state its name, and removes the states that it supersedes.
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
        let key = &self.states.key;
        let kv = key.kv_cache.as_str();
        format!(
            "{} {} {kv} {} {tokens:?}",
            key.model, key.template, key.engine
        )
    }
}

pub(crate) type Swapping = Option<Arc<ConversationSwap>>;
