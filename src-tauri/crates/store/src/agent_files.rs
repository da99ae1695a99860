//! The table of what files were before agents changed them, for a while.

use crate::{
    Store,
    sql::{self, Outcome, signed},
};
use rusqlite::{Connection, Row, params};
use tierbar_chats::agent::AgentRun;
use tierbar_core::Error;

/// How long it is kept after a run's last change, in seconds.
pub const AGENT_FILES_KEPT: u64 = 7 * 24 * 3600;
/// The most bytes of all runs; the oldest runs make room for a new change.
pub const AGENT_FILES_BYTES: u64 = 64 << 20;
const MOST_FILES: u64 = 1_000;

/// A file of a run before its first change there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFile {
    pub run: String,
    /// The chat and the message in which it runs.
    pub answer: Option<(String, u64)>,
    pub folder: String,
    /// Relative to the folder.
    pub path: String,
    /// `None`: there was none.
    pub before: Option<Vec<u8>>,
    /// Its permissions then, such as `0o644`; `None` if they are not known.
    pub mode: Option<u32>,
    /// The SHA-256 of what the run has left, if it is certain.
    pub after: Option<[u8; 32]>,
}

impl Store {
    /// Keeps a file as it is before a run changes it, unless that run has changed it before. `now`: in seconds since 1970. Returns
    /// whether there is room beside what the run has changed already.
    pub async fn keep_agent_file(&self, file: AgentFile, now: u64) -> Result<bool, Error> {
        self.write(move |change| keep(change, &file, now)).await
    }

    /// Notes what a run has written. `before` and `after`: the SHA-256 of the content that was there and of the new one.
    pub async fn note_agent_file(
        &self,
        run: &str,
        path: &str,
        before: Option<[u8; 32]>,
        after: [u8; 32],
    ) -> Result<(), Error> {
        let note = "UPDATE agent_files SET after = iif(after IS NULL OR after IS ?3, ?4, x'') WHERE run = ?1 AND path = ?2";
        let params = (run.to_owned(), path.to_owned(), before, after);
        self.execute(note, params).await
    }

    /// Returns the runs whose changes are kept, the last first.
    pub async fn agent_runs(&self, now: u64) -> Result<Vec<AgentRun>, Error> {
        self.write(move |change| {
            forget_old(change, now)?;
            runs(change)
        })
        .await
    }

    /// Returns the files of a run; none for an unknown one.
    pub async fn agent_files(&self, run: &str) -> Result<Vec<AgentFile>, Error> {
        let select = "SELECT run, chat_id, message, folder, path, before, after, mode FROM agent_files WHERE run = ?1 ORDER BY rowid";
        self.all(select, [run.to_owned()], file).await
    }

    /// Forgets what a run has changed.
    pub async fn forget_agent_run(&self, run: &str) -> Result<(), Error> {
        let forget = "DELETE FROM agent_files WHERE run = ?1";
        self.execute(forget, [run.to_owned()]).await
    }
}

fn keep(change: &Connection, file: &AgentFile, now: u64) -> Outcome<bool> {
    forget_old(change, now)?;
    let AgentFile {
        run,
        answer,
        folder,
        path,
        before,
        mode,
        after: _,
    } = file;
    let known = sql::run(
        change,
        "UPDATE agent_files SET changed_at = ?3 WHERE run = ?1 AND path = ?2",
        params![run, path, signed(now)],
    )?;
    if known > 0 {
        return Ok(true);
    }
    let more = before.as_ref().map_or(0, Vec::len) as u64;
    let fits = |(files, bytes): (u64, u64)| {
        files < MOST_FILES && bytes.saturating_add(more) <= AGENT_FILES_BYTES
    };
    let own = "SELECT count(*), coalesce(sum(length(before)), 0) FROM agent_files WHERE run = ?1";
    if !fits(sql::one(change, own, [run], |row| row.try_into())?) {
        return Ok(false);
    }
    let all = "SELECT count(*), coalesce(sum(length(before)), 0) FROM agent_files";
    while !fits(sql::one(change, all, [], |row| row.try_into())?) {
        sql::run(
            change,
            "DELETE FROM agent_files WHERE run =
             (SELECT run FROM agent_files WHERE run <> ?1 ORDER BY changed_at, rowid LIMIT 1)",
            [run],
        )?;
    }
    let (chat, message) = answer.clone().unzip();
    sql::run(
        change,
        "INSERT INTO agent_files (run, chat_id, message, folder, path, changed_at, before, mode)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        params![run, chat, message, folder, path, signed(now), before, mode],
    )?;
    Ok(true)
}

/// Also forgets what was kept before the clock was set back.
pub(crate) fn forget_old(change: &Connection, now: u64) -> Outcome<usize> {
    sql::run(
        change,
        "DELETE FROM agent_files WHERE abs(?1 - changed_at) > ?2",
        [signed(now), signed(AGENT_FILES_KEPT)],
    )
}

fn runs(connection: &Connection) -> Outcome<Vec<AgentRun>> {
    let mut query = connection.prepare_cached(
        "SELECT run, chat_id, message, folder, path, max(changed_at) OVER (PARTITION BY run) AS ended FROM agent_files
         ORDER BY ended DESC, run, rowid",
    )?;
    let mut rows = query.query([])?;
    let mut runs: Vec<AgentRun> = Vec::new();
    while let Some(row) = rows.next()? {
        let (id, path): (String, String) = (row.get(0)?, row.get(4)?);
        match runs.last_mut().filter(|last| last.id == id) {
            Some(last) => last.files.push(path),
            None => runs.push(AgentRun {
                id,
                chat: row.get(1)?,
                message: row.get(2)?,
                folder: row.get(3)?,
                at: row.get(5)?,
                files: vec![path],
            }),
        }
    }
    Ok(runs)
}

fn file(row: &Row) -> rusqlite::Result<AgentFile> {
    let chat: Option<String> = row.get(1)?;
    let after: Option<Vec<u8>> = row.get(6)?;
    Ok(AgentFile {
        run: row.get(0)?,
        answer: chat.zip(row.get(2)?),
        folder: row.get(3)?,
        path: row.get(4)?,
        before: row.get(5)?,
        after: after.and_then(|after| after.try_into().ok()),
        mode: row.get(7)?,
    })
}
