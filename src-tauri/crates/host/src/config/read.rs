//! Parses a configuration. Errors name the line and the key.

mod check;

use super::keys::nearest_key;
use check::{Problem, check};
use serde_ignored::Path as Ignored;
use std::{
    ops::{Range, RangeInclusive},
    sync::Arc,
};
use tierbar_core::{
    Code, Config, Error,
    config::{DownloadsConfig, PolicyConfig, QueueConfig, ServerConfig},
};
use toml_edit::{Document, Item, TableLike};

#[derive(Debug)]
pub(crate) struct ParsedConfig {
    pub(crate) config: Arc<Config>,
    /// Notices about unknown keys.
    pub(crate) notices: Vec<String>,
}

/// # Errors
/// `ConfigInvalid` with the line.
pub(crate) fn parse(text: &str) -> Result<ParsedConfig, Error> {
    let source = Source::new(text)?;
    let mut unknown = Vec::new();
    let deserializer = toml::Deserializer::parse(text).map_err(|error| source.mistyped(&error))?;
    let config: Config = serde_ignored::deserialize(deserializer, |path| unknown.push(keys(&path)))
        .map_err(|error| source.mistyped(&error))?;
    check(&config).map_err(|Problem { keys, wrong }| source.wrong(source.span(&keys), &wrong))?;
    let notices = unknown
        .iter()
        .map(|keys| {
            let line = source.span(keys).map_or_else(String::new, |span| {
                format!(" line {}", line_number(text, span.start))
            });
            let key = keys.join(".");
            let meant = nearest_key(keys)
                .map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
            format!("config.toml{line}: the key {key} is unknown and has no effect{meant}")
        })
        .collect();
    let config = Arc::new(config);
    Ok(ParsedConfig { config, notices })
}

/// The text with the position of each key.
struct Source<'a> {
    text: &'a str,
    document: Document<&'a str>,
}

impl<'a> Source<'a> {
    fn new(text: &'a str) -> Result<Self, Error> {
        let document = Document::parse(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            wrong_at(line_number(text, at), error.message())
        })?;
        Ok(Self { text, document })
    }

    /// Returns the position of a key's value, or of the nearest table around it.
    fn span(&self, keys: &[String]) -> Option<Range<usize>> {
        let mut item = self.document.as_item();
        let mut span = None;
        for key in keys {
            let Some((key, inner)) = item
                .as_table_like()
                .and_then(|table| table.get_key_value(key))
            else {
                break;
            };
            span = key.span().or(span);
            item = inner;
        }
        span
    }

    /// Returns the error for a value of the wrong type.
    fn mistyped(&self, error: &toml::de::Error) -> Error {
        let span = error.span();
        let keys = span.as_ref().map(|span| self.keys(span.start));
        let message = in_words(error.message(), &keys.unwrap_or_default());
        self.wrong(span, &message)
    }

    /// Returns the keys of the value or key at `offset`; none if there is no value.
    fn keys(&self, offset: usize) -> Vec<String> {
        let mut keys = Vec::new();
        find_keys_at(self.document.as_table(), offset, &mut keys);
        keys
    }

    fn wrong(&self, span: Option<Range<usize>>, message: &str) -> Error {
        let Some(span) = span else {
            return Error::new(Code::ConfigInvalid, format!("config.toml: {message}"));
        };
        let keys = self.keys(span.start);
        let message = if keys.is_empty() {
            message.to_owned()
        } else {
            format!("{}: {message}", keys.join("."))
        };
        wrong_at(line_number(self.text, span.start), &message)
    }
}

/// Finds the keys of the value or key at `offset`.
fn find_keys_at(table: &dyn TableLike, offset: usize, keys: &mut Vec<String>) -> bool {
    for (name, item) in table.iter() {
        keys.push(name.to_owned());
        let at = |span: Option<Range<usize>>| span.is_some_and(|span| span.contains(&offset));
        let inner = item
            .as_table_like()
            .is_some_and(|inner| find_keys_at(inner, offset, keys));
        let key = table
            .get_key_value(name)
            .is_some_and(|(key, _)| at(key.span()));
        if inner || key || (!matches!(item, Item::Table(_)) && at(item.span())) {
            return true;
        }
        keys.pop();
    }
    false
}

/// Returns serde's message with words in place of Rust's types, and with the bounds of the value that the keys lead to.
fn in_words(message: &str, keys: &[String]) -> String {
    let Some((before, expected)) = message.split_once(", expected ") else {
        return message.to_owned();
    };
    if let Some(value) = before.strip_prefix("unknown variant ") {
        return format!("{value} is not {expected}");
    }
    if let Some(rest) = expected.strip_prefix("a boolean") {
        return format!("{before}, expected true or false{rest}");
    }
    let is_name = |letter: char| letter.is_ascii_alphanumeric();
    let end = expected.find(|letter| !is_name(letter));
    let (kind, rest) = expected.split_at(end.unwrap_or(expected.len()));
    let kind = match kind {
        "u8" | "u16" | "u32" | "u64" | "usize" => match value_bounds(keys) {
            Some((least, most)) => format!("a whole number from {least} to {most}"),
            None => "a whole number, 0 or more".to_owned(),
        },
        "i8" | "i16" | "i32" | "i64" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        kind => kind.to_owned(),
    };
    format!("{before}, expected {kind}{rest}")
}

/// Returns the least and the most that `check` allows for a key, where it has both.
fn value_bounds(keys: &[String]) -> Option<(u16, u16)> {
    let small = |range: RangeInclusive<u8>| (u16::from(*range.start()), u16::from(*range.end()));
    let requests = ServerConfig::REQUESTS_AT_ONCE;
    match keys.join(".").as_str() {
        "downloads.at_once" => Some(small(DownloadsConfig::AT_ONCE)),
        "queue.at_once" => Some(small(QueueConfig::AT_ONCE)),
        "policy.battery_below" => Some((0, PolicyConfig::MOST_BATTERY.into())),
        "server.requests_at_once" => Some((*requests.start(), *requests.end())),
        _ => None,
    }
}

fn wrong_at(line: usize, message: &str) -> Error {
    let message = format!(
        "config.toml line {line}: {}",
        message.trim_end_matches('\n')
    );
    Error::new(Code::ConfigInvalid, message).detail("line", line)
}

fn line_number(text: &str, offset: usize) -> usize {
    let before = text.as_bytes().get(..offset).unwrap_or(text.as_bytes());
    before.iter().filter(|&&byte| byte == b'\n').count() + 1
}

pub(crate) fn keys(path: &Ignored<'_>) -> Vec<String> {
    let mut keys = match path {
        Ignored::Root => return Vec::new(),
        Ignored::Seq { parent, index } => [keys(parent), vec![index.to_string()]].concat(),
        Ignored::Map { parent, key } => [keys(parent), vec![key.clone()]].concat(),
        Ignored::Some { parent }
        | Ignored::NewtypeStruct { parent }
        | Ignored::NewtypeVariant { parent } => keys(parent),
    };
    keys.retain(|key| !key.is_empty());
    keys
}

#[cfg(test)]
mod tests {
    use super::{in_words, parse};

    #[test]
    fn a_type_error_names_no_rust_types() {
        for (message, words) in [
            (
                "invalid value: integer `-5`, expected u32, or \"auto\"",
                "invalid value: integer `-5`, expected a whole number, 0 or more, or \"auto\"",
            ),
            (
                "invalid type: string \"x\", expected f32",
                "invalid type: string \"x\", expected a number",
            ),
            (
                "unknown variant `q5`, expected one of `f16`, `q8_0`",
                "`q5` is not one of `f16`, `q8_0`",
            ),
            (
                "unknown variant `x`, expected `a` or `b`",
                "`x` is not `a` or `b`",
            ),
            (
                "invalid type: string \"on\", expected a boolean",
                "invalid type: string \"on\", expected true or false",
            ),
            ("missing field `to`", "missing field `to`"),
        ] {
            assert_eq!(in_words(message, &[]), words);
        }
    }

    #[test]
    fn the_bounds_of_a_number_are_those_that_are_checked() {
        for (text, words) in [
            (
                "[downloads]\nat_once = 300\n",
                "config.toml line 2: downloads.at_once: invalid value: integer `300`, expected a whole number from 1 to 4",
            ),
            (
                "[policy]\nbattery_below = -1\n",
                "config.toml line 2: policy.battery_below: invalid value: integer `-1`, expected a whole number from 0 to 100",
            ),
            (
                "[policy]\nstep_down = \"on\"\n",
                "config.toml line 2: policy.step_down: invalid type: string \"on\", expected true or false",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err().message, words);
        }
    }
}
