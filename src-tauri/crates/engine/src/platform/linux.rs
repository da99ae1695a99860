//! Linux: cores from sysfs.

use std::{collections::BTreeSet, fs};

/// `nice` says it all.
pub(super) fn give_way() {}

/// Physical cores: hyper-threads of one core share its arithmetic units, so a second thread there gains nothing.
pub(super) fn fast_cores() -> Option<usize> {
    let cores: BTreeSet<String> = fs::read_dir("/sys/devices/system/cpu")
        .ok()?
        .filter_map(|entry| {
            fs::read_to_string(entry.ok()?.path().join("topology/thread_siblings_list")).ok()
        })
        .collect();
    (!cores.is_empty()).then_some(cores.len())
}
