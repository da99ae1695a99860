//! Quiet hours.

use serde::{Deserialize, Serialize};
use std::fmt;

/// `"22:00-07:30"`: a range of local time that excludes its end and may span midnight; `""` for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String)]
pub struct QuietHours(Option<(u16, u16)>);

impl QuietHours {
    /// Returns whether a minute, counted from midnight, is in the range.
    pub fn contain(self, minute: u16) -> bool {
        self.0.is_some_and(|(from, to)| {
            if from < to {
                (from..to).contains(&minute)
            } else {
                minute >= from || minute < to
            }
        })
    }
}

impl TryFrom<String> for QuietHours {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self(None));
        }
        let wrong = || format!("\"{text}\" is not a valid time range: write it as \"22:00-07:30\"");
        let (from, to) = text.split_once('-').ok_or_else(wrong)?;
        let (from, to) = (
            parse_minute(from).ok_or_else(wrong)?,
            parse_minute(to).ok_or_else(wrong)?,
        );
        if from == to {
            return Err(format!(
                "\"{text}\" starts and ends at the same time: to stop all models, pause Tierbar"
            ));
        }
        Ok(Self(Some((from, to))))
    }
}

/// `07:30`, with two digits each.
pub(super) fn parse_minute(text: &str) -> Option<u16> {
    let (hour, minute) = text.split_once(':')?;
    let two = |digits: &str, below: u16| {
        let plain = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        digits
            .parse()
            .ok()
            .filter(|&number: &u16| plain && number < below)
    };
    Some(two(hour, 24)? * 60 + two(minute, 60)?)
}

impl fmt::Display for QuietHours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((from, to)) = self.0 else {
            return Ok(());
        };
        let clock = |minute: u16| (minute / 60, minute % 60);
        let ((h, m), (to_h, to_m)) = (clock(from), clock(to));
        write!(f, "{h:02}:{m:02}-{to_h:02}:{to_m:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(text: &str) -> QuietHours {
        QuietHours::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn hours_may_span_midnight() {
        let night = hours("22:00-07:30");
        let within = |minutes: &[u16]| {
            minutes
                .iter()
                .map(|&at| night.contain(at))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            within(&[1319, 1320, 1439, 0, 449, 450]),
            [false, true, true, true, true, false]
        );
        let noon = hours("12:00-13:00");
        assert!(noon.contain(720) && noon.contain(779));
        assert!(!noon.contain(719) && !noon.contain(780));
        assert!(!hours("").contain(0));
    }

    #[test]
    fn hours_survive_a_round_trip_and_invalid_ones_are_refused() {
        for text in ["", "00:00-23:59", "22:05-07:30"] {
            assert_eq!(hours(text).to_string(), text);
        }
        for text in [
            "22-7",
            "22:00",
            "24:00-01:00",
            "22:60-01:00",
            "1:00-02:00",
            "+1:00-02:00",
            "12:00-13:00-14:00",
            " ",
        ] {
            let error = QuietHours::try_from(text.to_owned()).unwrap_err();
            assert!(
                error.contains("is not a valid time range"),
                "{text}: {error}"
            );
        }
        let error = QuietHours::try_from("07:00-07:00".to_owned()).unwrap_err();
        assert!(error.contains("pause"), "{error}");
    }
}
