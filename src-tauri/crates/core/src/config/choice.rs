//! A value of the user's, or one that Tierbar derives.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use utoipa::{
    PartialSchema,
    openapi::{
        ObjectBuilder, OneOfBuilder, Ref, RefOr,
        schema::{Schema, Type},
    },
};

/// `"auto"`, or a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
#[serde(bound(
    serialize = "T: Serialize + Clone",
    deserialize = "T: DeserializeOwned"
))]
pub enum Choice<T> {
    #[default]
    Auto,
    Fixed(T),
}

impl<T> Choice<T> {
    /// Returns the user's value; `None` if Tierbar chooses.
    pub fn fixed(self) -> Option<T> {
        match self {
            Self::Auto => None,
            Self::Fixed(value) => Some(value),
        }
    }
}

impl<T> From<Option<T>> for Choice<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Auto, Self::Fixed)
    }
}

impl<T: DeserializeOwned> TryFrom<Value> for Choice<T> {
    type Error = String;

    fn try_from(value: Value) -> Result<Self, String> {
        if value == "auto" {
            return Ok(Self::Auto);
        }
        serde_json::from_value(value)
            .map(Self::Fixed)
            .map_err(|error| format!("{error}, or \"auto\""))
    }
}

impl<T: Serialize> From<Choice<T>> for Value {
    fn from(choice: Choice<T>) -> Self {
        match choice {
            Choice::Auto => "auto".into(),
            Choice::Fixed(value) => serde_json::to_value(value).unwrap_or_default(),
        }
    }
}

pub(super) fn context_schema() -> RefOr<Schema> {
    or_auto(
        u32::schema(),
        Some("Context in tokens; `\"auto\"` follows from the model, the machine and the profile."),
    )
}

pub(super) fn kv_cache() -> RefOr<Schema> {
    or_auto(
        Ref::from_schema_name("KvCache").into(),
        Some(
            "The cell type of the KV cache; `\"auto\"` follows from the model, the machine and the profile.",
        ),
    )
}

/// The schema of a value, or `"auto"`.
pub(super) fn or_auto(value: RefOr<Schema>, about: Option<&str>) -> RefOr<Schema> {
    let auto = ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some(["auto"]));
    OneOfBuilder::new()
        .item(auto)
        .item(value)
        .description(about)
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::KvCache;
    use serde_json::json;

    #[test]
    fn it_is_the_word_auto_or_the_value() {
        for (written, choice) in [
            (json!("auto"), Choice::Auto),
            (json!("q8_0"), Choice::Fixed(KvCache::Q8_0)),
        ] {
            let read: Choice<KvCache> = serde_json::from_value(written.clone()).unwrap();
            assert_eq!(read, choice);
            assert_eq!(serde_json::to_value(read).unwrap(), written);
        }
        let error = serde_json::from_value::<Choice<u32>>(json!("many")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "invalid type: string \"many\", expected u32, or \"auto\""
        );
    }
}
