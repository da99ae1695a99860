//! The question at the end of a set-up: each tier is loaded in turn and answers it, whether or not a client stays to see it.

use crate::Jobs;
use parking_lot::Mutex;
use serde_json::json;
use std::{sync::Arc, time::Instant};
use tierbar_core::{
    Code, Error, TierId,
    setup::{ANSWER_TOKENS, AnswerState, QUESTION, TierAnswer},
};
use tierbar_inference::{caller::Caller, request::Request};
use tokio_util::sync::CancellationToken;

/// How the tiers answer, since the host started.
#[derive(Debug, Default)]
pub struct Answers(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    list: Vec<TierAnswer>,
    /// Ends the task that asks, while there is one.
    asking: Option<CancellationToken>,
}

impl Answers {
    pub fn list(&self) -> Vec<TierAnswer> {
        self.0.lock().list.clone()
    }

    /// Stops asking, and forgets the answers.
    pub fn clear(&self) {
        let mut state = self.0.lock();
        state.list.clear();
        if let Some(asking) = state.asking.take() {
            asking.cancel();
        }
    }

    /// Takes the next tier to ask, and marks it. Without one, the task that asks is over.
    fn next(&self, stop: &CancellationToken) -> Option<TierId> {
        let mut state = self.0.lock();
        if stop.is_cancelled() {
            return None;
        }
        let mut waiting = state.list.iter_mut();
        let Some(next) = waiting.find(|answer| answer.state == AnswerState::Waiting) else {
            state.asking = None;
            return None;
        };
        next.state = AnswerState::Asking;
        Some(next.tier.clone())
    }

    fn put(&self, answer: TierAnswer, stop: &CancellationToken) {
        let mut state = self.0.lock();
        let mut list = state.list.iter_mut();
        let place = list.find(|known| known.tier == answer.tier);
        if let Some(place) = place.filter(|_| !stop.is_cancelled()) {
            *place = answer;
        }
    }
}

impl Jobs {
    /// Has these tiers asked after those that wait already; returns all answers so far. A tier that has answered is asked again.
    pub fn ask_tiers(self: &Arc<Self>, tiers: Vec<TierId>) -> Vec<TierAnswer> {
        let mut state = self.answers.0.lock();
        for tier in tiers {
            let known = state.list.iter().position(|answer| answer.tier == tier);
            match known {
                Some(at) if !state.list[at].is_over() => continue,
                Some(at) => drop(state.list.remove(at)),
                None => {}
            }
            state.list.push(TierAnswer::waiting(tier));
        }
        let list = state.list.clone();
        if state.asking.is_none() {
            let stop = self.inference.closing.child_token();
            state.asking = Some(stop.clone());
            drop(state);
            let jobs = Arc::clone(self);
            tokio::spawn(async move {
                while let Some(tier) = jobs.answers.next(&stop) {
                    let answered = stop.run_until_cancelled(jobs.ask_tier(tier)).await;
                    let Some(answer) = answered else { return };
                    jobs.answers.put(answer, &stop);
                }
            });
        }
        list
    }

    async fn ask_tier(&self, tier: TierId) -> TierAnswer {
        let mut answer = TierAnswer::waiting(tier);
        let begun = Instant::now();
        let put = self.put_question(&mut answer).await;
        answer.seconds = Some(begun.elapsed().as_secs_f64());
        answer.state = match put {
            Ok(()) => AnswerState::Answered,
            Err(_) => AnswerState::Failed,
        };
        answer.error = put.err().map(|error| error.to_text("; "));
        answer
    }

    async fn put_question(&self, answer: &mut TierAnswer) -> Result<(), Error> {
        let request = Request::streamed_chat(json!({
            "model": answer.tier,
            "messages": [{"role": "user", "content": QUESTION}],
            "max_tokens": ANSWER_TOKENS,
            "think": false,
        }))?;
        let asked = self.inference.ask(request, Caller::default()).await?;
        let whole = asked.gather().await?;
        answer.tokens_per_second = whole.usage.tokens_per_second();
        answer.model = whole.source.model.map(|model| model.to_string());
        answer.answer = whole.text.trim().to_owned();
        if let Some(wanted) = whole.source.stepped_down_from {
            let other = answer.model.as_deref().unwrap_or("another model");
            let message = format!("{other} answered in place of {wanted}, because memory is low");
            return Err(Error::new(Code::OverBudget, message)
                .hint("quit programs that use much memory, then ask again"));
        }
        if answer.answer.is_empty() {
            let message = "the model's answer is empty";
            return Err(Error::new(Code::TierFailed, message)
                .hint("ask again; if this happens again, choose another model for the tier"));
        }
        Ok(())
    }
}
