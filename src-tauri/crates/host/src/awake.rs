//! Keeps the machine awake while it works for a client: it must not fall asleep in the middle of an answer or a download.

use crate::{live_config::LiveConfig, platform::Awake};
use std::sync::Arc;
use tierbar_core::{
    TierState,
    download::{DownloadState, DownloadStatus},
    reading::Power,
    status::TierStatus,
};
use tokio::time::{Duration, sleep};
use tokio_util::sync::CancellationToken;

/// How often the power source is looked at: nothing announces it.
const POWER_INTERVAL: Duration = Duration::from_secs(30);

/// Returns what the machine must stay awake for. On battery it sleeps as its user has set it.
fn work(
    tiers: &[TierStatus],
    downloads: &[DownloadStatus],
    power: Option<Power>,
) -> Option<&'static str> {
    if power.is_some_and(|power| power.on_battery) {
        return None;
    }
    let answers = |tier: &TierStatus| matches!(tier.state, TierState::Starting | TierState::Busy);
    // What waits for a server or a network may wait for days.
    let downloads_now = |download: &DownloadStatus| {
        matches!(
            download.state,
            DownloadState::Downloading | DownloadState::Verifying
        )
    };
    if tiers.iter().any(answers) {
        Some("answering a request")
    } else if downloads.iter().any(downloads_now) {
        Some("downloading a model")
    } else {
        None
    }
}

/// What keeps the machine awake, and for which work.
struct Hold<A> {
    held: Option<(&'static str, A)>,
    refused: bool,
}

impl<A> Hold<A> {
    const NONE: Self = Self {
        held: None,
        refused: false,
    };

    /// Holds for this work instead of the last. Returns the first refusal: a system that refuses once refuses each time.
    fn follow<E>(
        &mut self,
        work: Option<&'static str>,
        begin: impl FnOnce(&'static str) -> Result<A, E>,
    ) -> Option<(&'static str, E)> {
        if work == self.held.as_ref().map(|(reason, _)| *reason) {
            return None;
        }
        self.held = None;
        let reason = work?;
        match begin(reason) {
            Ok(awake) => {
                self.held = Some((reason, awake));
                None
            }
            Err(error) => (!std::mem::replace(&mut self.refused, true)).then_some((reason, error)),
        }
    }
}

pub(crate) async fn stay_awake_for_work(host: Arc<LiveConfig>, closing: CancellationToken) {
    let (mut tiers, mut downloads) = (host.supervisor.watch(), host.queue.watch());
    let mut hold = Hold::NONE;
    loop {
        let work = work(
            &tiers.borrow_and_update(),
            &downloads.borrow_and_update(),
            host.memory_guard.power(),
        );
        if let Some((reason, error)) = hold.follow(work, Awake::begin) {
            tracing::warn!(%error, "the machine may sleep while {reason}");
        }
        tokio::select! {
            () = closing.cancelled() => return,
            changed = tiers.changed() => if changed.is_err() { return },
            Ok(()) = downloads.changed() => {}
            () = sleep(POWER_INTERVAL) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tier(state: &str) -> TierStatus {
        serde_json::from_value(json!({
            "id": "fast", "kind": "chat", "state": state, "context_tokens": 4096, "engine": "embedded", "is_starter": false, "aliases": [],
            "kv_cache": "f16", "input_modalities": [],
        }))
        .unwrap()
    }

    fn download(state: &str) -> DownloadStatus {
        serde_json::from_value(json!({
            "id": "1", "reference": "a/b", "file": "b.gguf", "state": state, "priority": "normal",
            "received_bytes": 0, "bytes_per_second": 0, "warnings": [],
        }))
        .unwrap()
    }

    fn on_battery(on_battery: bool) -> Option<Power> {
        Some(Power {
            on_battery,
            level_percent: Some(80),
        })
    }

    #[test]
    fn answers_loads_and_downloads_keep_the_machine_awake() {
        for (state, awake) in [
            ("starting", true),
            ("busy", true),
            ("ready", false),
            ("stopped", false),
            ("failed", false),
        ] {
            assert_eq!(work(&[tier(state)], &[], None).is_some(), awake, "{state}");
        }
        for (state, awake) in [
            ("downloading", true),
            ("verifying", true),
            ("queued", false),
            ("waiting", false),
            ("paused", false),
            ("done", false),
        ] {
            let found = work(&[tier("ready")], &[download(state)], on_battery(false));
            assert_eq!(found.is_some(), awake, "{state}");
        }
    }

    #[test]
    fn only_the_first_refusal_is_reported() {
        let mut hold = Hold::<()>::NONE;
        let mut follow = |work| hold.follow(work, |_| Err("refused"));
        assert_eq!(follow(Some("a")), Some(("a", "refused")));
        for work in [Some("a"), None, Some("b"), Some("a")] {
            assert_eq!(follow(work), None, "{work:?}");
        }
    }

    #[test]
    fn the_machine_is_held_once_for_the_same_work() {
        let mut hold = Hold::NONE;
        let mut begun = Vec::new();
        for work in [Some("a"), Some("a"), Some("b"), None, Some("a")] {
            let refused = hold.follow(work, |reason| {
                begun.push(reason);
                Ok::<_, ()>(())
            });
            assert_eq!(refused, None);
            assert_eq!(hold.held.map(|(reason, ())| reason), work);
        }
        assert_eq!(begun, ["a", "b", "a"]);
    }

    #[test]
    fn on_battery_the_machine_sleeps_as_set() {
        let (tiers, downloads) = ([tier("busy")], [download("downloading")]);
        assert_eq!(work(&tiers, &downloads, on_battery(true)), None);
    }
}
