//! The process guard with real programs that behave badly.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader, Read},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
};
use tempfile::TempDir;
use tierbar_skip::skip;

struct GuardedProcess {
    child: Child,
    stdout: BufReader<ChildStdout>,
    dir: TempDir,
}

impl GuardedProcess {
    /// Runs a shell script in a folder of its own. Its processes hold the pipe `alive` open while they live.
    fn new(signal: &str, deadline: &str, script: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("alive");
        let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let script = format!("exec 9>alive\n{script}");
        // As for a program started in the background.
        let deaf = "trap '' INT QUIT HUP; exec \"$0\" \"$@\"";
        let guard = env!("CARGO_BIN_EXE_tierbar-guard");
        let mut child = Command::new("sh")
            .args(["-c", deaf, guard, signal, deadline, "sh", "-c", &script])
            .current_dir(dir.path())
            .env("TIERBAR_GUARD_LOCK", dir.path().join("lock"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdout, dir }
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Waits until the script has opened the pipe, and returns its reader.
    fn alive(&self) -> File {
        File::open(self.file("alive")).unwrap()
    }

    /// Waits until the script has moved this file into place.
    fn when_written(&self, name: &str) -> String {
        while !self.file(name).exists() {
            std::thread::yield_now();
        }
        fs::read_to_string(self.file(name)).unwrap()
    }

    /// Ends the guard's stdin, as a killed host does.
    fn leave(&mut self) {
        drop(self.child.stdin.take());
    }

    fn end(mut self) -> (Option<i32>, String, String) {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        self.stdout.read_to_string(&mut stdout).unwrap();
        let mut pipe = self.child.stderr.take().unwrap();
        pipe.read_to_string(&mut stderr).unwrap();
        (self.child.wait().unwrap().code(), stdout, stderr)
    }
}

/// Returns once all processes with the pipe open are gone.
fn gone(mut alive: File) {
    alive.read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn exit_status_and_output_are_passed_on() {
    let mut guarded = GuardedProcess::new(
        "SIGTERM",
        "60000",
        "echo a line; echo an error >&2; read nothing; exit 7",
    );
    drop(guarded.alive());
    assert!(guarded.line().starts_with("pid "));
    let (code, stdout, stderr) = guarded.end();
    assert_eq!((code, &*stdout), (Some(7), "exit 7\n"));
    assert!(
        stderr.contains("a line") && stderr.contains("an error"),
        "{stderr}"
    );
}

#[test]
fn a_lock_is_held_until_the_last_process_ends() {
    let script =
        "trap '' TERM; env >environment; mv environment written; while :; do sleep 0.01; done";
    let mut guarded = GuardedProcess::new("SIGTERM", "200", script);
    let mut alive = guarded.alive();
    let environment = guarded.when_written("written");
    assert!(!environment.contains("TIERBAR_GUARD_LOCK"), "{environment}");
    let lock = File::open(guarded.file("lock")).unwrap();
    assert!(lock.try_lock().is_err());
    guarded.leave();
    lock.lock().unwrap();
    // The lock is free only after the program: the pipe is at its end, where an open one would block.
    rustix::io::ioctl_fionbio(&alive, true).unwrap();
    assert_eq!(alive.read(&mut [0]).unwrap(), 0);
    drop(guarded);
}

#[test]
fn a_signal_is_passed_on() {
    let mut guarded = GuardedProcess::new("SIGTERM", "60000", "kill -SEGV $$");
    drop(guarded.alive());
    let pid = guarded.line();
    assert_eq!(guarded.end().1, "signal 11\n", "{pid}");
}

/// Runs the guard with a short `PATH` to its end, and returns what it and its program wrote to stderr, and the exit code.
fn run_guard(arguments: &[&str]) -> (String, Option<i32>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tierbar-guard"))
        .args(arguments)
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut text = String::new();
    let mut stderr = child.stderr.take().unwrap();
    stderr.read_to_string(&mut text).unwrap();
    (text, child.wait().unwrap().code())
}

#[test]
fn a_missing_program_is_reported_as_by_a_shell() {
    let (stderr, code) = run_guard(&["SIGTERM", "1", "/nowhere/server"]);
    assert_eq!(code, Some(127));
    assert!(
        stderr.starts_with("/nowhere/server cannot be run"),
        "{stderr}"
    );
}

#[test]
fn a_program_has_the_folders_of_packages_in_its_path() {
    let (path, code) = run_guard(&["SIGTERM", "1000", "printenv", "PATH"]);
    assert_eq!(code, Some(0), "{path}");
    let local = Path::new("/usr/local/bin").is_dir();
    assert_eq!(path.contains(":/usr/local/bin"), local, "{path}");
    assert!(path.starts_with("/usr/bin:/bin"), "{path}");
}

#[test]
fn when_the_host_is_gone_the_program_gets_its_signal() {
    let script =
        "trap 'echo interrupted > signal; exit 3' INT; touch ready; while :; do sleep 0.01; done";
    let mut guarded = GuardedProcess::new("SIGINT", "60000", script);
    let alive = guarded.alive();
    guarded.when_written("ready");
    guarded.leave();
    gone(alive);
    assert!(guarded.file("signal").exists());
    assert_eq!(guarded.line().split(' ').next(), Some("pid"));
    assert_eq!(guarded.end().1, "exit 3\n");
}

#[test]
fn a_program_that_ignores_the_signal_is_killed_with_children() {
    let script = "trap '' TERM; sh -c 'trap \"\" TERM; echo $$ > a; mv a ready; while :; do sleep 1; done' & wait";
    let mut guarded = GuardedProcess::new("SIGTERM", "100", script);
    let alive = guarded.alive();
    guarded.when_written("ready");
    guarded.leave();
    gone(alive);
    assert!(guarded.line().starts_with("pid "));
    assert_eq!(guarded.end().1, "signal 9\n");
}

#[test]
fn a_program_that_ends_leaves_nothing_behind() {
    let script = "sh -c 'trap \"\" TERM; echo $$ > a; mv a ready; while :; do sleep 1; done' & while [ ! -e ready ]; do sleep 0.01; done; exit 5";
    let guarded = GuardedProcess::new("SIGTERM", "100", script);
    gone(guarded.alive());
    assert_eq!(guarded.end().0, Some(5));
}

/// Elsewhere a process that leaves the group is not found.
fn adopts() -> bool {
    Path::new("/proc/self/stat").exists()
}

#[test]
fn a_process_that_leaves_the_group_is_found_by_adoption() {
    if !adopts() {
        return skip("processes that leave their group are adopted on Linux alone");
    }
    let script = "setsid sh -c 'trap \"\" TERM HUP; echo $$ > a; mv a ready; while :; do sleep 1; done' & wait";
    let mut guarded = GuardedProcess::new("SIGTERM", "60000", script);
    let alive = guarded.alive();
    guarded.when_written("ready");
    guarded.leave();
    gone(alive);
}

#[test]
fn a_killed_guard_ends_its_program_where_supported() {
    if !adopts() {
        return skip("processes that leave their group are adopted on Linux alone");
    }
    let mut guarded = GuardedProcess::new("SIGTERM", "60000", "touch ready; exec sleep 1000");
    let alive = guarded.alive();
    guarded.when_written("ready");
    guarded.child.kill().unwrap();
    gone(alive);
}
