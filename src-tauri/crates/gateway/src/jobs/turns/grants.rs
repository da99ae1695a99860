//! What was allowed to agents beyond once, as long as the host runs: listed and revoked.

use super::{Grant, Jobs};
use std::time::{SystemTime, UNIX_EPOCH};
use tierbar_agent::consent::visible;
use tierbar_core::{Code, Error, chat::agent::AgentGrant};

/// In seconds since 1970.
pub(super) fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_secs())
}

impl Jobs {
    /// Returns what holds now, the newest first.
    pub(crate) fn agent_grants(&self) -> Vec<AgentGrant> {
        let now = now();
        let mut grants = self.turns.grants.lock();
        grants.retain(|grant| grant.until.is_none_or(|until| now < until));
        grants.iter().rev().map(shown).collect()
    }

    /// Revokes a grant, for turns that run too.
    ///
    /// # Errors
    /// `NotFound`.
    pub(crate) fn revoke_agent_grant(&self, id: &str) -> Result<(), Error> {
        let mut grants = self.turns.grants.lock();
        let at = grants.iter().position(|grant| grant.id == id);
        let at = at.ok_or_else(|| {
            Error::new(Code::NotFound, "nothing is allowed to agents with this id")
                .hint("list what is allowed; it may have ended")
        })?;
        grants.remove(at);
        Ok(())
    }

    /// Revokes all grants. Returns how many there were.
    pub(crate) fn revoke_agent_grants(&self) -> usize {
        self.turns.grants.lock().drain(..).count()
    }
}

fn shown(grant: &Grant) -> AgentGrant {
    let folder = grant.what.folder();
    AgentGrant {
        id: grant.id.clone(),
        title: grant.what.title().to_owned(),
        what: grant.what.subject(),
        folder: folder.map(|folder| visible(&folder.display().to_string())),
        chat: grant.chat.clone(),
        since: grant.since,
        until: grant.until,
    }
}
