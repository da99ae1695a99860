//! Memory that is freed late, or not at all.

use super::*;
use std::{
    sync::{
        Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};
use tierbar_core::{
    Code,
    reclaim::{MemoryAfter, MemoryBefore, PATIENCE},
};
use tierbar_supervisor::MemoryProbe;
use tierbar_telemetry::Process;

const GIB: u64 = 1 << 30;

/// Reports the same figures for every worker.
#[derive(Debug)]
struct Probe(Mutex<MemoryAfter>);

impl MemoryProbe for Probe {
    fn before(&self, _: Process) -> MemoryBefore {
        MemoryBefore {
            group_bytes: Some(4 * GIB),
            machine_bytes: Some(6 * GIB),
        }
    }

    fn after(&self, _: Process) -> MemoryAfter {
        *self.0.lock().unwrap()
    }
}

const BACK: MemoryAfter = MemoryAfter {
    group_bytes: Some(0),
    machine_bytes: Some(2 * GIB),
    available_bytes: Some(9 * GIB),
};
/// No process is left, and 3 GiB are not freed.
const MISSING: MemoryAfter = MemoryAfter {
    machine_bytes: Some(5 * GIB),
    available_bytes: Some(0),
    ..BACK
};

/// Two tiers of which one fits, and the probe of their memory.
fn bench(after: MemoryAfter) -> (Bench, Arc<Probe>) {
    let probe = Arc::new(Probe(Mutex::new(after)));
    let bench = Bench::with(&[("fast", "good", 1), ("heavy", "good", 1)], |options| {
        options.memory = probe.clone();
    });
    (bench, probe)
}

/// Repeats an answer for a second, as macOS does when it is asked often.
#[derive(Debug, Default)]
struct Stale {
    first: OnceLock<Instant>,
    measurements: AtomicUsize,
}

impl MemoryProbe for Stale {
    fn interval(&self) -> Duration {
        Duration::from_millis(500)
    }

    fn before(&self, _: Process) -> MemoryBefore {
        MemoryBefore {
            group_bytes: Some(4 * GIB),
            machine_bytes: Some(6 * GIB),
        }
    }

    fn after(&self, _: Process) -> MemoryAfter {
        self.measurements.fetch_add(1, Ordering::Relaxed);
        let first = self.first.get_or_init(Instant::now);
        if first.elapsed() < Duration::from_secs(1) {
            MISSING
        } else {
            BACK
        }
    }
}

#[tokio::test]
async fn memory_is_measured_no_more_often_than_it_changes() {
    let probe = Arc::new(Stale::default());
    let bench = Bench::with(&[("fast", "good", 1), ("heavy", "good", 1)], |options| {
        options.memory = probe.clone();
    });
    drop(bench.lease("fast").await.unwrap());
    drop(bench.lease("heavy").await.unwrap());
    assert!(probe.measurements.load(Ordering::Relaxed) <= 4);
    bench.close().await;
}

/// Advances the clock.
async fn skip(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

async fn waits(bench: &Bench, what: &str) {
    let is = |status: &TierStatus| status.reason.as_deref() == Some(what);
    bench.when("heavy", is).await;
}

const WAITS: &str = "waiting for 3.0 GiB of fast's memory to be freed";

#[tokio::test]
async fn a_load_waits_until_the_last_tiers_memory_is_back() {
    let (bench, probe) = bench(MISSING);
    drop(bench.lease("fast").await.unwrap());
    let heavy = id("heavy");
    let mut waiting = bench.handle.lease(&heavy);
    tokio::select! {
        biased;
        _ = &mut waiting => panic!("it was loaded"),
        () = waits(&bench, WAITS) => {}
    }
    let leaving = bench.now("fast");
    assert_eq!((leaving.state, leaving.pid), (TierState::Stopping, None));
    let why = "unloaded to make room for heavy; 3.0 GiB of its memory is not free yet";
    assert_eq!(leaving.reason.as_deref(), Some(why));
    assert_eq!((bench.alive(), bench.workers().len()), (0, 1));
    assert_eq!(bench.handle.budget().planned_bytes, 1);

    *probe.0.lock().unwrap() = BACK;
    soon(waiting).await.unwrap();
    assert_eq!(bench.now("fast").state, TierState::Stopped);
    bench.close().await;
}

#[tokio::test]
async fn memory_not_reclaimed_is_reported_and_refuses_loads() {
    let (bench, probe) = bench(MISSING);
    drop(bench.lease("fast").await.unwrap());
    let heavy = id("heavy");
    let mut waiting = bench.handle.lease(&heavy);
    tokio::select! {
        biased;
        _ = &mut waiting => panic!("it was loaded"),
        () = waits(&bench, WAITS) => {}
    }
    skip(PATIENCE).await;
    let error = soon(waiting).await.unwrap_err();
    assert_eq!(error.code, Code::Overloaded);
    let expected = "heavy needs 0 MiB and 0 MiB is available: 3.0 GiB of fast's memory was not freed when it was unloaded";
    assert_eq!(error.message, expected);
    assert_eq!(error.details["missing_bytes"], 3 * GIB);
    let left = bench.now("fast");
    assert_eq!(left.state, TierState::Stopped);
    let why = "unloaded to make room for heavy; 3.0 GiB of its memory was not freed within 10 s";
    assert_eq!(left.reason.as_deref(), Some(why));
    assert_eq!(
        bench.lease("heavy").await.unwrap_err().code,
        Code::Overloaded
    );
    assert_eq!(bench.workers().len(), 1);

    *probe.0.lock().unwrap() = BACK;
    let heavy = until("the memory to be seen", async || {
        bench.lease("heavy").await.ok()
    });
    drop(heavy.await);
    bench.close().await;
}

#[tokio::test]
async fn a_load_that_fits_waits_only_for_processes_to_end() {
    let roomy = MemoryAfter {
        available_bytes: Some(1),
        ..MISSING
    };
    let (bench, probe) = bench(MemoryAfter {
        group_bytes: Some(GIB),
        ..roomy
    });
    drop(bench.lease("fast").await.unwrap());
    let heavy = id("heavy");
    let mut waiting = bench.handle.lease(&heavy);
    tokio::select! {
        biased;
        _ = &mut waiting => panic!("a process of the tier before it lives"),
        () = waits(&bench, "waiting for 1.0 GiB of fast's memory to be freed") => {}
    }
    *probe.0.lock().unwrap() = roomy;
    drop(soon(waiting).await.unwrap());
    let why = Some("unloaded to make room for heavy".to_owned());
    assert_eq!(bench.now("fast").reason, why);
    bench.close().await;
}

#[tokio::test]
async fn the_wait_for_a_process_that_cannot_end_is_bounded() {
    let (bench, _probe) = bench(MemoryAfter {
        group_bytes: Some(GIB),
        available_bytes: Some(1),
        ..MISSING
    });
    drop(bench.lease("fast").await.unwrap());
    let heavy = id("heavy");
    let mut waiting = bench.handle.lease(&heavy);
    tokio::select! {
        biased;
        _ = &mut waiting => panic!("a process of the tier before it lives"),
        () = waits(&bench, "waiting for 1.0 GiB of fast's memory to be freed") => {}
    }
    skip(PATIENCE).await;
    drop(soon(waiting).await.unwrap());
    bench.close().await;
}

#[tokio::test]
async fn a_crash_is_reported_before_its_memory_is_back() {
    let (bench, probe) = bench(MemoryAfter {
        group_bytes: Some(3 * GIB),
        ..MISSING
    });
    let lease = bench.lease("fast").await.unwrap();
    let _ = get(&*lease, "/crash").await;
    assert_eq!(soon(lease.ended()).await.code, Code::WorkerCrashed);
    assert_eq!(bench.now("fast").state, TierState::Failed);
    let heavy = id("heavy");
    let mut waiting = bench.handle.lease(&heavy);
    tokio::select! {
        biased;
        _ = &mut waiting => panic!("it was loaded"),
        () = waits(&bench, WAITS) => {}
    }
    *probe.0.lock().unwrap() = BACK;
    drop(soon(waiting).await.unwrap());
    bench.close().await;
}

#[tokio::test]
async fn a_reloaded_tier_waits_for_its_own_memory() {
    let (bench, probe) = bench(MISSING);
    drop(bench.lease("fast").await.unwrap());
    let fast = id("fast");
    let mut stopped = bench.handle.stop(&fast, false);
    let mut waiting = bench.handle.lease(&fast);
    let leaving = bench.when("fast", |status| {
        let reason = status.reason.as_deref().unwrap_or_default();
        reason.ends_with("is not free yet")
    });
    tokio::select! {
        biased;
        _ = &mut stopped => panic!("its memory is not back"),
        _ = &mut waiting => panic!("it was loaded"),
        _ = leaving => {}
    }
    *probe.0.lock().unwrap() = BACK;
    soon(stopped).await.unwrap();
    drop(soon(waiting).await.unwrap());
    assert_eq!(bench.workers().len(), 2);
    bench.close().await;
}

#[tokio::test]
async fn shutdown_does_not_wait_for_memory() {
    let (bench, probe) = bench(MISSING);
    let sign = {
        let lease = bench.lease("fast").await.unwrap();
        let pid = bench.in_state("fast", TierState::Busy).await.pid.unwrap();
        drop(lease);
        bench.sign_of(pid)
    };
    soon(bench.handle.shutdown()).await;
    assert!(!sign.alive().unwrap(), "the worker has ended");
    let missing = probe.0.lock().unwrap().machine_bytes;
    assert_eq!(missing, MISSING.machine_bytes, "its memory is not back");
    bench.close().await;
}

#[tokio::test]
async fn children_of_an_ended_worker_are_killed_before_a_load() {
    let bench = Bench::new(&[("fast", "leaves-a-child", 1)]);
    drop(bench.lease("fast").await.unwrap());
    assert_eq!(bench.alive(), 2, "the worker and its child");
    bench.stop("fast", false).await.unwrap();
    assert_eq!(bench.alive(), 0);
    bench.close().await;
}
