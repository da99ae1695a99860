//! `TIERBAR_SIMULATE_RAM` and `TIERBAR_SIMULATE_METAL`: plan and read as if the machine were another Mac.
//!
//! A simulated machine reports real usage, and never a larger share of free memory than the real one, so shortages still show.

use crate::platform;
use std::{ffi::OsString, ops::RangeInclusive};
use tierbar_core::{Code, Error, fit::mac_working_set};

/// The variable's name. Its value is a size such as `16GiB`; unset or empty means the real machine.
pub const SIMULATE_RAM: &str = "TIERBAR_SIMULATE_RAM";

/// The recommended working set of Metal on the simulated machine, such as `10.67GiB`; `0` is a machine without a GPU. Unset
/// or empty means that of a Mac with the simulated RAM, or the real machine's.
pub const SIMULATE_METAL: &str = "TIERBAR_SIMULATE_METAL";

const PIB: u64 = 1 << 50;
/// Less cannot hold the reserve and a model; no machine has more.
const RAM: RangeInclusive<u64> = (1 << 30)..=PIB;

/// Returns the simulated RAM in bytes, if the environment sets it. Check it once at start to report an invalid value;
/// readings ignore it.
///
/// # Errors
/// [`Code::ConfigInvalid`] naming the variable and its value.
pub fn simulated_ram() -> Result<Option<u64>, Error> {
    size_of_variable(SIMULATE_RAM, std::env::var_os(SIMULATE_RAM), &RAM)
}

/// Returns the simulated working set in bytes, if the environment sets it. Check it at start like [`simulated_ram`].
///
/// # Errors
/// [`Code::ConfigInvalid`] naming the variable and its value.
pub fn simulated_working_set() -> Result<Option<u64>, Error> {
    size_of_variable(SIMULATE_METAL, std::env::var_os(SIMULATE_METAL), &(0..=PIB))
}

/// Returns Metal's `recommendedMaxWorkingSetSize` in bytes, simulated or real; `None` without Metal. Invalid values of the
/// variables are ignored.
pub fn working_set() -> Option<u64> {
    let metal = simulated_working_set().unwrap_or_default();
    let ram = simulated_ram().unwrap_or_default();
    choose_working_set(metal, ram, platform::working_set)
}

fn choose_working_set(
    metal: Option<u64>,
    ram: Option<u64>,
    real: impl FnOnce() -> Option<u64>,
) -> Option<u64> {
    match (metal, ram) {
        (Some(0), _) => None,
        (Some(bytes), _) => Some(bytes),
        (None, Some(ram)) => Some(mac_working_set(ram)),
        (None, None) => real(),
    }
}

fn size_of_variable(
    name: &str,
    value: Option<OsString>,
    plausible: &RangeInclusive<u64>,
) -> Result<Option<u64>, Error> {
    let Some(value) = value.filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let value = value.to_string_lossy();
    let wrong = |why: String| {
        Error::new(Code::ConfigInvalid, format!("{name} is \"{value}\": {why}"))
            .hint("give it a size such as 16GiB, or unset it")
    };
    let bytes = parse_size(&value).map_err(wrong)?;
    if plausible.contains(&bytes) {
        return Ok(Some(bytes));
    }
    Err(wrong(if *plausible.start() > 0 {
        "it must be between 1 GiB and 1 PiB".to_owned()
    } else {
        "it must not be more than 1 PiB".to_owned()
    }))
}

/// Parses a size such as `16GiB`, `16 GB`, `512 MiB`, `1.5GiB` or `1024`. `KB`, `MB`, `GB` and `TB` are decimal, `KiB`,
/// `MiB`, `GiB` and `TiB` binary; case does not matter.
///
/// # Errors
/// What a size may be, in a sentence.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || "a size is a number and a unit, such as 16GiB or 512MB".to_owned();
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit: u64 = match unit.trim_start().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        "tib" => 1 << 40,
        _ => return Err(wrong()),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    // Nine decimals of a tebibyte are a kilobyte; no size needs more digits.
    if whole.is_empty() || fraction.len() > 9 || fraction.contains('.') || number.ends_with('.') {
        return Err(wrong());
    }
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let numerator: u128 = if fraction.is_empty() {
        0
    } else {
        fraction.parse().map_err(|_| wrong())?
    };
    let denominator = 10u128.pow(u32::try_from(fraction.len()).map_err(|_| wrong())?);
    let bytes = u128::from(whole) * u128::from(unit) + numerator * u128::from(unit) / denominator;
    u64::try_from(bytes).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed_in_their_usual_forms() {
        for (text, bytes) in [
            ("16GiB", 16 << 30),
            ("16gib", 16 << 30),
            (" 16 GiB ", 16 << 30),
            ("16GB", 16_000_000_000),
            ("512 MiB", 512 << 20),
            ("1.5GiB", 3 << 29),
            ("0.25 KiB", 256),
            ("1TB", 1_000_000_000_000),
            ("2TiB", 2 << 40),
            ("1024", 1024),
            ("7b", 7),
            ("3kb", 3000),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text:?}");
        }
    }

    #[test]
    fn an_invalid_size_is_refused() {
        for text in [
            "",
            " ",
            "GiB",
            "16 bananas",
            "16G iB",
            "-1GiB",
            "1.2.3GiB",
            "1.GiB",
            ".5GiB",
            "1e9",
            "0x10",
            "16GiBs",
            "1.0000000001GiB",
            "99999999999999999999",
            "20000000TiB",
            "١٦GiB",
        ] {
            assert!(parse_size(text).is_err(), "{text:?} was accepted");
        }
    }

    #[test]
    fn an_invalid_value_is_reported_with_its_variable() {
        let ram = |value: &str| size_of_variable(SIMULATE_RAM, Some(value.into()), &RAM);
        let error = ram("lots").unwrap_err();
        assert_eq!(error.code, Code::ConfigInvalid);
        assert!(
            error.message.contains("TIERBAR_SIMULATE_RAM is \"lots\""),
            "{error}"
        );
        for implausible in ["0", "100MiB", "5000TiB"] {
            assert!(ram(implausible).is_err(), "{implausible} was accepted");
        }
        assert_eq!(ram("16GiB"), Ok(Some(16 << 30)));
        assert_eq!(ram(""), Ok(None));
        let metal = |value: &str| size_of_variable(SIMULATE_METAL, Some(value.into()), &(0..=PIB));
        assert_eq!(metal("0"), Ok(Some(0)));
        let error = metal("5000TiB").unwrap_err();
        assert!(
            error.message.starts_with("TIERBAR_SIMULATE_METAL is "),
            "{error}"
        );
    }

    #[test]
    fn a_simulated_machine_has_the_working_set_of_its_class() {
        let real = || Some(7);
        assert_eq!(choose_working_set(None, None, real), Some(7));
        assert_eq!(
            choose_working_set(None, Some(16 << 30), real),
            Some(12_713_120_000)
        );
        assert_eq!(
            choose_working_set(Some(11 << 30), Some(16 << 30), real),
            Some(11 << 30)
        );
        assert_eq!(choose_working_set(Some(0), Some(16 << 30), real), None);
    }
}
