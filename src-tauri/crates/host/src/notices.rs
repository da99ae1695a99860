//! Notices: what the user should know and do, shown with the status.

use crate::{live_config::LiveConfig, schedules::Schedules};
use parking_lot::Mutex;
use std::{collections::BTreeMap, sync::Arc};
use tierbar_core::{Config, Error, config::TierConfig};
use tierbar_library::model_id;
use tierbar_supervisor::BegunLoad;

/// What parts of the host report, in the order of their notices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Topic {
    /// Why Tierbar does not act as Ollama although it is to.
    Ollama,
    /// Which pins cannot be kept.
    Pins,
    /// Downloaded models that their tiers could not be given.
    Assignments,
    /// What is short or lost on the disks that Tierbar writes to. These come before all others.
    Disks,
}

/// Where notices come from, besides the configuration's parts.
#[derive(Debug)]
pub(crate) struct Notices {
    /// The configuration at the host's start. Some of its keys take effect only then.
    pub(crate) started_with: Arc<Config>,
    /// Who can reach the server.
    pub(crate) reached: Vec<String>,
    /// Why changes of the file go unnoticed, if they do.
    pub(crate) unwatched: Option<String>,
    pub(crate) schedules: Arc<Schedules>,
    pub(crate) reported: Mutex<BTreeMap<Topic, Vec<String>>>,
}

impl Notices {
    /// Replaces those of a topic; returns whether they were others.
    pub(crate) fn set(&self, topic: Topic, notices: Vec<String>) -> bool {
        let before = self.reported.lock().insert(topic, notices.clone());
        before.as_ref() != Some(&notices)
    }

    /// Returns all notices of the host under this configuration.
    pub(crate) fn collect(&self, host: &LiveConfig, config: &Config) -> Vec<String> {
        let mut reported = self.reported.lock().clone();
        let mut notices = reported.remove(&Topic::Disks).unwrap_or_default();
        notices.extend(host.file.notices());
        if config.listen != self.started_with.listen {
            notices.push(format!("Restart Tierbar to listen on {}", config.listen));
        }
        let tls = |config: &Config| {
            let server = &config.server;
            (server.tls, server.certificate.clone(), server.key.clone())
        };
        if tls(config) != tls(&self.started_with) {
            notices.push("Restart Tierbar to apply the changes to TLS".to_owned());
        }
        notices.extend(self.reached.clone());
        notices.extend(self.unwatched.clone());
        notices.extend(reported.into_values().flatten());
        notices.extend(self.schedules.notices());
        let never_ended = host.supervisor.never_ended();
        let notice = |load: &BegunLoad| never_ended_notice(load, config);
        notices.extend(never_ended.borrow().iter().filter_map(notice));
        notices.extend(host.queue.notices().borrow().iter().cloned());
        if let Some(scan) = &*host.watch.snapshot().borrow() {
            notices.extend(scan.models_dir_error.as_ref().map(unlisted_notice));
            notices.extend(scan.notices.iter().cloned());
        }
        notices
    }
}

/// Returns the notice of a models folder that cannot be read.
fn unlisted_notice(error: &Error) -> String {
    let hint = error.hint.as_deref().unwrap_or_default();
    format!("No models are listed, because {}: {hint}", error.message)
}

/// Returns the notice of a load during which a host died, while a tier has its model.
fn never_ended_notice(load: &BegunLoad, config: &Config) -> Option<String> {
    let BegunLoad { tier, model, at } = load;
    let has_it = |tier: &TierConfig| model_id(tier.model.trim()) == *model;
    config.tiers.values().find(|tier| has_it(tier))?;
    let when = i64::try_from(*at).ok().and_then(|at| {
        let at = jiff::Timestamp::from_second(at).ok()?;
        let at = at.to_zoned(jiff::tz::TimeZone::system());
        Some(at.strftime("on %-d %B %Y at %H:%M").to_string())
    });
    let when = when.map_or_else(String::new, |when| format!(" {when}"));
    Some(format!(
        "Tierbar or this computer stopped{when} while {model} was loading for {tier}. Until a load of it succeeds, it loads only on \
         request. Start {tier} to try it; if it stops again, choose a smaller model or a smaller context"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tierbar_core::{ModelId, TierId};

    #[test]
    fn an_unfinished_load_has_a_notice_while_a_tier_uses_it() {
        let load = BegunLoad {
            tier: TierId::new("heavy").unwrap(),
            model: ModelId("big".to_owned()),
            at: 1_790_000_000,
        };
        let notice = |toml: &str| never_ended_notice(&load, &toml::from_str(toml).unwrap());
        let text = notice("[tiers.heavy]\nmodel = \"big.gguf\"\n").unwrap();
        assert!(
            text.starts_with("Tierbar or this computer stopped on ")
                && text.contains(" September 2026 at "),
            "{text}"
        );
        assert!(text.contains("while big was loading for heavy"), "{text}");
        assert_eq!(notice("[tiers.heavy]\nmodel = \"small.gguf\"\n"), None);
    }
}
