//! Names: capitalized words that do not start a sentence.

use std::collections::BTreeSet;

#[derive(Debug)]
pub(super) struct Name<'a> {
    pub(super) at: usize,
    /// One word or several, such as `Ada Lovelace`.
    pub(super) words: &'a str,
}

impl<'a> Name<'a> {
    /// Its words, as [`words`] has them.
    pub(super) fn each(&self) -> impl Iterator<Item = String> + use<'a> {
        split(self.words).map(|(_, word)| plain(word))
    }
}

/// From this many words on, a text shows whether it has capitals everywhere,
const TELLING: usize = 25;
/// which it does if more than this percentage of its words start a name: German nouns are about a quarter of all words.
const TOO_MANY: usize = 20;

/// Capitalized words that are not names.
const NOT_NAMES: [&str; 6] = ["I", "I'm", "I'll", "I've", "I'd", "OK"];

/// All words of a text, without case and possessive.
pub(super) fn words(text: &str) -> BTreeSet<String> {
    split(text).map(|(_, word)| plain(word)).collect()
}

/// Returns the names; `None` if capitals do not mark names in this text.
pub(super) fn in_text(text: &str) -> Option<Vec<Name<'_>>> {
    let all: Vec<_> = split(text).collect();
    let mut inside = 0;
    let mut names: Vec<Name> = Vec::new();
    let mut before: Option<usize> = None;
    for (index, &(at, word)) in all.iter().enumerate() {
        let end_before = index
            .checked_sub(1)
            .map_or(0, |last| all[last].0 + all[last].1.len());
        let gap = &text[end_before..at];
        if index == 0 || begins_sentence(gap, all[index - 1].1) {
            before = None;
            continue;
        }
        inside += 1;
        let named = word.starts_with(char::is_uppercase) && !NOT_NAMES.contains(&word);
        if !named {
            before = None;
            continue;
        }
        match (before, names.last_mut()) {
            (Some(from), Some(name)) if gap == " " => {
                name.words = &text[from..at + word.len()];
            }
            _ => {
                before = Some(at);
                names.push(Name { at, words: word });
            }
        }
    }
    let everywhere = inside >= TELLING && names.len() * 100 > inside * TOO_MANY;
    let has_case = text.chars().any(char::is_lowercase);
    (has_case && !everywhere).then_some(names)
}

/// Words of letters and digits that begin with a letter, with marks inside such as those of `O'Brien` and `llama.cpp`.
fn split(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let parts = text.split(|c: char| {
        !(c.is_alphanumeric() || matches!(c, '\'' | '’' | '-' | '.' | '_' | '&' | '@'))
    });
    parts.filter_map(move |part| {
        let word = part.trim_matches(|c: char| !c.is_alphanumeric());
        let at = word.as_ptr() as usize - text.as_ptr() as usize;
        word.starts_with(char::is_alphabetic).then_some((at, word))
    })
}

fn plain(word: &str) -> String {
    let word = word.to_lowercase();
    let owner = word
        .strip_suffix("'s")
        .or_else(|| word.strip_suffix("’s"))
        .unwrap_or(&word);
    owner.to_owned()
}

fn begins_sentence(gap: &str, before: &str) -> bool {
    let ends = gap.contains(['!', '?', ':', '\n', '"', '“', '•', '*', '#', '。']);
    // A short word with a full stop is a title or an initial: `Dr. Chen`, `J. Smith`.
    let mut letters = before.chars();
    let capital = letters.next().is_some_and(char::is_uppercase);
    let short = capital
        && before.chars().count() <= 3
        && letters.all(char::is_lowercase)
        && !NOT_NAMES.contains(&before);
    ends || (gap.contains('.') && !short)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<&str> {
        let found = in_text(text).unwrap();
        found.into_iter().map(|name| name.words).collect()
    }

    #[test]
    fn a_name_is_a_capitalized_word_within_a_sentence() {
        assert_eq!(
            names("Yesterday Ada Lovelace met Dr. Chen in Paris, and I said OK. They left."),
            ["Ada Lovelace", "Dr", "Chen", "Paris"]
        );
        assert_eq!(
            names("We use Tierbar's API; then PostgreSQL and O'Brien-Smith: Fine. \"No\""),
            ["Tierbar's API", "PostgreSQL", "O'Brien-Smith"]
        );
        assert_eq!(names("nothing here"), [""; 0]);
    }

    #[test]
    fn names_need_a_text_that_uses_capitals_for_them() {
        let german = "Gestern hat der Minister im Bundestag eine Rede über das Gesetz zur Steuer gehalten und \
            dabei die Pläne der Regierung für das Jahr und die Ziele der Partei sowie den Haushalt erklärt.";
        assert!(in_text(german).is_none());
        assert!(in_text("ALL OF IT IN CAPITALS").is_none());
        assert!(in_text("今日は東京で会議があった。").is_none());
        assert!(in_text("").is_none());
    }

    #[test]
    fn names_match_regardless_of_case_and_possessive() {
        assert!(words("ADA's plan").contains("ada"));
        let name = Name {
            at: 0,
            words: "Ada’s Plan",
        };
        assert_eq!(name.each().collect::<Vec<_>>(), ["ada", "plan"]);
    }
}
