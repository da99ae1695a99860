//! A key, and what is left of its limits.

use super::{super::now_ms, SOON};
use data_encoding::HEXLOWER;
use parking_lot::Mutex;
use std::{sync::atomic::AtomicUsize, time::Duration};
use tierbar_core::{Code, Error, keys::ApiKey, limit::Bucket};
use tierbar_inference::{caller::Account, error::for_seconds};
use tierbar_store::{KeptKey, KeyUse, TokensUsed};

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// A key and what is left of its limits.
#[derive(Debug)]
pub struct Key {
    /// Distinguishes it from other keys of its name, now revoked.
    pub(super) id: String,
    /// As it was when it was read: its use and its end since then are in `state`.
    pub(super) key: ApiKey,
    hash: [u8; 32],
    /// Bytes of the bodies of its requests.
    pub(super) bodies: AtomicUsize,
    /// The same of its answers.
    answers: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
    inside: u32,
    last_used_ms: Option<u64>,
    revoked_ms: Option<u64>,
    unsaved: bool,
}

impl Key {
    pub(super) fn new(KeptKey { key, hash, tokens }: KeptKey) -> Self {
        let requests = key.limits.requests_per_minute;
        let state = State {
            requests: requests.map(|most| Bucket::new(most.into(), MINUTE, 0, now_ms())),
            tokens: (key.limits.tokens_per_day)
                .map(|most| Bucket::new(most, DAY, tokens.missing, tokens.at_ms)),
            inside: 0,
            last_used_ms: key.last_used_ms,
            revoked_ms: key.revoked_ms,
            unsaved: false,
        };
        Self {
            id: HEXLOWER.encode(&hash),
            key,
            hash,
            bodies: AtomicUsize::new(0),
            answers: AtomicUsize::new(0),
            state: Mutex::new(state),
        }
    }

    pub(super) fn to_api_key(&self) -> ApiKey {
        let state = self.state.lock();
        ApiKey {
            last_used_ms: state.last_used_ms,
            revoked_ms: state.revoked_ms,
            ..self.key.clone()
        }
    }

    /// Admits one more request, if all limits allow it.
    pub(super) fn enter(&self, now: u64) -> Result<(), Error> {
        let ApiKey { name, limits, .. } = &self.key;
        self.check_tokens(now)?;
        let mut state = self.state.lock();
        if let Some(most) = limits.at_once.filter(|most| state.inside >= *most) {
            let message =
                format!("the key {name} has {most} requests in progress, which is its limit");
            return Err(try_after(message, SOON));
        }
        if let Some(requests) = &mut state.requests {
            if let Err(wait) = requests.check(now) {
                let most = limits.requests_per_minute.unwrap_or_default();
                let message = format!("the key {name} has used its {most} requests per minute");
                return Err(try_after(message, wait));
            }
            requests.spend(1, now);
        }
        state.inside += 1;
        state.last_used_ms = Some(now);
        state.unsaved = true;
        Ok(())
    }

    pub(super) fn revoke(&self, now: u64) {
        self.state.lock().revoked_ms = Some(now);
    }

    pub(super) fn check_in_use(&self) -> Result<(), Error> {
        match self.state.lock().revoked_ms {
            Some(_) => Err(revoked(&format!("the key {}", self.key.name))),
            None => Ok(()),
        }
    }

    pub(super) fn check_tokens(&self, now: u64) -> Result<(), Error> {
        let mut state = self.state.lock();
        match state.tokens.as_mut().map(|tokens| tokens.check(now)) {
            Some(Err(wait)) => {
                let ApiKey { name, limits, .. } = &self.key;
                let most = limits.tokens_per_day.unwrap_or_default();
                let message = format!("the key {name} has used its {most} tokens per day");
                Err(try_after(message, wait))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn leave(&self) {
        let mut state = self.state.lock();
        state.inside = state.inside.saturating_sub(1);
    }

    pub(super) fn unsaved(&self, now: u64) -> Option<KeyUse> {
        let mut state = self.state.lock();
        if !std::mem::take(&mut state.unsaved) {
            return None;
        }
        Some(KeyUse {
            hash: self.hash,
            last_used_ms: state.last_used_ms?,
            tokens: TokensUsed {
                missing: (state.tokens.as_mut()).map_or(0, |tokens| tokens.missing(now)),
                at_ms: now,
            },
        })
    }
}

impl Account for Key {
    fn id(&self) -> &str {
        &self.id
    }

    fn name(&self) -> &str {
        &self.key.name
    }

    /// Counts further requests; those above the limit delay the next ones.
    fn count(&self, more: u32) {
        if let Some(requests) = &mut self.state.lock().requests {
            requests.spend(more.into(), now_ms());
        }
    }

    fn spend(&self, tokens: u64) {
        let mut state = self.state.lock();
        if let Some(left) = &mut state.tokens {
            left.spend(tokens, now_ms());
            state.unsaved = true;
        }
    }

    fn answers(&self) -> &AtomicUsize {
        &self.answers
    }
}

pub(super) fn revoked(key: &str) -> Error {
    let message = format!("{key} has been revoked");
    Error::new(Code::Unauthorized, message).hint("ask the owner of this server for a new key")
}

/// Returns a refusal with the time after which to retry.
pub(super) fn try_after(message: String, wait: Duration) -> Error {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let error = Error::new(Code::Overloaded, message).hint(format!("try again in {seconds} s"));
    for_seconds(error, seconds)
}
