//! The words of two texts compared, without knowing their language.

/// Shorter words are mostly articles and prepositions.
const SHORTEST: usize = 4;

/// Returns the words and numbers of a text in lower case.
pub(crate) fn terms(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// Whether a term is a word that says what a text is about. In scripts without case, words do not stand apart.
pub(crate) fn is_telling(term: &str) -> bool {
    let has_case = term.chars().any(|c| c.is_lowercase() || c.is_uppercase());
    has_case && term.chars().count() >= SHORTEST
}

/// Whether two terms are the same but for an ending, as `disk` and `disks` are.
pub(crate) fn are_alike(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() <= other.len() {
        (one, other)
    } else {
        (other, one)
    };
    short == long || (is_telling(short) && long.starts_with(short))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_alike_but_for_their_endings() {
        for (one, other, alike) in [
            ("disk", "disks", true),
            ("errors", "error", true),
            ("12", "12", true),
            ("1234", "12345", false),
            ("the", "they", false),
            ("full", "empty", false),
        ] {
            assert_eq!(are_alike(one, other), alike, "{one} {other}");
        }
        let found: Vec<_> = terms("Größe 12, so-called").collect();
        assert_eq!(found, ["größe", "12", "so", "called"]);
        for (term, telling) in [
            ("disk", true),
            ("the", false),
            ("2026", false),
            ("磁盘空间", false),
        ] {
            assert_eq!(is_telling(term), telling, "{term}");
        }
    }
}
