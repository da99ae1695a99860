//! API keys as the API returns them: their limits and use. The key itself is returned once, when it is created.

use serde::{Deserialize, Serialize};

/// The limits of one key; a missing limit does not apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct KeyLimits {
    /// Burst size; refills evenly over a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u32>,
    /// Tokens of prompts and answers together; refills evenly over a day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_day: Option<u64>,
    /// The most requests that wait or are answered at the same time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_once: Option<u32>,
}

impl KeyLimits {
    /// # Errors
    /// The limit that would allow no request.
    pub fn check(&self) -> Result<(), String> {
        let zero = [
            ("requests_per_minute", self.requests_per_minute == Some(0)),
            ("tokens_per_day", self.tokens_per_day == Some(0)),
            ("at_once", self.at_once == Some(0)),
        ];
        match zero.iter().find(|(_, zero)| *zero) {
            None => Ok(()),
            Some((limit, _)) => Err(format!(
                "{limit} is 0, which lets nothing through: leave it out for no limit, or revoke the key"
            )),
        }
    }
}

/// A key without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ApiKey {
    pub name: String,
    #[serde(flatten)]
    pub limits: KeyLimits,
    /// Milliseconds since 1970, like the other times.
    pub created_ms: u64,
    /// Accurate to about a minute.
    pub last_used_ms: Option<u64>,
    pub revoked_ms: Option<u64>,
}

/// # Errors
/// What a key's name may be.
pub fn check_name(name: &str) -> Result<(), String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let fits = (1..=64).contains(&name.len())
        && name.bytes().all(allowed)
        && name.bytes().any(|byte| byte.is_ascii_alphanumeric());
    if fits {
        return Ok(());
    }
    Err("a key's name has 1 to 64 letters, digits, -, _ and .".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_names_are_safe_in_paths_and_logs() {
        for good in ["a", "nightly-job", "Open.WebUI_2", &"x".repeat(64)] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        for bad in ["", ".", "..", "a b", "a/b", "ä", "a\n", &"x".repeat(65)] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_limit_of_zero_is_refused() {
        let limits = KeyLimits {
            at_once: Some(0),
            ..KeyLimits::default()
        };
        assert!(limits.check().unwrap_err().starts_with("at_once is 0"));
        assert_eq!(KeyLimits::default().check(), Ok(()));
    }
}
