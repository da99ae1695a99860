//! TOML.

use serde_json::{Map, Value};
use toml_edit::{DocumentMut, Item, Table, TableLike, Value as TomlValue};

pub(super) struct Document(DocumentMut);

impl super::Document for Document {
    fn parse(text: &str) -> Result<Self, String> {
        let parsed = text.parse();
        parsed.map(Self).map_err(|error: toml_edit::TomlError| {
            let line = error
                .span()
                .map(|span| 1 + text[..span.start].matches('\n').count());
            match line {
                Some(line) => format!("line {line}: {}", error.message()),
                None => error.message().to_owned(),
            }
        })
    }

    fn value(&self) -> Value {
        of_table(self.0.as_table())
    }

    fn set(&mut self, path: &[String], value: &Value) -> Result<(), String> {
        let (Some((name, parents)), Some(mut new)) = (path.split_last(), of_json(value)) else {
            return Err("TOML has no such value".to_owned());
        };
        let mut table: &mut dyn TableLike = self.0.as_table_mut();
        for (depth, key) in parents.iter().enumerate() {
            if table.get(key).is_none() {
                let mut section = Table::new();
                // Only the innermost needs a header.
                section.set_implicit(depth + 1 < parents.len());
                table.insert(key, Item::Table(section));
            }
            let inner = table.get_mut(key).and_then(Item::as_table_like_mut);
            table = inner.ok_or_else(|| format!("{key} in it is not a table"))?;
        }
        if let Some(Item::Value(old)) = table.get_mut(name) {
            // The rest of the line stays.
            *new.decor_mut() = old.decor().clone();
            *old = new;
        } else {
            table.insert(name, Item::Value(new));
        }
        Ok(())
    }

    fn remove(&mut self, path: &[String]) {
        let Some((name, parents)) = path.split_last() else {
            return;
        };
        let mut table: &mut dyn TableLike = self.0.as_table_mut();
        for key in parents {
            match table.get_mut(key).and_then(Item::as_table_like_mut) {
                Some(inner) => table = inner,
                None => return,
            }
        }
        table.remove(name);
    }

    fn text(&self) -> String {
        self.0.to_string()
    }
}

fn of_table(table: &dyn TableLike) -> Value {
    let fields = table.iter().filter_map(|(key, item)| {
        let value = match item {
            Item::None => return None,
            Item::Value(value) => of_toml(value),
            Item::Table(table) => of_table(table),
            Item::ArrayOfTables(tables) => tables.iter().map(|table| of_table(table)).collect(),
        };
        Some((key.to_owned(), value))
    });
    Value::Object(fields.collect::<Map<_, _>>())
}

fn of_toml(value: &TomlValue) -> Value {
    match value {
        TomlValue::String(text) => text.value().as_str().into(),
        TomlValue::Integer(number) => (*number.value()).into(),
        TomlValue::Float(number) => (*number.value()).into(),
        TomlValue::Boolean(truth) => (*truth.value()).into(),
        TomlValue::Datetime(time) => time.value().to_string().into(),
        TomlValue::Array(items) => items.iter().map(of_toml).collect(),
        TomlValue::InlineTable(table) => of_table(table),
    }
}

/// Returns `None` for what TOML has no form for. Settings have neither times nor objects in lists.
fn of_json(value: &Value) -> Option<TomlValue> {
    Some(match value {
        Value::Bool(truth) => (*truth).into(),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64()?.into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => {
            let items: Option<toml_edit::Array> = items.iter().map(of_json).collect();
            items?.into()
        }
        Value::Null | Value::Object(_) => return None,
    })
}
