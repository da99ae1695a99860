//! What a server's status and headers say of being asked again.

use http::{HeaderMap, StatusCode};
use jiff::{SignedDuration, Timestamp};
use std::time::{Duration, SystemTime};
use tierbar_core::chain::Outcome;

/// Limits are in `Retry-After` (RFC 9110, 10.2.3: seconds or a date), `retry-after-ms`, OpenAI's `x-ratelimit-reset-*` (a time such as
/// `6m0s`) and Anthropic's `anthropic-ratelimit-*-reset` (RFC 3339).
pub(crate) fn outcome(status: StatusCode, headers: &HeaderMap) -> Outcome {
    let wait = wait_of(headers, SystemTime::now());
    let for_ms = wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
    match status.as_u16() {
        200..=299 => Outcome::Answered,
        401 => Outcome::Refused,
        429 => Outcome::Limited { for_ms },
        // Busy, with a time: as good as a limit.
        503 | 529 if for_ms.is_some() => Outcome::Limited { for_ms },
        408 | 500.. => Outcome::Failed,
        _ => Outcome::Unfit,
    }
}

fn wait_of(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let seconds = |text: &str, per_second: f64| {
        let number: f64 = text.parse().ok()?;
        Duration::try_from_secs_f64(number / per_second).ok()
    };
    if let Some(wait) = text("retry-after-ms").and_then(|ms| seconds(ms, 1e3)) {
        return Some(wait);
    }
    if let Some(after) = text("retry-after") {
        if let Some(wait) = seconds(after, 1.0) {
            return Some(wait);
        }
        if let Ok(date) = httpdate::parse_http_date(after) {
            return Some(date.duration_since(now).unwrap_or_default());
        }
    }
    // Of several limits those that are used up count, and the longest of these.
    let used_up = ["requests", "tokens", "input-tokens", "output-tokens"]
        .into_iter()
        .filter_map(|what| {
            let of = |kind: &str, vendor: &str| match vendor {
                "openai" => text(&format!("x-ratelimit-{kind}-{what}")),
                _ => text(&format!("anthropic-ratelimit-{what}-{kind}")),
            };
            ["openai", "anthropic"].into_iter().find_map(|vendor| {
                (of("remaining", vendor)? == "0").then_some(())?;
                reset(of("reset", vendor)?, now)
            })
        });
    used_up.max()
}

/// A length of time, or a moment.
fn reset(text: &str, now: SystemTime) -> Option<Duration> {
    if let Ok(moment) = text.parse::<Timestamp>() {
        let moment = SystemTime::from(moment);
        return Some(moment.duration_since(now).unwrap_or_default());
    }
    let length = text.parse::<SignedDuration>().ok()?;
    Duration::try_from(length).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    fn wait(headers: &[(&'static str, &str)]) -> Option<u64> {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect();
        // 2026-11-22T10:00:00Z
        let now = UNIX_EPOCH + Duration::from_secs(1_795_341_600);
        wait_of(&headers, now).map(|wait| u64::try_from(wait.as_millis()).unwrap())
    }

    #[test]
    fn a_limit_is_read_in_each_servers_format() {
        assert_eq!(wait(&[("retry-after", "7")]), Some(7000));
        assert_eq!(wait(&[("retry-after", "0.5")]), Some(500));
        assert_eq!(
            wait(&[("retry-after", "Sun, 22 Nov 2026 10:01:00 GMT")]),
            Some(60_000)
        );
        assert_eq!(
            wait(&[("retry-after", "Sun, 22 Nov 2026 09:00:00 GMT")]),
            Some(0)
        );
        assert_eq!(
            wait(&[("retry-after-ms", "250"), ("retry-after", "1")]),
            Some(250)
        );
        assert_eq!(
            wait(&[
                ("x-ratelimit-remaining-requests", "3"),
                ("x-ratelimit-reset-requests", "1h0m0s"),
                ("x-ratelimit-remaining-tokens", "0"),
                ("x-ratelimit-reset-tokens", "6m0s"),
            ]),
            Some(360_000)
        );
        assert_eq!(
            wait(&[
                ("anthropic-ratelimit-requests-remaining", "0"),
                ("anthropic-ratelimit-requests-reset", "2026-11-22T10:00:30Z"),
            ]),
            Some(30_000)
        );
        for nothing in [
            ("retry-after", "soon"),
            ("retry-after", "-1"),
            ("retry-after", "NaN"),
            ("x-ratelimit-remaining-requests", "0"),
        ] {
            assert_eq!(wait(&[nothing]), None, "{nothing:?}");
        }
    }

    #[test]
    fn a_status_shows_which_side_is_at_fault() {
        let of = |status: u16| outcome(StatusCode::from_u16(status).unwrap(), &HeaderMap::new());
        assert_eq!(of(200), Outcome::Answered);
        assert_eq!(of(401), Outcome::Refused);
        // What is forbidden may be this request alone: a model, or what it says.
        assert_eq!(of(403), Outcome::Unfit);
        assert_eq!(of(429), Outcome::Limited { for_ms: None });
        for failed in [408, 500, 502, 503, 529] {
            assert_eq!(of(failed), Outcome::Failed, "{failed}");
        }
        for unfit in [400, 404, 413, 422] {
            assert_eq!(of(unfit), Outcome::Unfit, "{unfit}");
        }
    }
}
