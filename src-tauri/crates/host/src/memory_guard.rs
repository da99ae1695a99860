//! The memory guard at work: judges each reading, and passes alarm and stance on to the supervisor.

use crate::models::Models;
use jiff::{Timestamp, Zoned};
use parking_lot::Mutex;
use std::{sync::Arc, time::Duration};
use tierbar_core::{
    TierState,
    journal::{Journal, Kind, LogEvent},
    lease::Tiers,
    memory_guard::{Judgment, MemoryGuard},
    policy::{Alarm, Stance},
    reading::{Power, Reading},
    stance::{Circumstances, stance},
    status::GuardStatus,
};
use tierbar_inference::moment::Moment;
use tierbar_supervisor::Handle;

#[derive(Debug)]
pub(crate) struct GuardRunner {
    supervisor: Handle,
    models: Arc<Models>,
    journal: Arc<dyn Journal>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    guard: MemoryGuard,
    reading: Reading,
    judgment: Judgment,
    pause: Option<Pause>,
    /// What the supervisor received last.
    sent: Orders,
    /// Whether it has received a stance. Until then, models load only on request.
    begun: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Orders {
    alarm: (Alarm, String),
    stance: (Stance, String),
}

#[derive(Debug, Clone, Copy)]
struct Pause {
    begun: Moment,
    /// `None` until it is resumed.
    length: Option<Duration>,
    /// Its end, as it is shown.
    until: Option<Timestamp>,
}

impl Pause {
    fn new(length: Option<Duration>) -> Self {
        // A time beyond the calendar counts as no end.
        let until = length.and_then(|length| Timestamp::now().checked_add(length).ok());
        Self {
            begun: Moment::now(),
            length: length.filter(|_| until.is_some()),
            until,
        }
    }

    fn has_ended(&self, now: Moment) -> bool {
        let length = self.length;
        length.is_some_and(|length| length <= self.begun.until(now))
    }
}

fn event(stance: Stance, why: &str) -> LogEvent {
    let what = match stance {
        Stance::Open => {
            let sentence = "models load as configured again";
            return LogEvent::new(Kind::Resume, sentence);
        }
        Stance::Defers => "models load only on request",
        Stance::Quiet => "idle models are unloaded",
        Stance::Paused => "requests are refused",
    };
    LogEvent::new(Kind::Pause, format!("{why}: {what}"))
}

impl GuardRunner {
    pub(crate) fn new(supervisor: Handle, models: Arc<Models>, journal: Arc<dyn Journal>) -> Self {
        let state = Mutex::default();
        Self {
            supervisor,
            models,
            journal,
            state,
        }
    }

    pub(crate) fn observe(&self, reading: &Reading) {
        let tiers = self.supervisor.snapshot();
        let loading = tiers.iter().any(|tier| tier.state == TierState::Starting);
        let mut state = self.state.lock();
        state.judgment = state.guard.observe(reading, loading);
        state.reading = reading.clone();
        self.apply(&mut state);
    }

    /// Refuses requests, for this long or until [`Self::resume`].
    pub(crate) fn pause(&self, length: Option<Duration>) {
        let mut state = self.state.lock();
        state.pause = Some(Pause::new(length));
        self.apply(&mut state);
    }

    pub(crate) fn resume(&self) {
        let mut state = self.state.lock();
        state.pause = None;
        self.apply(&mut state);
    }

    pub(crate) fn reconsider(&self) {
        self.apply(&mut self.state.lock());
    }

    /// Returns whether readings should be frequent, because it may act soon.
    pub(crate) fn is_alarmed(&self) -> bool {
        self.state.lock().judgment.why.is_some()
    }

    /// The power source of the last reading.
    pub(crate) fn power(&self) -> Option<Power> {
        self.state.lock().reading.power
    }

    pub(crate) fn status(&self) -> GuardStatus {
        let state = self.state.lock();
        let (alarm, stance) = (state.sent.alarm.0, &state.sent.stance);
        let restricts = Some(stance.1.clone()).filter(|_| stance.0 > Stance::Defers);
        GuardStatus {
            alarm,
            stance: stance.0,
            why: restricts
                .or_else(|| state.judgment.why.clone())
                .or_else(|| Some(stance.1.clone()).filter(|why| !why.is_empty())),
            paused_until: state
                .pause
                .and_then(|pause| pause.until)
                .map(Timestamp::as_millisecond),
        }
    }

    fn apply(&self, state: &mut State) {
        let ended = |pause: &Pause| pause.has_ended(Moment::now());
        if state.pause.as_ref().is_some_and(ended) {
            state.pause = None;
        }
        let now = Zoned::now();
        let minute = i32::from(now.hour()) * 60 + i32::from(now.minute());
        let circumstances = Circumstances {
            paused: state.pause.is_some(),
            minute_of_day: u16::try_from(minute).unwrap_or(0),
            reserved: state.judgment.reserved,
        };
        let Judgment { alarm, why, .. } = &state.judgment;
        let orders = Orders {
            alarm: (*alarm, why.clone().unwrap_or_default()),
            stance: stance(&self.models.config().policy, &state.reading, circumstances),
        };
        // The text changes with the figures every second.
        if orders.alarm.0 != state.sent.alarm.0 {
            let (alarm, why) = orders.alarm.clone();
            let alarmed = |what: &str| LogEvent::new(Kind::Alarm, format!("{why}; {what}"));
            let event = match alarm {
                Alarm::None => {
                    let sentence = state.judgment.ended.map(|ended| ended.sentence());
                    let sentence = sentence.unwrap_or_else(|| "memory is no longer low".to_owned());
                    LogEvent::new(Kind::Calm, sentence)
                }
                Alarm::Hold => alarmed("no model loads, and idle ones are unloaded if it lasts"),
                Alarm::Unload => alarmed("idle models are unloaded"),
                Alarm::Critical => alarmed("all models are unloaded"),
            };
            match alarm {
                Alarm::None => tracing::info!("{}", event.sentence),
                alarm => tracing::warn!(?alarm, "{}", event.sentence),
            }
            self.journal.record(event);
            self.supervisor.set_alarm(alarm, why);
        }
        if orders.stance != state.sent.stance || !state.begun {
            state.begun = true;
            let (stance, why) = orders.stance.clone();
            tracing::info!(?stance, "{why}");
            // The text has the battery's level, and one percent less is no news.
            if stance != state.sent.stance.0 {
                self.journal.record(event(stance, &why));
            }
            self.supervisor.set_stance(stance, why);
        }
        state.sent = orders;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_no_longer_if_the_clock_is_set_back() {
        let hour = Duration::from_secs(3600);
        let now = Moment::now();
        let (wall, at) = (now.wall, now.at);
        let moment = |wall, at| Moment { wall, at, ..now };
        let pause = Pause::new(Some(hour));
        assert!(!pause.has_ended(moment(wall, at)));
        assert!(pause.has_ended(moment(wall - hour, at + 2 * hour)));
        // The machine slept.
        assert!(pause.has_ended(moment(wall + 2 * hour, at)));
        assert!(!Pause::new(None).has_ended(moment(wall + 2 * hour, at + 2 * hour)));
    }
}
