//! Dates: `2026-11-22`, `22.11.2026`, `22 November 2026`, `Nov 22`, `November 22nd, 2026`.

use std::{collections::BTreeSet, ops::Range};

#[derive(Debug)]
pub(super) struct Date<'a> {
    pub(super) span: Range<usize>,
    pub(super) words: &'a str,
    pub(super) day: Day,
}

/// A day, of one year or of any: year, month, day.
pub(super) type Day = (Option<u16>, u8, u8);

/// Returns the days in a text, with and without their year: a result may add a year, but not lose one.
pub(super) fn days(text: &str) -> BTreeSet<Day> {
    let dates = in_text(text).into_iter();
    let days = dates.map(|date| date.day);
    days.flat_map(|day @ (_, month, number)| [day, (None, month, number)])
        .collect()
}

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// A word of letters, or a number of digits.
#[derive(Debug, Clone)]
struct Token<'a> {
    span: Range<usize>,
    text: &'a str,
}

impl Token<'_> {
    fn month(&self) -> Option<u8> {
        let word = self.text.to_ascii_lowercase();
        if word.len() < 3 {
            return None;
        }
        let named = |month: &&str| {
            **month == word || (month.starts_with(&word) && (word.len() == 3 || word == "sept"))
        };
        let at = MONTHS.iter().position(named)?;
        // `may` and `march` are words besides.
        let capital = self.text.starts_with(|c: char| c.is_ascii_uppercase());
        u8::try_from(at + 1).ok().filter(|_| capital)
    }

    fn number(&self, digits: Range<usize>) -> Option<u16> {
        let plain = self.text.bytes().all(|byte| byte.is_ascii_digit());
        let fits = plain && digits.contains(&self.text.len());
        fits.then(|| self.text.parse().ok()).flatten()
    }

    /// `22`, or `22nd` if the suffix is the next token.
    fn day(&self) -> Option<u8> {
        let day = u8::try_from(self.number(1..3)?).ok()?;
        (1..=31).contains(&day).then_some(day)
    }

    fn year(&self) -> Option<u16> {
        self.number(4..5)
            .filter(|year| (1000..=2999).contains(year))
    }
}

pub(super) fn in_text(text: &str) -> Vec<Date<'_>> {
    let tokens = tokens(text);
    let between = |a: usize, b: usize| -> &str {
        match (tokens.get(a), tokens.get(b)) {
            (Some(a), Some(b)) => &text[a.span.end..b.span.start],
            _ => "\0",
        }
    };
    let mut dates: Vec<Date> = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let found = numeric(&tokens[at..], |a, b| between(at + a, at + b))
            .or_else(|| written(&tokens[at..], |a, b| between(at + a, at + b)));
        let Some((day, taken)) = found else {
            at += 1;
            continue;
        };
        let span = tokens[at].span.start..tokens[at + taken - 1].span.end;
        dates.push(Date {
            words: &text[span.clone()],
            span,
            day,
        });
        at += taken;
    }
    dates
}

/// A day, and how many tokens it is.
type DateMatch = (Day, usize);

/// `2026-11-22`, `22.11.2026`. `11/22/2026` is read month first if that is a date, or else day first.
fn numeric<'a>(tokens: &[Token], between: impl Fn(usize, usize) -> &'a str) -> Option<DateMatch> {
    let [a, b, c, ..] = tokens else { return None };
    let mark = between(0, 1);
    if mark != between(1, 2) {
        return None;
    }
    match mark {
        "-" | "/" if a.year().is_some() => {
            let month = b.day().filter(|&month| month <= 12)?;
            Some(((a.year(), month, c.day()?), 3))
        }
        "." => {
            let month = b.day().filter(|&month| month <= 12)?;
            Some(((Some(c.year()?), month, a.day()?), 3))
        }
        "/" => {
            let (first, second) = (a.day()?, b.day()?);
            let (month, day) = if first <= 12 {
                (first, second)
            } else {
                (second, first)
            };
            (month <= 12).then_some(((Some(c.year()?), month, day), 3))
        }
        _ => None,
    }
}

/// `22 November 2026`, `22nd of November`, `November 22, 2026`, `Nov. 22`.
fn written<'a>(tokens: &[Token], between: impl Fn(usize, usize) -> &'a str) -> Option<DateMatch> {
    let near = |a, b| matches!(between(a, b), " " | ". " | ", " | "." | "");
    let suffix = |at: usize| {
        let is = tokens
            .get(at)
            .is_some_and(|token| matches!(token.text, "st" | "nd" | "rd" | "th"));
        usize::from(is && at > 0 && between(at - 1, at).is_empty())
    };
    let first = tokens.first()?;
    let (month, day, mut taken) = if let Some(day) = first.day() {
        let mut at = 1 + suffix(1);
        if tokens.get(at).is_some_and(|token| token.text == "of") {
            at += 1;
        }
        (tokens.get(at)?.month()?, day, at + 1)
    } else {
        let month = first.month()?;
        let day = tokens.get(1)?.day()?;
        (month, day, 2 + suffix(2))
    };
    if !(1..taken).all(|at| near(at - 1, at)) {
        return None;
    }
    let year = tokens.get(taken).and_then(Token::year);
    let year = year.filter(|_| near(taken - 1, taken));
    taken += usize::from(year.is_some());
    Some(((year, month, day), taken))
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut before = None;
    for (at, c) in text.char_indices() {
        let kind = if c.is_ascii_digit() {
            Some(true)
        } else if c.is_alphabetic() {
            Some(false)
        } else {
            None
        };
        let end = at + c.len_utf8();
        if kind.is_some() {
            match tokens.last_mut().filter(|_| kind == before) {
                Some(token) => {
                    token.span.end = end;
                    token.text = &text[token.span.clone()];
                }
                None => tokens.push(Token {
                    span: at..end,
                    text: &text[at..end],
                }),
            }
        }
        before = kind;
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_recognized_in_any_notation() {
        for words in [
            "2026-11-22",
            "2026/11/22",
            "22.11.2026",
            "11/22/2026",
            "22/11/2026",
            "22 November 2026",
            "22nd of November 2026",
            "November 22, 2026",
            "Nov. 22nd, 2026",
            "22 Nov 2026",
        ] {
            let text = format!("On {words}, 3 people came.");
            let dates = in_text(&text);
            assert_eq!(dates.len(), 1, "{words}: {dates:?}");
            assert_eq!(dates[0].words, words);
            let date = &dates[0];
            assert_eq!(date.day, (Some(2026), 11, 22), "{words}");
        }
        assert_eq!(in_text("by May 5 at 10")[0].words, "May 5");
    }

    #[test]
    fn invalid_dates_are_not_recognized() {
        for none in [
            "you may 5 times",
            "1.2.3",
            "10.0.0.1",
            "13/14/2026",
            "2026-13-01",
            "32 May",
            "3-4-5",
            "May",
            "",
            "November; 22",
        ] {
            assert!(in_text(none).is_empty(), "{none}");
        }
    }

    #[test]
    fn a_year_may_be_added_but_not_lost() {
        let covers = |text, of| days(text).contains(&in_text(of)[0].day);
        assert!(covers("22.11.2026", "Nov 22"));
        assert!(!covers("Nov 22", "22.11.2026"));
        assert!(!covers("Nov 23", "Nov 22"));
        assert!(!covers("22.11.2026", "22.11.2025"));
    }
}
