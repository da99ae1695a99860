//! JSON log lines: what each contains, whatever its fields are called.

use serde_json::{Map, Value};
use std::{cmp::Ordering, ops::Range};

// The names of fields, the first one that a line has: of journald, syslog-ng, GELF, pino, bunyan, zap, logrus, slog, tracing, structlog,
// Python's logging, log4j, Serilog, Docker, Elastic, Google Cloud and OpenTelemetry. They are compared without case and separators, but for
// names with a capital or a mark in them, which are compared as they are. A point leads into an object.
/// What names the kind of an entry.
const KIND: [&str; 16] = [
    "kind",
    "level",
    "severity",
    "severitytext",
    "lvl",
    "levelname",
    "loglevel",
    "log.level",
    "PRIORITY",
    "@l",
    "L",
    SEVERITY_NUMBER,
    EVENT,
    "type",
    "category",
    "source",
];
const MESSAGE: [&str; 19] = [
    "message",
    "msg",
    "shortmessage",
    "body",
    "body.stringvalue",
    "fields.message",
    "textpayload",
    "jsonpayload.message",
    "log",
    "@m",
    "@mt",
    "M",
    "error",
    "err",
    "sentence",
    "text",
    "reason",
    "title",
    "description",
];
const TIME: [&str; 13] = [
    "time",
    "timestamp",
    "ts",
    "at",
    "atms",
    "date",
    "datetime",
    "t",
    "asctime",
    "eventtime",
    "timeunixnano",
    "realtimetimestamp",
    "instant.epochsecond",
];
/// The program that wrote a line, where many write into one log.
const PROGRAM: [&str; 4] = [
    "SYSLOG_IDENTIFIER",
    "_SYSTEMD_UNIT",
    "PROGRAM",
    "service.name",
];
const OUTCOME: [&str; 4] = ["outcome", "result", "status", "state"];
const METRIC: [&str; 2] = ["metric", "name"];
/// The message where something else is the kind.
const EVENT: &str = "event";
const SEVERITY_NUMBER: &str = "severitynumber";
/// No form of a time has more letters.
const LONGEST_TIME: usize = 64;
/// Numbers that measure nothing.
const NO_METRIC: [&str; 14] = [
    "id",
    "pid",
    "line",
    "lineno",
    "code",
    "port",
    "v",
    "version",
    "seq",
    "thread",
    "facility",
    "levelno",
    "levelvalue",
    SEVERITY_NUMBER,
];
/// The severities of syslog (RFC 5424, 6.2.1), from 0.
const SYSLOG: [&str; 8] = [
    "emergency",
    "alert",
    "critical",
    "error",
    "warning",
    "notice",
    "info",
    "debug",
];
/// The levels of pino and bunyan, from 10 in steps of 10, and of OpenTelemetry, from 1 in steps of 4.
const LEVELS: [&str; 6] = ["trace", "debug", "info", "warn", "error", "fatal"];
/// Seconds since 1970 from 2001 to 2286. A number of them in another unit is a thousand times as large.
const EPOCH: Range<f64> = 1e9..1e10;
const DAY: i64 = 86_400;

/// The contents of one line.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Entry {
    pub kind: Option<String>,
    pub message: Option<String>,
    pub time: Option<EntryTime>,
    pub outcome: Option<String>,
    pub metrics: Vec<(String, f64)>,
}

/// A time: as ISO 8601 if it was counted from 1970, else as it was written. Times of one form can be ordered; texts are compared as ISO
/// 8601.
#[derive(Debug, Clone, PartialEq)]
pub enum EntryTime {
    Number(f64),
    Text(String),
}

impl EntryTime {
    fn parse(value: &Value) -> Option<Self> {
        let number = match value {
            Value::Number(number) => number.as_f64()?,
            Value::String(text) => match text.parse::<f64>() {
                Ok(number) if number.is_finite() => number,
                _ => return Some(Self::Text(text.chars().take(LONGEST_TIME).collect())),
            },
            _ => return None,
        };
        let units = [1.0, 1e3, 1e6, 1e9].into_iter();
        let mut seconds = units.map(|unit| number / unit);
        let seconds = seconds.find(|seconds| EPOCH.contains(seconds));
        Some(seconds.map_or(Self::Number(number), |seconds| {
            Self::Text(utc(seconds as i64))
        }))
    }

    /// Compares two times; `None` if their forms differ.
    pub fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => a.partial_cmp(b),
            (Self::Text(a), Self::Text(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }
}

impl std::fmt::Display for EntryTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// Returns seconds since 1970 as ISO 8601. Its days are counted from 1 March 0000, so that a leap day is the last of its year (Howard
/// Hinnant, "chrono-Compatible Low-Level Date Algorithms").
fn utc(seconds: i64) -> String {
    let (days, left) = (seconds.div_euclid(DAY) + 719_468, seconds.rem_euclid(DAY));
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        10.. => (era * 400 + year + 1, month - 9),
        _ => (era * 400 + year, month + 3),
    };
    let (hour, minute, second) = (left / 3600, left / 60 % 60, left % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The fields of a line: the name to compare, the name as it is, and the value.
struct Fields<'a>(Vec<(String, &'a str, &'a Value)>);

impl<'a> Fields<'a> {
    fn of(object: &'a Map<String, Value>) -> Self {
        let mut fields = Vec::new();
        for (name, value) in object {
            let outer = plain_name(name);
            for (inner, value) in value.as_object().into_iter().flatten() {
                fields.push((format!("{outer}.{}", plain_name(inner)), "", value));
            }
            fields.push((outer, name.as_str(), value));
        }
        Self(fields)
    }

    /// Returns what is read of the first of these names that can be read.
    fn first<T>(&self, names: &[&str], read: impl Fn(&str, &Value) -> Option<T>) -> Option<T> {
        names.iter().find_map(|name| {
            let mut named = self
                .0
                .iter()
                .filter(|(plain, as_is, _)| plain == name || as_is == name);
            named.find_map(|(_, _, value)| read(name, value))
        })
    }

    fn words(&self, names: &[&str]) -> Option<String> {
        self.first(names, |_, value| words_of(value))
    }
}

fn plain_name(name: &str) -> String {
    let letters = name
        .chars()
        .filter(|letter| letter.is_alphanumeric() || *letter == '.');
    letters.flat_map(char::to_lowercase).collect()
}

impl Entry {
    /// Reads an object; returns `None` if it has no known field.
    pub fn from_fields(object: &Map<String, Value>) -> Option<Self> {
        let fields = Fields::of(object);
        let (named, kind) = fields
            .first(&KIND, |name, value| {
                Some((name.to_owned(), kind_of(name, value)?))
            })
            .unzip();
        let named = named.unwrap_or_default();
        let message = fields.words(&MESSAGE);
        let message = message.or_else(|| fields.words(&[EVENT]).filter(|_| named != EVENT));
        let program = fields.words(&PROGRAM).or_else(|| {
            // Bunyan's, and pino's if it has one. Elsewhere it names anything.
            let is_logger = object.get("level").is_some_and(Value::is_u64);
            fields.words(&["name"]).filter(|_| is_logger)
        });
        let message = match (message, program) {
            (Some(message), Some(program)) if !message.starts_with(&program) => {
                Some(format!("{program}: {message}"))
            }
            (message, _) => message,
        };
        let mut metrics = Vec::new();
        if let (Some(name), Some(value)) = (
            fields.words(&METRIC),
            object.get("value").and_then(Value::as_f64),
        ) {
            metrics.push((name, value));
        } else {
            let numbers = object.iter().filter(|(name, _)| {
                let plain = plain_name(name);
                let plain = plain.as_str();
                let is_id = NO_METRIC.contains(&plain) || name.ends_with("_id");
                !is_id && !TIME.contains(&plain) && plain != named
            });
            metrics
                .extend(numbers.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?))));
        }
        metrics.retain(|(_, value)| value.is_finite());
        let entry = Self {
            kind,
            message,
            time: fields.first(&TIME, |_, value| EntryTime::parse(value)),
            outcome: fields.words(&OUTCOME),
            metrics,
        };
        let has_fields = entry.kind.is_some()
            || entry.message.is_some()
            || entry.outcome.is_some()
            || !entry.metrics.is_empty();
        has_fields.then_some(entry)
    }
}

/// Returns the kind that a field names, of a level that is a number by its word.
fn kind_of(name: &str, value: &Value) -> Option<String> {
    let words = words_of(value);
    let number = match &words {
        Some(words) => words.parse().ok(),
        None => value.as_u64(),
    };
    let number = number.and_then(|number: u64| usize::try_from(number).ok());
    let level = match (name, number) {
        ("level" | "PRIORITY", Some(number @ 0..=7)) => SYSLOG.get(number),
        ("level", Some(number)) => LEVELS.get((number / 10).wrapping_sub(1)),
        (SEVERITY_NUMBER, Some(number)) => LEVELS.get(number.wrapping_sub(1) / 4),
        _ => None,
    };
    let short = match words.as_deref().unwrap_or_default() {
        "emerg" => Some("emergency"),
        "crit" => Some("critical"),
        "err" => Some("error"),
        _ => None,
    };
    level.copied().or(short).map(str::to_owned).or(words)
}

/// A field's value as words; of an object, its own message.
fn words_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Object(inner) => Some(inner.get("message")?.as_str()?.to_owned()),
        _ => None,
    }
}

/// Returns the message without its variable parts: numbers, and hexadecimal words such as ids.
pub fn template(message: &str) -> String {
    let mut text = String::with_capacity(message.len());
    let mut word = String::new();
    let close = |word: &mut String, text: &mut String| {
        let digits = word.chars().any(|c| c.is_ascii_digit());
        let hex = word.len() >= 4 && word.chars().all(|c| c.is_ascii_hexdigit() || c == 'x');
        if digits && (hex || word.chars().all(|c| c.is_ascii_digit())) {
            text.push('#');
        } else if digits {
            // `cpu0`, `3s`: the letters say what it is.
            let mut was_digit = false;
            for c in word.chars() {
                let is = c.is_ascii_digit();
                if !is {
                    text.push(c);
                } else if !was_digit {
                    text.push('#');
                }
                was_digit = is;
            }
        } else {
            text.push_str(word);
        }
        word.clear();
    };
    for c in message.chars() {
        if c.is_alphanumeric() {
            word.push(c);
        } else {
            close(&mut word, &mut text);
            text.push(if c.is_control() { ' ' } else { c });
        }
    }
    close(&mut word, &mut text);
    // `#.#` and `#-#-#` are one thing.
    for mark in ["#.#", "#:#", "#-#", "#,#"] {
        while text.contains(mark) {
            text = text.replace(mark, "#");
        }
    }
    text
}

#[cfg(test)]
mod tests;
