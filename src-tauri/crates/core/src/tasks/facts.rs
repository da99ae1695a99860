//! The numbers, dates and names of a text, and which of them a shorter one still has. It reads letters, and understands nothing:
//! what it tells is kept is there, and what it tells is missing may have been put in other words.

mod dates;
mod names;
mod numbers;

use serde::Serialize;
use std::collections::BTreeSet;

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
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    // Whether there is room for more.
    let mut tell = |fact, is_kept: &dyn Fn() -> bool| {
        if seen.insert(fact) {
            let list = if is_kept() {
                &mut kept.kept
            } else {
                &mut kept.missing
            };
            list.push(fact.to_owned());
        }
        seen.len() < MOST
    };

    let dates = dates::in_text(source);
    let there = dates::days(result);
    let mut room = dates
        .iter()
        .all(|date| tell(date.words, &|| there.contains(&date.day())));
    // What is part of a date is no number besides. They stand in the text's order.
    let in_date = |at: usize| {
        let after = dates.partition_point(|date| date.span.start <= at);
        after > 0 && dates[after - 1].span.contains(&at)
    };
    let there = numbers::values(result);
    room = room
        && numbers::in_text(source)
            .filter(|number| !in_date(number.at))
            .all(|number| tell(number.words, &|| there.contains(&number.value)));
    let names = names::in_text(source);
    let names_checked = names.is_some();
    let there = names::words(result);
    let names = names.unwrap_or_default().into_iter();
    let mut names = names.filter(|name| room && !in_date(name.at));
    names.all(|name| {
        let is_there = || name.each().all(|word| there.contains(&word));
        tell(name.words, &is_there)
    });
    Kept {
        names_checked,
        ..kept
    }
}

#[cfg(test)]
mod tests;
