//! The hub's client, references, and remote headers, against the stand-in.

mod headers;
mod lies;
mod refusals;
mod repositories;
mod resolving;

use std::{ffi::OsString, path::Path, sync::Arc, time::Duration};
use tierbar_core::{Error, config::KvCache, fit::Machine};
use tierbar_fetch::{TokenFor, Url, Web, WebOptions};
use tierbar_library::{
    hub::{self, Hub, QuantTarget, ResolvedReference},
    reference::{Reference, Repository},
};
use tierbar_secrets::Secrets;
use tierbar_tests::hub::{HubStandIn, Options};

const GIB: u64 = 1 << 30;

/// A stand-in and a client of it.
struct Stand {
    hub: HubStandIn,
    client: Hub,
    tokens: TokenFor,
    _home: tempfile::TempDir,
}

impl Stand {
    async fn new() -> Self {
        Self::with(Options::default(), None).await
    }

    async fn with(options: Options, token: Option<&str>) -> Self {
        let hub = HubStandIn::start(options).await;
        let home = tempfile::tempdir().unwrap();
        let (client, tokens) = client(&hub.url(), home.path(), token);
        Self {
            hub,
            client,
            tokens,
            _home: home,
        }
    }

    fn client(&self) -> &Hub {
        &self.client
    }

    async fn resolve(&self, reference: &str) -> Result<ResolvedReference, Error> {
        let reference = Reference::parse(reference, |_| None)?;
        self.client
            .resolve(&reference, &suit(16 * GIB), &|_, _| false)
            .await
    }
}

fn web() -> Web {
    Web::new(WebOptions {
        proxies: false,
        stall: Duration::from_secs(60),
        ..WebOptions::default()
    })
    .unwrap()
}

fn client(url: &str, home: &Path, token: Option<&str>) -> (Hub, TokenFor) {
    let token = token.map(OsString::from);
    let secrets = Secrets::with(
        home,
        Arc::new(move |name: &str| match name {
            "HF_TOKEN" => token.clone(),
            "TIERBAR_SECRETS" => Some("file".into()),
            _ => None,
        }),
    );
    let endpoint = hub::endpoint(Some(url)).unwrap();
    let tokens = hub::tokens(secrets, &endpoint);
    (Hub::new(web(), tokens.clone(), endpoint), tokens)
}

fn suit(ram: u64) -> QuantTarget {
    QuantTarget {
        machine: Machine::mac(ram),
        context: (4096, KvCache::F16).into(),
    }
}

fn repository(id: &str) -> Repository {
    Repository::new(id).unwrap()
}

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}
