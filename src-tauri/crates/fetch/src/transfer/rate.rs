//! How fast all transfers together may be: one bucket of bytes, which refills with time.

use parking_lot::Mutex;
use std::{sync::Arc, time::Duration};
use tokio::{sync::watch, time::Instant};

/// What may be saved up while nothing is fetched.
const BURST: Duration = Duration::from_millis(250);

/// Cloneable; all clones share the limit, which can change while they wait.
#[derive(Debug, Clone)]
pub struct RateLimit {
    limit: Arc<watch::Sender<u64>>,
    bucket: Arc<Mutex<Bucket>>,
}

#[derive(Debug)]
struct Bucket {
    /// Below zero after a block that was larger than what there was: the next one waits for it.
    bytes: f64,
    at: Instant,
}

impl RateLimit {
    /// 0: as fast as it goes.
    pub fn new(bytes_per_second: u64) -> Self {
        Self {
            limit: Arc::new(watch::Sender::new(bytes_per_second)),
            bucket: Arc::new(Mutex::new(Bucket {
                bytes: 0.0,
                at: Instant::now(),
            })),
        }
    }

    pub fn set(&self, bytes_per_second: u64) {
        self.limit.send_if_modified(|limit| {
            std::mem::replace(limit, bytes_per_second) != bytes_per_second
        });
    }

    /// Returns once `bytes` may be taken in.
    pub(crate) async fn take(&self, bytes: usize) {
        let mut limit = self.limit.subscribe();
        loop {
            let rate = *limit.borrow_and_update();
            if rate == 0 {
                return;
            }
            #[expect(
                clippy::cast_precision_loss,
                reason = "rates and blocks are far below 2^52"
            )]
            let (rate, bytes) = (rate as f64, bytes as f64);
            let wait = self.bucket.lock().take(bytes, rate);
            let Some(wait) = wait else { return };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                _ = limit.changed() => {}
            }
        }
    }
}

impl Bucket {
    fn take(&mut self, bytes: f64, rate: f64) -> Option<Duration> {
        let now = Instant::now();
        let refill = now.duration_since(self.at).as_secs_f64() * rate;
        self.at = now;
        self.bytes = (self.bytes + refill).min(rate * BURST.as_secs_f64());
        if self.bytes < 0.0 {
            // A debt made at a higher rate is not waited for at a lower one for ever.
            return Some(Duration::from_secs_f64((-self.bytes / rate).min(1.0)));
        }
        self.bytes -= bytes;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn take_all(limit: &RateLimit, blocks: usize) -> Duration {
        let begun = Instant::now();
        for _ in 0..blocks {
            limit.take(1000).await;
        }
        begun.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn the_limit_is_kept_by_all_who_share_it() {
        let limit = RateLimit::new(10_000);
        let other = limit.clone();
        let (one, two) = tokio::join!(take_all(&limit, 50), take_all(&other, 50));
        let whole = one.max(two).as_secs_f64();
        assert!((9.5..=10.2).contains(&whole), "{whole}");
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_limit_nothing_waits_and_a_change_ends_a_wait() {
        let limit = RateLimit::new(0);
        assert_eq!(take_all(&limit, 50).await, Duration::ZERO);
        limit.set(1);
        limit.take(1_000_000).await;
        let waiting = tokio::spawn({
            let limit = limit.clone();
            async move { take_all(&limit, 1).await }
        });
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert!(!waiting.is_finished());
        limit.set(0);
        assert_eq!(waiting.await.unwrap(), Duration::from_secs(100));
    }
}
