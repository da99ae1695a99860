//! Changes of other programs' configuration files, as texts: all that is not ours stays, comments included.

mod json;
mod toml;
mod yaml;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tierbar_connect::Form;

/// One change, with what undoing it takes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Change {
    Value {
        path: Vec<String>,
        /// How many of the path's keys were there.
        existed: usize,
        before: Option<Value>,
        after: Value,
    },
    /// Lines that were added.
    Lines(String),
    /// A line that stands for another one.
    Line { before: String, after: String },
}

#[derive(Debug)]
pub(super) struct EditResult {
    pub(super) text: String,
    pub(super) changes: Vec<Change>,
}

#[derive(Debug)]
pub(super) struct Reversal {
    pub(super) text: String,
    /// What another program has changed meanwhile, and so was left.
    pub(super) left: Vec<String>,
}

/// Puts a fragment into a text of the same form.
pub(super) fn apply(form: Form, text: &str, fragment: &str) -> Result<EditResult, String> {
    match form {
        Form::Json => apply_values::<json::Document>(text, fragment),
        Form::Toml => apply_values::<toml::Document>(text, fragment),
        Form::Yaml => yaml::apply(text, fragment),
    }
}

/// Takes changes out of a text again, except those that have been changed since.
pub(super) fn revert(form: Form, text: &str, changes: &[Change]) -> Result<Reversal, String> {
    match form {
        Form::Json => revert_values::<json::Document>(text, changes),
        Form::Toml => revert_values::<toml::Document>(text, changes),
        Form::Yaml => yaml::revert(text, changes),
    }
}

/// A file of nested tables whose text is kept.
trait Document: Sized {
    fn parse(text: &str) -> Result<Self, String>;
    /// Returns the whole as one object.
    fn value(&self) -> Value;
    /// Sets a value; tables on the way to it are added.
    fn set(&mut self, path: &[String], value: &Value) -> Result<(), String>;
    fn remove(&mut self, path: &[String]);
    fn text(&self) -> String;
}

fn apply_values<D: Document>(text: &str, fragment: &str) -> Result<EditResult, String> {
    let added = D::parse(fragment)?.value();
    let mut leaves = Vec::new();
    collect(&added, &mut Vec::new(), &mut leaves);
    let mut document = D::parse(text)?;
    let old = document.value();
    let mut changes = Vec::new();
    for (path, after) in leaves {
        let before = get(&old, &path).cloned();
        if before.as_ref() == Some(&after) {
            continue;
        }
        document.set(&path, &after)?;
        let existed = (0..=path.len()).rev();
        let existed = existed
            .clone()
            .find(|keys| get(&old, &path[..*keys]).is_some());
        changes.push(Change::Value {
            existed: existed.unwrap_or_default(),
            path,
            before,
            after,
        });
    }
    // A new file looks as its maker would write it.
    let changed = match text.trim().is_empty() {
        true => format!("{fragment}\n"),
        false => document.text(),
    };
    // Whatever the parser made of the text: without the changes, it must say what it said.
    let reverted = revert_values::<D>(&changed, &changes)?;
    if D::parse(&reverted.text)?.value() != old || !reverted.left.is_empty() {
        return Err("its text cannot be changed without losing something".to_owned());
    }
    Ok(EditResult {
        text: changed,
        changes,
    })
}

fn revert_values<D: Document>(text: &str, changes: &[Change]) -> Result<Reversal, String> {
    let mut document = D::parse(text)?;
    let mut left = Vec::new();
    for change in changes.iter().rev() {
        let Change::Value {
            path,
            existed,
            before,
            after,
        } = change
        else {
            continue;
        };
        let value = document.value();
        match get(&value, path) {
            None => {}
            Some(now) if now != after => left.push(path.join(".")),
            Some(_) => match before {
                Some(before) => document.set(path, before)?,
                None => {
                    document.remove(path);
                    remove_empty(&mut document, path, *existed);
                }
            },
        }
    }
    left.reverse();
    Ok(Reversal {
        text: document.text(),
        left,
    })
}

/// Removes the tables on the way to a value that were added for it and are empty now.
fn remove_empty<D: Document>(document: &mut D, path: &[String], existed: usize) {
    for keys in (existed + 1..path.len()).rev() {
        let value = document.value();
        let table = get(&value, &path[..keys]).and_then(Value::as_object);
        if !table.is_some_and(Map::is_empty) {
            return;
        }
        document.remove(&path[..keys]);
    }
}

fn get<'a>(value: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, key| value.get(key))
}

/// Collects the values of nested objects, each with its path.
fn collect(value: &Value, path: &mut Vec<String>, leaves: &mut Vec<(Vec<String>, Value)>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (key, field) in fields {
                path.push(key.clone());
                collect(field, path, leaves);
                path.pop();
            }
        }
        leaf => leaves.push((path.clone(), leaf.clone())),
    }
}

#[cfg(test)]
mod tests;
