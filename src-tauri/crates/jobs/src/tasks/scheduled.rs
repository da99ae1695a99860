//! A schedule's task, without a client: it gives way to requests of clients.

use super::{
    ask::{Session, TaskResult, Trail},
    batch::record,
    brief,
    message::Message,
    summarize::{self, checked_words},
};
use crate::Jobs;
use serde_json::Value;
use std::collections::BTreeSet;
use tierbar_core::{
    Error,
    config::{ScheduleConfig, ScheduledTask},
    lease::Purpose,
};
use tierbar_inference::{hints::Hints, metrics::trace};
use tierbar_tasks::Task;

/// Runs a schedule's task on a text, and returns the answer that its route would give.
///
/// # Errors
/// Those of the route.
pub async fn run(jobs: &Jobs, schedule: &ScheduleConfig, text: String) -> Result<Value, Error> {
    let (task, path, usual) = match schedule.task {
        ScheduledTask::Summarize => (Task::Summarize, "/v1/summarize", summarize::USUAL_WORDS),
        ScheduledTask::Brief => (Task::Brief, "/v1/brief", brief::USUAL_WORDS),
    };
    let words = checked_words(schedule.words, usual)?;
    let (hints, model) = (Hints::default(), Some(schedule.model.as_str()));
    let (none, trail) = (BTreeSet::new(), Trail::default());
    let mut session = Session::new(&jobs.inference, task, model, &none, &hints, trail);
    session.purpose = Purpose::Background;
    let TaskResult { answer, spent } = trace::of_route(path.to_owned(), async {
        match task {
            Task::Brief => brief::of_lines(session, text.into(), words).await,
            _ => summarize::of_message(session, &Message::of_text(&text), words).await,
        }
    })
    .await?;
    record(jobs, task, spent).await;
    Ok(answer)
}
