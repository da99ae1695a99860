//! API keys: they open inference and nothing else, each within its limits. What a request needs to know of them is in
//! memory; the store hears of new and of revoked keys at once, and of their use once a minute.

mod admit;
mod admitted;
mod key;
mod secret;

pub(crate) use admit::admit;
pub(crate) use secret::PREFIX;

use crate::inference::caller::{Account, Accounts, Caller};
use admitted::Admitted;
use key::{Key, revoked, try_after};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};
use tierbar_core::{
    Code, Error,
    keys::{ApiKey, KeyLimits, check_name},
};
use tierbar_store::{AddedKey, KeptKey, Store, TokensUsed};
use tokio_util::sync::CancellationToken;

/// How exactly a key's use is kept.
const SAVING: Duration = Duration::from_secs(60);
/// Of all bodies together: sixteen of the largest, and more than anybody asks at once.
const BODIES: usize = 512 << 20;
/// Of the bodies with one key.
const OF_ONE_KEY: usize = 128 << 20;
/// The `Retry-After` where the time is not known.
const SOON: Duration = Duration::from_secs(2);

/// The owner of all keys, and of the count of requests that are inside.
#[derive(Debug)]
pub struct Keys {
    store: Store,
    /// By their hashes: how long a look-up takes tells something of a hash, and nothing of the key that it is of.
    known: Mutex<HashMap<[u8; 32], Arc<Key>>>,
    /// Changes reach the store and the memory one after another.
    changing: tokio::sync::Mutex<()>,
    inside: AtomicUsize,
    /// Bytes of the bodies of requests that are inside, or on their way in.
    bodies: AtomicUsize,
}

/// What a request's body takes of what there is for all of them. It is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Weight {
    keys: Arc<Keys>,
    /// Which has a share of its own, so that none takes all.
    key: Option<Arc<Key>>,
    bytes: usize,
}

impl Keys {
    /// # Errors
    /// `Storage` if they cannot be read.
    pub async fn open(store: Store) -> Result<Self, Error> {
        let kept = store.keys().await?;
        let known = kept
            .into_iter()
            .map(|kept| (kept.hash, Arc::new(Key::new(kept))));
        Ok(Self {
            known: Mutex::new(known.collect()),
            store,
            changing: tokio::sync::Mutex::default(),
            inside: AtomicUsize::new(0),
            bodies: AtomicUsize::new(0),
        })
    }

    /// Writes down from time to time what keys were used for.
    pub async fn keep(&self, closing: CancellationToken) {
        while closing
            .run_until_cancelled(tokio::time::sleep(SAVING))
            .await
            .is_some()
        {
            self.save().await;
        }
    }

    /// Writes down what keys were used for since the last time.
    pub async fn save(&self) {
        let now = now_ms();
        let uses: Vec<_> = self
            .all()
            .iter()
            .filter_map(|key| key.unsaved(now))
            .collect();
        if uses.is_empty() {
            return;
        }
        if let Err(error) = self.store.keys_used(uses).await {
            tracing::warn!("the use of API keys cannot be stored: {error}");
        }
    }

    pub(crate) fn list(&self) -> Vec<ApiKey> {
        let mut rendered: Vec<_> = self.all().iter().map(|key| key.to_api_key()).collect();
        rendered.sort_by(|a, b| (a.created_ms, &a.name).cmp(&(b.created_ms, &b.name)));
        rendered
    }

    /// A new key and its text, which is not shown again.
    pub(crate) async fn add(
        &self,
        name: String,
        limits: KeyLimits,
    ) -> Result<(ApiKey, String), Error> {
        let wrong = |why| Error::new(Code::BadRequest, why);
        check_name(&name).map_err(wrong)?;
        limits.check().map_err(wrong)?;
        let text = secret::make()?;
        let now = now_ms();
        let kept = KeptKey {
            key: ApiKey {
                name,
                limits,
                created_ms: now,
                last_used_ms: None,
                revoked_ms: None,
            },
            hash: secret::hash(&text),
            tokens: TokensUsed {
                missing: 0,
                at_ms: now,
            },
        };
        let rendered = kept.key.clone();
        let _turn = self.changing.lock().await;
        match self.store.add_key(kept.clone()).await? {
            AddedKey::Kept => {}
            AddedKey::Exists => {
                let message = format!("a key named {} already exists", rendered.name);
                return Err(Error::new(Code::BadRequest, message)
                    .hint("choose another name, or revoke that key first"));
            }
            AddedKey::Full => {
                let message = "there are 1000 keys, which is the maximum";
                return Err(Error::new(Code::BadRequest, message)
                    .hint("revoke keys that are no longer needed"));
            }
        }
        let mut known = self.known();
        known.retain(|_, key| key.name != rendered.name);
        known.insert(kept.hash, Arc::new(Key::new(kept)));
        Ok((rendered, text))
    }

    /// What it has begun is answered to its end.
    pub(crate) async fn revoke(&self, name: &str) -> Result<(), Error> {
        let _turn = self.changing.lock().await;
        let now = now_ms();
        if !self.store.revoke_key(name, now).await? {
            let shown: String = name.chars().take(64).collect();
            return Err(Error::new(
                Code::NotFound,
                format!("there is no active key named \"{shown}\""),
            ));
        }
        if let Some(key) = self.all().iter().find(|key| key.name == name) {
            key.revoke(now);
        }
        Ok(())
    }

    pub(crate) fn find(&self, given: &str) -> Result<Arc<Key>, Error> {
        let found = self.known().get(&secret::hash(given)).cloned();
        let key = found.ok_or_else(|| {
            Error::new(Code::Unauthorized, "this API key is not valid here")
                .hint("`tierbar key list` lists the keys")
        })?;
        key.check_in_use()?;
        Ok(key)
    }

    /// For a body that is to come.
    pub(crate) fn weigh(self: &Arc<Self>, key: Option<Arc<Key>>) -> Weight {
        Weight {
            keys: Arc::clone(self),
            key,
            bytes: 0,
        }
    }

    /// Takes a place for a request, of `most` altogether and of the key's.
    pub(crate) fn enter(
        &self,
        key: Option<Arc<Key>>,
        weight: Weight,
        most: usize,
    ) -> Result<Admitted, Error> {
        let entered = self
            .inside
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |inside| {
                (inside < most).then_some(inside + 1)
            });
        if entered.is_err() {
            let message = format!("{most} requests are in progress, which is the maximum");
            return Err(try_after(message, SOON));
        }
        if let Some(key) = &key
            && let Err(refused) = key.enter(now_ms())
        {
            self.leave();
            return Err(refused);
        }
        Ok(Admitted { key, weight })
    }

    fn leave(&self) {
        self.inside.fetch_sub(1, Ordering::AcqRel);
    }

    fn all(&self) -> Vec<Arc<Key>> {
        self.known().values().cloned().collect()
    }

    fn known(&self) -> MutexGuard<'_, HashMap<[u8; 32], Arc<Key>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Accounts for Keys {
    fn caller(&self, name: &str) -> Result<Caller, Error> {
        let found = self.all().into_iter().find(|key| key.name == name);
        let key = found.ok_or_else(|| revoked(name))?;
        key.check_in_use()?;
        key.check_tokens(now_ms())?;
        Ok(Caller::from(key as Arc<dyn Account>))
    }
}

impl Weight {
    pub(crate) fn grow(&mut self, more: usize) -> Result<(), Error> {
        if let Some(key) = &self.key {
            take(&key.bodies, more, OF_ONE_KEY)?;
        }
        if let Err(full) = take(&self.keys.bodies, more, BODIES) {
            if let Some(key) = &self.key {
                key.bodies.fetch_sub(more, Ordering::AcqRel);
            }
            return Err(full);
        }
        self.bytes += more;
        Ok(())
    }
}

fn take(taken: &AtomicUsize, more: usize, most: usize) -> Result<(), Error> {
    let grown = taken.fetch_update(Ordering::AcqRel, Ordering::Acquire, |bytes| {
        bytes.checked_add(more).filter(|bytes| *bytes <= most)
    });
    if grown.is_ok() {
        return Ok(());
    }
    let message = format!(
        "request bodies take {} MiB, which is the maximum",
        most >> 20
    );
    Err(try_after(message, SOON))
}

impl Drop for Weight {
    fn drop(&mut self) {
        self.keys.bodies.fetch_sub(self.bytes, Ordering::AcqRel);
        if let Some(key) = &self.key {
            key.bodies.fetch_sub(self.bytes, Ordering::AcqRel);
        }
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
