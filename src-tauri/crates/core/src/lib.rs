//! The domain in pure types: tiers, models, budgets, plans, configuration, errors, and the memory policy.
//!
//! Nothing here does I/O, reads a clock or knows an async runtime: time and readings are passed in, so that every decision
//! can be tested as a function. Nothing here knows a word of a language or a field of an API, so that a change of those does not
//! rebuild the policy. The traits in [`lease`] are the one interface between the gateway, which answers requests, and the supervisor,
//! which owns the worker processes.

// What only descriptions of the API use is linted with them (src-tauri/crates/openapi).
#![cfg_attr(not(openapi), allow(dead_code, unused_imports))]

pub mod address;
pub mod budget;
pub mod catalog;
pub mod chain;
pub mod code;
pub mod config;
pub mod documents;
pub mod download;
pub mod first_steps;
pub mod fit;
pub mod history;
pub mod home;
pub mod journal;
pub mod json;
pub mod json_edit;
pub mod judgment;
pub mod keys;
mod lack;
pub mod lease;
pub mod ledger;
pub mod limit;
pub mod memory_guard;
pub mod modality;
pub mod model;
pub mod nearest;
pub mod notification;
pub mod origin;
pub mod paging;
pub mod policy;
pub mod queue;
pub mod reading;
pub mod reclaim;
pub mod requests;
pub mod run;
pub mod sampling;
pub mod schedule;
pub mod setup;
pub mod stance;
pub mod status;
pub mod tier;
pub mod units;
pub mod volume;
mod words;
pub mod worker;

pub use code::{Code, Error, bad_request};
pub use config::Config;
pub use lack::{own_lack, own_lack_of_start};
pub use modality::Modality;
pub use model::{FileIdentity, ModelAccount, ModelId, ModelKind};
pub use tier::{TierId, TierKind, TierState};
