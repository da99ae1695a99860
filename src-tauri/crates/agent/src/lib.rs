//! The lower half of the agent: what it may do, who has agreed to it, and where it is done.
//!
//! - [`sandbox`] runs one command that can write, reach and use only what it was given.

mod platform;
pub mod sandbox;
