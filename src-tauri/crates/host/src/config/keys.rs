//! The keys that a configuration can have, for the one that an unknown key probably stands for.

use serde::{
    Deserializer,
    de::{DeserializeOwned, Error, Visitor, value},
    forward_to_deserialize_any,
};
use tierbar_core::{
    Config,
    config::{
        ChainConfig, ContextsConfig, CostsConfig, DownloadsConfig, LibraryConfig, LogConfig,
        McpServerConfig, MenuBarConfig, NotificationsConfig, PolicyConfig, QueueConfig,
        ScheduleConfig, ServerConfig, TierConfig,
    },
    nearest::nearest,
    sampling::Sampling,
};

/// Returns the key that an unknown one probably stands for, in the same table.
pub(super) fn nearest_key(unknown: &[String]) -> Option<&'static str> {
    let (key, table) = unknown.split_last()?;
    let table: Vec<_> = table.iter().map(String::as_str).collect();
    let known = match table.as_slice() {
        [] => fields::<Config>(),
        ["server"] => fields::<ServerConfig>(),
        ["log"] => fields::<LogConfig>(),
        ["library"] => fields::<LibraryConfig>(),
        ["downloads"] => fields::<DownloadsConfig>(),
        ["policy"] => fields::<PolicyConfig>(),
        ["contexts"] => fields::<ContextsConfig>(),
        ["queue"] => fields::<QueueConfig>(),
        ["menu_bar"] => fields::<MenuBarConfig>(),
        ["notifications"] => fields::<NotificationsConfig>(),
        ["costs"] => fields::<CostsConfig>(),
        ["tiers", _] => fields::<TierConfig>(),
        ["tiers", _, "sampling"] => fields::<Sampling>(),
        ["chains", _] => fields::<ChainConfig>(),
        ["schedules", _] => fields::<ScheduleConfig>(),
        ["mcp", _] => fields::<McpServerConfig>(),
        _ => return None,
    };
    nearest(key, known.iter().copied())
}

/// Returns the names of a struct's fields: `Deserialize` passes them to its deserializer.
fn fields<T: DeserializeOwned>() -> &'static [&'static str] {
    let mut names: &'static [&'static str] = &[];
    // Always an error, since there is nothing to read.
    let _nothing = T::deserialize(FieldNames(&mut names));
    names
}

struct FieldNames<'a>(&'a mut &'static [&'static str]);

fn no_value() -> value::Error {
    value::Error::custom("there is nothing to read")
}

impl<'de> Deserializer<'de> for FieldNames<'_> {
    type Error = value::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Self::Error> {
        *self.0 = fields;
        Err(no_value())
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Self::Error> {
        Err(no_value())
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq
        tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_table_has_its_own_keys() {
        for (unknown, found) in [
            ("listn", Some("listen")),
            ("polcy", Some("policy")),
            ("server.networks", Some("network")),
            ("log.promts", Some("prompts")),
            ("library.folder", Some("folders")),
            ("downloads.at_onse", Some("at_once")),
            ("policy.max_loadd", Some("max_loaded")),
            ("queue.atonce", Some("at_once")),
            ("menu_bar.clik", Some("click")),
            ("menu_bar.shortkut", Some("shortcut")),
            ("notifications.download", Some("downloads")),
            ("costs.idle_wats", Some("idle_watts")),
            ("tiers.fast.modle", Some("model")),
            ("tiers.fast.sampling.temprature", Some("temperature")),
            ("chains.night.step", Some("steps")),
            ("schedules.night.sorce", Some("source")),
            ("mcp.notes.comand", Some("command")),
            ("tiers.fast.listn", None),
            ("color", None),
            ("more.of.it", None),
        ] {
            let keys: Vec<_> = unknown.split('.').map(str::to_owned).collect();
            assert_eq!(nearest_key(&keys), found, "{unknown}");
        }
        assert_eq!(nearest_key(&[]), None);
    }
}
