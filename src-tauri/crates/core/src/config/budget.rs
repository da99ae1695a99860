//! How much a chain may cost in a day, a week or a month.

use super::Dollars;
use serde::{Deserialize, Serialize};
use std::fmt;

/// `"5 USD a month"`: an amount of US dollars, and `a day`, `a week` or `a month` of this machine's calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ChainBudget {
    pub amount: Dollars,
    pub period: Period,
}

crate::words! {
    /// A stretch of the calendar. A week begins on Monday.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    pub enum Period {
        Day = "day",
        Week = "week",
        Month = "month",
    }
}

impl TryFrom<String> for ChainBudget {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" is not a budget: write it as \"5 USD a month\"");
        let words: Vec<&str> = text.split_whitespace().collect();
        let [amount, "USD", "a", period] = words.as_slice() else {
            return Err(wrong());
        };
        let amount: f64 = amount.parse().map_err(|_| wrong())?;
        let amount = Dollars::try_from(amount)?;
        if amount == Dollars::default() {
            return Err("a budget is more than 0 USD; leave it out to set none".to_owned());
        }
        let period = Period::find(period).ok_or_else(wrong)?;
        Ok(Self { amount, period })
    }
}

impl From<ChainBudget> for String {
    fn from(budget: ChainBudget) -> Self {
        let ChainBudget { amount, period } = budget;
        format!("{} USD a {}", f64::from(amount), period.as_str())
    }
}

impl fmt::Display for ChainBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} a {}", self.amount, self.period.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_read_and_written_as_people_say_it() {
        for (text, amount, period) in [
            ("5 USD a month", 5.0, Period::Month),
            ("0.25 USD a day", 0.25, Period::Day),
            ("12.5 USD a week", 12.5, Period::Week),
        ] {
            let budget = ChainBudget::try_from(text.to_owned()).unwrap();
            assert_eq!(f64::from(budget.amount), amount);
            assert_eq!(budget.period, period);
            assert_eq!(String::from(budget), text);
        }
        let month = ChainBudget::try_from("5 USD a month".to_owned()).unwrap();
        assert_eq!(month.to_string(), "$5.00 a month");
    }

    #[test]
    fn anything_else_is_refused_with_an_example() {
        for wrong in [
            "",
            "5",
            "5 EUR a month",
            "5 USD",
            "5 USD a year",
            "-5 USD a month",
            "NaN USD a month",
            "0 USD a month",
            "five USD a month",
        ] {
            assert!(ChainBudget::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }
}
