//! Leases, the snapshot, and the environment of a worker.

use super::*;
use std::os::unix::fs::FileTypeExt;

#[tokio::test]
async fn a_lease_names_its_model_and_a_private_socket_that_answers() {
    let bench = Bench::new(&[("fast", "good", 3)]);
    assert_eq!(
        bench
            .in_state("fast", TierState::Stopped)
            .await
            .context_tokens,
        scripted::CONTEXT
    );
    let lease = bench.lease("fast").await.unwrap();
    assert_eq!(
        (lease.tier().as_str(), lease.model().as_str()),
        ("fast", "good")
    );
    assert!(get(&*lease, "/").await.unwrap().ends_with("\r\n\r\nok"));
    let Endpoint::Unix(socket) = lease.endpoint() else {
        panic!("it is not ours");
    };
    assert!(std::fs::metadata(socket).unwrap().file_type().is_socket());
    assert_eq!(
        (mode(socket), mode(socket.parent().unwrap())),
        (0o600, 0o700)
    );

    bench.handle.set_footprints(vec![(id("fast"), 42)]);
    let status = bench
        .when("fast", |status| status.footprint_bytes == Some(42))
        .await;
    assert_eq!((status.state, status.reason), (TierState::Busy, None));
    assert_eq!(bench.handle.budget().planned_bytes, 3);
    drop(lease);
    bench.in_state("fast", TierState::Ready).await;
    bench.close().await;
}

#[tokio::test]
async fn a_worker_is_not_given_the_hosts_environment() {
    assert!(
        std::env::var_os("CARGO_MANIFEST_DIR").is_some(),
        "cargo sets it for tests"
    );
    let bench = Bench::new(&[("fast", "good", 1)]);
    let lease = bench.lease("fast").await.unwrap();
    let answer = get(&*lease, "/environment").await.unwrap();
    let names: Vec<_> = answer.split("\r\n\r\n").nth(1).unwrap().lines().collect();
    assert!(names.contains(&"PATH"), "{names:?}");
    assert!(
        !names.iter().any(|name| name.starts_with("CARGO")),
        "{names:?}"
    );
    drop(lease);
    bench.close().await;
}

#[tokio::test]
async fn a_tier_is_busy_until_its_last_lease_ends() {
    let bench = Bench::new(&[("fast", "good", 1)]);
    let (one, two) = tokio::join!(bench.lease("fast"), bench.lease("fast"));
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!(one.endpoint(), two.endpoint());
    drop(one);
    assert!(get(&*two, "/").await.unwrap().ends_with("ok"));
    bench.in_state("fast", TierState::Busy).await;
    drop(two);
    bench.in_state("fast", TierState::Ready).await;
    assert_eq!(bench.workers().len(), 1);
    bench.close().await;
}

#[tokio::test]
async fn start_loads_a_tier_and_holds_no_lease_on_it() {
    let bench = Bench::new(&[("fast", "good", 1)]);
    for _ in 0..2 {
        soon(bench.handle.start(&id("fast"))).await.unwrap();
        assert_eq!(bench.now("fast").state, TierState::Ready);
    }
    assert_eq!(bench.workers().len(), 1);
    bench.close().await;
}

/// On several threads, so that the owner and its callers run concurrently.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_state_is_current_when_a_call_returns() {
    let bench = Bench::new(&[("fast", "good", 1)]);
    for _ in 0..20 {
        let lease = bench.lease("fast").await.unwrap();
        assert_eq!(bench.now("fast").state, TierState::Busy);
        drop(lease);
        bench.stop("fast", false).await.unwrap();
        assert_eq!(bench.now("fast").state, TierState::Stopped);
        bench.source.forget("fast");
        bench.lease("fast").await.unwrap_err();
        assert_eq!(bench.now("fast").state, TierState::Failed);
        bench.stop("fast", false).await.unwrap();
        assert_eq!(bench.now("fast").state, TierState::Stopped);
        bench.source.script("fast", "good", 1);
    }
    bench.close().await;
}

#[tokio::test]
async fn requests_beyond_the_queue_limit_are_refused() {
    let bench = Bench::new(&[("fast", "good", 1), ("heavy", "good", 1)]);
    let lease = bench.lease("fast").await.unwrap();
    let heavy = id("heavy");
    let mut refused = None;
    let mut waiting: Vec<_> = (0..300).map(|_| bench.handle.lease(&heavy)).collect();
    // Requests beyond the queue limit are refused at once, while the tier is still leased.
    for future in &mut waiting {
        tokio::select! {
            biased;
            answer = &mut *future => { refused = Some(answer); break; }
            error = bench.lease("unknown") => drop(error.unwrap_err()),
        }
    }
    let error = refused.expect("an endless queue").unwrap_err();
    assert_eq!(error.code, tierbar_core::Code::Overloaded);
    drop(lease);
    soon(&mut waiting[0]).await.unwrap();
    drop(waiting);
    bench.close().await;
}
