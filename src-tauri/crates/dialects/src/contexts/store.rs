//! The store that saved contexts are uploaded to and downloaded from: a folder or a bucket that sees only encrypted files.

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use std::{collections::HashMap, sync::Arc};
use tierbar_contexts::{ContextDescription, Contexts, Salt, StoreKey, name_taken_error};
use tierbar_core::{
    Code, Error, bad_request,
    config::{ContextStore, ContextsConfig},
    home::from_home,
    status::TierStatus,
};
use tierbar_fetch::{BucketOptions, Object, Objects, blocking};
use tierbar_inference::Inference;
use tierbar_secrets::Name;

/// What an uploaded context's file is called after its key's tag.
const ENDING: &str = ".tierbar";
/// What makes keys of one passphrase differ between stores.
const ABOUT: &str = "tierbar-contexts.json";
const LONGEST_ABOUT: u64 = 4096;
/// The most contexts whose descriptions are read for a list.
const MOST_LISTED: usize = 500;
/// Descriptions that are read at the same time.
const AT_ONCE: usize = 8;

/// The store of the configuration, opened when it is first used.
#[derive(Debug)]
pub struct RemoteContexts {
    inference: Arc<Inference>,
    contexts: Contexts,
    opened: tokio::sync::Mutex<Option<Arc<OpenStore>>>,
}

/// A store, with the key to its contexts.
#[derive(Debug)]
struct OpenStore {
    config: ContextsConfig,
    secret: Option<SecretString>,
    passphrase: SecretString,
    objects: Objects,
    key: StoreKey,
    /// Descriptions that have been read, by object, with its version.
    described: Mutex<HashMap<String, (String, ContextDescription)>>,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoreHeader {
    version: u32,
    /// In hex.
    salt: String,
    /// By which the passphrase is known to be the right one.
    check: String,
}

impl RemoteContexts {
    pub(super) fn new(inference: Arc<Inference>, contexts: Contexts) -> Self {
        Self {
            inference,
            contexts,
            opened: tokio::sync::Mutex::default(),
        }
    }

    /// Lists the contexts in the store, newest first; none if no store is set.
    pub(super) async fn list(&self) -> Result<Vec<ContextDescription>, Error> {
        let config = self.inference.services.config();
        if config.contexts.store.trim().is_empty() {
            return Ok(Vec::new());
        }
        let Some(opened) = self.open(false).await? else {
            return Ok(Vec::new());
        };
        let objects = opened.objects.list().await?.into_iter();
        let ours = objects.filter(|object| object.name.ends_with(ENDING));
        let described = ours.take(MOST_LISTED).map(|object| {
            let opened = Arc::clone(&opened);
            async move {
                let outcome = opened.describe_listed(&object).await;
                (object, outcome)
            }
        });
        let mut described = stream::iter(described).buffer_unordered(AT_ONCE);
        let mut all = Vec::new();
        while let Some((object, outcome)) = described.next().await {
            match outcome {
                Ok(Some(saved)) => all.push(saved),
                Ok(None) => {}
                // One that was damaged, or is of another passphrase, does not hide the others.
                Err(error) if error.code == Code::Corrupt => {
                    tracing::warn!("{}: {}", object.name, error.message);
                }
                Err(error) => return Err(error),
            }
        }
        all.sort_by(|a, b| (b.created, &a.name).cmp(&(a.created, &b.name)));
        Ok(all)
    }

    /// Encrypts a context and copies it to the store.
    ///
    /// # Errors
    /// `Conflict` if the store has another one of this name, unless it is to be replaced.
    pub(super) async fn upload(
        &self,
        name: &str,
        replace: bool,
    ) -> Result<ContextDescription, Error> {
        let contexts = self.contexts.clone();
        let wanted = name.to_owned();
        let saved = blocking("the saved contexts", move || contexts.get(&wanted)).await?;
        let opened = self.open(true).await?.ok_or_else(no_store)?;
        let object = opened.object(name);
        if !replace {
            match opened.describe(&object).await {
                Ok(Some((there, _))) if there == saved => return Ok(saved),
                Ok(None) => {}
                Err(error) if error.code != Code::Corrupt => return Err(error),
                // One that is damaged is not overwritten unasked either.
                Ok(Some(_)) | Err(_) => return Err(name_taken_error(name, "the store")),
            }
        }
        let (contexts, key, name) = (self.contexts.clone(), opened.key.clone(), name.to_owned());
        let seal = move || contexts.seal(&name, &key);
        let (saved, sealed) = blocking("the saved contexts", seal).await?;
        opened.objects.upload(&object, &sealed).await?;
        Ok(saved)
    }

    /// Copies a context from the store and decrypts it. Until all of it is here and whole, nothing is replaced.
    ///
    /// # Errors
    /// `Conflict` if there is another one of this name here, unless it is to be replaced; `ContextMismatch` if no tier uses
    /// its model; `Corrupt` if the store returns anything but what was uploaded.
    pub(super) async fn download(
        &self,
        name: &str,
        replace: bool,
    ) -> Result<ContextDescription, Error> {
        let Some(opened) = self.open(false).await? else {
            return Err(self.unknown(name).await);
        };
        let object = opened.object(name);
        let Some((saved, bytes)) = opened.describe(&object).await? else {
            return Err(self.unknown(name).await);
        };
        if saved.name != name {
            let message = format!("the store returned another context for \"{name}\"");
            return Err(Error::new(Code::Corrupt, message).hint("upload it again"));
        }
        check_model(&saved, &self.inference.tiers.snapshot())?;
        let (contexts, wanted) = (self.contexts.clone(), saved.clone());
        let room = move || {
            match contexts.get(&wanted.name) {
                Ok(here) if here == wanted && contexts.check(&here.name).is_ok() => {
                    return Ok(None);
                }
                Ok(here) if !replace && here != wanted => {
                    return Err(name_taken_error(&here.name, "this machine"));
                }
                _ => {}
            }
            // It is there twice while it is decrypted.
            contexts.temporary(bytes.saturating_mul(2)).map(Some)
        };
        let Some(sealed) = blocking("the saved contexts", room).await? else {
            return Ok(saved);
        };
        opened.objects.download(&object, &sealed, bytes).await?;
        let (contexts, key) = (self.contexts.clone(), opened.key.clone());
        let unseal = move || match contexts.get(&saved.name) {
            // Saved in the meantime.
            Ok(here) if !replace && here != saved => {
                Err(name_taken_error(&here.name, "this machine"))
            }
            _ => contexts.unseal(&sealed, &saved, &key),
        };
        blocking("the saved contexts", unseal).await
    }

    /// Removes a context from the store, and returns whether the store keeps older versions of it.
    pub(super) async fn remove(&self, name: &str) -> Result<bool, Error> {
        let Some(opened) = self.open(false).await? else {
            return Err(self.unknown(name).await);
        };
        let object = opened.object(name);
        if opened.objects.read(&object, 1).await?.is_none() {
            return Err(self.unknown(name).await);
        }
        opened.objects.remove(&object).await
    }

    async fn unknown(&self, name: &str) -> Error {
        let names = self.list().await.unwrap_or_default();
        let names: Vec<_> = names.into_iter().take(20).map(|saved| saved.name).collect();
        let message = format!("the store has no saved context \"{name:.200}\"");
        let error = Error::new(Code::ContextUnknown, message);
        if names.is_empty() {
            return error.hint("upload it first: tierbar contexts push NAME");
        }
        error.hint(format!("contexts in the store: {}", names.join(", ")))
    }

    /// Opens the store of the configuration; `None` if nothing was ever uploaded to it, and `make` is not set.
    async fn open(&self, make: bool) -> Result<Option<Arc<OpenStore>>, Error> {
        let config = self.inference.services.config().contexts.clone();
        let place = config
            .place()
            .map_err(|wrong| Error::new(Code::ConfigInvalid, format!("contexts.store: {wrong}")))?;
        let place = place.ok_or_else(no_store)?;
        let secrets = self.inference.secrets.clone();
        let read = move || {
            Ok::<_, Error>((
                secrets.get(&Name::ContextStore)?,
                secrets.get(&Name::ContextPassphrase)?,
            ))
        };
        let (secret, passphrase) = blocking("the secrets", read).await?;
        let passphrase = passphrase.ok_or_else(|| {
            bad_request("there is no passphrase to encrypt saved contexts with")
                .hint("set it in Settings, or with: tierbar secret set context-passphrase")
        })?;
        let mut current = self.opened.lock().await;
        if let Some(opened) = &*current
            && opened.is_of(&config, secret.as_ref(), &passphrase)
        {
            return Ok(Some(Arc::clone(opened)));
        }
        let objects = objects(&config, place, secret.clone())?;
        let Some(key) = key(&objects, &passphrase, make).await? else {
            return Ok(None);
        };
        let opened = Arc::new(OpenStore {
            config,
            secret,
            passphrase,
            objects,
            key,
            described: Mutex::default(),
        });
        *current = Some(Arc::clone(&opened));
        Ok(Some(opened))
    }
}

impl OpenStore {
    fn is_of(
        &self,
        config: &ContextsConfig,
        secret: Option<&SecretString>,
        passphrase: &SecretString,
    ) -> bool {
        let exposed =
            |secret: Option<&SecretString>| secret.map(|secret| secret.expose_secret().to_owned());
        self.config == *config
            && exposed(self.secret.as_ref()) == exposed(secret)
            && self.passphrase.expose_secret() == passphrase.expose_secret()
    }

    fn object(&self, name: &str) -> String {
        self.key.object(name) + ENDING
    }

    /// Returns an object's description, and its length; `None` if there is no such object.
    async fn describe(&self, object: &str) -> Result<Option<(ContextDescription, u64)>, Error> {
        let Some(start) = self.objects.read(object, StoreKey::OPENING).await? else {
            return Ok(None);
        };
        let sealed = self.key.open(&*start)?;
        Ok(Some((sealed.saved().clone(), sealed.bytes())))
    }

    async fn describe_listed(&self, object: &Object) -> Result<Option<ContextDescription>, Error> {
        if let Some((version, saved)) = self.described.lock().get(&object.name)
            && *version == object.version
        {
            return Ok(Some(saved.clone()));
        }
        let Some((saved, _)) = self.describe(&object.name).await? else {
            return Ok(None);
        };
        // A copy under another name would be there twice, and could not be downloaded.
        if self.object(&saved.name) != object.name {
            return Ok(None);
        }
        let described = (object.version.clone(), saved.clone());
        self.described.lock().insert(object.name.clone(), described);
        Ok(Some(saved))
    }
}

fn objects(
    config: &ContextsConfig,
    place: ContextStore<'_>,
    secret: Option<SecretString>,
) -> Result<Objects, Error> {
    match place {
        ContextStore::Folder(folder) => {
            Ok(Objects::folder(from_home(folder, tierbar_nofollow::home())))
        }
        ContextStore::Bucket { bucket, prefix } => {
            if config.access_key.is_empty() {
                let message = "the bucket for saved contexts needs an access key";
                return Err(Error::new(Code::ConfigInvalid, message)
                    .hint("set `contexts.access_key` in Settings or in config.toml"));
            }
            let secret = secret.ok_or_else(|| {
                Error::new(
                    Code::AccessDenied,
                    "there is no secret for the access key of the bucket for saved contexts",
                )
                .hint("set it in Settings, or with: tierbar secret set context-store")
            })?;
            Objects::bucket(BucketOptions {
                endpoint: config.endpoint.clone(),
                region: config.region.clone(),
                bucket: bucket.to_owned(),
                prefix: prefix.to_owned(),
                access_key: config.access_key.clone(),
                secret,
            })
        }
    }
}

/// The key to a store's contexts; `None` if the store is new, and stays so.
async fn key(
    objects: &Objects,
    passphrase: &SecretString,
    make: bool,
) -> Result<Option<StoreKey>, Error> {
    let mut found = objects.read(ABOUT, LONGEST_ABOUT).await?;
    if found.is_none() {
        if !make {
            return Ok(None);
        }
        let key = derive(passphrase, StoreKey::new_salt()?).await?;
        let about = StoreHeader {
            version: 1,
            salt: HEXLOWER.encode(&key.salt()),
            check: key.check(),
        };
        let about = serde_json::to_vec(&about)
            .map_err(|error| Error::new(Code::Internal, error.to_string()))?;
        objects.create(ABOUT, about).await?;
        // That of another machine, if it was faster.
        found = objects.read(ABOUT, LONGEST_ABOUT).await?;
    }
    let about = found.and_then(|found| serde_json::from_slice::<StoreHeader>(&found).ok());
    let about = about.filter(|about| about.version == 1);
    let about = about.and_then(|about| Some((salt(&about.salt)?, about.check)));
    let (salt, check) = about.ok_or_else(|| {
        Error::new(
            Code::Corrupt,
            format!("{ABOUT} in the store is damaged, or of another version of Tierbar"),
        )
        .hint("restore it from a backup, or delete it with all contexts in the store and upload them again")
    })?;
    let key = derive(passphrase, salt).await?;
    if key.check() != check {
        return Err(Error::new(
            Code::AccessDenied,
            "the passphrase is not the one that the contexts in the store are encrypted with",
        )
        .hint("set the passphrase of the machine that uploaded them: tierbar secret set context-passphrase"));
    }
    Ok(Some(key))
}

async fn derive(passphrase: &SecretString, salt: Salt) -> Result<StoreKey, Error> {
    let passphrase = passphrase.clone();
    blocking("the key", move || StoreKey::derive(&passphrase, salt)).await
}

fn salt(hex: &str) -> Option<Salt> {
    let salt = HEXLOWER_PERMISSIVE.decode(hex.as_bytes()).ok()?;
    salt.try_into().ok()
}

fn no_store() -> Error {
    bad_request("no store for saved contexts is set").hint(
        "set a folder or a bucket in Settings → Models, or with: tierbar config set contexts.store s3://BUCKET",
    )
}

/// Refuses a context of a model that no tier uses: nothing could load it.
fn check_model(saved: &ContextDescription, tiers: &[TierStatus]) -> Result<(), Error> {
    if tiers
        .iter()
        .any(|tier| tier.model.as_ref() == Some(&saved.model))
    {
        return Ok(());
    }
    let (name, model) = (&saved.name, &saved.model);
    Err(Error::new(
        Code::ContextMismatch,
        format!("the saved context \"{name}\" belongs to {model}, which no tier uses"),
    )
    .hint(format!("assign {model} to a tier first")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_salt_is_32_digits() {
        assert_eq!(salt(&"0f".repeat(16)), Some([15; 16]));
        for wrong in [
            "",
            "0f",
            &"0g".repeat(16),
            &"0f".repeat(17),
            &"ü".repeat(16),
        ] {
            assert_eq!(salt(wrong), None, "{wrong}");
        }
    }
}
