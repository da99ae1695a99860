//! The interface between the users of a model and the owner of the processes.

use crate::{Error, ModelId, TierId, config::Dialect, status::TierStatus};
use serde::Deserialize;
use std::{future::Future, path::PathBuf, pin::Pin, time::Duration};

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where a loaded tier answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// Our worker: HTTP over a Unix socket.
    Unix(PathBuf),
    Foreign(Foreign),
}

/// A command or an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    pub at: Address,
    /// The name that it uses for its model; `None` to send none.
    pub model: Option<String>,
    /// The server's API; OpenAI's for a command.
    pub dialect: Dialect,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A command's, over a Unix socket.
    Unix(PathBuf),
    /// A command's, on 127.0.0.1.
    Port(u16),
    /// An endpoint's `http` or `https` URL, to which `/v1/…` is added.
    Url(String),
}

/// How long a tier stays loaded after a request. Written like Ollama's `keep_alive`: seconds as a number, or a text such as
/// `"5m"` or `"1h30m"`; 0 unloads it at once, a negative value keeps it loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "serde_json::Value")]
pub struct KeepAlive(Option<Duration>);

impl KeepAlive {
    /// Returns the duration; `None` to keep the tier loaded.
    pub fn length(self) -> Option<Duration> {
        self.0
    }

    fn seconds(seconds: f64) -> Option<Self> {
        // Longer times count as unlimited.
        const LONGEST: f64 = 1e9;
        let is_limited = (0.0..=LONGEST).contains(&seconds);
        let length = is_limited.then(|| Duration::from_secs_f64(seconds));
        (!seconds.is_nan()).then_some(Self(length))
    }

    /// Parses numbers with units, as Go's durations, or plain seconds.
    fn text(text: &str) -> Option<Self> {
        let (sign, mut rest) = match text.strip_prefix('-') {
            Some(rest) => (-1.0, rest),
            None => (1.0, text),
        };
        let is_plain = rest
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.');
        if let (true, Ok(plain)) = (is_plain, rest.parse::<f64>()) {
            return Self::seconds(sign * plain);
        }
        let mut seconds = 0.0;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
            let (number, after) = rest.split_at(digits.unwrap_or(rest.len()));
            let units = after.find(|c: char| c.is_ascii_digit());
            let (unit, after) = after.split_at(units.unwrap_or(after.len()));
            let unit = match unit {
                "ms" => 0.001,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                _ => return None,
            };
            seconds += number.parse::<f64>().ok()? * unit;
            rest = after;
        }
        Self::seconds(sign * seconds).filter(|_| text.ends_with(char::is_alphabetic))
    }
}

impl TryFrom<serde_json::Value> for KeepAlive {
    type Error = String;
    fn try_from(value: serde_json::Value) -> Result<Self, String> {
        let read = match &value {
            serde_json::Value::Number(number) => number.as_f64().and_then(Self::seconds),
            serde_json::Value::String(text) => Self::text(text),
            _ => None,
        };
        read.ok_or_else(|| {
            format!("keep_alive is a number of seconds or a time such as \"5m\", not {value}")
        })
    }
}

/// What a lease is for: which requests it may pass, and for which it gives way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Purpose {
    #[default]
    Answer,
    /// An answer that takes no longer than [`Purpose::BRIEF`]: it may pass an older request for another tier for as long as
    /// that has to wait for a longer answer.
    Brief,
    /// No client waits for it: it passes no other, and gives way to a request for another tier.
    Background,
}

impl Purpose {
    pub const BRIEF: Duration = Duration::from_secs(5);
}

/// The right to use a loaded tier. While it is held, the tier is unloaded only by force; dropping it releases the tier.
pub trait Lease: Send + Sync + std::fmt::Debug {
    fn tier(&self) -> &TierId;
    fn model(&self) -> &ModelId;
    fn endpoint(&self) -> &Endpoint;
    /// Sets how long the tier stays loaded after this lease, in place of its configuration, until the next lease
    /// that is not in the background.
    fn keep(&self, keep: KeepAlive);
    /// Resolves when the tier's worker has ended, with the reason that its owner saw; pends while it lives.
    fn ended(&self) -> BoxFuture<'_, Error>;
    /// Resolves with the reason when its holder has to end its answer, although no worker ends. `None` for a lease that is
    /// never taken back.
    fn revoked(&self) -> Option<BoxFuture<'_, Error>> {
        None
    }
}

/// The tiers, as seen by the gateway and the shell. Owned by the supervisor.
pub trait Tiers: Send + Sync + std::fmt::Debug {
    /// Waits until the tier is loaded and grants a lease on it. Loads it if necessary, and unloads others that do not fit
    /// beside it.
    ///
    /// Cancel-safe: dropping the future leaves the queue, and a request that has left never causes a load.
    fn lease_for(
        &self,
        tier: &TierId,
        purpose: Purpose,
    ) -> BoxFuture<'_, Result<Box<dyn Lease>, Error>>;

    /// As [`Self::lease_for`] an answer of any length.
    fn lease(&self, tier: &TierId) -> BoxFuture<'_, Result<Box<dyn Lease>, Error>> {
        self.lease_for(tier, Purpose::Answer)
    }

    /// Loads the tier and returns once it is ready, or with the reason why not.
    fn start(&self, tier: &TierId) -> BoxFuture<'_, Result<(), Error>>;

    /// Ends the tier's process and returns once it is gone. Waits for leases first, unless `force`.
    fn stop(&self, tier: &TierId, force: bool) -> BoxFuture<'_, Result<(), Error>>;

    /// Announces a request for the tier: loads it if there is room or idle tiers can make some, without delaying requests.
    /// Returns at once.
    fn expect(&self, tier: &TierId);

    /// The tiers as they are now, in reading order. Advisory: never decide a mutation by it.
    fn snapshot(&self) -> Vec<TierStatus>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: serde_json::Value) -> Option<Option<u128>> {
        let keep: KeepAlive = serde_json::from_value(value).ok()?;
        Some(keep.length().map(|length| length.as_millis()))
    }

    #[test]
    fn keep_alive_is_parsed_as_in_ollama() {
        for (value, milliseconds) in [
            (json!(300), 300_000),
            (json!(0), 0),
            (json!(1.5), 1500),
            (json!("5m"), 300_000),
            (json!("1h30m"), 5_400_000),
            (json!("10m0s"), 600_000),
            (json!("1.5h"), 5_400_000),
            (json!("250ms"), 250),
            (json!("90"), 90_000),
            (json!("300.5"), 300_500),
            (json!("0"), 0),
        ] {
            assert_eq!(read(value.clone()), Some(Some(milliseconds)), "{value}");
        }
        for for_good in [
            json!(-1),
            json!("-1m"),
            json!("-1"),
            json!(1e300),
            json!("99999999999h"),
        ] {
            assert_eq!(read(for_good.clone()), Some(None), "{for_good}");
        }
        for wrong in [
            json!(null),
            json!(""),
            json!("-"),
            json!("m"),
            json!("5x"),
            json!("5m3"),
            json!("1.2.3s"),
            json!([5]),
            json!("NaN"),
        ] {
            assert_eq!(read(wrong.clone()), None, "{wrong}");
        }
    }
}
