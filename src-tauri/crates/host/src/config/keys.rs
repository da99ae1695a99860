//! The key of the configuration that an unknown one probably stands for.

use tierbar_core::{
    config::keys::{NAME, keys},
    nearest::nearest,
};
use tierbar_edge::openapi::API_DESCRIPTION;

/// Returns the key or table that an unknown key probably stands for, in the same table.
pub(super) fn nearest_key(unknown: &[String]) -> Option<String> {
    let (key, table) = unknown.split_last()?;
    let all = keys(API_DESCRIPTION);
    let in_table = all.iter().filter_map(|known| {
        let mut parts = known.name.split('.');
        for own in table {
            parts.next().filter(|part| *part == NAME || part == own)?;
        }
        parts.next()
    });
    nearest(key, in_table).map(str::to_owned)
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
            assert_eq!(nearest_key(&keys).as_deref(), found, "{unknown}");
        }
        assert_eq!(nearest_key(&[]), None);
    }
}
