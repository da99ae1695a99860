//! What is tried differs between systems.

#[cfg(target_os = "linux")]
mod linux;
