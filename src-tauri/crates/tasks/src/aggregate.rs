//! A day's log lines, counted. A brief is written from these counts, so that its figures come from the lines and not from a
//! model.

use super::{
    entries::{Entry, EntryTime, template},
    line,
    terms::{are_alike, is_telling, terms},
    text_line,
};
use serde::Serialize;
use serde_json::{Map, Value};
use std::{cmp::Reverse, collections::BTreeMap};

/// Limits of the report; what exceeds them is only counted.
const GROUPS: usize = 100;
const METRICS: usize = 100;
const OUTCOMES: usize = 50;
/// Limits of the distinct values kept while reading.
const APART: usize = 10_000;
const LONGEST_WORDS: usize = 300;
/// Words that matter first to a reader.
const BAD: [&str; 10] = [
    "emergency",
    "fatal",
    "panic",
    "critical",
    "error",
    "fail",
    "crash",
    "alarm",
    "alert",
    "warn",
];
/// The last of them is less than an error.
const WARNING: usize = BAD.len() - 1;

/// The counts of a day's lines.
#[derive(Debug, Clone, PartialEq, Default, Serialize, utoipa::ToSchema)]
pub struct Aggregate {
    pub entries: u64,
    /// Lines that have no known form or field.
    pub malformed: u64,
    /// The number of the first malformed line.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u64, required = false)]
    pub first_malformed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    pub from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    pub to: Option<String>,
    /// At most 100 groups of entries; errors come first.
    pub groups: Vec<Group>,
    pub more_groups: u64,
    pub outcomes: BTreeMap<String, u64>,
    /// At most 100 metrics.
    pub metrics: Vec<Metric>,
    pub more_metrics: u64,
}

/// Entries of one kind whose messages only differ in numbers and ids.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = EntryGroup)]
pub struct Group {
    pub kind: String,
    /// The message, with `#` for numbers and ids.
    pub message: String,
    pub count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    pub first: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    pub last: Option<String>,
    /// The last message as it was.
    pub example: String,
}

/// The values of one metric.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = EntryMetric)]
pub struct Metric {
    pub name: String,
    pub count: u64,
    pub min: f64,
    pub median: f64,
    pub max: f64,
    pub last: f64,
}

/// Counts lines, one at a time.
#[derive(Debug, Default)]
pub struct Counter {
    line: u64,
    span: Span,
    groups: BTreeMap<(String, String), Tally>,
    metrics: BTreeMap<String, Vec<f64>>,
    /// The rest of the counts; of groups and metrics, those that are not kept.
    counted: Aggregate,
}

#[derive(Debug, Default, Clone)]
struct Span {
    first: Option<EntryTime>,
    last: Option<EntryTime>,
}

#[derive(Debug, Default)]
struct Tally {
    count: u64,
    span: Span,
    example: String,
}

impl Span {
    fn stretch(&mut self, time: Option<&EntryTime>) {
        let Some(time) = time else { return };
        let replaces = |held: &Option<EntryTime>, order| match held {
            None => true,
            Some(held) => time.order(held) == Some(order),
        };
        if replaces(&self.first, std::cmp::Ordering::Less) {
            self.first = Some(time.clone());
        }
        if replaces(&self.last, std::cmp::Ordering::Greater) {
            self.last = Some(time.clone());
        }
    }

    fn ends(&self) -> (Option<String>, Option<String>) {
        let text = |time: &Option<EntryTime>| time.as_ref().map(|time| cut(&time.to_string()));
        (text(&self.first), text(&self.last))
    }
}

impl Counter {
    /// Counts a line; empty lines are ignored, and one above 256 KiB is malformed.
    pub fn line(&mut self, line: &[u8]) {
        if line.trim_ascii().is_empty() {
            self.line += 1;
        } else {
            self.add(line::fields(line).or_else(|| text_line::fields(line)));
        }
    }

    /// Counts a parsed entry.
    pub fn entry(&mut self, value: &Value) {
        self.add(line::fields_of(value));
    }

    fn add(&mut self, fields: Option<Map<String, Value>>) {
        self.line += 1;
        match fields.as_ref().and_then(Entry::from_fields) {
            Some(entry) => self.count(entry),
            None => {
                self.counted.malformed += 1;
                self.counted.first_malformed.get_or_insert(self.line);
            }
        }
    }

    fn count(&mut self, entry: Entry) {
        self.counted.entries += 1;
        self.span.stretch(entry.time.as_ref());
        if let Some(outcome) = &entry.outcome {
            let (outcome, outcomes) = (cut(outcome), &mut self.counted.outcomes);
            if outcomes.len() < OUTCOMES || outcomes.contains_key(&outcome) {
                *outcomes.entry(outcome).or_default() += 1;
            }
        }
        for (name, value) in &entry.metrics {
            let name = cut(name);
            if self.metrics.len() < APART || self.metrics.contains_key(&name) {
                self.metrics.entry(name).or_default().push(*value);
            } else {
                self.counted.more_metrics += 1;
            }
        }
        // A measurement without a message stands for itself.
        let message = match (&entry.message, &entry.outcome) {
            (Some(message), _) => message,
            (None, Some(_)) => return,
            (None, None) if !entry.metrics.is_empty() => return,
            (None, None) => "",
        };
        let kind = cut(entry.kind.as_deref().unwrap_or_default());
        let message = cut(message);
        let key = (kind, template(&message));
        if self.groups.len() >= APART && !self.groups.contains_key(&key) {
            self.counted.more_groups += 1;
            return;
        }
        let tally = self.groups.entry(key).or_default();
        tally.count += 1;
        tally.span.stretch(entry.time.as_ref());
        tally.example = message;
    }

    pub fn done(self) -> Aggregate {
        let (from, to) = self.span.ends();
        let mut groups: Vec<Group> = self
            .groups
            .into_iter()
            .map(|((kind, message), tally)| {
                let (first, last) = tally.span.ends();
                Group {
                    kind,
                    message,
                    count: tally.count,
                    first,
                    last,
                    example: tally.example,
                }
            })
            .collect();
        groups.sort_by_cached_key(|group| (badness(group), Reverse(group.count)));
        let more_groups = groups.len().saturating_sub(GROUPS) as u64 + self.counted.more_groups;
        groups.truncate(GROUPS);
        let metrics = self.metrics.into_iter();
        let metrics = metrics.filter_map(|(name, values)| metric(name, values));
        let mut metrics: Vec<Metric> = metrics.collect();
        metrics.sort_by_key(|metric| Reverse(metric.count));
        let more_metrics = metrics.len().saturating_sub(METRICS) as u64 + self.counted.more_metrics;
        metrics.truncate(METRICS);
        Aggregate {
            from,
            to,
            groups,
            more_groups,
            metrics,
            more_metrics,
            ..self.counted
        }
    }
}

fn metric(name: String, mut values: Vec<f64>) -> Option<Metric> {
    let last = *values.last()?;
    values.sort_by(f64::total_cmp);
    Some(Metric {
        name,
        count: values.len() as u64,
        min: *values.first()?,
        median: values[values.len() / 2],
        max: *values.last()?,
        last,
    })
}

/// Returns the rank of the worst word in the group.
fn badness(group: &Group) -> usize {
    let (kind, message) = (group.kind.to_lowercase(), group.message.to_lowercase());
    let has = |word: &&str| kind.contains(*word) || message.contains(*word);
    BAD.iter().position(has).unwrap_or(BAD.len())
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST_WORDS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

impl Aggregate {
    /// Counts the entries listed that look like errors by their words.
    pub fn errors(&self) -> u64 {
        self.count(|badness| badness < WARNING)
    }

    /// Counts the entries listed that look like warnings.
    pub fn warnings(&self) -> u64 {
        self.count(|badness| badness == WARNING)
    }

    fn count(&self, is: impl Fn(usize) -> bool) -> u64 {
        let groups = self.groups.iter();
        let counted = groups.filter(|group| is(badness(group)));
        counted.map(|group| group.count).sum()
    }

    /// Whether a brief says something of what is wrong, if anything is: a word or the count of a group of errors or warnings. That
    /// there are errors, or none, says nothing.
    pub fn is_reported_in(&self, brief: &str) -> bool {
        let words: Vec<String> = terms(brief).collect();
        let names = |term: &str| words.iter().any(|word| are_alike(word, term));
        let groups = self.groups.iter();
        let mut wrong = groups.filter(|group| badness(group) < BAD.len()).peekable();
        wrong.peek().is_none()
            || wrong.any(|group| {
                let text = format!("{} {}", group.kind, group.example);
                let is_bad = |term: &str| BAD.iter().any(|word| term.contains(*word));
                let mut telling = terms(&text)
                    .filter(|term| is_telling(term) && !is_bad(term))
                    .peekable();
                telling.peek().is_none()
                    || names(&group.count.to_string())
                    || telling.any(|term| names(&term))
            })
    }

    /// Renders lines for a model, in at most `most` bytes; what does not fit is only counted.
    pub fn render(&self, most: usize) -> String {
        let mut text = format!("{} entries", self.entries);
        if let (Some(from), Some(to)) = (&self.from, &self.to) {
            text += &format!(", from {from} to {to}");
        }
        if self.malformed > 0 {
            text += &format!("; {} lines could not be read", self.malformed);
        }
        text.push('\n');
        if !self.outcomes.is_empty() {
            let outcomes = self.outcomes.iter();
            let outcomes = outcomes.map(|(what, count)| format!("{what} {count}"));
            text += &format!("outcomes: {}\n", outcomes.collect::<Vec<_>>().join(", "));
        }
        let metrics = self.metrics.iter().map(|metric| {
            let Metric { name, count, min, median, max, last } = metric;
            let [min, median, max, last] = [min, median, max, last].map(|value| rounded(*value));
            format!("metric {name}: {count} values, min {min}, median {median}, max {max}, last {last}\n")
        });
        let groups = self.groups.iter().map(|group| {
            let Group {
                kind,
                count,
                example,
                first,
                last,
                ..
            } = group;
            let kind = if kind.is_empty() { "entry" } else { kind };
            let when = match (first, last) {
                (Some(first), Some(last)) if first != last => format!(" [{first} to {last}]"),
                (Some(first), _) => format!(" [{first}]"),
                _ => String::new(),
            };
            format!("{count}× {kind}: {example}{when}\n")
        });
        // Errors come before measurements, and both before the rest, while there is room.
        let (bad, rest): (Vec<_>, Vec<_>) = self
            .groups
            .iter()
            .zip(groups)
            .partition(|(group, _)| badness(group) < BAD.len());
        let line = |(_, line): (&Group, String)| line;
        let lines = bad
            .into_iter()
            .map(line)
            .chain(metrics)
            .chain(rest.into_iter().map(line));
        let mut left = self.more_groups + self.more_metrics;
        // A line that says how many are left out.
        const NOTE: usize = 48;
        for line in lines {
            if text.len() + line.len() + NOTE <= most {
                text += &line;
            } else {
                left += 1;
            }
        }
        if left > 0 {
            text += &format!("and {left} more kinds of lines\n");
        }
        text
    }
}

/// Formats a number with a few significant digits.
fn rounded(value: f64) -> String {
    if value == value.trunc() || value.abs() >= 1000.0 {
        format!("{value:.0}")
    } else {
        let text = format!("{value:.3}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

#[cfg(test)]
mod tests;
