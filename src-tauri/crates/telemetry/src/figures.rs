//! What the system says, before anybody has asked whether it can be.

use tierbar_core::{
    reading::{Power, Thermal},
    status::Pressure,
};

/// `None`: the system did not say. Counters have an arbitrary beginning, and only their differences mean anything.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Figures {
    /// Since the system was started, without the time that it slept.
    pub(crate) awake_ms: u64,
    /// How long it has slept since.
    pub(crate) slept_ms: u64,
    pub(crate) ram_total_bytes: Option<u64>,
    pub(crate) ram_available_bytes: Option<u64>,
    /// The kernel's own grade.
    pub(crate) pressure: Option<Pressure>,
    pub(crate) wired_bytes: Option<u64>,
    pub(crate) swap_total_bytes: Option<u64>,
    pub(crate) swap_used_bytes: Option<u64>,
    pub(crate) traffic: Traffic,
    pub(crate) cpu: Option<Ticks>,
    /// Counter.
    pub(crate) disk_read_bytes: Option<u64>,
    pub(crate) slow: Slow,
}

/// Counters of what went between memory and swap, and into compressed memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Traffic {
    pub(crate) in_bytes: Option<u64>,
    pub(crate) out_bytes: Option<u64>,
    pub(crate) compressed_bytes: Option<u64>,
}

/// Counters of what the cores have done, all together. `total` counts idle time too, so it moves whenever time does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Ticks {
    pub(crate) busy: u64,
    pub(crate) total: u64,
}

/// What changes slowly and may take milliseconds to read.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Slow {
    pub(crate) temperature_celsius: Option<f64>,
    pub(crate) thermal: Option<Thermal>,
    pub(crate) power: Option<Power>,
    pub(crate) full_screen: Option<bool>,
}
