//! The agent: what it may do, what the person has agreed to, and its tools.
//!
//! - [`agent`] is the loop: the model's step, the act, the consent, what was found.
//! - [`consent`] decides what is allowed, what is asked, and what an answer covers.
//! - [`first_step`] has the prompts by which a model is measured, and reads what it would do first.
//! - [`text_choice`] and [`calls`] read what a model wants, and [`marking`] shows it what was found, as data.
//! - [`mcp`] is the client of MCP servers that the user adds.
//! - [`tools`] are what is done: files, commands, search and pages of the web.

pub mod agent;
pub mod calls;
pub mod consent;
pub mod first_step;
pub mod marking;
pub mod mcp;
pub mod text_choice;
pub mod tools;
