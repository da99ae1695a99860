//! A line of text as the fields that a JSON line would have: syslog's (RFC 3164 and 5424), also as daemons write it into files, logfmt, and
//! what begins with a date and a time. A message that has fields itself has those.

use crate::{
    entries::Entry,
    line::{self, LONGEST},
};
use serde_json::{Map, Value};

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
const LEVELS: [&str; 15] = [
    "trace",
    "debug",
    "info",
    "notice",
    "warn",
    "warning",
    "err",
    "error",
    "severe",
    "crit",
    "critical",
    "fatal",
    "alert",
    "emerg",
    "emergency",
];
/// A level is among the first words behind the time, after a thread or a logger.
const WORDS_TO_LEVEL: usize = 6;
/// The largest priority of syslog: a facility times eight, plus the severity.
const MOST_PRIORITY: u8 = 191;
const TIME: &str = "time";
const MESSAGE: &str = "message";
const PROGRAM: &str = "SYSLOG_IDENTIFIER";

type Fields = Map<String, Value>;

/// Returns the fields of a line; `None` if it has none of these forms, or is longer than 256 KiB.
pub(super) fn fields(line: &[u8]) -> Option<Fields> {
    if line.len() > LONGEST {
        return None;
    }
    let text = String::from_utf8_lossy(line);
    let text = text.trim();
    form(text).or_else(|| container(text))
}

fn form(text: &str) -> Option<Fields> {
    let read = syslog(text).or_else(|| logfmt(text));
    read.or_else(|| timed(text))
}

/// A line behind the name of its container, as Docker Compose shows it.
fn container(text: &str) -> Option<Fields> {
    let (name, line) = text.split_once(" | ")?;
    let (name, line) = (name.trim_end(), line.trim_start());
    let is_part = |letter: char| letter.is_alphanumeric() || "-._".contains(letter);
    if name.is_empty() || !name.chars().all(is_part) {
        return None;
    }
    let mut fields = line::fields(line.as_bytes()).or_else(|| form(line))?;
    fields.entry(PROGRAM).or_insert_with(|| name.into());
    Some(fields)
}

/// Puts a message among the fields, or those that it has itself, such as of a service that writes JSON.
fn add_message(fields: &mut Fields, message: &str) {
    let inner = line::fields(message.as_bytes()).or_else(|| logfmt(message));
    let inner = inner.filter(|inner| {
        let entry = Entry::from_fields(inner);
        entry.is_some_and(|entry| entry.message.is_some())
    });
    match inner {
        Some(inner) => fields.extend(inner),
        None if message.is_empty() => {}
        None => {
            fields.insert(MESSAGE.to_owned(), message.into());
        }
    }
}

fn syslog(text: &str) -> Option<Fields> {
    let mut fields = Fields::new();
    let priority = priority(text);
    let mut rest = text;
    if let Some((severity, after)) = priority {
        fields.insert("PRIORITY".to_owned(), severity.to_string().into());
        rest = after;
        if let Some(newer) = rest.strip_prefix("1 ") {
            return newer_syslog(newer, fields);
        }
    }
    let (time, rest) = short_time(rest).or_else(|| {
        let (time, after) = iso_time(rest)?;
        rest.get(10..11).filter(|mark| *mark == "T")?;
        Some((time, after))
    })?;
    fields.insert(TIME.to_owned(), time.into());
    let (host, after) = rest.trim_start().split_once(' ')?;
    let is_part = |letter: char| letter.is_alphanumeric() || "-._:".contains(letter);
    let is_host = host.chars().all(is_part) && !host.ends_with(':') && !is_level(host);
    let tagged = tag(after).filter(|_| is_host);
    let (mut program, message) = match (tagged, priority) {
        (Some((program, message)), _) => (Some(program), message),
        // Over the network, some leave the host out.
        (None, Some(_)) => match tag(rest.trim_start()) {
            Some((program, message)) => (Some(program), message),
            None => (None, rest.trim_start()),
        },
        (None, None) => return None,
    };
    // Some write their name and a level in the places of the host and the program.
    if let Some(level) = program.filter(|program| is_level(program)) {
        fields.insert("level".to_owned(), level.into());
        program = tagged.map(|_| host);
    }
    if let Some(program) = program {
        fields.insert(PROGRAM.to_owned(), program.into());
    }
    add_message(&mut fields, message);
    Some(fields)
}

/// What follows the version of RFC 5424 (6): time, host, program, process, kind and structured data, each a word, and the message.
fn newer_syslog(text: &str, mut fields: Fields) -> Option<Fields> {
    let mut words = text.splitn(6, ' ');
    let (time, _host, program) = (words.next()?, words.next()?, words.next()?);
    let rest = words.nth(2)?;
    let message = match rest.strip_prefix('-') {
        Some(message) => message,
        None => &rest[elements_end(rest)?..],
    };
    for (name, value) in [(TIME, time), (PROGRAM, program)] {
        if !value.is_empty() && value != "-" {
            fields.insert(name.to_owned(), value.into());
        }
    }
    let message = message.trim_start().trim_start_matches('\u{feff}');
    add_message(&mut fields, message);
    Some(fields)
}

/// Where the elements in brackets end that a text begins with. A bracket in quotation marks is a part of a value.
fn elements_end(text: &str) -> Option<usize> {
    let (mut is_inside, mut is_quoted, mut is_escaped) = (false, false, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' if is_inside => is_quoted = !is_quoted,
            '[' if !is_quoted => is_inside = true,
            ']' if !is_quoted => is_inside = false,
            _ if !is_inside => return Some(at),
            _ => {}
        }
    }
    (!is_inside).then_some(text.len())
}

/// The severity, and what follows it.
fn priority(text: &str) -> Option<(u8, &str)> {
    let (number, rest) = text.strip_prefix('<')?.split_once('>')?;
    let number: u8 = number.parse().ok()?;
    (number <= MOST_PRIORITY).then_some((number % 8, rest))
}

/// The program, which may have its process in brackets, and the message.
fn tag(text: &str) -> Option<(&str, &str)> {
    let (tag, message) = text.split_once(':')?;
    let program = tag.split('[').next()?;
    let is_program = |letter: char| letter.is_alphanumeric() || "-._/@()".contains(letter);
    let is_tag = !program.is_empty()
        && program.chars().all(is_program)
        && !tag.contains(char::is_whitespace);
    is_tag.then_some((program, message.trim_start()))
}

/// A time such as `Nov 22 08:00:00`, as one that sorts, and what follows it.
fn short_time(text: &str) -> Option<(String, &str)> {
    let month = text.get(..3)?;
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    let day: u8 = text.get(3..6)?.trim_start().parse().ok()?;
    let clock = text
        .get(6..15)?
        .strip_prefix(' ')
        .filter(|clock| is_clock(clock))?;
    Some((format!("{month:02}-{day:02}T{clock}"), &text[15..]))
}

/// A date and a time, as ISO 8601 has them, and what follows them.
fn iso_time(text: &str) -> Option<(String, &str)> {
    let (date, mark) = (text.get(..10)?, text.get(10..11)?);
    let clock = text.get(11..19).filter(|clock| is_clock(clock))?;
    let is_date = date.bytes().enumerate().all(|(at, byte)| match at {
        4 | 7 => matches!(byte, b'-' | b'/'),
        _ => byte.is_ascii_digit(),
    });
    if !is_date || !matches!(mark, "T" | " ") {
        return None;
    }
    let is_more = |letter: char| letter.is_ascii_digit() || ".,+-:Z".contains(letter);
    let more = text[19..].split(|letter| !is_more(letter)).next()?;
    let after = &text[19 + more.len()..];
    let date = date.replace('/', "-");
    let more = more
        .trim_end_matches(['.', ',', '-', ':'])
        .replace(',', ".");
    Some((format!("{date}T{clock}{more}"), after))
}

fn is_clock(text: &str) -> bool {
    text.len() == 8
        && text.bytes().enumerate().all(|(at, byte)| match at {
            2 | 5 => byte == b':',
            _ => byte.is_ascii_digit(),
        })
}

fn is_level(word: &str) -> bool {
    LEVELS.iter().any(|level| word.eq_ignore_ascii_case(level))
}

/// A line with a time before it, and mostly a level.
fn timed(text: &str) -> Option<Fields> {
    let (time, rest) = iso_time(text.strip_prefix('[').unwrap_or(text))?;
    let mut fields = Fields::from_iter([(TIME.to_owned(), time.into())]);
    // As Kubernetes keeps what containers write.
    let of_stream = |stream: &str| rest.trim_start().strip_prefix(stream)?.strip_prefix(" F ");
    let written = ["stdout", "stderr"].into_iter().find_map(of_stream);
    let rest = written.unwrap_or(rest);
    let is_json = rest.trim_start().starts_with('{');
    let message = match level(rest).filter(|_| !is_json) {
        Some((level, after)) => {
            fields.insert("level".to_owned(), level.into());
            after
        }
        None => rest,
    };
    let message = message.trim_start_matches([' ', '\t', '-', ':', '|', ']', ')']);
    add_message(&mut fields, message);
    Some(fields)
}

/// The level among the first words, and what follows it. Behind the first word, it is in capitals or brackets.
fn level(text: &str) -> Option<(&str, &str)> {
    let mut rest = text;
    for place in 0..WORDS_TO_LEVEL {
        let begun = rest.trim_start_matches([' ', '\t', '-', '|', ']']);
        let end = begun.find(char::is_whitespace).unwrap_or(begun.len());
        let (word, after) = begun.split_at(end);
        let name = word.trim_matches(|letter: char| !letter.is_alphanumeric());
        let is_marked = word.starts_with('[') || name.chars().all(char::is_uppercase);
        if (place == 0 || is_marked) && is_level(name) {
            return Some((name, after));
        }
        rest = after;
    }
    None
}

/// Names with values, such as `level=error msg="no route"`. A word alone is a name that is true.
fn logfmt(text: &str) -> Option<Fields> {
    let mut fields = Fields::new();
    let (mut pairs, mut alone) = (0, 0);
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|letter: char| letter == '=' || letter.is_whitespace());
        let (name, after) = rest.split_at(end.unwrap_or(rest.len()));
        let is_part = |letter: char| letter.is_alphanumeric() || "_-./@:".contains(letter);
        let is_name = name.chars().all(is_part)
            && name.starts_with(|letter: char| letter.is_alphabetic() || "_@".contains(letter));
        if !is_name {
            return None;
        }
        let (value, after) = match after.strip_prefix('=') {
            None if pairs == 0 => return None,
            None => {
                alone += 1;
                (Value::Bool(true), after)
            }
            Some(value) => {
                pairs += 1;
                quoted(value).unwrap_or_else(|| plain(value))
            }
        };
        fields.insert(name.to_owned(), value);
        rest = after.trim_start();
    }
    (pairs > 1 && pairs > alone).then_some(fields)
}

/// A value between quotation marks, and what follows it.
fn quoted(text: &str) -> Option<(Value, &str)> {
    let inside = text.strip_prefix('"')?;
    let mut is_escaped = false;
    let end = inside.find(|letter: char| {
        let ends = letter == '"' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        ends
    })?;
    let (inside, after) = (&inside[..end], &inside[end + 1..]);
    let value: Option<String> = serde_json::from_str(&text[..end + 2]).ok();
    // Some escapes are Go's alone.
    let value = value.unwrap_or_else(|| inside.to_owned());
    Some((value.into(), after))
}

fn plain(text: &str) -> (Value, &str) {
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (value, after) = text.split_at(end);
    let number = serde_json::from_str(value).map(Value::Number);
    (number.unwrap_or_else(|_| value.into()), after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::Entry;

    /// The kind, the message and the time of a line, with `-` for what it lacks.
    fn seen(line: &str) -> [String; 3] {
        let entry = fields(line.as_bytes()).and_then(|fields| Entry::from_fields(&fields));
        let entry = entry.unwrap_or_else(|| panic!("{line}"));
        let time = entry.time.map(|time| time.to_string());
        [entry.kind, entry.message, time].map(|field| field.unwrap_or_else(|| "-".to_owned()))
    }

    #[test]
    fn lines_of_syslog_are_read() {
        for (line, read) in [
            // RFC 5424, 6.5
            (
                "<34>1 2003-10-11T22:14:15.003Z mymachine.example.com su - ID47 - \u{feff}'su root' failed",
                [
                    "critical",
                    "su: 'su root' failed",
                    "2003-10-11T22:14:15.003Z",
                ],
            ),
            (
                "<165>1 2003-10-11T22:14:15Z web evntslog 7 ID47 [ex@32473 iut=\"3\" x=\"a]\\\"\"][more] An event",
                ["notice", "evntslog: An event", "2003-10-11T22:14:15Z"],
            ),
            ("<14>1 - - app - - - up", ["info", "app: up", "-"]),
            // RFC 3164, 5.4; with and without a host
            (
                "<34>Oct 11 22:14:15 mymachine su: 'su root' failed",
                ["critical", "su: 'su root' failed", "10-11T22:14:15"],
            ),
            (
                "<27>Oct  1 22:14:15 su: pam: no",
                ["error", "su: pam: no", "10-01T22:14:15"],
            ),
            // Files, and journalctl
            (
                "Nov 22 08:00:00 web sshd[871]: error: Connection closed",
                ["-", "sshd: error: Connection closed", "11-22T08:00:00"],
            ),
            (
                "2025-11-22T08:00:00.123456+01:00 web kernel: [ 1.0] eth0: up",
                [
                    "-",
                    "kernel: [ 1.0] eth0: up",
                    "2025-11-22T08:00:00.123456+01:00",
                ],
            ),
        ] {
            assert_eq!(seen(line), read, "{line}");
        }
    }

    #[test]
    fn a_level_is_no_program() {
        for (line, read) in [
            (
                "2025-01-02T03:04:05Z main ERROR: no room",
                ["ERROR", "main: no room", "2025-01-02T03:04:05Z"],
            ),
            (
                "Nov 22 08:00:00 web warning: slow: 7 s",
                ["warning", "web: slow: 7 s", "11-22T08:00:00"],
            ),
            (
                "<30>Nov 22 08:00:00 err: no room",
                ["error", "no room", "11-22T08:00:00"],
            ),
            (
                "<27>1 2025-11-22T08:00:00Z web error - - - down",
                ["error", "error: down", "2025-11-22T08:00:00Z"],
            ),
            (
                "Nov 22 08:00:00 web errord: up",
                ["-", "errord: up", "11-22T08:00:00"],
            ),
        ] {
            assert_eq!(seen(line), read, "{line}");
        }
    }

    #[test]
    fn lines_of_logfmt_are_read() {
        for (line, read) in [
            (
                r#"time="2025-11-22T08:00:00Z" level=error msg="no \"route\"" took=1.5 retried"#,
                ["error", "no \"route\"", "2025-11-22T08:00:00Z"],
            ),
            (
                "ts=1763769600 lvl=warn msg=slow path=/a?b=c",
                ["warn", "slow", "2025-11-22T00:00:00Z"],
            ),
            // An escape of Go's.
            (
                r#"level=info msg="\x1b[0m up""#,
                ["info", r"\x1b[0m up", "-"],
            ),
            ("level=50 msg=late", ["error", "late", "-"]),
        ] {
            assert_eq!(seen(line), read, "{line}");
        }
        let took = fields(b"level=info msg=done took_s=1.5 id=7").unwrap();
        let took = Entry::from_fields(&took).unwrap().metrics;
        assert_eq!(took, [("took_s".to_owned(), 1.5)]);
    }

    #[test]
    fn a_line_may_begin_with_its_time() {
        for (line, read) in [
            (
                "2025-11-22 08:00:00,123 - shop - ERROR - card declined",
                ["ERROR", "card declined", "2025-11-22T08:00:00.123"],
            ),
            (
                "2025-11-22T08:00:00Z  WARN shop::pay: slow",
                ["WARN", "shop::pay: slow", "2025-11-22T08:00:00Z"],
            ),
            (
                "2025/11/22 08:00:00 [error] 7#0: *1 open() failed",
                ["error", "7#0: *1 open() failed", "2025-11-22T08:00:00"],
            ),
            (
                "2025-11-22 08:00:00.5 UTC [871] FATAL:  no room",
                ["FATAL", "no room", "2025-11-22T08:00:00.5"],
            ),
            (
                "[2025-11-22 08:00:00] server started without error",
                ["-", "server started without error", "2025-11-22T08:00:00"],
            ),
        ] {
            assert_eq!(seen(line), read, "{line}");
        }
    }

    #[test]
    fn a_message_may_have_fields_of_its_own() {
        let json = r#"{"level":"error","msg":"card declined","time":"2025-11-22T08:00:01Z"}"#;
        let inner = ["error", "card declined", "2025-11-22T08:00:01Z"];
        let named = ["error", "shop: card declined", "2025-11-22T08:00:01Z"];
        for (before, read) in [
            ("Nov 22 08:00:00 web shop[871]: ", named),
            ("<14>1 2025-11-22T08:00:00Z web shop 871 - - ", named),
            ("2025-11-22T08:00:00.5Z stderr F ", inner),
            ("2025-11-22 08:00:00 ", inner),
            ("shop  | ", named),
        ] {
            assert_eq!(seen(&format!("{before}{json}")), read, "{before}");
        }
        for (line, read) in [
            (
                "Nov 22 08:00:00 web shop: level=warn msg=slow",
                ["warn", "shop: slow", "11-22T08:00:00"],
            ),
            (
                "shop-1 | 2025-11-22 08:00:00 ERROR no room",
                ["ERROR", "shop-1: no room", "2025-11-22T08:00:00"],
            ),
            // Fields without a message are one.
            (
                "Nov 22 08:00:00 web kernel: IN=eth0 OUT= SRC=10.0.0.1",
                ["-", "kernel: IN=eth0 OUT= SRC=10.0.0.1", "11-22T08:00:00"],
            ),
        ] {
            assert_eq!(seen(line), read, "{line}");
        }
    }

    #[test]
    fn what_has_no_form_is_no_line() {
        for line in [
            "nonsense",
            "",
            "[1, 2]",
            "{\"level\": \"error\"",
            "Traceback (most recent call last):",
            "    at Shop.pay (shop.js:7)",
            "see a = b",
            "x=1",
            "retried a=1 b=2",
            "a | b",
            "shop | started",
            "<200>Oct 11 22:14:15 a b: c",
            "<34>",
            "Nov 22 08:00",
            "Dezember 2025 war kalt: sehr",
            "2025-11-22 was a Saturday",
            "ü025-11-22T08:00:00 x",
        ] {
            assert!(fields(line.as_bytes()).is_none(), "{line}");
        }
        assert!(fields(format!("a=1 b={}", "x".repeat(LONGEST)).as_bytes()).is_none());
    }
}
