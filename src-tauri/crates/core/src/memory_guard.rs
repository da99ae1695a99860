//! The memory guard: how short memory is, judged from readings as they come.
//!
//! It rises at once and falls late. A reading is judged by three figures: the kernel's pressure, what is available, and the
//! *growth* of swap, never its level, which stays for hours after what caused it has gone. What lasts rises further, until
//! tiers are ended although they are used. It falls after [`CALM`] without a sign of it; whenever ending tiers has not helped
//! for long, and it rises again, that time doubles.
//!
//! An unknown figure neither raises nor lowers the alarm.

use crate::{
    budget::{GIB, MIB, gib},
    policy::Alarm,
    reading::Reading,
    status::Pressure,
};
use std::time::Duration;

/// How long memory must not be short before the alarm falls.
pub const CALM: Duration = Duration::from_secs(10);
/// The most that this time grows to when the alarm keeps returning.
const LONGEST_CALM: Duration = Duration::from_secs(320);
const RELAPSE: Duration = Duration::from_secs(300);

/// Critical pressure ends idle tiers after this, and used ones after [`LAST_RESORT`].
const CRITICAL_UNLOADS: Duration = Duration::from_secs(1);
const LAST_RESORT: Duration = Duration::from_secs(5);
/// Growing swap slows the machine before it stops it, so there is more time.
const SWAPPING_UNLOADS: Duration = Duration::from_secs(5);
const SWAPPING_LAST_RESORT: Duration = Duration::from_secs(30);

/// With this growth of swap per minute under memory pressure, the machine is swapping.
const SWAP_GROWTH: u64 = 256 * MIB;
/// At this growth, swapping counts without memory pressure, and while a model loads.
const SWAP_FLOOD: u64 = GIB;
/// A load moves other programs out once, which stays in the growth of swap for as long.
const LOADED: Duration = Duration::from_secs(60);
/// Less than this per second does not count as swapping.
const SWAPS_NOW: u64 = MIB;
/// Shares of all memory, in thousandths, below which too little is available if the pressure is unknown, and below which it is
/// tight. A kernel's pressure is not overruled: macOS reports what is available without the memory that it would compress, and
/// beside a large model that is a few percent on a Mac that works well.
const SCARCE: u64 = 40;
const TIGHT: u64 = 80;
/// Readings further apart than this have a gap, such as a sleep.
const GAP: Duration = Duration::from_secs(15);

/// Readings further apart than this are mentioned when an alarm ends.
const NOTABLE_GAP: Duration = Duration::from_secs(3);

/// How long preloads wait after a wake, when programs read back their memory, and after memory was tight.
const UNSETTLED: Duration = Duration::from_secs(30);

/// What a reading shows about memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Sign {
    Calm,
    /// Memory is tight: worth a message, and an end of the calm.
    Tight,
    Swapping,
    Critical,
}

/// What the memory guard requires, and why.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Judgment {
    pub alarm: Alarm,
    /// One sentence with its figures, while memory is tight or short.
    pub why: Option<String>,
    /// Preloads must wait: too little memory is known to be available, or the machine has just woken.
    pub reserved: bool,
    /// The alarm that this reading has ended.
    pub ended: Option<EndedAlarm>,
}

/// What an alarm has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EndedAlarm {
    pub lasted: Duration,
    pub worst: Alarm,
    /// For how long together memory was critical, and swap grew: the longest times of the alarm.
    pub critical: Duration,
    pub swapping: Duration,
    /// The longest time without a reading.
    pub unread: Duration,
}

impl EndedAlarm {
    /// Returns one sentence that says how long it lasted, and what it unloaded or why nothing.
    pub fn sentence(&self) -> String {
        let seconds = |time: Duration| format!("{:.0} s", time.as_secs_f32());
        let unread = match self.unread {
            short if short < NOTABLE_GAP => String::new(),
            gap => format!(", {} of them without a reading", seconds(gap)),
        };
        let outcome = match self.worst {
            Alarm::None | Alarm::Hold => format!(
                "no model was unloaded, which takes {} of critical memory (it was {}) or {} of growing swap (it was {})",
                seconds(CRITICAL_UNLOADS),
                seconds(self.critical),
                seconds(SWAPPING_UNLOADS),
                seconds(self.swapping)
            ),
            Alarm::Unload => "idle models were to be unloaded".to_owned(),
            Alarm::Critical => "all models were to be unloaded".to_owned(),
        };
        format!(
            "memory is no longer low after {}{unread}; {outcome}",
            seconds(self.lasted)
        )
    }
}

#[derive(Debug, Default)]
pub struct MemoryGuard {
    alarm: Alarm,
    why: Option<String>,
    last: Option<Duration>,
    /// Until then, preloads wait.
    reserved_until: Duration,
    /// Until then, growth of swap may be of a load.
    loaded_until: Duration,
    /// Since when the signs have been this bad or worse.
    swapping_since: Option<Duration>,
    critical_since: Option<Duration>,
    calm_since: Option<Duration>,
    /// When the alarm was raised, and what has come of it.
    raised: Option<Duration>,
    course: EndedAlarm,
    /// When the last alarm fell.
    fell: Option<Duration>,
    /// How often it has returned since.
    relapses: u32,
}

impl MemoryGuard {
    /// Judges one reading; readings must be in order. `loading`: a model is being loaded.
    pub fn observe(&mut self, reading: &Reading, loading: bool) -> Judgment {
        let now = Duration::from_millis(reading.at_ms);
        let mut ended = None;
        let unread = self
            .last
            .map_or(Duration::ZERO, |last| now.saturating_sub(last));
        match self.last {
            Some(last) if now < last => {
                (self.swapping_since, self.critical_since, self.calm_since) = (None, None, None);
            }
            Some(last) if now - last > GAP => {
                // The machine slept, or thrashed so that it could not be read: what was bad stays so, and the gap counts as
                // a second.
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
        if loading {
            self.loaded_until = now + LOADED;
        }
        let sign = sign(reading, self.alarm > Alarm::None, now < self.loaded_until);
        if sign != Some(Sign::Calm) {
            self.reserved_until = now + UNSETTLED;
        }
        if let Some(sign) = sign {
            self.time(sign, now);
            let alarm = self.risen(now, loading);
            if alarm > self.alarm {
                if self.alarm == Alarm::None {
                    self.relapsed(now);
                    self.raised = Some(now);
                    self.course = EndedAlarm::default();
                }
                self.alarm = alarm;
            } else if self.alarm > Alarm::None && self.has_been_calm(now) {
                self.alarm = Alarm::None;
                self.fell = Some(now);
                ended = self.raised.take().map(|raised| EndedAlarm {
                    lasted: now.saturating_sub(raised),
                    ..self.course
                });
            }
            self.follow(now, unread);
            self.why = (sign > Sign::Calm || self.alarm > Alarm::None)
                .then(|| alarm_sentence(reading, sign));
        }
        Judgment {
            alarm: self.alarm,
            why: self.why.clone(),
            reserved: now < self.reserved_until,
            ended,
        }
    }

    /// Records what has come of the alarm so far.
    fn follow(&mut self, now: Duration, unread: Duration) {
        let lasted = |since: Option<Duration>| now.saturating_sub(since.unwrap_or(now));
        let course = &mut self.course;
        course.worst = course.worst.max(self.alarm);
        course.critical = course.critical.max(lasted(self.critical_since));
        course.swapping = course.swapping.max(lasted(self.swapping_since));
        course.unread = course.unread.max(unread);
    }

    fn time(&mut self, sign: Sign, now: Duration) {
        let since = |before: Option<Duration>, lasts: bool| lasts.then_some(before.unwrap_or(now));
        self.critical_since = since(self.critical_since, sign >= Sign::Critical);
        self.swapping_since = since(self.swapping_since, sign >= Sign::Swapping);
        self.calm_since = since(self.calm_since, sign <= Sign::Tight);
    }

    /// Returns the alarm for the signs and how long they have lasted. A load makes critical memory worse, so it ends at once.
    fn risen(&self, now: Duration, loading: bool) -> Alarm {
        let of = |since: Option<Duration>, unloads, last_resort| match since.map(|at| now - at) {
            None => Alarm::None,
            Some(lasted) if lasted >= last_resort => Alarm::Critical,
            Some(lasted) if lasted >= unloads => Alarm::Unload,
            Some(_) => Alarm::Hold,
        };
        let unloads = match loading {
            true => Duration::ZERO,
            false => CRITICAL_UNLOADS,
        };
        let critical = of(self.critical_since, unloads, LAST_RESORT);
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
        let needed = CALM.saturating_mul(2_u32.saturating_pow(self.relapses));
        let needed = needed.min(LONGEST_CALM);
        self.calm_since.is_some_and(|since| now - since >= needed)
    }
}

/// Returns `None` if no known figure shows short memory and an unknown one could. With `alarmed` the bounds are wider, so
/// that a figure near one does not raise and lower the alarm in turn. `loaded`: a model was loaded within the last minute.
fn sign(reading: &Reading, alarmed: bool, loaded: bool) -> Option<Sign> {
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
    if pressure == Some(Pressure::Critical) || below(SCARCE) && pressure.is_none() {
        return Some(Sign::Critical);
    }
    // Growth within the last minute may have been one step that is over.
    let swaps = reading
        .swap_out_bytes_per_second
        .is_none_or(|rate| rate >= SWAPS_NOW);
    let floods = grows(SWAP_FLOOD) || !loaded && grows(SWAP_GROWTH) && (pressed || below(TIGHT));
    if floods && swaps {
        return Some(Sign::Swapping);
    }
    if pressed || below(TIGHT) || grows(SWAP_GROWTH) {
        return Some(Sign::Tight);
    }
    // Growth is unknown shortly after a start or sleep, and means nothing alone.
    (pressure.is_some() && available.is_some()).then_some(Sign::Calm)
}

fn growth(reading: &Reading) -> Option<u64> {
    let growth = reading.swap_growth_bytes_per_minute?;
    Some(u64::try_from(growth).unwrap_or(0))
}

fn alarm_sentence(reading: &Reading, sign: Sign) -> String {
    let mut figures = Vec::new();
    match reading.pressure {
        Some(Pressure::Critical) => figures.push("the system reports critical pressure".to_owned()),
        Some(Pressure::Warning) => figures.push("the system reports pressure".to_owned()),
        Some(Pressure::Normal) | None => {}
    }
    if let (Some(available), Some(total)) = (reading.ram_available_bytes, reading.ram_total_bytes) {
        let (available, total) = (gib(available), gib(total));
        figures.push(format!("{available} of {total} are available"));
    }
    if let Some(growth) = growth(reading).filter(|&growth| growth >= MIB) {
        figures.push(format!("swap grew by {} in a minute", gib(growth)));
    }
    let what = match sign {
        Sign::Calm => "memory was low a moment ago",
        Sign::Tight => "memory is tight",
        Sign::Swapping => "memory is low and swap is growing",
        Sign::Critical => "memory is about to run out",
    };
    match figures.is_empty() {
        true => what.to_owned(),
        false => format!("{what}: {}", figures.join(", ")),
    }
}

#[cfg(test)]
mod tests;
