//! What differs between systems: the folder for application data, which program listens on a port, and what keeps the
//! machine awake.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;

#[cfg(target_os = "linux")]
pub(crate) use linux::{
    Awake, PAGING, data_folder, examine, exclude_from_backups, listener, run_at_full_speed,
};
#[cfg(target_os = "macos")]
pub(crate) use macos::{
    Awake, PAGING, data_folder, examine, exclude_from_backups, listener, run_at_full_speed,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listener {
    pub(crate) pid: u32,
    pub(crate) command: String,
}
