//! Which downloads run, and which wait.

use super::*;
use DownloadState::{Done, Downloading, Paused, Queued, Verifying, Waiting};
use Priority::{High, Low, Normal};

#[tokio::test(start_paused = true)]
async fn downloads_run_by_priority_and_then_by_age() {
    let mut stage = Stage::new(1);
    stage.add("a", Normal).await;
    let a = stage.call().await;
    stage.add("low", Low).await;
    stage.add("b", Normal).await;
    stage.add("c", Normal).await;
    let expected = [
        ("a", Downloading),
        ("b", Queued),
        ("c", Queued),
        ("low", Queued),
    ];
    assert_eq!(
        stage.shown(),
        expected.map(|(name, state)| (name.to_owned(), state))
    );
    stage.no_call().await;

    a.finish();
    for name in ["b", "c", "low"] {
        let call = stage.call().await;
        assert_eq!(call.name(), name);
        call.finish();
    }
    stage.until("low", Done).await;
}

#[tokio::test(start_paused = true)]
async fn a_higher_priority_preempts_a_lower_one_that_resumes_later() {
    let mut stage = Stage::new(1);
    stage.cues.stubborn.store(true, Ordering::Relaxed);
    stage.add("low", Low).await;
    let low = stage.call().await;
    stage.add("high", High).await;
    low.cancelled().await;
    assert_eq!(stage.status("low").state, Queued);
    // Never more at once than allowed: the other one has not ended yet.
    stage.no_call().await;
    low.fail(Error::new(Code::Cancelled, "stopped"));
    let high = stage.call().await;
    assert_eq!(high.name(), "high");
    high.finish();
    let low = stage.call().await;
    assert_eq!(low.name(), "low");
    low.finish();
    stage.until("low", Done).await;
}

#[tokio::test(start_paused = true)]
async fn equal_priority_and_older_downloads_do_not_preempt() {
    let mut stage = Stage::new(1);
    let a = stage.add("a", Normal).await;
    stage.call().await;
    stage.add("b", Normal).await;
    stage.queue.pause(&a).await.unwrap();
    let b = stage.call().await;
    stage.queue.resume(&a).await.unwrap();
    stage.no_call().await;
    assert!(!b.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn only_the_lowest_running_download_is_preempted() {
    let mut stage = Stage::new(2);
    stage.add("normal", Normal).await;
    let normal = stage.call().await;
    stage.add("low", Low).await;
    let low = stage.call().await;
    stage.add("high", High).await;
    assert_eq!(stage.call().await.name(), "high");
    assert!(low.is_cancelled());
    assert!(!normal.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn a_complete_download_is_not_preempted() {
    let mut stage = Stage::new(1);
    stage.add("low", Low).await;
    let low = stage.call().await;
    low.report(1000, Phase::Verifying);
    stage.until("low", Verifying).await;
    stage.add("high", High).await;
    stage.no_call().await;
    assert!(!low.is_cancelled());
    low.finish();
    assert_eq!(stage.call().await.name(), "high");
}

#[tokio::test(start_paused = true)]
async fn a_changed_priority_counts_at_once() {
    let mut stage = Stage::new(1);
    stage.add("a", Normal).await;
    let a = stage.call().await;
    let b = stage.add("b", Normal).await;
    let status = stage.queue.prioritize(&b, High).await.unwrap();
    assert_eq!(status.priority, High);
    assert_eq!(stage.call().await.name(), "b");
    assert!(a.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn the_number_that_runs_at_once_changes_live() {
    let mut stage = Stage::new(1);
    for name in ["a", "b", "c"] {
        stage.add(name, Normal).await;
    }
    let a = stage.call().await;
    stage.queue.configure(0, 3);
    let (b, c) = stage.two_calls().await;
    assert_eq!((b.name(), c.name()), ("b", "c"));
    stage.queue.configure(0, 2);
    c.cancelled().await;
    assert!(!a.is_cancelled() && !b.is_cancelled());
    stage.until("c", Queued).await;
}

#[tokio::test(start_paused = true)]
async fn at_least_one_and_at_most_four_run() {
    let mut stage = Stage::new(0);
    for name in ["a", "b", "c", "d", "e"] {
        stage.add(name, Normal).await;
    }
    let mut running = vec![stage.call().await];
    stage.no_call().await;
    stage.queue.configure(0, 200);
    for _ in 1..4 {
        running.push(stage.call().await);
    }
    stage.no_call().await;
}

#[tokio::test(start_paused = true)]
async fn a_paused_download_resumes_on_request() {
    let mut stage = Stage::new(1);
    let a = stage.add("a", Normal).await;
    let call = stage.call().await;
    call.report(400, Phase::Receiving);
    assert_eq!(stage.queue.pause(&a).await.unwrap().state, Paused);
    call.cancelled().await;
    stage.no_call().await;
    // All bytes that have arrived are shown, however late they were reported.
    assert_eq!(stage.status("a").received_bytes, 400);
    assert_eq!(stage.queue.pause(&a).await.unwrap().state, Paused);

    let resumed = stage.queue.resume(&a).await.unwrap().state;
    assert_eq!(resumed, Downloading);
    stage.call().await.finish();
    stage.until("a", Done).await;
}

#[tokio::test(start_paused = true)]
async fn a_resume_during_a_stop_starts_after_it() {
    let mut stage = Stage::new(4);
    stage.cues.stubborn.store(true, Ordering::Relaxed);
    let a = stage.add("a", Normal).await;
    let call = stage.call().await;
    stage.queue.pause(&a).await.unwrap();
    assert_eq!(stage.queue.resume(&a).await.unwrap().state, Queued);
    stage.no_call().await;
    call.fail(Error::new(Code::Cancelled, "stopped"));
    stage.call().await.finish();
    stage.until("a", Done).await;
}

#[tokio::test(start_paused = true)]
async fn a_waiting_download_retries_on_request() {
    let mut stage = Stage::new(1);
    let a = stage.add("a", Normal).await;
    let call = stage.call().await;
    call.report(10, waiting("the server asks for patience"));
    let status = stage.until("a", Waiting).await;
    assert_eq!(
        status.reason.as_deref(),
        Some("the server asks for patience")
    );
    stage.queue.resume(&a).await.unwrap();
    stage.call().await.finish();
    stage.until("a", Done).await;
}

#[tokio::test(start_paused = true)]
async fn a_long_wait_frees_its_place_until_bytes_arrive() {
    let mut stage = Stage::new(1);
    stage.add("a", Normal).await;
    let a = stage.call().await;
    stage.add("b", Normal).await;
    let waits = |seconds| Phase::Waiting {
        reason: "the server is away".to_owned(),
        until: Some(tokio::time::Instant::now() + Duration::from_secs(seconds)),
    };
    a.report(10, waits(2));
    stage.until("a", Waiting).await;
    stage.no_call().await;
    a.report(10, waits(30));
    let b = stage.call().await;
    assert_eq!(b.name(), "b");
    // Shorter again, but still without a byte.
    a.report(10, waits(2));
    b.report(10, Phase::Receiving);
    stage.no_call().await;
    assert!(!a.is_cancelled() && !b.is_cancelled());
    assert_eq!(stage.status("a").state, Waiting);

    a.report(20, Phase::Receiving);
    b.cancelled().await;
    a.finish();
    let b = stage.call().await;
    assert_eq!(b.name(), "b");
    b.finish();
    stage.until("b", Done).await;
}

#[tokio::test(start_paused = true)]
async fn resuming_a_running_download_changes_nothing() {
    let mut stage = Stage::new(1);
    let a = stage.add("a", Normal).await;
    let call = stage.call().await;
    call.report(10, Phase::Receiving);
    assert_eq!(stage.queue.resume(&a).await.unwrap().state, Downloading);
    stage.no_call().await;
    assert!(!call.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn an_unlisted_download_is_not_found() {
    let stage = Stage::new(1);
    let (queue, id) = (&stage.queue, "unknown");
    for error in [
        queue.pause(id).await.unwrap_err(),
        queue.resume(id).await.unwrap_err(),
        queue.prioritize(id, High).await.unwrap_err(),
        queue.remove(id).await.unwrap_err(),
    ] {
        assert_eq!(error.code, Code::NotFound);
        assert!(error.message.contains(id), "{error}");
    }
}
