//! Models for tests and benchmarks of paging: the same file is run with its weights in memory and read on demand, and the answers
//! are compared.
//!
//! [`Mixture`] and [`write_shared`] make one of a dense model and answer as it does. [`Random`] covers architectures that a dense
//! model cannot be turned into; its answers mean nothing, but they depend on every matrix that a token uses. [`write_wide`] makes a larger dense model.
//! [`write_reranker`] gives an encoder a classifier. [`shallow`] keeps a few layers of a dense model.

mod gguf;
mod numbers;
mod quant;
mod random;
mod ranking;
mod shallow;
mod shared;
mod upcycled;
mod wide;

pub use random::Random;
pub use ranking::write_reranker;
pub use shallow::shallow;
pub use shared::write_shared;
pub use upcycled::{Mixture, Router};
pub use wide::write_wide;
