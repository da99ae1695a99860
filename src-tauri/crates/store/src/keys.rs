//! The table of API keys, which has only their hashes.

use crate::{
    Store,
    sql::{self, Outcome, signed},
};
use rusqlite::{Connection, Row, params};
use tierbar_core::{
    Error,
    keys::{ApiKey, KeyLimits},
};

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

impl Store {
    /// Returns all API keys, oldest first, with those revoked last.
    pub async fn keys(&self) -> Result<Vec<KeptKey>, Error> {
        let all = format!("SELECT {COLUMNS} FROM keys ORDER BY created_ms, name");
        self.all(all, [], key_of_row).await
    }

    /// Stores a new key in place of a revoked one of its name, unless its name is in use or there are 1000.
    pub async fn add_key(&self, key: KeptKey) -> Result<AddedKey, Error> {
        self.write(move |change| add(change, &key)).await
    }

    /// Marks a key as revoked; returns `false` if no active key has that name.
    pub async fn revoke_key(&self, name: &str, at_ms: u64) -> Result<bool, Error> {
        let name = name.to_owned();
        self.write(move |change| {
            let revoked = sql::run(
                change,
                "UPDATE keys SET revoked_ms = ?2 WHERE name = ?1 AND revoked_ms IS NULL",
                params![name, signed(at_ms)],
            )?;
            sql::run(
                change,
                "DELETE FROM keys WHERE name IN (SELECT name FROM keys WHERE revoked_ms IS NOT NULL \
                 ORDER BY revoked_ms DESC, name LIMIT -1 OFFSET ?1)",
                [REVOKED_KEPT],
            )?;
            Ok(revoked > 0)
        })
        .await
    }

    /// Records the use of keys; deleted ones are ignored.
    pub async fn keys_used(&self, uses: Vec<KeyUse>) -> Result<(), Error> {
        self.write(move |change| {
            for used in uses {
                sql::run(
                    change,
                    "UPDATE keys SET last_used_ms = ?2, tokens_missing = ?3, tokens_at_ms = ?4 WHERE hash = ?1",
                    params![
                        used.hash,
                        signed(used.last_used_ms),
                        signed(used.tokens.missing),
                        signed(used.tokens.at_ms)
                    ],
                )?;
            }
            Ok(())
        })
        .await
    }
}

fn add(connection: &Connection, kept: &KeptKey) -> Outcome<AddedKey> {
    let key = &kept.key;
    let revoked = "SELECT revoked_ms FROM keys WHERE name = ?1";
    let revoked: Option<Option<u64>> =
        sql::first(connection, revoked, [&key.name], |row| row.get(0))?;
    if revoked == Some(None) {
        return Ok(AddedKey::Exists);
    }
    let live = "SELECT count(*) FROM keys WHERE revoked_ms IS NULL";
    let live: u32 = sql::one(connection, live, [], |row| row.get(0))?;
    if live >= MOST {
        return Ok(AddedKey::Full);
    }
    sql::run(
        connection,
        &format!(
            "INSERT OR REPLACE INTO keys ({COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)"
        ),
        params![
            key.name,
            kept.hash,
            signed(key.created_ms),
            key.last_used_ms.map(signed),
            key.revoked_ms.map(signed),
            key.limits.requests_per_minute,
            key.limits.tokens_per_day.map(signed),
            key.limits.at_once,
            signed(kept.tokens.missing),
            signed(kept.tokens.at_ms),
        ],
    )?;
    Ok(AddedKey::Kept)
}

fn key_of_row(row: &Row) -> rusqlite::Result<KeptKey> {
    Ok(KeptKey {
        key: ApiKey {
            name: row.get(0)?,
            limits: KeyLimits {
                requests_per_minute: row.get(5)?,
                tokens_per_day: row.get(6)?,
                at_once: row.get(7)?,
            },
            created_ms: row.get(2)?,
            last_used_ms: row.get(3)?,
            revoked_ms: row.get(4)?,
        },
        hash: row.get(1)?,
        tokens: TokensUsed {
            missing: row.get(8)?,
            at_ms: row.get(9)?,
        },
    })
}
