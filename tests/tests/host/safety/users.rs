//! Two users of one machine, each with a Tierbar of their own.

use std::{os::unix::fs::chown, path::Path, process::Stdio};
use tierbar_skip::skip;
use tierbar_tests::{
    binaries::program,
    serving::Data,
    wait::{until, within},
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};

/// A user other than the one who runs the tests.
const OTHER: u32 = 65534;

fn give(path: &Path) {
    chown(path, Some(OTHER), Some(OTHER)).unwrap();
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        give(&entry.path());
    }
}

/// A program of the other user.
fn theirs(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    let other = OTHER.to_string();
    command
        .args(["--reuid", &other, "--regid", &other, "--clear-groups"])
        .arg(program)
        .kill_on_drop(true);
    command
}

async fn succeeds(mut command: Command) -> bool {
    let ended = within("a trial", command.stderr(Stdio::null()).status()).await;
    ended.is_ok_and(|status| status.success())
}

#[cfg_attr(target_vendor = "apple", ignore = "it has no namespaces")]
#[tokio::test]
async fn a_second_user_gets_the_next_port_and_is_told() {
    let mut trial = theirs("test");
    trial.arg("-x").arg(program("tierbar"));
    let mut network = Command::new("unshare");
    network.args(["--net", "true"]);
    if !succeeds(trial).await || !succeeds(network).await {
        return skip("only an administrator can be two users");
    }
    let (first, second) = (Data::empty(""), Data::empty(""));
    give(second.path());
    let script = "ip link set lo up && exec \"$0\" serve";
    let host = Command::new("unshare")
        .args(["--net", "sh", "-c", script])
        .arg(program("tierbar"))
        .env("TIERBAR_HOME", first.path())
        .env("HOME", first.path())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    until("the first user's", async || {
        tierbar_host::find_running_host(Some(first.path()))
    })
    .await;
    let mut enter = Command::new("nsenter");
    enter
        .args(["--net", "--target", &host.id().unwrap().to_string()])
        .arg("setpriv")
        .args(theirs(program("tierbar")).as_std().get_args())
        .args(["serve", "--json"])
        .env("TIERBAR_HOME", second.path())
        .env("HOME", second.path())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let mut other = enter.spawn().unwrap();
    let mut lines = BufReader::new(other.stdout.take().unwrap()).lines();
    let line = within("the second user's", lines.next_line()).await;
    let line = line.unwrap().expect("a host that starts");
    assert!(line.contains("http://127.0.0.1:11436"), "{line}");

    // What the status says, by a client of the second user.
    let mut status = Command::new("nsenter");
    status
        .args(["--net", "--target", &host.id().unwrap().to_string()])
        .arg("setpriv")
        .args(theirs(program("tierbar")).as_std().get_args())
        .args(["status", "--json"])
        .env("TIERBAR_HOME", second.path())
        .env("HOME", second.path());
    let status = within("the status", status.output()).await.unwrap();
    let told = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(
        told.contains("Another user of this computer uses port 11435"),
        "{told}"
    );
    // The first one's folder is closed to them.
    let peek = theirs("cat").arg(first.path().join("token")).output();
    let peek = within("a look", peek).await.unwrap();
    assert!(!peek.status.success());
}
