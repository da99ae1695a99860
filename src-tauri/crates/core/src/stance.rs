//! The [`Stance`] that follows from the user's settings and the machine's state.

use crate::{
    config::PolicyConfig,
    policy::Stance,
    reading::{Reading, Thermal},
};

/// What is not in a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Circumstances {
    /// Tierbar is paused.
    pub paused: bool,
    /// Local time, in minutes since midnight.
    pub minute_of_day: u16,
    /// The memory guard requires preloads to wait.
    pub reserved: bool,
}

/// The strictest stance that applies, and why, in a few words; no words for [`Stance::Open`].
pub fn stance(policy: &PolicyConfig, reading: &Reading, now: Circumstances) -> (Stance, String) {
    let quiet = policy.quiet_hours.contain(now.minute_of_day);
    let battery = reading.power.filter(|power| power.on_battery);
    let low = battery
        .and_then(|power| power.level_percent)
        .filter(|&level| level < policy.battery_below);
    if now.paused {
        return (Stance::Paused, "Tierbar is paused".to_owned());
    }
    if reading.thermal == Some(Thermal::Critical) {
        return (Stance::Quiet, "the machine is too hot".to_owned());
    }
    if quiet {
        return (
            Stance::Quiet,
            format!("quiet hours, {}", policy.quiet_hours),
        );
    }
    let defers = if let Some(level) = low {
        format!("the battery is at {level} %")
    } else if reading.thermal == Some(Thermal::Serious) {
        "the machine is hot".to_owned()
    } else if policy.defer_to_full_screen && reading.full_screen == Some(true) {
        "another app is full screen".to_owned()
    } else if now.reserved {
        "memory is tight or unknown".to_owned()
    } else {
        return (Stance::Open, String::new());
    };
    (Stance::Defers, defers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{config::QuietHours, reading::Power};

    const NIGHT: u16 = 23 * 60;
    const NOON: u16 = 12 * 60;

    fn at(minute_of_day: u16, reading: &Reading) -> (Stance, String) {
        let policy = PolicyConfig {
            quiet_hours: QuietHours::try_from("22:00-07:30".to_owned()).unwrap(),
            ..PolicyConfig::default()
        };
        let now = Circumstances {
            minute_of_day,
            ..Circumstances::default()
        };
        stance(&policy, reading, now)
    }

    fn power(on_battery: bool, level_percent: Option<u8>) -> Reading {
        Reading {
            power: Some(Power {
                on_battery,
                level_percent,
            }),
            ..Reading::default()
        }
    }

    fn hot(thermal: Thermal) -> Reading {
        Reading {
            thermal: Some(thermal),
            ..Reading::default()
        }
    }

    #[test]
    fn a_machine_without_readings_has_no_restrictions() {
        assert_eq!(at(NOON, &Reading::default()), (Stance::Open, String::new()));
    }

    #[test]
    fn a_low_battery_defers_unless_charging() {
        let defers = (Stance::Defers, "the battery is at 19 %".to_owned());
        assert_eq!(at(NOON, &power(true, Some(19))), defers);
        for open in [
            power(true, Some(20)),
            power(false, Some(5)),
            power(true, None),
        ] {
            assert_eq!(at(NOON, &open).0, Stance::Open);
        }
    }

    #[test]
    fn heat_defers_then_makes_it_quiet() {
        assert_eq!(at(NOON, &hot(Thermal::Fair)).0, Stance::Open);
        assert_eq!(at(NOON, &hot(Thermal::Serious)).0, Stance::Defers);
        assert_eq!(at(NOON, &hot(Thermal::Critical)).0, Stance::Quiet);
    }

    #[test]
    fn quiet_hours_show_their_end() {
        let quiet = (Stance::Quiet, "quiet hours, 22:00-07:30".to_owned());
        assert_eq!(at(NIGHT, &power(true, Some(5))), quiet);
    }

    #[test]
    fn a_full_screen_defers_unless_turned_off() {
        let reading = Reading {
            full_screen: Some(true),
            ..Reading::default()
        };
        assert_eq!(at(NOON, &reading).0, Stance::Defers);
        let careless = PolicyConfig {
            defer_to_full_screen: false,
            ..PolicyConfig::default()
        };
        let now = Circumstances::default();
        assert_eq!(stance(&careless, &reading, now).0, Stance::Open);
    }

    #[test]
    fn a_memory_reserve_defers_and_a_pause_outranks_all() {
        let reserved = Circumstances {
            reserved: true,
            ..Circumstances::default()
        };
        let of = |now| stance(&PolicyConfig::default(), &hot(Thermal::Critical), now).0;
        assert_eq!(of(reserved), Stance::Quiet);
        let policy = PolicyConfig::default();
        assert_eq!(
            stance(&policy, &Reading::default(), reserved).0,
            Stance::Defers
        );
        let paused = Circumstances {
            paused: true,
            ..reserved
        };
        assert_eq!(of(paused), Stance::Paused);
    }
}
