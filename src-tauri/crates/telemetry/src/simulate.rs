//! `TIERBAR_SIMULATE_RAM`: plan and read as if the machine had another amount of RAM.

use tierbar_core::{Code, Error};

/// The variable's name. Its value is a size such as `16GiB`; unset or empty means the real machine.
pub const SIMULATE_RAM: &str = "TIERBAR_SIMULATE_RAM";

/// Less than this cannot hold the reserve and a model; more is no machine that exists.
const PLAUSIBLE: std::ops::RangeInclusive<u64> = (1 << 30)..=(1 << 50);

/// The simulated RAM in bytes, if the environment asks for one. Check it once at start, so that a wrong value is
/// told; readings take a wrong value for none.
///
/// # Errors
/// [`Code::ConfigInvalid`] naming the variable and its value.
pub fn simulated_ram() -> Result<Option<u64>, Error> {
    match std::env::var_os(SIMULATE_RAM) {
        None => Ok(None),
        Some(value) if value.is_empty() => Ok(None),
        Some(value) => of_text(&value.to_string_lossy()).map(Some),
    }
}

fn of_text(value: &str) -> Result<u64, Error> {
    let wrong = |why: String| {
        Error::new(
            Code::ConfigInvalid,
            format!("{SIMULATE_RAM} is \"{value}\": {why}"),
        )
        .hint("give it a size such as 16GiB, or unset it")
    };
    let bytes = parse_size(value).map_err(wrong)?;
    if PLAUSIBLE.contains(&bytes) {
        return Ok(bytes);
    }
    Err(wrong("it must lie between 1 GiB and 1 PiB".to_owned()))
}

/// Bytes of a size such as `16GiB`, `16 GB`, `512 MiB`, `1.5GiB` or `1024`. `KB`, `MB`, `GB` and `TB` are decimal,
/// `KiB`, `MiB`, `GiB` and `TiB` binary; case does not matter.
///
/// # Errors
/// A sentence that says what a size may be.
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
    // Nine decimals of a tebibyte are a kilobyte; more digits are not meant as a size.
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
    fn sizes_are_read_as_people_write_them() {
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
    fn what_is_not_a_size_is_refused() {
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
    fn a_wrong_value_is_told_with_the_variables_name() {
        let error = of_text("lots").unwrap_err();
        assert_eq!(error.code, Code::ConfigInvalid);
        assert!(
            error.message.contains("TIERBAR_SIMULATE_RAM is \"lots\""),
            "{error}"
        );
        for implausible in ["0", "100MiB", "5000TiB"] {
            assert!(of_text(implausible).is_err(), "{implausible} was accepted");
        }
        assert_eq!(of_text("16GiB"), Ok(16 << 30));
    }
}
