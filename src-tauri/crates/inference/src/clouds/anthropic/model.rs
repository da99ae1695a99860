//! The fields that a model accepts, by its name: each of Anthropic's models refuses fields that another needs, with a status of 400.

/// In the order of their years.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Generation {
    /// Of another maker. Its server does as the first of Claude that think did.
    Other,
    /// Claude before 4.6: thinks as far as a budget of tokens goes.
    Budgeted,
    /// 4.6: thinks as it sees fit.
    Adaptive,
    /// 4.7 and 4.8: takes no temperature any more.
    Unsampled,
    /// 5 and what has no number: thinks unless its effort is low, unasked.
    Thinking,
}

impl Generation {
    pub(super) fn of(model: &str) -> Self {
        let name = model.to_ascii_lowercase();
        let Some((_, name)) = name.split_once("claude") else {
            return Self::Other;
        };
        // A number of more digits is a date.
        let mut numbers = name
            .split(|letter: char| !letter.is_ascii_alphanumeric())
            .filter(|part| part.len() <= 2)
            .filter_map(|part| part.parse::<u8>().ok());
        let Some(major) = numbers.next() else {
            return Self::Thinking;
        };
        match (major, numbers.next().unwrap_or(0)) {
            (5.., _) => Self::Thinking,
            (4, 7..) => Self::Unsampled,
            (4, 6) => Self::Adaptive,
            _ => Self::Budgeted,
        }
    }

    pub(super) fn takes_temperature(self) -> bool {
        self <= Self::Adaptive
    }

    pub(super) fn has_effort(self) -> bool {
        self >= Self::Adaptive
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_models_name_gives_its_generation() {
        for (name, generation) in [
            ("qwen3:8b", Generation::Other),
            ("claude-3-5-sonnet-20241022", Generation::Budgeted),
            ("claude-sonnet-4-20250514", Generation::Budgeted),
            ("claude-haiku-4-5@20251001", Generation::Budgeted),
            ("us.anthropic.claude-opus-4-6-v1:0", Generation::Adaptive),
            ("anthropic/claude-opus-4.7", Generation::Unsampled),
            ("Claude-Sonnet-5", Generation::Thinking),
            ("claude-fable-5-1", Generation::Thinking),
            ("claude-opus-10", Generation::Thinking),
            ("claude-mythos-preview", Generation::Thinking),
        ] {
            assert_eq!(Generation::of(name), generation, "{name}");
        }
    }
}
