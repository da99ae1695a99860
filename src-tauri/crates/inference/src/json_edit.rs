//! Changes to the members of a JSON object in its text. Every other byte stays as it is.

use serde::{
    Deserializer as _, Serializer as _,
    de::{MapAccess, Visitor},
};
use serde_json::{Deserializer, Map, Serializer, Value, value::RawValue};
use std::{fmt, ops::Range};

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

/// Finds the members of this object in their order.
struct Members<'a>(&'a [u8]);

impl<'de> Visitor<'de> for Members<'de> {
    type Value = Vec<Member>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Vec<Member>, A::Error> {
        let place = |part: &'de RawValue| {
            let begin = part.get().as_ptr().addr() - self.0.as_ptr().addr();
            begin..begin + part.get().len()
        };
        let mut members = Vec::new();
        while let Some((name, value)) = entries.next_entry()? {
            let (name, value) = (place(name), place(value));
            members.push(Member { name, value });
        }
        Ok(members)
    }
}

fn members(json: &[u8]) -> Result<Vec<Member>, serde_json::Error> {
    Deserializer::from_slice(json).deserialize_map(Members(json))
}

/// Returns the names of an object's members, each as often as it stands there.
pub(crate) fn names(json: &[u8]) -> Result<Vec<String>, serde_json::Error> {
    let members = members(json)?.into_iter();
    members
        .map(|member| serde_json::from_slice(&json[member.name]))
        .collect()
}

/// Returns the member of this name, the last if it stands there twice.
pub(crate) fn member(json: &[u8], name: &str) -> Option<Member> {
    let mut members = members(json).ok()?.into_iter();
    members.rfind(|member| member.is_named(json, name))
}

/// Returns the value of a member.
pub fn value(json: &[u8], name: &str) -> Option<Value> {
    let member = member(json, name)?;
    serde_json::from_slice(&json[member.value]).ok()
}

/// Returns the object with these changes. What it lacks is put at its end. What is no object stays as it is.
pub fn edit(json: &[u8], changes: &[Change]) -> Vec<u8> {
    let brace = json.iter().position(|&byte| byte == b'{');
    let (Some(brace), Ok(members)) = (brace, members(json)) else {
        return json.to_vec();
    };
    let begin = brace + 1;
    let first = members.first().map_or(begin, |member| member.name.start);
    let mut edited = Vec::with_capacity(json.len() + 64);
    edited.extend_from_slice(&json[..begin]);
    let mut found = vec![false; changes.len()];
    let mut before = None;
    let mut is_first = true;
    for member in members {
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
