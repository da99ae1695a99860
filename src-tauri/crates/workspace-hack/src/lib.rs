//! Empty: what it depends on chooses the features of third-party crates.
