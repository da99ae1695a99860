//! What differs between systems: what runs services.

use crate::service::System;

pub(crate) const SYSTEM: System = if cfg!(target_os = "macos") {
    System::Launchd
} else {
    System::Systemd
};
