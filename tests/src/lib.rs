//! What the system tests stand on: the built programs, and a desk to run the real app on. A desk has its own display,
//! session bus, home and data folder, and whatever ran on it has ended when it is dropped.

pub mod binaries;
pub mod desk;
pub mod display;
pub mod hub;
pub mod scripted;
pub mod serving;
pub mod session_bus;
pub mod tray_host;
pub mod wait;
pub mod web_driver;
