//! The numbers, dates and names of a text, and which of them a shorter one still has. It compares text without
//! understanding it: a fact listed as kept is there; one listed as missing may have been reworded.

mod dates;
mod names;
mod numbers;

use serde::Serialize;
use std::collections::BTreeSet;

/// The most facts to compare: a longer list is not useful, and a table of figures cannot be shortened to a few words.
const MOST: usize = 500;

/// How much of a source is compared, in bytes: more than a model's context, and little once it is split into words.
const COMPARED: usize = 1 << 20;

/// The source's facts, kept and missing, in its words and order.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FactComparison {
    pub kept: Vec<String>,
    pub missing: Vec<String>,
    /// Whether names were compared: a text with capitals everywhere, as in German, or nowhere has no recognizable names.
    pub names_checked: bool,
}

/// Compares the result with the source.
pub fn compare(source: &str, result: &str) -> FactComparison {
    let source = &source[..source.floor_char_boundary(COMPARED)];
    let mut kept = FactComparison::default();
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    // Whether there is room for more.
    let mut note = |fact, is_kept: &dyn Fn() -> bool| {
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
        .all(|date| note(date.words, &|| there.contains(&date.day)));
    // A number within a date is not counted again. Both are in text order.
    let in_date = |at: usize| {
        let after = dates.partition_point(|date| date.span.start <= at);
        after > 0 && dates[after - 1].span.contains(&at)
    };
    let there = numbers::values(result);
    room = room
        && numbers::in_text(source)
            .filter(|number| !in_date(number.at))
            .all(|number| note(number.words, &|| there.contains(&number.value)));
    let names = names::in_text(source);
    let names_checked = names.is_some();
    let there = names::words(result);
    let names = names.unwrap_or_default().into_iter();
    let mut names = names.filter(|name| room && !in_date(name.at));
    names.all(|name| {
        let is_there = || name.each().all(|word| there.contains(&word));
        note(name.words, &is_there)
    });
    FactComparison {
        names_checked,
        ..kept
    }
}

#[cfg(test)]
mod tests;
