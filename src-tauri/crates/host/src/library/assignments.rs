//! Which tiers get models that are still to be downloaded. Kept over restarts, as the downloads are.

use super::local::LocalModels;
use crate::{blocking::blocking, measured};
use parking_lot::Mutex;
use serde_json::{Map, json};
use std::{collections::BTreeMap, path::PathBuf, sync::Arc};
use tierbar_core::{
    TierId,
    download::{DownloadState, DownloadStatus},
    setup::settings_for,
};
use tierbar_fetch::Queue;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

#[derive(Debug)]
pub(crate) struct Assignments {
    file: PathBuf,
    /// By the reference of the download.
    wanted: Mutex<BTreeMap<String, TierId>>,
    changed: Notify,
}

impl Assignments {
    /// Blocking.
    pub(crate) fn open(file: PathBuf) -> Self {
        Self {
            wanted: Mutex::new(measured::read(&file)),
            file,
            changed: Notify::new(),
        }
    }

    /// Has the tier get the model once it is downloaded. Of several models for one tier, the last wins. Blocking.
    pub(crate) fn set(&self, reference: &str, tier: &TierId) {
        let mut wanted = self.wanted.lock();
        wanted.retain(|_, other| other != tier);
        wanted.insert(reference.to_owned(), tier.clone());
        measured::write(&self.file, &*wanted);
        self.changed.notify_one();
    }

    fn pending(&self) -> BTreeMap<String, TierId> {
        self.wanted.lock().clone()
    }

    /// Blocking.
    fn forget(&self, reference: &str) {
        let mut wanted = self.wanted.lock();
        wanted.remove(reference);
        measured::write(&self.file, &*wanted);
    }

    /// Gives tiers their models as downloads complete, until `closing`.
    pub(crate) async fn follow(
        self: Arc<Self>,
        local: Arc<LocalModels>,
        queue: Queue,
        closing: CancellationToken,
    ) {
        let mut downloads = queue.watch();
        let mut seen = None;
        loop {
            let states = states(&downloads.borrow_and_update());
            let news = seen.replace(states.clone()) != Some(states);
            let pending = self.pending();
            if news && !pending.is_empty() {
                self.assign(&local, &queue, pending).await;
            }
            tokio::select! {
                () = closing.cancelled() => return,
                () = self.changed.notified() => seen = None,
                changed = downloads.changed() => if changed.is_err() { return },
            }
        }
    }

    async fn assign(
        self: &Arc<Self>,
        local: &LocalModels,
        queue: &Queue,
        pending: BTreeMap<String, TierId>,
    ) {
        let downloads = queue.watch().borrow().clone();
        let is_coming = |reference: &str| {
            downloads.iter().any(|download| {
                download.reference == reference && download.state != DownloadState::Done
            })
        };
        // Another look follows with the next change.
        let Ok((_, entries)) = local.entries().await else {
            return;
        };
        for (reference, tier) in pending {
            let model = entries
                .iter()
                .find(|entry| entry.reference() == Some(&reference));
            let Some(model) = model.filter(|_| !is_coming(&reference)) else {
                continue;
            };
            let id = model.id.clone();
            let use_it = |_: &_| {
                Map::from_iter([(
                    "tiers".to_owned(),
                    json!({tier.as_str(): settings_for(id.as_str())}),
                )])
            };
            match local.config.change_config(use_it).await {
                Ok(_) => tracing::info!("{tier} has {id} now"),
                // Such as a tier that was removed: the model can be assigned by hand.
                Err(error) => tracing::warn!("{tier} did not get {id}: {error}"),
            }
            let this = Arc::clone(self);
            let forgotten = move || {
                this.forget(&reference);
                Ok(())
            };
            // It only reads and writes a small file.
            let _done = blocking("keeping the set-up", forgotten).await;
        }
    }
}

fn states(downloads: &[DownloadStatus]) -> Vec<(String, DownloadState)> {
    let each = downloads.iter();
    each.map(|download| (download.id.clone(), download.state))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assignment_survives_a_restart_until_it_is_done() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("assignments.json");
        let fast = TierId::new("fast").unwrap();
        let assignments = Assignments::open(file.clone());
        assignments.set("a/b:Q4_0", &fast);
        assignments.set("a/c:Q4_0", &fast);
        let again = Assignments::open(file.clone());
        assert_eq!(
            again.pending(),
            BTreeMap::from([("a/c:Q4_0".to_owned(), fast)])
        );
        again.forget("a/c:Q4_0");
        assert!(Assignments::open(file).pending().is_empty());
    }
}
