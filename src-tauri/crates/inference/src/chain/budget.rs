//! What a request may cost, and what it may have cost already.

use super::{
    cost_bound::{CostBound, surcharged},
    tried_steps::ExcessCost,
};
use crate::{
    content::Content,
    metrics::{Metrics, Reservation},
    original::Original,
};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tierbar_core::{
    TierId,
    config::{ChainBudget, Dollars, EndpointEngine},
};

/// Tokens of an answer whose request does not say how long it may be.
const UNTOLD_ANSWER: u64 = 4096;

#[derive(Debug)]
pub(super) struct Budget {
    /// The request or its chain has a limit.
    is_bounded: bool,
    /// Nothing: it may cost anything.
    most: Dollars,
    /// Of all requests of the chain.
    of_chain: Option<ChainBudget>,
    /// In the form in which they are more.
    prompt_tokens: u64,
    /// Of all answers together; `None`: the request's limits cannot be read.
    answer_tokens: Option<u64>,
    bound: CostBound,
    /// By endpoints that took it and gave nothing.
    spent: Mutex<Dollars>,
}

impl Budget {
    /// Reads the request's limits. One that has none gets one, so that the endpoint is held to it, and what raises the price is left out.
    pub(super) fn new(
        most: Dollars,
        of_chain: Option<ChainBudget>,
        request: &mut Map<String, Value>,
    ) -> Self {
        let is_bounded = most != Dollars::default() || of_chain.is_some();
        if is_bounded {
            for field in surcharged(|name| request.get(name).cloned()) {
                request.shift_remove(field);
            }
            let is_open = |name| request.get(name).is_none_or(Value::is_null);
            if is_open("max_tokens") && is_open("max_completion_tokens") {
                request.insert("max_tokens".to_owned(), UNTOLD_ANSWER.into());
            }
        }
        Self {
            is_bounded,
            most,
            of_chain,
            prompt_tokens: 0,
            answer_tokens: answer_tokens(request),
            bound: CostBound::default(),
            spent: Mutex::default(),
        }
    }

    /// Reads all of the request: how long it is, and what the prices say nothing of.
    pub(super) fn note(&mut self, request: &Content) {
        if self.is_bounded {
            self.add(
                CostBound::from_request(request.fields()),
                request.byte_count(),
            );
        }
    }

    fn add(&mut self, form: CostBound, bytes: usize) {
        self.prompt_tokens = self.prompt_tokens.max(form.data.tokens_of_prompt(bytes));
        self.bound = self.bound.and(form);
    }

    /// Does the same for the request in its client's form, in which a server heeds that form's field alone. The larger of its limit and
    /// the chat's counts, since either may be sent.
    pub(super) fn limit(&mut self, original: &mut Original) {
        if !self.is_bounded {
            return;
        }
        let surcharged = surcharged(|name| original.value(name));
        let left_out: Vec<_> = surcharged.into_iter().map(|name| (name, None)).collect();
        if !left_out.is_empty() {
            original.change(&left_out);
        }
        let mut json = serde_json::Deserializer::from_slice(original.bytes());
        self.add(CostBound::from_request(&mut json), original.bytes().len());
        original.limit(&UNTOLD_ANSWER.into());
        let limit = original.limit_of_tokens().and_then(|limit| limit.as_u64());
        self.answer_tokens = self.answer_tokens.zip(limit).map(|(a, b)| a.max(b));
    }

    /// Why the endpoint would cost more than the request may.
    pub(super) fn too_dear(&self, engine: &EndpointEngine) -> Option<String> {
        let most = self.most;
        if most == Dollars::default() {
            return None;
        }
        let cost = match self.bounded_cost(engine, &format!("a request may cost {most}")) {
            Ok(cost) => cost,
            Err(why) => return Some(why),
        };
        let spent = *self.spent.lock();
        (spent.plus(cost) > most).then(|| {
            let before = match spent == Dollars::default() {
                true => String::new(),
                false => format!(", beside {spent} before it"),
            };
            format!("it would cost up to {cost}{before}, and a request may cost {most}")
        })
    }

    /// Holds back what the endpoint may cost from the chain's budget, if it has one, or says why that is too much.
    pub(super) fn reserve(
        &self,
        chain: &TierId,
        engine: &EndpointEngine,
        metrics: &Metrics,
    ) -> Result<Option<Reservation>, ExcessCost> {
        let Some(budget) = self.of_chain else {
            return Ok(None);
        };
        let cost = self.bounded_cost(engine, &format!("the chain may cost {budget}"))?;
        Ok(Some(metrics.reserve(chain.as_str(), budget, cost)?))
    }

    /// The endpoint took the request and gave nothing: it may be paid for all the same.
    pub(super) fn lost(&self, chain: &TierId, engine: &EndpointEngine, metrics: &Metrics) {
        if let Some(cost) = self.cost(engine) {
            let mut spent = self.spent.lock();
            *spent = spent.plus(cost);
            if self.of_chain.is_some() {
                metrics.lost(chain.as_str(), cost);
            }
        }
    }

    /// What the endpoint may cost, or why that is not known. `limit`: what it may cost, in words.
    fn bounded_cost(&self, engine: &EndpointEngine, limit: &str) -> Result<Dollars, String> {
        let Some(prices) = engine.prices() else {
            return Err(format!("it has no price, and {limit}"));
        };
        let free = Dollars::default();
        let is_free = prices.input == free && prices.output == free;
        if let Some(why) = self.bound.why.filter(|_| !is_free) {
            return Err(format!("{why}, and {limit}"));
        }
        let cost = self.cost(engine);
        cost.ok_or_else(|| "its limit on the answer's length cannot be read".to_owned())
    }

    fn cost(&self, engine: &EndpointEngine) -> Option<Dollars> {
        let prices = engine.prices()?;
        let prompt = prices.most_of_prompt(self.bound.writes);
        let answers = prices.output.of_tokens(self.answer_tokens?);
        Some(prompt.of_tokens(self.prompt_tokens).plus(answers))
    }
}

/// The larger of two limits counts: which of them a server heeds is its own business.
fn answer_tokens(request: &Map<String, Value>) -> Option<u64> {
    let read = |name: &str, absent: u64| match request.get(name) {
        None | Some(Value::Null) => Some(absent),
        Some(value) => value.as_u64(),
    };
    let limits = read("max_tokens", 0)?.max(read("max_completion_tokens", 0)?);
    let limit = if limits == 0 { UNTOLD_ANSWER } else { limits };
    let answers = read("n", 1)?.max(read("best_of", 1)?);
    Some(limit.saturating_mul(answers))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::original::Form;
    use serde_json::json;
    use tierbar_core::config::Engine;

    fn budget(most: f64, request: Value) -> (Budget, Value) {
        let Value::Object(mut request) = request else {
            panic!("an object");
        };
        let most: Dollars = serde_json::from_value(json!(most)).unwrap();
        let mut budget = Budget::new(most, None, &mut request);
        budget.prompt_tokens = 100;
        (budget, request.into())
    }

    fn cloud() -> EndpointEngine {
        let cloud =
            json!({"endpoint": "https://a.example", "input_price": 1.0, "output_price": 10.0});
        let Engine::Endpoint(cloud) = serde_json::from_value(cloud).unwrap() else {
            panic!("an endpoint");
        };
        cloud
    }

    #[test]
    fn the_larger_limit_counts_and_invalid_ones_are_too_high() {
        for (request, fits) in [
            (json!({"max_tokens": 5000}), true),
            (json!({"max_tokens": 50_000}), false),
            (json!({"max_tokens": 50_000.0}), false),
            (
                json!({"max_tokens": 50_000, "max_completion_tokens": 1}),
                false,
            ),
            (
                json!({"max_completion_tokens": 50_000, "max_tokens": 1}),
                false,
            ),
            (json!({"max_tokens": 100, "n": 500}), false),
            (json!({"max_tokens": 100, "best_of": 500}), false),
            (json!({"max_tokens": "many"}), false),
            (json!({}), true),
        ] {
            let (budget, reply) = budget(0.06, request);
            assert_eq!(budget.too_dear(&cloud()).is_none(), fits, "{reply}");
        }
        assert!(
            budget(0.0, json!({"max_tokens": 1e9}))
                .0
                .too_dear(&cloud())
                .is_none()
        );
    }

    #[test]
    fn an_endpoint_gets_the_limit_used_for_its_cost() {
        assert_eq!(
            budget(0.06, json!({})).1,
            json!({"max_tokens": UNTOLD_ANSWER})
        );
        assert_eq!(budget(0.0, json!({})).1, json!({}));
    }

    #[test]
    fn fields_of_another_form_limit_no_original() {
        for (form, request, sent, fits) in [
            (
                Form::Responses,
                json!({"max_tokens": 5}),
                json!({"max_tokens": 5, "max_output_tokens": UNTOLD_ANSWER}),
                true,
            ),
            (
                Form::Responses,
                json!({"max_completion_tokens": 5, "max_output_tokens": null}),
                json!({"max_completion_tokens": 5, "max_output_tokens": UNTOLD_ANSWER}),
                true,
            ),
            (
                Form::Messages,
                json!({"max_completion_tokens": 5}),
                json!({"max_completion_tokens": 5, "max_tokens": UNTOLD_ANSWER}),
                true,
            ),
            (
                Form::Responses,
                json!({"max_tokens": 5, "max_output_tokens": 50_000}),
                json!({"max_tokens": 5, "max_output_tokens": 50_000}),
                false,
            ),
            (
                Form::Responses,
                json!({"max_output_tokens": 5.5}),
                json!({"max_output_tokens": 5.5}),
                false,
            ),
        ] {
            let bytes = request.to_string().into();
            let mut original = Original::read(form, "/v1/any", bytes).unwrap();
            let (mut bounded, _) = budget(0.06, request.clone());
            bounded.limit(&mut original);
            let reply: Value = serde_json::from_slice(original.bytes()).unwrap();
            assert_eq!(reply, sent);
            assert_eq!(bounded.too_dear(&cloud()).is_none(), fits, "{reply}");
            let bytes = request.to_string().into();
            let mut original = Original::read(form, "/v1/any", bytes).unwrap();
            budget(0.0, request.clone()).0.limit(&mut original);
            assert_eq!(original.bytes(), request.to_string().as_bytes());
        }
    }

    #[test]
    fn what_has_no_bound_or_price_is_refused_or_left_out() {
        let night = TierId::new("night").unwrap();
        for (request, why) in [
            (
                json!({"previous_response_id": "resp_1"}),
                "the size of what `previous_response_id` names is not known",
            ),
            (
                json!({"inference_geo": "us"}),
                "`inference_geo` changes its price",
            ),
        ] {
            let bytes = request.to_string().into();
            let mut original = Original::read(Form::Responses, "/v1/any", bytes).unwrap();
            let (mut bounded, _) = budget(0.06, json!({}));
            bounded.limit(&mut original);
            let refused = bounded.too_dear(&cloud()).unwrap();
            assert_eq!(refused, format!("{why}, and a request may cost $0.06"));
            bounded.of_chain = Some(ChainBudget::try_from("5 USD a month".to_owned()).unwrap());
            let refused = bounded.reserve(&night, &cloud(), &Metrics::default());
            assert!(refused.unwrap_err().why.starts_with(why));
            let mut free = cloud();
            (free.input_price, free.output_price) = (Some(Dollars(0)), Some(Dollars(0)));
            assert_eq!(bounded.too_dear(&free), None);
            let (unbounded, _) = budget(0.0, request);
            assert_eq!(unbounded.too_dear(&cloud()), None);
        }
        let dear = json!({"max_tokens": 5, "service_tier": "priority", "speed": "fast"});
        assert_eq!(budget(0.06, dear.clone()).1, json!({"max_tokens": 5}));
        assert_eq!(budget(0.0, dear.clone()).1, dear);
        let bytes = dear.to_string().into();
        let mut original = Original::read(Form::Messages, "/v1/any", bytes).unwrap();
        budget(0.06, json!({})).0.limit(&mut original);
        assert_eq!(original.bytes(), &br#"{"max_tokens":5}"#[..]);
    }

    #[test]
    fn a_prompt_that_is_cached_counts_at_the_price_of_writing() {
        let cached = |ttl: &str| {
            let control = json!({"type": "ephemeral", "ttl": ttl});
            let request = json!({"max_tokens": 1, "system": [{"cache_control": control}]});
            let bytes = request.to_string().into();
            let mut original = Original::read(Form::Messages, "/v1/any", bytes).unwrap();
            let (mut bounded, _) = budget(1.0, json!({"max_tokens": 1}));
            bounded.limit(&mut original);
            bounded.cost(&cloud()).unwrap()
        };
        // 100 tokens of a prompt at $1 a million, and one of an answer at $10.
        let (plain, _) = budget(1.0, json!({"max_tokens": 1}));
        assert_eq!(plain.cost(&cloud()), Some(Dollars(110)));
        assert_eq!((cached("5m"), cached("1h")), (Dollars(135), Dollars(210)));
    }

    #[test]
    fn a_failed_attempt_counts_toward_the_cost() {
        let (budget, _) = budget(0.06, json!({"max_tokens": 4000}));
        assert_eq!(budget.too_dear(&cloud()), None);
        let night = TierId::new("night").unwrap();
        budget.lost(&night, &cloud(), &Metrics::default());
        assert!(budget.too_dear(&cloud()).unwrap().contains("before it"));
    }

    #[test]
    fn a_chains_budget_holds_for_all_of_its_requests() {
        let (night, metrics) = (TierId::new("night").unwrap(), Metrics::default());
        let budget = |text: &str| {
            let mut request = Map::new();
            let of_chain = ChainBudget::try_from(text.to_owned()).unwrap();
            let mut budget = Budget::new(Dollars::default(), Some(of_chain), &mut request);
            budget.prompt_tokens = 100;
            budget
        };
        // Up to 100 tokens of prompt and 4096 of an answer: $0.04106.
        let first = budget("0.05 USD a month");
        let held = first.reserve(&night, &cloud(), &metrics).unwrap();
        assert!(held.is_some());
        let second = budget("0.05 USD a month");
        let refused = second.reserve(&night, &cloud(), &metrics).unwrap_err();
        assert!(refused.why.contains("budget of $0.05 a month"));
        assert!(refused.spent.is_some());
        drop(held);
        assert!(second.reserve(&night, &cloud(), &metrics).is_ok());
        second.lost(&night, &cloud(), &metrics);
        assert!(second.reserve(&night, &cloud(), &metrics).is_err());
        let mut unpriced = cloud();
        unpriced.output_price = None;
        let refused = first.reserve(&night, &unpriced, &metrics).unwrap_err();
        assert!(refused.why.starts_with("it has no price"), "{refused:?}");
        assert_eq!(refused.spent, None);
    }
}
