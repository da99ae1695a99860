//! Readings of the machine, or of a script that replaces it.

use crate::{
    figures::{Figures, SlowFigures},
    judge::ReadingJudge,
    platform::{self, PressureListener},
    script::{Script, requested_path},
    simulate::simulated_ram,
};
use std::collections::BTreeSet;
use tierbar_core::{
    reading::{Figure, Reading},
    status::Pressure,
};

/// What is slow to read changes slowly.
const SLOW_MS: u64 = 10_000;

/// Takes readings, and keeps what it needs for rates and swap growth. It has one owner.
#[derive(Debug)]
pub struct Sampler {
    source: ReadingSource,
    judge: ReadingJudge,
    doubted: BTreeSet<Figure>,
}

#[derive(Debug)]
enum ReadingSource {
    Machine { slow: Option<(u64, SlowFigures)> },
    Script { script: Script, began: u64 },
}

impl Sampler {
    fn with(simulated: Option<u64>, script: Option<Script>) -> Self {
        let source = match script {
            Some(script) => ReadingSource::Script {
                script,
                began: platform::clocks().0,
            },
            None => ReadingSource::Machine { slow: None },
        };
        Self {
            source,
            judge: ReadingJudge::new(platform::PRESSURE_COUNTS_AVAILABLE, simulated),
            doubted: BTreeSet::new(),
        }
    }

    pub fn sample(&mut self) -> Reading {
        let (awake_ms, slept_ms) = platform::clocks();
        let figures = self.source.read_figures(awake_ms, slept_ms);
        let reading = self.judge.judge(&figures);
        self.log(&reading);
        reading
    }

    /// Records a level of pressure that the system has announced (see [`pressure_changes`]). Readings have at least this
    /// level for the next ten seconds, since averages lag behind, or until a lower level is announced.
    pub fn announced(&mut self, level: Pressure) {
        self.judge.announce(level, platform::clocks().0);
    }

    /// Logs each doubt once, and its end.
    fn log(&mut self, reading: &Reading) {
        let doubted: BTreeSet<_> = reading.doubts.iter().map(|doubt| doubt.figure).collect();
        for doubt in &reading.doubts {
            if !self.doubted.contains(&doubt.figure) {
                tracing::warn!(figure = ?doubt.figure, "a reading is not trusted: {}", doubt.why);
            }
        }
        for figure in self.doubted.difference(&doubted) {
            tracing::info!(?figure, "readings are trusted again");
        }
        self.doubted = doubted;
    }
}

impl Default for Sampler {
    /// Wrong values of `TIERBAR_SIMULATE_RAM` and `TIERBAR_SCRIPTED_READINGS` count as none and are logged;
    /// [`simulated_ram`] and [`crate::scripted_readings`] report them at start.
    fn default() -> Self {
        let simulated = simulated_ram().unwrap_or_else(|error| {
            tracing::warn!("{error}; using the real machine's RAM");
            None
        });
        let script = Script::of_environment().unwrap_or_else(|error| {
            tracing::warn!("{error}; reading the real machine");
            None
        });
        Self::with(simulated, script)
    }
}

impl ReadingSource {
    fn read_figures(&mut self, awake_ms: u64, slept_ms: u64) -> Figures {
        match self {
            Self::Script { script, began } => Figures {
                awake_ms,
                ..script.at(awake_ms.saturating_sub(*began))
            },
            Self::Machine { slow } => {
                let slow = match *slow {
                    Some((at, known)) if awake_ms.saturating_sub(at) < SLOW_MS => known,
                    _ => slow.insert((awake_ms, read_slow())).1,
                };
                Figures {
                    awake_ms,
                    slept_ms,
                    slow,
                    ..platform::read()
                }
            }
        }
    }
}

fn read_slow() -> SlowFigures {
    SlowFigures {
        thermal: platform::thermal(),
        power: platform::power(),
        full_screen: platform::full_screen(),
    }
}

/// Announces memory pressure as it rises (on macOS also as it falls), within a second, however rare readings are. `notify`
/// is called on another thread and must not block. Returns `None` where the system does not support this; then there are
/// only the readings.
///
/// macOS: the memory-pressure source of dispatch. Linux: triggers on stall information, of the control group with the
/// tightest limit or of the machine; they never announce `Normal`. Also `None` while a script replaces the machine.
pub fn pressure_changes(
    notify: impl Fn(Pressure) + Send + Sync + 'static,
) -> Option<PressureListener> {
    if requested_path().is_some() {
        return None;
    }
    PressureListener::begin(notify)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_reading_of_this_machine_is_trusted() {
        let reading = Sampler::with(None, None).sample();
        assert_eq!(reading.doubts, []);
        let total = reading.ram_total_bytes.unwrap();
        assert!(total > 100 << 20, "{reading:?}");
        assert!((1..=total).contains(&reading.ram_available_bytes.unwrap()));
        assert!(reading.pressure.is_some(), "{reading:?}");
        assert_eq!(reading.swap_growth_bytes_per_minute, Some(0));
        assert!(reading.at_ms > 0);
    }

    #[test]
    fn a_simulation_affects_the_whole_reading() {
        let reading = Sampler::with(Some(16 * GIB), None).sample();
        assert_eq!(reading.ram_total_bytes, Some(16 * GIB));
    }

    #[test]
    fn a_script_replaces_the_machines_figures() {
        let line = r#"{"ram_total_bytes": 1000000000000000, "ram_available_bytes": 7, "pressure": "normal"}"#;
        let script = Script::of_text(line).unwrap();
        let mut sampler = Sampler::with(None, Some(script));
        let reading = sampler.sample();
        assert_eq!(reading.ram_available_bytes, Some(7));
        assert_eq!(reading.ram_total_bytes, Some(1_000_000_000_000_000));
    }

    #[test]
    fn a_sampler_and_its_announcements_are_send() {
        fn goes<T: Send + 'static>() {}
        goes::<Sampler>();
        goes::<PressureListener>();
    }

    #[test]
    fn an_announced_level_is_in_the_next_reading() {
        let line = r#"{"ram_total_bytes": 1000000, "ram_available_bytes": 200000}"#;
        let mut sampler = Sampler::with(None, Some(Script::of_text(line).unwrap()));
        assert_eq!(sampler.sample().pressure, Some(Pressure::Normal));
        sampler.announced(Pressure::Critical);
        assert_eq!(sampler.sample().pressure, Some(Pressure::Critical));
    }
}
