//! The configuration file that a first start writes.

use std::path::Path;
use tierbar_core::setup::STARTER;

/// Returns a file with three tiers; the first has the starter model if it is installed.
pub(crate) fn first_config(models: &Path) -> String {
    let starter = if models.join(STARTER).is_file() {
        STARTER
    } else {
        ""
    };
    include_str!("template.toml").replace("{starter}", starter)
}
