//! The lower half of the agent: what it may do, who has agreed to it, and where it is done.
//!
//! - [`agent`] is the loop: the model's step, the act, the consent, what was found.
//! - [`consent`] decides what is allowed, what is asked, and what an answer covers.
//! - [`first_step`] has the prompts by which a model is measured, and reads what it would do first.
//! - [`routing`] and [`calls`] read what a model wants, and [`marking`] shows it what was found, as data.
//! - [`sandbox`] runs one command that can write, reach and use only what it was given.
//! - [`tools`] are what is done: files, commands, search and pages of the web.

pub mod agent;
pub mod calls;
pub mod consent;
pub mod first_step;
pub mod marking;
mod platform;
pub mod routing;
pub mod sandbox;
pub mod tools;
