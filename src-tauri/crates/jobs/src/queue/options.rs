//! The queue's headers of a request.

use super::kept_headers;
use axum::http::HeaderMap;
use jiff::Timestamp;
use tierbar_core::{Code, Error, bad_request, config::Span, download::Priority, queue::millis};
use url::Url;

const QUEUE: &str = "x-tierbar-queue";
const PRIORITY: &str = "x-tierbar-priority";
const DEADLINE: &str = "x-tierbar-deadline";
const ATTEMPTS: &str = "x-tierbar-attempts";
const WEBHOOK: &str = "x-tierbar-webhook";
const KEY: &str = "idempotency-key";

/// Longer than a night, but not forever.
const DEADLINE_MS: u64 = 24 * 3600 * 1000;
const LONGEST_MS: u64 = 7 * DEADLINE_MS;
/// With the pauses between them more than a day, so that by default the deadline ends the attempts.
const USUAL_ATTEMPTS: u32 = 300;
const MOST_ATTEMPTS: u32 = 1000;
const LONGEST_KEY: usize = 255;
const LONGEST_URL: usize = 2048;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueMode {
    /// If it cannot be answered now.
    Allow,
    /// Without being tried now.
    Only,
    /// It is answered now or not at all, also by a chain that ends in the queue.
    Never,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Options {
    /// `None`: it is answered now or not at all, unless its chain ends in the queue.
    pub(super) when: Option<QueueMode>,
    pub(super) priority: Priority,
    pub(super) deadline_ms: u64,
    pub(super) max_attempts: u32,
    pub(super) webhook: Option<String>,
    pub(super) key: Option<String>,
}

impl Options {
    pub(super) fn from_headers(headers: &HeaderMap, now_ms: u64) -> Result<Self, Error> {
        let text = |name: &str| {
            let text = headers.get(name).map(|value| value.to_str());
            let text = text.transpose().map(|text| text.map(str::trim));
            text.map_err(|_| wrong(name, "has characters that a header cannot have"))
        };
        let when = match text(QUEUE)? {
            None => None,
            Some("allow") => Some(QueueMode::Allow),
            Some("only") => Some(QueueMode::Only),
            Some("never") => Some(QueueMode::Never),
            Some(other) => return Err(wrong(QUEUE, &format!("is \"{other:.64}\"")).hint(
                "use \"allow\" to queue the request if it cannot be answered now, \"only\" to queue it in any case, or \"never\"",
            )),
        };
        let priority = match text(PRIORITY)? {
            None | Some("normal") => Priority::Normal,
            Some("low") => Priority::Low,
            Some("high") => Priority::High,
            Some(other) => {
                let what = format!("is \"{other:.64}\", not low, normal or high");
                return Err(wrong(PRIORITY, &what));
            }
        };
        let max_attempts = match text(ATTEMPTS)? {
            None => USUAL_ATTEMPTS,
            Some(number) => match number.parse() {
                Ok(number @ 1..=MOST_ATTEMPTS) => number,
                _ => {
                    let what = format!("is not a number from 1 to {MOST_ATTEMPTS}");
                    return Err(wrong(ATTEMPTS, &what));
                }
            },
        };
        let deadline_ms = match text(DEADLINE)? {
            None => now_ms.saturating_add(DEADLINE_MS),
            Some(rendered) => deadline(rendered, now_ms)?,
        };
        let webhook = text(WEBHOOK)?.map(webhook).transpose()?;
        let key = text(KEY)?.map(key).transpose()?;
        Ok(Self {
            when,
            priority,
            deadline_ms,
            max_attempts,
            webhook,
            key,
        })
    }
}

pub(super) fn check_host(url: &str, allowed: &[String]) -> Result<(), Error> {
    let url = Url::parse(url).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
    if allowed.iter().any(|allowed| allowed == host) {
        return Ok(());
    }
    let message = format!("{WEBHOOK}: webhooks to {host:.64} need the token");
    Err(Error::new(Code::Forbidden, message).hint(
        "send the token, have the owner of this server add the host to `webhook_hosts` in [queue] of config.toml, or fetch the answer by its id",
    ))
}

/// A length from now on, or a moment.
fn deadline(rendered: &str, now_ms: u64) -> Result<u64, Error> {
    let at = match Span::try_from(format!("{rendered:.64}")) {
        Ok(Span(length)) => now_ms.saturating_add(millis(length)),
        Err(why) => {
            let moment: Timestamp = rendered.parse().map_err(|_| {
                wrong(DEADLINE, &format!("is not valid: {why}")).hint(
                    "use a duration such as \"2h\" or \"7d\", or a time such as \"2026-01-31T06:00:00Z\", at most a week ahead",
                )
            })?;
            u64::try_from(moment.as_millisecond()).unwrap_or_default()
        }
    };
    if at <= now_ms {
        return Err(wrong(DEADLINE, "is in the past"));
    }
    if at > now_ms.saturating_add(LONGEST_MS) {
        return Err(wrong(DEADLINE, "is more than a week ahead"));
    }
    Ok(at)
}

fn webhook(rendered: &str) -> Result<String, Error> {
    let refused = |why: &str| Err(wrong(WEBHOOK, why));
    if rendered.len() > LONGEST_URL {
        return refused("is longer than 2048 bytes");
    }
    let Ok(url) = Url::parse(rendered) else {
        return refused("is not a URL");
    };
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return refused("must be an http or https URL");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return refused("contains a user name or password: webhooks are signed instead");
    }
    Ok(url.into())
}

fn key(rendered: &str) -> Result<String, Error> {
    if rendered.is_empty() || rendered.len() > LONGEST_KEY {
        let what = format!("is empty or longer than {LONGEST_KEY} bytes");
        return Err(wrong(KEY, &what));
    }
    Ok(rendered.to_owned())
}

fn wrong(header: &str, what: &str) -> Error {
    bad_request(format!("the header {header} {what}"))
}

/// Those headers that decide what is answered: no others are kept, and none that is a secret.
pub(super) fn of_the_request(headers: &HeaderMap) -> Vec<(String, String)> {
    const OWN: &str = "x-tierbar-";
    let queues = [QUEUE, PRIORITY, DEADLINE, ATTEMPTS, WEBHOOK];
    kept_headers(headers, |name| match name {
        "content-type" | "anthropic-version" | "anthropic-beta" => true,
        name => name.starts_with(OWN) && !queues.contains(&name),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderName;

    const NOW: u64 = 1_700_000_000_000;
    const HOUR: u64 = 3_600_000;

    fn read(headers: &[(&'static str, &str)]) -> Result<Options, String> {
        let headers = headers.iter().map(|(name, value)| {
            let name = HeaderName::from_static(name);
            (name, value.parse().unwrap())
        });
        Options::from_headers(&headers.collect(), NOW).map_err(|error| error.message)
    }

    #[test]
    fn without_its_header_a_request_is_not_queued() {
        let options = read(&[]).unwrap();
        assert_eq!((options.when, options.priority), (None, Priority::Normal));
        assert_eq!(options.deadline_ms, NOW + 24 * HOUR);
        assert_eq!(
            (options.max_attempts, options.webhook, options.key),
            (300, None, None)
        );
    }

    #[test]
    fn each_header_is_read() {
        let options = read(&[
            (QUEUE, "allow"),
            (PRIORITY, "high"),
            (DEADLINE, "2h"),
            (ATTEMPTS, "7"),
            (WEBHOOK, "http://127.0.0.1:9/done?x=1"),
            (KEY, "night-1"),
        ]);
        let options = options.unwrap();
        assert_eq!(
            (options.when, options.priority),
            (Some(QueueMode::Allow), Priority::High)
        );
        assert_eq!(
            (options.deadline_ms, options.max_attempts),
            (NOW + 2 * HOUR, 7)
        );
        assert_eq!(
            options.webhook.as_deref(),
            Some("http://127.0.0.1:9/done?x=1")
        );
        assert_eq!(options.key.as_deref(), Some("night-1"));
        let moment = read(&[(DEADLINE, "2023-11-15T00:13:20+01:00")]).unwrap();
        assert_eq!(moment.deadline_ms, NOW + HOUR);
        let week = read(&[(DEADLINE, "7d")]).unwrap();
        assert_eq!(week.deadline_ms, NOW + 7 * 24 * HOUR);
    }

    #[test]
    fn an_invalid_header_is_refused_by_its_name() {
        for (name, value) in [
            (QUEUE, "maybe"),
            (PRIORITY, "urgent"),
            (DEADLINE, "soon"),
            (DEADLINE, "0s"),
            (DEADLINE, "169h"),
            (DEADLINE, "30d"),
            (DEADLINE, "2020-01-01T00:00:00Z"),
            (DEADLINE, "2030-01-01T00:00:00Z"),
            (ATTEMPTS, "0"),
            (ATTEMPTS, "1001"),
            (WEBHOOK, "here"),
            (WEBHOOK, "ftp://a.example/x"),
            (WEBHOOK, "https://me:secret@a.example/x"),
            (KEY, ""),
            (KEY, &"k".repeat(256)),
        ] {
            let error = read(&[(name, value)]).unwrap_err();
            assert!(error.contains(name), "{value}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn a_deadline_beyond_a_week_is_refused_as_too_long() {
        for long in ["200h", "30d"] {
            let error = read(&[(DEADLINE, long)]).unwrap_err();
            assert!(error.contains("longer than a week"), "{error}");
        }
        let error = read(&[(DEADLINE, "soon")]).unwrap_err();
        assert!(error.contains("is not a duration"), "{error}");
    }

    #[test]
    fn secrets_are_not_kept() {
        let headers = [
            ("authorization", "Bearer x"),
            ("cookie", "a=b"),
            ("x-api-key", "k"),
            (QUEUE, "only"),
            ("x-tierbar-tier", "fast"),
            ("content-type", "application/json"),
        ];
        let headers = headers.iter().map(|(name, value)| {
            let name = HeaderName::from_static(name);
            (name, value.parse().unwrap())
        });
        let mut kept = of_the_request(&headers.collect());
        kept.sort();
        let names: Vec<_> = kept.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["content-type", "x-tierbar-tier"]);
    }
}
