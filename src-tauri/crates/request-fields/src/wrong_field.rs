//! Names the field whose value is of the wrong type: serde's own message has only a line and a column.

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Deserializer, Error, Value};

/// Reads a value.
///
/// # Errors
/// What is wrong, and in which field.
pub fn read<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_path_to_error::deserialize(value)
        .map_err(|error| sentence(&error.path().to_string(), error.inner()))
}

/// Returns what is wrong with the field that a `T` cannot be read from; `None` if no field is to blame. The fields of a flattened
/// struct lose their names, so read it as a `T` of its own.
pub fn describe<'de, T: Deserialize<'de>>(json: &'de [u8]) -> Option<String> {
    let mut json = Deserializer::from_slice(json);
    let error = serde_path_to_error::deserialize::<_, T>(&mut json).err()?;
    let path = error.path().to_string();
    let is_named = path != "." && error.inner().is_data();
    is_named.then(|| sentence(&path, error.inner()))
}

fn sentence(path: &str, error: &Error) -> String {
    let message = error.to_string();
    // Where it stands in a body that was written again says nothing.
    let message = message
        .rsplit_once(" at line ")
        .map_or(&*message, |(message, _)| message);
    let name = format!("`{path}`");
    match path == "." || message.contains(&name) {
        true => message.to_owned(),
        false => format!("{name}: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::collections::BTreeMap;

    #[derive(Debug, Deserialize)]
    struct Request {
        #[expect(dead_code, reason = "only read")]
        options: BTreeMap<String, Vec<u8>>,
        #[serde(flatten)]
        _more: More,
    }

    #[derive(Debug, Deserialize)]
    struct More {
        #[expect(dead_code, reason = "only read")]
        stop: Option<u8>,
    }

    #[test]
    fn the_field_is_named_with_its_path() {
        let body = br#"{"options": {"a": [1, "x"]}}"#;
        let wrong = "`options.a[1]`: invalid type: string \"x\", expected u8";
        assert_eq!(describe::<Request>(body).unwrap(), wrong);
        let value = json!({"options": {"a": [1, "x"]}});
        assert_eq!(read::<Request>(value).unwrap_err(), wrong);
    }

    #[test]
    fn a_flattened_field_is_named_when_it_is_read_alone() {
        let body = br#"{"options": {}, "stop": "x"}"#;
        assert_eq!(describe::<Request>(body), None);
        assert!(describe::<More>(body).unwrap().starts_with("`stop`: "));
    }

    #[test]
    fn what_is_no_json_has_no_field() {
        for body in [&b"{"[..], br#"{"options": {"a": [1"#, b"[]", b"{}"] {
            assert_eq!(describe::<Request>(body), None, "{body:?}");
        }
        let missing = read::<Request>(json!({})).unwrap_err();
        assert_eq!(missing, "missing field `options`");
    }
}
