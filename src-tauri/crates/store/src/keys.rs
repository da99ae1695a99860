//! The table of API keys, which has only their hashes.

use crate::integer::signed;
use rusqlite::{Connection, OptionalExtension, Row, params};
use tierbar_core::keys::{ApiKey, KeyLimits};

/// The most keys: enough for any use, and few enough to hold in memory.
const MOST: u32 = 1000;
/// How many revoked keys are still listed.
const REVOKED_KEPT: u32 = 100;
const COLUMNS: &str = "name, hash, created_ms, last_used_ms, revoked_ms, requests_per_minute, tokens_per_day, at_once, \
                       tokens_missing, tokens_at_ms";

/// A stored key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptKey {
    pub key: ApiKey,
    /// The key's SHA-256.
    pub hash: [u8; 32],
    pub tokens: TokensUsed,
}

/// How many of a day's tokens were used up at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokensUsed {
    pub missing: u64,
    pub at_ms: u64,
}

/// When a key was last used, and how much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyUse {
    pub hash: [u8; 32],
    pub last_used_ms: u64,
    pub tokens: TokensUsed,
}

/// The outcome of adding a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddedKey {
    Kept,
    /// A key of this name is in use.
    Exists,
    /// There are as many keys as allowed.
    Full,
}

pub(crate) fn list(connection: &Connection) -> rusqlite::Result<Vec<KeptKey>> {
    connection
        .prepare_cached(&format!(
            "SELECT {COLUMNS} FROM keys ORDER BY created_ms, name"
        ))?
        .query_map([], key_of_row)?
        .collect()
}

/// Adds a key, in place of a revoked one of the same name.
pub(crate) fn add(connection: &Connection, kept: &KeptKey) -> rusqlite::Result<AddedKey> {
    let ApiKey {
        name,
        limits,
        created_ms,
        last_used_ms,
        revoked_ms,
    } = &kept.key;
    let revoked: Option<Option<i64>> = connection
        .query_row(
            "SELECT revoked_ms FROM keys WHERE name = ?1",
            [name],
            |row| row.get(0),
        )
        .optional()?;
    if revoked == Some(None) {
        return Ok(AddedKey::Exists);
    }
    let live: u32 = connection.query_row(
        "SELECT count(*) FROM keys WHERE revoked_ms IS NULL",
        [],
        |row| row.get(0),
    )?;
    if live >= MOST {
        return Ok(AddedKey::Full);
    }
    connection.execute(
        &format!("INSERT OR REPLACE INTO keys ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"),
        params![
            name,
            kept.hash,
            signed(*created_ms),
            last_used_ms.map(signed),
            revoked_ms.map(signed),
            limits.requests_per_minute,
            limits.tokens_per_day.map(signed),
            limits.at_once,
            signed(kept.tokens.missing),
            signed(kept.tokens.at_ms),
        ],
    )?;
    Ok(AddedKey::Kept)
}

/// Revokes a key; returns `false` if no active key has that name.
pub(crate) fn revoke(connection: &Connection, name: &str, at_ms: u64) -> rusqlite::Result<bool> {
    let changed = connection.execute(
        "UPDATE keys SET revoked_ms = ?2 WHERE name = ?1 AND revoked_ms IS NULL",
        params![name, signed(at_ms)],
    )?;
    connection.execute(
        "DELETE FROM keys WHERE name IN (SELECT name FROM keys WHERE revoked_ms IS NOT NULL \
         ORDER BY revoked_ms DESC, name LIMIT -1 OFFSET ?1)",
        [REVOKED_KEPT],
    )?;
    Ok(changed > 0)
}

pub(crate) fn record_uses(connection: &Connection, uses: &[KeyUse]) -> rusqlite::Result<()> {
    let mut update = connection.prepare_cached(
        "UPDATE keys SET last_used_ms = ?2, tokens_missing = ?3, tokens_at_ms = ?4 WHERE hash = ?1",
    )?;
    for KeyUse {
        hash,
        last_used_ms,
        tokens,
    } in uses
    {
        update.execute(params![
            hash,
            signed(*last_used_ms),
            signed(tokens.missing),
            signed(tokens.at_ms)
        ])?;
    }
    Ok(())
}

fn key_of_row(row: &Row) -> rusqlite::Result<KeptKey> {
    let time = |at: usize| -> rusqlite::Result<Option<u64>> {
        Ok(row.get::<_, Option<i64>>(at)?.map(i64::unsigned_abs))
    };
    Ok(KeptKey {
        key: ApiKey {
            name: row.get(0)?,
            limits: KeyLimits {
                requests_per_minute: row.get(5)?,
                tokens_per_day: time(6)?,
                at_once: row.get(7)?,
            },
            created_ms: time(2)?.unwrap_or(0),
            last_used_ms: time(3)?,
            revoked_ms: time(4)?,
        },
        hash: row.get(1)?,
        tokens: TokensUsed {
            missing: time(8)?.unwrap_or(0),
            at_ms: time(9)?.unwrap_or(0),
        },
    })
}
