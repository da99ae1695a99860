//! Past readings: seconds in memory, minutes in the store.

use crate::journal::now;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use tierbar_core::{
    Error,
    history::{History, ModelUse, Point, roll_up},
    reading::Reading,
};
use tierbar_store::Store;
use tierbar_telemetry::{RECENT_MINUTES, RecentReadings};

/// The most points; a longer history has longer steps.
const MOST_POINTS: u64 = 720;

#[derive(Debug)]
pub(crate) struct PastReadings {
    recent: Mutex<RecentReadings>,
    store: Store,
    /// Whether the last minute could not be stored, which is logged once.
    failing: AtomicBool,
}

impl PastReadings {
    pub(crate) fn new(store: Store) -> Self {
        Self {
            recent: Mutex::default(),
            store,
            failing: AtomicBool::new(false),
        }
    }

    pub(crate) async fn record(&self, reading: &Reading, models: ModelUse) {
        let over = self.recent.lock().record(now() / 1000, reading, models);
        self.keep(over).await;
    }

    /// Stores the current minute so far.
    pub(crate) async fn close(&self) {
        let over = self.recent.lock().close();
        self.keep(over).await;
    }

    async fn keep(&self, minute: Option<Point>) {
        let Some(minute) = minute else { return };
        match self.store.add_minute(minute).await {
            Ok(()) => self.failing.store(false, Ordering::Relaxed),
            Err(error) => {
                if !self.failing.swap(true, Ordering::Relaxed) {
                    tracing::warn!("the history of readings cannot be saved: {error}");
                }
            }
        }
    }

    pub(crate) async fn last(&self, minutes: u64) -> Result<History, Error> {
        let now = now() / 1000;
        let from = now.saturating_sub(minutes.saturating_mul(60));
        if minutes <= RECENT_MINUTES {
            let mut points = roll_up(&self.recent.lock().seconds(), 1);
            points.retain(|point| (from..=now).contains(&point.at));
            return Ok(History {
                step_seconds: 1,
                points,
            });
        }
        let step_seconds = minutes.div_ceil(MOST_POINTS) * 60;
        let mut points = self.store.minutes(from, now.saturating_add(1)).await?;
        // Read after the completed minutes, so that one that ends meanwhile is missing rather than returned twice.
        points.extend(self.recent.lock().now());
        Ok(History {
            step_seconds,
            points: roll_up(&points, step_seconds),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(at_ms: u64) -> Reading {
        Reading {
            at_ms,
            swap_used_bytes: Some(25),
            ..Reading::default()
        }
    }

    #[tokio::test]
    async fn history_has_seconds_for_minutes_and_steps_beyond() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("tierbar.db")).unwrap();
        let past = PastReadings::new(store.clone());
        past.record(&reading(0), ModelUse::default()).await;
        let recent = past.last(10).await.unwrap();
        assert_eq!((recent.step_seconds, recent.points.len()), (1, 1));
        assert_eq!(recent.points[0].swap_used_bytes.unwrap().mean, 25.0);

        // The current minute is included.
        let hour = past.last(60).await.unwrap();
        assert_eq!((hour.step_seconds, hour.points.len()), (60, 1));
        assert_eq!(hour.points[0].samples, 1);
        assert_eq!(hour.points[0].at % 60, 0);

        let old = Point {
            at: now() / 60_000 * 60 - 7200,
            samples: 12,
            ..Point::default()
        };
        store.add_minute(old).await.unwrap();
        assert_eq!(past.last(60).await.unwrap().points.len(), 1);
        assert_eq!(past.last(180).await.unwrap().points.len(), 2);
        let month = past.last(43_200).await.unwrap();
        assert_eq!(month.step_seconds, 3600);
        assert!(month.points.iter().all(|point| point.at % 3600 == 0));
        assert_eq!(
            month.points.iter().map(|point| point.samples).sum::<u32>(),
            13
        );
    }

    #[tokio::test]
    async fn an_unfinished_minute_is_stored_at_shutdown_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("tierbar.db")).unwrap();
        let past = PastReadings::new(store.clone());
        past.record(&reading(0), ModelUse::default()).await;
        past.close().await;
        past.close().await;
        let kept = store.minutes(0, u64::MAX).await.unwrap();
        assert_eq!((kept.len(), kept[0].samples), (1, 1));
        assert_eq!(past.last(60).await.unwrap().points[0].samples, 1);
    }
}
