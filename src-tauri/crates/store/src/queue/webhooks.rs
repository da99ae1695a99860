//! Webhooks of ended requests.

use super::signed;
use crate::{Store, word::Word};
use rusqlite::params;
use tierbar_core::{Error, queue::WebhookState};

/// A webhook to deliver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub id: String,
    pub url: String,
    /// Attempts before this one.
    pub attempts: u32,
    pub ended_ms: u64,
}

impl Store {
    /// Returns the webhooks due now, the longest due first.
    pub async fn due_webhooks(&self, limit: u32, now_ms: u64) -> Result<Vec<Delivery>, Error> {
        self.call(move |database| {
            database.read(|connection| {
                connection
                    .prepare_cached(
                        "SELECT id, webhook, webhook_attempts, ended_ms FROM jobs
                         WHERE webhook_due_ms <= ?1 ORDER BY webhook_due_ms LIMIT ?2",
                    )?
                    .query_map(params![signed(now_ms), limit], |row| {
                        Ok(Delivery {
                            id: row.get(0)?,
                            url: row.get(1)?,
                            attempts: row.get(2)?,
                            ended_ms: row.get::<_, i64>(3)?.unsigned_abs(),
                        })
                    })?
                    .collect()
            })
        })
        .await
    }

    /// Records an attempt: the new state, and when the next attempt is due, if any.
    pub async fn settle_webhook(
        &self,
        id: &str,
        state: WebhookState,
        due_ms: Option<u64>,
    ) -> Result<(), Error> {
        let id = id.to_owned();
        self.call(move |database| {
            database.write(|change| {
                let delivered = state == WebhookState::Delivered;
                change
                    .prepare_cached(
                        "UPDATE jobs SET webhook_state = ?1, webhook_due_ms = ?2, told = max(told, ?3),
                         webhook_attempts = webhook_attempts + 1 WHERE id = ?4",
                    )?
                    .execute(params![Word(state), due_ms.map(signed), delivered, id])?;
                Ok(())
            })
        })
        .await
    }

    /// Returns when the next webhook is due.
    pub async fn next_webhook_ms(&self) -> Result<Option<u64>, Error> {
        self.call(|database| {
            database.read(|connection| {
                let found: Option<i64> = connection
                    .prepare_cached(
                        "SELECT min(webhook_due_ms) FROM jobs WHERE webhook_due_ms IS NOT NULL",
                    )?
                    .query_row([], |row| row.get(0))?;
                Ok(found.map(i64::unsigned_abs))
            })
        })
        .await
    }
}
