//! API keys: they give access to inference only, each within its limits. Requests use the keys in memory; new and revoked
//! keys are stored at once, and their use once a minute.

mod admit;
mod admitted;
mod key;
mod secret;

pub use admit::admit;
pub use admitted::AdmittedRequest;
pub use tierbar_http::reach::Sender;

use super::now_ms;
pub use key::Key;
use key::{revoked, try_after};
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tierbar_core::{
    Code, Error, bad_request,
    keys::{ApiKey, KeyLimits, check_name},
};
use tierbar_inference::{
    body,
    caller::{Account, Caller},
    held::Room,
};
use tierbar_store::{AddedKey, KeptKey, Store, TokensUsed};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// How often a key's use is stored.
const SAVING: Duration = Duration::from_secs(60);
/// The memory of all requests together: of their bodies, and of what parsing makes of them.
/// A key may take half; the largest request takes 126 MiB.
pub const BODIES: usize = 512 << 20;
/// The `Retry-After` if the time is unknown.
const SOON: Duration = Duration::from_secs(2);

/// The owner of all keys, and of the count of admitted requests.
#[derive(Debug)]
pub struct Keys {
    store: Store,
    /// By their hashes: the time of a look-up may reveal part of a hash, but nothing of its key.
    known: Mutex<HashMap<[u8; 32], Arc<Key>>>,
    /// Locked while a change is stored and applied.
    changing: tokio::sync::Mutex<()>,
    inside: AtomicUsize,
    /// The memory of admitted requests and of those being read.
    bodies: Room,
}

/// A request's share of the memory for requests, released when dropped.
#[derive(Debug)]
pub struct Weight {
    keys: Arc<Keys>,
    /// The key, which has a limit of its own, so that none takes all.
    key: Option<Arc<Key>>,
    bytes: usize,
    is_owner: bool,
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
            bodies: Room::new("requests", BODIES),
        })
    }

    /// Stores the use of keys periodically, until `closing`.
    pub async fn keep(&self, closing: CancellationToken) {
        let wait = || closing.run_until_cancelled(sleep(SAVING));
        while wait().await.is_some() {
            self.save().await;
        }
    }

    /// Stores the use of keys since the last call.
    pub async fn save(&self) {
        let now = now_ms();
        let keys = self.all().into_iter();
        let uses: Vec<_> = keys.filter_map(|key| key.unsaved(now)).collect();
        if uses.is_empty() {
            return;
        }
        if let Err(error) = self.store.keys_used(uses).await {
            tracing::warn!("the use of API keys cannot be stored: {error}");
        }
    }

    pub fn list(&self) -> Vec<ApiKey> {
        let mut rendered: Vec<_> = self.all().iter().map(|key| key.to_api_key()).collect();
        rendered.sort_by(|a, b| (a.created_ms, &a.name).cmp(&(b.created_ms, &b.name)));
        rendered
    }

    /// Adds a key; returns it with its text, which is not shown again.
    pub async fn add(&self, name: String, limits: KeyLimits) -> Result<(ApiKey, String), Error> {
        check_name(&name).map_err(bad_request)?;
        limits.check().map_err(bad_request)?;
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
                return Err(Error::new(Code::Conflict, message)
                    .hint("choose another name, or revoke that key first"));
            }
            AddedKey::Full => {
                let message = "there are 1000 keys, which is the maximum";
                return Err(bad_request(message).hint("revoke keys that are no longer needed"));
            }
        }
        let mut known = self.known.lock();
        known.retain(|_, key| key.key.name != rendered.name);
        known.insert(kept.hash, Arc::new(Key::new(kept)));
        Ok((rendered, text))
    }

    /// Revokes a key. Running answers finish.
    pub async fn revoke(&self, name: &str) -> Result<(), Error> {
        let _turn = self.changing.lock().await;
        let now = now_ms();
        if !self.store.revoke_key(name, now).await? {
            let message = format!("there is no active key named \"{name:.64}\"");
            return Err(Error::new(Code::NotFound, message));
        }
        if let Some(key) = self.all().iter().find(|key| key.key.name == name) {
            key.revoke(now);
        }
        Ok(())
    }

    pub fn find(&self, given: &str) -> Result<Arc<Key>, Error> {
        let found = self.known.lock().get(&secret::hash(given)).cloned();
        let key = found.ok_or_else(|| {
            Error::new(Code::Unauthorized, "this API key is not valid here")
                .hint("`tierbar key list` lists the keys")
        })?;
        key.check_in_use()?;
        Ok(key)
    }

    /// Returns the share of a body to be read.
    pub fn weigh(self: &Arc<Self>, key: Option<Arc<Key>>) -> Weight {
        Weight {
            keys: Arc::clone(self),
            key,
            bytes: 0,
            is_owner: false,
        }
    }

    /// Returns the share of a request that has been read before, of the account with this id.
    ///
    /// # Errors
    /// `Overloaded` while there is no room for it, `Unauthorized` without such an account.
    pub fn charge(self: &Arc<Self>, id: Option<&str>, bytes: usize) -> Result<Weight, Error> {
        let key = id.map(|id| self.of_id(id)).transpose()?;
        let mut weight = self.weigh(key);
        weight.grow(bytes)?;
        Ok(weight)
    }

    /// Returns the caller whose account has this id.
    ///
    /// # Errors
    /// `Unauthorized` if the account is closed, `Overloaded` if its tokens are used up for now.
    pub fn caller(&self, id: &str) -> Result<Caller, Error> {
        let key = self.of_id(id)?;
        key.check_tokens(now_ms())?;
        Ok(Caller::from(key as Arc<dyn Account>))
    }

    /// Returns the key with this id.
    ///
    /// # Errors
    /// `Unauthorized` if there is none, or if it is no longer in use.
    pub fn of_id(&self, id: &str) -> Result<Arc<Key>, Error> {
        let found = self.all().into_iter().find(|key| key.id == id);
        let key = found.ok_or_else(|| revoked("the API key"))?;
        key.check_in_use()?;
        Ok(key)
    }

    /// Admits a request, within `most` in total and the key's limits.
    pub fn enter(
        &self,
        key: Option<Arc<Key>>,
        weight: Weight,
        most: usize,
    ) -> Result<AdmittedRequest, Error> {
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
        Ok(AdmittedRequest { key, weight })
    }

    fn leave(&self) {
        self.inside.fetch_sub(1, Ordering::AcqRel);
    }

    /// Returns the memory that is charged now, in bytes.
    pub fn held(&self) -> usize {
        self.bodies.taken()
    }

    fn all(&self) -> Vec<Arc<Key>> {
        self.known.lock().values().cloned().collect()
    }
}

impl Weight {
    /// The owner may use the part that is kept from others too.
    pub fn of_the_owner(mut self) -> Self {
        self.is_owner = true;
        self
    }

    pub fn grow(&mut self, more: usize) -> Result<(), Error> {
        let own = self.key.as_ref().map(|key| &key.bodies);
        self.keys.bodies.take(more, self.is_owner, own)?;
        self.bytes += more;
        Ok(())
    }

    /// Takes as much more, or gives as much back, as makes it this large.
    ///
    /// # Errors
    /// `Overloaded` while there is no room for it.
    pub fn cover(&mut self, bytes: usize) -> Result<(), Error> {
        match bytes.checked_sub(self.bytes) {
            Some(more) => self.grow(more),
            None => {
                self.shrink_to(bytes);
                Ok(())
            }
        }
    }

    /// Charges what is made of a body.
    ///
    /// # Errors
    /// Those of [`body::memory_of`]; `Overloaded` while there is no room for it.
    pub fn grow_by_values(&mut self, body: &[u8], is_lines: bool) -> Result<(), Error> {
        self.grow(body::memory_of(body, is_lines)?)
    }

    /// Gives back so much.
    pub fn shrink(&mut self, less: usize) {
        self.shrink_to(self.bytes.saturating_sub(less));
    }

    /// Gives back what is more than so much.
    pub fn shrink_to(&mut self, most: usize) {
        let less = self.bytes.saturating_sub(most);
        self.bytes -= less;
        let own = self.key.as_ref().map(|key| &key.bodies);
        self.keys.bodies.give_back(less, own);
    }

    /// Gives all of it back.
    pub fn release(&mut self) {
        self.shrink_to(0);
    }
}

impl Drop for Weight {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests;
