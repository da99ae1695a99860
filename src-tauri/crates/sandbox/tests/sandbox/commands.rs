//! Work, and its limits.

use crate::{
    launcher,
    place::{Place, skip_unsandboxed},
};
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    process::{Command, Stdio},
    sync::mpsc::channel,
    thread,
};
use tierbar_sandbox::{End, NotRun, Request, Stop, report, run};

#[test]
fn ordinary_commands_work() {
    let Some(place) = Place::of_ordinary_user() else {
        return skip_unsandboxed();
    };
    let lines = r#"
        set -e
        mkdir -p deep/er && echo one > deep/er/file && cp deep/er/file two && mv two three
        printf 'b\na\n' | sort | tr -d '\n' && echo
        (sleep 0.01; echo later) & wait
        cat three | while read word; do echo "read $word"; done
        scratch=$(mktemp) && echo scratch > "$scratch" && cat "$scratch" && test -d "$HOME"
        ln -s three link && cat link && touch three && find . -name 'fi*' | wc -l | tr -d ' '
        echo error >&2
        exit 3
    "#;
    let finished = place.run(lines);
    assert_eq!(finished.end, End::Exited { code: 3 }, "{finished:?}");
    let lines: Vec<_> = finished.stdout.text.lines().collect();
    assert_eq!(
        lines,
        ["ab", "later", "read one", "scratch", "one", "1"],
        "{finished:?}"
    );
    assert_eq!(finished.stderr.text, "error\n");
    assert!(place.work.join("three").is_file());
}

#[test]
fn processes_that_end_while_others_begin_break_nothing_off() {
    for place in [Place::new(), Place::of_ordinary_user()] {
        let Some(place) = place else {
            return skip_unsandboxed();
        };
        // Debian's `sh` gives up when the signal that a child has ended breaks off a fork.
        let finished = place
            .run("i=0; while [ $i -lt 300 ]; do true | true | true; i=$((i + 1)); done; echo $i");
        assert_eq!(finished.stdout.text, "300\n", "{finished:?}");
    }
}

#[test]
fn a_folder_to_read_is_not_written() {
    let Some(mut place) = Place::new() else {
        return skip_unsandboxed();
    };
    fs::write(place.work.join("file"), "kept").unwrap();
    place.policy.read = std::mem::take(&mut place.policy.write);
    let finished =
        place.run("cat file; echo x > file; rm file; mkdir new; echo x > new; : >> file");
    assert!(finished.stdout.text.starts_with("kept"), "{finished:?}");
    assert_eq!(fs::read(place.work.join("file")).unwrap(), b"kept");
    assert_eq!(fs::read_dir(&place.work).unwrap().count(), 1);
}

#[test]
fn a_command_that_is_not_there_says_so() {
    let Some(place) = Place::new() else {
        return skip_unsandboxed();
    };
    let mut request = Request::shell("", place.work.clone(), place.policy.clone());
    request.arguments = vec!["no-such-program".into()];
    let finished = run(launcher(), &request, &Stop::default()).unwrap();
    assert_eq!(finished.end, End::Exited { code: 127 }, "{finished:?}");
    assert!(
        finished.stderr.text.contains("no-such-program"),
        "{finished:?}"
    );
}

#[test]
fn a_command_sees_a_short_list_of_the_environment() {
    let Some(place) = Place::new() else {
        return skip_unsandboxed();
    };
    let seen = place.run("env").stdout.text;
    let names = seen.lines().filter_map(|line| line.split_once('='));
    for (name, _) in names {
        let ours = [
            "PATH",
            "HOME",
            "TMPDIR",
            "PAGER",
            "GIT_TERMINAL_PROMPT",
            "CI",
            "LANG",
            "LANGUAGE",
            "TERM",
            "TZ",
        ];
        // A shell adds some of its own.
        let shells = ["PWD", "OLDPWD", "SHLVL", "_"];
        assert!(
            ours.contains(&name) || shells.contains(&name) || name.starts_with("LC_"),
            "{name}"
        );
    }
}

#[test]
fn an_endless_command_is_ended() {
    let Some(mut place) = Place::new() else {
        return skip_unsandboxed();
    };
    place.policy.limits.seconds = 1;
    let finished = place.run("trap '' TERM INT HUP; echo begun; while :; do :; done");
    assert_eq!(finished.end, End::TimeLimit, "{finished:?}");
    assert_eq!(finished.stdout.text, "begun\n");
}

#[test]
fn a_gigabyte_of_output_is_cut() {
    let Some(mut place) = Place::new() else {
        return skip_unsandboxed();
    };
    place.policy.limits.kept_output_bytes = 100;
    place.policy.limits.output_bytes = 4 << 20;
    let finished = place.run("yes | head -c 1000000000");
    assert_eq!(finished.end, End::OutputLimit, "{finished:?}");
    assert!(finished.stdout.text.len() < 200, "{finished:?}");
    assert!(
        finished.stdout.text.contains("bytes left out"),
        "{finished:?}"
    );
}

#[test]
fn a_stopped_command_is_ended() {
    let Some(place) = Place::new() else {
        return skip_unsandboxed();
    };
    let stop = Stop::default();
    let line = ": > begun; while :; do sleep 1; done";
    let request = Request::shell(line, place.work.clone(), place.policy.clone());
    let (sender, finished) = channel();
    thread::spawn({
        let stop = stop.clone();
        move || {
            let _ = sender.send(run(launcher(), &request, &stop).unwrap());
        }
    });
    while !place.work.join("begun").exists() {
        let early = finished.try_recv();
        assert!(early.is_err(), "{early:?}");
        thread::yield_now();
    }
    stop.stop();
    assert_eq!(finished.recv().unwrap().end, End::Stopped);
    // One that was stopped before it started.
    let request = Request::shell("sleep 100", place.work.clone(), place.policy.clone());
    assert_eq!(run(launcher(), &request, &stop).unwrap().end, End::Stopped);
}

#[test]
fn what_a_command_left_running_is_ended_with_it() {
    let Some(place) = Place::new() else {
        return skip_unsandboxed();
    };
    let finished = place.run("(while :; do sleep 1; done) & echo done");
    assert_eq!(finished.end, End::Exited { code: 0 }, "{finished:?}");
    assert_eq!(finished.stdout.text, "done\n");
}

#[test]
fn a_large_file_is_cut() {
    let Some(mut place) = Place::new() else {
        return skip_unsandboxed();
    };
    place.policy.limits.file_bytes = 1 << 20;
    let finished = place.run("head -c 10000000 /dev/zero > large; echo $?");
    assert_ne!(finished.stdout.text, "0\n");
    let size = fs::metadata(place.work.join("large")).unwrap().len();
    assert!(size <= 1 << 20, "{size}");
}

#[test]
fn a_request_that_shows_the_token_is_refused() {
    let Some(mut place) = Place::new() else {
        return skip_unsandboxed();
    };
    place.policy.write.push(place.hidden.clone());
    let request = Request::shell("true", place.work.clone(), place.policy.clone());
    let refused = run(launcher(), &request, &Stop::default());
    assert!(matches!(refused, Err(NotRun::Policy(_))), "{refused:?}");
    let long = "x".repeat(40_000);
    let request = Request::shell(&long, place.work.clone(), place.policy.clone());
    let refused = run(launcher(), &request, &Stop::default());
    assert!(matches!(refused, Err(NotRun::TooLong(_))), "{refused:?}");
}

#[test]
fn a_command_without_a_folder_starts_in_one_of_its_own() {
    let Some(place) = Place::new() else {
        return skip_unsandboxed();
    };
    let line = r#"test "$(pwd)" = "$HOME" && echo kept > file && cat file && pwd"#;
    let request = Request {
        folder: None,
        ..Request::shell(line, place.work.clone(), place.policy.clone())
    };
    let finished = run(launcher(), &request, &Stop::default()).unwrap();
    assert_eq!(finished.end, End::Exited { code: 0 }, "{finished:?}");
    let text = finished.stdout.text.trim_end();
    let folder = text.strip_prefix("kept\n").unwrap();
    assert!(!Path::new(folder).exists(), "{folder}");
}

#[test]
fn a_server_speaks_with_its_host_until_its_input_ends() {
    let Some(place) = Place::new() else {
        return skip_unsandboxed();
    };
    let line = r#"
        echo "$NAMED and ${OTHER-nothing}"
        while read word; do echo "got $word"; done
        cat ../hidden/token
        echo bye >&2
        exit 3
    "#;
    let request = Request {
        variables: vec!["NAMED".to_owned()],
        speaks: true,
        ..Request::shell(line, place.work.clone(), place.policy.clone())
    };
    let program = launcher();
    let mut launcher = Command::new(program)
        .envs([("NAMED", "seen"), ("OTHER", "secret")])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = launcher.stdin.take().unwrap();
    let mut stdout = BufReader::new(launcher.stdout.take().unwrap()).lines();
    let sent = request.line(program).unwrap();
    stdin.write_all(sent.as_bytes()).unwrap();
    assert_eq!(stdout.next().unwrap().unwrap(), "seen and nothing");
    for word in ["one", "two"] {
        stdin.write_all(format!("{word}\n").as_bytes()).unwrap();
        assert_eq!(stdout.next().unwrap().unwrap(), format!("got {word}"));
    }
    drop(stdin);
    assert!(stdout.next().is_none());
    let mut text = String::new();
    let mut stderr = launcher.stderr.take().unwrap();
    stderr.read_to_string(&mut text).unwrap();
    launcher.wait().unwrap();
    let finished = report(&text).unwrap();
    assert_eq!(finished.end, End::Exited { code: 3 });
    assert!(finished.stderr.text.contains("bye"), "{finished:?}");
}
