//! YAML. Lines are added and removed, and a parser says whether the text then means what it should.

use super::{Change, EditResult, Reversal};
use saphyr::{LoadableYamlNode, Scalar, Yaml};
use serde_json::{Map, Value, json};

pub(super) fn apply(text: &str, fragment: &str) -> Result<EditResult, String> {
    let added = parse(fragment)?;
    let old = parse(text)?;
    if text.trim().is_empty() {
        let whole = format!("{fragment}\n");
        return Ok(EditResult {
            changes: vec![Change::Lines(whole.clone())],
            text: whole,
        });
    }
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut edit = Edit {
        text: text.to_owned(),
        expected: old,
        changes: Vec::new(),
        newline,
    };
    match &added {
        Value::Array(items) => {
            edit.push_items(None, fragment, items)?;
        }
        Value::Object(fields) => edit.merge(fragment, fields)?,
        _ => return Err("the settings are no YAML".to_owned()),
    }
    if parse(&edit.text).ok() != Some(edit.expected) {
        return Err("its form is one that lines cannot be added to safely".to_owned());
    }
    Ok(EditResult {
        text: edit.text,
        changes: edit.changes,
    })
}

pub(super) fn revert(text: &str, changes: &[Change]) -> Result<Reversal, String> {
    let mut reverted = text.to_owned();
    let mut left = Vec::new();
    for change in changes {
        let put_back = match change {
            Change::Lines(lines) => match reverted.matches(lines.as_str()).count() {
                1 => Ok(reverted.replacen(lines.as_str(), "", 1)),
                _ => Err(lines),
            },
            Change::Line { before, after } => replace_once(&reverted, after, before).ok_or(after),
            Change::Value { .. } => continue,
        };
        match put_back {
            Ok(text) => reverted = text,
            Err(lines) => left.push(lines.lines().next().unwrap_or_default().trim().to_owned()),
        }
    }
    parse(&reverted)?;
    Ok(Reversal {
        text: reverted,
        left,
    })
}

struct Edit {
    text: String,
    /// What the text should mean.
    expected: Value,
    changes: Vec<Change>,
    newline: &'static str,
}

impl Edit {
    fn merge(&mut self, fragment: &str, fields: &Map<String, Value>) -> Result<(), String> {
        if self.expected.is_null() {
            self.expected = json!({});
        }
        // Beside a list to add to, the other keys are those that each such file has.
        let has_list = fields.values().any(Value::is_array);
        for (key, value) in fields {
            let lines = section(fragment, key);
            let Some(there) = self.expected.get(key).cloned() else {
                self.insert(self.text.len(), &lines);
                self.expected[key] = value.clone();
                continue;
            };
            match value {
                Value::Array(items) => self.push_items(Some(key), &lines, items)?,
                value if *value == there || has_list => {}
                _ => self.replace(key, &there, &lines, value)?,
            }
        }
        Ok(())
    }

    /// Puts a line in the place of a key's, whose comment stays.
    fn replace(
        &mut self,
        key: &str,
        there: &Value,
        line: &str,
        value: &Value,
    ) -> Result<(), String> {
        let refused = || format!("it already sets {key}, to {there}");
        let is_plain = |value: &Value| !value.is_array() && !value.is_object();
        let before = line_of(&self.text, key).filter(|_| is_plain(there) && is_plain(value));
        let before = before.ok_or_else(refused)?.to_owned();
        let ending = &before[before.trim_end_matches(['\r', '\n']).len()..];
        let comment = before.find(" #").map_or("", |at| before[at..].trim_end());
        let after = format!("{line}{comment}{ending}");
        self.text = replace_once(&self.text, &before, &after).ok_or_else(refused)?;
        self.expected[key] = value.clone();
        self.changes.push(Change::Line { before, after });
        Ok(())
    }

    /// Adds items at the end of the list of a key, or of the whole text.
    fn push_items(
        &mut self,
        key: Option<&str>,
        lines: &str,
        items: &[Value],
    ) -> Result<(), String> {
        let no_list = || "it has something else in the place of the list".to_owned();
        let (start, end) = match key {
            None => (0, self.text.len()),
            Some(key) => block(&self.text, key).ok_or_else(no_list)?,
        };
        let is_item = |line: &&str| line.trim_start().starts_with("- ");
        let indent = |text: &str| -> Option<usize> {
            let item = text.lines().find(is_item)?;
            Some(item.len() - item.trim_start().len())
        };
        let own = indent(lines).unwrap_or_default();
        let theirs = indent(&self.text[start..end]).unwrap_or(own);
        let items_only = lines.lines().skip_while(|line| !is_item(line));
        let moved = items_only
            .map(|line| format!("{}{}", " ".repeat(theirs), &line[own.min(line.len())..]));
        self.insert(end, &moved.collect::<Vec<_>>().join("\n"));
        let list = match key {
            Some(key) => &mut self.expected[key],
            None => &mut self.expected,
        };
        match list {
            Value::Null => *list = items.into(),
            Value::Array(list) => list.extend(items.iter().cloned()),
            _ => return Err(no_list()),
        }
        Ok(())
    }

    fn insert(&mut self, at: usize, lines: &str) {
        let lines = format!("{}{}", lines.replace('\n', self.newline), self.newline);
        let (before, after) = self.text.split_at(at);
        let gap = if before.is_empty() || before.ends_with('\n') {
            ""
        } else {
            self.newline
        };
        self.text = format!("{before}{gap}{lines}{after}");
        self.changes.push(Change::Lines(lines));
    }
}

/// Returns a text with one line for another; `None` unless it has the one exactly once.
fn replace_once(text: &str, old: &str, new: &str) -> Option<String> {
    let lines = text.split_inclusive('\n');
    let is_old = |line: &str| line.trim_end() == old.trim_end();
    if lines.clone().filter(|&line| is_old(line)).count() != 1 {
        return None;
    }
    Some(
        lines
            .map(|line| if is_old(line) { new } else { line })
            .collect(),
    )
}

/// Whether a line begins with a top-level key.
fn has_key(line: &str, key: &str) -> bool {
    let rest = line.strip_prefix(key);
    rest.is_some_and(|rest| rest.starts_with(':'))
}

/// Returns the line of a top-level key, with its end; `None` if its value has more lines.
fn line_of<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let mut lines = text.split_inclusive('\n');
    let line = lines.find(|line| has_key(line, key))?;
    let goes_on = |next: &str| next.starts_with([' ', '\t', '-']) && !next.trim().is_empty();
    Some(line).filter(|_| !lines.next().is_some_and(goes_on))
}

/// Returns the lines of a top-level key.
fn section(text: &str, key: &str) -> String {
    let mut lines = text.lines().skip_while(|line| !has_key(line, key));
    let first = lines.next().unwrap_or_default();
    let rest = lines.take_while(|line| line.starts_with(' '));
    std::iter::once(first)
        .chain(rest)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns the range of the lines below a top-level key, up to its last value.
fn block(text: &str, key: &str) -> Option<(usize, usize)> {
    let mut at = 0;
    let mut found: Option<(usize, usize)> = None;
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        let bare = line.trim();
        if let Some((start, _)) = found {
            let is_inside = line.starts_with([' ', '-']);
            if is_inside && !bare.is_empty() && !bare.starts_with('#') {
                found = Some((start, end));
            } else if !is_inside && !bare.is_empty() && !bare.starts_with('#') {
                break;
            }
        } else if has_key(line, key) {
            found = Some((end, end));
        }
        at = end;
    }
    found
}

fn parse(text: &str) -> Result<Value, String> {
    let documents = Yaml::load_from_str(text).map_err(|error| error.to_string())?;
    match documents.as_slice() {
        [] => Ok(Value::Null),
        [document] => Ok(to_json(document)),
        _ => Err("it has several documents".to_owned()),
    }
}

fn to_json(yaml: &Yaml<'_>) -> Value {
    match yaml {
        Yaml::Value(Scalar::Null) => Value::Null,
        Yaml::Value(Scalar::Boolean(truth)) => (*truth).into(),
        Yaml::Value(Scalar::Integer(number)) => (*number).into(),
        Yaml::Value(Scalar::String(text)) => text.as_ref().into(),
        Yaml::Sequence(items) => items.iter().map(to_json).collect(),
        Yaml::Mapping(fields) => {
            let fields = fields.iter().map(|(key, value)| match key.as_str() {
                Some(key) => (key.to_owned(), to_json(value)),
                None => (format!("{key:?}"), to_json(value)),
            });
            Value::Object(fields.collect())
        }
        // Compared only with itself.
        other => format!("{other:?}").into(),
    }
}
