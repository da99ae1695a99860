//! Notices: what the user should know and do, shown with the status.

use crate::{config::ConfigFile, schedules::Schedules};
use parking_lot::Mutex;
use std::sync::Arc;
use tierbar_core::{Config, Error, TierId, config::TierConfig};
use tierbar_fetch::Queue;
use tierbar_library::{LibraryWatch, model_id};
use tierbar_supervisor::{BegunLoad, Handle};

/// Where notices come from.
pub(crate) struct Notices {
    pub(crate) file: Arc<ConfigFile>,
    /// The configuration at the host's start. Some of its keys take effect only then.
    pub(crate) started_with: Arc<Config>,
    /// Who can reach the server.
    pub(crate) reached: Vec<String>,
    /// Why changes of the file go unnoticed, if they do.
    pub(crate) unwatched: Option<String>,
    pub(crate) schedules: Arc<Schedules>,
    pub(crate) supervisor: Handle,
    pub(crate) queue: Queue,
    pub(crate) watch: Arc<LibraryWatch>,
    /// Why Tierbar does not act as Ollama although it is to.
    pub(crate) ollama: Mutex<Option<String>>,
    /// Which pins cannot be kept.
    pub(crate) pins: Mutex<Option<String>>,
    /// Downloaded models that their tiers could not be given.
    pub(crate) assignments: Mutex<Vec<String>>,
    /// What is short or lost on the disks that Tierbar writes to.
    pub(crate) disks: Mutex<Vec<String>>,
}

impl Notices {
    pub(crate) fn set_ollama(&self, notice: Option<String>) {
        *self.ollama.lock() = notice;
    }

    pub(crate) fn set_pins(&self, notice: Option<String>) {
        *self.pins.lock() = notice;
    }

    pub(crate) fn set_assignments(&self, notices: Vec<String>) {
        *self.assignments.lock() = notices;
    }

    /// Returns whether they are others.
    pub(crate) fn set_disks(&self, notices: Vec<String>) -> bool {
        let mut disks = self.disks.lock();
        let changed = *disks != notices;
        *disks = notices;
        changed
    }

    /// Returns all notices under this configuration.
    pub(crate) fn collect(&self, config: &Config) -> Vec<String> {
        let mut notices = self.disks.lock().clone();
        notices.extend(self.file.notices());
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
        notices.extend(self.ollama.lock().clone());
        notices.extend(self.pins.lock().clone());
        notices.extend(self.assignments.lock().iter().cloned());
        let tiers = config.tiers.iter();
        let older = tiers.filter_map(|(id, tier)| older_default(id, tier));
        notices.extend(older.map(|(what, remedy)| format!("{what}. {remedy}")));
        notices.extend(self.schedules.notices());
        let never_ended = self.supervisor.never_ended();
        let notice = |load: &BegunLoad| never_ended_notice(load, config);
        notices.extend(never_ended.borrow().iter().filter_map(notice));
        notices.extend(self.queue.notices().borrow().iter().cloned());
        if let Some(scan) = &*self.watch.snapshot().borrow() {
            notices.extend(scan.models_dir_error.as_ref().map(unlisted_notice));
            notices.extend(scan.notices.iter().cloned());
        }
        notices
    }
}

/// Returns what keeps a tier's context from following from its model although the user may not have chosen that, and what to do.
pub(crate) fn older_default(tier: &TierId, config: &TierConfig) -> Option<(String, String)> {
    let context = config.older_default(tier)?;
    let what =
        format!("{tier} has {context} tokens of context in f16, the default of an earlier version");
    let remedy = format!(
        "For the context that suits its model and this machine, choose a use for {tier} in Settings → Tiers, or delete `context` and \
         `kv_cache` under [tiers.{tier}] in config.toml. To keep {context} tokens, delete `kv_cache` alone"
    );
    Some((what, remedy))
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
    use tierbar_core::ModelId;

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
