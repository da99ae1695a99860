//! Tasks: their answers, and the parts of them that need no model.

pub mod aggregate;
pub mod delimited;
pub mod email;
pub mod entries;
pub mod facts;
pub mod fallback;
mod line;
pub mod pieces;
pub mod saved;
mod terms;
mod text_line;
pub mod triage;

use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

tierbar_core::words! {
    #[derive(
        Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
    )]
    pub enum Task {
        Triage = "triage",
        Compress = "compress",
        Summarize = "summarize",
        Brief = "brief",
    }
}

impl fmt::Display for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Counts words as people do.
pub fn count_words(text: &str) -> usize {
    text.split_whitespace()
        .filter(|word| word.chars().any(char::is_alphanumeric))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tasks_name_is_what_serde_writes() {
        for task in Task::ALL {
            assert_eq!(serde_json::to_value(task).unwrap(), task.as_str());
        }
    }

    #[test]
    fn a_dash_is_not_a_word() {
        assert_eq!(count_words("three small – words -"), 3);
        assert_eq!(count_words(" \n"), 0);
    }
}
