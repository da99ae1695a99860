//! Schedules: tasks at a time of day. One task owns them and runs one at a time; others hold a handle.

mod outputs;
mod runner;
mod source;
mod target;
mod turns;

use jiff::{Timestamp, tz::TimeZone};
use parking_lot::Mutex;
pub(crate) use runner::Runner;
use std::{collections::BTreeMap, sync::Arc};
use target::Outcome;
use tierbar_core::{
    Code, Config, Error,
    config::ScheduleConfig,
    lease::BoxFuture,
    nearest::suggest,
    schedule::{NextTurn, Run, ScheduleStatus},
};
use tierbar_store::Store;
use tokio::sync::{
    mpsc::{self, error::TrySendError},
    oneshot, watch,
};

/// The most requested runs that wait.
const WAITING: usize = 8;

/// The handle.
#[derive(Debug)]
pub(crate) struct Schedules {
    config: watch::Receiver<Arc<Config>>,
    store: Store,
    inbox: mpsc::Sender<RunNow>,
    state: Arc<State>,
    /// Whether runs start at their times: not in a host that ends with a command.
    takes_turns: bool,
}

/// The state that the owner publishes.
#[derive(Debug, Default)]
struct State {
    running: Mutex<Option<String>>,
    failing: Mutex<BTreeMap<String, String>>,
}

/// A result that could not be delivered.
#[derive(Debug, Clone)]
struct UndeliveredResult {
    turn: i64,
    /// The schedule at that time: after a change, the result is dropped.
    schedule: ScheduleConfig,
    outcome: Outcome,
    /// When its source was read.
    read_at: i64,
}

/// A request to run one now.
#[derive(Debug)]
struct RunNow {
    name: String,
    done: oneshot::Sender<Result<String, Error>>,
}

impl Schedules {
    /// Creates the handle, and the inbox for its owner.
    pub(crate) fn new(
        config: watch::Receiver<Arc<Config>>,
        store: Store,
        takes_turns: bool,
    ) -> (Self, Inbox) {
        let (inbox, requests) = mpsc::channel(WAITING);
        let state = Arc::new(State::default());
        let owners = Inbox {
            config: config.clone(),
            store: store.clone(),
            requests,
            state: Arc::clone(&state),
            takes_turns,
            undelivered: Mutex::default(),
        };
        let handle = Self {
            config,
            store,
            inbox,
            state,
            takes_turns,
        };
        (handle, owners)
    }

    /// Returns the notices about failing schedules.
    pub(crate) fn notices(&self) -> Vec<String> {
        let failing = self.state.failing.lock();
        let config = self.config.borrow();
        let configured = failing
            .iter()
            .filter(|(name, _)| config.schedules.contains_key(*name));
        configured
            .map(|(name, why)| format!("The schedule {name} fails: {why}"))
            .collect()
    }

    async fn status(&self) -> Result<Vec<ScheduleStatus>, Error> {
        let config = Arc::clone(&self.config.borrow());
        let (now, zone) = (Timestamp::now(), TimeZone::system());
        let running = self.state.running.lock().clone();
        let mut statuses = Vec::new();
        for (name, schedule) in &config.schedules {
            let kept = self.store.schedule_run(name).await?;
            let run = kept.unwrap_or_else(|| Run::first_seen(now.as_second()));
            let next = run.next(&turns::turns_around(schedule, now, &zone), now.as_second());
            let next_at = match next {
                NextTurn::Begin(_) => Some(now.as_second()),
                NextTurn::Wait(until) => Some(until),
                NextTurn::Never => None,
            };
            let running = running.as_ref() == Some(name);
            statuses.push(ScheduleStatus {
                name: name.clone(),
                config: schedule.clone(),
                next_at: next_at.filter(|_| self.takes_turns),
                tried_at: run.tried_at,
                // That of an attempt which has not ended is the host's end.
                outcome: run.outcome.filter(|_| !running),
                failing: run.failing && !running,
                running,
            });
        }
        Ok(statuses)
    }

    async fn run_now(&self, name: String) -> Result<String, Error> {
        let config = Arc::clone(&self.config.borrow());
        if !config.schedules.contains_key(&name) {
            return Err(no_schedule(&name, &config));
        }
        let (done, outcome) = oneshot::channel();
        self.inbox
            .try_send(RunNow { name, done })
            .map_err(|refused| match refused {
                TrySendError::Full(_) => Error::new(
                    Code::Overloaded,
                    "too many schedules are already waiting to run",
                ),
                TrySendError::Closed(_) => shutdown_error(),
            })?;
        outcome.await.unwrap_or_else(|_| Err(shutdown_error()))
    }
}

impl tierbar_inference::services::schedules::Schedules for Schedules {
    fn list(&self) -> BoxFuture<'_, Result<Vec<ScheduleStatus>, Error>> {
        Box::pin(self.status())
    }

    fn run(&self, name: String) -> BoxFuture<'_, Result<String, Error>> {
        Box::pin(self.run_now(name))
    }
}

/// The owner's side of the handle.
#[derive(Debug)]
pub(crate) struct Inbox {
    config: watch::Receiver<Arc<Config>>,
    store: Store,
    requests: mpsc::Receiver<RunNow>,
    state: Arc<State>,
    takes_turns: bool,
    undelivered: Mutex<BTreeMap<String, UndeliveredResult>>,
}

fn shutdown_error() -> Error {
    Error::new(
        Code::ShuttingDown,
        "Tierbar is quitting before the schedule ran",
    )
}

fn no_schedule(name: &str, config: &Config) -> Error {
    let shown: String = name.chars().take(64).collect();
    let names = config.schedules.keys().map(String::as_str);
    let hint = suggest(
        &shown,
        names,
        "add it to config.toml, under [schedules.NAME]",
    );
    Error::new(Code::NotFound, format!("there is no schedule \"{shown}\"")).hint(hint)
}

/// Checks the schedules that the API has changed: they name files to read and write, and the API's token is for models.
///
/// # Errors
/// `BadRequest` with the key that only the configuration file can set.
pub(crate) fn check_changes(before: &Config, after: &Config) -> Result<(), Error> {
    for (name, schedule) in &after.schedules {
        let own = before.schedules.get(name);
        schedule.check_change(own).map_err(|(key, why)| {
            Error::new(Code::BadRequest, format!("schedules.{name}.{key}: {why}"))
                .hint(format!("write it there, under [schedules.{name}]"))
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
