//! An answer that takes its time, with how far it is as server-sent events.

use super::{ask::TaskResult, batch::record};
use crate::Jobs;
use axum::response::{
    IntoResponse, Response,
    sse::{Event, KeepAlive, Sse},
};
use futures_util::stream;
use serde_json::{Value, json};
use std::{convert::Infallible, sync::Arc, time::Duration};
use tierbar_core::{Error, lease::BoxFuture};
use tierbar_measure::bench::Progress;
use tierbar_tasks::Task;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A piece may be silent for longer than clients and proxies wait.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// Reports the progress.
pub(super) struct Reporter(Option<UnboundedSender<Progress>>);

impl Reporter {
    pub(super) fn silent() -> Self {
        Self(None)
    }

    pub(super) fn report(&self, done: usize, of: usize, doing: &str) {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        if let Some(reporter) = &self.0 {
            // Without a listener, the work is dropped as well.
            let _ = reporter.send(Progress {
                done: count(done),
                of: count(of),
                doing: doing.to_owned(),
            });
        }
    }
}

/// `progress` as it comes, and `result` or `error` at the end. The work belongs to the stream: it ends with the connection.
pub(super) fn events<F>(jobs: Arc<Jobs>, task: Task, work: impl FnOnce(Reporter) -> F) -> Response
where
    F: Future<Output = Result<TaskResult, Error>> + Send + 'static,
{
    let (reporter, progress) = unbounded_channel();
    let work = work(Reporter(Some(reporter)));
    let working = TaskEvents {
        progress,
        work: Some(Box::pin(async move {
            let TaskResult { answer, spent } = work.await?;
            record(&jobs, task, spent).await;
            Ok(Value::Object(answer))
        })),
        outcome: None,
    };
    let events = stream::unfold(working, |mut working| async {
        let (name, data) = working.next().await?;
        let event = Event::default().event(name).data(data.to_string());
        Some((Ok::<_, Infallible>(event), working))
    });
    Sse::new(events)
        .keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
        .into_response()
}

struct TaskEvents {
    progress: UnboundedReceiver<Progress>,
    work: Option<BoxFuture<'static, Result<Value, Error>>>,
    outcome: Option<Result<Value, Error>>,
}

impl TaskEvents {
    async fn next(&mut self) -> Option<(&'static str, Value)> {
        loop {
            tokio::select! {
                biased;
                Some(progress) = self.progress.recv() => return Some(("progress", json!(progress))),
                outcome = async {
                    match &mut self.work {
                        Some(work) => work.await,
                        None => std::future::pending().await,
                    }
                }, if self.work.is_some() => {
                    // Earlier progress comes first.
                    self.work = None;
                    self.outcome = Some(outcome);
                }
                else => {
                    return self.outcome.take().map(|outcome| match outcome {
                        Ok(answer) => ("result", answer),
                        Err(error) => ("error", error.openai_body()),
                    });
                }
            }
        }
    }
}
