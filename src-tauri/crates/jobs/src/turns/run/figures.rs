//! What is known of a turn's answer beside its text: who wrote it and why, and how long its parts took.

use super::AnswerWriter;
use std::time::{Duration, Instant};
use tierbar_chats::{AnswerFacts, AnswerTimes, Finish, TurnEvent, TurnStage};
use tierbar_core::{Code, TierState, status::EngineKind};
use tierbar_inference::source::Source;

impl AnswerWriter {
    pub(super) fn note_source(&mut self, source: Source) {
        let load_ms = self.load_ms(&source);
        self.facts_of(source);
        if load_ms.is_some() {
            self.times().load_ms = load_ms;
        }
        let AnswerFacts {
            tier,
            model,
            why,
            instead_of,
            ..
        } = self.facts.clone();
        self.turn.log.push(TurnEvent::Started {
            tier,
            model,
            why,
            instead_of,
        });
    }

    pub(super) fn facts_of(&mut self, source: Source) {
        let tried = source.tried.iter().map(|(tier, code)| {
            let word = code.map_or("skipped", Code::as_str);
            format!("{tier}: {word}")
        });
        let tried: Vec<_> = tried.chain(source.triage).collect();
        let why = source.why.or((!tried.is_empty()).then(|| tried.join("; ")));
        let instead_of = source.fallback_from.or(source.stepped_down_from);
        self.facts.tier = source.tier.map(|tier| tier.to_string());
        self.facts.model = source.model.map(|model| model.to_string());
        self.facts.why = why;
        self.facts.instead_of = instead_of.map(|tier| tier.to_string());
    }

    pub(super) fn note_stage(&mut self, stage: TurnStage) {
        if !self.pace.has_begun() && self.stage.replace(stage) != Some(stage) {
            self.turn.log.push(TurnEvent::Progress { stage });
        }
    }

    /// Counts a token. Returns how many there are, and the milliseconds since the first.
    pub(super) fn note_token(&mut self) -> (u32, u64) {
        let counted = self.pace.note_token(Instant::now());
        self.facts.time_to_first_token_ms = self.pace.first_ms();
        counted
    }

    /// How long the tier that answers has loaded for this answer; `None` if it was loaded already.
    fn load_ms(&self, source: &Source) -> Option<f64> {
        let mut tiers = self.tiers.iter();
        let tier = tiers.find(|tier| Some(&tier.id) == source.tier.as_ref())?;
        let loads = tier.engine != EngineKind::Endpoint
            && !matches!(tier.state, TierState::Ready | TierState::Busy);
        let leased = source.leased.filter(|_| loads)?;
        Some(ms(leased.duration_since(self.asked)))
    }

    /// Adds up the time in which the model thinks.
    pub(super) fn note_thinking(&mut self, thinks: bool) {
        if thinks {
            self.thinks_since.get_or_insert_with(Instant::now);
        } else if let Some(since) = self.thinks_since.take() {
            *self.times().thinking_ms.get_or_insert(0.0) += ms(since.elapsed());
        }
    }

    /// Adds the speed of an answer that has ended, and its times. One that broke off has no speed.
    pub(super) fn note_speed(&mut self, finish: Finish) {
        if !self.pace.has_begun() || finish == Finish::Error {
            return;
        }
        let measured = self.usage.tokens_per_second();
        self.facts.decode_tokens_per_second = measured.or_else(|| self.speed());
        let prefill_ms = measured_ms(self.usage.prefill_seconds);
        let decode_ms = measured_ms(self.usage.decode_seconds).or_else(|| {
            let decoding = self.pace.decoding_seconds(Instant::now());
            measured_ms(decoding.filter(|_| !self.is_of_endpoint()))
        });
        let speculation = self.usage.speculation;
        let times = self.times();
        (times.prefill_ms, times.decode_ms) = (prefill_ms, decode_ms);
        times.speculation = speculation;
    }

    pub(super) fn times(&mut self) -> &mut AnswerTimes {
        self.facts.times.get_or_insert_default()
    }

    /// Whether another server answers: the clock of this host would measure the network.
    fn is_of_endpoint(&self) -> bool {
        let mut tiers = self.tiers.iter();
        let tier = tiers.find(|tier| Some(tier.id.as_str()) == self.facts.tier.as_deref());
        tier.is_some_and(|tier| tier.engine == EngineKind::Endpoint)
    }

    /// Tokens per second by the clock of this host, for programs that report none.
    fn speed(&self) -> Option<f64> {
        let speed = self.pace.speed(Instant::now());
        speed.filter(|_| !self.is_of_endpoint())
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// A time that an engine measured. Some report 0 for what they did not measure.
fn measured_ms(seconds: Option<f64>) -> Option<f64> {
    let seconds = seconds.filter(|seconds| *seconds > 0.0)?;
    Some(seconds * 1000.0)
}
