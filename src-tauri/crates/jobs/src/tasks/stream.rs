//! An answer that takes its time, with how far it is as server-sent events.

use super::{ask::TaskResult, batch::record};
use crate::Jobs;
use axum::response::{Response, sse::Event};
use futures_util::{StreamExt, stream};
use std::{future::ready, sync::Arc};
use tierbar_core::Error;
use tierbar_http::sse::{self, json_event};
use tierbar_measure::bench::Progress;
use tierbar_tasks::Task;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

pub(super) struct Reporter(Option<UnboundedSender<Event>>);

impl Reporter {
    pub(super) fn silent() -> Self {
        Self(None)
    }

    pub(super) fn report(&self, done: usize, of: usize, doing: &str) {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        if let Some(events) = &self.0 {
            let progress = Progress {
                done: count(done),
                of: count(of),
                doing: doing.to_owned(),
            };
            // Without a listener, the work is dropped as well.
            let _ = events.send(json_event(Event::default().event("progress"), &progress));
        }
    }
}

/// `progress` as it comes, and `result` or `error` at the end. The work belongs to the stream: it ends with the connection.
pub(super) fn events<F>(jobs: Arc<Jobs>, task: Task, work: impl FnOnce(Reporter) -> F) -> Response
where
    F: Future<Output = Result<TaskResult, Error>> + Send + 'static,
{
    let (events, reported) = unbounded_channel();
    let work = work(Reporter(Some(events.clone())));
    // Its last event is sent as the others are, so that earlier progress comes first.
    let working = stream::once(async move {
        let last = match work.await {
            Ok(TaskResult { answer, spent }) => {
                record(&jobs, task, spent).await;
                json_event(Event::default().event("result"), &answer)
            }
            Err(error) => json_event(Event::default().event("error"), &error.openai_body()),
        };
        let _ = events.send(last);
        None
    });
    let reported = stream::unfold(reported, |mut reported| async {
        Some((Some(reported.recv().await?), reported))
    });
    sse::response(stream::select(reported, working).filter_map(ready))
}
