//! Money.

use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// US dollars, stored in millionths.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, ToSchema,
)]
#[serde(try_from = "f64", into = "f64")]
#[schema(value_type = f64)]
pub struct Dollars(pub u64);

const MILLION: f64 = 1e6;

impl Dollars {
    /// Returns the cost of this many tokens, given the price of a million.
    #[must_use]
    pub fn of_tokens(self, tokens: u64) -> Self {
        let millionths = u128::from(self.0) * u128::from(tokens);
        Self(u64::try_from(millionths.div_ceil(1_000_000)).unwrap_or(u64::MAX))
    }

    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        Self(self.0.saturating_add(more.0))
    }
}

impl TryFrom<f64> for Dollars {
    type Error = String;
    fn try_from(dollars: f64) -> Result<Self, String> {
        const MOST: f64 = 1e6;
        if (0.0..=MOST).contains(&dollars) {
            return Ok(Self((dollars * MILLION).round() as u64));
        }
        Err(format!(
            "{dollars} is not an amount from 0 to {MOST} dollars"
        ))
    }
}

impl From<Dollars> for f64 {
    fn from(Dollars(millionths): Dollars) -> Self {
        millionths as f64 / MILLION
    }
}

impl fmt::Display for Dollars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dollars = f64::from(*self);
        // A request often costs less than a cent.
        if dollars > 0.0 && dollars < 0.01 {
            write!(f, "${dollars:.4}")
        } else {
            write!(f, "${dollars:.2}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_follow_the_price_and_round_up() {
        let price = Dollars::try_from(3.0).unwrap();
        assert_eq!(price.of_tokens(1_000_000), price);
        assert_eq!(price.of_tokens(1000).to_string(), "$0.0030");
        assert_eq!(Dollars(1).of_tokens(1), Dollars(1));
        assert_eq!(Dollars(u64::MAX).of_tokens(u64::MAX), Dollars(u64::MAX));
        assert_eq!(Dollars::default().of_tokens(u64::MAX), Dollars(0));
    }

    #[test]
    fn negative_and_absurd_sums_are_refused() {
        for wrong in [-0.01, 1e7, f64::NAN, f64::INFINITY] {
            assert!(Dollars::try_from(wrong).is_err(), "{wrong}");
        }
        assert_eq!(f64::from(Dollars::try_from(0.25).unwrap()), 0.25);
    }
}
