//! Which tiers get models that are still to be downloaded. Kept over restarts, as the downloads are.

use super::local::LocalModels;
use crate::{measured, notices::Topic};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};
use std::{collections::BTreeMap, path::PathBuf, sync::Arc};
use tierbar_core::{
    Config, Error, ModelId, TierId,
    download::{DownloadState, DownloadStatus},
    setup::settings_for,
};
use tierbar_fetch::blocking;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

#[derive(Debug)]
pub(crate) struct Assignments {
    file: PathBuf,
    /// By the reference of the download.
    wanted: Mutex<BTreeMap<String, Assignment>>,
    changed: Notify,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Assignment {
    tier: TierId,
    /// The tier's model when this was requested. Another one was chosen later, and stays.
    replaces: String,
}

impl Assignment {
    fn stands(&self, config: &Config) -> bool {
        let tier = config.tiers.get(&self.tier);
        tier.is_some_and(|tier| {
            tier.foreign_model().is_none() && tier.model.trim() == self.replaces
        })
    }

    /// Returns whether the tier got the model.
    async fn apply(&self, model: &ModelId, local: &LocalModels) -> Result<bool, Error> {
        let mut stands = false;
        let use_it = |config: &Config| {
            stands = self.stands(config);
            let settings = json!({self.tier.as_str(): settings_for(model.as_str())});
            let patch = stands.then(|| ("tiers".to_owned(), settings));
            Map::from_iter(patch)
        };
        local.config.change_config(use_it).await?;
        Ok(stands)
    }
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

    /// Has the tier get the model once it is downloaded, unless it no longer has the one that it has now. Of several models for one
    /// tier, the last wins.
    pub(crate) async fn set(
        self: &Arc<Self>,
        reference: &str,
        tier: &TierId,
        replaces: &str,
    ) -> Result<(), Error> {
        let assignment = Assignment {
            tier: tier.clone(),
            replaces: replaces.trim().to_owned(),
        };
        let reference = reference.to_owned();
        let set = move |wanted: &mut BTreeMap<String, Assignment>| {
            wanted.retain(|_, other| other.tier != assignment.tier);
            wanted.insert(reference, assignment);
        };
        self.change(set).await?;
        self.changed.notify_one();
        Ok(())
    }

    fn pending(&self) -> BTreeMap<String, Assignment> {
        self.wanted.lock().clone()
    }

    /// Of a download that is removed before its end, and of a model that its tier has.
    pub(crate) async fn forget(self: &Arc<Self>, reference: &str) -> Result<(), Error> {
        let reference = reference.to_owned();
        let removal = move |wanted: &mut BTreeMap<_, _>| drop(wanted.remove(&reference));
        self.change(removal).await
    }

    async fn change(
        self: &Arc<Self>,
        change: impl FnOnce(&mut BTreeMap<String, Assignment>) + Send + 'static,
    ) -> Result<(), Error> {
        let this = Arc::clone(self);
        blocking("keeping the set-up", move || {
            let mut wanted = this.wanted.lock();
            change(&mut wanted);
            measured::write(&this.file, &*wanted);
            Ok(())
        })
        .await
    }

    /// Gives tiers their models as downloads complete, until `closing`.
    pub(crate) async fn follow(
        self: Arc<Self>,
        local: Arc<LocalModels>,
        closing: CancellationToken,
    ) {
        let mut downloads = local.config.queue.watch();
        let mut config = local.config.in_force.subscribe();
        let mut seen = None;
        loop {
            let states = states(&downloads.borrow_and_update());
            let news = seen.replace(states.clone()) != Some(states);
            let pending = self.pending();
            if news && !pending.is_empty() {
                self.assign(&local, pending).await;
            }
            tokio::select! {
                () = closing.cancelled() => return,
                () = self.changed.notified() => seen = None,
                changed = downloads.changed() => if changed.is_err() { return },
                // What could not be written may be now.
                changed = config.changed() => match changed {
                    Ok(()) => seen = None,
                    Err(_) => return,
                },
            }
        }
    }

    async fn assign(self: &Arc<Self>, local: &LocalModels, pending: BTreeMap<String, Assignment>) {
        let downloads = local.config.queue.watch().borrow().clone();
        let is_coming = |reference: &str| {
            downloads.iter().any(|download| {
                download.reference == reference && download.state != DownloadState::Done
            })
        };
        // Another look follows with the next change.
        let Ok((_, entries)) = local.entries().await else {
            return;
        };
        let mut waiting = Vec::new();
        for (reference, assignment) in pending {
            let model = entries
                .iter()
                .find(|entry| entry.reference() == Some(&reference));
            let Some(model) = model.filter(|_| !is_coming(&reference)) else {
                continue;
            };
            let (id, tier) = (&model.id, &assignment.tier);
            match assignment.apply(id, local).await {
                Ok(true) => tracing::info!("{tier} has {id} now"),
                Ok(false) => tracing::info!("{tier} keeps what was chosen for it, not {id}"),
                // Such as a file that is being edited, or a full disk.
                Err(error) => {
                    tracing::warn!("{tier} did not get {id} yet: {error}");
                    waiting.push(format!(
                        "{id} is downloaded, and {tier} gets it once this is corrected: {error}"
                    ));
                    continue;
                }
            }
            // It only reads and writes a small file.
            let _done = self.forget(&reference).await;
        }
        local.config.report(Topic::Assignments, waiting);
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

    #[tokio::test]
    async fn an_assignment_survives_a_restart_until_it_is_done() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("assignments.json");
        let fast = TierId::new("fast").unwrap();
        let assignments = Arc::new(Assignments::open(file.clone()));
        assignments.set("a/b:Q4_0", &fast, "").await.unwrap();
        assignments.set("a/c:Q4_0", &fast, " old ").await.unwrap();
        let again = Arc::new(Assignments::open(file.clone()));
        let pending = again.pending();
        assert_eq!(pending.keys().collect::<Vec<_>>(), ["a/c:Q4_0"]);
        assert_eq!(pending["a/c:Q4_0"].replaces, "old");
        again.forget("a/c:Q4_0").await.unwrap();
        assert!(Assignments::open(file).pending().is_empty());
    }

    #[test]
    fn a_later_choice_for_the_tier_stands() {
        let assignment = Assignment {
            tier: TierId::new("fast").unwrap(),
            replaces: "old".to_owned(),
        };
        for (config, stands) in [
            ("[tiers.fast]\nmodel = \"old\"\n", true),
            ("[tiers.fast]\nmodel = \"chosen\"\n", false),
            ("[tiers.fast]\n", false),
            ("[tiers.primary]\nmodel = \"old\"\n", false),
            (
                "[tiers.fast]\nmodel = \"old\"\nengine = { endpoint = \"http://127.0.0.1:1\" }\n",
                false,
            ),
        ] {
            let config = toml::from_str(config).unwrap();
            assert_eq!(assignment.stands(&config), stands, "{config:?}");
        }
    }
}
