//! Tierbar as an appliance: the service, what doctor finds, completions and the manual page.

use reqwest::Method;
use serde_json::json;
use std::{
    fs::{self, Permissions},
    net::TcpListener,
    os::unix::fs::{PermissionsExt, symlink},
};
use tierbar_tests::{
    binaries::{STARTER, program},
    serving::{Data, alive},
    wait::{until, within},
};
use tokio::process::Command;

/// Does what systemd does with a user's unit: starts and ends what it says, and tells the process.
const SYSTEMCTL: &str = r#"#!/bin/sh
unit="$HOME/.config/systemd/user/tierbar.service"
echo "$*" >> "$HOME/calls"
case "$*" in
"--user enable --now tierbar.service")
    environment=$(sed -n 's/^Environment=//p' "$unit")
    start=$(sed -n 's/^ExecStart=//p' "$unit")
    (eval "exec env $environment $start") </dev/null >/dev/null 2>&1 &
    echo $! > "$HOME/pid" ;;
"--user disable --now tierbar.service")
    pid=$(cat "$HOME/pid")
    kill "$pid"
    while readlink "/proc/$pid/exe" >/dev/null 2>&1; do sleep 0.05; done
    rm "$HOME/pid" ;;
"--user show tierbar.service"*)
    echo "MainPID=$(cat "$HOME/pid" 2>/dev/null || echo 0)"
    echo NRestarts=2 ;;
esac
"#;

fn with_systemctl(data: Data) -> Data {
    let folder = data.path().join("bin");
    fs::create_dir(&folder).unwrap();
    let program = folder.join("systemctl");
    fs::write(&program, SYSTEMCTL).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", folder.display());
    let config = data.path().join("home/.config").display().to_string();
    data.with("PATH", &path).with("XDG_CONFIG_HOME", &config)
}

#[cfg_attr(target_vendor = "apple", ignore = "launchd runs services there")]
#[tokio::test]
async fn a_service_is_installed_shown_and_removed() {
    let data = with_systemctl(Data::empty("listen = \"127.0.0.1:0\"\n"));
    let unit = data
        .path()
        .join("home/.config/systemd/user/tierbar.service");
    let (code, told, _) = data.run(&["service", "status"]).await;
    assert_eq!(code, Some(0));
    assert!(told.contains("No service is installed"), "{told}");
    // Without consent.
    let (code, _, stderr) = data.run(&["service", "install"]).await;
    assert_eq!(code, Some(5), "{stderr}");
    assert!(stderr.contains("--yes") && !unit.exists(), "{stderr}");

    let (code, told, stderr) = data.run(&["service", "install", "--yes"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(told.contains("Tierbar is running at http://"), "{told}");
    let running = tierbar_host::find_running_host(Some(data.path())).unwrap();
    let text = fs::read_to_string(&unit).unwrap();
    assert!(text.contains("Restart=on-failure"), "{text}");
    let (_, told, _) = data.run(&["service", "status"]).await;
    for part in [
        format!("It runs as process {}", running.pid),
        "It was restarted 2 times after a crash.".to_owned(),
    ] {
        assert!(told.contains(&part), "{told}");
    }
    let (code, _, stderr) = data
        .run(&["service", "install", "--before-login", "--yes"])
        .await;
    assert_eq!(code, Some(5), "{stderr}");
    assert!(stderr.contains("is already installed"), "{stderr}");
    // Installed again, it is the same service with another process.
    let (code, _, stderr) = data.run(&["service", "install", "--yes"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    let again = until("another process", async || {
        tierbar_host::find_running_host(Some(data.path())).filter(|now| now.pid != running.pid)
    })
    .await;
    assert!(!alive(running.pid));

    let (code, told, stderr) = data.run(&["service", "uninstall", "--yes"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(told.contains("Models and settings stay"), "{told}");
    assert!(!unit.exists() && !alive(again.pid));
    assert!(data.path().join("config.toml").exists());
    let calls = fs::read_to_string(data.path().join("home/calls")).unwrap();
    assert!(
        calls.trim_end().ends_with("--user daemon-reload"),
        "{calls}"
    );
}

#[cfg_attr(target_vendor = "apple", ignore = "launchd runs services there")]
#[tokio::test]
async fn a_service_takes_the_place_of_a_tierbar_that_ends() {
    let data = with_systemctl(Data::empty("listen = \"127.0.0.1:0\"\n"));
    let host = data.serve().await;
    let (code, told, stderr) = data.run(&["service", "install", "--yes"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    let outside = format!("Tierbar already runs as process {}", host.pid());
    assert!(told.contains(&outside), "{told}");
    let (_, told, _) = data.run(&["service", "status"]).await;
    assert!(told.contains("It waits as process "), "{told}");
    // It waits, and does not try again and again.
    let service = fs::read_to_string(data.path().join("home/pid")).unwrap();
    let service: u32 = service.trim().parse().unwrap();
    assert!(alive(service));

    host.kill().await;
    let running = until("the service", async || {
        tierbar_host::find_running_host(Some(data.path()))
    })
    .await;
    assert_eq!(running.pid, service);
    let (code, _, stderr) = data.run(&["service", "uninstall", "--yes"]).await;
    assert_eq!(code, Some(0), "{stderr}");
    assert!(!alive(service));
}

#[tokio::test]
async fn a_missing_worker_is_reported_until_it_is_back() {
    let data = Data::new(&format!("[tiers.fast]\nmodel = \"{STARTER}\"\n"));
    let worker = data.path().join("tierbar-worker");
    symlink(program("tierbar-worker"), &worker).unwrap();
    let data = data.with("TIERBAR_WORKER", worker.to_str().unwrap());
    let host = data.serve().await;
    fs::remove_file(&worker).unwrap();
    let refused = host.chat("fast", json!({"max_tokens": 1})).await;
    assert_eq!(refused.status(), 503);
    let text = refused.text().await.unwrap();
    assert!(text.contains("may have been moved"), "{text}");
    symlink(program("tierbar-worker"), &worker).unwrap();
    let (status, body) = host
        .ask(Method::POST, "/tierbar/v1/tiers/fast/start", None)
        .await;
    assert_eq!(status, 200, "{body}");
    let answered = host.chat("fast", json!({"max_tokens": 1})).await;
    assert_eq!(answered.status(), 200);
}

#[tokio::test]
async fn doctor_names_each_fault_with_its_remedy() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let data = Data::empty(&format!(
        "listen = \"{address}\"\n[tiers.fast]\nmodel = \"{STARTER}\"\n"
    ));
    let (code, told, stderr) = data.run(&["doctor"]).await;
    assert_eq!(code, Some(1), "{told}");
    for (what, remedy) in [
        (format!("✗ {address} is taken"), "quit that program"),
        ("✗ the model of fast is missing".to_owned(), "download it"),
    ] {
        let mut lines = told.lines().skip_while(|line| !line.starts_with(&what));
        let remedied = lines.nth(1).is_some_and(|line| line.contains(remedy));
        assert!(remedied, "{what}\n{told}");
    }
    assert!(stderr.contains("need your attention"), "{stderr}");

    drop(taken);
    let sound = Data::new(&format!("[tiers.fast]\nmodel = \"{STARTER}\"\n"));
    fs::set_permissions(sound.path(), Permissions::from_mode(0o700)).unwrap();
    let host = sound.serve().await;
    let (code, told, stderr) = sound.run(&["doctor"]).await;
    assert_eq!(code, Some(0), "{told}{stderr}");
    assert!(told.contains(&host.url) && !told.contains('✗'), "{told}");
}

#[tokio::test]
async fn shells_and_man_read_what_is_generated() {
    let data = Data::empty("");
    let (code, page, _) = data.run(&["man"]).await;
    assert_eq!(code, Some(0));
    for part in [".TH tierbar", "diagnose", "service"] {
        assert!(page.contains(part), "{part}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let (code, script, _) = data.run(&["completions", shell]).await;
        assert_eq!(code, Some(0));
        assert!(script.contains("TIERBAR_COMPLETE"), "{shell}");
    }
    // The one shell that is on every machine completes with it.
    let (_, script, _) = data.run(&["completions", "bash"]).await;
    let complete = format!(
        "{script}\nCOMP_WORDS=(tierbar di) COMP_CWORD=1 COMP_TYPE=9\n_clap_complete_tierbar tierbar di tierbar\necho \"${{COMPREPLY[@]}}\""
    );
    // The script asks the program that is found.
    let tierbar = program("tierbar");
    let path = format!("{}:{}", tierbar.parent().unwrap().display(), env!("PATH"));
    let mut bash = Command::new("bash");
    let bash = bash.args(["-c", &complete]).env("PATH", path).output();
    let bash = within("bash", bash).await.unwrap();
    let offered = String::from_utf8(bash.stdout).unwrap();
    assert_eq!(offered.trim(), "diagnose", "{:?}", bash.stderr);
    let (code, _, stderr) = data.run(&["completions", "basic"]).await;
    assert_eq!(code, Some(2));
    assert!(stderr.contains("zsh"), "{stderr}");
}
