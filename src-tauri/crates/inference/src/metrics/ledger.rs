//! What requests took, until it is stored, and what chains have spent of their budgets.

use super::Metrics;
use jiff::{Zoned, civil::Date};
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};
use tierbar_core::{
    Error,
    config::{CacheTokens, ChainBudget, Dollars, Period, Prices},
    ledger::{EnergyCounter, LedgerKey, RequestTotals, SharedCounter},
    requests::{RequestOutcome, RequestRecord},
};
use tierbar_store::Store;
use tokio_util::sync::CancellationToken;

/// How often it is stored.
const SAVING: Duration = Duration::from_secs(30);
/// The days of the longest period of a budget.
const MONTH: u32 = 31;

#[derive(Debug)]
pub struct Ledger {
    energy: Option<Arc<dyn EnergyCounter>>,
    began: Instant,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    pending: BTreeMap<LedgerKey, RequestTotals>,
    /// Milliseconds in which this machine worked.
    busy: SharedCounter,
    millijoules: SharedCounter,
    /// What chains have cost, by day.
    spent: BTreeMap<String, BTreeMap<Date, Dollars>>,
    /// What requests of chains that run may cost, in millionths.
    reserved: BTreeMap<String, u64>,
}

/// How a request's last attempt began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attempt {
    pub(super) at: Instant,
    pub(super) millijoules: Option<u64>,
    /// By an endpoint.
    pub(super) elsewhere: bool,
    pub(super) prices: Option<Prices>,
}

/// Why a chain's budget does not allow a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it would cost up to {cost}, and {spent} of the chain's budget of {budget} is spent")]
pub struct BudgetOverrun {
    /// What the request may cost.
    pub cost: Dollars,
    /// What the chain has spent, with what its requests that run may cost.
    pub spent: Dollars,
    pub budget: ChainBudget,
    /// The first day on which nothing is spent again.
    pub resets: Date,
    /// Until then.
    pub seconds: u64,
}

/// What a request of a chain may cost, held back from the chain's budget until it has ended.
#[derive(Debug)]
pub struct Reservation {
    metrics: Metrics,
    chain: String,
    pub(super) amount: Dollars,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut state = self.metrics.0.ledger.state.lock();
        if let Some(reserved) = state.reserved.get_mut(&self.chain) {
            *reserved = reserved.saturating_sub(self.amount.0);
        }
    }
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            energy: None,
            began: Instant::now(),
            state: Mutex::default(),
        }
    }
}

impl Ledger {
    pub(super) fn millijoules(&self) -> Option<u64> {
        self.energy.as_ref()?.millijoules()
    }

    /// Adds a request that has ended, and returns what it took. `requests`: as how many it counts, 0 for a part of the indexer's work.
    /// `reserved`: the most that its last attempt may have cost, if that was reserved.
    pub(super) fn add(
        &self,
        requests: u64,
        record: &RequestRecord,
        attempt: Attempt,
        chain: &str,
        cache: CacheTokens,
        reserved: Option<Dollars>,
    ) -> RequestTotals {
        let Some(tier) = &record.tier else {
            return RequestTotals::default();
        };
        let today = Zoned::now().date();
        let ended = self.millijoules().filter(|_| !attempt.elsewhere);
        let mut state = self.state.lock();
        let mut taken = RequestTotals {
            requests,
            prompt_tokens: record.prompt_tokens.unwrap_or_default(),
            completion_tokens: record.completion_tokens.unwrap_or_default(),
            paid: cost_of(record, cache, attempt.prices, reserved),
            ..RequestTotals::default()
        };
        if !attempt.elsewhere {
            let since = |at: Instant| {
                let passed = at.saturating_duration_since(self.began);
                u64::try_from(passed.as_millis()).unwrap_or(u64::MAX)
            };
            let busy = state.busy.take(since(attempt.at), since(Instant::now()));
            match attempt.millijoules.zip(ended) {
                Some((begun, ended)) => taken.millijoules = state.millijoules.take(begun, ended),
                None => taken.unmeasured_ms = busy,
            }
        }
        if !chain.is_empty() {
            state.spend(chain, today, taken.paid);
        }
        let key = LedgerKey {
            day: today.to_string(),
            tier: tier.to_string(),
            elsewhere: attempt.elsewhere,
            client: record.client.clone().unwrap_or_default(),
            chain: chain.to_owned(),
        };
        *state.pending.entry(key).or_default() += taken;
        taken
    }
}

/// What an endpoint charges for a request, by what it reported; without a report, the most that it may be.
fn cost_of(
    record: &RequestRecord,
    cache: CacheTokens,
    prices: Option<Prices>,
    reserved: Option<Dollars>,
) -> Dollars {
    let Some(prices) = prices else {
        return Dollars::default();
    };
    let completion = record.completion_tokens.unwrap_or_default();
    let answer = prices.output.of_tokens(completion);
    match record.prompt_tokens {
        Some(prompt) => prices.cost(prompt, cache, completion),
        None if record.outcome == RequestOutcome::Answered || record.first_token_ms.is_some() => {
            reserved.unwrap_or(answer)
        }
        None => answer,
    }
}

impl State {
    fn spend(&mut self, chain: &str, day: Date, amount: Dollars) {
        if amount == Dollars::default() {
            return;
        }
        let days = self.spent.entry(chain.to_owned()).or_default();
        let of_day = days.entry(day).or_default();
        *of_day = of_day.plus(amount);
        let oldest = day.saturating_sub(jiff::Span::new().days(i64::from(MONTH)));
        days.retain(|day, _| *day >= oldest);
    }

    /// What a chain has spent in the period that `today` is in.
    fn spent(&self, chain: &str, period: Period, today: Date) -> Dollars {
        let first = first_day(period, today);
        let days = self.spent.get(chain).into_iter();
        let days = days.flat_map(|days| days.range(first..));
        days.fold(Dollars::default(), |sum, (_, amount)| sum.plus(*amount))
    }
}

fn first_day(period: Period, today: Date) -> Date {
    match period {
        Period::Day => today,
        Period::Week => {
            let days = i64::from(today.weekday().to_monday_zero_offset());
            today.saturating_sub(jiff::Span::new().days(days))
        }
        Period::Month => today.first_of_month(),
    }
}

/// The first day of the next period.
fn next_first_day(period: Period, today: Date) -> Date {
    let span = jiff::Span::new();
    let span = match period {
        Period::Day => span.days(1),
        Period::Week => span.weeks(1),
        Period::Month => span.months(1),
    };
    first_day(period, today).saturating_add(span)
}

/// The seconds until a day begins where `now` is.
fn seconds_until(day: Date, now: &Zoned) -> u64 {
    let begins = day.to_zoned(now.time_zone().clone());
    let begins = begins.map_or(0, |begins| begins.timestamp().as_second());
    let left = begins.saturating_sub(now.timestamp().as_second());
    u64::try_from(left).unwrap_or_default()
}

impl Metrics {
    /// As the default, with the energy that requests take.
    pub fn measuring(energy: Arc<dyn EnergyCounter>) -> Self {
        let mut counters = super::Counters::default();
        counters.ledger.energy = Some(energy);
        Self(Arc::new(counters))
    }

    /// Reads what chains have spent.
    ///
    /// # Errors
    /// `Storage` if it cannot be read.
    pub async fn open_ledger(&self, store: &Store) -> Result<(), Error> {
        let taken = store.taken(MONTH).await?;
        let mut state = self.0.ledger.state.lock();
        for (key, taken) in taken {
            if let (false, Ok(day)) = (key.chain.is_empty(), key.day.parse::<Date>()) {
                state.spend(&key.chain, day, taken.paid);
            }
        }
        Ok(())
    }

    /// Stores what requests took periodically, until `closing`.
    pub async fn keep_ledger(&self, store: Store, closing: CancellationToken) {
        let pause = || closing.run_until_cancelled(tokio::time::sleep(SAVING));
        while pause().await.is_some() {
            self.save_ledger(&store).await;
        }
    }

    /// Stores what requests took since the last call. What cannot be stored is kept for the next.
    pub async fn save_ledger(&self, store: &Store) {
        let pending = std::mem::take(&mut self.0.ledger.state.lock().pending);
        if pending.is_empty() {
            return;
        }
        let taken: Vec<_> = pending.into_iter().collect();
        if let Err(error) = store.add_taken(taken.clone()).await {
            tracing::warn!("what requests took cannot be stored: {error}");
            let mut state = self.0.ledger.state.lock();
            for (key, taken) in taken {
                *state.pending.entry(key).or_default() += taken;
            }
        }
    }

    /// Holds back what a request may cost from its chain's budget, or says how much of that is spent.
    pub(crate) fn reserve(
        &self,
        chain: &str,
        budget: ChainBudget,
        cost: Dollars,
    ) -> Result<Reservation, BudgetOverrun> {
        let now = Zoned::now();
        let today = now.date();
        let mut state = self.0.ledger.state.lock();
        let spent = state.spent(chain, budget.period, today);
        let reserved = state.reserved.entry(chain.to_owned()).or_default();
        let after = spent.plus(Dollars(*reserved)).plus(cost);
        if after > budget.amount {
            let resets = next_first_day(budget.period, today);
            return Err(BudgetOverrun {
                cost,
                spent: spent.plus(Dollars(*reserved)),
                budget,
                resets,
                seconds: seconds_until(resets, &now),
            });
        }
        *reserved = reserved.saturating_add(cost.0);
        Ok(Reservation {
            metrics: self.clone(),
            chain: chain.to_owned(),
            amount: cost,
        })
    }

    /// Counts what an endpoint may charge although it gave no answer toward the chain's budget, until the host ends.
    pub fn lost(&self, chain: &str, cost: Dollars) {
        let today = Zoned::now().date();
        self.0.ledger.state.lock().spend(chain, today, cost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::civil::date;
    use std::sync::atomic::{AtomicU64, Ordering};
    use tierbar_core::{TierId, config::Engine};

    fn dollars(amount: f64) -> Dollars {
        Dollars::try_from(amount).unwrap()
    }

    fn budget(text: &str) -> ChainBudget {
        ChainBudget::try_from(text.to_owned()).unwrap()
    }

    fn record(prompt: Option<u64>, completion: u64) -> RequestRecord {
        RequestRecord {
            tier: Some(TierId::new("sonnet").unwrap()),
            client: Some("phone".to_owned()),
            prompt_tokens: prompt,
            completion_tokens: Some(completion),
            outcome: RequestOutcome::Answered,
            ..RequestRecord::default()
        }
    }

    fn prices() -> Prices {
        let engine = r#"{"endpoint": "http://a", "dialect": "anthropic", "input_price": 1.0, "output_price": 10.0}"#;
        let Ok(Engine::Endpoint(engine)) = serde_json::from_str(engine) else {
            panic!("an endpoint");
        };
        engine.prices().unwrap()
    }

    fn elsewhere() -> Attempt {
        Attempt {
            at: Instant::now(),
            millijoules: None,
            elsewhere: true,
            prices: Some(prices()),
        }
    }

    #[test]
    fn periods_are_those_of_the_calendar() {
        let thursday = date(2026, 11, 26);
        for (period, first) in [
            (Period::Day, thursday),
            (Period::Week, date(2026, 11, 23)),
            (Period::Month, date(2026, 11, 1)),
        ] {
            assert_eq!(first_day(period, thursday), first, "{period:?}");
        }
        let mut state = State::default();
        for (day, amount) in [(20, 1.0), (24, 2.0), (26, 4.0)] {
            state.spend("night", date(2026, 11, day), dollars(amount));
        }
        let spent = |period| f64::from(state.spent("night", period, thursday));
        assert_eq!(spent(Period::Day), 4.0);
        assert_eq!(spent(Period::Week), 6.0);
        assert_eq!(spent(Period::Month), 7.0);
        assert_eq!(state.spent("other", Period::Month, thursday), dollars(0.0));
    }

    #[test]
    fn a_budget_resets_with_the_next_day_week_or_month() {
        // A Thursday.
        let today = date(2026, 12, 31);
        for (period, next) in [
            (Period::Day, date(2027, 1, 1)),
            (Period::Week, date(2027, 1, 4)),
            (Period::Month, date(2027, 1, 1)),
        ] {
            assert_eq!(next_first_day(period, today), next, "{period:?}");
        }
        let now = today.at(23, 0, 0, 0).to_zoned(jiff::tz::TimeZone::UTC);
        let now = now.unwrap();
        assert_eq!(seconds_until(date(2027, 1, 1), &now), 3600);
        assert_eq!(seconds_until(today, &now), 0);
    }

    #[test]
    fn a_budget_counts_running_requests_and_what_was_paid() {
        let metrics = Metrics::default();
        let day = budget("1 USD a day");
        let first = metrics.reserve("night", day, dollars(0.6)).unwrap();
        let refused = metrics.reserve("night", day, dollars(0.6)).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "it would cost up to $0.60, and $0.60 of the chain's budget of $1.00 a day is spent"
        );
        assert!(refused.seconds <= 25 * 60 * 60, "{refused:?}");
        assert!(metrics.reserve("other", day, dollars(0.6)).is_ok());
        // 100,000 tokens of prompt and 10,000 of an answer.
        let ledger = &metrics.0.ledger;
        let long = record(Some(100_000), 10_000);
        ledger.add(1, &long, elsewhere(), "night", CacheTokens::default(), None);
        drop(first);
        assert!(metrics.reserve("night", day, dollars(0.8)).is_ok());
        assert!(metrics.reserve("night", day, dollars(0.81)).is_err());
        let pending: Vec<_> = ledger.state.lock().pending.clone().into_iter().collect();
        assert_eq!(pending.len(), 1);
        let (key, taken) = &pending[0];
        assert_eq!(
            (key.client.as_str(), key.chain.as_str()),
            ("phone", "night")
        );
        assert_eq!((taken.paid, taken.unmeasured_ms), (dollars(0.2), 0));
    }

    #[test]
    fn an_answer_without_a_count_costs_what_was_reserved() {
        let (none, prices) = (CacheTokens::default(), Some(prices()));
        let most = Some(dollars(0.5));
        assert_eq!(cost_of(&record(None, 10), none, prices, most), dollars(0.5));
        assert_eq!(
            cost_of(&record(None, 1000), none, prices, None),
            dollars(0.01)
        );
        assert_eq!(
            cost_of(&record(Some(1000), 1000), none, None, most),
            dollars(0.0)
        );
        let unanswered = RequestRecord {
            outcome: RequestOutcome::Failed,
            ..record(None, 0)
        };
        assert_eq!(cost_of(&unanswered, none, prices, most), dollars(0.0));
    }

    #[test]
    fn cached_tokens_are_paid_at_their_prices() {
        let cache = CacheTokens {
            read: 800_000,
            written: 100_000,
            written_hour: 50_000,
        };
        let long = record(Some(1_000_000), 10_000);
        // 50,000 plain tokens, and the cached ones at 0.1, 1.25 and 2 times that.
        let sum = dollars(0.05 + 0.08 + 0.125 + 0.1 + 0.1);
        assert_eq!(cost_of(&long, cache, Some(prices()), None), sum);
    }

    #[derive(Debug)]
    struct Meter(AtomicU64);

    impl EnergyCounter for Meter {
        fn millijoules(&self) -> Option<u64> {
            Some(self.0.fetch_add(1000, Ordering::Relaxed))
        }
    }

    #[test]
    fn measured_energy_takes_the_place_of_time() {
        let metrics = Metrics::measuring(Arc::new(Meter(AtomicU64::new(0))));
        let ledger = &metrics.0.ledger;
        let here = Attempt {
            millijoules: ledger.millijoules(),
            elsewhere: false,
            prices: None,
            ..elsewhere()
        };
        ledger.add(
            1,
            &record(Some(10), 1),
            here,
            "",
            CacheTokens::default(),
            None,
        );
        // Beside the first, which has taken all but the last step.
        ledger.add(
            1,
            &record(Some(10), 1),
            here,
            "",
            CacheTokens::default(),
            None,
        );
        let state = ledger.state.lock();
        let taken = state.pending.values().next().unwrap();
        assert_eq!((taken.millijoules, taken.unmeasured_ms), (2000, 0));
        assert_eq!((taken.requests, taken.paid), (2, dollars(0.0)));
    }
}
