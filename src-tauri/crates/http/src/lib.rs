//! What all HTTP handlers share: how they are mounted and described, their errors, parameters, event streams, and the count of requests.

// What only descriptions of the API use is linted with them (src-tauri/crates/openapi).
#![cfg_attr(not(openapi), allow(dead_code, unused_imports))]

mod answer;
pub mod count;
pub mod error;
pub mod mount;
pub mod path;
pub mod reach;
pub mod request;
pub mod schema;
pub mod sse;

pub use answer::{Answer, InferenceCall, RequestHints};
