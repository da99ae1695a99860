//! Changes to the members of a JSON object in its text. Every other byte stays as it is.

use serde_json::{Map, Value};
use std::{iter, ops::Range};

/// A member's new value, or `None` to take it out.
pub type Change = (&'static str, Option<Value>);

/// Where a member of an object is in its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    name: Range<usize>,
    pub value: Range<usize>,
}

impl Member {
    fn is_named(&self, json: &[u8], name: &str) -> bool {
        let written = serde_json::from_slice::<String>(&json[self.name.clone()]);
        written.is_ok_and(|written| written == name)
    }
}

/// Returns the members of a valid JSON object in their order.
fn members(json: &[u8]) -> impl Iterator<Item = Member> {
    let mut at = Some(first_member(json));
    iter::from_fn(move || {
        let begin = skip_blanks(json, at?);
        if json.get(begin) != Some(&b'"') {
            return None;
        }
        let name = begin..end_of_text(json, begin);
        let colon = skip_blanks(json, name.end);
        let begin = skip_blanks(json, (colon + 1).min(json.len()));
        let value = begin..end_of_value(json, begin);
        let next = skip_blanks(json, value.end);
        at = (json.get(next) == Some(&b',')).then_some(next + 1);
        Some(Member { name, value })
    })
}

/// Returns the member of this name, the last if it stands there twice.
pub(crate) fn member(json: &[u8], name: &str) -> Option<Member> {
    members(json)
        .filter(|member| member.is_named(json, name))
        .last()
}

/// Returns the value of a member.
pub fn value(json: &[u8], name: &str) -> Option<Value> {
    let member = member(json, name)?;
    serde_json::from_slice(&json[member.value]).ok()
}

/// Returns the object with these changes. What it lacks is put at its end.
pub fn edit(json: &[u8], changes: &[Change]) -> Vec<u8> {
    let begin = first_member(json);
    let first = skip_blanks(json, begin);
    let mut edited = Vec::with_capacity(json.len() + 64);
    edited.extend_from_slice(&json[..begin]);
    let mut found = vec![false; changes.len()];
    let mut before = None;
    let mut is_first = true;
    for member in members(json) {
        let change = changes
            .iter()
            .position(|(name, _)| member.is_named(json, name));
        let changed = change.map(|at| {
            found[at] = true;
            &changes[at].1
        });
        let separator = match before {
            Some(end) if !is_first => end..member.name.start,
            _ => begin..first,
        };
        before = Some(member.value.end);
        if matches!(changed, Some(None)) {
            continue;
        }
        is_first = false;
        edited.extend_from_slice(&json[separator]);
        edited.extend_from_slice(&json[member.name.start..member.value.start]);
        match changed {
            Some(Some(value)) => edited.extend_from_slice(value.to_string().as_bytes()),
            _ => edited.extend_from_slice(&json[member.value.clone()]),
        }
    }
    for ((name, value), _) in changes.iter().zip(found).filter(|(_, found)| !found) {
        let Some(value) = value else { continue };
        let comma = if is_first { "" } else { "," };
        is_first = false;
        edited.extend_from_slice(format!("{comma}{}:{value}", Value::from(*name)).as_bytes());
    }
    edited.extend_from_slice(&json[before.unwrap_or(begin)..]);
    edited
}

/// Returns the text of an object with these changes. What it lacks is put at its end.
pub(crate) fn write(fields: &Map<String, Value>, changes: &[Change]) -> Vec<u8> {
    let kept = fields.iter().filter_map(|(name, value)| {
        let change = changes.iter().find(|(changed, _)| changed == name);
        let value = change.map_or(Some(value), |(_, value)| value.as_ref())?;
        Some((name.as_str(), value))
    });
    let added = changes.iter().filter_map(|(name, value)| {
        let value = value.as_ref().filter(|_| !fields.contains_key(*name))?;
        Some((*name, value))
    });
    let mut text = Vec::new();
    for (name, value) in kept.chain(added) {
        text.push(if text.is_empty() { b'{' } else { b',' });
        text.extend_from_slice(Value::from(name).to_string().as_bytes());
        text.push(b':');
        // Values are always written.
        let _written = serde_json::to_writer(&mut text, value);
    }
    if text.is_empty() {
        text.push(b'{');
    }
    text.push(b'}');
    text
}

/// Returns the place behind the object's brace.
fn first_member(json: &[u8]) -> usize {
    (skip_blanks(json, 0) + 1).min(json.len())
}

fn skip_blanks(json: &[u8], from: usize) -> usize {
    let rest = json.get(from..).unwrap_or_default();
    let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace());
    from + blanks.count()
}

/// Returns the end of the text whose quote is here.
fn end_of_text(json: &[u8], from: usize) -> usize {
    let mut at = from + 1;
    while let Some(byte) = json.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    json.len()
}

fn end_of_value(json: &[u8], from: usize) -> usize {
    let (mut at, mut depth) = (from, 0usize);
    while let Some(byte) = json.get(at) {
        match byte {
            b'"' => {
                at = end_of_text(json, at);
                if depth == 0 {
                    return at;
                }
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            b',' if depth == 0 => return at,
            byte if depth == 0 && byte.is_ascii_whitespace() => return at,
            _ => {}
        }
        at += 1;
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn edited(object: &str, changes: &[Change]) -> String {
        String::from_utf8(edit(object.as_bytes(), changes)).unwrap()
    }

    #[test]
    fn only_the_changed_members_bytes_change() {
        let object = r#" { "model" : "a", "n":1e2 , "of":{"model":"b","t":"\"}"}, "x":[ 1 ] } "#;
        let model = |name: &str| [("model", Some(json!(name)))];
        assert_eq!(
            edited(object, &model("c")),
            object.replacen("\"a\"", "\"c\"", 1)
        );
        for (change, left) in [
            (
                ("model", None),
                r#" { "n":1e2 , "of":{"model":"b","t":"\"}"}, "x":[ 1 ] } "#,
            ),
            (
                ("n", None),
                r#" { "model" : "a" , "of":{"model":"b","t":"\"}"}, "x":[ 1 ] } "#,
            ),
            (
                ("x", None),
                r#" { "model" : "a", "n":1e2 , "of":{"model":"b","t":"\"}"} } "#,
            ),
            (
                ("new", Some(json!(true))),
                r#" { "model" : "a", "n":1e2 , "of":{"model":"b","t":"\"}"}, "x":[ 1 ],"new":true } "#,
            ),
        ] {
            // The separator of a member goes with it.
            let reply = edited(object, &[change]);
            assert_eq!(reply.replace(' ', ""), left.replace(' ', ""), "{reply}");
            serde_json::from_str::<Value>(&reply).unwrap();
        }
    }

    #[test]
    fn all_kinds_of_objects_stay_valid() {
        let changes = [
            ("a", None),
            ("b", Some(json!("\"é"))),
            ("c", Some(json!(null))),
        ];
        for (object, left) in [
            ("{}", r#"{"b":"\"é","c":null}"#),
            (r#"{"a":1}"#, r#"{"b":"\"é","c":null}"#),
            (r#"{"a":1,"a":2,"z":0}"#, r#"{"z":0,"b":"\"é","c":null}"#),
            (r#"{"\u0061":"x","b":[{}]}"#, r#"{"b":"\"é","c":null}"#),
            (r#"{"c":-1.5e3,"a":{}}"#, r#"{"c":null,"b":"\"é"}"#),
        ] {
            assert_eq!(edited(object, &changes), left, "{object}");
            let fields: Map<String, Value> = serde_json::from_str(object).unwrap();
            let written: Value = serde_json::from_slice(&write(&fields, &changes)).unwrap();
            assert_eq!(written, serde_json::from_str::<Value>(left).unwrap());
        }
        assert_eq!(write(&Map::new(), &[("a", None)]), b"{}");
        assert_eq!(value(br#"{"a":1,"a":{"b":2}}"#, "a"), Some(json!({"b": 2})));
        assert_eq!(value(b"[1]", "a"), None);
        for cut in 0..20 {
            let broken = &br#"{"a":"\","b":[{"c":1}"#[..cut];
            edit(broken, &changes);
        }
    }
}
