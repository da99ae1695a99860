//! The table of browsers' sessions, which has only their hashes.

use crate::Store;
use crate::integer::signed;
use rusqlite::{Connection, OptionalExtension, params};
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
        self.call(move |database| {
            database.write(|change| {
                trim(change, idle_ms, now_ms)?;
                change.execute(
                    "INSERT INTO sessions (hash, created_ms, used_ms) VALUES (?1, ?2, ?2)",
                    params![hash, signed(now_ms)],
                )?;
                change.execute(
                    "DELETE FROM sessions WHERE hash NOT IN (SELECT hash FROM sessions ORDER BY used_ms DESC LIMIT ?1)",
                    [MOST],
                )?;
                Ok(())
            })
        })
        .await
    }

    /// Deletes sessions unused for `idle_ms`.
    pub async fn trim_sessions(&self, idle_ms: u64, now_ms: u64) -> Result<(), Error> {
        self.call(move |database| database.write(|change| trim(change, idle_ms, now_ms)))
            .await
    }

    /// Returns when each session began and when it was last used, to the hour, the last used first; without those unused for `idle_ms`.
    pub async fn sessions(&self, idle_ms: u64, now_ms: u64) -> Result<Vec<(u64, u64)>, Error> {
        self.call(move |database| {
            database.read(|connection| {
                let mut query = connection.prepare_cached(
                    "SELECT created_ms, used_ms FROM sessions WHERE abs(?1 - used_ms) <= ?2 ORDER BY used_ms DESC",
                )?;
                let found = query.query_map([signed(now_ms), signed(idle_ms)], |row| {
                    let (created, used): (i64, i64) = (row.get(0)?, row.get(1)?);
                    Ok((created.unsigned_abs(), used.unsigned_abs()))
                })?;
                found.collect()
            })
        })
        .await
    }

    /// Returns when a session began, and notes its use; `None` for an unknown one, and for one unused for `idle_ms`.
    pub async fn use_session(
        &self,
        hash: [u8; 32],
        idle_ms: u64,
        now_ms: u64,
    ) -> Result<Option<u64>, Error> {
        self.call(move |database| {
            let found: Option<(i64, i64)> = database.read(|connection| {
                connection
                    .prepare_cached("SELECT created_ms, used_ms FROM sessions WHERE hash = ?1")?
                    .query_row([hash], |row| Ok((row.get(0)?, row.get(1)?)))
                    .optional()
            })?;
            let Some((created, used)) = found else {
                return Ok(None);
            };
            // A clock far ahead of today's does not prolong it either.
            let unused_ms = now_ms.abs_diff(used.unsigned_abs());
            if unused_ms > idle_ms {
                return Ok(None);
            }
            if unused_ms > EXACT_MS {
                // On a full disk, the owner must still get in to free space.
                let _unnoted = database.write(|change| {
                    change.execute(
                        "UPDATE sessions SET used_ms = ?2 WHERE hash = ?1",
                        params![hash, signed(now_ms)],
                    )
                });
            }
            Ok(Some(created.unsigned_abs()))
        })
        .await
    }

    /// Ends a session; an unknown one has ended.
    pub async fn end_session(&self, hash: [u8; 32]) -> Result<(), Error> {
        self.call(move |database| {
            database
                .write(|change| change.execute("DELETE FROM sessions WHERE hash = ?1", [hash]))?;
            Ok(())
        })
        .await
    }

    /// Ends all sessions, except `kept`.
    pub async fn end_sessions(&self, kept: Option<[u8; 32]>) -> Result<(), Error> {
        self.call(move |database| {
            database.write(|change| {
                change.execute("DELETE FROM sessions WHERE hash IS NOT ?1", [kept])
            })?;
            Ok(())
        })
        .await
    }
}

fn trim(connection: &Connection, idle_ms: u64, now_ms: u64) -> rusqlite::Result<()> {
    connection.execute(
        "DELETE FROM sessions WHERE abs(?1 - used_ms) > ?2",
        [signed(now_ms), signed(idle_ms)],
    )?;
    Ok(())
}
