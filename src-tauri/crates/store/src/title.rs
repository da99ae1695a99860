//! A chat's title from its first message.

use tierbar_chats::Role;

const MAX_CHARS: usize = 60;

/// The first line with words of a user's message; `None` for other roles and for blank messages.
pub(crate) fn of_message(role: Role, text: &str) -> Option<String> {
    if role != Role::User {
        return None;
    }
    let line = text.lines().find(|line| !line.trim().is_empty())?;
    let mut title = String::new();
    let mut chars = 0;
    for word in line.split_whitespace() {
        let length = word.chars().take(MAX_CHARS + 1).count();
        if title.is_empty() {
            // A first word that is longer than a title, such as a link, has no border to cut at.
            title.extend(word.chars().take(MAX_CHARS));
        } else if chars + 1 + length <= MAX_CHARS {
            title.push(' ');
            title.push_str(word);
            chars += 1;
        } else {
            break;
        }
        chars += length;
    }
    Some(title)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn title(content: &str) -> Option<String> {
        of_message(Role::User, content)
    }

    #[test]
    fn a_short_line_is_the_title() {
        assert_eq!(
            title("What is the capital of France?").unwrap(),
            "What is the capital of France?"
        );
    }

    #[test]
    fn the_title_is_the_first_line_with_words() {
        assert_eq!(
            title("\n \t\n  Fix   this\tplease \nfn main() {}\n").unwrap(),
            "Fix this please"
        );
    }

    #[test]
    fn a_long_title_ends_at_a_word() {
        let words = "Please summarize the following report about rivers in twelve languages for me";
        assert_eq!(
            title(words).unwrap(),
            "Please summarize the following report about rivers in twelve"
        );
        assert_eq!(title(words).unwrap().chars().count(), 60);
    }

    #[test]
    fn a_titles_length_counts_characters() {
        let cut = title(&"日本語".repeat(50)).unwrap();
        assert_eq!(cut, "日本語".repeat(20));
        let cut = title(&"żółć ".repeat(40)).unwrap();
        assert_eq!(cut, ["żółć"; 12].join(" "));
    }

    #[test]
    fn only_a_users_message_with_text_gives_a_title() {
        assert_eq!(title(""), None);
        assert_eq!(title(" \n\t "), None);
        assert_eq!(of_message(Role::Assistant, "Paris"), None);
        assert_eq!(of_message(Role::System, "Be brief"), None);
    }

    #[test]
    fn a_first_word_that_fills_the_title_ends_it() {
        assert_eq!(
            title(&format!("{} b", "a".repeat(80))).unwrap(),
            "a".repeat(60)
        );
        assert_eq!(
            title(&format!("{} b", "a".repeat(58))).unwrap(),
            format!("{} b", "a".repeat(58))
        );
        assert_eq!(
            title(&format!("{} b", "a".repeat(59))).unwrap(),
            "a".repeat(59)
        );
    }
}
