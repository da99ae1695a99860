//! What differs between the systems that the shell runs on.

/// A question before something ends, with the labels of its two buttons.
pub(crate) struct Confirmation {
    pub(crate) title: String,
    pub(crate) detail: String,
    pub(crate) confirm: &'static str,
    pub(crate) cancel: &'static str,
}

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::*;

#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "macos")]
pub(crate) use macos::*;

#[cfg(any(target_os = "macos", test))]
mod registration;
