//! Changes to the members of a JSON object in its text. Every other byte stays as it is.

use serde::{
    Deserializer as _, Serializer as _,
    de::{MapAccess, Visitor},
};
use serde_json::{Deserializer, Map, Serializer, Value, value::RawValue};
use std::{borrow::Cow, fmt, ops::Range};

/// A member's new value, or `None` to take it out.
pub type Change = (&'static str, Option<Value>);

/// Where a member of an object is in its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    name: Range<usize>,
    pub value: Range<usize>,
}

impl Member {
    fn is_named(&self, json: &[u8], name: &str) -> bool {
        let written = &json[self.name.clone()];
        // An escape has six bytes. What is longer is not copied.
        written.len() <= 6 * name.len() + 2
            && serde_json::from_slice::<String>(written).is_ok_and(|written| written == name)
    }
}

/// Calls a function with each member of this object, in their order. They are not kept: there may be millions.
struct Members<'a, F>(&'a [u8], F);

impl<'de, F: FnMut(Member)> Visitor<'de> for Members<'de, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let Self(json, mut found) = self;
        let place = |part: &'de RawValue| {
            let begin = part.get().as_ptr().addr() - json.as_ptr().addr();
            begin..begin + part.get().len()
        };
        while let Some((name, value)) = entries.next_entry()? {
            let (name, value) = (place(name), place(value));
            found(Member { name, value });
        }
        Ok(())
    }
}

fn members(json: &[u8], found: impl FnMut(Member)) -> Result<(), serde_json::Error> {
    Deserializer::from_slice(json).deserialize_map(Members(json, found))
}

/// Returns the names of an object's members, each as often as it stands there.
pub fn names(json: &[u8]) -> Result<Vec<String>, serde_json::Error> {
    let mut names = Vec::new();
    members(json, |member| names.push(member.name))?;
    let names = names.into_iter();
    names
        .map(|name| serde_json::from_slice(&json[name]))
        .collect()
}

/// Returns the member of this name, the last if it stands there twice.
pub fn member(json: &[u8], name: &str) -> Option<Member> {
    let mut last = None;
    let read = members(json, |member| {
        if member.is_named(json, name) {
            last = Some(member);
        }
    });
    read.ok().and(last)
}

/// Returns the value of a member.
pub fn value(json: &[u8], name: &str) -> Option<Value> {
    let member = member(json, name)?;
    serde_json::from_slice(&json[member.value]).ok()
}

/// Returns the object with these changes. What it lacks is put at its end. What is no object stays as it is.
pub fn edit(json: &[u8], changes: &[Change]) -> Vec<u8> {
    parts(json, changes).concat()
}

/// Returns the same in parts. What stays is not copied.
pub fn parts<'a>(json: &'a [u8], changes: &[Change]) -> Vec<Cow<'a, [u8]>> {
    let stays = |range: Range<usize>| Cow::Borrowed(&json[range]);
    let all = || vec![stays(0..json.len())];
    let Some(brace) = json.iter().position(|&byte| byte == b'{') else {
        return all();
    };
    let begin = brace + 1;
    let mut parts = vec![stays(0..begin)];
    let mut found = vec![false; changes.len()];
    // Where what is not in the parts yet begins, and where the last member ends.
    let (mut rest, mut end) = (begin, begin);
    let mut start = begin;
    let mut is_first = true;
    let read = members(json, |member| {
        if end == begin {
            start = member.name.start;
            rest = start;
            parts[0] = stays(0..start);
        }
        let change = changes
            .iter()
            .position(|(name, _)| member.is_named(json, name));
        let changed = change.map(|at| {
            found[at] = true;
            &changes[at].1
        });
        // The separator of a member goes with it: the one before it, or behind the first.
        if let Some(None) = changed {
            if !is_first {
                parts.push(stays(rest..end));
            }
            rest = member.value.end;
        } else {
            if is_first && rest > start {
                rest = member.name.start;
            }
            is_first = false;
        }
        if let Some(Some(value)) = changed {
            parts.push(stays(rest..member.value.start));
            parts.push(Cow::Owned(value.to_string().into_bytes()));
            rest = member.value.end;
        }
        end = member.value.end;
    });
    if read.is_err() {
        return all();
    }
    parts.push(stays(rest..end));
    for ((name, value), _) in changes.iter().zip(found).filter(|(_, found)| !found) {
        let Some(value) = value else { continue };
        let comma = if is_first { "" } else { "," };
        is_first = false;
        let added = format!("{comma}{}:{value}", Value::from(*name));
        parts.push(Cow::Owned(added.into_bytes()));
    }
    parts.push(stays(end..json.len()));
    parts
}

/// Makes these changes to an object.
pub fn apply(fields: &mut Map<String, Value>, changes: impl IntoIterator<Item = Change>) {
    for (name, value) in changes {
        match value {
            Some(value) => fields.insert(name.to_owned(), value),
            None => fields.shift_remove(name),
        };
    }
}

/// Returns the text of an object with these changes. What it lacks is put at its end.
pub fn write(fields: &Map<String, Value>, changes: &[Change]) -> Vec<u8> {
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
    // Values are always written.
    let _written = Serializer::new(&mut text).collect_map(kept.chain(added));
    text
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
            assert_eq!(edited(object, &[change]), left);
        }
        let alone = "{ \"a\" : 1\n}";
        assert_eq!(edited(alone, &[("a", None)]), "{ \n}");
        let replaced = [("a", None), ("b", Some(json!(2)))];
        assert_eq!(edited(alone, &replaced), "{ \"b\":2\n}");
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
