//! Past readings: points in time, and the longer steps they roll up into.

use crate::{reading::Reading, status::Pressure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The answer of `GET /tierbar/v1/history`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct History {
    /// The length of a point.
    pub step_seconds: u64,
    /// Oldest first. A time without readings has no point.
    pub points: Vec<Point>,
}

/// The readings of a period. A figure that was unknown throughout is `null`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Point {
    /// The start, in seconds since 1970.
    pub at: u64,
    /// The number of readings in it.
    pub samples: u32,
    /// The worst.
    pub pressure: Option<Pressure>,
    /// The last.
    pub ram_total_bytes: Option<u64>,
    pub ram_used_bytes: Option<Spread>,
    pub swap_used_bytes: Option<Spread>,
    pub disk_read_bytes_per_second: Option<Spread>,
    /// Memory of the workers, as measured.
    pub models_bytes: Option<Spread>,
    /// Only of readings while a model was answering.
    pub decode_tokens_per_second: Option<Spread>,
}

/// What models did at the time of a reading. `None` is unknown, or not the case.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ModelUse {
    /// Memory of the workers, as measured.
    pub bytes: Option<u64>,
    /// Of an answer that was streaming, or that has ended since the last reading.
    pub decode_tokens_per_second: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Spread {
    pub mean: f64,
    pub max: f64,
}

impl Point {
    /// Returns the point of a single reading at `at` seconds since 1970.
    pub fn from_reading(at: u64, reading: &Reading, models: ModelUse) -> Self {
        let whole = |figure: Option<u64>| figure.map(|value| Spread::from_value(value as f64));
        let used = reading
            .ram_total_bytes
            .zip(reading.ram_available_bytes)
            .map(|(total, available)| total.saturating_sub(available));
        Self {
            at,
            samples: 1,
            pressure: reading.pressure,
            ram_total_bytes: reading.ram_total_bytes,
            ram_used_bytes: whole(used),
            swap_used_bytes: whole(reading.swap_used_bytes),
            disk_read_bytes_per_second: whole(reading.disk_read_bytes_per_second),
            models_bytes: whole(models.bytes),
            decode_tokens_per_second: models.decode_tokens_per_second.map(Spread::from_value),
        }
    }
}

impl Spread {
    fn from_value(value: f64) -> Self {
        Self {
            mean: value,
            max: value,
        }
    }
}

/// Merges points into one that starts at `at`. Means are weighted by the readings of each point.
pub fn merge_points(at: u64, points: &[&Point]) -> Point {
    let spread = |of: fn(&Point) -> Option<Spread>| {
        let known = || {
            points
                .iter()
                .filter_map(move |point| Some((of(point)?, f64::from(point.samples.max(1)))))
        };
        let weight: f64 = known().map(|(_, weight)| weight).sum();
        let max = known()
            .map(|(spread, _)| spread.max)
            .max_by(f64::total_cmp)?;
        let sum: f64 = known().map(|(spread, weight)| spread.mean * weight).sum();
        Some(Spread {
            mean: sum / weight,
            max,
        })
    };
    Point {
        at,
        samples: points
            .iter()
            .fold(0, |sum, point| point.samples.saturating_add(sum)),
        pressure: points.iter().filter_map(|point| point.pressure).max(),
        ram_total_bytes: points.iter().rev().find_map(|point| point.ram_total_bytes),
        ram_used_bytes: spread(|point| point.ram_used_bytes),
        swap_used_bytes: spread(|point| point.swap_used_bytes),
        disk_read_bytes_per_second: spread(|point| point.disk_read_bytes_per_second),
        models_bytes: spread(|point| point.models_bytes),
        decode_tokens_per_second: spread(|point| point.decode_tokens_per_second),
    }
}

/// Merges points into steps that start at multiples of `step_seconds`, oldest first; the input may be in any order.
pub fn roll_up(points: &[Point], step_seconds: u64) -> Vec<Point> {
    let step = step_seconds.max(1);
    let mut steps: BTreeMap<u64, Vec<&Point>> = BTreeMap::new();
    for point in points {
        steps.entry(point.at / step * step).or_default().push(point);
    }
    steps
        .into_iter()
        .map(|(at, points)| merge_points(at, &points))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reading(available: u64, swap_used_bytes: Option<u64>) -> Reading {
        Reading {
            ram_total_bytes: Some(1000),
            ram_available_bytes: Some(available),
            pressure: Some(Pressure::Normal),
            swap_used_bytes,
            ..Reading::default()
        }
    }

    fn point(at: u64, samples: u32, mean: f64, max: f64) -> Point {
        Point {
            at,
            samples,
            swap_used_bytes: Some(Spread { mean, max }),
            ..Point::default()
        }
    }

    #[test]
    fn a_minute_has_the_mean_and_the_worst_second() {
        let mut seconds: Vec<_> = [(900, Some(10)), (500, None), (100, Some(40))]
            .iter()
            .zip(120..)
            .map(|((available, swap), at)| {
                Point::from_reading(at, &reading(*available, *swap), ModelUse::default())
            })
            .collect();
        seconds[1].pressure = Some(Pressure::Critical);
        let minutes = roll_up(&seconds, 60);
        assert_eq!(minutes.len(), 1);
        let minute = &minutes[0];
        assert_eq!((minute.at, minute.samples), (120, 3));
        assert_eq!(minute.pressure, Some(Pressure::Critical));
        assert_eq!(minute.ram_total_bytes, Some(1000));
        assert_eq!(
            minute.ram_used_bytes,
            Some(Spread {
                mean: 500.0,
                max: 900.0
            })
        );
        // Unknown figures have no weight.
        assert_eq!(
            minute.swap_used_bytes,
            Some(Spread {
                mean: 25.0,
                max: 40.0
            })
        );
        assert_eq!(minute.disk_read_bytes_per_second, None);
    }

    #[test]
    fn the_speed_is_that_of_readings_while_a_model_answered() {
        let readings = [(Some(5), None), (Some(7), Some(12.0)), (None, Some(8.0))];
        let seconds: Vec<_> = readings
            .into_iter()
            .zip(60..)
            .map(|((bytes, decode_tokens_per_second), at)| {
                let models = ModelUse {
                    bytes,
                    decode_tokens_per_second,
                };
                Point::from_reading(at, &Reading::default(), models)
            })
            .collect();
        let minute = roll_up(&seconds, 60).remove(0);
        let spread = |mean, max| Some(Spread { mean, max });
        assert_eq!(minute.models_bytes, spread(6.0, 7.0));
        assert_eq!(minute.decode_tokens_per_second, spread(10.0, 12.0));
    }

    #[test]
    fn points_of_many_readings_weigh_more() {
        let hour = merge_points(0, &[&point(0, 59, 10.0, 20.0), &point(60, 1, 70.0, 70.0)]);
        assert_eq!(
            hour.swap_used_bytes,
            Some(Spread {
                mean: 11.0,
                max: 70.0
            })
        );
        assert_eq!(hour.samples, 60);
    }

    #[test]
    fn only_steps_with_readings_have_a_point() {
        let points = [3661, 59, 0, 60].map(|at| point(at, 1, 1.0, 1.0));
        let ats: Vec<_> = roll_up(&points, 60)
            .iter()
            .map(|point| (point.at, point.samples))
            .collect();
        assert_eq!(ats, [(0, 2), (60, 1), (3660, 1)]);
        assert_eq!(roll_up(&points, 0).len(), 4);
        assert_eq!(roll_up(&[], 60), []);
    }

    proptest! {
        #[test]
        fn rolling_up_twice_equals_rolling_up_once(
            points in proptest::collection::vec((0_u64..10_000, 1_u32..100, 0_u32..1000), 0..100)
        ) {
            let points: Vec<_> = points
                .into_iter()
                .map(|(at, samples, value)| point(at, samples, f64::from(value), f64::from(value) + 1.0))
                .collect();
            let (twice, once) = (roll_up(&roll_up(&points, 60), 600), roll_up(&points, 600));
            prop_assert_eq!(twice.len(), once.len());
            for (twice, once) in twice.iter().zip(&once) {
                prop_assert_eq!((twice.at, twice.samples), (once.at, once.samples));
                let (twice, once) = (twice.swap_used_bytes.unwrap(), once.swap_used_bytes.unwrap());
                prop_assert!((twice.mean - once.mean).abs() < 1e-6);
                prop_assert_eq!(twice.max.to_bits(), once.max.to_bits());
            }
        }
    }
}
