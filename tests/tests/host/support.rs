//! Tiny media projectors, as the engine's own tests write them.

#![allow(dead_code, reason = "written for the tests of another crate")]

#[path = "../../../src-tauri/crates/engine/tests/engine/support/projector.rs"]
pub(crate) mod projector;
#[path = "../../../src-tauri/crates/engine/tests/engine/support/weights.rs"]
pub(crate) mod weights;
