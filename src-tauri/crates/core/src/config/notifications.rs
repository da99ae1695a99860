use serde::{Deserialize, Serialize};

/// Which notifications the app and open pages show. Each is off unless the user turns it on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct NotificationsConfig {
    /// A model is downloaded.
    #[schema(required = true)]
    pub downloads: bool,
    /// The last queued request has ended.
    #[schema(required = true)]
    pub queue: bool,
    /// The memory guard has acted, with its reason.
    #[schema(required = true)]
    pub memory: bool,
    /// A model was unloaded, with the reason and what that freed.
    #[schema(required = true)]
    pub unloads: bool,
}
