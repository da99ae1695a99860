//! The result of each candidate and of the whole search, in plain sentences.

use super::{Settings, TuneRow};
use crate::bench::BenchMemory;
use tierbar_core::budget::gib;

pub(super) const AS_CONFIGURED: &str = "as configured";
pub(super) const BEFORE_AGAIN: &str = "as configured, measured again";

fn percent(part: f64) -> String {
    format!("{:.0} %", (part.abs() * 100.0).max(0.0))
}

/// The difference in time, which is noise if it is no larger.
pub(super) fn describe_gain(gain: f64, noise: f64) -> String {
    let sign = if gain < 0.0 { "more" } else { "less" };
    let time = format!("{} {sign} time", percent(gain));
    if gain > noise || gain < -noise {
        return time;
    }
    let noise = percent(noise);
    format!("{time}, which may be chance: measurements vary by {noise}")
}

/// The difference of a candidate that is not chosen, by its time in words.
pub(super) fn difference(time: &str, before: &BenchMemory, after: &BenchMemory) -> String {
    let (before, after) = (before.total_bytes(), after.total_bytes());
    let memory = if after < before {
        format!("{} less memory", gib(before - after))
    } else {
        format!("{} more memory", gib(after - before))
    };
    format!("{time}; {memory}. Not chosen automatically, because it changes answers")
}

fn changes(before: Settings, after: Settings) -> Vec<String> {
    let mut changes = Vec::new();
    let mut note = |name: &str, old: String, new: String| {
        if old != new {
            changes.push(format!("{name} {new} instead of {old}"));
        }
    };
    let layers =
        |layers: Option<u32>| layers.map_or_else(|| "automatic".to_owned(), |n| n.to_string());
    let threads = |threads: u16| match threads {
        0 => "automatic".to_owned(),
        threads => threads.to_string(),
    };
    note("threads", threads(before.threads), threads(after.threads));
    note("batch", before.batch.to_string(), after.batch.to_string());
    note(
        "GPU layers",
        layers(before.gpu_layers),
        layers(after.gpu_layers),
    );
    note(
        "KV cache",
        before.kv_cache.as_str().to_owned(),
        after.kv_cache.as_str().to_owned(),
    );
    changes
}

impl super::TuneReport {
    /// The result of the search, with the settings that changed; see [`super::TuneReport::summary`].
    pub fn sentence(before: Settings, after: Settings, gain: f64, written: bool) -> String {
        let changes = changes(before, after);
        if changes.is_empty() {
            return "The tier's settings are already the fastest.".to_owned();
        }
        let kept = if written {
            "Saved in config.toml"
        } else {
            "The configuration is unchanged"
        };
        let changes = changes.join(", ");
        format!("{changes}: {} less time. {kept}.", percent(gain))
    }
}

impl TuneRow {
    /// The settings in a few words, such as `4 threads, batch 512, f16`.
    pub fn named(settings: Settings) -> String {
        let threads = match settings.threads {
            0 => "automatic threads".to_owned(),
            1 => "1 thread".to_owned(),
            threads => format!("{threads} threads"),
        };
        let layers = settings.gpu_layers.map_or_else(String::new, |layers| {
            format!(", {layers} layers on the GPU")
        });
        format!(
            "{threads}, batch {}{layers}, {}",
            settings.batch,
            settings.kv_cache.as_str()
        )
    }
}
