//! The jobs of one request, from their start to their last event or until the client disconnects.

use super::Engine;
use crate::{
    generate::{Job, JobEvent, JobGoal},
    llama::{Interrupt, Token},
};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use tierbar_core::{Code, Error};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// A client that waits while its request is prepared. Dropping it, as happens when the client disconnects, cancels that.
#[derive(Debug, Default)]
pub(super) struct WaitingClient {
    pub(super) gone: Arc<AtomicBool>,
}

impl Drop for WaitingClient {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::Release);
    }
}

/// Creates the jobs of a request.
#[derive(Debug)]
pub(super) struct JobSource {
    events: UnboundedSender<(usize, JobEvent)>,
    cancel: Arc<AtomicBool>,
}

impl JobSource {
    /// Creates a job for text that does not use the cache.
    pub(super) fn job(&self, index: usize, prompt: Vec<Token>, goal: JobGoal) -> Job {
        Job {
            prompt,
            media: Arc::default(),
            cache_prompt: false,
            saved: None,
            goal,
            cancel: Arc::clone(&self.cancel),
            index,
            events: self.events.clone(),
        }
    }
}

/// Receives the events of a request's jobs. Dropping it, as happens when the client disconnects, cancels them.
#[derive(Debug)]
pub(super) struct RunningJobs {
    events: UnboundedReceiver<(usize, JobEvent)>,
    cancel: Arc<AtomicBool>,
    interrupt: Arc<Interrupt>,
    /// Jobs that have not ended.
    pub(super) left: usize,
}

impl RunningJobs {
    /// Starts a request of `left` jobs.
    pub(super) fn begin(engine: &Engine, left: usize) -> (JobSource, Self) {
        let (events, receiver) = unbounded_channel();
        let cancel = Arc::new(AtomicBool::new(false));
        let running = Self {
            events: receiver,
            cancel: Arc::clone(&cancel),
            interrupt: Arc::clone(&engine.interrupt),
            left,
        };
        (JobSource { events, cancel }, running)
    }

    /// Returns the next event with the index of its answer, or `None` once all jobs have ended.
    pub(super) async fn next(&mut self) -> Option<(usize, JobEvent)> {
        if self.left == 0 {
            return None;
        }
        let (index, event) = self.events.recv().await.unwrap_or_else(|| {
            let ended = "the engine thread ended before the answer was complete";
            (0, JobEvent::Failed(Error::new(Code::WorkerCrashed, ended)))
        });
        match event {
            JobEvent::Prompt(_) | JobEvent::Text { .. } => {}
            JobEvent::Done(_) | JobEvent::Embedded(_) | JobEvent::Saved(..) => self.left -= 1,
            // A failure cancels the other jobs.
            JobEvent::Failed(_) => {
                if self.left > 1 {
                    self.cancel.store(true, Ordering::Release);
                    self.interrupt.request();
                }
                self.left = 0;
            }
        }
        Some((index, event))
    }
}

impl Drop for RunningJobs {
    fn drop(&mut self) {
        self.cancel.store(true, Ordering::Release);
        if self.left > 0 {
            self.interrupt.request();
        }
    }
}
