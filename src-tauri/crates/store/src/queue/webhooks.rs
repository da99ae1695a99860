//! Webhooks of ended requests.

use crate::{
    Store,
    sql::{self, Word, signed},
};
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
        let select = "SELECT id, webhook, webhook_attempts, ended_ms FROM jobs
            WHERE webhook_due_ms <= ?1 ORDER BY webhook_due_ms LIMIT ?2";
        self.all(select, (signed(now_ms), limit), |row| {
            Ok(Delivery {
                id: row.get(0)?,
                url: row.get(1)?,
                attempts: row.get(2)?,
                ended_ms: row.get(3)?,
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
        let delivered = state == WebhookState::Delivered;
        let settle =
            "UPDATE jobs SET webhook_state = ?1, webhook_due_ms = ?2, told = max(told, ?3),
            webhook_attempts = webhook_attempts + 1 WHERE id = ?4";
        let params = (Word(state), due_ms.map(signed), delivered, id.to_owned());
        self.execute(settle, params).await
    }

    /// Returns when the next webhook is due.
    pub async fn next_webhook_ms(&self) -> Result<Option<u64>, Error> {
        let next = "SELECT min(webhook_due_ms) FROM jobs WHERE webhook_due_ms IS NOT NULL";
        self.read(move |connection| sql::one(connection, next, [], |row| row.get(0)))
            .await
    }
}
