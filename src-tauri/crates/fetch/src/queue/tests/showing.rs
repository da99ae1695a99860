//! The list while bytes arrive.

use super::*;
use DownloadState::{Downloading, Verifying, Waiting};
use Priority::Normal;
use tokio::time::{Instant, sleep};

/// Delivers bytes for a while, at this rate per second.
async fn flow(call: &Call, from: u64, per_second: u64, seconds: u64) -> u64 {
    for step in 1..=seconds * 100 {
        sleep(Duration::from_millis(10)).await;
        call.report(from + per_second * step / 100, Phase::Receiving);
    }
    from + per_second * seconds
}

async fn running(size: u64) -> (Stage, Call) {
    let mut stage = Stage::new(1);
    let mut job = stage.job("a", &["a"]);
    job.files[0].size = Some(size);
    stage.queue.add(job).await.unwrap();
    let call = stage.call().await;
    (stage, call)
}

#[tokio::test(start_paused = true)]
async fn the_rate_covers_recent_seconds_and_gives_the_eta() {
    let (stage, call) = running(1_000_000).await;
    // Bytes of an earlier run do not count.
    call.report(500_000, Phase::Connecting);
    stage.until("a", Downloading).await;
    assert_eq!(
        (
            stage.status("a").bytes_per_second,
            stage.status("a").eta_seconds
        ),
        (0, None)
    );
    call.report(500_000, Phase::Receiving);
    flow(&call, 500_000, 10_000, 10).await;
    sleep(Duration::from_millis(300)).await;
    let status = stage.status("a");
    assert_eq!(
        (status.received_bytes, status.total_bytes),
        (600_000, Some(1_000_000))
    );
    assert!(
        (9_000..=10_100).contains(&status.bytes_per_second),
        "{status:?}"
    );
    assert_eq!(
        status.eta_seconds,
        Some(400_000_u64.div_ceil(status.bytes_per_second))
    );

    // Nothing arrives, without a report.
    sleep(Duration::from_secs(6)).await;
    let status = stage.status("a");
    assert_eq!((status.bytes_per_second, status.eta_seconds), (0, None));
}

#[tokio::test(start_paused = true)]
async fn a_restarted_file_shows_no_negative_rate() {
    let (stage, call) = running(1_000_000).await;
    flow(&call, 500_000, 10_000, 2).await;
    call.report(0, Phase::Receiving);
    sleep(Duration::from_millis(500)).await;
    let status = stage.status("a");
    assert_eq!((status.received_bytes, status.bytes_per_second), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn progress_updates_the_list_at_most_four_times_a_second() {
    let (stage, call) = running(1_000_000).await;
    call.report(0, Phase::Receiving);
    let mut seen = stage.queue.watch();
    let changes = tokio::spawn(async move {
        let mut changes = 0;
        while seen.changed().await.is_ok() {
            changes += 1;
        }
        changes
    });
    flow(&call, 0, 10_000, 10).await;
    call.finish();
    stage.until("a", DownloadState::Done).await;
    drop(stage);
    let changes = changes.await.unwrap();
    // Besides: it receives, its bytes are here, it is done.
    assert!((30..=40 + 4).contains(&changes), "{changes}");
}

#[tokio::test(start_paused = true)]
async fn a_change_of_state_is_reported_at_once() {
    let (stage, call) = running(1000).await;
    call.report(10, Phase::Receiving);
    sleep(Duration::from_millis(10)).await;
    let now = Instant::now();
    for (phase, state) in [
        (waiting("no network"), Waiting),
        (Phase::Receiving, Downloading),
        (Phase::Verifying, Verifying),
    ] {
        call.report(20, phase);
        let status = stage.until("a", state).await;
        assert_eq!(status.received_bytes, 20);
    }
    call.report(20, waiting("no network"));
    stage.until("a", Waiting).await;
    call.report(20, waiting("the server fails"));
    let mut seen = stage.queue.watch();
    let shown = seen.wait_for(|list| list[0].reason.as_deref() == Some("the server fails"));
    assert!(tokio::time::timeout(LONG, shown).await.unwrap().is_ok());
    assert_eq!(Instant::now(), now);
}

#[tokio::test(start_paused = true)]
async fn the_files_of_a_model_download_one_after_the_other() {
    let mut stage = Stage::new(4);
    let mut job = stage.job("split", &["1", "2"]);
    job.files[1].size = None;
    stage.queue.add(job).await.unwrap();
    let first = stage.call().await;
    first.report(600, Phase::Receiving);
    stage.no_call().await;
    let status = stage.status("split");
    assert_eq!(
        (
            status.file.as_str(),
            status.received_bytes,
            status.total_bytes
        ),
        ("1", 600, None)
    );
    first.finish();

    let second = stage.call().await;
    second.work.progress.send_replace(Progress {
        received: 50,
        total: Some(500),
        phase: Phase::Receiving,
    });
    sleep(Duration::from_millis(300)).await;
    let status = stage.status("split");
    // A file that was half here when its turn came did not arrive just now.
    assert_eq!(
        (
            status.received_bytes,
            status.total_bytes,
            status.bytes_per_second
        ),
        (1050, Some(1500), 0)
    );
}

#[tokio::test(start_paused = true)]
async fn warnings_are_shown() {
    let stage = Stage::new(1);
    let mut job = stage.job("a", &["a"]);
    job.warnings = vec!["the volume would be 90 % full".to_owned()];
    let (status, _) = stage.queue.add(job.clone()).await.unwrap();
    assert_eq!(status.warnings, job.warnings);
    assert_eq!(status.priority, Normal);
}

#[tokio::test(start_paused = true)]
async fn a_verifying_download_is_not_shown_as_downloading() {
    let (stage, call) = running(1000).await;
    call.report(1000, Phase::Verifying);
    let name = stage.list()[0].reference.clone();
    stage.until(&name, DownloadState::Verifying).await;
    let mut seen = stage.queue.watch();
    let states = tokio::spawn(async move {
        let mut states = Vec::new();
        while states.last() != Some(&DownloadState::Done) {
            seen.changed().await.unwrap();
            states.push(seen.borrow_and_update()[0].state);
        }
        states
    });
    tokio::task::yield_now().await;
    call.finish();
    stage.until(&name, DownloadState::Done).await;
    let states = states.await.unwrap();
    assert!(!states.contains(&DownloadState::Downloading), "{states:?}");
}
