//! Numbers as people write them: `1,200`, `3.5 %`, `14:30`, `€40`, `v2.1.0`.

use std::collections::BTreeSet;

#[derive(Debug)]
pub(super) struct Number<'a> {
    pub(super) at: usize,
    pub(super) words: &'a str,
    /// Its value in a canonical form.
    pub(super) value: String,
}

/// Returns the numbers written in digits.
pub(super) fn in_text(text: &str) -> impl Iterator<Item = Number<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let begin = at + text[at..].find(|c: char| c.is_ascii_digit())?;
        let mut end = begin;
        let bytes = text.as_bytes();
        while let Some(byte) = bytes.get(end) {
            let next_is_digit = bytes.get(end + 1).is_some_and(u8::is_ascii_digit);
            let goes_on =
                byte.is_ascii_digit() || (matches!(byte, b'.' | b',' | b':') && next_is_digit);
            if !goes_on {
                break;
            }
            end += 1;
        }
        at = end;
        let words = &text[begin..end];
        Some(Number {
            at: begin,
            words,
            value: value(words),
        })
    })
}

/// Returns all values in a text, including number words up to twelve.
pub(super) fn values(text: &str) -> BTreeSet<String> {
    const IN_WORDS: [&str; 13] = [
        "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
        "eleven", "twelve",
    ];
    let words = text.split(|c: char| !c.is_alphabetic());
    let spelled = words.filter_map(|word| {
        let at = IN_WORDS
            .iter()
            .position(|name| word.eq_ignore_ascii_case(name))?;
        Some(at.to_string())
    });
    let written = in_text(text).map(|number| number.value);
    written.chain(spelled).collect()
}

/// `1,200` is `1200`, `2.50` is `2.5` and so is `2,50`; a time and a version stay what they are.
fn value(words: &str) -> String {
    let marks = words.bytes().filter(|byte| !byte.is_ascii_digit());
    let marks: Vec<_> = marks.collect();
    let last = words.rsplit(['.', ',']).next().unwrap_or_default();
    let one_kind = marks.windows(2).all(|two| two[0] == two[1]);
    let groups_of_three = words
        .split(['.', ','])
        .skip(1)
        .all(|group| group.len() == 3);
    match marks.as_slice() {
        _ if marks.contains(&b':') => return words.to_owned(),
        [] => {}
        // `1.200.000`, `1,200`: a thousand of something more often than a thousandth.
        _ if one_kind && groups_of_three && !words.starts_with('0') => {
            return plain(&words.replace(['.', ','], ""), "");
        }
        [_] => return plain(words.split(['.', ',']).next().unwrap_or_default(), last),
        // `1,200.50`
        _ if !one_kind
            && marks[..marks.len() - 1]
                .windows(2)
                .all(|two| two[0] == two[1]) =>
        {
            let whole = &words[..words.len() - last.len() - 1];
            return plain(&whole.replace(['.', ','], ""), last);
        }
        _ => return words.to_owned(),
    }
    plain(words, "")
}

fn plain(whole: &str, part: &str) -> String {
    let whole = whole.trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let part = part.trim_end_matches('0');
    if part.is_empty() {
        whole.to_owned()
    } else {
        format!("{whole}.{part}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_recognized_in_any_notation() {
        for (words, is) in [
            ("1200", "1200"),
            ("1,200", "1200"),
            ("1.200.000", "1200000"),
            ("1,200.50", "1200.5"),
            ("1.200,50", "1200.5"),
            ("2,50", "2.5"),
            ("2.0", "2"),
            ("007", "7"),
            ("0", "0"),
            ("0.125", "0.125"),
            ("14:30", "14:30"),
            ("2.1.0", "2.1.0"),
            ("10.0.0.1", "10.0.0.1"),
        ] {
            let numbers: Vec<_> = in_text(words).collect();
            assert_eq!((numbers.len(), &*numbers[0].value), (1, is), "{words}");
        }
    }

    #[test]
    fn numbers_are_found_among_other_text() {
        let found: Vec<_> = in_text("€40, 3.5 %. v2 (14:30), q3; ½ x9.")
            .map(|number| number.words)
            .collect();
        assert_eq!(found, ["40", "3.5", "2", "14:30", "3", "9"]);
        assert_eq!(
            values("Twelve of 9, none"),
            BTreeSet::from(["12".to_owned(), "9".to_owned()])
        );
    }
}
