//! Waiting for what other processes do. The limits only keep a hung test from hanging for ever.

use std::time::Duration;

/// Far longer than anything here takes on a busy machine.
pub const HANG: Duration = Duration::from_secs(120);

/// The future's result.
///
/// # Panics
/// If it hangs.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(HANG, future)
        .await
        .unwrap_or_else(|_| panic!("hung: {what}"))
}

/// Looks again and again until there is something: for what another process does without telling.
///
/// # Panics
/// If it never comes.
pub async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    within(what, async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    })
    .await
}
