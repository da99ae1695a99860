//! Makes visible what would be shown as something else than it is.

/// Returns the text with characters that are not drawn, or that change how others are drawn, written as their code. Line breaks and
/// tabs stay.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if matches!(letter, '\n' | '\t') || !is_hidden(letter) {
            shown.push(letter);
        } else {
            shown.push_str(&format!("⟨U+{:04X}⟩", u32::from(letter)));
        }
    }
    shown
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
        ];
        for (text, shown) in cases {
            assert_eq!(visible(text), shown);
        }
    }
}
