//! The user's Keychain.

use crate::{Name, Source, Store};
use apple_native_keyring_store::keychain;
use keyring_core::{Entry, Error as KeyringError, api::CredentialStoreApi};
use secrecy::{ExposeSecret, SecretString};
use std::sync::Arc;
use tierbar_core::{Code, Error};

const SERVICE: &str = "Tierbar";

pub(crate) fn open() -> Option<Arc<dyn Store>> {
    match keychain::Store::new() {
        Ok(store) => Some(Arc::new(Keychain(store))),
        Err(error) => {
            tracing::warn!("the Keychain is not available, so secrets are kept in a file: {error}");
            None
        }
    }
}

struct Keychain(Arc<keychain::Store>);

impl Keychain {
    fn entry(&self, name: &Name) -> Result<Entry, KeyringError> {
        self.0.build(SERVICE, name.as_str(), None)
    }
}

impl Store for Keychain {
    fn source(&self) -> Source {
        Source::Keychain
    }

    fn get(&self, name: &Name) -> Result<Option<SecretString>, Error> {
        match self.entry(name).and_then(|entry| entry.get_password()) {
            Ok(secret) => Ok(Some(secret.into())),
            Err(KeyringError::NoEntry) => Ok(None),
            Err(error) => Err(refused("read", &error)),
        }
    }

    fn set(&self, name: &Name, value: &SecretString) -> Result<(), Error> {
        self.entry(name)
            .and_then(|entry| entry.set_password(value.expose_secret()))
            .map_err(|error| refused("written", &error))
    }

    fn remove(&self, name: &Name) -> Result<(), Error> {
        match self.entry(name).and_then(|entry| entry.delete_credential()) {
            Ok(()) | Err(KeyringError::NoEntry) => Ok(()),
            Err(error) => Err(refused("changed", &error)),
        }
    }
}

/// By its text alone: the error of an entry that is not UTF-8 carries the entry.
fn refused(what: &str, error: &KeyringError) -> Error {
    Error::new(
        Code::Storage,
        format!("the Keychain cannot be {what}: {error}"),
    )
    .hint("unlock the login keychain and allow Tierbar to use it, or set the token in the environment")
}
