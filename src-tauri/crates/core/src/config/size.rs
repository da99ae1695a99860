//! Sizes of memory.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Bytes, written as `"512MiB"` or `"6GiB"`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String)]
pub struct Size(pub u64);

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// More than any current machine has, and far from an overflow.
const LARGEST: u64 = 1024 * GIB;

impl TryFrom<String> for Size {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" is not a size: write it as \"512MiB\" or \"6GiB\"");
        let mut units = [("GiB", GIB), ("MiB", MIB)].into_iter();
        let parts = units.find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)));
        let (number, unit) = parts.ok_or_else(wrong)?;
        let number = number.trim_end();
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong());
        }
        let bytes = number.parse::<u64>().ok().and_then(|n| n.checked_mul(unit));
        bytes
            .filter(|bytes| *bytes <= LARGEST)
            .map(Self)
            .ok_or_else(|| format!("\"{text}\" is more than any machine has"))
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(bytes) = self;
        if bytes % GIB == 0 {
            write!(f, "{}GiB", bytes / GIB)
        } else {
            write!(f, "{}MiB", bytes / MIB)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed_and_printed_in_their_usual_forms() {
        for (text, bytes, written) in [
            ("6GiB", 6 * GIB, "6GiB"),
            ("512 MiB", 512 * MIB, "512MiB"),
            ("6656MiB", 6656 * MIB, "6656MiB"),
        ] {
            let size = Size::try_from(text.to_owned()).unwrap();
            assert_eq!((size.0, &*size.to_string()), (bytes, written));
        }
    }

    #[test]
    fn an_invalid_size_is_refused_with_an_example() {
        for text in ["", "6", "6GB", "GiB", "-1GiB", "6.5GiB", "6gib"] {
            let error = Size::try_from(text.to_owned()).unwrap_err();
            assert!(error.contains("write it as"), "{text}: {error}");
        }
        for text in [
            "2000GiB",
            "99999999999999999999GiB",
            "18446744073709551615GiB",
        ] {
            assert!(Size::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
