//! Measurements of tiers and machines, as requests and reports: speed, the fastest settings, break-even, and figures for a report about
//! Tierbar. What measures is the host.

pub mod bench;
pub mod break_even;
pub mod diagnosis;
pub mod tune;
