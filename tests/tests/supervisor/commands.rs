//! Tiers with commands, under the process guard, and with endpoints.

use super::*;
use serde_json::{Value, json};
use std::net::TcpListener;
use tierbar_core::{Code, config::Engine};

const SOCKET: &[&str] = &["--socket", "{socket}"];
const PORT: &[&str] = &["--port", "{port}"];

/// One tier, `fast`, whose command follows the script.
fn foreign(script: &str, place: &[&str], keys: Value) -> Bench {
    Bench::with_source(&[("fast", script, 1)], |options, source, dir| {
        let model = dir.join("models").join(script).with_extension("gguf");
        let model = model.to_str().unwrap();
        let arguments = [&["--model", model, "--context", "512"], place].concat();
        options.tiers[0].engine = source.foreign(&worker(), &arguments, keys);
    })
}

/// Returns the error of a command that never serves, and checks that no process is left.
async fn refusal(script: &str, keys: Value) -> Error {
    let bench = foreign(script, SOCKET, keys);
    let error = bench.lease("fast").await.unwrap_err();
    assert_eq!(bench.now("fast").state, TierState::Failed);
    bench.close().await;
    error
}

#[tokio::test]
async fn a_command_serves_on_a_socket_and_ends_with_its_children() {
    let bench = foreign("foreign", SOCKET, json!({}));
    let lease = bench.lease("fast").await.unwrap();
    let Endpoint::Foreign(foreign) = lease.endpoint() else {
        panic!("it is ours");
    };
    assert_eq!(foreign.model, None);
    assert!(get(&*lease, "/").await.unwrap().ends_with("ok"));
    let status = bench.in_state("fast", TierState::Busy).await;
    assert!(
        bench.sign_of(status.pid.unwrap()).alive().unwrap(),
        "its own number"
    );
    assert_eq!(status.context_tokens, scripted::CONTEXT);
    drop(lease);
    bench.stop("fast", false).await.unwrap();
    assert_eq!((bench.alive(), bench.sockets()), (0, 0));
    bench.close().await;
}

#[tokio::test]
async fn a_command_serves_on_a_free_port_or_on_its_own() {
    let bench = foreign("foreign", PORT, json!({}));
    let lease = bench.lease("fast").await.unwrap();
    assert!(get(&*lease, "/").await.unwrap().ends_with("ok"));
    drop(lease);
    bench.close().await;

    let port = free_port();
    let bench = foreign(
        "foreign",
        &["--port", &port.to_string()],
        json!({"port": port}),
    );
    let lease = bench.lease("fast").await.unwrap();
    assert!(get(&*lease, "/").await.unwrap().ends_with("ok"));
    drop(lease);
    bench.close().await;
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

#[tokio::test]
async fn a_port_in_use_is_not_mistaken_for_the_commands() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let bench = foreign("foreign", &["--port", "1"], json!({"port": port}));
    let error = bench.lease("fast").await.unwrap_err();
    assert_eq!(error.code, Code::PortTaken);
    assert!(error.message.contains(&port.to_string()), "{error}");
    assert!(bench.workers().is_empty(), "it was started all the same");
    bench.close().await;
}

#[tokio::test]
async fn a_loading_command_is_waited_for() {
    let bench = foreign("foreign-loading", SOCKET, json!({}));
    let lease = bench.lease("fast").await.unwrap();
    assert!(get(&*lease, "/").await.unwrap().ends_with("ok"));
    drop(lease);
    bench.close().await;
}

#[tokio::test]
async fn a_command_gets_its_variables_and_no_unneeded_ones() {
    let bench = foreign(
        "foreign",
        SOCKET,
        json!({"env": {"LLAMA_ARG_THREADS": "3"}}),
    );
    let lease = bench.lease("fast").await.unwrap();
    let environment = get(&*lease, "/environment").await.unwrap();
    let has = |name: &str| environment.lines().any(|line| line == name);
    assert!(has("LLAMA_ARG_THREADS") && has("PATH"), "{environment}");
    assert!(!has("CARGO_MANIFEST_DIR"), "{environment}");
    drop(lease);
    bench.close().await;
}

#[tokio::test]
async fn a_command_that_ignores_sigterm_is_killed_with_its_children() {
    let bench = foreign(
        "foreign-ignores-sigterm",
        SOCKET,
        json!({"stop_deadline": "0s"}),
    );
    drop(bench.lease("fast").await.unwrap());
    assert_eq!(bench.alive(), 2, "the command and its child");
    bench.stop("fast", false).await.unwrap();
    assert_eq!((bench.alive(), bench.sockets()), (0, 0));
    bench.close().await;
}

#[tokio::test]
async fn an_early_exit_of_a_command_quotes_its_last_output() {
    // It follows the script named by its model.
    let bench = foreign(
        "foreign",
        &["--model", "dies-at-start", "--nowhere", "{socket}"],
        json!({}),
    );
    let error = bench.lease("fast").await.unwrap_err();
    assert_eq!(error.code, Code::TierFailed);
    assert!(
        error.message.starts_with("fast could not start: its command bad_worker exited with code 1 before it answered; its last output was: "),
        "{error}"
    );
    bench.close().await;
}

#[tokio::test]
async fn a_missing_command_is_reported_with_a_hint() {
    let bench = Bench::with_source(&[("fast", "foreign", 1)], |options, source, _| {
        let nowhere = Path::new("/nowhere/server");
        options.tiers[0].engine = source.foreign(nowhere, SOCKET, json!({}));
    });
    let error = bench.lease("fast").await.unwrap_err();
    assert!(
        error
            .message
            .contains("/nowhere/server cannot be run: No such file"),
        "{error}"
    );
    assert!(error.hint.unwrap().contains("full path"));
    bench.close().await;
}

#[tokio::test]
async fn a_command_that_hangs_or_answers_garbage_is_ended() {
    let error = refusal("foreign-hangs", json!({"load_deadline": "1s"})).await;
    assert_eq!(error.code, Code::WorkerTimeout);
    assert!(
        error
            .message
            .contains("not ready after 1 s: / did not answer"),
        "{error}"
    );
    assert!(error.hint.unwrap().contains("load_deadline"));
    // It has enough time to answer.
    let error = refusal("foreign-garbage", json!({"load_deadline": "8s"})).await;
    assert!(
        error
            .message
            .contains("something other than HTTP: \"220 mail.exa\""),
        "{error}"
    );
    let error = refusal("foreign-loading", json!({"load_deadline": "0s"})).await;
    assert_eq!(error.code, Code::WorkerTimeout);
}

#[tokio::test]
async fn a_command_that_crashes_or_hangs_in_use_ends_its_lease() {
    let bench = foreign("foreign", SOCKET, json!({}));
    let lease = bench.lease("fast").await.unwrap();
    assert_eq!(get(&*lease, "/crash").await.unwrap_or_default(), "");
    let error = soon(lease.ended()).await;
    assert_eq!(error.code, Code::WorkerCrashed);
    let killed =
        "the command bad_worker of fast was killed by signal 6 (SIGABRT); its last output was: ";
    assert!(error.message.starts_with(killed), "{error}");
    drop(lease);
    bench.close().await;

    let bench = Bench::with_source(&[("fast", "foreign", 1)], |options, source, dir| {
        options.health_period = Duration::from_millis(2);
        let model = dir.join("models/foreign.gguf");
        let model = model.to_str().unwrap();
        let arguments = [&["--model", model, "--context", "512"], SOCKET].concat();
        options.tiers[0].engine = source.foreign(&worker(), &arguments, json!({}));
    });
    let lease = bench.lease("fast").await.unwrap();
    signal(
        "-STOP",
        bench.in_state("fast", TierState::Busy).await.pid.unwrap(),
    );
    let error = soon(lease.ended()).await;
    assert_eq!(error.code, Code::WorkerTimeout);
    drop(lease);
    bench.close().await;
}

#[tokio::test]
async fn a_command_whose_guard_is_killed_is_ended() {
    let bench = foreign("foreign-ignores-sigterm", SOCKET, json!({}));
    let lease = bench.lease("fast").await.unwrap();
    let command = bench.in_state("fast", TierState::Busy).await.pid.unwrap();
    signal("-9", parent(command));
    let error = soon(lease.ended()).await;
    assert_eq!(error.code, Code::WorkerCrashed);
    let signs = bench.workers();
    let gone = tokio::task::spawn_blocking(move || signs.iter().try_for_each(Sign::wait));
    soon(gone).await.unwrap().unwrap();
    drop(lease);
    bench.close().await;
}

fn parent(pid: u32) -> u32 {
    let output = Command::new("ps")
        .args(["-o", "ppid=", "-p", &pid.to_string()])
        .output()
        .unwrap();
    String::from_utf8(output.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

#[tokio::test]
async fn nothing_is_loaded_while_a_command_of_a_killed_host_is_ending() {
    let bench = Bench::new(&[("fast", "good", 1)]);
    let guard = std::fs::File::create(bench.dir.path().join("run/commands.lock")).unwrap();
    guard.lock_shared().unwrap();
    let handle = bench.handle.clone();
    let leasing = tokio::spawn(async move { handle.lease(&id("fast")).await });
    bench.in_state("fast", TierState::Starting).await;
    // A stop does not wait for the load.
    bench.stop("fast", false).await.unwrap();
    assert!(soon(leasing).await.unwrap().is_err());
    let handle = bench.handle.clone();
    let leasing = tokio::spawn(async move { handle.lease(&id("fast")).await });
    bench.in_state("fast", TierState::Starting).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(bench.workers().len(), 0);
    drop(guard);
    drop(soon(leasing).await.unwrap().unwrap());
    bench.close().await;
}

#[tokio::test]
async fn a_command_beyond_its_declared_memory_is_reported() {
    let bench = foreign("foreign", SOCKET, json!({}));
    drop(bench.lease("fast").await.unwrap());
    let weigh = |bytes| bench.handle.set_footprints(vec![(id("fast"), bytes)]);
    weigh(1);
    let status = bench
        .when("fast", |status| status.footprint_bytes == Some(1))
        .await;
    assert_eq!(status.reason, None);
    weigh(3 << 30);
    let status = bench
        .when("fast", |status| status.footprint_bytes == Some(3 << 30))
        .await;
    let reason = status.reason.unwrap();
    assert!(
        reason.starts_with("uses 3.0 GiB, more than the"),
        "{reason}"
    );
    // Our own worker would be ended here as a leak.
    assert_eq!(status.state, TierState::Ready);
    assert!(get(&*bench.lease("fast").await.unwrap(), "/").await.is_ok());
    assert_eq!(bench.now("fast").pid, status.pid);
    bench.close().await;
}

#[tokio::test]
async fn an_endpoint_is_ready_at_once_and_takes_no_memory() {
    let bench = Bench::with(&[("fast", "good", 10), ("heavy", "", 0)], |options| {
        options.tiers[1].engine = endpoint("http://127.0.0.1:9");
        options.tiers[1].remote_model = Some("large".to_owned());
    });
    bench.source.forget("heavy");
    let fast = bench.lease("fast").await.unwrap();
    let one = bench.lease("heavy").await.unwrap();
    let two = bench.lease("heavy").await.unwrap();
    let Endpoint::Foreign(foreign) = one.endpoint() else {
        panic!("it is ours");
    };
    assert_eq!(foreign.at, Address::Url("http://127.0.0.1:9".to_owned()));
    assert_eq!(foreign.model.as_deref(), Some("large"));
    let status = bench.in_state("heavy", TierState::Busy).await;
    assert_eq!((status.pid, status.footprint_bytes), (None, None));
    assert_eq!(bench.handle.budget().planned_bytes, 10);
    drop((one, two));
    bench.in_state("heavy", TierState::Ready).await;
    bench.stop("heavy", false).await.unwrap();
    assert_eq!(bench.now("heavy").state, TierState::Ready);
    assert_eq!(bench.now("fast").state, TierState::Busy);
    drop(fast);
    bench.close().await;
}

#[tokio::test]
async fn endpoint_leases_end_by_force_and_at_shutdown() {
    let bench = Bench::with(&[("fast", "", 0)], |options| {
        options.tiers[0].engine = endpoint("http://127.0.0.1:9");
    });
    let lease = bench.lease("fast").await.unwrap();
    bench.stop("fast", true).await.unwrap();
    assert_eq!(soon(lease.ended()).await.code, Code::TierStopped);
    let again = bench.lease("fast").await.unwrap();
    drop(lease);
    soon(bench.handle.shutdown()).await;
    assert_eq!(soon(again.ended()).await.code, Code::ShuttingDown);
}

#[tokio::test]
async fn a_tier_that_becomes_an_endpoint_serves_its_waiters() {
    let bench = Bench::new(&[("fast", "good", 1)]);
    let worker = bench.lease("fast").await.unwrap();
    let pid = bench.in_state("fast", TierState::Busy).await.pid.unwrap();
    let mut spec = tier_spec("fast", "good");
    spec.engine = endpoint("http://127.0.0.1:9");
    bench.handle.set_tiers(vec![spec]);
    let elsewhere = bench.lease("fast").await.unwrap();
    assert!(matches!(elsewhere.endpoint(), Endpoint::Foreign(_)));
    assert!(bench.sign_of(pid).alive().unwrap(), "it still answers");
    drop(worker);
    bench.when("fast", |status| status.pid.is_none()).await;
    assert!(!bench.sign_of(pid).alive().unwrap());
    drop(elsewhere);
    bench.close().await;
}

fn endpoint(url: &str) -> Engine {
    serde_json::from_value(json!({"endpoint": url})).unwrap()
}
