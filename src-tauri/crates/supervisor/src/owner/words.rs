//! The sentences for the policy's decisions that users read.

use super::{step_down::STAYS_DOWN, tier::EndedWorker};
use crate::LoadSpec;
use std::time::Duration;
use tierbar_core::{
    Code, Error, ModelId, TierId,
    budget::{Budget, gib},
    policy::{self, ALARM_PATIENCE, Refusal, UnloadReason},
    reclaim::{MissingMemory, PATIENCE},
    worker::Memory,
};

pub(super) const CHANGED: &str = "unloaded because its configuration changed";

/// The memory guard's reasons, with their figures.
#[derive(Debug, Default)]
pub(super) struct GuardReasons {
    pub(super) alarm: String,
    pub(super) stance: String,
}

pub(super) const NEVER_ENDED: &str =
    "loads only on request, because Tierbar or the computer stopped during its last load";

pub(super) fn steps_down(tier: &TierId, to: &TierId, causes: &GuardReasons) -> String {
    let minutes = STAYS_DOWN.as_secs() / 60;
    format!(
        "{to} answers for {tier} for {minutes} min, because memory ran low while {tier} was loaded: {}",
        causes.alarm
    )
}

/// Why a tier was ended; `used`: although it was.
pub(super) fn end_reason(why: &UnloadReason, used: bool, causes: &GuardReasons) -> String {
    match why {
        UnloadReason::Requested => "stopped".to_owned(),
        UnloadReason::RoomFor(next) => format!("unloaded to make room for {next}"),
        UnloadReason::Budget => "unloaded because the memory budget was lowered".to_owned(),
        UnloadReason::Idle(idle) => {
            let seconds = idle.as_secs();
            match seconds / 60 {
                0 => format!("unloaded after {seconds} s without a request"),
                minutes => format!("unloaded after {minutes} min without a request"),
            }
        }
        UnloadReason::Alarm(_) if used => format!("unloaded while in use: {}", causes.alarm),
        UnloadReason::Alarm(_) => format!("unloaded: {}", causes.alarm),
        UnloadReason::Stance(_) => format!("unloaded: {}", causes.stance),
    }
}

pub(super) fn revoked(tier: &TierId, why: &UnloadReason) -> String {
    match why {
        UnloadReason::RoomFor(next) => {
            format!("a background answer of {tier} gave way to a request for {next}")
        }
        _ => format!("a background answer of {tier} gave way to other requests"),
    }
}

/// What requests wait for after a tier's process has ended.
pub(super) fn waits_for(tier: &TierId, missing: Option<&MissingMemory>) -> String {
    match missing.and_then(missing_figure) {
        Some(bytes) => format!("waiting for {bytes} of {tier}'s memory to be freed"),
        None => format!("waiting for {tier}'s memory to be freed"),
    }
}

/// Why a tier has ended whose memory is not freed yet, or was not when the wait for it was over.
pub(super) fn not_back(why: Option<&str>, missing: &MissingMemory, is_over: bool) -> String {
    let part = missing_figure(missing).map_or_else(String::new, |bytes| format!("{bytes} of "));
    let why = why.unwrap_or("ended");
    match is_over {
        true => {
            let seconds = PATIENCE.as_secs();
            format!("{why}; {part}its memory was not freed within {seconds} s")
        }
        false => format!("{why}; {part}its memory is not free yet"),
    }
}

/// A smaller amount is not stated.
fn missing_figure(missing: &MissingMemory) -> Option<String> {
    (missing.bytes >= 1 << 20).then(|| gib(missing.bytes))
}

/// `plan`: returns the bytes that a tier holds or would.
pub(super) fn refusal_error(
    tier: &TierId,
    why: &Refusal,
    budget: &Budget,
    plan: impl Fn(&TierId) -> Option<u64>,
    causes: &GuardReasons,
) -> Error {
    let (needed, total) = (plan(tier).unwrap_or(0), budget.total_bytes);
    let plans = |tiers: &[TierId]| tiers.iter().filter_map(&plan).sum::<u64>();
    let names = |tiers: &[TierId]| {
        let names: Vec<_> = tiers.iter().map(TierId::as_str).collect();
        names.join(" and ")
    };
    match why {
        Refusal::Pinned(by) => {
            let (names, others) = (names(by), plans(by));
            let are = if by.len() == 1 { "is" } else { "are" };
            let figures = if needed.saturating_add(others) > total {
                let [needed, others, total] = [needed, others, total].map(gib);
                format!("it needs {needed}, and {others} of the {total} budget is in use")
            } else {
                let most = budget.max_loaded;
                let models = if most == 1 { "model" } else { "models" };
                format!("at most {most} {models} may be loaded at once")
            };
            let what = format!(
                "{tier} does not fit in memory beside {names}, which {are} pinned: {figures}"
            );
            Error::new(Code::OverBudget, what).hint(format!("unpin {names}, or use a loaded tier"))
        }
        Refusal::Slot(by) => {
            let names = names(by);
            let [needed, others, total] = [needed, plans(by), total].map(gib);
            let what = format!(
                "{tier} does not fit beside {names}: it needs {needed}, and the plan for {names} takes {others} of the {total} budget"
            );
            Error::new(Code::OverBudget, what).hint(format!(
                "unload {names}: its next load leaves room for {tier}; or choose a smaller model for {tier}"
            ))
        }
        Refusal::Missing(policy::MissingTierMemory { of, memory }, needed) => {
            let part = missing_figure(memory).unwrap_or_else(|| "some".to_owned());
            let what = format!(
                "{tier} needs {} and {} is available: {part} of {of}'s memory was not freed when it was unloaded",
                gib(*needed),
                gib(memory.available_bytes),
            );
            Error::new(Code::Overloaded, what)
                .hint("try again in a minute; if it fails again, close other programs or restart the computer")
                .detail("needed_bytes", *needed)
                .detail("available_bytes", memory.available_bytes)
                .detail("missing_bytes", memory.bytes)
        }
        Refusal::Alarm(_) => {
            let seconds = ALARM_PATIENCE.as_secs();
            let what = format!(
                "memory has been low for {seconds} s, so {tier} takes no requests ({})",
                causes.alarm
            );
            Error::new(Code::Overloaded, what)
                .hint("close programs that use a lot of memory, then try again")
        }
        Refusal::Paused => paused_error(causes),
    }
}

pub(super) fn paused_error(causes: &GuardReasons) -> Error {
    Error::new(Code::Paused, causes.stance.clone())
        .hint("resume in the menu bar, in the window, or with `tierbar resume`")
}

pub(super) fn requests(count: usize) -> String {
    match count {
        1 => "a request".to_owned(),
        _ => format!("{count} requests"),
    }
}

pub(super) fn requests_refused(count: usize, tier: &TierId, error: &Error) -> String {
    let (requests, were) = (requests(count), if count == 1 { "was" } else { "were" });
    format!("{requests} for {tier} {were} refused: {}", error.message)
}

/// A sentence for refusals that were not logged one by one.
pub(super) fn more_refused(count: usize, tier: &TierId, within: Duration) -> String {
    let within = time_text(within);
    format!("{count} more for {tier} were refused within {within}, for the same reason")
}

pub(super) fn loads(tier: &TierId, load: &LoadSpec, for_what: &str, budget: u64) -> String {
    let (model, planned) = (&load.model, gib(load.plan.total_bytes()));
    let budget = gib(budget);
    format!("{tier} is loading {model} {for_what}: {planned} planned of a {budget} budget")
}

/// A worker is ready; `memory` is what the engine has allocated.
pub(super) fn ready(
    tier: &TierId,
    model: &ModelId,
    after: Duration,
    context: u32,
    memory: &Memory,
) -> String {
    let own =
        memory.weights_bytes + memory.weights_device_bytes + memory.kv_bytes + memory.compute_bytes;
    let (after, own) = (time_text(after), gib(own));
    let mapped = match memory.weights_mapped_bytes {
        0 => String::new(),
        mapped => format!(" and {} mapped from the file", gib(mapped)),
    };
    format!(
        "{tier} is ready after {after}: {model} with {context} tokens of context, {own} allocated{mapped}"
    )
}

pub(super) fn unloaded(tier: &TierId, gone: &EndedWorker) -> String {
    let worker = &gone.worker;
    let back = match worker.footprint_bytes {
        Some(held) => gib(held),
        None => format!("up to {}", gib(worker.load.plan.total_bytes())),
    };
    match gone.end.code {
        Code::ShuttingDown => format!("unloaded {tier} on quit, freed {back}"),
        _ => format!("{}; freed {back}", gone.end.message),
    }
}

/// A worker has ended by itself.
pub(super) fn fallen(tier: &TierId, gone: &EndedWorker) -> String {
    let (worker, error) = (&gone.worker, &gone.end);
    let mut figures = Vec::new();
    match worker.ready_since {
        Some(since) => figures.push(format!("{} after it was ready", time_text(since.elapsed()))),
        None => figures.push(format!(
            "after {} of loading",
            time_text(worker.begun.elapsed())
        )),
    }
    match worker.footprint_bytes {
        Some(held) => figures.push(format!("{} in use", gib(held))),
        None => figures.push(format!("{} planned", gib(worker.load.plan.total_bytes()))),
    }
    match worker.leases {
        0 => {}
        1 => figures.push("an answer interrupted".to_owned()),
        leases => figures.push(format!("{leases} answers interrupted")),
    }
    let cause = error.details.get("cause").and_then(|cause| cause.as_str());
    if let Some(cause) = cause.filter(|cause| !["hung", "killed", "unknown"].contains(cause)) {
        figures.push(format!("probable cause: {}", cause.replace('_', " ")));
    }
    format!("{} ({})", not_loaded(tier, error), figures.join(", "))
}

/// A worker reported why it cannot load; it does not know its tier.
pub(super) fn not_loaded(tier: &TierId, error: &Error) -> String {
    let message = &error.message;
    match error.code {
        Code::TierFailed | Code::WorkerCrashed | Code::WorkerTimeout => message.clone(),
        _ => format!("{tier} cannot be loaded: {message}"),
    }
}

/// Formats a duration in a unit that gives a small number.
fn time_text(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        1..10 => format!("{seconds:.1} s"),
        10..120 => format!("{seconds:.0} s"),
        120..7200 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.0} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_shown_in_a_fitting_unit() {
        let shown = [12, 1340, 59_900, 119_000, 150_000, 7_200_000];
        let shown = shown.map(|ms| time_text(Duration::from_millis(ms)));
        assert_eq!(shown, ["12 ms", "1.3 s", "60 s", "119 s", "2 min", "2 h"]);
    }
}
