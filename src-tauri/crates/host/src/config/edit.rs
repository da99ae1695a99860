//! Merges a partial configuration into the text of another, and keeps its comments.

use super::{keys::nearest_key, read::keys};
use serde_json::{Map, Value};
use tierbar_core::{Code, Config, Error};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike, value};

/// # Errors
/// `BadRequest` if the patch has an unknown key or a value that TOML cannot hold; `ConfigInvalid` if the text is already
/// invalid.
pub(crate) fn merge(text: &str, patch: &Map<String, Value>) -> Result<String, Error> {
    // An editor on Windows may have written either.
    let (mark, plain) = match text.strip_prefix('\u{feff}') {
        Some(plain) => ("\u{feff}", plain),
        None => ("", text),
    };
    let merged = merge_plain(plain, patch)?;
    let merged = match text.contains("\r\n") {
        true => merged.replace("\r\n", "\n").replace('\n', "\r\n"),
        false => merged,
    };
    Ok(format!("{mark}{merged}"))
}

fn merge_plain(text: &str, patch: &Map<String, Value>) -> Result<String, Error> {
    refuse_unknown(patch)?;
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        let message = format!("config.toml is already invalid: {}", error.message());
        Error::new(Code::ConfigInvalid, message).hint("correct the file first")
    })?;
    // Otherwise the comments at the end would follow the added part, as if they belonged to it.
    let comments = document.trailing().as_str().unwrap_or_default().to_owned();
    document.set_trailing("");
    let body = document.to_string();
    apply(document.as_table_mut(), patch, "")?;
    let edited = document.to_string();
    Ok(match edited.strip_prefix(&body) {
        Some(added) if !added.is_empty() && !comments.trim().is_empty() => {
            let (comments, added) = (comments.trim_end(), added.trim_start_matches('\n'));
            format!("{body}{comments}\n\n{added}")
        }
        _ => edited + &comments,
    })
}

/// Removes the line from the error of a merged text, which the sender of the patch has never seen.
pub(crate) fn without_line(mut error: Error) -> Error {
    error.details.remove("line");
    if let Some((place, what)) = error.message.split_once(": ")
        && place.starts_with("config.toml")
    {
        error.message = what.to_owned();
    }
    error
}

fn refuse_unknown(patch: &Map<String, Value>) -> Result<(), Error> {
    let mut unknown = Vec::new();
    // A wrong type ends the search early and is reported with its key after the merge.
    let _: Result<Config, _> =
        serde_ignored::deserialize(Value::Object(without_null(patch)), |path| {
            unknown.push(keys(&path))
        });
    let Some(unknown) = unknown.first() else {
        return Ok(());
    };
    let message = format!("the configuration has no key {}", unknown.join("."));
    let error = Error::new(Code::BadRequest, message);
    Err(match nearest_key(unknown) {
        Some(meant) => error.hint(format!("did you mean {meant}?")),
        None => error,
    })
}

fn without_null(object: &Map<String, Value>) -> Map<String, Value> {
    let kept = object.iter().filter(|(_, value)| !value.is_null());
    kept.map(|(key, value)| match value {
        Value::Object(inner) => (key.clone(), Value::Object(without_null(inner))),
        other => (key.clone(), other.clone()),
    })
    .collect()
}

fn apply(table: &mut dyn TableLike, patch: &Map<String, Value>, path: &str) -> Result<(), Error> {
    for (key, new) in patch {
        let here = if path.is_empty() {
            key.clone()
        } else {
            format!("{path}.{key}")
        };
        match new {
            Value::Null => {
                table.remove(key);
            }
            Value::Object(inner) => {
                if !table.get(key).is_some_and(Item::is_table_like) {
                    let mut section = Table::new();
                    // A table of tables only needs no header of its own.
                    section.set_implicit(inner.values().all(Value::is_object) && !inner.is_empty());
                    table.insert(key, Item::Table(section));
                }
                if let Some(section) = table.get_mut(key).and_then(Item::as_table_like_mut) {
                    apply(section, inner, &here)?;
                }
            }
            other => set_value(table, key, toml_value(other, &here)?),
        }
    }
    Ok(())
}

/// Replaces only the value: the rest of its line stays.
fn set_value(table: &mut dyn TableLike, key: &str, mut new: toml_edit::Value) {
    if let Some(Item::Value(old)) = table.get_mut(key) {
        if let (Some(list), Some(changed)) = (old.as_array_mut(), new.as_array())
            && change_texts(list, changed)
        {
            return;
        }
        *new.decor_mut() = old.decor().clone();
        *old = new;
    } else {
        table.insert(key, value(new));
    }
}

/// Removes and appends texts of a list, so that comments between the others stay. Returns `false` for any other change.
fn change_texts(list: &mut Array, changed: &Array) -> bool {
    let texts = |list: &Array| -> Option<Vec<String>> {
        let texts = list.iter().map(|item| item.as_str().map(str::to_owned));
        texts.collect()
    };
    let (Some(before), Some(after)) = (texts(list), texts(changed)) else {
        return false;
    };
    let kept: Vec<_> = before
        .into_iter()
        .filter(|text| after.contains(text))
        .collect();
    if !after.starts_with(&kept) {
        return false;
    }
    list.retain(|item| {
        item.as_str()
            .is_some_and(|text| kept.iter().any(|kept| kept == text))
    });
    for text in &after[kept.len()..] {
        let end = list.trailing().as_str().unwrap_or_default().to_owned();
        let mut item = toml_edit::Value::from(text.as_str());
        match end.rsplit_once('\n') {
            // One to a line: what follows the last one, such as a comment, stays behind it.
            Some((rest, _)) if !list.is_empty() => {
                let first = list
                    .get(0)
                    .and_then(|first| first.decor().prefix()?.as_str());
                let indent = first.and_then(|prefix| prefix.rsplit_once('\n'));
                let indent = indent.map_or("  ", |(_, indent)| indent);
                item.decor_mut().set_prefix(format!("{rest}\n{indent}"));
                list.push_formatted(item);
                list.set_trailing("\n");
            }
            _ => list.push(item),
        }
    }
    true
}

fn toml_value(json: &Value, path: &str) -> Result<toml_edit::Value, Error> {
    let impossible = || Error::new(Code::BadRequest, format!("{path} cannot be {json}"));
    Ok(match json {
        Value::Null => return Err(impossible()),
        Value::Bool(truth) => (*truth).into(),
        Value::String(text) => text.as_str().into(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.into(),
            (None, Some(real)) if number.is_f64() => real.into(),
            _ => return Err(impossible()),
        },
        Value::Array(items) => {
            let items: Result<Array, _> = items.iter().map(|item| toml_value(item, path)).collect();
            items?.into()
        }
        Value::Object(fields) => {
            let mut table = InlineTable::new();
            for (key, field) in fields {
                table.insert(key, toml_value(field, path)?);
            }
            table.into()
        }
    })
}
