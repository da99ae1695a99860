//! Headers through the crate's public face: real models, architectures by their keys, and damage of all kinds.
#![expect(clippy::unwrap_used, reason = "a test ends at what it did not expect")]

mod aborts;
mod architectures;
mod classes;
mod damage;
mod kinds;
mod lies;
mod parts;
mod projector;
mod real;
mod streaming;
mod templates;
mod vocabularies;
mod writer;
