//! The lower half of the agent: what it may do, who has agreed to it, and where it is done.
//!
//! - [`consent`] decides what is allowed, what is asked, and what an answer covers.
//! - [`sandbox`] runs one command that can write, reach and use only what it was given.
//! - [`tools`] are what is done: files, commands, search and pages of the web.

pub mod consent;
mod platform;
pub mod sandbox;
pub mod tools;
