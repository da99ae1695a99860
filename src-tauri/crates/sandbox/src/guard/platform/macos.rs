//! macOS adopts no orphans: a program that leaves its group outlives the guard.

pub(crate) fn kill_adopted() {}
