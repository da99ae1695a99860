//! E-mails: what stands above their text, and the header of ours.

use super::{aggregate::Aggregate, triage::MessageType};
use std::fmt;

/// Lines above the text that may be header fields.
const MOST_FIELDS: usize = 100;
const LONGEST_SUBJECT: usize = 200;
const URGENCIES: [&str; 4] = ["whenever", "this week", "today", "now"];

/// Returns the subject of an e-mail, if the text begins with the header of one (RFC 5322, 2.2): lines such as
/// `Subject: Parking`, and an empty one. A folded line is unfolded; encoded words (RFC 2047) stay as they are.
pub fn subject(text: &str) -> Option<String> {
    let mut subject: Option<String> = None;
    let mut is_subject = false;
    for line in text.trim_start().lines().take(MOST_FIELDS) {
        if line.trim().is_empty() {
            let subject = subject?;
            let subject: String = subject.chars().take(LONGEST_SUBJECT).collect();
            return Some(subject);
        }
        if line.starts_with([' ', '\t']) {
            if let Some(subject) = subject.as_mut().filter(|_| is_subject) {
                subject.push(' ');
                subject.push_str(line.trim());
            }
            continue;
        }
        let (name, value) = line.split_once(':')?;
        let is_name = |c: char| c.is_ascii_graphic();
        if name.is_empty() || !name.chars().all(is_name) {
            return None;
        }
        is_subject = name.eq_ignore_ascii_case("subject");
        if is_subject {
            subject = Some(value.trim().to_owned());
        }
    }
    None
}

/// What a reader or a cloud needs to know before the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub subject: String,
    pub kind: MessageType,
    /// 0 to 3, as in a triage.
    pub urgency: u8,
}

impl Header {
    /// Returns the header of a brief: a problem for today if there are errors, for this week if there are warnings.
    pub fn of_brief(aggregate: &Aggregate) -> Self {
        let (errors, warnings) = (aggregate.errors(), aggregate.warnings());
        let count = |count: u64, what: &str| {
            let plural = if count == 1 { "" } else { "s" };
            format!("{count} {what}{plural}")
        };
        let entries = match aggregate.entries {
            1 => "1 entry".to_owned(),
            entries => format!("{entries} entries"),
        };
        let what = match (errors, warnings) {
            (0, 0) => "no errors".to_owned(),
            (0, warnings) => count(warnings, "warning"),
            (errors, 0) => count(errors, "error"),
            (errors, warnings) => {
                format!("{}, {}", count(errors, "error"), count(warnings, "warning"))
            }
        };
        let when = match (&aggregate.from, &aggregate.to) {
            (Some(from), Some(to)) if from != to => format!(", {from} to {to}"),
            (Some(at), _) => format!(", {at}"),
            _ => String::new(),
        };
        let (kind, urgency) = match (errors, warnings) {
            (0, 0) => (MessageType::Fyi, 0),
            (0, _) => (MessageType::Problem, 1),
            _ => (MessageType::Problem, 2),
        };
        Self {
            subject: format!("{what} in {entries}{when}"),
            kind,
            urgency,
        }
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = URGENCIES.get(usize::from(self.urgency));
        let words = words.copied().unwrap_or_default();
        // A line of its own would be a field of its own.
        let subject = self.subject.replace(['\r', '\n'], " ");
        let kind = self.kind.as_str();
        let urgency = self.urgency;
        write!(
            f,
            "Subject: {subject}\nType: {kind}\nUrgency: {urgency} ({words})\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aggregate::Counter;

    #[test]
    fn the_subject_of_an_email_is_read_from_its_header() {
        for (text, expected) in [
            ("Subject: Parking\n\nHello", Some("Parking")),
            (
                "From: a@b.example\r\nSUBJECT: One\r\n  and two\r\nDate: today\r\n\r\nHi",
                Some("One and two"),
            ),
            ("Hello: this is no header\nat all\n\nSubject: no", None),
            ("Subject: without a text", None),
            ("From: a@b.example\n\nHi", None),
            ("Note to all: please read\n\nSubject: no", None),
            ("", None),
        ] {
            assert_eq!(subject(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn the_header_of_a_brief_follows_from_its_counts() {
        let header = |lines: &[&str]| {
            let mut counter = Counter::default();
            lines.iter().for_each(|line| counter.line(line.as_bytes()));
            Header::of_brief(&counter.done()).to_string()
        };
        let fine = r#"{"level": "info", "message": "started", "time": "08:00"}"#;
        let warning = r#"{"level": "warning", "message": "slow", "time": "08:30"}"#;
        let error = r#"{"level": "error", "message": "disk full", "time": "09:00"}"#;
        assert_eq!(
            header(&[fine, warning, error, error]),
            "Subject: 2 errors, 1 warning in 4 entries, 08:00 to 09:00\nType: problem\nUrgency: 2 (today)\n"
        );
        assert_eq!(
            header(&[fine, warning]),
            "Subject: 1 warning in 2 entries, 08:00 to 08:30\nType: problem\nUrgency: 1 (this week)\n"
        );
        assert_eq!(
            header(&[fine]),
            "Subject: no errors in 1 entry, 08:00\nType: fyi\nUrgency: 0 (whenever)\n"
        );
    }

    #[test]
    fn a_subject_cannot_add_a_field() {
        let header = Header {
            subject: "a\r\nBcc: all@b.example".to_owned(),
            kind: MessageType::Fyi,
            urgency: 0,
        };
        assert_eq!(header.to_string().lines().count(), 3);
    }
}
