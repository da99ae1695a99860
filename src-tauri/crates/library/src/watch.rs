//! Notices when models appear, vanish or change.
