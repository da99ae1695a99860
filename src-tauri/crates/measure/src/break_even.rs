//! After how many months a machine has paid for itself, by figures that the user gives. There are no figures of ours.

use serde::{Deserialize, Serialize};

/// Days of a month, on average.
const DAYS: f64 = 365.25 / 12.0;
const MILLION: f64 = 1e6;

/// All that the sum is made of. Money is in US dollars.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BreakEvenInputs {
    /// The machine's price, or its extra cost over one that you would have anyway.
    pub machine_price: f64,
    /// Its power draw while on and idle.
    pub idle_watts: f64,
    /// Its power draw while answering.
    pub busy_watts: f64,
    /// Hours a day that it is on for this.
    pub hours_on: f64,
    /// Hours of these that it spends answering.
    pub hours_busy: f64,
    pub kwh_price: f64,
    /// Prompt tokens a day.
    pub prompt_tokens: f64,
    /// Answer tokens a day.
    pub answer_tokens: f64,
    /// The cloud's price of a million prompt tokens.
    pub cloud_input_price: f64,
    /// The cloud's price of a million answer tokens.
    pub cloud_output_price: f64,
    /// The share of the tokens that local models can handle, from 0 to 1. The rest goes to the cloud either way.
    pub local_share: f64,
}

/// The sum, by month, in US dollars.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct BreakEven {
    /// The price of all tokens at the cloud.
    pub cloud: f64,
    /// The price of those that local models do instead.
    pub avoided: f64,
    /// Kilowatt-hours of the machine.
    pub kwh: f64,
    pub electricity: f64,
    /// What is left of the avoided price after the electricity; negative if it costs more.
    pub saved: f64,
    /// Months until the savings are the machine's price; `null` if they never are.
    pub months: Option<f64>,
}

impl BreakEvenInputs {
    /// Returns the sum.
    ///
    /// # Errors
    /// Names the figure that is out of bounds.
    pub fn sum(&self) -> Result<BreakEven, String> {
        self.check()?;
        let price = |tokens: f64, price: f64| tokens / MILLION * price * DAYS;
        let cloud = price(self.prompt_tokens, self.cloud_input_price)
            + price(self.answer_tokens, self.cloud_output_price);
        let avoided = cloud * self.local_share;
        let idle_hours = self.hours_on - self.hours_busy;
        let watt_hours = self.busy_watts * self.hours_busy + self.idle_watts * idle_hours;
        let kwh = watt_hours / 1000.0 * DAYS;
        let electricity = kwh * self.kwh_price;
        let saved = avoided - electricity;
        Ok(BreakEven {
            cloud,
            avoided,
            kwh,
            electricity,
            saved,
            months: (saved > 0.0).then(|| self.machine_price / saved),
        })
    }

    fn check(&self) -> Result<(), String> {
        const MOST: f64 = 1e12;
        for (name, value, most) in [
            ("machine_price", self.machine_price, MOST),
            ("idle_watts", self.idle_watts, MOST),
            ("busy_watts", self.busy_watts, MOST),
            ("hours_on", self.hours_on, 24.0),
            ("hours_busy", self.hours_busy, 24.0),
            ("kwh_price", self.kwh_price, MOST),
            ("prompt_tokens", self.prompt_tokens, MOST),
            ("answer_tokens", self.answer_tokens, MOST),
            ("cloud_input_price", self.cloud_input_price, MOST),
            ("cloud_output_price", self.cloud_output_price, MOST),
            ("local_share", self.local_share, 1.0),
        ] {
            if !(0.0..=most).contains(&value) {
                return Err(format!("{name} is {value}; it must be from 0 to {most}"));
            }
        }
        if self.hours_busy > self.hours_on {
            let (busy, on) = (self.hours_busy, self.hours_on);
            return Err(format!(
                "hours_busy is {busy}, more than the {on} hours that the machine is on"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures for a test, of no real machine.
    const INPUTS: BreakEvenInputs = BreakEvenInputs {
        machine_price: 600.0,
        idle_watts: 5.0,
        busy_watts: 35.0,
        hours_on: 24.0,
        hours_busy: 4.0,
        kwh_price: 0.25,
        prompt_tokens: 500_000.0,
        answer_tokens: 250_000.0,
        cloud_input_price: 2.5,
        cloud_output_price: 10.0,
        local_share: 1.0,
    };

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() < 0.005
    }

    #[test]
    fn the_result_matches_hand_calculation() {
        // 1.25 + 2.50 dollars a day; 35 W for 4 h and 5 W for 20 h are 0.24 kWh a day.
        let sum = INPUTS.sum().unwrap();
        assert!(near(sum.cloud, 3.75 * 30.4375), "{sum:?}");
        assert!(near(sum.kwh, 0.24 * 30.4375), "{sum:?}");
        assert!(near(sum.electricity, 0.06 * 30.4375), "{sum:?}");
        assert!(near(sum.saved, 3.69 * 30.4375), "{sum:?}");
        assert!(
            near(sum.months.unwrap(), 600.0 / (3.69 * 30.4375)),
            "{sum:?}"
        );
    }

    #[test]
    fn the_share_that_stays_in_the_cloud_saves_nothing() {
        let half = BreakEvenInputs {
            local_share: 0.5,
            ..INPUTS
        };
        let sum = half.sum().unwrap();
        assert!(near(sum.avoided * 2.0, sum.cloud), "{sum:?}");
        assert!(sum.months > INPUTS.sum().unwrap().months);
    }

    #[test]
    fn a_machine_that_saves_nothing_never_pays() {
        let nothing = BreakEvenInputs {
            local_share: 0.0,
            ..INPUTS
        };
        let sum = nothing.sum().unwrap();
        assert!(sum.saved < 0.0);
        assert_eq!(sum.months, None);
        let free = BreakEvenInputs {
            machine_price: 0.0,
            ..INPUTS
        };
        assert_eq!(free.sum().unwrap().months, Some(0.0));
    }

    #[test]
    fn figures_out_of_bounds_are_named() {
        for (inputs, name) in [
            (
                BreakEvenInputs {
                    local_share: 1.5,
                    ..INPUTS
                },
                "local_share",
            ),
            (
                BreakEvenInputs {
                    hours_on: 25.0,
                    ..INPUTS
                },
                "hours_on",
            ),
            (
                BreakEvenInputs {
                    hours_on: 3.0,
                    ..INPUTS
                },
                "hours_busy",
            ),
            (
                BreakEvenInputs {
                    kwh_price: f64::NAN,
                    ..INPUTS
                },
                "kwh_price",
            ),
            (
                BreakEvenInputs {
                    machine_price: -1.0,
                    ..INPUTS
                },
                "machine_price",
            ),
        ] {
            let error = inputs.sum().unwrap_err();
            assert!(error.starts_with(name), "{error}");
        }
    }
}
