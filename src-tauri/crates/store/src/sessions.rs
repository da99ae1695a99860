//! The table of browsers' sessions, which has only their hashes.

use crate::{
    Store,
    sql::{self, Outcome, signed},
};
use rusqlite::{Connection, params};
use tierbar_core::Error;

/// The most sessions; the one unused for longest makes room for a new one.
const MOST: u32 = 100;
/// How exact the time of the last use is: not every request is written.
const EXACT_MS: u64 = 3_600_000;

impl Store {
    /// Adds a session, begun now, and deletes those unused for `idle_ms`. `hash`: the SHA-256 of its secret.
    pub async fn add_session(
        &self,
        hash: [u8; 32],
        idle_ms: u64,
        now_ms: u64,
    ) -> Result<(), Error> {
        self.write(move |change| {
            trim(change, idle_ms, now_ms)?;
            let add = "INSERT INTO sessions (hash, created_ms, used_ms) VALUES (?1, ?2, ?2)";
            sql::run(change, add, params![hash, signed(now_ms)])?;
            sql::run(
                change,
                "DELETE FROM sessions WHERE hash NOT IN (SELECT hash FROM sessions ORDER BY used_ms DESC LIMIT ?1)",
                [MOST],
            )?;
            Ok(())
        })
        .await
    }

    /// Deletes sessions unused for `idle_ms`.
    pub async fn trim_sessions(&self, idle_ms: u64, now_ms: u64) -> Result<(), Error> {
        self.write(move |change| trim(change, idle_ms, now_ms))
            .await
    }

    /// Returns when each session began and when it was last used, to the hour, the last used first; without those unused for `idle_ms`.
    pub async fn sessions(&self, idle_ms: u64, now_ms: u64) -> Result<Vec<(u64, u64)>, Error> {
        let select = "SELECT created_ms, used_ms FROM sessions WHERE abs(?1 - used_ms) <= ?2 ORDER BY used_ms DESC";
        let (now, idle) = (signed(now_ms), signed(idle_ms));
        self.all(select, [now, idle], |row| row.try_into()).await
    }

    /// Returns when a session began, and notes its use; `None` for an unknown one, and for one unused for `idle_ms`.
    pub async fn use_session(
        &self,
        hash: [u8; 32],
        idle_ms: u64,
        now_ms: u64,
    ) -> Result<Option<u64>, Error> {
        self.call(move |database| {
            let find = "SELECT created_ms, used_ms FROM sessions WHERE hash = ?1";
            let found: Option<(u64, u64)> = database
                .read(|connection| sql::first(connection, find, [hash], |row| row.try_into()))?;
            let Some((created, used)) = found else {
                return Ok(None);
            };
            // A clock far ahead of today's does not prolong it either.
            let unused_ms = now_ms.abs_diff(used);
            if unused_ms > idle_ms {
                return Ok(None);
            }
            if unused_ms > EXACT_MS {
                let update = "UPDATE sessions SET used_ms = ?2 WHERE hash = ?1";
                let used = params![hash, signed(now_ms)];
                // On a full disk, the owner must still get in to free space.
                let _unnoted = database.write(|change| sql::run(change, update, used));
            }
            Ok(Some(created))
        })
        .await
    }

    /// Ends a session; an unknown one has ended.
    pub async fn end_session(&self, hash: [u8; 32]) -> Result<(), Error> {
        self.execute("DELETE FROM sessions WHERE hash = ?1", [hash])
            .await
    }

    /// Ends all sessions, except `kept`.
    pub async fn end_sessions(&self, kept: Option<[u8; 32]>) -> Result<(), Error> {
        self.execute("DELETE FROM sessions WHERE hash IS NOT ?1", [kept])
            .await
    }
}

fn trim(connection: &Connection, idle_ms: u64, now_ms: u64) -> Outcome<()> {
    let trim = "DELETE FROM sessions WHERE abs(?1 - used_ms) > ?2";
    sql::run(connection, trim, [signed(now_ms), signed(idle_ms)])?;
    Ok(())
}
