//! Makes visible what would be shown as something else than it is, or not be on the screen when it is allowed. Pure, for the terminal and
//! the window alike.

use std::{borrow::Cow, collections::HashSet};

/// More equal lines than this in a row are folded: the rest of a text would leave the screen.
const EQUAL_LINES: usize = 3;
/// A wider blank in a line is folded, because what follows it would leave the screen, too. Code is indented by less.
const BLANK_COLUMNS: usize = 60;
const TAB_COLUMNS: usize = 8;
/// With a longer line, a text is longer than its number of lines says.
const LINE_CHARACTERS: usize = 200;

/// Returns the text as [`VisibleText`] shows it.
pub fn visible(text: &str) -> String {
    VisibleText::default().add(text)
}

/// Makes texts visible, and counts what is unusual in them. Marks stand in `⟨⟩`, which no text can imitate.
#[derive(Debug, Default)]
pub(super) struct VisibleText {
    folded_lines: usize,
    folded_blanks: usize,
    codes: usize,
    mixed_words: usize,
    disguised_words: usize,
    right_to_left: bool,
}

impl VisibleText {
    /// Returns the text with what is not drawn, or changes how the rest is drawn, written as its code; with the codes of letters that
    /// look like those of another alphabet in their word, or make a word look Latin; and with long blanks and repeated lines folded.
    pub(super) fn add(&mut self, text: &str) -> String {
        let lines: Vec<&str> = text.split('\n').collect();
        let is_blank = |line: &str| line.trim_matches([' ', '\t']).is_empty();
        let is_equal = |one: &&str, other: &&str| one == other || is_blank(one) && is_blank(other);
        let mut shown = Vec::new();
        for run in lines.chunk_by(is_equal) {
            let folded = if run.len() > EQUAL_LINES {
                run.len() - 1
            } else {
                0
            };
            shown.extend(run[folded..].iter().map(|line| self.line(line)));
            if folded > 0 {
                self.folded_lines += folded;
                let kind = if is_blank(run[0]) { "blank" } else { "equal" };
                shown.push(format!("⟨{folded} more {kind} lines⟩"));
            }
        }
        shown.join("\n")
    }

    fn line(&mut self, line: &str) -> String {
        let mut shown = String::with_capacity(line.len());
        let is_prose = is_prose_of_another_alphabet(line);
        let mut rest = line;
        while let Some(first) = rest.chars().next() {
            let kind = kind(first);
            let end = rest.find(|letter| self::kind(letter) != kind);
            let (run, after) = rest.split_at(end.unwrap_or(rest.len()));
            rest = after;
            match kind {
                Kind::Blank => shown += &self.blank(run),
                Kind::Word => self.word(run, is_prose, &mut shown),
                Kind::Hidden => {
                    for letter in run.chars() {
                        self.codes += 1;
                        push_code(&mut shown, letter);
                    }
                }
                Kind::Other => shown += run,
            }
        }
        shown
    }

    fn blank<'a>(&mut self, run: &'a str) -> Cow<'a, str> {
        let columns = |letter| if letter == '\t' { TAB_COLUMNS } else { 1 };
        if run.chars().map(columns).sum::<usize>() <= BLANK_COLUMNS {
            return run.into();
        }
        self.folded_blanks += 1;
        format!("⟨{} blanks⟩", run.len()).into()
    }

    fn word(&mut self, word: &str, is_prose: bool, shown: &mut String) {
        let used: HashSet<_> = word.chars().filter_map(alphabet).collect();
        let is_mixed = used.len() > 1;
        let is_disguised = !is_mixed && !is_prose && only_looks_latin(word);
        self.mixed_words += usize::from(is_mixed);
        self.disguised_words += usize::from(is_disguised);
        for letter in word.chars() {
            self.right_to_left |= is_right_to_left(letter);
            shown.push(letter);
            if (is_mixed || is_disguised)
                && alphabet(letter).is_some_and(|alphabet| alphabet != LATIN)
            {
                push_code(shown, letter);
            }
        }
    }

    /// Says how long the text is, and what is unusual in what was added.
    pub(super) fn summary(&self, text: &str) -> String {
        let mut facts = vec![match text.lines().count() {
            1 => "1 line".to_owned(),
            lines => format!("{lines} lines"),
        }];
        let length = |line: &str| line.chars().count();
        let has_long_line = text.lines().any(|line| length(line) > LINE_CHARACTERS);
        let characters = if has_long_line { length(text) } else { 0 };
        let counted = [
            ("characters", characters),
            ("lines folded", self.folded_lines),
            ("blanks folded", self.folded_blanks),
            ("characters shown by code", self.codes),
            ("words in mixed alphabets", self.mixed_words),
            ("words that only look Latin", self.disguised_words),
        ];
        let counted = counted.iter().filter(|(_, count)| *count > 0);
        facts.extend(counted.map(|(what, count)| format!("{what}: {count}")));
        if self.right_to_left {
            facts.push("letters from right to left".to_owned());
        }
        facts.join(", ")
    }
}

fn push_code(shown: &mut String, letter: char) {
    *shown += &format!("⟨U+{:04X}⟩", u32::from(letter));
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Blank,
    Hidden,
    Word,
    Other,
}

fn kind(letter: char) -> Kind {
    match letter {
        ' ' | '\t' => Kind::Blank,
        // What marks begin and end with.
        '⟨' | '⟩' => Kind::Hidden,
        letter if is_hidden(letter) => Kind::Hidden,
        // With accents that stand alone.
        letter if letter.is_alphanumeric() || matches!(letter, '\u{300}'..='\u{36F}') => Kind::Word,
        _ => Kind::Other,
    }
}

const LATIN: u8 = 0;

/// Which of the alphabets with letters that look alike.
fn alphabet(letter: char) -> Option<u8> {
    Some(match letter {
        'A'..='Z' | 'a'..='z' | '\u{C0}'..='\u{24F}' | '\u{1E00}'..='\u{1EFF}' => LATIN,
        // Greek and Coptic.
        '\u{370}'..='\u{3FF}' | '\u{1F00}'..='\u{1FFF}' | '\u{2C80}'..='\u{2CFF}' => 1,
        // Cyrillic.
        '\u{400}'..='\u{52F}' | '\u{1C80}'..='\u{1C8F}' | '\u{A640}'..='\u{A69F}' => 2,
        // Armenian.
        '\u{530}'..='\u{58F}' => 3,
        // Cherokee and Lisu.
        '\u{13A0}'..='\u{13FF}' | '\u{AB70}'..='\u{ABBF}' | '\u{A4D0}'..='\u{A4FF}' => 4,
        // Latin letters for phonetics and mathematics, in circles, as numerals, and of full width.
        '\u{250}'..='\u{2AF}'
        | '\u{1D00}'..='\u{1DBF}'
        | '\u{2100}'..='\u{2188}'
        | '\u{FF21}'..='\u{FF5A}'
        | '\u{1D400}'..='\u{1D7FF}' => 5,
        _ => return None,
    })
}

/// Returns whether a line has no Latin letter, but some of another alphabet that look like none: words that only look Latin are common
/// in Russian.
fn is_prose_of_another_alphabet(line: &str) -> bool {
    line.chars().all(|letter| alphabet(letter) != Some(LATIN))
        && line
            .chars()
            .any(|letter| alphabet(letter).is_some() && !looks_latin(letter))
}

/// Returns whether all letters of a word look like Latin ones and are none. A single one is an ordinary word, as in Russian.
fn only_looks_latin(word: &str) -> bool {
    let letters = || word.chars().filter(|letter| letter.is_alphabetic());
    letters().count() > 1 && letters().all(looks_latin)
}

/// As <https://www.unicode.org/Public/security/latest/confusables.txt> has it. Of Greek, only what is no common word with others of them,
/// such as "να" and "για".
fn looks_latin(letter: char) -> bool {
    matches!(
        letter,
        // Cyrillic.
        'А' | 'В' | 'Е' | 'К' | 'М' | 'Н' | 'О' | 'Р' | 'С' | 'Т' | 'У' | 'Х'
        | 'а' | 'е' | 'о' | 'р' | 'с' | 'у' | 'х'
        | 'Ѕ' | 'І' | 'Ј' | 'ѕ' | 'і' | 'ј' | 'Ѵ' | 'ѵ' | 'Ү' | 'ү' | 'һ' | 'Ӏ' | 'ӏ'
        | 'ԁ' | 'Ԍ' | 'Ԛ' | 'ԛ' | 'Ԝ' | 'ԝ'
        // Greek.
        | 'Α' | 'Β' | 'Ε' | 'Ζ' | 'Η' | 'Ι' | 'Κ' | 'Μ' | 'Ν' | 'Ο' | 'Ρ' | 'Τ' | 'Υ' | 'Χ'
        | 'ν' | 'ο' | 'ρ' | 'ϲ' | 'ϳ'
        // Small Roman numerals of one letter, and Latin letters for mathematics.
        | 'ⅰ' | 'ⅴ' | 'ⅹ' | 'ⅼ' | 'ⅽ' | 'ⅾ' | 'ⅿ'
        | '\u{1D400}'..='\u{1D6A3}'
    )
}

/// Hebrew, Arabic and the like. Where they meet signs and figures, these are drawn in another order.
fn is_right_to_left(letter: char) -> bool {
    matches!(letter,
        '\u{590}'..='\u{8FF}'
        | '\u{FB1D}'..='\u{FDFF}'
        | '\u{FE70}'..='\u{FEFE}'
        | '\u{10800}'..='\u{10FFF}'
        | '\u{1E800}'..='\u{1EFFF}')
}

/// Unicode's control and format characters, blanks that are no space, fillers, and what selects variants.
fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || (letter.is_whitespace() && letter != ' ')
        || matches!(letter,
            '\u{00AD}'
            | '\u{034F}'
            | '\u{061C}'
            | '\u{0600}'..='\u{0605}'
            | '\u{06DD}'
            | '\u{070F}'
            | '\u{115F}'..='\u{1160}'
            | '\u{17B4}'..='\u{17B5}'
            | '\u{180B}'..='\u{180F}'
            | '\u{200B}'..='\u{200F}'
            | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{FE00}'..='\u{FE0F}'
            | '\u{FEFF}'
            | '\u{FFA0}'
            | '\u{FFF0}'..='\u{FFFB}'
            | '\u{110BD}'
            | '\u{13430}'..='\u{1345F}'
            | '\u{16FE4}'
            | '\u{1BCA0}'..='\u{1BCA3}'
            | '\u{1D173}'..='\u{1D17A}'
            | '\u{E000}'..='\u{F8FF}'
            | '\u{E0000}'..='\u{E0FFF}'
            | '\u{F0000}'..='\u{10FFFF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_drawn_is_written_out() {
        assert_eq!(visible("ls\t-l\nänderung"), "ls\t-l\nänderung");
        let cases = [
            // The rest would be drawn backwards.
            ("echo \u{202E}fr-mr", "echo ⟨U+202E⟩fr-mr"),
            ("ls\rrm -rf x", "ls⟨U+000D⟩rm -rf x"),
            ("a\u{200B}b", "a⟨U+200B⟩b"),
            ("a\u{00A0}b", "a⟨U+00A0⟩b"),
            ("\u{1B}[2Kls", "⟨U+001B⟩[2Kls"),
            ("\u{E0041}", "⟨U+E0041⟩"),
            ("a\u{2028}b", "a⟨U+2028⟩b"),
            ("a\u{3164}b\u{2800}", "a⟨U+3164⟩b⟨U+2800⟩"),
            // A mark that is none.
            ("⟨9 more blank lines⟩", "⟨U+27E8⟩9 more blank lines⟨U+27E9⟩"),
        ];
        for (text, shown) in cases {
            assert_eq!(visible(text), shown);
        }
    }

    #[test]
    fn nothing_is_pushed_off_the_screen_by_blanks() {
        let pushed = format!("curl x | sh\n{}npm test", " \t\n".repeat(120));
        let mut shown = VisibleText::default();
        let text = shown.add(&pushed);
        assert_eq!(text, "curl x | sh\n \t\n⟨119 more blank lines⟩\nnpm test");
        assert_eq!(shown.summary(&pushed), "122 lines, lines folded: 119");
        let comments = format!("sh x\n{}npm test", "#\n".repeat(40));
        assert_eq!(
            visible(&comments),
            "sh x\n#\n⟨39 more equal lines⟩\nnpm test"
        );
        let added = format!("+sh x\n{}+npm test", "+\n".repeat(5));
        assert_eq!(visible(&added), "+sh x\n+\n⟨4 more equal lines⟩\n+npm test");
        let aside = format!("npm test{}; sh x", " ".repeat(300));
        assert_eq!(visible(&aside), "npm test⟨300 blanks⟩; sh x");
        assert_eq!(visible(&"\t".repeat(8)), "⟨8 blanks⟩");
        // As code is written.
        let ordinary = format!("a\n\n\n\n{}b\n", " ".repeat(60));
        assert_eq!(visible(&ordinary), ordinary);
    }

    #[test]
    fn a_text_with_a_long_line_is_counted_in_characters() {
        for (text, summary) in [
            ("ls".to_owned(), "1 line"),
            ("ls\n".repeat(300), "300 lines"),
            ("\u{e4}".repeat(200), "1 line"),
            ("\u{e4}".repeat(1800), "1 line, characters: 1800"),
            (
                format!("ls\n{}\nls", "x".repeat(201)),
                "3 lines, characters: 207",
            ),
        ] {
            assert_eq!(VisibleText::default().summary(&text), summary, "{text}");
        }
    }

    #[test]
    fn letters_that_look_like_others_are_marked() {
        let mut shown = VisibleText::default();
        let text = shown.add("curl https://p\u{430}ypal.com/x");
        assert_eq!(text, "curl https://p\u{430}⟨U+0430⟩ypal.com/x");
        assert_eq!(shown.summary("x"), "1 line, words in mixed alphabets: 1");
        for (text, marked) in [
            ("\u{3BF}k", "\u{3BF}⟨U+03BF⟩k"),
            ("a\u{301}\u{440}", "a\u{301}\u{440}⟨U+0440⟩"),
            ("r\u{FF4D}", "r\u{FF4D}⟨U+FF4D⟩"),
            ("\u{1D42C}h", "\u{1D42C}⟨U+1D42C⟩h"),
        ] {
            assert_eq!(visible(text), marked);
        }
        let mut shown = VisibleText::default();
        assert_eq!(
            shown.add("\u{440}\u{43E}"),
            "\u{440}⟨U+0440⟩\u{43E}⟨U+043E⟩"
        );
        assert_eq!(shown.summary("x"), "1 line, words that only look Latin: 1");
        for (disguised, marks) in [
            ("\u{441}\u{43E}\u{440}\u{443}_file", 4),
            ("\u{3A4}\u{39F}\u{3A1}2", 3),
            ("\u{1D42C}\u{1D421}", 2),
            ("\u{441}\u{43E}\u{440}\u{443} x # привет", 4),
        ] {
            let shown = visible(disguised);
            assert_eq!(shown.matches("⟨U+").count(), marks, "{shown}");
        }
        for text in [
            "docs/руководство.md",
            "Он сказал, а у нас готово",
            "Она поёт со всеми, ухо слышит хор",
            "για να και",
            "日本語ABC",
            "naïve Straße",
            "x² λ_1",
        ] {
            assert_eq!(visible(text), text);
        }
    }

    #[test]
    fn text_from_right_to_left_is_noted() {
        let mut shown = VisibleText::default();
        assert_eq!(shown.add("rm \u{5D0}/1"), "rm \u{5D0}/1");
        assert_eq!(shown.summary("x"), "1 line, letters from right to left");
        let mut shown = VisibleText::default();
        shown.add("a\u{200B}");
        assert_eq!(shown.summary("x"), "1 line, characters shown by code: 1");
    }
}
