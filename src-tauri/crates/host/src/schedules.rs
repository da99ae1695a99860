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
use tierbar_core::{
    Code, Config, Error,
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
    /// Whether runs start at their times: not in a host that ends with a command.
    takes_turns: bool,
    /// What the owner is doing.
    running: Mutex<Option<String>>,
    failing: Mutex<BTreeMap<String, String>>,
}

#[derive(Debug)]
pub(crate) struct RunNow {
    name: String,
    done: oneshot::Sender<Result<String, Error>>,
}

impl Schedules {
    /// Creates the handle, and the requests for its owner.
    pub(crate) fn new(
        config: watch::Receiver<Arc<Config>>,
        store: Store,
        takes_turns: bool,
    ) -> (Arc<Self>, mpsc::Receiver<RunNow>) {
        let (inbox, requests) = mpsc::channel(WAITING);
        let handle = Self {
            config,
            store,
            inbox,
            takes_turns,
            running: Mutex::default(),
            failing: Mutex::default(),
        };
        (Arc::new(handle), requests)
    }

    pub(crate) fn notices(&self) -> Vec<String> {
        let failing = self.failing.lock();
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
        let running = self.running.lock().clone();
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
}

impl tierbar_inference::services::schedules::Schedules for Schedules {
    fn list(&self) -> BoxFuture<'_, Result<Vec<ScheduleStatus>, Error>> {
        Box::pin(self.status())
    }

    fn run(&self, name: String) -> BoxFuture<'_, Result<String, Error>> {
        Box::pin(async move {
            let config = Arc::clone(&self.config.borrow());
            if !config.schedules.contains_key(&name) {
                return Err(no_schedule(&name, &config));
            }
            let (done, outcome) = oneshot::channel();
            let sent = self.inbox.try_send(RunNow { name, done });
            sent.map_err(|refused| match refused {
                TrySendError::Full(_) => {
                    let message = "too many schedules are already waiting to run";
                    Error::new(Code::Overloaded, message)
                }
                TrySendError::Closed(_) => shutdown_error(),
            })?;
            outcome.await.unwrap_or_else(|_| Err(shutdown_error()))
        })
    }
}

fn shutdown_error() -> Error {
    let message = "Tierbar is quitting before the schedule ran";
    Error::new(Code::ShuttingDown, message)
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
