//! What the machine is doing at one moment, as far as it can be trusted.

use crate::status::Pressure;
use serde::{Deserialize, Serialize};

/// One reading. `None` is unknown, or not available on this machine; a figure that should be known and is not has a
/// [`Doubt`]. Decisions treat an unknown figure as a bad one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Reading {
    /// Milliseconds since the system started, by a monotonic clock. Sleep counts.
    pub at_ms: u64,
    /// Of the machine, or the lowest limit on this process.
    pub ram_total_bytes: Option<u64>,
    /// Free and reclaimable memory, available without swapping.
    pub ram_available_bytes: Option<u64>,
    pub pressure: Option<Pressure>,
    pub swap_used_bytes: Option<u64>,
    /// The change over the last minute. It restarts after a sleep.
    pub swap_growth_bytes_per_minute: Option<i64>,
    /// Rates since the previous reading: unknown in the first one, and in the first one after a sleep.
    pub swap_out_bytes_per_second: Option<u64>,
    pub disk_read_bytes_per_second: Option<u64>,
    pub disk_written_bytes_per_second: Option<u64>,
    pub thermal: Option<Thermal>,
    pub power: Option<Power>,
    /// Whether another app is full screen.
    pub full_screen: Option<bool>,
    /// One for each figure that should be known and is not.
    pub doubts: Vec<Doubt>,
}

/// How much the system throttles because of heat, in the words of macOS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Thermal {
    #[default]
    Nominal,
    /// Warm: fans may be audible.
    Fair,
    /// The system slows itself down.
    Serious,
    /// It must cool down.
    Critical,
}

/// Where the machine's power comes from. A machine without a battery runs on mains power and has no level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Power {
    pub on_battery: bool,
    /// The charge of the battery, from 0 to 100.
    pub level_percent: Option<u8>,
}

/// A figure that cannot be trusted, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubt {
    pub figure: Figure,
    /// A sentence with the figures that were read.
    pub why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Every figure: the system's counters stand still.
    All,
    RamTotal,
    RamAvailable,
    Pressure,
    SwapUsed,
    SwapTraffic,
    DiskReads,
    DiskWrites,
    Power,
}
