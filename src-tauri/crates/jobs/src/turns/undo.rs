//! What files were before a run of an agent changed them, and the way back to it.

use super::{Jobs, Store, Turn, grants::now, run::open_folder};
use std::sync::Arc;
use tierbar_agent::{
    consent::{Act, Digest},
    tools::{
        Workplace,
        files::{FormerFile, NotUndone, digest},
    },
};
use tierbar_chats::agent::AgentRun;
use tierbar_core::{Code, Error};
use tierbar_fetch::blocking;
use tierbar_store::{AGENT_FILES_BYTES, AgentFile};

/// A change of a file that can be undone, and is about to be written.
pub(super) struct UndoableChange {
    store: Store,
    run: String,
    path: String,
    before: Option<Digest>,
    after: Digest,
}

impl UndoableChange {
    /// Notes that it is written.
    pub(super) async fn note(self) {
        let (run, path) = (&self.run, &self.path);
        let noted = self
            .store
            .note_agent_file(run, path, self.before, self.after);
        if let Err(error) = noted.await {
            // An undo takes the file for one that has changed since.
            tracing::warn!("the change of {path} is not noted: {error}");
        }
    }
}

/// Keeps what a file is before a run changes it; `None` for any other act.
///
/// # Errors
/// Why it cannot be kept, for the model. Then the change is not made, as it could not be undone.
pub(super) async fn keep_former_content(
    store: &Store,
    turn: &Turn,
    place: Option<Arc<Workplace>>,
    act: Act,
) -> Result<Option<UndoableChange>, String> {
    let (Act::Write { folder, change }, Some(place)) = (act, place) else {
        return Ok(None);
    };
    let path = change.path.display().to_string();
    let hash = change.before;
    let read = blocking("a file before its change", move || {
        let former = place.folder.former_content(&change);
        Ok(former.map(|former| (former, digest(&change.after))))
    });
    let read = read.await.map_err(|error| error.message)?;
    let (former, after) = read.map_err(|failure| failure.0)?;
    let (before, mode) = former.unzip();
    let chat = turn.chat.clone();
    let file = AgentFile {
        run: turn.id.clone(),
        answer: chat.map(|chat| (chat, turn.answer)),
        folder: folder.display().to_string(),
        path: path.clone(),
        before,
        mode,
        after: None,
    };
    let kept = store.keep_agent_file(file, now()).await;
    if !kept.map_err(|error| format!("{path} cannot be kept for an undo: {}", error.message))? {
        return Err(format!(
            "{path} is not changed: this run has already changed all that an undo has room for ({} MiB); the user can ask again",
            AGENT_FILES_BYTES >> 20
        ));
    }
    Ok(Some(UndoableChange {
        store: store.clone(),
        run: turn.id.clone(),
        path,
        before: hash,
        after,
    }))
}

impl Jobs {
    /// Returns the runs whose changes of files can be undone, the last first.
    ///
    /// # Errors
    /// `Storage`.
    pub async fn agent_runs(&self) -> Result<Vec<AgentRun>, Error> {
        self.store.agent_runs(now()).await
    }

    /// Puts the files that a run changed back to what they were. Returns their paths. `force`: also those that have changed since.
    ///
    /// # Errors
    /// `NotFound` if nothing of it is kept; `Conflict` while it runs, and for files that have changed since, in which case none is
    /// written; `BadRequest` for a folder that an agent cannot use any more; `Storage`, also for files that could not be put back, in which
    /// case all others are.
    pub async fn undo_agent_run(&self, run: &str, force: bool) -> Result<Vec<String>, Error> {
        let turns = self.turns.turns.lock().await;
        let is_running = |turn: &Arc<Turn>| turn.id == run && !turn.log.has_ended();
        let runs = turns.iter().any(is_running);
        drop(turns);
        if runs {
            let error = Error::new(Code::Conflict, "this run has not ended");
            return Err(error.hint("stop it, or wait for its answer"));
        }
        let files = self.store.agent_files(run).await?;
        let Some(first) = files.first() else {
            let error = Error::new(Code::NotFound, "this run has no changes that can be undone");
            return Err(error.hint(
                "changes are kept for 7 days; `tierbar agent undo --list` lists the runs that have some",
            ));
        };
        let place = open_folder(&first.folder, self).await?;
        let paths: Vec<_> = files.iter().map(|file| file.path.clone()).collect();
        let former = files.into_iter().map(|file| FormerFile {
            path: file.path.into(),
            before: file.before,
            mode: file.mode,
            after: file.after,
        });
        let former: Vec<_> = former.collect();
        let undoing = move || place.folder.undo(&former, force).map_err(not_undone);
        blocking("undoing a run's changes", undoing).await?;
        self.store.forget_agent_run(run).await?;
        Ok(paths)
    }
}

fn not_undone(why: NotUndone) -> Error {
    match why {
        NotUndone::ChangedSince(paths) => {
            let paths = paths.iter().map(|path| path.display().to_string());
            let paths = paths.collect::<Vec<_>>().join(", ");
            let message = format!("changed or deleted since: {paths}; nothing was undone");
            Error::new(Code::Conflict, message)
                .hint("undo it by force to lose what has changed since")
        }
        NotUndone::Left(why) => {
            let why: Vec<_> = why.into_iter().map(|failure| failure.0).collect();
            let why = why.join(", ");
            let message = format!("not undone: {why}; all other files are as before the run");
            Error::new(Code::Storage, message).hint("mend what is named, then undo again")
        }
    }
}
