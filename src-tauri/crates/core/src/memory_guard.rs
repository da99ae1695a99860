//! The memory guard: how short memory is, judged from readings as they come.
//!
//! It rises at once and falls late. A reading is judged by three figures: the kernel's pressure, what is available, and the
//! *growth* of swap, never its level, which stays for hours after what caused it has gone. What lasts rises further, until
//! tiers are ended although they are used. It falls after [`CALM`] without a sign of it; whenever ending tiers has not helped
//! for long, and it rises again, that time doubles.
//!
//! What is unknown neither raises the alarm nor lowers it.

use crate::{
    budget::{GIB, MIB, gib},
    policy::Alarm,
    reading::Reading,
    status::Pressure,
};
use std::time::Duration;

/// So long there must be no sign of shortness before the alarm falls.
pub const CALM: Duration = Duration::from_secs(10);
/// What that time grows to at most when the alarm rises again and again.
const LONGEST_CALM: Duration = Duration::from_secs(320);
/// An alarm that comes back within this after the last one is the same shortness.
const RELAPSE: Duration = Duration::from_secs(300);

/// Critical pressure ends idle tiers after this, and used ones after [`LAST_RESORT`].
const CRITICAL_UNLOADS: Duration = Duration::from_secs(1);
const LAST_RESORT: Duration = Duration::from_secs(5);
/// Swap that grows slows the machine before it stops it: there is a little more time.
const SWAPPING_UNLOADS: Duration = Duration::from_secs(5);
const SWAPPING_LAST_RESORT: Duration = Duration::from_secs(30);

/// Swap that grows by this in a minute while the kernel reports pressure is a machine that works for its swap.
const SWAP_GROWTH: u64 = 256 * MIB;
/// At this rate it needs no other witness.
const SWAP_FLOOD: u64 = GIB;
/// Less than this in a second is no swapping to speak of.
const SWAPS_NOW: u64 = MIB;
/// Shares of all memory, in thousandths, below which too little is available, unless the kernel calls that normal; and little.
const SCARCE: u64 = 40;
const TIGHT: u64 = 80;
/// Readings further apart than this have missed what lay between, such as a sleep.
const GAP: Duration = Duration::from_secs(15);

/// So long nothing is loaded ahead of need after a wake, when programs read back what they had, and after memory was tight.
const UNSETTLED: Duration = Duration::from_secs(30);

/// What a reading says about memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sign {
    Calm,
    /// Worth a word, and an end of the calm.
    Tight,
    Swapping,
    Critical,
}

/// What the memory guard wants done, and why.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Judgement {
    pub alarm: Alarm,
    /// One sentence with its figures, while memory is tight or short.
    pub why: Option<String>,
    /// Too little is known, or left, to load anything that nobody waits for; or the machine has just woken.
    pub reserved: bool,
}

#[derive(Debug, Default)]
pub struct MemoryGuard {
    alarm: Alarm,
    why: Option<String>,
    last: Option<Duration>,
    /// Until then nothing is loaded ahead of need.
    reserved_until: Duration,
    /// Since when the signs are this bad or worse.
    swapping_since: Option<Duration>,
    critical_since: Option<Duration>,
    calm_since: Option<Duration>,
    /// When the last alarm fell.
    fell: Option<Duration>,
    /// How often it has come back since.
    relapses: u32,
}

impl MemoryGuard {
    /// Takes one reading, in the order in which they were taken.
    pub fn observe(&mut self, reading: &Reading) -> Judgement {
        let now = Duration::from_millis(reading.at_ms);
        match self.last {
            Some(last) if now < last => {
                (self.swapping_since, self.critical_since, self.calm_since) = (None, None, None);
            }
            Some(last) if now - last > GAP => {
                // It slept, or it thrashed so that nobody could read: what was bad before lasts, and the gap counts as a second.
                let gap = now - last - Duration::from_secs(1);
                let later = |since: Option<Duration>| since.map(|at| at + gap);
                self.critical_since = later(self.critical_since);
                self.swapping_since = later(self.swapping_since);
                self.calm_since = None;
                self.reserved_until = now + UNSETTLED;
            }
            _ => {}
        }
        self.last = Some(now);
        let sign = sign(reading, self.alarm > Alarm::None);
        if sign != Some(Sign::Calm) {
            self.reserved_until = now + UNSETTLED;
        }
        if let Some(sign) = sign {
            self.time(sign, now);
            let alarm = self.risen(now);
            if alarm > self.alarm {
                if self.alarm == Alarm::None {
                    self.relapsed(now);
                }
                self.alarm = alarm;
            } else if self.alarm > Alarm::None && self.has_been_calm(now) {
                self.alarm = Alarm::None;
                self.fell = Some(now);
            }
            self.why =
                (sign > Sign::Calm || self.alarm > Alarm::None).then(|| words(reading, sign));
        }
        Judgement {
            alarm: self.alarm,
            why: self.why.clone(),
            reserved: now < self.reserved_until,
        }
    }

    fn time(&mut self, sign: Sign, now: Duration) {
        let since = |before: Option<Duration>, lasts: bool| lasts.then_some(before.unwrap_or(now));
        self.critical_since = since(self.critical_since, sign >= Sign::Critical);
        self.swapping_since = since(self.swapping_since, sign >= Sign::Swapping);
        self.calm_since = since(self.calm_since, sign <= Sign::Tight);
    }

    /// What the signs ask for by how long they have lasted.
    fn risen(&self, now: Duration) -> Alarm {
        let of = |since: Option<Duration>, unloads, last_resort| match since.map(|at| now - at) {
            None => Alarm::None,
            Some(lasted) if lasted >= last_resort => Alarm::Critical,
            Some(lasted) if lasted >= unloads => Alarm::Unload,
            Some(_) => Alarm::Hold,
        };
        let critical = of(self.critical_since, CRITICAL_UNLOADS, LAST_RESORT);
        let swapping = of(self.swapping_since, SWAPPING_UNLOADS, SWAPPING_LAST_RESORT);
        critical.max(swapping)
    }

    fn relapsed(&mut self, now: Duration) {
        let recent = self
            .fell
            .is_some_and(|fell| now.saturating_sub(fell) < RELAPSE);
        self.relapses = if recent { self.relapses + 1 } else { 0 };
    }

    fn has_been_calm(&self, now: Duration) -> bool {
        let asked = CALM
            .saturating_mul(2_u32.saturating_pow(self.relapses))
            .min(LONGEST_CALM);
        self.calm_since.is_some_and(|since| now - since >= asked)
    }
}

/// `None` if nothing that is known shows shortness, and something that could is unknown. `alarmed`: the bounds are
/// wider, so that what hovers at one does not raise and lower the alarm in turn.
fn sign(reading: &Reading, alarmed: bool) -> Option<Sign> {
    let (pressure, growth) = (reading.pressure, growth(reading));
    let available = reading
        .ram_available_bytes
        .zip(reading.ram_total_bytes.filter(|&total| total > 0))
        .map(|(available, total)| u128::from(available) * 1000 / u128::from(total));
    let below = |share: u64| {
        let share = u128::from(if alarmed { share + share / 4 } else { share });
        available.is_some_and(|available| available < share)
    };
    let grows =
        |bytes: u64| growth.is_some_and(|growth| growth >= if alarmed { bytes / 2 } else { bytes });
    let pressed = pressure.is_some_and(|pressure| pressure >= Pressure::Warning);
    // Where the kernel grades pressure itself, it knows better than any sum what it could still take back.
    let normal = pressure == Some(Pressure::Normal);
    if pressure == Some(Pressure::Critical) || below(SCARCE) && !normal {
        return Some(Sign::Critical);
    }
    // What was swapped out within the last minute may have been one step, long over.
    let swaps = reading
        .swap_out_bytes_per_second
        .is_none_or(|rate| rate >= SWAPS_NOW);
    let floods = grows(SWAP_FLOOD) || grows(SWAP_GROWTH) && (pressed || below(TIGHT));
    if floods && swaps {
        return Some(Sign::Swapping);
    }
    if pressed || below(TIGHT) || grows(SWAP_GROWTH) {
        return Some(Sign::Tight);
    }
    // Growth is unknown for a moment after each start and sleep, and says nothing alone.
    (pressure.is_some() && available.is_some()).then_some(Sign::Calm)
}

fn growth(reading: &Reading) -> Option<u64> {
    let growth = reading.swap_growth_bytes_per_minute?;
    Some(u64::try_from(growth).unwrap_or(0))
}

fn words(reading: &Reading, sign: Sign) -> String {
    let mut figures = Vec::new();
    match reading.pressure {
        Some(Pressure::Critical) => figures.push("the system reports critical pressure".to_owned()),
        Some(Pressure::Warning) => figures.push("the system reports pressure".to_owned()),
        Some(Pressure::Normal) | None => {}
    }
    if let (Some(available), Some(total)) = (reading.ram_available_bytes, reading.ram_total_bytes) {
        figures.push(format!(
            "{} of {} are available",
            gib(available),
            gib(total)
        ));
    }
    if let Some(growth) = growth(reading).filter(|&growth| growth >= MIB) {
        figures.push(format!("swap grew by {} in a minute", gib(growth)));
    }
    let what = match sign {
        Sign::Calm => "memory was short a moment ago",
        Sign::Tight => "memory is tight",
        Sign::Swapping => "memory is short and swap is growing",
        Sign::Critical => "memory is about to run out",
    };
    if figures.is_empty() {
        what.to_owned()
    } else {
        format!("{what}: {}", figures.join(", "))
    }
}

#[cfg(test)]
mod tests;
