//! measure.

pub mod bench;
pub mod break_even;
pub mod diagnosis;
pub mod tune;
