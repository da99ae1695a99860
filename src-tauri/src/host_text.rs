//! The host's texts as the menu and notifications write them: short, with the units of the window, and tiers by their titles.

use tierbar_core::status::TierStatus;

/// The most characters of a line.
const WIDTH: usize = 60;

/// Writes a sentence of the event log as the window does.
pub(crate) fn sentence(text: &str) -> String {
    format!("{}.", capitalize(&with_units(text)))
}

/// Shortens a text to one line of at most [`WIDTH`] characters: to its first parts if it has any, else between words.
pub(crate) fn line(text: &str, tiers: &[TierStatus]) -> String {
    let text = capitalize(&with_titles(&with_units(text), tiers));
    if text.chars().count() <= WIDTH {
        return text;
    }
    // The last cut that fits, in bytes.
    let fits = |at: usize| text[..at].chars().count() <= WIDTH;
    let parts = ["; ", ": ", ", ", " ("].into_iter();
    let cut = parts
        .flat_map(|mark| text.match_indices(mark))
        .map(|(at, _)| at)
        .filter(|&at| fits(at) && text[..at].split_whitespace().count() >= 3)
        .max();
    if let Some(at) = cut {
        return text[..at].to_owned();
    }
    let words = text.match_indices(' ').map(|(at, _)| at);
    match words
        .take_while(|&at| text[..at].chars().count() < WIDTH)
        .last()
    {
        Some(at) => format!("{}…", &text[..at]),
        None => text.chars().take(WIDTH - 1).chain(['…']).collect(),
    }
}

/// Capitalizes the first word, unless it is a name, such as a file's.
fn capitalize(text: &str) -> String {
    let word = text.split([' ', ',']).next().unwrap_or_default();
    if word.is_empty() || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return text.to_owned();
    }
    let (first, rest) = text.split_at(1);
    first.to_ascii_uppercase() + rest
}

/// The host counts memory in GiB; the window calls them GB, as the system does.
pub(crate) fn with_units(text: &str) -> String {
    text.replace(" GiB", " GB").replace(" MiB", " MB")
}

/// Replaces the ids of tiers, where they are words of their own.
fn with_titles(text: &str, tiers: &[TierStatus]) -> String {
    let word = |word: &str| {
        let name = word.trim_end_matches([',', ';', ':', '.']);
        let tier = tiers.iter().find(|tier| tier.id.as_str() == name);
        tier.map_or_else(
            || word.to_owned(),
            |tier| format!("{}{}", tier.id.title(), &word[name.len()..]),
        )
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::tests::tier_of;
    use tierbar_core::TierState;

    #[test]
    fn a_sentence_has_the_windows_units_and_a_full_stop() {
        assert_eq!(
            sentence("unloaded fast on quit, freed 68 MiB"),
            "Unloaded fast on quit, freed 68 MB."
        );
        assert_eq!(sentence("gemma-3 is ready"), "gemma-3 is ready.");
    }

    #[test]
    fn a_line_is_short_and_names_tiers_as_the_menu_does() {
        let tiers = ["fast", "primary", "heavy"].map(|id| tier_of(id, TierState::Ready));
        for (text, expected) in [
            ("it is paused", "It is paused"),
            (
                "primary was unloaded to make room for heavy; freed 3.0 GiB",
                "Everyday was unloaded to make room for Deep; freed 3.0 GB",
            ),
            (
                "fast is ready after 1.2 s: gemma-3-4b-it-Q4_K_M with 8192 tokens of context, 1.1 GiB allocated and 2.4 GiB mapped from the file",
                "Fast is ready after 1.2 s",
            ),
            (
                "fast is loading m for a request: 1.0 GiB planned of a 9.0 GiB budget",
                "Fast is loading m for a request",
            ),
            (
                "the worker of the tier named coder ended while it was loading its model",
                "The worker of the tier named coder ended while it was…",
            ),
        ] {
            let line = line(text, &tiers);
            assert_eq!(line, expected);
            assert!(line.chars().count() <= WIDTH, "{line}");
        }
        let one_word = line(&"é".repeat(90), &[]);
        assert_eq!(one_word.chars().count(), WIDTH);
    }
}
