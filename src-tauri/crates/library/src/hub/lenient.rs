//! Skips unneeded fields of an answer while parsing: as a value, four bytes of JSON may take a hundred.

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error, SeqAccess, Visitor},
};
use serde_json::value::RawValue;
use std::{fmt, marker::PhantomData};

/// The most entries of a list: each takes more memory than its text.
const MOST: usize = 10_000;

/// A list, less what makes no sense in it.
#[derive(Debug)]
pub(super) struct LenientList<T>(pub(super) Vec<T>);

impl<'de, T: DeserializeOwned> Deserialize<'de> for LenientList<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(Entries(PhantomData)).map(Self)
    }
}

struct Entries<T>(PhantomData<T>);

impl<'de, T: DeserializeOwned> Visitor<'de> for Entries<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut entries = Vec::new();
        while let Some(entry) = list.next_element::<&RawValue>()? {
            entries.extend(serde_json::from_str::<T>(entry.get()));
            if entries.len() > MOST {
                return Err(A::Error::custom(format!("a list of more than {MOST}")));
            }
        }
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_bounded() {
        let read = |count: usize| {
            let list = format!("[{}0]", "\"\",".repeat(count));
            let read = serde_json::from_str(&list);
            read.map(|LenientList::<String>(entries)| entries.len())
        };
        assert_eq!(read(MOST).unwrap(), MOST);
        assert!(read(MOST + 1).is_err());
    }
}
