//! The owner of the schedules: starts due runs, one at a time.

use super::{
    RunNow, Schedules, no_schedule,
    source::{self, Extract},
    target::{self, Outcome},
    turns,
};
use jiff::{Timestamp, tz::TimeZone};
use parking_lot::Mutex;
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tierbar_core::{
    Code, Error,
    config::{ScheduleConfig, ScheduledTask},
    journal::{Journal, Kind, LogEvent},
    lease::BoxFuture,
    schedule::{NextTurn, Run},
};
use tierbar_fetch::{Remote, Web};
use tierbar_secrets::Secrets;
use tokio::{sync::mpsc, time::sleep};
use tokio_util::sync::CancellationToken;

/// How often to check the calendar, since sleep and changes of the clock are not announced.
const LOOK: Duration = Duration::from_secs(30);

/// Runs a schedule's task on a text, and returns its answer.
pub(crate) type RunTask =
    Box<dyn Fn(ScheduleConfig, String) -> BoxFuture<'static, Result<Value, Error>> + Send + Sync>;

/// A result that could not be delivered.
#[derive(Debug, Clone)]
pub(crate) struct UndeliveredResult {
    turn: i64,
    /// The schedule at that time: after a change, the result is dropped.
    schedule: ScheduleConfig,
    outcome: Outcome,
    /// When its source was read.
    read_at: i64,
}

pub(crate) struct Runner {
    pub(crate) schedules: Arc<Schedules>,
    pub(crate) requests: mpsc::Receiver<RunNow>,
    /// By the names of their schedules.
    pub(crate) undelivered: Mutex<BTreeMap<String, UndeliveredResult>>,
    pub(crate) run_task: RunTask,
    pub(crate) web: Web,
    pub(crate) remote: Remote,
    pub(crate) secrets: Secrets,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) extract: Extract,
    pub(crate) paused: Box<dyn Fn() -> bool + Send + Sync>,
    /// Called when a schedule starts or stops failing.
    pub(crate) notice: Box<dyn Fn() + Send + Sync>,
}

impl Runner {
    /// Runs until the host ends, which interrupts a run; an interrupted run is retried.
    pub(crate) async fn run(mut self, closing: CancellationToken) {
        closing.run_until_cancelled(self.forever()).await;
    }

    async fn forever(&mut self) {
        let mut config = self.schedules.config.clone();
        loop {
            config.mark_unchanged();
            let wait = if self.schedules.takes_turns {
                self.take_turns(Timestamp::now(), &TimeZone::system()).await
            } else {
                LOOK
            };
            tokio::select! {
                biased;
                Some(request) = self.requests.recv() => self.answer(request).await,
                changed = config.changed() => if changed.is_err() { return },
                () = sleep(wait.min(LOOK)) => {}
            }
        }
    }

    /// Starts due runs, and returns the time until the next one.
    pub(super) async fn take_turns(&self, now: Timestamp, zone: &TimeZone) -> Duration {
        let config = Arc::clone(&self.schedules.config.borrow());
        let mut wait = LOOK;
        for (name, schedule) in &config.schedules {
            match self.take_turn(name, schedule, now, zone).await {
                Ok(Some(until)) => {
                    let left = u64::try_from(until - now.as_second()).unwrap_or_default();
                    wait = wait.min(Duration::from_secs(left.max(1)));
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!("the runs of the schedule {name} cannot be recorded: {error}")
                }
            }
        }
        wait
    }

    /// Starts the schedule's run if it is due; returns when the next one is.
    async fn take_turn(
        &self,
        name: &str,
        schedule: &ScheduleConfig,
        now: Timestamp,
        zone: &TimeZone,
    ) -> Result<Option<i64>, Error> {
        let at = now.as_second();
        let store = &self.schedules.store;
        let run = match store.schedule_run(name).await? {
            Some(run) => run,
            None => {
                let run = Run::first_seen(at);
                store.put_schedule_run(name, run.clone()).await?;
                run
            }
        };
        let turn = match run.next(&turns::turns_around(schedule, now, zone), at) {
            NextTurn::Begin(_) if (self.paused)() => return Ok(None),
            NextTurn::Begin(turn) => turn,
            NextTurn::Wait(until) => return Ok(Some(until)),
            NextTurn::Never => return Ok(None),
        };
        // Stored first, so that a run that kills the host is not retried forever.
        let before = run;
        let run = before.begun(turn, at);
        store.put_schedule_run(name, run.clone()).await?;
        let of = RunPurpose {
            turn: Some(turn),
            covers_to: run.covers_to,
            date: turns::date_of(turn, zone),
        };
        let run = match self.perform(name, schedule, of, at).await {
            Ok((sentence, covers_to)) => {
                self.record(format!("the schedule {name} {sentence}"));
                self.failing(name, None);
                run.done(covers_to, sentence)
            }
            // A pause is not the schedule's failure.
            Err(error) if error.code == Code::Paused => run.put_off(&before),
            Err(error) => {
                let run = run.failed(error.message.clone());
                let what = if run.finished {
                    self.undelivered.lock().remove(name);
                    "will not be tried again before its next run"
                } else {
                    "is tried again"
                };
                self.record(format!(
                    "the schedule {name} failed and {what}: {}",
                    error.message
                ));
                self.failing(name, Some(error.message));
                run
            }
        };
        store.put_schedule_run(name, run).await?;
        Ok(None)
    }

    /// Runs one on request; the next scheduled run reads the same changes again.
    async fn answer(&self, RunNow { name, done }: RunNow) {
        let config = Arc::clone(&self.schedules.config.borrow());
        let outcome = match config.schedules.get(&name) {
            None => Err(no_schedule(&name, &config)),
            Some(schedule) => self.run_now(&name, schedule).await,
        };
        // The caller may have gone; the run is complete.
        let _ = done.send(outcome);
    }

    async fn run_now(&self, name: &str, schedule: &ScheduleConfig) -> Result<String, Error> {
        let now = Timestamp::now().as_second();
        let kept = self.schedules.store.schedule_run(name).await?;
        let run = kept.unwrap_or_else(|| Run::first_seen(now));
        let of = RunPurpose {
            turn: None,
            covers_to: run.covers_to,
            date: turns::date_of(now, &TimeZone::system()),
        };
        let (sentence, failed) = match self.perform(name, schedule, of, now).await {
            Ok((sentence, _)) => (sentence, None),
            // A pause is not the schedule's failure.
            Err(error) if error.code == Code::Paused => return Err(error),
            Err(error) => (error.message.clone(), Some(error)),
        };
        let run = run.by_hand(now, sentence.clone(), failed.is_some());
        if let Err(error) = self.schedules.store.put_schedule_run(name, run).await {
            tracing::warn!("the run of the schedule {name} cannot be recorded: {error}");
        }
        // The client that started the run gets the error, so no notification is sent.
        if let Some(error) = failed {
            return Err(error);
        }
        self.record(format!(
            "the schedule {name} was run by hand and {sentence}"
        ));
        self.failing(name, None);
        Ok(sentence)
    }

    /// Reads the source, runs the task and delivers the result. Returns the outcome, and when the source was read.
    ///
    /// A result that could not be delivered is kept; the next attempt only delivers it.
    async fn perform(
        &self,
        name: &str,
        schedule: &ScheduleConfig,
        of: RunPurpose,
        now: i64,
    ) -> Result<(String, i64), Error> {
        *self.schedules.running.lock() = Some(name.to_owned());
        let _ended = RunningMark(self);
        let kept = self.undelivered.lock().get(name).cloned();
        let kept = kept.filter(|kept| Some(kept.turn) == of.turn && kept.schedule == *schedule);
        let (outcome, read_at) = match kept {
            Some(kept) => (kept.outcome, kept.read_at),
            None => match self.make(name, schedule, &of, now).await? {
                Ok(outcome) => (outcome, now),
                Err(sentence) => return Ok((sentence.to_owned(), now)),
            },
        };
        let went = target::deliver(schedule, &outcome, &self.remote, &self.secrets).await;
        let mut undelivered = self.undelivered.lock();
        match (&went, of.turn) {
            (_, None) => {}
            (Ok(_), Some(_)) => drop(undelivered.remove(name)),
            (Err(_), Some(turn)) => {
                let kept = UndeliveredResult {
                    turn,
                    schedule: schedule.clone(),
                    outcome: outcome.clone(),
                    read_at,
                };
                undelivered.insert(name.to_owned(), kept);
            }
        }
        let saved = outcome.answer["saved"].as_u64().unwrap_or_default();
        let sentence = format!("{} from {}; {saved} tokens saved", went?, outcome.from);
        Ok((sentence, read_at))
    }

    /// Reads the source and runs the task, or returns why there is nothing to deliver.
    async fn make(
        &self,
        name: &str,
        schedule: &ScheduleConfig,
        of: &RunPurpose,
        now: i64,
    ) -> Result<Result<Outcome, &'static str>, Error> {
        let (from, to) = (&schedule.source, &schedule.to);
        // A brief is of lines, which no document has.
        let extract = Some(&self.extract).filter(|_| schedule.task == ScheduledTask::Summarize);
        let reading = source::read(from, to, of.covers_to, now, &self.web, extract);
        let Some(material) = reading.await? else {
            return Ok(Err("found nothing new"));
        };
        if material.text.trim().is_empty() {
            return Ok(Err("found nothing to read"));
        }
        let answer = (self.run_task)(schedule.clone(), material.text).await?;
        let field = schedule.task.result();
        Ok(Ok(Outcome {
            name: name.to_owned(),
            date: of.date,
            text: answer[field].as_str().unwrap_or_default().to_owned(),
            from: material.words,
            answer,
        }))
    }

    fn record(&self, sentence: String) {
        self.journal.record(LogEvent::new(Kind::Note, sentence));
    }

    fn failing(&self, name: &str, why: Option<String>) {
        {
            let mut failing = self.schedules.failing.lock();
            match why {
                Some(why) => failing.insert(name.to_owned(), why),
                None => failing.remove(name),
            };
        }
        (self.notice)();
    }
}

/// What a run is for.
struct RunPurpose {
    /// The turn; `None` for a run on request.
    turn: Option<i64>,
    covers_to: Option<i64>,
    date: jiff::civil::Date,
}

/// Marks the end of a run, however it ended.
struct RunningMark<'a>(&'a Runner);

impl Drop for RunningMark<'_> {
    fn drop(&mut self) {
        *self.0.schedules.running.lock() = None;
    }
}
