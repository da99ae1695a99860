use serde::{Deserialize, Serialize};

/// Which notifications the app and open pages show. Each is off unless the user turns it on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct NotificationsConfig {
    /// A model is downloaded.
    pub downloads: bool,
    /// The last queued request has ended.
    pub queue: bool,
    /// The memory guard has acted, with its reason.
    pub memory: bool,
    /// A model was unloaded, with the reason and what that freed.
    pub unloads: bool,
}
