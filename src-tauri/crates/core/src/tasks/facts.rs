//! The numbers, dates and names of a text, and which of them a shorter one still has. It reads letters, and understands nothing:
//! what it tells is kept is there, and what it tells is missing may have been put in other words.

mod dates;
mod names;
mod numbers;

use serde::Serialize;

/// More are not compared: nobody reads the list, and a table of figures is nothing to put in a few words.
const MOST: usize = 500;

/// What became of the source's facts, in the source's words and order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Kept {
    pub kept: Vec<String>,
    pub missing: Vec<String>,
    /// Whether names were looked for: in a text that has capitals everywhere, as German nouns are written, or nowhere, they tell none.
    pub names_checked: bool,
}

/// Holds the result against the source.
#[must_use]
pub fn compare(source: &str, result: &str) -> Kept {
    let mut kept = Kept::default();
    let mut told: Vec<String> = Vec::new();
    let mut tell = |fact: &str, is_kept: bool| {
        let known = told.iter().any(|known| known == fact);
        if !known && told.len() < MOST {
            told.push(fact.to_owned());
            if is_kept {
                kept.kept.push(fact.to_owned());
            } else {
                kept.missing.push(fact.to_owned());
            }
        }
    };

    let dates = dates::in_text(source);
    let found = dates::in_text(result);
    for date in &dates {
        tell(date.words, found.iter().any(|other| other.is(date)));
    }
    // What is part of a date is no number besides.
    let in_date = |at: usize| dates.iter().any(|date| date.span.contains(&at));
    let there = numbers::values(result);
    for number in numbers::in_text(source) {
        if !in_date(number.at) {
            tell(number.words, there.contains(&number.value));
        }
    }
    let names = names::in_text(source);
    let names_checked = names.is_some();
    let there = names::words(result);
    for name in names.unwrap_or_default() {
        if !in_date(name.at) {
            tell(name.words, name.each().all(|word| there.contains(&word)));
        }
    }
    Kept {
        names_checked,
        ..kept
    }
}

#[cfg(test)]
mod tests;
