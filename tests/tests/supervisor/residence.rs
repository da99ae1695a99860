//! Which tiers stay loaded, which are loaded again, and which requests go first.

use super::*;
use std::time::{SystemTime, UNIX_EPOCH};
use tierbar_core::{
    Code,
    lease::Purpose,
    policy::{Alarm, Stance},
};
use tierbar_supervisor::Rules;

/// Longer than any test.
const LONG: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_millis(50);

fn rules(patience: Duration, home: Option<&str>) -> Rules {
    Rules {
        patience,
        conversations_mib: None,
        home: home.map(id),
        step_down: true,
    }
}

fn pinned(tier: &str) -> TierSpec {
    TierSpec {
        pinned: true,
        ..tier_spec(tier, "good")
    }
}

fn kept(tier: &str, keep: Duration) -> TierSpec {
    TierSpec {
        keep: Some(keep),
        ..tier_spec(tier, "good")
    }
}

/// Two tiers of which one fits.
fn two() -> Bench {
    Bench::with(&[("fast", "good", 1), ("heavy", "good", 1)], |options| {
        options.rules = rules(LONG, None);
    })
}

/// The event has been handled when the owner replies to this.
async fn dealt_with(bench: &Bench) {
    bench.lease("unknown").await.unwrap_err();
}

#[tokio::test]
async fn newer_requests_for_the_loaded_tier_go_first_for_a_while() {
    let bench = two();
    let first = bench.lease("fast").await.unwrap();
    let heavy = id("heavy");
    let mut older = bench.handle.lease(&heavy);
    tokio::select! {
        biased;
        _ = &mut older => panic!("a leased tier was ended"),
        _ = bench.when("heavy", |status| status.reason.is_some()) => {}
    }
    let younger = bench.lease("fast").await.unwrap();
    drop((first, younger));
    assert_eq!(soon(older).await.unwrap().tier(), &heavy);
    bench.close().await;
}

#[tokio::test]
async fn a_load_for_newer_requests_yields_to_the_oldest_in_time() {
    let bench = Bench::with(&[("fast", "hangs", 1), ("heavy", "good", 1)], |options| {
        options.rules = rules(SHORT, None);
    });
    let (fast, heavy) = (id("fast"), id("heavy"));
    let oldest = bench.handle.lease(&fast);
    let mut older = bench.handle.lease(&heavy);
    let mut younger = bench.handle.lease(&fast);
    {
        let leaves = async {
            tokio::select! {
                biased;
                _ = oldest => panic!("it hangs"),
                _ = bench.in_state("fast", TierState::Starting) => {}
            }
        };
        // They arrive in this order.
        tokio::select! {
            biased;
            () = leaves => {}
            _ = &mut older => panic!("another is being loaded"),
            _ = &mut younger => panic!("it hangs"),
        }
    }
    // From here on, only time passes.
    let lease = soon(async {
        tokio::select! {
            lease = older => lease.unwrap(),
            _ = &mut younger => panic!("it hangs"),
        }
    });
    assert_eq!(lease.await.tier(), &heavy);
    drop(younger);
    bench.close().await;
}

#[tokio::test]
async fn an_idle_tier_is_unloaded_and_the_home_tier_returns() {
    let bench = two();
    drop(bench.lease("heavy").await.unwrap());
    bench.handle.set_rules(rules(LONG, Some("fast")));
    bench
        .handle
        .set_tiers(vec![tier_spec("fast", "good"), kept("heavy", SHORT)]);
    let ended = bench.when("heavy", |status| status.state == TierState::Stopped);
    let reason = ended.await.reason.unwrap();
    assert!(reason.ends_with("without a request"), "{reason}");
    bench.in_state("fast", TierState::Ready).await;
    assert!(!scripted::overlapped(bench.dir.path()));
    bench.close().await;
}

#[tokio::test]
async fn a_changed_idle_time_does_not_reload_the_tier() {
    let bench = two();
    drop(bench.lease("fast").await.unwrap());
    bench
        .handle
        .set_tiers(vec![kept("fast", LONG), tier_spec("heavy", "good")]);
    drop(bench.lease("fast").await.unwrap());
    assert_eq!(bench.workers().len(), 1);
    bench.close().await;
}

#[tokio::test]
async fn an_idle_tier_shows_when_it_will_be_unloaded() {
    let bench = two();
    bench
        .handle
        .set_tiers(vec![kept("fast", LONG), tier_spec("heavy", "good")]);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let lease = bench.lease("fast").await.unwrap();
    assert_eq!(bench.now("fast").unloads_at_ms, None);
    drop(lease);
    dealt_with(&bench).await;
    let at = Duration::from_millis(bench.now("fast").unloads_at_ms.unwrap());
    // Within a second before, or the time of the load after.
    let most = now + LONG + Duration::from_secs(600);
    assert!(
        now + LONG <= at + Duration::from_secs(1) && at < most,
        "{at:?}"
    );
    drop(bench.lease("heavy").await.unwrap());
    assert_eq!(bench.now("fast").unloads_at_ms, None);
    assert_eq!(bench.now("heavy").unloads_at_ms, None, "it stays");
    bench.close().await;
}

#[tokio::test]
async fn a_pinned_tier_loads_by_itself_and_is_never_evicted() {
    let bench = Bench::with(&[("fast", "good", 1), ("heavy", "good", 1)], |options| {
        options.tiers[0].pinned = true;
    });
    bench.in_state("fast", TierState::Ready).await;
    let error = bench.lease("heavy").await.unwrap_err();
    assert_eq!(error.code, Code::OverBudget);
    let expected = "heavy does not fit in memory beside fast, which is pinned: at most 1 model may be loaded at once";
    assert_eq!(error.message, expected);
    // A stop keeps it unloaded until the next request.
    bench.stop("fast", false).await.unwrap();
    drop(bench.lease("heavy").await.unwrap());
    dealt_with(&bench).await;
    assert_eq!(bench.now("fast").state, TierState::Stopped);
    drop(bench.lease("fast").await.unwrap());
    bench.close().await;
}

#[tokio::test]
async fn a_pinned_tier_that_fails_is_not_retried_by_itself() {
    let bench = Bench::new(&[("fast", "fails", 1)]);
    let spec = TierSpec {
        pinned: true,
        ..tier_spec("fast", "fails")
    };
    bench.handle.set_tiers(vec![spec]);
    bench.in_state("fast", TierState::Failed).await;
    dealt_with(&bench).await;
    assert_eq!(bench.workers().len(), 1);
    // Another model is loaded again.
    bench.source.script("fast", "good", 1);
    bench.handle.set_tiers(vec![pinned("fast")]);
    bench.in_state("fast", TierState::Ready).await;
    bench.close().await;
}

#[tokio::test]
async fn an_expected_tier_replaces_only_idle_ones() {
    let bench = two();
    let busy = bench.lease("fast").await.unwrap();
    bench.handle.expect(&id("heavy"));
    dealt_with(&bench).await;
    assert!(get(&*busy, "/").await.unwrap().ends_with("ok"));
    drop(busy);
    bench.in_state("heavy", TierState::Ready).await;
    assert!(!scripted::overlapped(bench.dir.path()));
    bench.close().await;
}

#[tokio::test]
async fn an_alarm_refuses_then_evicts_idle_then_busy_tiers() {
    const SHORT: &str = "memory is about to run out: 0.3 GiB of 16.0 GiB are available";
    let bench = two();
    let lease = bench.lease("fast").await.unwrap();
    bench.handle.set_alarm(Alarm::Hold, SHORT.to_owned());
    let fast = id("fast");
    let mut waiting = bench.handle.lease(&fast);
    tokio::select! {
        biased;
        _ = &mut waiting => panic!("it was admitted"),
        () = dealt_with(&bench) => {}
    }
    let log = bench.dir.path().join("logs/worker-fast.log");
    until("what the worker can do without", async || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        text.contains("gave back what it could").then_some(())
    })
    .await;
    bench.handle.set_alarm(Alarm::Unload, SHORT.to_owned());
    dealt_with(&bench).await;
    assert!(get(&*lease, "/").await.unwrap().ends_with("ok"));
    bench.handle.set_alarm(Alarm::Critical, SHORT.to_owned());
    let end = soon(lease.ended()).await;
    assert_eq!(end.code, Code::TierStopped);
    assert_eq!(
        end.message,
        format!("fast was unloaded while in use: {SHORT}")
    );
    let status = bench.in_state("fast", TierState::Stopped).await;
    let waits = "waiting until memory is no longer low";
    assert_eq!(status.reason.as_deref(), Some(waits), "it is requested");
    // Waiting requests are served when the alarm has ended.
    bench.handle.set_alarm(Alarm::None, String::new());
    drop(lease);
    drop(soon(waiting).await.unwrap());
    bench.handle.set_alarm(Alarm::Unload, SHORT.to_owned());
    bench.in_state("fast", TierState::Stopped).await;
    bench.close().await;
}

#[tokio::test]
async fn background_stances_load_only_on_request() {
    let bench = two();
    let stance = |stance| bench.handle.set_stance(stance, "on battery".to_owned());
    stance(Stance::Defers);
    bench.handle.set_tiers(vec![pinned("fast")]);
    dealt_with(&bench).await;
    assert_eq!(bench.now("fast").state, TierState::Stopped);
    stance(Stance::Open);
    bench.in_state("fast", TierState::Ready).await;
    bench.close().await;
}

#[tokio::test]
async fn a_pause_refuses_requests_and_drains_answers() {
    const PAUSED: &str = "Tierbar is paused";
    let bench = two();
    let lease = bench.lease("fast").await.unwrap();
    bench.handle.set_stance(Stance::Paused, PAUSED.to_owned());
    let refused = bench.lease("fast").await.unwrap_err();
    assert_eq!(
        (refused.code, refused.message.as_str()),
        (Code::Paused, PAUSED)
    );
    assert!(get(&*lease, "/").await.unwrap().ends_with("ok"));
    drop(lease);
    let status = bench.in_state("fast", TierState::Stopped).await;
    assert_eq!(status.reason, Some(format!("unloaded: {PAUSED}")));
    bench.handle.set_stance(Stance::Open, String::new());
    drop(bench.lease("heavy").await.unwrap());
    bench.close().await;
}

#[tokio::test]
async fn a_smaller_tier_stands_in_after_an_alarm() {
    let bench = two();
    drop(bench.lease("heavy").await.unwrap());
    assert_eq!(bench.now("heavy").steps_down_to, None);
    bench
        .handle
        .set_alarm(Alarm::Hold, "memory is low".to_owned());
    dealt_with(&bench).await;
    assert_eq!(bench.now("heavy").steps_down_to, Some(id("fast")));
    assert_eq!(bench.now("fast").steps_down_to, None, "it was not loaded");
    bench.handle.set_alarm(Alarm::None, String::new());
    dealt_with(&bench).await;
    assert_eq!(
        bench.now("heavy").steps_down_to,
        Some(id("fast")),
        "for a while"
    );
    bench.handle.set_rules(Rules {
        step_down: false,
        ..rules(LONG, None)
    });
    dealt_with(&bench).await;
    assert_eq!(bench.now("heavy").steps_down_to, None, "not wished");
    bench.close().await;
}

#[tokio::test]
async fn a_request_sets_its_tiers_idle_time_until_the_next() {
    let bench = two();
    let keep = |value: serde_json::Value| serde_json::from_value(value).unwrap();
    bench
        .handle
        .set_tiers(vec![kept("fast", SHORT), tier_spec("heavy", "good")]);
    let lease = bench.lease("fast").await.unwrap();
    lease.keep(keep((-1).into()));
    drop(lease);
    tokio::time::sleep(4 * SHORT).await;
    assert_eq!(bench.now("fast").state, TierState::Ready, "for good");
    let background = bench.handle.lease_for(&id("fast"), Purpose::Background);
    drop(background.await.unwrap());
    tokio::time::sleep(4 * SHORT).await;
    assert_eq!(bench.now("fast").state, TierState::Ready, "still so");
    drop(bench.lease("fast").await.unwrap());
    bench.in_state("fast", TierState::Stopped).await;
    let lease = bench.lease("heavy").await.unwrap();
    lease.keep(keep(0.into()));
    assert_eq!(bench.now("heavy").state, TierState::Busy);
    drop(lease);
    bench.in_state("heavy", TierState::Stopped).await;
    bench.close().await;
}
