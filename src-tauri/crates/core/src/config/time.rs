//! Durations.

use serde::{Deserialize, Serialize};
use std::{fmt, time::Duration};

/// `"90s"`, `"10m"`, `"2h"`, `"1d"`: a whole number and one unit, at most a week.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String)]
pub struct Span(pub Duration);

/// How long a tier stays loaded while idle: a [`Span`], or `"never"` to keep it loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum IdleUnload {
    After(Span),
    Never,
}

impl Span {
    const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }
}

impl IdleUnload {
    /// Returns the duration; `None` to keep it loaded.
    pub fn keep(self) -> Option<Duration> {
        match self {
            Self::After(Span(length)) => Some(length),
            Self::Never => None,
        }
    }
}

impl TryFrom<String> for Span {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || {
            format!("\"{text}\" is not a duration: write it as \"30s\", \"10m\", \"2h\" or \"1d\"")
        };
        let (number, unit) = text
            .split_at_checked(text.len().saturating_sub(1))
            .ok_or_else(wrong)?;
        let unit = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            "d" => 24 * 3600,
            _ => return Err(wrong()),
        };
        if !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong());
        }
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let length = Duration::from_secs(number.saturating_mul(unit));
        if length > Self::LONGEST {
            return Err(format!("\"{text}\" is longer than a week"));
        }
        Ok(Self(length))
    }
}

impl TryFrom<String> for IdleUnload {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        if text == "never" {
            return Ok(Self::Never);
        }
        Span::try_from(text)
            .map(Self::After)
            .map_err(|why| format!("{why}, or \"never\""))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_secs() {
            0 => f.write_str("0s"),
            seconds if seconds % 3600 == 0 => write!(f, "{}h", seconds / 3600),
            seconds if seconds % 60 == 0 => write!(f, "{}m", seconds / 60),
            seconds => write!(f, "{seconds}s"),
        }
    }
}

impl From<IdleUnload> for String {
    fn from(unload: IdleUnload) -> Self {
        match unload {
            IdleUnload::After(span) => span.into(),
            IdleUnload::Never => "never".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_and_printed_in_usual_forms() {
        for (text, seconds) in [
            ("0s", 0),
            ("90s", 90),
            ("10m", 600),
            ("2h", 7200),
            ("168h", 604_800),
        ] {
            let span = Span::try_from(text.to_owned()).unwrap();
            assert_eq!((span, &*span.to_string()), (Span::seconds(seconds), text));
        }
        let week = Span::try_from("7d".to_owned()).unwrap();
        assert_eq!(week.to_string(), "168h");
    }

    #[test]
    fn an_invalid_duration_is_refused_with_an_example() {
        for text in [
            "",
            "s",
            "10",
            "m10",
            "-1m",
            "1.5h",
            "10 m",
            "10w",
            "1é",
            "+3s",
            "99999999999999999999h",
        ] {
            let error = Span::try_from(text.to_owned()).unwrap_err();
            assert!(error.contains("write it as"), "{text}: {error}");
        }
        for long in ["169h", "8d"] {
            let error = Span::try_from(long.to_owned()).unwrap_err();
            assert!(error.contains("week"), "{error}");
        }
        let error = IdleUnload::try_from("forever".to_owned()).unwrap_err();
        assert!(error.ends_with("or \"never\""), "{error}");
    }

    #[test]
    fn an_idle_time_may_be_infinite() {
        let keep = |text: &str| IdleUnload::try_from(text.to_owned()).unwrap().keep();
        assert_eq!(keep("never"), None);
        assert_eq!(keep("0s"), Some(Duration::ZERO));
    }
}
