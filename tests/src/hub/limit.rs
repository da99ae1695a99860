//! The stand-in's speed: one rate for all its connections together, and a latency.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::{Instant, sleep, sleep_until};

#[derive(Debug)]
pub(super) struct Limit {
    rate: AtomicU64,
    latency: Duration,
    /// When the line is free again.
    free: Mutex<Option<Instant>>,
}

impl Limit {
    pub(super) fn new(rate: u64, latency: Duration) -> Self {
        Self {
            rate: AtomicU64::new(rate),
            latency,
            free: Mutex::default(),
        }
    }

    pub(super) fn set_rate(&self, rate: u64) {
        self.rate.store(rate, Ordering::Relaxed);
        *super::locked(&self.free) = None;
    }

    /// Returns the bytes to send at once: few at a low rate, so that they arrive steadily.
    pub(super) fn chunk(&self) -> usize {
        match self.rate.load(Ordering::Relaxed) {
            0 => 256 << 10,
            rate => usize::try_from(rate / 20)
                .unwrap_or(usize::MAX)
                .clamp(1 << 10, 256 << 10),
        }
    }

    pub(super) async fn latency(&self) {
        if !self.latency.is_zero() {
            sleep(self.latency).await;
        }
    }

    /// Waits until this many bytes may be sent.
    pub(super) async fn pass(&self, bytes: usize) {
        let rate = self.rate.load(Ordering::Relaxed);
        if rate == 0 {
            return;
        }
        let until = {
            let mut free = super::locked(&self.free);
            let now = Instant::now();
            let turn = free.unwrap_or(now).max(now);
            *free = Some(turn + Duration::from_secs_f64(bytes as f64 / rate as f64));
            turn
        };
        sleep_until(until).await;
    }
}
