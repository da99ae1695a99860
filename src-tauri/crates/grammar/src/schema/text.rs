//! Texts: their length, their pattern, and their format.

use super::{Fields, MOST_REPEATS, SchemaWalk};
use crate::pattern::{json_string_grammar, json_text_grammar};
use serde_json::{Value, json};
use tierbar_core::Error;

/// Each of a text's characters is a rule.
const MOST_CHARACTERS: u64 = 20_000;

impl SchemaWalk<'_> {
    pub(super) fn translate_string(&mut self, fields: &Fields, at: &str) -> Result<Value, Error> {
        let limit = if self.strict {
            MOST_CHARACTERS
        } else {
            MOST_REPEATS
        };
        let (fewest, most) = self.counted_bounds(fields, ("minLength", "maxLength"), limit, at)?;
        let pattern = match fields.get("pattern") {
            None => None,
            Some(Value::String(pattern)) => Some(pattern.as_str()),
            Some(_) => return Err(self.wrong(at, "has a `pattern` that is not a text")),
        };
        let named = fields.get("format").and_then(Value::as_str);
        let format = named.filter(|_| self.strict).and_then(format_pattern);
        // A format is a note, which a length or a pattern outdoes.
        let has_length = fewest > 0 || most.is_some();
        let narrow = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        if let Some(pattern) = pattern.or(format.filter(|_| !has_length)) {
            match json_string_grammar(pattern, narrow(fewest), most.map(narrow)) {
                Ok(grammar) => return Ok(self.placeholders.constant(grammar)),
                Err(why) => {
                    let why = format!("\"{pattern:.80}\" cannot be followed: {why}");
                    self.refuse(at, "pattern", &why)?;
                }
            }
        }
        if let Some(most) = most.filter(|most| *most > MOST_REPEATS) {
            let grammar = json_text_grammar(narrow(fewest), narrow(most));
            return Ok(self.placeholders.constant(grammar));
        }
        let mut held = json!({"type": "string"});
        if let Some(named) = named.filter(|_| !self.strict) {
            // llama.cpp knows some.
            held["format"] = json!(named);
        }
        if fewest > 0 {
            held["minLength"] = json!(fewest);
        }
        if let Some(most) = most {
            held["maxLength"] = json!(most);
        }
        Ok(held)
    }
}

/// A pattern of the texts of a format, or of most of them; `None` for a format that is a note.
fn format_pattern(format: &str) -> Option<&'static str> {
    // Without the leap days, which are not of every year.
    macro_rules! date {
        () => {
            "[1-9][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
        };
    }
    macro_rules! time {
        () => {
            "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{3})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
        };
    }
    macro_rules! uuid {
        ($version:literal) => {
            concat!(
                "^[0-9a-f]{8}-[0-9a-f]{4}-",
                $version,
                "[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"
            )
        };
    }
    Some(match format {
        "date" => concat!("^", date!(), "$"),
        "time" => concat!("^", time!(), "$"),
        "date-time" => concat!("^", date!(), "T", time!(), "$"),
        "duration" => {
            "^P([0-9]{1,3}D(T[0-9]{1,2}H([0-9]{1,2}M)?)?|T[0-9]{1,2}H([0-9]{1,2}M)?|T[0-9]{1,2}M([0-9]{1,2}S)?|T[0-9]{1,2}S)$"
        }
        "email" => {
            "^[A-Za-z0-9]{1,40}([._+-][A-Za-z0-9]{1,40}){0,8}@[A-Za-z0-9]{1,40}([.-][A-Za-z0-9]{1,40}){0,8}\\.[A-Za-z]{2,20}$"
        }
        "hostname" => "^[A-Za-z0-9]{1,40}([.-][A-Za-z0-9]{1,40}){0,8}$",
        "ipv4" => {
            "^((25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\\.){3}(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])$"
        }
        "ipv6" => "^([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}$",
        "uri" => {
            "^https?://[A-Za-z0-9]{1,40}([.-][A-Za-z0-9]{1,40}){0,8}(:[1-9][0-9]{0,3})?(/[A-Za-z0-9._~!$&'()*+,;=:@/-]*)?(\\?[A-Za-z0-9._~!$&'()*+,;=:@/?-]*)?(#[A-Za-z0-9._~-]*)?$"
        }
        "uuid" => uuid!("[1-5]"),
        "uuid1" => uuid!("1"),
        "uuid3" => uuid!("3"),
        "uuid4" => uuid!("4"),
        "uuid5" => uuid!("5"),
        _ => return None,
    })
}
