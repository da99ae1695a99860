//! Switches between tiers: which end, which wait, and which are never loaded.

use super::*;
use tierbar_core::{Code, budget::Budget, lease::Purpose};
use tokio::task::JoinSet;

#[tokio::test]
async fn a_switch_never_runs_two_workers() {
    let bench = Bench::new(&[
        ("fast", "good", 1),
        ("primary", "good", 1),
        ("heavy", "good", 1),
    ]);
    let mut clients = JoinSet::new();
    for client in 0..6_usize {
        let handle = bench.handle.clone();
        clients.spawn(async move {
            for round in 0..8_usize {
                // A different order for each client, with a neighbor that leaves the queue.
                let tier =
                    id(["fast", "primary", "heavy"][(client * 5 + round * (1 + client % 2)) % 3]);
                let left = handle.lease(&tier);
                let lease = tokio::select! {
                    biased;
                    lease = handle.lease(&tier) => lease.unwrap(),
                    _ = left => continue,
                };
                assert!(get(&*lease, "/").await.unwrap().ends_with("ok"));
            }
        });
    }
    soon(async {
        while let Some(client) = clients.join_next().await {
            client.unwrap();
        }
    })
    .await;
    assert!(bench.workers().len() > 3, "no switch was made");
    assert!(
        !scripted::overlapped(bench.dir.path()),
        "two workers were alive at once"
    );
    bench.close().await;
}

#[tokio::test]
async fn one_tier_at_a_time_shows_a_plan_during_a_switch() {
    let bench = Bench::new(&[("fast", "ignores-sigterm", 5), ("heavy", "good", 7)]);
    let planned = |tier: &str| bench.now(tier).plan.map(|plan| plan.total_bytes());
    assert_eq!(planned("fast"), None);
    drop(bench.lease("fast").await.unwrap());
    assert_eq!((planned("fast"), planned("heavy")), (Some(5), None));
    let heavy = id("heavy");
    let mut next = bench.handle.lease(&heavy);
    tokio::select! {
        biased;
        _ = &mut next => panic!("it did not wait"),
        status = bench.when("heavy", |status| status.reason.is_some()) => {
            let reason = status.reason.unwrap();
            assert_eq!(reason, "waiting for fast's memory to be freed");
        }
    }
    let leaving = bench.now("fast");
    assert_eq!(leaving.state, TierState::Stopping);
    assert_eq!((planned("fast"), planned("heavy")), (Some(5), None));
    let signs = bench.workers();
    // With its child, which is in its group.
    let group = format!("-{}", leaving.pid.unwrap());
    let killed = Command::new("kill").args(["-KILL", "--", &group]).status();
    assert!(killed.unwrap().success());
    drop(soon(next).await.unwrap());
    assert_eq!((planned("fast"), planned("heavy")), (None, Some(7)));
    let gone = tokio::task::spawn_blocking(move || signs.iter().try_for_each(Sign::wait));
    soon(gone).await.unwrap().unwrap();
    bench.close().await;
}

#[tokio::test]
async fn tiers_that_fit_together_stay_loaded() {
    let bench = Bench::with(
        &[
            ("fast", "good", 4),
            ("primary", "good", 6),
            ("heavy", "good", 6),
        ],
        |options| {
            options.budget.max_loaded = 3;
        },
    );
    let fast = bench.lease("fast").await.unwrap();
    drop(bench.lease("primary").await.unwrap());
    assert_eq!(
        (bench.alive(), bench.handle.budget().planned_bytes),
        (2, 10)
    );
    let heavy = bench.lease("heavy").await.unwrap();
    assert_eq!(bench.alive(), 2);
    let status = bench.in_state("primary", TierState::Stopped).await;
    assert_eq!(
        status.reason.as_deref(),
        Some("unloaded to make room for heavy")
    );
    assert!(get(&*fast, "/").await.unwrap().ends_with("ok"));
    drop((fast, heavy));
    bench.close().await;
}

#[tokio::test]
async fn a_canceled_wait_causes_no_load() {
    let bench = Bench::new(&[("fast", "good", 1), ("heavy", "good", 1)]);
    let lease = bench.lease("fast").await.unwrap();
    {
        let heavy = id("heavy");
        let waiting = bench.handle.lease(&heavy);
        tokio::select! {
            biased;
            _ = waiting => panic!("a leased tier was ended"),
            status = bench.when("heavy", |status| status.reason.is_some()) => {
                assert_eq!(status.reason.as_deref(), Some("waiting until fast has answered"));
            }
        }
    }
    bench.when("heavy", |status| status.reason.is_none()).await;
    drop(lease);
    bench.lease("fast").await.unwrap();
    assert_eq!(
        bench.workers().len(),
        1,
        "the tier of a client that had left was loaded"
    );
    bench.close().await;
}

#[tokio::test]
async fn newer_requests_wait_once_the_oldest_has_waited_its_time() {
    let bench = Bench::with(&[("fast", "good", 1), ("heavy", "good", 1)], |options| {
        options.rules.patience = Duration::ZERO
    });
    let held = bench.lease("fast").await.unwrap();
    let (fast, heavy) = (id("fast"), id("heavy"));
    let mut older = bench.handle.lease(&heavy);
    tokio::select! {
        biased;
        _ = &mut older => panic!("a leased tier was ended"),
        _ = bench.when("heavy", |status| status.reason.is_some()) => {}
    }
    let mut younger = bench.handle.lease(&fast);
    tokio::select! {
        biased;
        _ = &mut younger => panic!("the older request was passed by"),
        error = bench.lease("unknown") => drop(error.unwrap_err()),
    }
    drop(held);
    let first = soon(async {
        tokio::select! {
            lease = &mut older => lease.unwrap(),
            _ = &mut younger => panic!("the older request was passed by"),
        }
    })
    .await;
    assert_eq!(first.tier(), &heavy);
    drop(first);
    assert_eq!(soon(younger).await.unwrap().tier(), &fast);
    assert!(!scripted::overlapped(bench.dir.path()));
    bench.close().await;
}

#[tokio::test]
async fn a_brief_request_passes_while_a_longer_answer_lasts() {
    let bench = Bench::with(&[("fast", "good", 1), ("heavy", "good", 1)], |options| {
        options.rules.patience = Duration::ZERO
    });
    let held = bench.lease("fast").await.unwrap();
    let (fast, heavy) = (id("fast"), id("heavy"));
    let mut older = bench.handle.lease(&heavy);
    tokio::select! {
        biased;
        _ = &mut older => panic!("a leased tier was ended"),
        _ = bench.when("heavy", |status| status.reason.is_some()) => {}
    }
    let brief = || bench.handle.lease_for(&fast, Purpose::Brief);
    for _ in 0..2 {
        let lease = soon(brief()).await.unwrap();
        assert!(get(&*lease, "/").await.unwrap().ends_with("ok"));
    }
    let last = soon(brief()).await.unwrap();
    drop(held);
    let mut late = brief();
    tokio::select! {
        biased;
        _ = &mut late => panic!("a brief request kept the tier loaded"),
        error = bench.lease("unknown") => drop(error.unwrap_err()),
    }
    assert_eq!(bench.now("heavy").state, TierState::Stopped);
    drop(last);
    assert_eq!(soon(older).await.unwrap().tier(), &heavy);
    assert_eq!(soon(late).await.unwrap().tier(), &fast);
    assert!(!scripted::overlapped(bench.dir.path()));
    bench.close().await;
}

#[tokio::test]
async fn a_background_lease_is_taken_back_for_another_tier() {
    let bench = Bench::with(&[("fast", "good", 1), ("heavy", "good", 1)], |options| {
        options.rules.patience = Duration::ZERO
    });
    let (fast, heavy) = (id("fast"), id("heavy"));
    let background = || bench.handle.lease_for(&fast, Purpose::Background);
    let held = soon(background()).await.unwrap();
    assert!(bench.lease("fast").await.unwrap().revoked().is_none());
    let mut older = bench.handle.lease(&heavy);
    let reason = soon(async {
        tokio::select! {
            biased;
            _ = &mut older => panic!("a leased tier was ended"),
            reason = held.revoked().unwrap() => reason,
        }
    })
    .await;
    assert_eq!(reason.code, Code::Cancelled);
    assert_eq!(
        reason.message,
        "a background answer of fast gave way to a request for heavy"
    );
    drop(held);
    drop(soon(older).await.unwrap());
    // The next is not taken back for the same reason.
    let again = soon(background()).await.unwrap();
    tokio::select! {
        biased;
        _ = again.revoked().unwrap() => panic!("taken back again"),
        error = bench.lease("unknown") => drop(error.unwrap_err()),
    }
    drop(again);
    bench.close().await;
}

#[tokio::test]
async fn the_draining_tier_stays_the_same_as_leases_end() {
    let bench = Bench::with(
        &[("a", "good", 1), ("b", "good", 1), ("c", "good", 1)],
        |options| {
            options.budget.max_loaded = 2;
            options.rules.patience = Duration::ZERO;
        },
    );
    let (a, c) = (id("a"), id("c"));
    let (first, second) = (
        bench.lease("a").await.unwrap(),
        bench.lease("a").await.unwrap(),
    );
    let other = bench.lease("b").await.unwrap();
    let mut waiting = bench.handle.lease(&c);
    tokio::select! {
        biased;
        _ = &mut waiting => panic!("a leased tier was ended"),
        _ = bench.when("c", |status| status.reason.is_some()) => {}
    }
    drop(first);
    let mut again = bench.handle.lease(&a);
    tokio::select! {
        biased;
        _ = &mut again => panic!("a tier that has to drain was leased again"),
        // The tier that stays can be leased, and comes after the others in the owner's order.
        lease = bench.lease("b") => drop(lease.unwrap()),
    }
    drop(second);
    assert_eq!(soon(waiting).await.unwrap().tier(), &c);
    drop(again);
    drop(other);
    bench.close().await;
}

#[tokio::test]
async fn a_changed_tier_finishes_its_leases_then_restarts() {
    let bench = Bench::new(&[("fast", "good", 1)]);
    let lease = bench.lease("fast").await.unwrap();
    let before = bench.in_state("fast", TierState::Busy).await.pid;
    bench.source.script("fast", "better", 2);
    bench.handle.set_tiers(vec![tier_spec("fast", "better")]);
    bench
        .when("fast", |status| {
            status
                .model
                .as_ref()
                .is_some_and(|model| model.as_str() == "better")
        })
        .await;
    assert!(
        get(&*lease, "/").await.unwrap().ends_with("ok"),
        "the change took a leased worker away"
    );

    let fast = id("fast");
    let mut next = bench.handle.lease(&fast);
    tokio::select! {
        biased;
        _ = &mut next => panic!("the old worker was leased again, or ended under its lease"),
        error = bench.lease("unknown") => drop(error.unwrap_err()),
    }
    drop(lease);
    let next = soon(next).await.unwrap();
    assert_eq!(next.model().as_str(), "better");
    assert_ne!(bench.in_state("fast", TierState::Busy).await.pid, before);
    assert!(!scripted::overlapped(bench.dir.path()));

    // Setting the same again changes nothing.
    bench.handle.set_tiers(vec![tier_spec("fast", "better")]);
    drop(next);
    bench.lease("fast").await.unwrap();
    assert_eq!(bench.workers().len(), 2);
    bench.close().await;
}

#[tokio::test]
async fn another_file_restarts_the_tier_and_a_missing_one_does_not() {
    let bench = Bench::new(&[("fast", "good", 1)]);
    drop(bench.lease("fast").await.unwrap());
    let loaded = bench.dir.path().join("models/good.gguf");
    for same in [None, Some(loaded)] {
        bench.handle.set_tiers(vec![TierSpec {
            path: same,
            ..tier_spec("fast", "good")
        }]);
        drop(bench.lease("fast").await.unwrap());
        assert_eq!(bench.workers().len(), 1);
    }
    let other = TierSpec {
        path: Some("/elsewhere/good.gguf".into()),
        ..tier_spec("fast", "good")
    };
    bench.handle.set_tiers(vec![other]);
    drop(bench.lease("fast").await.unwrap());
    assert_eq!(bench.workers().len(), 2);
    // The loaded model counts, not the earlier configuration.
    drop(bench.lease("fast").await.unwrap());
    assert_eq!(bench.workers().len(), 2);
    bench.close().await;
}

#[tokio::test]
async fn a_removed_tier_drains_and_disappears() {
    let bench = Bench::new(&[("fast", "good", 1), ("heavy", "good", 1)]);
    let lease = bench.lease("heavy").await.unwrap();
    bench.handle.set_tiers(vec![tier_spec("fast", "good")]);
    let error = bench.lease("heavy").await.unwrap_err();
    assert_eq!(
        (error.code, error.hint.as_deref()),
        (Code::TierUnknown, Some("the tiers are fast"))
    );
    assert!(get(&*lease, "/").await.unwrap().ends_with("ok"));
    assert_eq!(bench.handle.snapshot().len(), 2, "it still holds memory");
    drop(lease);
    let mut tiers = bench.handle.watch();
    soon(tiers.wait_for(|tiers| tiers.len() == 1))
        .await
        .unwrap();
    assert_eq!(bench.alive(), 0);
    bench.close().await;
}

#[tokio::test]
async fn a_lowered_budget_unloads_what_no_longer_fits() {
    let bench = Bench::new(&[("fast", "good", 8)]);
    drop(bench.lease("fast").await.unwrap());
    bench.handle.set_budget(Budget {
        total_bytes: 5,
        max_loaded: 1,
        paging: tierbar_core::config::Paging::Mmap,
        embedder_bytes: 0,
    });
    let status = bench.in_state("fast", TierState::Stopped).await;
    assert_eq!(
        status.reason.as_deref(),
        Some("unloaded because the memory budget was lowered")
    );
    assert_eq!(bench.alive(), 0);
    assert_eq!(
        bench.lease("fast").await.unwrap_err().code,
        Code::OverBudget
    );
    bench.close().await;
}
