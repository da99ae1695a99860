//! Loads that the host did not survive.

use super::*;

/// A host in the folder, with `fast` pinned.
fn host(dir: TempDir) -> Bench {
    Bench::within(dir, &[("fast", "hangs-once", 1)], |options| {
        options.tiers[0].pinned = true;
    })
}

#[tokio::test]
async fn a_model_whose_load_killed_the_host_loads_only_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let loads = dir.path().join("loads.json");
    let mut killed = Command::new(env!("CARGO_BIN_EXE_scripted_host"))
        .arg(dir.path())
        .arg(worker())
        .arg("hangs-once")
        .spawn()
        .unwrap();
    let hung = dir.path().join("models/hung");
    until("the load", async || hung.exists().then_some(())).await;
    assert!(loads.exists(), "it was written down before it began");
    killed.kill().unwrap();
    killed.wait().unwrap();
    for sign in scripted::workers(dir.path()).unwrap() {
        signal("-9", sign.pid().unwrap());
        sign.wait().unwrap();
    }

    let bench = host(dir);
    bench.handle.expect(&id("fast"));
    // The event has been handled when the owner replies to this.
    bench.lease("unknown").await.unwrap_err();
    let status = bench.now("fast");
    assert_eq!(status.state, TierState::Stopped);
    let reason = status.reason.unwrap();
    assert!(reason.starts_with("loads only on request"), "{reason}");
    let never_ended = bench.handle.never_ended();
    let model = never_ended.borrow()[0].model.to_string();
    assert_eq!((model.as_str(), bench.workers().len()), ("hangs-once", 1));

    drop(bench.lease("fast").await.unwrap());
    assert!(never_ended.borrow().is_empty() && !loads.exists());
    bench.close().await;
    let again = host(bench.dir);
    again.in_state("fast", TierState::Ready).await;
    again.close().await;
}
