//! The figures of the system, before they are judged.

use tierbar_core::{
    reading::{Power, Thermal},
    status::Pressure,
};

/// `None` is a figure that the system did not report. Counters have an arbitrary start; only their differences mean
/// anything.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Figures {
    /// Time since the system started, without sleep.
    pub(crate) awake_ms: u64,
    /// The time that it has slept since.
    pub(crate) slept_ms: u64,
    pub(crate) ram_total_bytes: Option<u64>,
    pub(crate) ram_available_bytes: Option<u64>,
    /// The kernel's own grade.
    pub(crate) pressure: Option<Pressure>,
    pub(crate) swap_total_bytes: Option<u64>,
    pub(crate) swap_used_bytes: Option<u64>,
    pub(crate) cpu: Option<Ticks>,
    /// Counters.
    pub(crate) swapped_out_bytes: Option<u64>,
    pub(crate) disk_read_bytes: Option<u64>,
    pub(crate) disk_written_bytes: Option<u64>,
    pub(crate) slow: SlowFigures,
}

/// Ticks of all cores together. `total` includes idle time, so it always advances.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Ticks {
    pub(crate) busy: u64,
    pub(crate) total: u64,
}

/// Figures that change slowly and may take milliseconds to read.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct SlowFigures {
    pub(crate) thermal: Option<Thermal>,
    pub(crate) power: Option<Power>,
    pub(crate) full_screen: Option<bool>,
}
