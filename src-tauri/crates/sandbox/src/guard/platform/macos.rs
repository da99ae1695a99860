//! macOS has neither: a program that leaves its group outlives the guard.

pub(crate) fn adopt() {}

pub(crate) fn die_with_parent() {}

pub(crate) fn kill_adopted() {}
