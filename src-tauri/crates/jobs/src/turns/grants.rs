//! What was allowed to agents beyond once: kept, listed and revoked.

use super::{Jobs, Store};
use parking_lot::Mutex as SyncMutex;
use std::sync::Arc;
use tierbar_agent::consent::{Grant, visible};
use tierbar_chats::agent::AgentGrant;
use tierbar_core::{Code, Error};
use tierbar_edge::now_ms;
use tierbar_fetch::detached;
use tokio::sync::{Mutex, OnceCell};

/// In seconds since 1970.
pub(super) fn now() -> u64 {
    now_ms() / 1000
}

/// What was allowed. What holds in every chat is stored too; the rest ends with the host at the latest.
#[derive(Debug, Default)]
pub(super) struct KeptGrants {
    pub(super) list: SyncMutex<Vec<Grant>>,
    loaded: OnceCell<()>,
    /// What is stored, each as JSON. Held while it changes, so that what is newer is stored last.
    stored: Mutex<Vec<String>>,
}

impl KeptGrants {
    /// Reads what is stored, the first time.
    pub(super) async fn load(&self, store: &Store) -> Result<(), Error> {
        let load = async {
            let texts = store.agent_grants().await?;
            let read = texts
                .iter()
                .filter_map(|text| serde_json::from_str::<Grant>(text).ok());
            let lasting: Vec<_> = read.filter(is_lasting).collect();
            self.list.lock().extend(lasting);
            *self.stored.lock().await = texts;
            Ok::<_, Error>(())
        };
        self.loaded.get_or_try_init(|| load).await?;
        Ok(())
    }

    /// Stores what holds in every chat.
    pub(super) async fn store(self: &Arc<Self>, store: &Store) -> Result<(), Error> {
        let (grants, store) = (Arc::clone(self), store.clone());
        // A client that leaves in between would else leave what it has revoked in the store.
        let writing = async move { grants.write(&store).await };
        detached("storing the agents' permissions", writing).await
    }

    async fn write(&self, store: &Store) -> Result<(), Error> {
        let mut stored = self.stored.lock().await;
        let lasting = self.lasting();
        if *stored != lasting {
            store.put_agent_grants(lasting.clone()).await?;
            *stored = lasting;
        }
        Ok(())
    }

    fn lasting(&self) -> Vec<String> {
        let list = self.list.lock();
        let lasting = list.iter().filter(|grant| is_lasting(grant));
        // A folder whose name is no text is not stored.
        lasting
            .filter_map(|grant| serde_json::to_string(grant).ok())
            .collect()
    }
}

fn is_lasting(grant: &Grant) -> bool {
    grant.chat.is_none() && grant.until.is_none()
}

impl Jobs {
    /// Returns what holds now, the newest first.
    ///
    /// # Errors
    /// `Storage`.
    pub async fn agent_grants(&self) -> Result<Vec<AgentGrant>, Error> {
        self.turns.grants.load(&self.store).await?;
        let now = now();
        let mut grants = self.turns.grants.list.lock();
        grants.retain(|grant| grant.until.is_none_or(|until| now < until));
        Ok(grants.iter().rev().map(to_agent_grant).collect())
    }

    /// Revokes a grant, for turns that run too.
    ///
    /// # Errors
    /// `NotFound`; `Storage` if it may come back with the next start.
    pub async fn revoke_agent_grant(&self, id: &str) -> Result<(), Error> {
        self.turns.grants.load(&self.store).await?;
        let is_it = |grant: &mut Grant| grant.id == id;
        let revoked = self.turns.grants.list.lock().extract_if(.., is_it).count();
        if revoked == 0 {
            let message = format!("agents have no permission with the id {id:?}");
            let error = Error::new(Code::NotFound, message);
            return Err(
                error.hint("it may have ended; `tierbar agent grants` lists the current ones")
            );
        }
        self.turns.grants.store(&self.store).await
    }

    /// Revokes all grants. Returns how many there were.
    ///
    /// # Errors
    /// `Storage` if they may come back with the next start.
    pub async fn revoke_agent_grants(&self) -> Result<usize, Error> {
        self.turns.grants.load(&self.store).await?;
        let revoked = self.turns.grants.list.lock().drain(..).count();
        self.turns.grants.store(&self.store).await?;
        Ok(revoked)
    }
}

fn to_agent_grant(grant: &Grant) -> AgentGrant {
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

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_agent::consent::GrantCoverage;

    fn grant(id: &str, chat: Option<&str>) -> Grant {
        Grant {
            id: id.to_owned(),
            what: GrantCoverage::Command {
                line: "make test".to_owned(),
                folder: "/work".into(),
                network: false,
            },
            chat: chat.map(str::to_owned),
            until: chat.map(|_| 100),
            since: 0,
        }
    }

    #[tokio::test]
    async fn what_holds_in_every_chat_survives_the_host() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tierbar.db");
        let opened = tokio::task::spawn_blocking(move || Store::open(&path));
        let store = opened.await.unwrap().unwrap();
        let first = Arc::new(KeptGrants::default());
        first.load(&store).await.unwrap();
        let both = [grant("a", None), grant("b", Some("chat"))];
        first.list.lock().extend(both);
        first.store(&store).await.unwrap();
        let second = Arc::new(KeptGrants::default());
        // The second time adds nothing.
        for _ in 0..2 {
            second.load(&store).await.unwrap();
            assert_eq!(*second.list.lock(), [grant("a", None)]);
        }
        second.list.lock().clear();
        second.store(&store).await.unwrap();
        assert!(store.agent_grants().await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn what_cannot_be_read_or_would_end_is_not_allowed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tierbar.db");
        let opened = tokio::task::spawn_blocking(move || Store::open(&path));
        let store = opened.await.unwrap().unwrap();
        let ended = serde_json::to_string(&grant("b", Some("chat"))).unwrap();
        let texts = vec!["{}".to_owned(), "x".to_owned(), ended];
        store.put_agent_grants(texts).await.unwrap();
        let grants = KeptGrants::default();
        grants.load(&store).await.unwrap();
        assert!(grants.list.lock().is_empty());
    }
}
