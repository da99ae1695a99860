//! How fast answers are: counted while one streams, and the engine's own figures once it has ended. What each model's
//! last answers had is remembered, so that a guess at its speed can be held against it.

use crate::{metrics::TokenUse, wire::Timings};
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Instant,
};
use tierbar_chats::context::ContextUse;
use tierbar_core::{ModelId, status::Speed};
use tokio::sync::watch;

/// Answers of one model that are remembered.
const REMEMBERED: usize = 9;
/// The fewest tokens of an answer that count as a measurement of a model's speed.
const MEASURABLE: u64 = 16;

/// Tokens per second of each model's last answers, the oldest first.
pub type SpeedHistory = BTreeMap<ModelId, VecDeque<f64>>;

impl Timings {
    /// How much of its context the answer has used, if its engine says what that holds.
    pub fn context(&self) -> Option<ContextUse> {
        Some(ContextUse {
            prompt_tokens: self.prompt_n.saturating_add(self.cache_n),
            answer_tokens: self.predicted_n,
            context_tokens: self.n_ctx.filter(|tokens| *tokens > 0)?,
        })
    }

    /// Of the prompt, read anew or not, and of the answer.
    pub fn used(&self) -> TokenUse {
        TokenUse::new(self.prompt_n.saturating_add(self.cache_n), self.predicted_n)
    }
}

/// The speed of the answer that began last. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct SpeedMeter {
    measured: Arc<Mutex<Measurements>>,
    history: watch::Sender<SpeedHistory>,
}

#[derive(Debug, Default)]
struct Measurements {
    answers: u64,
    live: Option<LiveAnswer>,
    last: Speed,
    /// Of an answer that has ended since [`SpeedMeter::take_decode`].
    ended: Option<f64>,
    under_way: BTreeMap<ModelId, u32>,
}

#[derive(Debug, Default)]
struct LiveAnswer {
    answer: u64,
    chunks: u32,
    first: Option<Instant>,
    latest: Option<Instant>,
}

impl SpeedMeter {
    /// A meter that remembers what was measured before.
    pub fn new(history: SpeedHistory) -> Self {
        Self {
            measured: Arc::default(),
            history: watch::Sender::new(history),
        }
    }

    /// What is remembered, as it changes.
    pub fn history(&self) -> watch::Receiver<SpeedHistory> {
        self.history.subscribe()
    }

    /// Median of the model's last answers, in tokens per second.
    pub fn usual(&self, model: &ModelId) -> Option<f64> {
        let mut speeds: Vec<f64> = self.history.borrow().get(model)?.iter().copied().collect();
        speeds.sort_by(f64::total_cmp);
        speeds.get(speeds.len() / 2).copied()
    }

    /// Answers that the model is giving now.
    pub fn under_way(&self, model: &ModelId) -> u32 {
        let measured = self.measured.lock();
        measured.under_way.get(model).copied().unwrap_or(0)
    }

    /// Prompt processing is known only from the engine's figures, so it is the last answer's until then.
    pub fn speed(&self) -> Speed {
        let measured = self.measured.lock();
        let live = measured.live.as_ref();
        let live = live.and_then(LiveAnswer::tokens_per_second);
        Speed {
            decode_tokens_per_second: live.or(measured.last.decode_tokens_per_second),
            ..measured.last
        }
    }

    /// Decode speed of the answer that is streaming, or else of the last that has ended since the previous call; `None` if there was
    /// none. For one reader, who keeps a history.
    pub fn take_decode(&self) -> Option<f64> {
        let mut measured = self.measured.lock();
        let ended = measured.ended.take();
        let live = measured.live.as_ref();
        live.and_then(LiveAnswer::tokens_per_second).or(ended)
    }

    pub fn begin(&self, model: &ModelId) -> AnswerMeter {
        let mut measured = self.measured.lock();
        measured.answers += 1;
        let answer = measured.answers;
        *measured.under_way.entry(model.clone()).or_default() += 1;
        measured.live = Some(LiveAnswer {
            answer,
            ..LiveAnswer::default()
        });
        drop(measured);
        AnswerMeter {
            meter: self.clone(),
            model: model.clone(),
            answer,
        }
    }

    fn remember(&self, model: &ModelId, speed: f64) {
        self.history.send_modify(|history| {
            let speeds = history.entry(model.clone()).or_default();
            speeds.push_back(speed);
            while speeds.len() > REMEMBERED {
                speeds.pop_front();
            }
        });
    }
}

impl LiveAnswer {
    /// A stream's chunk is one token. The first one marks the start; what it took came before.
    fn tokens_per_second(&self) -> Option<f64> {
        let seconds = self.latest?.duration_since(self.first?).as_secs_f64();
        (self.chunks > 1 && seconds > 0.0).then(|| f64::from(self.chunks - 1) / seconds)
    }
}

/// One answer being given. Dropping it ends the counting; what was counted stays as the last speed.
#[derive(Debug)]
pub struct AnswerMeter {
    meter: SpeedMeter,
    model: ModelId,
    answer: u64,
}

impl AnswerMeter {
    /// Of an endpoint's answer only the server's own figures count: its chunks may hold any number of tokens, and come in bursts.
    pub(crate) fn uncounted(self) -> Self {
        self.take_live(&mut self.meter.measured.lock());
        self
    }

    /// Ends the counting, if it is of this answer.
    fn take_live(&self, measured: &mut Measurements) -> Option<LiveAnswer> {
        measured.live.take_if(|live| live.answer == self.answer)
    }

    /// A chunk with content has passed.
    pub fn chunk(&self, now: Instant) {
        let mut measured = self.meter.measured.lock();
        let live = measured.live.as_mut();
        if let Some(live) = live.filter(|live| live.answer == self.answer) {
            live.chunks = live.chunks.saturating_add(1);
            live.first.get_or_insert(now);
            live.latest = Some(now);
        }
    }

    /// The engine's own figures, which stand from here on.
    pub fn timings(&self, timings: &Timings) {
        let plausible =
            |figure: Option<f64>| figure.filter(|figure| figure.is_finite() && *figure > 0.0);
        let mut measured = self.meter.measured.lock();
        self.take_live(&mut measured);
        if let Some(decode) = plausible(timings.predicted_per_second) {
            measured.last.decode_tokens_per_second = Some(decode);
            measured.ended = Some(decode);
        }
        if let Some(prefill) = plausible(timings.prompt_per_second) {
            measured.last.prefill_tokens_per_second = Some(prefill);
        }
        drop(measured);
        if let Some(decode) = plausible(timings.predicted_per_second)
            && timings.predicted_n >= MEASURABLE
        {
            self.meter.remember(&self.model, decode);
        }
    }
}

impl Drop for AnswerMeter {
    fn drop(&mut self) {
        let mut measured = self.meter.measured.lock();
        match measured.under_way.get_mut(&self.model) {
            Some(more @ 2..) => *more -= 1,
            _ => drop(measured.under_way.remove(&self.model)),
        }
        let live = self.take_live(&mut measured);
        if let Some(counted) = live.and_then(|live| live.tokens_per_second()) {
            measured.last.decode_tokens_per_second = Some(counted);
            measured.ended = Some(counted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn small() -> ModelId {
        ModelId("small".to_owned())
    }

    fn after(start: Instant, milliseconds: u64) -> Instant {
        start + Duration::from_millis(milliseconds)
    }

    #[test]
    fn a_running_stream_is_estimated_then_exact() {
        let (meter, start) = (SpeedMeter::default(), Instant::now());
        assert_eq!(meter.speed(), Speed::default());
        let answering = meter.begin(&small());
        answering.chunk(start);
        assert_eq!(meter.speed().decode_tokens_per_second, None);
        for chunk in 1..=4 {
            answering.chunk(after(start, chunk * 250));
        }
        assert_eq!(meter.speed().decode_tokens_per_second, Some(4.0));
        answering.timings(&Timings {
            prompt_per_second: Some(300.0),
            predicted_per_second: Some(4.5),
            predicted_n: 4,
            ..Timings::default()
        });
        assert_eq!(meter.take_decode(), Some(4.5));
        drop(answering);
        assert_eq!(meter.take_decode(), None);
        let exact = Speed {
            decode_tokens_per_second: Some(4.5),
            prefill_tokens_per_second: Some(300.0),
        };
        assert_eq!(meter.speed(), exact);
    }

    #[test]
    fn a_stopped_answer_keeps_its_estimate() {
        let (meter, start) = (SpeedMeter::default(), Instant::now());
        let answering = meter.begin(&small());
        answering.chunk(start);
        answering.chunk(after(start, 100));
        drop(answering);
        assert_eq!(meter.speed().decode_tokens_per_second, Some(10.0));
        assert_eq!(meter.take_decode(), Some(10.0));
        assert_eq!(meter.take_decode(), None);
    }

    #[test]
    fn chunks_of_an_endpoint_are_no_tokens() {
        let (meter, start) = (SpeedMeter::default(), Instant::now());
        let answering = meter.begin(&small()).uncounted();
        answering.chunk(start);
        answering.chunk(after(start, 1));
        assert_eq!(meter.speed(), Speed::default());
        assert_eq!(meter.under_way(&small()), 1);
        answering.timings(&Timings {
            predicted_per_second: Some(41.0),
            ..Timings::default()
        });
        drop(answering);
        assert_eq!(meter.speed().decode_tokens_per_second, Some(41.0));
    }

    #[test]
    fn an_older_answer_does_not_affect_a_newer_one() {
        let (meter, start) = (SpeedMeter::default(), Instant::now());
        let older = meter.begin(&small());
        let newer = meter.begin(&small());
        assert_eq!(meter.under_way(&small()), 2);
        newer.chunk(start);
        newer.chunk(after(start, 500));
        older.chunk(after(start, 501));
        drop(older);
        assert_eq!(meter.under_way(&small()), 1);
        assert_eq!(meter.speed().decode_tokens_per_second, Some(2.0));
        drop(newer);
        assert_eq!(meter.under_way(&small()), 0);
    }

    #[test]
    fn figures_of_zero_tokens_are_not_shown() {
        let meter = SpeedMeter::default();
        meter.begin(&small()).timings(&Timings {
            prompt_per_second: Some(0.0),
            predicted_per_second: None,
            predicted_n: 0,
            ..Timings::default()
        });
        assert_eq!(meter.speed(), Speed::default());
    }

    #[test]
    fn the_usual_speed_is_the_median_of_the_last_long_answers() {
        let answered = |meter: &SpeedMeter, tokens, speed| {
            meter.begin(&small()).timings(&Timings {
                prompt_per_second: None,
                predicted_per_second: Some(speed),
                predicted_n: tokens,
                ..Timings::default()
            });
        };
        let first = SpeedMeter::default();
        assert_eq!(first.usual(&small()), None);
        answered(&first, MEASURABLE - 1, 900.0);
        assert_eq!(first.usual(&small()), None);
        for speed in [10.0, 50.0, 12.0] {
            answered(&first, MEASURABLE, speed);
        }
        assert_eq!(first.usual(&small()), Some(12.0));
        assert_eq!(first.usual(&ModelId("other".to_owned())), None);

        let later = SpeedMeter::new(first.history().borrow().clone());
        assert_eq!(later.usual(&small()), Some(12.0));
        for _ in 0..REMEMBERED {
            answered(&later, 100, 7.0);
        }
        assert_eq!(later.history().borrow()[&small()].len(), REMEMBERED);
        assert_eq!(later.usual(&small()), Some(7.0));
    }
}
