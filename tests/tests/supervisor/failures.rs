//! Workers that never become ready, and tiers that cannot be loaded.

use super::*;
use tierbar_core::Code;

/// Returns the error of a tier whose worker follows the script, and checks that no process is left.
async fn refusal(script: &str) -> Error {
    let bench = Bench::with(&[("fast", script, 1)], |options| {
        // The timeout is short only for a worker that hangs.
        if script == "hangs" {
            options.load_silence = Duration::from_millis(200);
        }
    });
    let error = bench.lease("fast").await.unwrap_err();
    let status = bench.now("fast");
    assert_eq!(status.state, TierState::Failed);
    assert_eq!(status.reason.as_deref(), Some(error.message.as_str()));
    assert_eq!((status.pid, status.footprint_bytes), (None, None));
    assert_eq!(
        (bench.alive(), bench.sockets()),
        (0, 0),
        "{script} left something behind"
    );
    bench.empty().await;
    bench.close().await;
    error
}

#[tokio::test]
async fn a_crash_at_start_quotes_the_workers_last_output() {
    let error = refusal("dies-at-start").await;
    assert_eq!(error.code, Code::TierFailed);
    assert_eq!(
        error.message,
        "fast could not start: its worker exited with code 3 while loading; \
         its last output was: error: the tensors are not what they seem"
    );
}

#[tokio::test]
async fn an_abort_at_start_is_reported_with_its_signal() {
    let error = refusal("aborts-at-start").await;
    assert!(
        error
            .message
            .contains("killed by signal 6 (SIGABRT) while loading"),
        "{error}"
    );
}

#[tokio::test]
async fn a_worker_that_hangs_at_start_is_killed() {
    let error = refusal("hangs").await;
    assert_eq!(error.code, Code::WorkerTimeout);
    assert!(error.message.contains("silent for 0.2 s"), "{error}");
    assert!(error.hint.unwrap().contains("worker-fast.log"));
}

#[tokio::test]
async fn an_invalid_handshake_is_reported_and_its_worker_killed() {
    for (script, lie) in [
        (
            "lies-not-json",
            "something other than a handshake: \"llama_model_loader",
        ),
        ("lies-wrong-protocol", "protocol 999"),
        ("lies-wrong-pid", "reported process 1,"),
        ("lies-no-socket", "its socket does not answer"),
        ("lies-without-end", "more than 64 KiB"),
    ] {
        let error = refusal(script).await;
        assert_eq!(error.code, Code::TierFailed);
        assert!(error.message.contains(lie), "{script}: {error}");
    }
}

#[tokio::test]
async fn a_workers_load_error_is_passed_on_with_its_code() {
    let error = refusal("fails").await;
    assert_eq!(
        (error.code, error.message.as_str()),
        (Code::ModelUnsupported, "no such architecture")
    );
}

#[tokio::test]
async fn a_missing_worker_program_is_reported_with_its_path() {
    let bench = Bench::with(&[("fast", "good", 1)], |options| {
        options.worker = "/nowhere/tierbar-worker".into()
    });
    let error = bench.lease("fast").await.unwrap_err();
    assert_eq!(error.code, Code::TierFailed);
    assert!(
        error
            .message
            .contains("/nowhere/tierbar-worker cannot be run"),
        "{error}"
    );
    bench.close().await;
}

#[tokio::test]
async fn an_unknown_tier_is_refused_with_the_known_names() {
    let bench = Bench::new(&[("fast", "good", 1), ("heavy", "good", 1)]);
    for error in [
        bench.lease("slow").await.unwrap_err(),
        bench.stop("slow", false).await.unwrap_err(),
    ] {
        assert_eq!(error.code, Code::TierUnknown);
        assert!(error.message.contains("\"slow\""));
        assert_eq!(error.hint.as_deref(), Some("the tiers are fast, heavy"));
    }
    bench.close().await;
}

#[tokio::test]
async fn a_tier_without_a_model_evicts_none_and_may_load_later() {
    let bench = Bench::new(&[("fast", "good", 1), ("primary", "good", 1)]);
    drop(bench.lease("fast").await.unwrap());
    bench
        .handle
        .set_tiers(vec![tier_spec("fast", "good"), without_model("primary")]);
    bench.source.forget("primary");
    let error = bench.lease("primary").await.unwrap_err();
    assert_eq!(
        (error.code, error.message.as_str()),
        (Code::TierFailed, "no model is chosen for it")
    );
    // It has not failed: it has no model yet.
    assert_eq!(bench.now("primary").state, TierState::Stopped);
    assert_eq!(
        bench
            .in_state("fast", TierState::Ready)
            .await
            .model
            .unwrap()
            .as_str(),
        "good"
    );
    assert_eq!(bench.workers().len(), 1);

    bench.source.script("primary", "good", 1);
    bench.lease("primary").await.unwrap();
    bench.close().await;
}

#[tokio::test]
async fn a_plan_over_the_budget_is_refused_with_the_figures() {
    let bench = Bench::new(&[("fast", "good", 1), ("heavy", "good", scripted::BUDGET + 1)]);
    drop(bench.lease("fast").await.unwrap());
    let error = bench.lease("heavy").await.unwrap_err();
    assert_eq!(error.code, Code::OverBudget);
    assert_eq!(error.details["needed_bytes"], scripted::BUDGET + 1);
    assert_eq!(error.details["budget_bytes"], scripted::BUDGET);
    bench.in_state("fast", TierState::Ready).await;
    bench.close().await;
}

/// Lets the tier crash until its back-off is at its limit of 30 s, which even a slow machine does not exceed. Returns the
/// number of attempts.
async fn exhaust(bench: &Bench) -> usize {
    for _ in 0..8 {
        skip(Duration::from_secs(30)).await;
        let error = bench.lease("fast").await.unwrap_err();
        assert!(error.message.contains("exited with code 3"), "{error}");
        assert!(!error.message.contains("the next attempt"), "{error}");
    }
    bench.workers().len()
}

/// Advances the clock.
async fn skip(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

#[tokio::test]
async fn a_tier_that_keeps_crashing_backs_off() {
    let bench = Bench::new(&[("fast", "dies-at-start", 1)]);
    assert_eq!(exhaust(&bench).await, 8);
    let error = bench.lease("fast").await.unwrap_err();
    assert_eq!(error.code, Code::TierFailed);
    assert!(
        error.message.contains("exited with code 3 while loading"),
        "{error}"
    );
    assert!(
        error
            .message
            .contains("after 8 failures in a row the next attempt is in "),
        "{error}"
    );
    assert_eq!(
        bench.workers().len(),
        8,
        "an attempt was made although it had to wait"
    );

    skip(Duration::from_secs(30)).await;
    bench.source.script("fast", "good", 1);
    bench.lease("fast").await.unwrap();
    bench.close().await;
}

#[tokio::test]
async fn a_tier_that_never_starts_is_given_up_until_a_change() {
    let bench = Bench::new(&[("fast", "dies-at-start", 1)]);
    exhaust(&bench).await;
    for _ in 0..2 {
        skip(Duration::from_secs(30)).await;
        bench.lease("fast").await.unwrap_err();
    }
    skip(Duration::from_secs(3600)).await;
    let error = bench.lease("fast").await.unwrap_err();
    assert!(
        error
            .message
            .ends_with("after 10 failures in a row Tierbar stopped trying"),
        "{error}"
    );
    assert!(error.hint.unwrap().contains("stop the tier"));
    assert_eq!(bench.workers().len(), 10);
    bench.stop("fast", false).await.unwrap();
    bench.source.script("fast", "good", 1);
    bench.lease("fast").await.unwrap();
    bench.close().await;
}

#[tokio::test]
async fn stopping_a_failed_tier_resets_its_back_off() {
    let bench = Bench::new(&[("fast", "dies-at-start", 1)]);
    exhaust(&bench).await;
    bench.stop("fast", false).await.unwrap();
    let status = bench.now("fast");
    assert_eq!((status.state, status.reason), (TierState::Stopped, None));
    let error = bench.lease("fast").await.unwrap_err();
    assert!(!error.message.contains("the next attempt"), "{error}");
    assert_eq!(bench.workers().len(), 9);
    bench.close().await;
}

#[tokio::test]
async fn a_changed_tier_starts_without_its_earlier_crashes() {
    let bench = Bench::new(&[("fast", "dies-at-start", 1)]);
    exhaust(&bench).await;
    bench.source.script("fast", "good", 1);
    bench.handle.set_tiers(vec![tier_spec("fast", "good")]);
    bench.lease("fast").await.unwrap();
    bench.close().await;
}
