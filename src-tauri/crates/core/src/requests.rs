//! The last requests: client, tier, time and tokens. Never a word of a prompt or an answer.

use crate::{ModelId, TierId, config::Dollars};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestOutcome {
    Answered,
    /// Refused, or broken off with an error.
    Failed,
    /// The client left before the end.
    #[default]
    Cancelled,
}

/// A request that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RequestRecord {
    /// Grows with each request of a host.
    pub id: u64,
    /// When it arrived, in milliseconds since 1970.
    pub at_ms: u64,
    /// The path that the client called, which names the dialect.
    pub path: String,
    /// The name of its API key; `null` without one.
    #[schema(required = true)]
    pub client: Option<String>,
    /// The tier that answered, or was asked last; `null` if the request came to none.
    #[schema(required = true)]
    pub tier: Option<TierId>,
    #[schema(required = true)]
    pub model: Option<ModelId>,
    #[schema(required = true)]
    pub prompt_tokens: Option<u64>,
    #[schema(required = true)]
    pub completion_tokens: Option<u64>,
    /// From its arrival until it had its tier: queues and loads.
    #[schema(required = true)]
    pub waited_ms: Option<u64>,
    /// From its arrival; `null` for an answer that came whole.
    #[schema(required = true)]
    pub first_token_ms: Option<u64>,
    /// From its arrival to its end.
    pub duration_ms: u64,
    pub outcome: RequestOutcome,
    /// The code of its error, such as `over_budget`.
    #[schema(required = true)]
    pub code: Option<String>,
    /// The energy of the processors in millijoules, less what requests that ran beside it have counted. Only where the machine
    /// measures it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub millijoules: Option<u64>,
    /// What an endpoint charges in US dollars, by its prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paid: Option<Dollars>,
}

/// The last requests, in memory only.
#[derive(Debug, Default)]
pub struct RecentRequests {
    /// Oldest first.
    kept: VecDeque<RequestRecord>,
    last: u64,
}

impl RecentRequests {
    pub const KEPT: usize = 500;

    /// Adds a request, and gives it its number.
    pub fn add(&mut self, record: RequestRecord) {
        self.last += 1;
        if self.kept.len() == Self::KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(RequestRecord {
            id: self.last,
            ..record
        });
    }

    /// Returns the last `limit` requests, newest first.
    pub fn newest(&self, limit: usize) -> Vec<RequestRecord> {
        self.kept.iter().rev().take(limit).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_requests_are_kept_newest_first() {
        let mut recent = RecentRequests::default();
        assert_eq!(recent.newest(9), []);
        for at_ms in 1..=600 {
            recent.add(RequestRecord {
                at_ms,
                ..RequestRecord::default()
            });
        }
        let newest = recent.newest(2);
        assert_eq!([newest[0].id, newest[1].id], [600, 599]);
        assert_eq!(newest[0].at_ms, 600);
        assert_eq!(recent.newest(usize::MAX).len(), RecentRequests::KEPT);
    }
}
