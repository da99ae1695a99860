//! Heat and power, from `/sys/class`.

use super::read_line;
use std::{fs, path::Path};
use tierbar_core::reading::{Power, Thermal};

pub(crate) fn thermal() -> Option<Thermal> {
    thermal_of(Path::new("/sys/class/thermal"))
}

pub(crate) fn power() -> Option<Power> {
    power_of(Path::new("/sys/class/power_supply"))
}

/// Grades heat by the trip points that the zones have reached: at a passive one the system throttles. `None` without trip
/// points.
fn thermal_of(class: &Path) -> Option<Thermal> {
    let mut worst = None;
    for zone in fs::read_dir(class).ok()?.flatten() {
        let read = |name: &str| read_line(&zone.path(), name);
        let number = |name: &str| read(name)?.parse::<i64>().ok();
        let Some(temperature) = number("temp") else {
            continue;
        };
        for point in 0.. {
            let Some(kind) = read(&format!("trip_point_{point}_type")) else {
                break;
            };
            let Some(at) = number(&format!("trip_point_{point}_temp")).filter(|at| *at > 0) else {
                continue;
            };
            let reached = match kind.as_str() {
                "active" => Thermal::Fair,
                "passive" => Thermal::Serious,
                "hot" | "critical" => Thermal::Critical,
                _ => continue,
            };
            let level = if temperature >= at {
                reached
            } else {
                Thermal::Nominal
            };
            worst = worst.max(Some(level));
        }
    }
    worst
}

/// Returns `None` without a power supply, as in most virtual machines.
fn power_of(class: &Path) -> Option<Power> {
    let (mut mains, mut discharging, mut level) = (None, false, None);
    for supply in fs::read_dir(class).ok()?.flatten() {
        let read = |name: &str| read_line(&supply.path(), name);
        // A mouse's battery is not the machine's.
        if read("scope").as_deref() == Some("Device") {
            continue;
        }
        match read("type").as_deref() {
            Some("Battery" | "UPS") => {
                discharging |= read("status").as_deref() == Some("Discharging");
                level = level.max(read("capacity").and_then(|text| text.parse::<u8>().ok()));
            }
            Some("Mains" | "USB") => {
                let online = read("online").is_some_and(|text| text != "0");
                mains = Some(mains.unwrap_or(false) || online);
            }
            _ => {}
        }
    }
    if mains.is_none() && level.is_none() && !discharging {
        return None;
    }
    Some(Power {
        on_battery: discharging && mains != Some(true),
        level_percent: level,
    })
}

#[cfg(test)]
mod tests {
    use super::{super::testing::tree, *};

    #[test]
    fn heat_is_graded_by_the_trip_points_reached() {
        let at = |temperature: &str| {
            let root = tree(&[
                ("thermal_zone0/temp", temperature),
                ("thermal_zone0/trip_point_0_type", "active\n"),
                ("thermal_zone0/trip_point_0_temp", "60000\n"),
                // A disabled point.
                ("thermal_zone0/trip_point_1_type", "passive\n"),
                ("thermal_zone0/trip_point_1_temp", "-274000\n"),
                ("thermal_zone0/trip_point_2_type", "passive\n"),
                ("thermal_zone0/trip_point_2_temp", "80000\n"),
                ("thermal_zone0/trip_point_3_type", "critical\n"),
                ("thermal_zone0/trip_point_3_temp", "100000\n"),
                ("cooling_device0/type", "Fan\n"),
            ]);
            thermal_of(root.path())
        };
        assert_eq!(at("45000\n"), Some(Thermal::Nominal));
        assert_eq!(at("60000\n"), Some(Thermal::Fair));
        assert_eq!(at("85000\n"), Some(Thermal::Serious));
        assert_eq!(at("100000\n"), Some(Thermal::Critical));
        assert_eq!(at("hot\n"), None);
        assert_eq!(thermal_of(tree(&[]).path()), None);
    }

    #[test]
    fn a_discharging_battery_without_mains_is_battery_power() {
        let laptop = |online: &str, status: &str| {
            let root = tree(&[
                ("AC/type", "Mains\n"),
                ("AC/online", online),
                ("BAT0/type", "Battery\n"),
                ("BAT0/status", status),
                ("BAT0/capacity", "57\n"),
                ("mouse/type", "Battery\n"),
                ("mouse/scope", "Device\n"),
                ("mouse/status", "Discharging\n"),
                ("mouse/capacity", "99\n"),
            ]);
            power_of(root.path()).unwrap()
        };
        let power = |on_battery| Power {
            on_battery,
            level_percent: Some(57),
        };
        assert_eq!(laptop("0\n", "Discharging\n"), power(true));
        assert_eq!(laptop("1\n", "Charging\n"), power(false));
        // The supply is weak and the battery assists.
        assert_eq!(laptop("1\n", "Discharging\n"), power(false));
    }

    #[test]
    fn a_discharging_ups_is_battery_power() {
        for (status, on_battery) in [("Discharging\n", true), ("Charging\n", false)] {
            let desktop = tree(&[
                ("ups/type", "UPS\n"),
                ("ups/status", status),
                ("ups/capacity", "80\n"),
            ]);
            let power = Power {
                on_battery,
                level_percent: Some(80),
            };
            assert_eq!(power_of(desktop.path()), Some(power), "{status}");
        }
    }

    #[test]
    fn without_a_battery_there_is_no_level() {
        let desktop = tree(&[("AC/type", "Mains\n"), ("AC/online", "1\n")]);
        assert_eq!(power_of(desktop.path()), Some(Power::default()));
        assert_eq!(power_of(tree(&[]).path()), None);
        assert_eq!(power_of(&desktop.path().join("none")), None);
    }
}
