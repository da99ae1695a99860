//! A tier: a named slot for one model, and its states.

use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// A tier's name: 1 to 32 of `a-z`, `0-9`, `-`, starting with a letter, and not `auto`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String)]
pub struct TierId(String);

impl TierId {
    /// The name that clients use to let the router choose.
    pub const AUTO: &'static str = "auto";
    /// The tier that answers requests for embeddings that name no model.
    pub const EMBEDDER: &'static str = "embedder";
    /// The tier that ranks documents in requests that name no model.
    pub const RERANKER: &'static str = "reranker";

    /// # Errors
    /// What a tier's name may be, in a sentence.
    pub fn new(name: impl Into<String>) -> Result<Self, String> {
        let name = name.into();
        let plain = name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if name.is_empty()
            || name.len() > 32
            || !plain
            || !name.starts_with(|c: char| c.is_ascii_lowercase())
        {
            return Err(format!(
                "\"{name}\" cannot name a tier: use 1 to 32 of a-z, 0-9 and -, starting with a letter"
            ));
        }
        if name == Self::AUTO {
            return Err("\"auto\" is the router's name and cannot name a tier".to_owned());
        }
        Ok(Self(name))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns what the menu and the window call the tier: `Fast`, `Everyday`, `Deep`, and others by their names.
    pub fn title(&self) -> String {
        match self.as_str() {
            "fast" => "Fast".to_owned(),
            "primary" => "Everyday".to_owned(),
            "heavy" => "Deep".to_owned(),
            name => {
                let (first, rest) = name.split_at(1);
                first.to_ascii_uppercase() + rest
            }
        }
    }
}

impl TryFrom<String> for TierId {
    type Error = String;
    fn try_from(name: String) -> Result<Self, String> {
        Self::new(name)
    }
}

impl From<TierId> for String {
    fn from(id: TierId) -> Self {
        id.0
    }
}

impl fmt::Display for TierId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a tier's memory is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum TierKind {
    /// It takes turns with other tiers if the budget has no room for both.
    #[default]
    Generative,
    /// A small model for embeddings or reranking, in the slot that every plan of a generative tier leaves free.
    Embedder,
}

/// `stopped → starting → ready ⇄ busy → stopping → stopped`, and `failed`, which the next request leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum TierState {
    Stopped,
    Starting,
    Ready,
    /// Ready, with at least one lease held.
    Busy,
    Stopping,
    Failed,
}

impl TierState {
    /// Returns whether a process of this tier exists and may hold memory.
    pub fn holds_memory(self) -> bool {
        matches!(
            self,
            Self::Starting | Self::Ready | Self::Busy | Self::Stopping
        )
    }
}

impl fmt::Display for TierState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_would_break_a_path_or_the_router_are_refused() {
        for name in [
            "",
            "auto",
            "Fast",
            "a b",
            "../x",
            "-a",
            "1st",
            "fäst",
            &"a".repeat(33),
        ] {
            assert!(TierId::new(name).is_err(), "{name:?} was accepted");
        }
        assert!(TierId::new("fast-2").is_ok());
    }

    #[test]
    fn each_tier_has_a_title() {
        for (id, title) in [
            ("fast", "Fast"),
            ("primary", "Everyday"),
            ("heavy", "Deep"),
            ("coder", "Coder"),
        ] {
            assert_eq!(TierId::new(id).unwrap().title(), title);
        }
    }
}
