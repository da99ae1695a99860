//! Output for people: results to stdout, everything else to stderr. A closed stdout ends the program quietly.

use crate::client::{read_answer, read_field};
use jiff::{Timestamp, tz::TimeZone};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::{
    borrow::Cow,
    io::{self, IsTerminal, Write},
};
use tierbar_core::{Error, fit::LineKind};

/// Writes to stdout and flushes, so that an answer appears as it streams.
pub(crate) fn write(text: &str) {
    if write_to(io::stdout().lock(), text).is_err() {
        // `tierbar models | head` closes the pipe, which is not an error.
        std::process::exit(0);
    }
}

pub(crate) fn write_line(text: &str) {
    write(&format!("{text}\n"));
}

/// Writes an object for a script, on one line.
pub(crate) fn write_json(object: &Value) {
    write_line(&object.to_string());
}

/// Writes what was done: an object for a script, or else a sentence.
pub(crate) fn write_outcome(as_json: bool, object: &Value, sentence: &str) {
    if as_json {
        write_json(object);
    } else {
        write_line(sentence);
    }
}

/// Writes an answer of the host: as it is for a script, or else as this text.
pub(crate) fn write_answer<T: DeserializeOwned>(
    as_json: bool,
    answer: Value,
    text: impl FnOnce(T) -> String,
) -> Result<(), Error> {
    if as_json {
        write_json(&answer);
    } else {
        write(&text(read_answer(answer)?));
    }
    Ok(())
}

/// Writes a list of an answer: as [`lines`], or the whole answer for a script.
pub(crate) fn write_list<T: DeserializeOwned>(
    as_json: bool,
    answer: Value,
    list: &str,
    none: &str,
    line: impl Fn(&T) -> String,
) -> Result<(), Error> {
    if as_json {
        write_json(&answer);
    } else {
        write(&lines(&read_field::<Vec<T>>(answer, list)?, none, line));
    }
    Ok(())
}

/// Returns a line for each entry. Without entries, `none` goes to stderr: it says what to do.
pub(crate) fn lines<T>(entries: &[T], none: &str, line: impl Fn(&T) -> String) -> String {
    if entries.is_empty() {
        error_line(none);
    }
    entries.iter().map(|entry| line(entry) + "\n").collect()
}

/// Counts things, such as `1 chat` and `2 chats`.
pub(crate) fn count(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// Formats a time in seconds since 1970, such as `2026-07-20 14:01`.
pub(crate) fn format_time(seconds: impl TryInto<i64>, zone: &TimeZone) -> String {
    let seconds = seconds.try_into().unwrap_or_default();
    let at = Timestamp::from_second(seconds).unwrap_or_default();
    at.to_zoned(zone.clone()).strftime("%F %R").to_string()
}

pub(crate) fn error_line(text: &str) {
    write_prompt(&format!("{text}\n"));
}

/// Removes control characters but line breaks and tabs: a model, or the name of one, could command the terminal with them,
/// such as to write to the clipboard. Marks characters that reverse what follows them: they disguise a file's name or an address.
fn printable(text: &str) -> Cow<'_, str> {
    let is_command = |letter: char| letter.is_control() && letter != '\n' && letter != '\t';
    let is_override = |letter: char| ('\u{202a}'..='\u{202e}').contains(&letter);
    if !text.contains(|letter: char| is_command(letter) || is_override(letter)) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_override(letter) {
            shown += &format!("[U+{:04X}]", u32::from(letter));
        } else if !is_command(letter) {
            shown.push(letter);
        }
    }
    shown.into()
}

pub(crate) fn write_error(error: &Error) {
    error_line(&format!("error: {}", error.message));
    if let Some(hint) = &error.hint {
        error_line(&format!("  {hint}"));
    }
}

/// Writes to stderr without a line break, such as a question.
pub(crate) fn write_prompt(text: &str) {
    let _closed = write_to(io::stderr().lock(), text);
}

fn write_to(mut place: impl Write + IsTerminal, text: &str) -> io::Result<()> {
    let text = if place.is_terminal() {
        printable(text)
    } else {
        text.into()
    };
    place.write_all(text.as_bytes())?;
    place.flush()
}

/// Formats a range of speeds with its significant digits.
pub(crate) fn speed_range(low: f64, high: f64) -> String {
    let digits = |rate: f64| {
        if rate < 10.0 {
            format!("{rate:.1}")
        } else {
            format!("{rate:.0}")
        }
    };
    format!("{}–{} tok/s", digits(low), digits(high))
}

pub(crate) fn line_name(line: LineKind) -> &'static str {
    match line {
        LineKind::DenseWeights => "Dense weights",
        LineKind::Embeddings => "Embeddings",
        LineKind::PagedWeights => "Weights read from disk",
        LineKind::ResidentExperts => "Experts in memory",
        LineKind::ExpertCache => "Expert cache",
        LineKind::LayerCache => "Layers in memory",
        LineKind::PagedExperts => "Experts read from disk",
        LineKind::KvCache => "KV cache",
        LineKind::ComputeBuffers => "Compute buffers",
        LineKind::Checkpoints => "Context checkpoints",
        LineKind::DraftModel => "Draft model",
        LineKind::Command => "Command",
        LineKind::Projector => "Media projector",
        LineKind::Embedder => "Reserved for embeddings",
        LineKind::App => "Tierbar's windows",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_reach_a_terminal() {
        for (text, shown) in [
            ("a\tb\nc é", "a\tb\nc é"),
            ("\u{1b}]52;c;cm0gLXJm\u{7}x", "]52;c;cm0gLXJmx"),
            ("\u{9b}2J\r\u{8}\u{7f}y\0", "2Jy"),
            ("\u{202e}gnp.exe\u{202c}", "[U+202E]gnp.exe[U+202C]"),
        ] {
            assert_eq!(printable(text), shown);
        }
    }
}
