//! The event log's entries about tiers.

use super::{Supervisor, TierRequest, Worker, tier::EndedWorker, words};
use std::{collections::HashMap, mem, time::Duration};
use tierbar_core::{
    Code, Error, TierId,
    journal::{Kind, LogEvent},
    worker::Memory,
};
use tokio::time::Instant;

/// Refusals of one tier for one cause are logged this often, with their number: a client that retries without end would
/// push everything else out of the log.
const REFUSALS_EVERY: Duration = Duration::from_secs(60);

/// A tier's refusals of late, by cause: when they were logged, and how many are not logged since then.
#[derive(Debug, Default)]
pub(super) struct RefusalLog(HashMap<Code, (Instant, usize)>);

impl RefusalLog {
    /// Returns how many to log, now that `count` more are refused; `None` if they are logged later.
    fn due(&mut self, code: Code, count: usize, now: Instant) -> Option<usize> {
        let Some((logged_at, unlogged)) = self.0.get_mut(&code) else {
            self.0.insert(code, (now, 0));
            return Some(count);
        };
        *unlogged += count;
        if now.duration_since(*logged_at) < REFUSALS_EVERY {
            return None;
        }
        *logged_at = now;
        Some(mem::take(unlogged))
    }

    /// Returns how many are not logged yet, and since when.
    fn take_unlogged(&mut self) -> Vec<(usize, Instant)> {
        let refused = self.0.drain().map(|(_, (since, count))| (count, since));
        refused.filter(|(count, _)| *count > 0).collect()
    }
}

impl Supervisor {
    /// Records an event, after the tier's refusals that are not logged yet.
    pub(super) fn log(&mut self, event: LogEvent) {
        let tier = event.tier.as_ref().and_then(|id| self.tier(id));
        if let Some(tier) = tier {
            let (id, model) = (tier.spec.id.clone(), tier.spec.model.clone());
            for (count, since) in tier.refusals.take_unlogged() {
                let sentence = words::more_refused(count, &id, since.elapsed());
                let more = LogEvent::for_tier(Kind::Refusal, &id, model.as_ref(), sentence);
                self.options.journal.record(more);
            }
        }
        self.options.journal.record(event);
    }

    pub(super) fn log_load(&mut self, id: &TierId) {
        let budget = self.options.budget.total_bytes;
        let waiting = self.queue.iter().filter(|waiter| waiter.tier == *id);
        let (mut requests, mut expected) = (0, false);
        for waiter in waiting {
            requests += usize::from(!waiter.want.is_ahead());
            expected |= matches!(waiter.want, TierRequest::Expected(_));
        }
        let Some(tier) = self.tier(id) else { return };
        let pinned = tier.spec.pinned;
        let Some(Worker { load, .. }) = &tier.worker else {
            return;
        };
        let for_what = match requests {
            0 if expected => "for an expected request".to_owned(),
            0 if pinned => "because it is pinned".to_owned(),
            0 => "because it is the home tier".to_owned(),
            _ => format!("for {}", words::requests(requests)),
        };
        let sentence = words::loads(id, load, &for_what, budget);
        let event = LogEvent::for_tier(Kind::Load, id, Some(&load.model), sentence);
        self.log(event);
    }

    pub(super) fn log_ready(&mut self, id: &TierId, memory: &Memory) {
        let Some(worker) = self.tier(id).and_then(|tier| tier.worker.as_ref()) else {
            return;
        };
        let (model, after) = (&worker.load.model, worker.begun.elapsed());
        let sentence = words::ready(id, model, after, worker.context_tokens, memory);
        let event = LogEvent::for_tier(Kind::Ready, id, Some(model), sentence);
        self.log(event);
    }

    pub(super) fn log_end(&mut self, id: &TierId, gone: &EndedWorker) {
        let worker = &gone.worker;
        let sentence = match gone.kind {
            Kind::Unload => words::unloaded(id, gone),
            _ => words::fallen(id, gone),
        };
        let model = Some(&worker.load.model);
        self.log(LogEvent::for_tier(gone.kind, id, model, sentence));
    }

    /// A tier cannot be loaded, and no request waits for it.
    pub(super) fn log_failure(&mut self, id: &TierId, error: &Error) {
        let model = self.tier(id).and_then(|tier| tier.spec.model.clone());
        let sentence = words::not_loaded(id, error);
        self.log(LogEvent::for_tier(
            Kind::Failure,
            id,
            model.as_ref(),
            sentence,
        ));
    }

    pub(super) fn log_refusal(&mut self, id: &TierId, count: usize, error: &Error) {
        if count == 0 {
            return;
        }
        let (mut due, mut model) = (Some(count), None);
        if let Some(tier) = self.tier(id) {
            model = tier.spec.model.clone();
            due = tier.refusals.due(error.code, count, Instant::now());
        }
        if let Some(count) = due {
            let sentence = words::requests_refused(count, id, error);
            let event = LogEvent::for_tier(Kind::Refusal, id, model.as_ref(), sentence);
            self.options.journal.record(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn refusals_are_logged_at_once_then_together() {
        let mut refusals = RefusalLog::default();
        let mut due = |code, count| refusals.due(code, count, Instant::now());
        assert_eq!(due(Code::TierFailed, 2), Some(2));
        assert_eq!(due(Code::TierFailed, 3), None);
        // Another cause is logged at once.
        assert_eq!(due(Code::Overloaded, 1), Some(1));
        tokio::time::advance(REFUSALS_EVERY).await;
        assert_eq!(due(Code::TierFailed, 1), Some(4));
        assert_eq!(due(Code::TierFailed, 5), None);
        let unlogged = refusals.take_unlogged();
        assert_eq!(unlogged, [(5, Instant::now())]);
        assert_eq!(refusals.take_unlogged(), []);
        let again = refusals.due(Code::TierFailed, 1, Instant::now());
        assert_eq!(again, Some(1));
    }
}
