//! The basis of the system tests: the built programs, and a desk to run the real app on. A desk has its own display,
//! session bus, home and data folder; dropping it ends everything that ran on it.

pub mod binaries;
pub mod desk;
pub mod display;
pub mod hub;
pub mod notification_server;
pub mod scripted;
pub mod serving;
pub mod session_bus;
pub mod tray_host;
pub mod wait;
pub mod web_driver;
