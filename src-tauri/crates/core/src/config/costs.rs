//! What answers are compared with, and what this machine takes.

use super::Dollars;
use serde::{Deserialize, Serialize};

/// Prices and watts. None has a default: without them, `tierbar costs` shows tokens and no money.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct CostsConfig {
    /// The price of a million tokens of prompts at the cloud that local answers are compared with, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cloud_input_price: Option<Dollars>,
    /// The price of a million tokens of answers there, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cloud_output_price: Option<Dollars>,
    /// The price of a kilowatt-hour, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kwh_price: Option<Dollars>,
    /// What the machine draws while it answers, in watts. It is used where the machine does not measure that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy_watts: Option<Watts>,
    /// What the machine draws while it is idle, in watts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_watts: Option<Watts>,
    /// The price of the machine, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine_price: Option<Dollars>,
}

/// Electric power.
#[derive(
    Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(try_from = "f64", into = "f64")]
#[schema(value_type = f64)]
pub struct Watts(pub f64);

impl TryFrom<f64> for Watts {
    type Error = String;
    fn try_from(watts: f64) -> Result<Self, String> {
        const MOST: f64 = 10_000.0;
        if (0.0..=MOST).contains(&watts) {
            return Ok(Self(watts));
        }
        Err(format!("{watts} is not a power from 0 to {MOST} watts"))
    }
}

impl From<Watts> for f64 {
    fn from(Watts(watts): Watts) -> Self {
        watts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_and_absurd_powers_are_refused() {
        for wrong in [-1.0, 10_001.0, f64::NAN, f64::INFINITY] {
            assert!(Watts::try_from(wrong).is_err(), "{wrong}");
        }
        assert_eq!(Watts::try_from(6.5), Ok(Watts(6.5)));
    }

    #[test]
    fn nothing_is_set_by_itself() {
        let nothing: CostsConfig = serde_json::from_str("{}").unwrap();
        assert_eq!(nothing, CostsConfig::default());
        assert_eq!(serde_json::to_string(&nothing).unwrap(), "{}");
    }
}
