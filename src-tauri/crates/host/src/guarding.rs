//! The guard at work: judges each reading, and tells the supervisor what it has to heed.

use crate::models::Models;
use jiff::{Timestamp, Zoned};
use parking_lot::Mutex;
use std::{sync::Arc, time::Duration};
use tierbar_core::{
    guard::{Guard, Judgement},
    journal::{Happening, Journal, Kind},
    policy::{Alarm, Stance},
    reading::Reading,
    stance::{Circumstances, stance},
    status::GuardStatus,
};
use tierbar_supervisor::Handle;

#[derive(Debug)]
pub(crate) struct Guarding {
    supervisor: Handle,
    models: Arc<Models>,
    journal: Arc<dyn Journal>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    guard: Guard,
    reading: Reading,
    judgement: Judgement,
    pause: Option<Pause>,
    /// What the supervisor was told last.
    told: Told,
    /// It has been told something: until then nothing is loaded unasked.
    begun: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Told {
    alarm: (Alarm, String),
    stance: (Stance, String),
}

#[derive(Debug, Clone, Copy)]
struct Pause {
    /// `None`: until somebody resumes.
    until: Option<Timestamp>,
}

fn happening(stance: Stance, why: &str) -> Happening {
    let what = match stance {
        Stance::Open => {
            let sentence = "the tiers are loaded and kept as configured again";
            return Happening::new(Kind::Resume, sentence);
        }
        Stance::Defers => "nothing is loaded that no request waits for",
        Stance::Quiet => "nothing stays loaded that nobody uses",
        Stance::Paused => "requests are refused",
    };
    Happening::new(Kind::Pause, format!("{why}: {what}"))
}

impl Guarding {
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
        let mut state = self.state.lock();
        state.judgement = state.guard.observe(reading);
        state.reading = reading.clone();
        self.tell(&mut state);
    }

    /// Refuses requests, for so long or until [`Self::resume`].
    pub(crate) fn pause(&self, length: Option<Duration>) {
        let mut state = self.state.lock();
        // A time that no clock will show is as good as none.
        let until = length.and_then(|length| Timestamp::now().checked_add(length).ok());
        state.pause = Some(Pause { until });
        self.tell(&mut state);
    }

    pub(crate) fn resume(&self) {
        let mut state = self.state.lock();
        state.pause = None;
        self.tell(&mut state);
    }

    /// The configuration has changed.
    pub(crate) fn reconsider(&self) {
        self.tell(&mut self.state.lock());
    }

    /// Somebody has to look often: it may be about to act.
    pub(crate) fn is_alarmed(&self) -> bool {
        self.state.lock().judgement.why.is_some()
    }

    pub(crate) fn status(&self) -> GuardStatus {
        let state = self.state.lock();
        let (alarm, stance) = (state.told.alarm.0, &state.told.stance);
        let said = Some(stance.1.clone()).filter(|_| stance.0 > Stance::Defers);
        GuardStatus {
            alarm,
            stance: stance.0,
            why: said
                .or_else(|| state.judgement.why.clone())
                .or_else(|| Some(stance.1.clone()).filter(|why| !why.is_empty())),
            paused_until: state
                .pause
                .and_then(|pause| pause.until)
                .map(Timestamp::as_millisecond),
        }
    }

    fn tell(&self, state: &mut State) {
        let ended = |pause: &Pause| pause.until.is_some_and(|until| until <= Timestamp::now());
        if state.pause.as_ref().is_some_and(ended) {
            state.pause = None;
        }
        let now = Zoned::now();
        let minute = i32::from(now.hour()) * 60 + i32::from(now.minute());
        let circumstances = Circumstances {
            paused: state.pause.is_some(),
            minute_of_day: u16::try_from(minute).unwrap_or(0),
            reserved: state.judgement.reserved,
        };
        let Judgement { alarm, why, .. } = &state.judgement;
        let told = Told {
            alarm: (*alarm, why.clone().unwrap_or_default()),
            stance: stance(&self.models.config().policy, &state.reading, circumstances),
        };
        // The words change with the figures, from second to second.
        if told.alarm.0 != state.told.alarm.0 {
            let (alarm, why) = told.alarm.clone();
            match alarm {
                Alarm::None => tracing::info!("memory is no longer short"),
                alarm => tracing::warn!(?alarm, "{why}"),
            }
            self.journal.tell(match alarm {
                Alarm::None => Happening::new(Kind::Calm, "memory is no longer short"),
                _ => Happening::new(Kind::Alarm, why.clone()),
            });
            self.supervisor.set_alarm(alarm, why);
        }
        if told.stance != state.told.stance || !state.begun {
            state.begun = true;
            let (stance, why) = told.stance.clone();
            tracing::info!(?stance, "{why}");
            // The battery's level is in the words, and one percent less is no news.
            if stance != state.told.stance.0 {
                self.journal.tell(happening(stance, &why));
            }
            self.supervisor.set_stance(stance, why);
        }
        state.told = told;
    }
}
