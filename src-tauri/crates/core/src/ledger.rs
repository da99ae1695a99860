//! What requests take: tokens, energy and money, by day, tier and client. Prices are applied when it is read, so that a corrected
//! price corrects the past as well.

use crate::{
    TierId,
    config::{CostsConfig, Dollars},
};
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;

/// What the machine's processors have used, where it measures that.
pub trait EnergyCounter: Send + Sync + std::fmt::Debug {
    /// Returns a count of millijoules that only grows; `None` where the machine does not tell.
    fn millijoules(&self) -> Option<u64>;
}

/// Splits what passes on one counter between requests, so that what several of them share is counted once: for the one that ends first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SharedCounter {
    counted: u64,
}

impl SharedCounter {
    /// Returns what a request takes that began and ended at these counts.
    pub fn take(&mut self, begin: u64, end: u64) -> u64 {
        let taken = end.saturating_sub(begin.max(self.counted));
        self.counted = self.counted.max(end);
        taken
    }
}

/// What some requests took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RequestTotals {
    pub requests: u64,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    /// The time in which this machine worked and did not measure its energy.
    pub unmeasured_ms: u64,
    /// Of the processors, as the machine measured it.
    pub millijoules: u64,
    /// What endpoints charge for it, by their prices.
    pub paid: Dollars,
}

impl AddAssign for RequestTotals {
    fn add_assign(&mut self, more: Self) {
        self.requests = self.requests.saturating_add(more.requests);
        self.prompt_tokens = self.prompt_tokens.saturating_add(more.prompt_tokens);
        self.completion_tokens = self
            .completion_tokens
            .saturating_add(more.completion_tokens);
        self.unmeasured_ms = self.unmeasured_ms.saturating_add(more.unmeasured_ms);
        self.millijoules = self.millijoules.saturating_add(more.millijoules);
        self.paid = self.paid.plus(more.paid);
    }
}

/// Whose requests they were, and when.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LedgerKey {
    /// `2026-11-26`, by this machine's calendar.
    pub day: String,
    pub tier: String,
    /// The tier is an endpoint: nothing was computed here.
    pub elsewhere: bool,
    /// The name of the API key; empty for the owner.
    pub client: String,
    /// The chain that was asked; empty for none.
    pub chain: String,
}

/// What the requests of a day, a tier and a client took.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LedgerEntry {
    /// `2026-11-26`, by this machine's calendar.
    pub day: String,
    pub tier: String,
    /// The tier is an endpoint: nothing was computed here.
    pub elsewhere: bool,
    /// The name of the API key; `null` for the owner.
    pub client: Option<String>,
    /// The chain that was asked.
    pub chain: Option<String>,
    #[serde(flatten)]
    pub costs: RequestCosts,
}

/// Tokens, energy and money. Money is in US dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RequestCosts {
    /// Without the indexing of documents, which counts with its tokens and energy.
    pub requests: u64,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    /// Of the processors, as the machine measured it, with all that ran beside.
    pub measured_joules: f64,
    /// The time that was not measured, with `costs.busy_watts`; `null` if that is not set.
    pub estimated_joules: Option<f64>,
    /// The price of both, with `costs.kwh_price`; `null` if that or the energy is unknown.
    pub electricity: Option<f64>,
    /// What endpoints charge, by their prices.
    pub paid: f64,
    /// What the tokens that were computed here would have cost at `costs.cloud_input_price` and `costs.cloud_output_price`; `null` if
    /// these are not set.
    pub cloud: Option<f64>,
}

/// The answer of `GET /tierbar/v1/ledger`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LedgerReport {
    /// The newest day first. What took nothing is left out.
    pub entries: Vec<LedgerEntry>,
    /// The sum of all entries.
    pub total: RequestCosts,
    /// Days from the first one with an entry to today, both included; 0 without entries.
    pub days: u32,
}

impl RequestCosts {
    /// Applies prices to what was taken. `avoids`: whether a cloud's prices of tokens were avoided.
    pub fn at_prices(taken: &RequestTotals, avoids: bool, prices: &CostsConfig) -> Self {
        let measured_joules = taken.millijoules as f64 / 1000.0;
        let seconds = taken.unmeasured_ms as f64 / 1000.0;
        let estimated_joules = if taken.unmeasured_ms == 0 {
            Some(0.0)
        } else {
            prices.busy_watts.map(|watts| watts.0 * seconds)
        };
        let electricity = estimated_joules.zip(prices.kwh_price);
        let electricity = electricity.map(|(estimated, price)| {
            const JOULES_PER_KWH: f64 = 3.6e6;
            (measured_joules + estimated) / JOULES_PER_KWH * f64::from(price)
        });
        let cloud = prices.cloud_input_price.zip(prices.cloud_output_price);
        let cloud = cloud.map(|(input, output)| {
            if !avoids {
                return 0.0;
            }
            let prompt = input.of_tokens(taken.prompt_tokens);
            f64::from(prompt.plus(output.of_tokens(taken.completion_tokens)))
        });
        Self {
            requests: taken.requests,
            prompt_tokens: taken.prompt_tokens,
            completion_tokens: taken.completion_tokens,
            measured_joules,
            estimated_joules,
            electricity,
            paid: f64::from(taken.paid),
            cloud,
        }
    }

    /// Adds those of other requests. What is unknown of one is unknown of the sum.
    fn add(&mut self, more: &Self) {
        let sum = |one: Option<f64>, other: Option<f64>| Some(one? + other?);
        self.requests += more.requests;
        self.prompt_tokens += more.prompt_tokens;
        self.completion_tokens += more.completion_tokens;
        self.measured_joules += more.measured_joules;
        self.estimated_joules = sum(self.estimated_joules, more.estimated_joules);
        self.electricity = sum(self.electricity, more.electricity);
        self.paid += more.paid;
        self.cloud = sum(self.cloud, more.cloud);
    }
}

impl LedgerReport {
    /// `taken`: the newest day first. `days`: those from the first to today.
    pub fn at_prices(
        taken: Vec<(LedgerKey, RequestTotals)>,
        days: u32,
        prices: &CostsConfig,
    ) -> Self {
        let mut total = RequestCosts::at_prices(&RequestTotals::default(), true, prices);
        let entries = taken.into_iter().map(|(key, taken)| {
            let avoids = !key.elsewhere && generates_text(&key.tier);
            let costs = RequestCosts::at_prices(&taken, avoids, prices);
            total.add(&costs);
            let named = |name: String| Some(name).filter(|name| !name.is_empty());
            LedgerEntry {
                day: key.day,
                tier: key.tier,
                elsewhere: key.elsewhere,
                client: named(key.client),
                chain: named(key.chain),
                costs,
            }
        });
        let entries = entries.collect();
        Self {
            entries,
            total,
            days,
        }
    }

    /// Sums tokens, without those of tiers that embed or rank.
    pub fn text_tokens(&self, of: fn(&RequestCosts) -> u64) -> u64 {
        let entries = self.entries.iter();
        let generating = entries.filter(|entry| generates_text(&entry.tier));
        generating.map(|entry| of(&entry.costs)).sum()
    }
}

/// Whether prices of tokens are for a tier's: clouds charge a fraction of them for embedding and ranking.
fn generates_text(tier: &str) -> bool {
    !matches!(tier, TierId::EMBEDDER | TierId::RERANKER)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Watts;

    fn key(tier: &str, elsewhere: bool) -> LedgerKey {
        LedgerKey {
            day: "2026-11-26".to_owned(),
            tier: tier.to_owned(),
            elsewhere,
            client: String::new(),
            chain: String::new(),
        }
    }

    const TAKEN: RequestTotals = RequestTotals {
        requests: 2,
        prompt_tokens: 1_000_000,
        completion_tokens: 100_000,
        unmeasured_ms: 100_000,
        millijoules: 500_000,
        paid: Dollars(0),
    };

    fn prices() -> CostsConfig {
        let dollars = |amount| Some(Dollars::try_from(amount).unwrap());
        CostsConfig {
            cloud_input_price: dollars(2.0),
            cloud_output_price: dollars(10.0),
            kwh_price: dollars(0.36),
            busy_watts: Some(Watts(30.0)),
            ..CostsConfig::default()
        }
    }

    #[test]
    fn what_requests_share_is_counted_once() {
        let mut shared = SharedCounter::default();
        assert_eq!(shared.take(10, 20), 10);
        // Beside the first, and longer.
        assert_eq!(shared.take(5, 30), 10);
        // Within what was counted.
        assert_eq!(shared.take(12, 18), 0);
        assert_eq!(shared.take(40, 45), 5);
        assert_eq!(shared.take(50, 47), 0, "a counter that went back");
    }

    #[test]
    fn energy_and_money_follow_the_prices() {
        let costs = RequestCosts::at_prices(&TAKEN, true, &prices());
        assert_eq!(costs.measured_joules, 500.0);
        assert_eq!(costs.estimated_joules, Some(3000.0));
        // 3500 J are 0.35 / 360 kWh.
        let electricity = costs.electricity.unwrap();
        assert!((electricity - 0.00035).abs() < 1e-12, "{electricity}");
        assert_eq!(costs.cloud, Some(3.0));
    }

    #[test]
    fn without_a_price_there_is_no_money() {
        let costs = RequestCosts::at_prices(&TAKEN, true, &CostsConfig::default());
        assert_eq!(costs.measured_joules, 500.0);
        assert_eq!(
            (costs.estimated_joules, costs.electricity, costs.cloud),
            (None, None, None)
        );
    }

    #[test]
    fn an_endpoint_costs_its_price_and_avoids_nothing() {
        let taken = RequestTotals {
            unmeasured_ms: 0,
            millijoules: 0,
            paid: Dollars::try_from(1.5).unwrap(),
            ..TAKEN
        };
        let here = (key("fast", false), TAKEN);
        let report =
            LedgerReport::at_prices(vec![here, (key("sonnet", true), taken)], 1, &prices());
        assert_eq!(report.entries[1].costs.cloud, Some(0.0));
        assert_eq!(report.entries[1].client, None);
        assert_eq!((report.total.paid, report.total.cloud), (1.5, Some(3.0)));
        assert_eq!(report.total.requests, 4);
    }

    #[test]
    fn embeddings_avoid_no_price_of_generated_text() {
        let taken =
            [TierId::EMBEDDER, TierId::RERANKER, "fast"].map(|tier| (key(tier, false), TAKEN));
        let report = LedgerReport::at_prices(Vec::from(taken), 1, &prices());
        assert_eq!(report.entries[0].costs.cloud, Some(0.0));
        assert_eq!(report.total.cloud, Some(3.0));
        assert_eq!(report.total.prompt_tokens, 3_000_000);
        assert_eq!(report.text_tokens(|costs| costs.prompt_tokens), 1_000_000);
    }
}
