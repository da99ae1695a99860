//! JSON log lines: what each contains, whatever its fields are called.

use serde_json::{Map, Value};
use std::cmp::Ordering;

/// Fields that name the kind of an entry, the most specific first.
const KIND: [&str; 7] = [
    "kind", "level", "severity", "event", "type", "category", "source",
];
const MESSAGE: [&str; 8] = [
    "message",
    "msg",
    "error",
    "sentence",
    "text",
    "reason",
    "title",
    "description",
];
const TIME: [&str; 9] = [
    "time",
    "timestamp",
    "ts",
    "at",
    "at_ms",
    "@timestamp",
    "date",
    "datetime",
    "t",
];
const OUTCOME: [&str; 4] = ["outcome", "result", "status", "state"];
const METRIC: [&str; 2] = ["metric", "name"];
/// No form of a time has more letters.
const LONGEST_TIME: usize = 64;
/// Numbers that measure nothing.
const NO_METRIC: [&str; 8] = [
    "id", "pid", "line", "code", "port", "version", "seq", "thread",
];

/// The contents of one line.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Entry {
    pub kind: Option<String>,
    pub message: Option<String>,
    pub time: Option<When>,
    pub outcome: Option<String>,
    pub metrics: Vec<(String, f64)>,
}

/// A time as it was written. Times of one form can be ordered; texts are compared as ISO 8601.
#[derive(Debug, Clone, PartialEq)]
pub enum When {
    Number(f64),
    Text(String),
}

impl When {
    /// Compares two times; `None` if their forms differ.
    #[must_use]
    pub fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Number(a), Self::Number(b)) => a.partial_cmp(b),
            (Self::Text(a), Self::Text(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }
}

/// Prints it as it was written, so that a reader can find it.
impl std::fmt::Display for When {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl Entry {
    /// Reads an object; returns `None` if it has no known field.
    #[must_use]
    pub fn read(object: &Map<String, Value>) -> Option<Self> {
        let named = |names: &[&str]| {
            let found = names.iter().find_map(|name| object.get_key_value(*name));
            found.map(|(name, value)| (name.as_str(), value))
        };
        let text = |names: &[&str]| {
            let mut found = names.iter().filter_map(|name| object.get(*name));
            found.find_map(words_of)
        };
        let time = named(&TIME).and_then(|(_, value)| match value {
            Value::Number(number) => number.as_f64().map(When::Number),
            Value::String(text) => Some(When::Text(text.chars().take(LONGEST_TIME).collect())),
            _ => None,
        });
        let mut metrics = Vec::new();
        if let (Some(name), Some(value)) =
            (text(&METRIC), object.get("value").and_then(Value::as_f64))
        {
            metrics.push((name, value));
        } else {
            let numbers = object.iter().filter(|(name, _)| {
                let name = name.as_str();
                let is_id = NO_METRIC.contains(&name) || name.ends_with("_id");
                !is_id && !TIME.contains(&name)
            });
            metrics
                .extend(numbers.filter_map(|(name, value)| Some((name.clone(), value.as_f64()?))));
        }
        metrics.retain(|(_, value)| value.is_finite());
        let entry = Self {
            kind: text(&KIND),
            message: text(&MESSAGE),
            time,
            outcome: text(&OUTCOME),
            metrics,
        };
        let has_fields = entry.kind.is_some()
            || entry.message.is_some()
            || entry.outcome.is_some()
            || !entry.metrics.is_empty();
        has_fields.then_some(entry)
    }
}

/// A field's value as words; of an object, its own message.
fn words_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Some(text.trim().to_owned()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Object(inner) => inner
            .get("message")
            .and_then(Value::as_str)
            .map(str::to_owned),
        _ => None,
    }
}

/// Returns the message without its variable parts: numbers, and hexadecimal words such as ids.
#[must_use]
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
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: Value) -> Option<Entry> {
        Entry::read(value.as_object().unwrap())
    }

    #[test]
    fn log_fields_are_read_by_any_common_name() {
        let entry = read(json!({
            "ts": 1763769600.5, "level": "error", "msg": "disk 3 is full", "pid": 7, "took_ms": 12
        }))
        .unwrap();
        assert_eq!(entry.kind.as_deref(), Some("error"));
        assert_eq!(entry.message.as_deref(), Some("disk 3 is full"));
        assert_eq!(entry.time, Some(When::Number(1_763_769_600.5)));
        assert_eq!(entry.metrics, [("took_ms".to_owned(), 12.0)]);

        let entry = read(json!({"metric": "cpu", "value": 0.5, "at": "2026-11-22T02:00"})).unwrap();
        assert_eq!(entry.metrics, [("cpu".to_owned(), 0.5)]);
        let entry = read(json!({"error": {"message": "no"}, "status": "failed"})).unwrap();
        assert_eq!(
            (entry.message.as_deref(), entry.outcome.as_deref()),
            (Some("no"), Some("failed"))
        );
        assert_eq!(read(json!({})), None);
        assert_eq!(read(json!({"at": 1, "pid": 2, "msg": " "})), None);
    }

    #[test]
    fn similar_messages_share_a_template() {
        for (message, is) in [
            ("request 17 took 3.5 s", "request # took # s"),
            ("job 9f86d081-884c-7d65 died", "job # died"),
            ("0xdeadbeef12 freed at 10:30:01", "# freed at #"),
            ("decade of facades", "decade of facades"),
            ("cpu0 at 70%", "cpu# at #%"),
            ("added", "added"),
            ("2026-11-22 ok", "# ok"),
            ("", ""),
        ] {
            assert_eq!(template(message), is);
        }
    }

    #[test]
    fn times_of_different_formats_have_no_order() {
        let text = |text: &str| When::Text(text.to_owned());
        assert_eq!(
            text("2026-01-02").order(&text("2026-01-10")),
            Some(Ordering::Less)
        );
        assert_eq!(When::Number(1.0).order(&text("1")), None);
        assert_eq!(When::Number(1.0).to_string(), "1");
        assert_eq!(When::Number(1_763_769_600.0).to_string(), "1763769600");
    }
}
