//! Schedules: tasks at a time of day.

use super::hours::parse_minute;
use serde::{Deserialize, Serialize};
use std::fmt;

/// `[schedules.NAME]`. It names files to read and write, so that the API may set it within limits alone: see
/// [`ScheduleConfig::check_change`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ScheduleConfig {
    /// By local time.
    pub at: TimeOfDay,
    /// The days of the week; empty for every day.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub days: Vec<Weekday>,
    /// What it does with the source: a brief of its log lines, or a summary of its text.
    pub task: ScheduledTask,
    /// A file, a folder (what has changed in it since the last run), or an `http` or `https` URL.
    pub source: String,
    /// A file, with `{date}` in its name for the day, or an `http` or `https` URL that gets the result by POST.
    pub to: String,
    /// A tier, a model's id or `auto`; empty for the task's default.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// The most words of the result; without it, the task's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<u32>,
}

crate::words! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
    pub enum ScheduledTask {
        Brief = "brief",
        Summarize = "summarize",
    }
}

impl ScheduledTask {
    /// What the task makes, which is also the field of its answer.
    pub fn result(self) -> &'static str {
        match self {
            Self::Brief => "brief",
            Self::Summarize => "summary",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Weekday {
    Mon,
    Tue,
    Wed,
    Thu,
    Fri,
    Sat,
    Sun,
}

/// `"02:00"`, with two digits each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String)]
pub struct TimeOfDay(u16);

impl TimeOfDay {
    pub fn hour_and_minute(self) -> (u8, u8) {
        let two = |number| u8::try_from(number).unwrap_or_default();
        (two(self.0 / 60), two(self.0 % 60))
    }
}

impl TryFrom<String> for TimeOfDay {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        parse_minute(&text)
            .map(Self)
            .ok_or_else(|| format!("\"{text}\" is not a time of day: write it as \"02:00\""))
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (hour, minute) = self.hour_and_minute();
        write!(f, "{hour:02}:{minute:02}")
    }
}

impl ScheduleConfig {
    /// The placeholder for the day in `to`.
    pub const DATE: &'static str = "{date}";
    pub const WORDS: std::ops::RangeInclusive<u32> = 10..=2000;
    /// The most schedules.
    pub const MOST: usize = 64;

    /// Checks the schedule.
    ///
    /// # Errors
    /// The first invalid key, and why in a sentence.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let wrong = |key, what: &str| Err((key, what.to_owned()));
        if !is_url(&self.source) {
            whole_path(&self.source).map_err(|why| ("source", why))?;
        }
        if !is_url(&self.to) {
            whole_path(&self.to).map_err(|why| ("to", why))?;
            let to = &self.to;
            if to.ends_with('/') {
                let what = format!("\"{to}\" is a folder: name a file in it, such as {{date}}.md");
                return Err(("to", what));
            }
            let folder = to.rsplit_once('/').map_or("", |(folder, _)| folder);
            if folder == self.source.trim_end_matches('/') {
                return wrong(
                    "to",
                    "is in the source folder: each run would read the previous one",
                );
            }
            if folder.contains(Self::DATE) {
                return wrong("to", "{date} is allowed only in the file's name");
            }
            if *to == self.source {
                return wrong("to", "is the source file");
            }
        }
        if let Some(words) = self.words
            && !Self::WORDS.contains(&words)
        {
            let (least, most) = (Self::WORDS.start(), Self::WORDS.end());
            let what = format!("{words} is not between {least} and {most}");
            return Err(("words", what));
        }
        if self.model.len() > 256 {
            return wrong("model", "this is not a valid model name");
        }
        Ok(())
    }

    /// The files that a schedule set by the API may write.
    const WRITTEN: [&'static str; 3] = [".md", ".txt", ".json"];

    /// Checks what may be set without the configuration file: a schedule that reads no hidden files, such as keys, and writes nothing
    /// but documents, to a folder. What the file has set already may stay.
    ///
    /// # Errors
    /// The first key that only the file can set, and why in a sentence.
    pub fn check_change(&self, before: Option<&Self>) -> Result<(), (&'static str, String)> {
        let only_in_file = |what: &str| format!("{what} can be set only in config.toml");
        let is_new = |place: fn(&Self) -> &String| before.map(place) != Some(place(self));
        if is_new(|schedule| &schedule.source) && !is_url(&self.source) && is_hidden(&self.source) {
            return Err(("source", only_in_file("a hidden file or folder to read")));
        }
        if is_new(|schedule| &schedule.to) {
            if is_url(&self.to) {
                return Err(("to", only_in_file("a server that gets the result")));
            }
            if is_hidden(&self.to) {
                return Err(("to", only_in_file("a hidden file or folder to write")));
            }
            let name = self.to.to_ascii_lowercase();
            if !Self::WRITTEN.iter().any(|end| name.ends_with(end)) {
                let what = "a result other than an .md, .txt or .json file";
                return Err(("to", only_in_file(what)));
            }
        }
        Ok(())
    }
}

fn is_hidden(path: &str) -> bool {
    path.split('/').any(|part| part.starts_with('.'))
}

/// Returns whether a text, such as a source or target, is a URL of the web.
pub fn is_url(place: &str) -> bool {
    place.starts_with("https://") || place.starts_with("http://")
}

/// Checks that a path does not depend on the working directory and has no `..`.
fn whole_path(path: &str) -> Result<(), String> {
    const LONGEST: usize = 1024;
    if path.is_empty() || path.len() > LONGEST || path.chars().any(char::is_control) {
        return Err("this is not a valid file name".to_owned());
    }
    if !path.starts_with('/') && !path.starts_with("~/") {
        return Err(format!(
            "\"{path}\" is neither a full path nor a URL: start it with /, ~/ or https://"
        ));
    }
    if path.split('/').any(|part| part == "..") {
        return Err(format!(
            "\"{path}\" contains \"..\": write the path without it"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(source: &str, to: &str) -> ScheduleConfig {
        serde_json::from_value(serde_json::json!({
            "at": "02:00", "task": "brief", "source": source, "to": to
        }))
        .unwrap()
    }

    #[test]
    fn relative_paths_are_refused_with_their_key() {
        let wrong = |source, to| schedule(source, to).check().map_err(|(key, _)| key);
        for (source, to) in [
            ("/var/log/app", "~/briefs/{date}.md"),
            ("~/day.jsonl", "https://hooks.example/x"),
            ("https://a.example/day.jsonl", "/tmp/a.md"),
        ] {
            assert_eq!(wrong(source, to), Ok(()));
        }
        for (source, to, key) in [
            ("logs", "/tmp/a.md", "source"),
            ("ftp://a/b", "/tmp/a.md", "source"),
            ("/logs/../etc", "/tmp/a.md", "source"),
            ("", "/tmp/a.md", "source"),
            ("/logs", "a.md", "to"),
            ("/logs", "/tmp/", "to"),
            ("/logs", "/tmp/../a.md", "to"),
            ("/logs/", "/logs/{date}.md", "to"),
            ("/logs", "/tmp/{date}/a.md", "to"),
            ("/a.jsonl", "/a.jsonl", "to"),
            ("/logs", "/tmp/a\n.md", "to"),
        ] {
            assert_eq!(wrong(source, to), Err(key), "{source} {to}");
        }
        let mut long = schedule("/a", "/b");
        long.words = Some(5);
        assert_eq!(long.check().unwrap_err().0, "words");
    }

    #[test]
    fn a_time_of_day_survives_a_round_trip() {
        for text in ["00:00", "02:05", "23:59"] {
            let time = TimeOfDay::try_from(text.to_owned()).unwrap();
            assert_eq!(time.to_string(), text);
        }
        for text in ["", "2:00", "24:00", "02:60", "2am", "02:00:00"] {
            let error = TimeOfDay::try_from(text.to_owned()).unwrap_err();
            assert!(error.contains("write it as"), "{error}");
        }
    }

    #[test]
    fn without_the_file_only_documents_are_read_and_written() {
        let wrong = |source, to, before: Option<&ScheduleConfig>| {
            let changed = schedule(source, to).check_change(before);
            changed.map_err(|(key, _)| key)
        };
        for (source, to, key) in [
            ("~/logs", "~/briefs/{date}.md", None),
            ("https://a.example/log", "/b/out.TXT", None),
            ("~/.ssh/id_ed25519", "/b/a.md", Some("source")),
            ("/a/.env", "/b/a.md", Some("source")),
            ("/a", "~/.zshrc", Some("to")),
            ("/a", "~/.config/a.md", Some("to")),
            ("/a", "/b/run.sh", Some("to")),
            ("/a", "/b/md", Some("to")),
            ("/a", "https://a.example/hook", Some("to")),
        ] {
            assert_eq!(
                wrong(source, to, None),
                key.map_or(Ok(()), Err),
                "{source} {to}"
            );
        }
        let own = schedule("/a/.env", "https://a.example/hook");
        assert_eq!(
            wrong("/a/.env", "https://a.example/hook", Some(&own)),
            Ok(())
        );
        assert_eq!(wrong("/a/.env", "/b/a.md", Some(&own)), Ok(()));
        assert_eq!(wrong("/a/.env2", "/b/a.md", Some(&own)), Err("source"));
    }
}
