//! Who may reach the API, and how.

use super::with_defaults;
use serde::{Deserialize, Serialize};

with_defaults! {
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
    pub struct ServerConfig {
        /// Allow `listen` to be an address that other machines can reach.
        pub network: bool,
        /// Require TLS of other machines; connections from this one need not use it.
        pub tls: bool,
        /// A PEM file, as an absolute path or from `~`; empty for a certificate that Tierbar creates in the data folder.
        pub certificate: String,
        /// The certificate's private key: a PEM file, as an absolute path or from `~`; empty for one that Tierbar creates.
        pub key: String,
        /// More names of this machine that clients use.
        pub names: Vec<String>,
        /// Require a key for inference on loopback too.
        pub require_keys: bool,
        /// Answer on 127.0.0.1:11434 as well, where clients look for Ollama, unless Ollama is running there.
        pub act_as_ollama: bool,
        /// The most inference requests in progress, waiting ones included.
        pub requests_at_once: u16 = 256,
    }
}

impl ServerConfig {
    pub const REQUESTS_AT_ONCE: std::ops::RangeInclusive<u16> = 1..=4096;

    /// # Errors
    /// Why it is not a host name in lower case.
    pub fn check_name(name: &str) -> Result<(), String> {
        let label = |label: &str| {
            let allowed =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            (1..=63).contains(&label.len()) && label.bytes().all(allowed)
        };
        if name.len() <= 253 && name.split('.').all(label) {
            return Ok(());
        }
        Err(format!(
            "\"{name}\" is not a host name: write it as mac-mini.local, without a port"
        ))
    }
}

/// The contents of Tierbar's own log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct LogConfig {
    /// Log requests with their prompts. Otherwise none of their text is written.
    pub prompts: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_names_are_host_names() {
        for good in ["mac-mini", "mac-mini.local", "a.b.c1"] {
            assert_eq!(ServerConfig::check_name(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "a b",
            "Mac.local",
            "a:1",
            "http://a",
            "a..b",
            "*.a",
            "ä",
        ] {
            assert!(ServerConfig::check_name(bad).is_err(), "{bad}");
        }
    }
}
