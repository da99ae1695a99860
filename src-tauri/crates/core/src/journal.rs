//! The event log: what happened to tiers and memory, and why, each in one sentence with its figures.
//!
//! Every decision is recorded in a [`Journal`]. The host's numbers each event, keeps it for 30 days and passes it on to
//! those who watch.

use crate::{ModelId, TierId};
use serde::{Deserialize, Serialize};
use std::fmt;

crate::words! {
    /// What kind of thing happened.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
    pub enum Kind {
        /// A worker was started.
        Load = "load",
        /// It can be used.
        Ready = "ready",
        /// A worker was ended, and is gone.
        Unload = "unload",
        /// Requests for a tier were refused.
        Refusal = "refusal",
        /// A tier could not be loaded, for a reason that its worker reported.
        Failure = "failure",
        /// A worker crashed.
        Crash = "crash",
        /// Memory is low, or shorter than before.
        Alarm = "alarm",
        /// Memory is no longer short.
        Calm = "calm",
        /// A smaller tier answers in place of a larger one.
        StepDown = "step_down",
        /// Models load only on request, or not at all, for some time.
        Pause = "pause",
        /// Models load as configured again.
        Resume = "resume",
        /// Anything else, including kinds of newer versions.
        Note = "note",
    }
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LogEvent {
    pub kind: Kind,
    /// `null` where it concerns the machine.
    pub tier: Option<TierId>,
    pub model: Option<ModelId>,
    /// One sentence without a full stop, which names the tier and has the figures.
    pub sentence: String,
}

/// An event as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Entry {
    /// Grows with each entry of a data folder; there may be gaps.
    pub id: u64,
    /// Milliseconds since 1970.
    pub at_ms: u64,
    #[serde(flatten)]
    pub what: LogEvent,
}

impl LogEvent {
    /// Of the machine.
    pub fn new(kind: Kind, sentence: impl Into<String>) -> Self {
        Self {
            kind,
            tier: None,
            model: None,
            sentence: sentence.into(),
        }
    }

    /// Of a tier, and of the model that it has loaded or was to load.
    pub fn for_tier(
        kind: Kind,
        tier: &TierId,
        model: Option<&ModelId>,
        sentence: impl Into<String>,
    ) -> Self {
        Self {
            tier: Some(tier.clone()),
            model: model.cloned(),
            ..Self::new(kind, sentence)
        }
    }
}

/// Which events are listed; by default, all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    pub tier: Option<TierId>,
    pub kind: Option<Kind>,
    /// In lower case. The sentence has each of them, in any case.
    words: Vec<String>,
}

impl Filter {
    pub fn new(tier: Option<TierId>, kind: Option<Kind>, words: &str) -> Self {
        let words = words.split_whitespace().map(str::to_ascii_lowercase);
        let words = words.collect();
        Self { tier, kind, words }
    }

    pub fn words(&self) -> &[String] {
        &self.words
    }

    pub fn matches(&self, event: &LogEvent) -> bool {
        let sentence = event.sentence.to_ascii_lowercase();
        let mut words = self.words.iter();
        (self.tier.is_none() || self.tier == event.tier)
            && self.kind.is_none_or(|kind| kind == event.kind)
            && words.all(|word| sentence.contains(word))
    }
}

/// Where events are recorded.
pub trait Journal: Send + Sync + fmt::Debug {
    /// Records an event of this moment. Never blocks; an event that cannot be kept is lost.
    fn record(&self, event: LogEvent);
}

/// Keeps nothing.
impl Journal for () {
    fn record(&self, _: LogEvent) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_wire_name_is_what_serde_writes() {
        for kind in [Kind::StepDown, Kind::Load, Kind::Note] {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
    }

    #[test]
    fn a_filter_needs_each_of_its_words() {
        let tier = TierId::new("fast").unwrap();
        let event = LogEvent::for_tier(Kind::Crash, &tier, None, "the worker of fast was Killed");
        let lists = |tier, kind, words| Filter::new(tier, kind, words).matches(&event);
        assert!(lists(None, None, ""));
        assert!(lists(
            Some(tier.clone()),
            Some(Kind::Crash),
            "KILLED  worker"
        ));
        assert!(!lists(Some(TierId::new("heavy").unwrap()), None, ""));
        assert!(!lists(None, Some(Kind::Load), ""));
        assert!(!lists(None, None, "killed heavy"));
    }

    #[test]
    fn an_entry_is_one_flat_object() {
        let tier = TierId::new("fast").unwrap();
        let what = LogEvent::for_tier(Kind::StepDown, &tier, None, "heavy steps down to fast");
        let entry = Entry {
            id: 7,
            at_ms: 1,
            what,
        };
        let wire = json!({
            "id": 7, "at_ms": 1, "kind": "step_down", "tier": "fast", "model": null,
            "sentence": "heavy steps down to fast"
        });
        assert_eq!(serde_json::to_value(&entry).unwrap(), wire);
        assert_eq!(serde_json::from_value::<Entry>(wire).unwrap(), entry);
    }
}
