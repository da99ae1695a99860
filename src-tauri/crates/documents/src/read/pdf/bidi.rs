//! Hebrew, Arabic and other scripts that are read from the right: a page has their letters by place, from left to right.

/// Returns the reading order of letters that stand from left to right.
pub(super) fn reading_order(line: &str) -> String {
    let letters: Vec<char> = line.chars().collect();
    let count = |is: fn(char) -> bool| letters.iter().filter(|&&letter| is(letter)).count();
    let from_right = count(is_from_right);
    if from_right == 0 {
        return line.to_owned();
    }
    let mut ordered = String::with_capacity(line.len());
    if from_right >= count(is_from_left) {
        reverse(&letters, &mut ordered);
        return ordered;
    }
    // A quotation in a line that is read from the left.
    let mut at = 0;
    while at < letters.len() {
        if !is_from_right(letters[at]) {
            ordered.push(letters[at]);
            at += 1;
            continue;
        }
        let rest = &letters[at..];
        let end = rest
            .iter()
            .position(|&letter| is_from_left(letter))
            .unwrap_or(rest.len());
        let end = rest[..end]
            .iter()
            .rposition(|&letter| is_from_right(letter))
            .map_or(1, |last| last + 1);
        reverse(&rest[..end], &mut ordered);
        at += end;
    }
    ordered
}

/// Adds letters from the last to the first; words and numbers among them that are read from the left stay as they are.
fn reverse(letters: &[char], ordered: &mut String) {
    let mut end = letters.len();
    while end > 0 {
        let last = letters[end - 1];
        if !keeps_direction(last) {
            ordered.push(mirror_bracket(last));
            end -= 1;
            continue;
        }
        let run = run_start(&letters[..end]);
        ordered.extend(&letters[run..end]);
        end = run;
    }
}

/// Where the words or the number begin that end with these letters.
fn run_start(letters: &[char]) -> usize {
    let between =
        |letter: char| matches!(letter, '.' | ',' | ':' | '/' | '-' | '\'' | '@' | '_' | ' ');
    let before = letters
        .iter()
        .rposition(|&letter| !keeps_direction(letter) && !between(letter));
    let run = before.map_or(0, |before| before + 1);
    if letters[run..].iter().any(|&letter| is_from_left(letter)) {
        let first = letters[run..]
            .iter()
            .position(|&letter| keeps_direction(letter));
        return run + first.unwrap_or_default();
    }
    // Of several numbers, each stays as it is.
    let mut start = letters.len();
    while let Some(&letter) = start.checked_sub(1).and_then(|at| letters.get(at)) {
        let joins =
            between(letter) && letter != ' ' && start >= 2 && letters[start - 2].is_numeric();
        if !letter.is_numeric() && !joins {
            break;
        }
        start -= 1;
    }
    start
}

fn keeps_direction(letter: char) -> bool {
    is_from_left(letter) || letter.is_numeric()
}

fn mirror_bracket(letter: char) -> char {
    // Each beside its other.
    let brackets = ['(', ')', '[', ']', '{', '}', '<', '>', '«', '»'];
    let found = brackets.iter().position(|&bracket| bracket == letter);
    found.map_or(letter, |at| brackets[at ^ 1])
}

fn is_from_left(letter: char) -> bool {
    letter.is_alphabetic() && !is_from_right(letter)
}

/// Whether a letter is of a script that is read from the right.
pub(super) fn is_from_right(letter: char) -> bool {
    let is_digit = matches!(letter, '\u{660}'..='\u{669}' | '\u{6f0}'..='\u{6f9}');
    !is_digit
        && matches!(
            letter,
            '\u{590}'..='\u{8ff}'
                | '\u{fb1d}'..='\u{fdff}'
                | '\u{fe70}'..='\u{fefe}'
                | '\u{10800}'..='\u{10fff}'
                | '\u{1e800}'..='\u{1efff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_from_the_right_are_read_in_their_order() {
        assert_eq!(reading_order("plain (text)"), "plain (text)");
        assert_eq!(reading_order("םלוע םולש"), "שלום עולם");
        assert_eq!(
            reading_order("(25.5 ,2024) תנש PDF 3 ץבוק"),
            "קובץ PDF 3 שנת (2024, 25.5)"
        );
        assert_eq!(
            reading_order("He said םלוע םולש, twice."),
            "He said שלום עולם, twice."
        );
    }
}
