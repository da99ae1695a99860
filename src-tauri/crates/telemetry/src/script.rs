//! `TIERBAR_SCRIPTED_READINGS`: a file of readings that replace the machine's, for tests of the reactions to them.
//!
//! Each line is a JSON object: `at_ms`, its start in milliseconds after the first reading, and figures by their names in
//! [`Reading`](tierbar_core::reading::Reading). Missing figures stay as they were, `null` is a figure that the system does
//! not report, and the last line applies until the end. Three more keys: `swap_total_bytes`, `slept_ms`, how long the machine
//! has slept by then, and `frozen`, which stops the system's counters. Scripted figures are judged like the machine's own, so
//! a script can contain absurd ones.
//!
//! ```json
//! {"ram_total_bytes": 17179869184, "ram_available_bytes": 8589934592, "swap_total_bytes": 0, "swap_used_bytes": 0}
//! {"at_ms": 5000, "ram_available_bytes": 268435456, "pressure": "critical", "swap_out_bytes_per_second": 50000000}
//! {"at_ms": 20000, "ram_available_bytes": null}
//! ```

use crate::figures::{Figures, SlowFigures, Ticks};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};
use tierbar_core::{
    Code, Error,
    reading::{Power, Thermal},
    status::Pressure,
};

/// The variable's name. Its value is a file's path; unset or empty means the machine's own readings.
pub const SCRIPTED_READINGS: &str = "TIERBAR_SCRIPTED_READINGS";

/// Scripts are small; a larger file is a mistake.
const MOST_BYTES: u64 = 16 << 20;

/// Returns the script for readings, if the environment names one. Check it once at start to report an invalid one; a
/// [`Sampler`](crate::Sampler) ignores it.
///
/// # Errors
/// [`Code::ConfigInvalid`] naming the variable, the file and the line.
pub fn scripted_readings() -> Result<Option<PathBuf>, Error> {
    Script::of_environment()?;
    Ok(requested_path())
}

pub(crate) fn requested_path() -> Option<PathBuf> {
    non_empty_path(std::env::var_os(SCRIPTED_READINGS))
}

fn non_empty_path(value: Option<OsString>) -> Option<PathBuf> {
    value.filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The lines in order; there is at least one, and the first starts at 0.
#[derive(Debug)]
pub(crate) struct Script {
    lines: Vec<ScriptStep>,
}

/// A line, and the counters at its start.
#[derive(Debug, Clone, Default)]
struct ScriptStep {
    line: ScriptLine,
    ticks: u64,
    swap_out: u64,
    disk_read: u64,
    disk_written: u64,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ScriptLine {
    at_ms: u64,
    slept_ms: u64,
    frozen: bool,
    ram_total_bytes: Option<u64>,
    ram_available_bytes: Option<u64>,
    pressure: Option<Pressure>,
    swap_total_bytes: Option<u64>,
    swap_used_bytes: Option<u64>,
    swap_out_bytes_per_second: Option<u64>,
    disk_read_bytes_per_second: Option<u64>,
    disk_written_bytes_per_second: Option<u64>,
    thermal: Option<Thermal>,
    power: Option<Power>,
    full_screen: Option<bool>,
}

impl Script {
    pub(crate) fn of_environment() -> Result<Option<Self>, Error> {
        let path = requested_path();
        path.map(|path| Self::of_file(&path)).transpose()
    }

    fn of_file(path: &Path) -> Result<Self, Error> {
        let read = || {
            let size = fs::metadata(path).map_err(|error| error.to_string())?.len();
            if size > MOST_BYTES {
                return Err(format!(
                    "it has {size} bytes, at most {MOST_BYTES} are read"
                ));
            }
            Self::of_text(&fs::read_to_string(path).map_err(|error| error.to_string())?)
        };
        read().map_err(|why| {
            let message = format!("{SCRIPTED_READINGS} is \"{}\": {why}", path.display());
            Error::new(Code::ConfigInvalid, message)
                .hint("give it a file with a JSON object on each line, or unset it")
        })
    }

    pub(crate) fn of_text(text: &str) -> Result<Self, String> {
        let mut lines: Vec<ScriptStep> = Vec::new();
        let mut keys = Map::new();
        for (number, text) in text.lines().enumerate() {
            if text.trim().is_empty() {
                continue;
            }
            let wrong = |why: String| format!("line {}: {why}", number + 1);
            let line: Map<String, Value> =
                serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
            keys.extend(line);
            let line = ScriptLine::deserialize(&keys).map_err(|error| wrong(error.to_string()))?;
            let next = match lines.last() {
                None if line.at_ms > 0 => {
                    return Err(wrong("the first line must have at_ms 0".to_owned()));
                }
                None => ScriptStep {
                    line,
                    // Counters of a system that has run for a while.
                    ticks: 1,
                    ..ScriptStep::default()
                },
                Some(before) if line.at_ms <= before.line.at_ms => {
                    return Err(wrong(format!(
                        "at_ms is {}, which is not after the line before",
                        line.at_ms
                    )));
                }
                Some(before) => ScriptStep {
                    line: line.clone(),
                    ..before.at(line.at_ms)
                },
            };
            lines.push(next);
        }
        if lines.is_empty() {
            return Err("it has no lines".to_owned());
        }
        Ok(Self { lines })
    }

    /// Returns the figures `ms` after the first reading. The caller sets the clock.
    pub(crate) fn at(&self, ms: u64) -> Figures {
        let holds = self.lines.partition_point(|begun| begun.line.at_ms <= ms);
        let now = self.lines[holds.saturating_sub(1)].at(ms);
        let line = &now.line;
        let counter = |rate: Option<u64>, counter: u64| rate.map(|_| counter);
        Figures {
            awake_ms: ms,
            slept_ms: line.slept_ms,
            ram_total_bytes: line.ram_total_bytes,
            ram_available_bytes: line.ram_available_bytes,
            pressure: line.pressure,
            swap_total_bytes: line.swap_total_bytes,
            swap_used_bytes: line.swap_used_bytes,
            cpu: Some(Ticks {
                busy: 0,
                total: now.ticks,
            }),
            swapped_out_bytes: counter(line.swap_out_bytes_per_second, now.swap_out),
            disk_read_bytes: counter(line.disk_read_bytes_per_second, now.disk_read),
            disk_written_bytes: counter(line.disk_written_bytes_per_second, now.disk_written),
            slow: SlowFigures {
                thermal: line.thermal,
                power: line.power,
                full_screen: line.full_screen,
            },
        }
    }
}

impl ScriptStep {
    /// Returns the same line with the counters `ms` after the first reading.
    fn at(&self, ms: u64) -> Self {
        let line = &self.line;
        let elapsed = if line.frozen {
            0
        } else {
            ms.saturating_sub(line.at_ms)
        };
        let on = |counter: u64, rate: Option<u64>| {
            counter.saturating_add(rate.unwrap_or(0).saturating_mul(elapsed) / 1000)
        };
        Self {
            line: line.clone(),
            ticks: self.ticks.saturating_add(elapsed),
            swap_out: on(self.swap_out, line.swap_out_bytes_per_second),
            disk_read: on(self.disk_read, line.disk_read_bytes_per_second),
            disk_written: on(self.disk_written, line.disk_written_bytes_per_second),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::ReadingJudge;
    use tierbar_core::reading::{Figure, Reading};

    /// Readings at these milliseconds.
    fn readings<const N: usize>(text: &str, at: [u64; N]) -> [Reading; N] {
        let (script, mut judge) = (
            Script::of_text(text).unwrap(),
            ReadingJudge::new(false, None),
        );
        at.map(|ms| judge.judge(&script.at(ms)))
    }

    const IDLE: &str = r#"{"ram_total_bytes": 16000, "ram_available_bytes": 8000, "swap_total_bytes": 900,
        "swap_used_bytes": 100, "swap_out_bytes_per_second": 0, "disk_read_bytes_per_second": 250}"#;

    fn idle() -> String {
        IDLE.replace('\n', " ")
    }

    #[test]
    fn a_line_holds_until_the_next_and_the_last_for_good() {
        let text = format!(
            "{}\n\n{}\n",
            idle(),
            r#"{"at_ms": 5000, "ram_available_bytes": 100, "pressure": "critical"}"#
        );
        let [first, before, then, later] = readings(&text, [0, 4999, 5000, 3_600_000]);
        assert_eq!(first.doubts, []);
        assert_eq!(first.ram_available_bytes, Some(8000));
        assert_eq!(
            (before.ram_available_bytes, before.pressure),
            (Some(8000), Some(Pressure::Normal))
        );
        assert_eq!(
            (then.ram_available_bytes, then.pressure),
            (Some(100), Some(Pressure::Critical))
        );
        // Figures missing in the second line stayed as they were.
        assert_eq!(
            (later.ram_available_bytes, later.swap_used_bytes),
            (Some(100), Some(100))
        );
        assert_eq!(later.doubts, []);
    }

    #[test]
    fn scripted_rates_survive_as_counters() {
        let text = format!(
            "{}\n{}\n",
            idle(),
            r#"{"at_ms": 2000, "swap_out_bytes_per_second": 5000, "disk_read_bytes_per_second": 750}"#
        );
        let [_, one, two, three, four] = readings(&text, [0, 1000, 2000, 3000, 5000]);
        let of = |reading: &Reading| {
            (
                reading.swap_out_bytes_per_second.unwrap(),
                reading.disk_read_bytes_per_second.unwrap(),
            )
        };
        assert_eq!(of(&one), (0, 250));
        assert_eq!(of(&two), (0, 250));
        assert_eq!(of(&three), (5000, 750));
        assert_eq!(of(&four), (5000, 750));
        assert_eq!(four.disk_written_bytes_per_second, None);
    }

    #[test]
    fn null_is_unknown_and_absurd_figures_are_judged() {
        let text = format!(
            "{}\n{}\n{}\n",
            idle(),
            r#"{"at_ms": 1000, "ram_available_bytes": null}"#,
            r#"{"at_ms": 2000, "ram_available_bytes": 16001}"#
        );
        let [_, missing, absurd] = readings(&text, [0, 1000, 2000]);
        for reading in [missing, absurd] {
            assert_eq!(reading.ram_available_bytes, None);
            assert_eq!(reading.doubts[0].figure, Figure::RamAvailable);
        }
    }

    #[test]
    fn frozen_counters_make_every_figure_unknown() {
        let text = format!(
            "{}\n{}\n{}\n",
            idle(),
            r#"{"at_ms": 1000, "frozen": true}"#,
            r#"{"at_ms": 60000, "frozen": false}"#
        );
        let [before, frozen, after] = readings(&text, [1000, 10_000, 61_000]);
        assert_eq!(before.doubts, []);
        assert_eq!(frozen.doubts[0].figure, Figure::All);
        assert_eq!(after.doubts, []);
        assert_eq!(after.ram_available_bytes, Some(8000));
    }

    #[test]
    fn the_time_of_a_reading_includes_sleep() {
        let text = format!(
            "{}\n{}\n",
            idle(),
            r#"{"at_ms": 1000, "slept_ms": 28800000}"#
        );
        let [before, after] = readings(&text, [0, 1000]);
        assert_eq!((before.at_ms, after.at_ms), (0, 28_801_000));
    }

    #[test]
    fn an_invalid_script_is_reported_with_its_line() {
        for (text, expected) in [
            ("", "no lines"),
            ("{}\nnonsense", "line 2: "),
            ("[]", "line 1: "),
            (r#"{"at_ms": 5}"#, "line 1: the first line must have"),
            ("{}\n{\"at_ms\": 0}", "line 2: at_ms is 0"),
            (r#"{"ram_free": 5}"#, "line 1: unknown field `ram_free`"),
            (r#"{"ram_total_bytes": -5}"#, "line 1: invalid value"),
            (r#"{"pressure": "high"}"#, "line 1: unknown variant `high`"),
        ] {
            let why = Script::of_text(text).unwrap_err();
            assert!(why.contains(expected), "{text:?}: {why}");
        }
    }

    #[test]
    fn a_script_error_names_the_file_and_empty_means_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("readings");
        let error = Script::of_file(&path).unwrap_err();
        assert_eq!(error.code, Code::ConfigInvalid);
        let start = format!("TIERBAR_SCRIPTED_READINGS is \"{}\": ", path.display());
        assert!(error.message.starts_with(&start), "{error}");
        fs::write(&path, "{}").unwrap();
        assert!(Script::of_file(&path).is_ok());
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(MOST_BYTES + 1)
            .unwrap();
        assert!(
            Script::of_file(&path)
                .unwrap_err()
                .message
                .contains("at most")
        );
        assert_eq!(non_empty_path(Some("".into())), None);
        assert_eq!(non_empty_path(Some("x".into())), Some(PathBuf::from("x")));
    }
}
