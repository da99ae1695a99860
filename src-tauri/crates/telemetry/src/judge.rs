//! From the system's figures to trusted ones.
//!
//! Figures that are missing, contradict each other or the machine, or stay frozen while time passes become unknown, each
//! with a reason. A constant level proves nothing, since an idle machine has those; the proof is a counter that must
//! advance, the cores' ticks.

use crate::{
    figures::{Figures, Ticks},
    growth::GrowthWindow,
};
use tierbar_core::{
    reading::{Doubt, Figure, Reading},
    status::Pressure,
};

/// Below this share of RAM left without swapping, work begins to stall.
const WARNING_SHARE: u64 = 10;
/// Below this, the system may freeze or end processes. It lasts until a percent more is left, so that a share near it does not
/// raise and lower the pressure in turn.
const CRITICAL_SHARE: u64 = 4;
/// With more than this share left, memory is not short. A process that still stalls has a limit of its own, or reads a
/// mapped file larger than memory, such as a model.
const PLENTY_SHARE: u64 = 25;
/// No machine has more memory, or swap.
const MOST_BYTES: u64 = 1 << 50;
/// No machine moves more in a second.
const MOST_PER_SECOND: u64 = 1 << 40;
/// Ticks advance a hundred times per second: this long without one is no accident.
const STANDSTILL_MS: u64 = 2_000;
/// A smaller difference comes from reading two clocks one after the other.
const SLEEP_MS: u64 = 1_000;
/// Over a shorter time a rate is mostly noise, and the last one is repeated.
const RATE_MS: u64 = 100;
/// How long an announced level counts if its end is not announced.
const ANNOUNCED_MS: u64 = 10_000;
/// A total of RAM that differs by more than a sixteenth from the last is accepted after this many readings.
const SAME_TOTALS: u32 = 3;

/// Judges figures in sequence, for one owner.
#[derive(Debug, Default)]
pub(crate) struct ReadingJudge {
    /// Whether the kernel's pressure level accounts for available memory.
    kernel_grades: bool,
    /// The RAM of the simulated machine, in bytes.
    simulated: Option<u64>,
    total: BelievedTotal,
    growth: GrowthWindow,
    /// The last change of the ticks, and when.
    moved: Option<(Ticks, u64)>,
    slept_ms: u64,
    rates: RateBase,
    announced: Option<(Pressure, u64)>,
    /// Whether too little was available in the last reading.
    scarce: bool,
}

/// The accepted total of RAM, and a different one with its number of consecutive readings.
#[derive(Debug, Default)]
struct BelievedTotal {
    believed: Option<u64>,
    other: Option<(u64, u32)>,
}

/// The figures that rates are computed from, and the rates at that time.
#[derive(Debug, Default)]
struct RateBase {
    since: Option<Figures>,
    last: Reading,
}

impl ReadingJudge {
    pub(crate) fn new(kernel_grades: bool, simulated: Option<u64>) -> Self {
        Self {
            kernel_grades,
            simulated,
            ..Self::default()
        }
    }

    /// Records a level of pressure that the system has announced; the next readings have at least this level.
    pub(crate) fn announce(&mut self, level: Pressure, awake_ms: u64) {
        self.announced = Some((level, awake_ms));
    }

    pub(crate) fn judge(&mut self, figures: &Figures) -> Reading {
        let slept = figures.slept_ms.saturating_sub(self.slept_ms);
        self.slept_ms = figures.slept_ms;
        if slept >= SLEEP_MS {
            // Memory moved out during sleep says nothing about the awake machine.
            self.growth = GrowthWindow::default();
            self.rates = RateBase::default();
        }
        let mut reading = Reading {
            at_ms: figures.awake_ms.saturating_add(figures.slept_ms),
            ..Reading::default()
        };
        if let Some(why) = self.stands_still(figures) {
            self.rates = RateBase::default();
            reading.doubts.push(Doubt {
                figure: Figure::All,
                why,
            });
            return reading;
        }
        self.ram(figures, &mut reading);
        self.pressure(figures, &mut reading);
        self.swap(figures, &mut reading);
        self.rates.fill(figures, &mut reading);
        add_slow_figures(figures, &mut reading);
        reading
    }

    fn stands_still(&mut self, figures: &Figures) -> Option<String> {
        let now = figures.awake_ms;
        let Some((last, at)) = self.moved else {
            // A system that never reported ticks cannot appear frozen.
            self.moved = figures.cpu.map(|ticks| (ticks, now));
            return None;
        };
        if let Some(ticks) = figures.cpu.filter(|ticks| ticks.total != last.total) {
            self.moved = Some((ticks, now));
            return None;
        }
        let still_ms = now.saturating_sub(at);
        (still_ms >= STANDSTILL_MS).then(|| {
            let seconds = still_ms / 1000;
            match figures.cpu {
                Some(_) => format!("the system's counters have not moved for {seconds} s"),
                None => format!("the system has not reported its counters for {seconds} s"),
            }
        })
    }

    fn ram(&mut self, figures: &Figures, reading: &mut Reading) {
        let total = self.total.judge(figures.ram_total_bytes);
        reading.ram_total_bytes = believed(total, Figure::RamTotal, reading);
        let available = match (figures.ram_available_bytes, reading.ram_total_bytes) {
            (None, _) => Err("the system does not report available memory".to_owned()),
            (Some(_), None) => Err("the total memory is unknown".to_owned()),
            (Some(available), Some(total)) if available > total => Err(format!(
                "the system reports {} available of {} of memory",
                mib(available),
                mib(total)
            )),
            (Some(available), Some(_)) => Ok(available),
        };
        reading.ram_available_bytes = believed(available, Figure::RamAvailable, reading);
        if let Some(simulated) = self.simulated {
            // As if the machine had the simulated RAM with the same bytes in use, but with at most its real share
            // available: simulating a larger machine must not hide that the real one is short.
            let real = reading.ram_total_bytes.zip(reading.ram_available_bytes);
            reading.ram_total_bytes = Some(simulated);
            reading.ram_available_bytes = real.map(|(total, available)| {
                let share =
                    u128::from(simulated) * u128::from(available) / u128::from(total.max(1));
                let share = u64::try_from(share).unwrap_or(simulated);
                simulated.saturating_sub(total - available).min(share)
            });
        }
    }

    fn pressure(&mut self, figures: &Figures, reading: &mut Reading) {
        let shares = reading.ram_available_bytes.zip(reading.ram_total_bytes);
        let announced = self
            .announced
            .filter(|(_, at)| figures.awake_ms.saturating_sub(*at) < ANNOUNCED_MS)
            .map(|(level, _)| level);
        let reported = figures.pressure.max(announced);
        let by_share =
            shares.map(|(available, total)| pressure_by_share(available, total, self.scarce));
        self.scarce = by_share == Some(Pressure::Critical);
        let pressure = match (reported, shares) {
            // A kernel that grades pressure accounts for available memory, except on a simulated machine.
            (Some(level), _) if self.kernel_grades && self.simulated.is_none() => Some(level),
            // Other kernels grade only stalls.
            (_, Some((available, total)))
                if !self.kernel_grades && available > total / 100 * PLENTY_SHARE =>
            {
                Some(Pressure::Normal)
            }
            (reported, _) => reported.max(by_share),
        };
        let why = "the system reports neither memory pressure nor available memory";
        let pressure = pressure.ok_or_else(|| why.to_owned());
        reading.pressure = believed(pressure, Figure::Pressure, reading);
    }

    fn swap(&mut self, figures: &Figures, reading: &mut Reading) {
        let total = figures.swap_total_bytes;
        let most = total
            .filter(|total| *total <= MOST_BYTES)
            .unwrap_or(MOST_BYTES);
        let used = match figures.swap_used_bytes {
            Some(used) if used <= most => Ok(used),
            Some(used) => Err(format!(
                "the system reports {} used of {} of swap",
                mib(used),
                mib(most)
            )),
            None => Err("the system does not report used swap".to_owned()),
        };
        reading.swap_used_bytes = believed(used, Figure::SwapUsed, reading);
        let growth = |used| self.growth.record(figures.awake_ms, used);
        reading.swap_growth_bytes_per_minute = reading.swap_used_bytes.map(growth);
    }
}

impl BelievedTotal {
    fn judge(&mut self, reported: Option<u64>) -> Result<u64, String> {
        let total = match reported {
            None => return Err("the system does not report its memory size".to_owned()),
            Some(0) => return Err("the system reports no memory at all".to_owned()),
            Some(total) if total > MOST_BYTES => {
                return Err(format!("the system reports {} of memory", mib(total)));
            }
            Some(total) => total,
        };
        let believed = *self.believed.get_or_insert(total);
        if total.abs_diff(believed) > believed / 16 {
            let times = match self.other {
                Some((other, times)) if other == total => times + 1,
                _ => 1,
            };
            if times < SAME_TOTALS {
                self.other = Some((total, times));
                return Err(format!(
                    "the system reports {} of memory and reported {} before",
                    mib(total),
                    mib(believed)
                ));
            }
        }
        *self = Self {
            believed: Some(total),
            other: None,
        };
        Ok(total)
    }
}

impl RateBase {
    fn fill(&mut self, figures: &Figures, reading: &mut Reading) {
        let Some(since) = &self.since else {
            self.since = Some(figures.clone());
            return;
        };
        let elapsed = figures.awake_ms.saturating_sub(since.awake_ms);
        if elapsed < RATE_MS {
            let last = &self.last;
            reading.swap_out_bytes_per_second = last.swap_out_bytes_per_second;
            reading.disk_read_bytes_per_second = last.disk_read_bytes_per_second;
            reading.disk_written_bytes_per_second = last.disk_written_bytes_per_second;
            return;
        }
        let mut rate = |figure, counter: fn(&Figures) -> Option<u64>| {
            let (now, before) = (counter(figures)?, counter(since)?);
            let rate = now
                .checked_sub(before)
                .map(|moved| u128::from(moved) * 1000 / u128::from(elapsed))
                .and_then(|rate| u64::try_from(rate).ok())
                .filter(|rate| *rate <= MOST_PER_SECOND);
            let why = || format!("a counter went from {before} to {now} in {elapsed} ms");
            believed(rate.ok_or_else(why), figure, reading)
        };
        let swap_out = rate(Figure::SwapTraffic, |figures| figures.swapped_out_bytes);
        let disk_read = rate(Figure::DiskReads, |figures| figures.disk_read_bytes);
        let disk_written = rate(Figure::DiskWrites, |figures| figures.disk_written_bytes);
        reading.swap_out_bytes_per_second = swap_out;
        reading.disk_read_bytes_per_second = disk_read;
        reading.disk_written_bytes_per_second = disk_written;
        *self = Self {
            since: Some(figures.clone()),
            last: Reading {
                doubts: Vec::new(),
                ..reading.clone()
            },
        };
    }
}

fn add_slow_figures(figures: &Figures, reading: &mut Reading) {
    let slow = figures.slow;
    reading.thermal = slow.thermal;
    reading.full_screen = slow.full_screen;
    reading.power = slow.power.and_then(|power| {
        let judged = match power.level_percent {
            Some(level @ 101..) => Err(format!("the battery reports {level} percent")),
            _ => Ok(power),
        };
        believed(judged, Figure::Power, reading)
    });
}

fn pressure_by_share(available: u64, total: u64, scarce: bool) -> Pressure {
    let below = |percent: u64| available < total / 100 * percent;
    if below(CRITICAL_SHARE + u64::from(scarce)) {
        Pressure::Critical
    } else if below(WARNING_SHARE) {
        Pressure::Warning
    } else {
        Pressure::Normal
    }
}

/// Returns a figure that is trusted, or adds to the reading why it is not.
fn believed<T>(judged: Result<T, String>, figure: Figure, reading: &mut Reading) -> Option<T> {
    judged
        .map_err(|why| reading.doubts.push(Doubt { figure, why }))
        .ok()
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

#[cfg(test)]
#[path = "judge/tests/macs.rs"]
mod macs;
#[cfg(test)]
mod tests;
