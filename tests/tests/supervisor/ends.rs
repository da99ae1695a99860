//! How workers end: on request, killed, by a crash, or because their host is gone.

use super::*;
use std::{
    io::{BufRead, BufReader},
    process::{Child, Stdio},
};
use tierbar_core::{Code, policy::Alarm};

#[tokio::test]
async fn a_worker_that_ignores_sigterm_is_killed_with_its_children() {
    let bench = Bench::with(&[("fast", "ignores-sigterm", 1)], |options| {
        options.stop_deadline = Duration::from_millis(200);
    });
    drop(bench.lease("fast").await.unwrap());
    assert_eq!(bench.alive(), 2, "the worker and its child");
    let pid = bench.in_state("fast", TierState::Ready).await.pid.unwrap();
    bench.stop("fast", false).await.unwrap();
    assert!(!bench.sign_of(pid).alive().unwrap());
    assert_eq!((bench.alive(), bench.sockets()), (0, 0));
    assert_eq!(bench.now("fast").state, TierState::Stopped);
    bench.close().await;
}

#[tokio::test]
async fn endless_output_neither_blocks_nor_fills_the_disk() {
    let bench = Bench::new(&[("fast", "floods", 1)]);
    let lease = bench.lease("fast").await.unwrap();
    assert!(get(&*lease, "/flood").await.unwrap().ends_with("flooded"));
    assert!(get(&*lease, "/flood").await.unwrap().ends_with("flooded"));
    let logs = bench.dir.path().join("logs");
    let mut files: Vec<_> = std::fs::read_dir(&logs)
        .unwrap()
        .map(|entry| entry.unwrap())
        .collect();
    files.sort_by_key(std::fs::DirEntry::file_name);
    let names: Vec<_> = files
        .iter()
        .map(|file| file.file_name().into_string().unwrap())
        .collect();
    assert_eq!(names, ["worker-fast.log", "worker-fast.log.old"]);
    // 24 MiB were written.
    let kept: u64 = files
        .iter()
        .map(|file| file.metadata().unwrap().len())
        .sum();
    assert!(kept < 9 << 20, "{kept} bytes of log");
    drop(lease);
    bench.close().await;
}

#[tokio::test]
async fn a_crash_ends_the_lease_and_the_next_request_restarts() {
    let bench = Bench::new(&[("fast", "good", 1)]);
    let lease = bench.lease("fast").await.unwrap();
    let first = bench.in_state("fast", TierState::Busy).await.pid.unwrap();
    assert_eq!(get(&*lease, "/crash").await.unwrap_or_default(), "");

    let error = soon(lease.ended()).await;
    assert_eq!(error.code, Code::WorkerCrashed);
    assert_eq!(
        error.message,
        "the worker of fast was killed by signal 6 (SIGABRT)"
    );
    assert!(error.hint.is_some());
    let status = bench.now("fast");
    assert_eq!(status.state, TierState::Failed);
    assert_eq!((status.reason, status.pid), (Some(error.message), None));

    let again = bench.lease("fast").await.unwrap();
    assert_ne!(
        bench.in_state("fast", TierState::Busy).await.pid,
        Some(first)
    );
    drop(lease);
    bench.in_state("fast", TierState::Busy).await;
    assert!(get(&*again, "/").await.unwrap().ends_with("ok"));
    drop(again);
    bench.in_state("fast", TierState::Ready).await;
    bench.close().await;
}

#[tokio::test]
async fn a_killed_worker_is_reported_with_its_signal_and_a_hint() {
    let bench = Bench::new(&[("fast", "good", 1)]);
    let lease = bench.lease("fast").await.unwrap();
    signal(
        "-9",
        bench.in_state("fast", TierState::Busy).await.pid.unwrap(),
    );
    let error = soon(lease.ended()).await;
    assert_eq!(error.code, Code::WorkerCrashed);
    assert!(
        error.message.contains("killed by signal 9 (SIGKILL)"),
        "{error}"
    );
    assert!(error.hint.unwrap().contains("memory"));
    bench.close().await;
}

#[tokio::test]
async fn a_ready_worker_that_hangs_is_ended() {
    let bench = Bench::with(&[("fast", "good", 1)], |options| {
        options.health_period = Duration::from_millis(50);
    });
    let lease = bench.lease("fast").await.unwrap();
    let pid = bench.in_state("fast", TierState::Busy).await.pid.unwrap();
    signal("-STOP", pid);
    let error = soon(lease.ended()).await;
    assert_eq!(error.code, Code::WorkerTimeout);
    assert_eq!(bench.now("fast").state, TierState::Failed);
    drop(lease);
    let again = bench.lease("fast").await.unwrap();
    assert!(get(&*again, "/").await.unwrap().ends_with("ok"));
    drop(again);
    bench.close().await;
}

#[tokio::test]
async fn a_draining_tier_is_shown_as_stopping() {
    let bench = Bench::new(&[("fast", "good", 1)]);
    let lease = bench.lease("fast").await.unwrap();
    let id = id("fast");
    let stopping = bench.handle.stop(&id, false);
    let drained = async {
        let status = bench.in_state("fast", TierState::Stopping).await;
        assert_eq!(
            status.reason.as_deref(),
            Some("stops when its answers finish")
        );
        assert!(status.pid.is_some());
        drop(lease);
    };
    let (stopped, ()) = tokio::join!(soon(stopping), drained);
    stopped.unwrap();
    assert_eq!(bench.now("fast").state, TierState::Stopped);
    bench.close().await;
}

#[tokio::test]
async fn an_unrequested_exit_is_a_crash() {
    let bench = Bench::new(&[("fast", "good", 1)]);
    let lease = bench.lease("fast").await.unwrap();
    let _ = get(&*lease, "/exit").await;
    let error = soon(lease.ended()).await;
    assert_eq!(error.message, "the worker of fast exited with code 7");
    bench.close().await;
}

#[tokio::test]
async fn a_load_can_be_stopped_at_any_moment() {
    let bench = Bench::new(&[("fast", "hangs", 1)]);
    let fast = id("fast");
    let mut waiting = bench.handle.start(&fast);
    let mut tiers = bench.handle.watch();
    let loading =
        tiers.wait_for(|tiers| tiers[0].state == TierState::Starting && tiers[0].pid.is_some());
    tokio::select! {
        started = &mut waiting => panic!("it cannot start: {started:?}"),
        loading = soon(loading) => drop(loading.unwrap()),
    }
    bench.stop("fast", false).await.unwrap();
    assert_eq!(soon(waiting).await.unwrap_err().code, Code::TierStopped);
    assert_eq!(bench.alive(), 0);
    bench.in_state("fast", TierState::Stopped).await;
    bench.close().await;
}

#[tokio::test]
async fn a_stop_waits_for_leases_and_a_forced_one_does_not() {
    let bench = Bench::new(&[("fast", "good", 1)]);
    let lease = bench.lease("fast").await.unwrap();
    let fast = id("fast");
    let mut drained = bench.handle.stop(&fast, false);
    tokio::select! {
        biased;
        _ = &mut drained => panic!("a leased tier was stopped"),
        // The owner handles events in order: this one comes after the stop.
        error = bench.lease("unknown") => assert_eq!(error.unwrap_err().code, Code::TierUnknown),
    }
    assert!(
        get(&*lease, "/").await.unwrap().ends_with("ok"),
        "it still answers"
    );

    bench.stop("fast", true).await.unwrap();
    soon(drained).await.unwrap();
    let error = soon(lease.ended()).await;
    assert_eq!(
        (error.code, error.message.as_str()),
        (Code::TierStopped, "fast was stopped")
    );
    assert_eq!(bench.alive(), 0);
    bench.close().await;
}

#[tokio::test]
async fn shutdown_refuses_waiting_and_new_requests() {
    let bench = Bench::new(&[("fast", "good", 1), ("heavy", "good", 1)]);
    let lease = bench.lease("fast").await.unwrap();
    let heavy = id("heavy");
    let waiting = bench.handle.lease(&heavy);
    let (waited, ()) = soon(async { tokio::join!(waiting, bench.handle.shutdown()) }).await;
    assert_eq!(waited.unwrap_err().code, Code::ShuttingDown);
    assert_eq!(soon(lease.ended()).await.code, Code::ShuttingDown);
    assert_eq!(
        bench.lease("fast").await.unwrap_err().code,
        Code::ShuttingDown
    );
    assert_eq!(
        bench.stop("fast", true).await.unwrap_err().code,
        Code::ShuttingDown
    );
    bench.close().await;
}

#[tokio::test]
async fn dropping_the_last_handle_ends_the_workers() {
    let Bench { handle, dir, .. } = Bench::new(&[("fast", "good", 1)]);
    let lease = soon(handle.lease(&id("fast"))).await.unwrap();
    drop(handle);
    assert_eq!(soon(lease.ended()).await.code, Code::ShuttingDown);
    let signs = scripted::workers(dir.path()).unwrap();
    assert!(signs.iter().all(|sign| !sign.alive().unwrap()));
}

#[tokio::test]
async fn no_worker_outlives_a_host_that_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let mut host: Child = Command::new(env!("CARGO_BIN_EXE_scripted_host"))
        .args([dir.path().as_os_str(), worker().as_os_str()])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(host.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "ready\n");
    let [sign] = &scripted::workers(dir.path()).unwrap()[..] else {
        panic!("one worker")
    };
    assert!(sign.alive().unwrap());
    host.kill().unwrap();
    host.wait().unwrap();
    // Blocks until the worker is gone; the kernel releases its lock.
    sign.wait().unwrap();
}

#[tokio::test]
async fn a_tier_that_drains_too_long_is_ended() {
    let bench = Bench::with(&[("fast", "good", 1)], |options| {
        options.drain_deadline = Duration::from_millis(50);
    });
    let lease = bench.lease("fast").await.unwrap();
    bench.stop("fast", false).await.unwrap();
    let error = soon(lease.ended()).await;
    assert_eq!(
        (error.code, error.message.as_str()),
        (Code::TierStopped, "fast was stopped")
    );
    assert_eq!(bench.alive(), 0);
    bench.close().await;
}

#[tokio::test]
async fn a_draining_tier_that_is_started_again_stays() {
    let bench = Bench::new(&[("fast", "good", 1)]);
    let lease = bench.lease("fast").await.unwrap();
    let fast = id("fast");
    let mut stopping = bench.handle.stop(&fast, false);
    tokio::select! {
        biased;
        _ = &mut stopping => panic!("a leased tier was stopped"),
        _ = bench.in_state("fast", TierState::Stopping) => {}
    }
    soon(bench.handle.start(&fast)).await.unwrap();
    assert_eq!(soon(stopping).await.unwrap_err().code, Code::Cancelled);
    assert!(get(&*lease, "/").await.unwrap().ends_with("ok"));
    drop(lease);
    bench.in_state("fast", TierState::Ready).await;
    assert_eq!(bench.workers().len(), 1);
    bench.close().await;
}

#[tokio::test]
async fn a_suspended_worker_can_be_stopped() {
    let bench = Bench::with(&[("fast", "good", 1)], |options| {
        options.stop_deadline = Duration::from_millis(200);
    });
    drop(bench.lease("fast").await.unwrap());
    let pid = bench.in_state("fast", TierState::Ready).await.pid.unwrap();
    signal("-STOP", pid);
    bench.stop("fast", false).await.unwrap();
    assert_eq!(bench.alive(), 0);
    bench.close().await;
}

#[tokio::test]
async fn a_slow_stop_is_hastened_by_an_alarm_and_by_force() {
    for alarm in [true, false] {
        // Only a kill ends it before the test's timeout.
        let bench = Bench::with(&[("fast", "ignores-sigterm", 1)], |options| {
            options.stop_deadline = 2 * HANG;
        });
        drop(bench.lease("fast").await.unwrap());
        let stopped = bench.handle.clone();
        let stopping = tokio::spawn(async move { stopped.stop(&id("fast"), false).await });
        bench.in_state("fast", TierState::Stopping).await;
        if alarm {
            bench
                .handle
                .set_alarm(Alarm::Unload, "memory is low".to_owned());
        } else {
            bench.stop("fast", true).await.unwrap();
        }
        soon(stopping).await.unwrap().unwrap();
        assert_eq!(bench.alive(), 0);
        bench.close().await;
    }
}

#[tokio::test]
async fn a_worker_without_a_socket_or_a_valid_answer_is_ended() {
    for script in ["good", "babbles"] {
        let bench = Bench::with(&[("fast", script, 1)], |options| {
            options.health_period = Duration::from_millis(50);
        });
        let lease = bench.lease("fast").await.unwrap();
        if script == "good"
            && let Endpoint::Unix(socket) = lease.endpoint()
        {
            std::fs::remove_file(socket).unwrap();
        }
        let error = soon(lease.ended()).await;
        assert_eq!(error.code, Code::WorkerTimeout, "{script}");
        drop(lease);
        bench.close().await;
    }
}

#[tokio::test]
async fn a_worker_far_beyond_its_plan_is_ended_once_idle() {
    let bench = Bench::new(&[("fast", "good", 1 << 20)]);
    bench.handle.set_budget(tierbar_core::budget::Budget {
        total_bytes: 1 << 30,
        max_loaded: 1,
        paging: tierbar_core::config::Paging::Mmap,
        embedder_bytes: 0,
    });
    let lease = bench.lease("fast").await.unwrap();
    let weighs = |bytes| bench.handle.set_footprints(vec![(id("fast"), bytes)]);
    weighs(1 << 30);
    bench
        .when("fast", |status| status.footprint_bytes.is_some())
        .await;
    assert_eq!(bench.now("fast").state, TierState::Busy);
    weighs(3 << 30);
    bench.in_state("fast", TierState::Stopping).await;
    assert!(get(&*lease, "/").await.unwrap().ends_with("ok"));
    drop(lease);
    let status = bench.in_state("fast", TierState::Stopped).await;
    let why = "fast was unloaded because it used 3.0 GiB and 1 MiB was planned";
    assert_eq!(status.reason.as_deref(), Some(why));
    drop(bench.lease("fast").await.unwrap());
    bench.close().await;
}
