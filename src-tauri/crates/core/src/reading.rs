//! What the machine is doing at one moment, as far as it can be trusted.

use crate::status::Pressure;
use serde::{Deserialize, Serialize};

/// One reading. `None` is unknown, or not there to be read; what should be there and is unknown has a [`Doubt`].
/// Whoever decides by a figure that is unknown decides as if it were bad.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Reading {
    /// Milliseconds since the system was started, by a clock that no setting of the time changes. Sleep counts.
    pub at_ms: u64,
    /// Of the machine, or of the tightest limit around this process.
    pub ram_total_bytes: Option<u64>,
    /// What can be had without swapping: free and reclaimable.
    pub ram_available_bytes: Option<u64>,
    pub pressure: Option<Pressure>,
    /// Cannot be swapped out or dropped: the kernel's own, the GPU's, what programs have locked.
    pub wired_bytes: Option<u64>,
    pub swap_total_bytes: Option<u64>,
    pub swap_used_bytes: Option<u64>,
    /// Change of what is used over the last minute. It begins anew after a sleep.
    pub swap_growth_bytes_per_minute: Option<i64>,
    /// Rates are those since the reading before: unknown in the first, and in the first after a sleep.
    pub swap_in_bytes_per_second: Option<u64>,
    pub swap_out_bytes_per_second: Option<u64>,
    /// Taken out of use by compressing it in memory, which precedes swapping.
    pub compressed_bytes_per_second: Option<u64>,
    /// Of all cores together, from 0 to 100.
    pub cpu_percent: Option<f64>,
    pub disk_read_bytes_per_second: Option<u64>,
    /// Of the hottest sensor.
    pub temperature_celsius: Option<f64>,
    pub thermal: Option<Thermal>,
    pub power: Option<Power>,
    /// A program other than ours fills a screen.
    pub full_screen: Option<bool>,
    /// One for each figure that should be known and is not.
    pub doubts: Vec<Doubt>,
}

/// How much the system holds back because of heat, in the words of macOS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Thermal {
    #[default]
    Nominal,
    /// Warm: fans may be heard.
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
    /// What the battery holds, from 0 to 100.
    #[serde(default)]
    pub level_percent: Option<u8>,
}

/// A figure that cannot be trusted, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubt {
    pub figure: Figure,
    /// A plain sentence with what was read.
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
    Cpu,
    DiskReads,
    Temperature,
    Power,
}
