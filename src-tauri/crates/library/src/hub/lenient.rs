//! Skips unneeded fields of an answer while parsing: as a value, four bytes of JSON may take a hundred.

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, SeqAccess, Visitor},
};
use serde_json::value::RawValue;
use std::{fmt, marker::PhantomData};

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
        }
        Ok(entries)
    }
}
