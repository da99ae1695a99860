//! What an endpoint's tokens cost.

use super::{Dollars, EndpointEngine};

/// The prices of a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prices {
    pub input: Dollars,
    pub output: Dollars,
    cache_read: Dollars,
    cache_write: Dollars,
    /// For an hour.
    cache_write_hour: Dollars,
}

/// Those of a prompt's tokens that have prices of their own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheTokens {
    pub read: u64,
    pub written: u64,
    /// Written for an hour.
    pub written_hour: u64,
}

/// What a request asks a cache for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CacheWrite {
    #[default]
    None,
    Minutes,
    Hour,
}

impl EndpointEngine {
    /// Returns what its tokens cost, if that is configured.
    pub fn prices(&self) -> Option<Prices> {
        let input = self.input_price?;
        // The smallest discount among the servers of OpenAI's dialect that give one.
        let read = if self.dialect.is_openai() { 50 } else { 10 };
        let cache_write = self.cache_write_price.unwrap_or(percent(input, 125));
        Some(Prices {
            input,
            output: self.output_price?,
            cache_read: self.cache_read_price.unwrap_or(percent(input, read)),
            cache_write,
            cache_write_hour: percent(cache_write, 160),
        })
    }
}

impl Prices {
    /// Returns the cost of a request. `prompt`: all of its tokens, with those of `cache`.
    pub fn cost(&self, prompt: u64, cache: CacheTokens, answer: u64) -> Dollars {
        // Some servers count a part that is more than the whole.
        let read = cache.read.min(prompt);
        let hour = cache.written_hour.min(prompt - read);
        let written = cache.written.min(prompt - read - hour);
        let plain = prompt - read - hour - written;
        let parts = [
            self.input.of_tokens(plain),
            self.cache_read.of_tokens(read),
            self.cache_write.of_tokens(written),
            self.cache_write_hour.of_tokens(hour),
        ];
        let prompt = parts.into_iter().fold(Dollars::default(), Dollars::plus);
        prompt.plus(self.output.of_tokens(answer))
    }

    /// Returns the most that a million tokens of a prompt cost.
    pub fn most_of_prompt(&self, writes: CacheWrite) -> Dollars {
        match writes {
            CacheWrite::None => self.input,
            CacheWrite::Minutes => self.input.max(self.cache_write),
            CacheWrite::Hour => self.input.max(self.cache_write_hour),
        }
    }
}

fn percent(Dollars(price): Dollars, percent: u64) -> Dollars {
    Dollars(price.saturating_mul(percent).div_ceil(100))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Engine;
    use serde_json::{Value, json};

    fn prices(more: &Value) -> Prices {
        let mut engine =
            json!({"endpoint": "https://a.example", "input_price": 10.0, "output_price": 50.0});
        for (name, value) in more.as_object().unwrap() {
            engine[name] = value.clone();
        }
        let Ok(Engine::Endpoint(engine)) = serde_json::from_value(engine) else {
            panic!("an endpoint");
        };
        engine.prices().unwrap()
    }

    #[test]
    fn each_kind_of_token_has_its_price() {
        const MILLION: u64 = 1_000_000;
        let cache = CacheTokens {
            read: MILLION,
            written: MILLION,
            written_hour: MILLION,
        };
        let cost = |more: Value, cache: CacheTokens| {
            f64::from(prices(&more).cost(4 * MILLION, cache, MILLION))
        };
        let anthropic = json!({"dialect": "anthropic"});
        assert_eq!(cost(anthropic, cache), 10.0 + 1.0 + 12.5 + 20.0 + 50.0);
        assert_eq!(cost(json!({}), cache), 10.0 + 5.0 + 12.5 + 20.0 + 50.0);
        let own = json!({"cache_read_price": 2.0, "cache_write_price": 15.0});
        assert_eq!(cost(own, cache), 10.0 + 2.0 + 15.0 + 24.0 + 50.0);
        let absurd = CacheTokens {
            read: u64::MAX,
            ..cache
        };
        assert_eq!(cost(json!({}), absurd), 4.0 * 5.0 + 50.0);
    }

    #[test]
    fn a_prompt_that_is_cached_may_cost_more() {
        let prices = prices(&json!({"dialect": "anthropic"}));
        for (writes, most) in [
            (CacheWrite::None, 10.0),
            (CacheWrite::Minutes, 12.5),
            (CacheWrite::Hour, 20.0),
        ] {
            assert_eq!(f64::from(prices.most_of_prompt(writes)), most);
        }
    }
}
