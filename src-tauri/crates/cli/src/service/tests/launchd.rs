//! What the service does with a launchd that answers as the real one does.

use super::*;
use std::{fs, os::unix::fs::PermissionsExt, process};
use tempfile::TempDir;

/// Plays `launchctl`, with the exit codes and words of macOS 15. Its folder holds what launchd knows:
///
/// - `domains`: those that exist, one a line: `system`, and `gui/N` of each user who is logged in on the screen
/// - `disabled`: the labels that `launchctl disable` was run for, behind their domain
/// - `drain`: two numbers, for the next service that is ended: to how many of `print` it is still there, and how many of
///   `bootstrap` fail after that, which takes the real one about five seconds
/// - `calls`: all that was asked
///
/// A service is a folder `DOMAIN/LABEL` with its property list, the number of its process, and how often it was started.
const LAUNCHCTL: &str = r#"#!/bin/sh
here=$(dirname "$0")
echo "$*" >>"$here/calls"
say() { printf '%s\n' "$1" >&2; }
take() { # Takes one from a number in a file; fails at 0.
    left=$(cat "$1" 2>/dev/null || echo 0)
    [ "$left" -gt 0 ] && echo $((left - 1)) >"$1"
}
start() {
    program=$(sed -n 's|.*<array>.*||; s|^[[:space:]]*<string>\(.*\)</string>$|\1|p' "$1/plist" | sed -n 2p)
    "$program" serve --wait </dev/null >/dev/null 2>&1 &
    echo $! >"$1/pid"
    echo $(($(cat "$1/runs" 2>/dev/null || echo 0) + 1)) >"$1/runs"
}
exists() { grep -qx "$1" "$here/domains"; }
verb=$1
case $verb in
print-disabled)
    printf '\n\tdisabled services = {\n'
    while read -r domain label; do
        [ "$domain" = "$2" ] && printf '\t\t"%s" => disabled\n' "$label"
    done <"$here/disabled"
    printf '\t\t"com.apple.ManagedClientAgent.enrollagent" => enabled\n\t}\n'
    exit 0 ;;
bootstrap)
    domain=$2 label=$(basename "$3" .plist) ;;
*)
    domain=${2%/*} label=${2##*/} ;;
esac
service=$here/$domain/$label
case $verb in
bootstrap)
    exists "$domain" || { say 'Bootstrap failed: 125: Domain does not support specified action'; exit 125; }
    if [ -e "$service/plist" ] || take "$here/$domain/refusals" || grep -qx "$domain $label" "$here/disabled"; then
        say 'Bootstrap failed: 5: Input/output error'
        say 'Try re-running the command as root for richer errors.'
        exit 5
    fi
    [ -e "$here/busy" ] && { rm "$here/busy"; say 'Bootstrap failed: 37: Operation already in progress'; exit 37; }
    mkdir -p "$service"
    cp "$3" "$service/plist"
    start "$service" ;;
bootout)
    exists "$domain" || { say 'Boot-out failed: 125: Domain does not support specified action'; exit 125; }
    [ -e "$service/plist" ] || { say 'Boot-out failed: 3: No such process'; exit 3; }
    kill "$(cat "$service/pid")" 2>/dev/null
    read -r printed refused <"$here/drain"
    [ -e "$service/ending" ] || { echo "$printed" >"$service/ending"; echo "$refused" >"$here/$domain/refusals"; }
    [ -e "$here/slow" ] && { say 'Boot-out failed: 36: Operation now in progress'; exit 36; }
    exit 0 ;;
print)
    if [ -e "$service/ending" ] && ! take "$service/ending"; then rm -r "$service"; fi
    if [ ! -e "$service/plist" ]; then
        say 'Bad request.'
        say "Could not find service \"$label\" in domain for user gui: ${domain##*/}"
        exit 113
    fi
    pid=$(cat "$service/pid")
    case $(ps -o stat= -p "$pid") in
    '' | Z*) [ -e "$service/ending" ] || { start "$service"; pid=; } ;;
    esac
    printf '%s = {\n\tactive count = 1\n\tpath = %s\n\ttype = LaunchAgent\n' "$2" "$service/plist"
    if [ -n "$pid" ]; then printf '\tstate = running\n'; else printf '\tstate = spawn scheduled\n'; fi
    printf '\tdefault environment = {\n\t\tPATH => /usr/bin:/bin:/usr/sbin:/sbin\n\t}\n\tpid local endpoints = {\n\t}\n'
    printf '\truns = %s\n' "$(cat "$service/runs")"
    [ -n "$pid" ] && printf '\tpid = %s\n' "$pid"
    printf '\tlast exit code = (never exited)\n}\n' ;;
esac
"#;

/// A launchd, with a user who is logged in.
struct Launchd {
    folder: TempDir,
}

impl Launchd {
    fn new() -> Self {
        let launchd = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        launchd.program("launchctl", LAUNCHCTL);
        launchd.set("domains", "system\ngui/501\n");
        launchd.set("disabled", "");
        launchd.set("drain", "0 0\n");
        launchd
    }

    fn set(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).unwrap();
    }

    fn program(&self, name: &str, script: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        // It may be running.
        if !path.exists() {
            let text = path.with_extension("sh");
            fs::write(&text, script).unwrap();
            // Another process writes it: what other tests start meanwhile inherits open files of this one, and what is open to write
            // cannot be run.
            let mut copy = process::Command::new("cp");
            let copied = copy.arg(&text).arg(&path).status().unwrap();
            assert!(copied.success(), "{copied}");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        path
    }

    /// A program that runs until it is told to end, or until its test has ended.
    fn sound(&self) -> Service {
        let script = "#!/bin/sh\ntrap 'exit 0' TERM\nwhile [ -e \"$0\" ]; do sleep 0.05; done\n";
        self.service(&self.program("sound", script))
    }

    fn crashing(&self) -> Service {
        self.service(&self.program("crashing", "#!/bin/sh\nexit 1\n"))
    }

    fn service(&self, program: &Path) -> Service {
        super::service(program.to_str().unwrap(), None)
    }

    fn manager(&self, domain: &str, patience: Duration) -> Manager {
        let file = format!("{}/dev.tierbar.serve.plist", domain.replace('/', "-"));
        Manager {
            program: self.folder.path().join("launchctl"),
            file: self.folder.path().join(file),
            domain: domain.to_owned(),
            patience,
            ..Manager::for_system(System::Launchd, domain == "system").unwrap()
        }
    }

    /// A manager without patience, over a service that runs and ends as `drain` says.
    async fn over_a_running_service(&self, drain: &str) -> Manager {
        let patient = self.patient("gui/501");
        patient.install(&self.sound()).await.unwrap();
        self.set("drain", drain);
        self.manager("gui/501", Duration::ZERO)
    }

    /// With a patience that no test here outlasts.
    fn patient(&self, domain: &str) -> Manager {
        self.manager(domain, Duration::from_secs(60))
    }

    fn calls(&self, verb: &str) -> usize {
        let calls = fs::read_to_string(self.folder.path().join("calls")).unwrap();
        let mut words = calls.lines().map(|call| call.split(' ').next());
        words.by_ref().filter(|word| *word == Some(verb)).count()
    }
}

fn running(manager: &Manager) -> u32 {
    let state = manager.state().unwrap();
    state.pid.unwrap_or_else(|| panic!("{state:?}"))
}

#[tokio::test]
async fn a_service_is_installed_and_removed() {
    let launchd = Launchd::new();
    let manager = launchd.patient("gui/501");
    // Whether there was one does not matter.
    manager.install(&launchd.sound()).await.unwrap();
    let state = manager.state().unwrap();
    assert!(state.pid.is_some(), "{state:?}");
    assert_eq!(state.restarts, Some(0));
    let mode = fs::metadata(&manager.file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
    manager.uninstall().await.unwrap();
    assert!(!manager.file.exists());
    assert_eq!(manager.state().unwrap(), State::default());
}

#[tokio::test]
async fn a_running_service_is_replaced_once_it_has_ended() {
    let launchd = Launchd::new();
    for slow in [false, true] {
        let manager = launchd.patient("gui/501");
        launchd.set("drain", "0 0\n");
        manager.install(&launchd.sound()).await.unwrap();
        let first = running(&manager);
        launchd.set("drain", "3 3\n");
        if slow {
            launchd.set("slow", "");
            launchd.set("busy", "");
        }
        let before = launchd.calls("bootstrap");
        manager.install(&launchd.sound()).await.unwrap();
        assert_ne!(running(&manager), first, "slow: {slow}");
        let tries = launchd.calls("bootstrap") - before;
        assert_eq!(tries, if slow { 5 } else { 4 }, "slow: {slow}");
        manager.uninstall().await.unwrap();
        // The plist is gone, and the service too.
        assert_eq!(manager.state().unwrap(), State::default(), "slow: {slow}");
    }
}

#[tokio::test]
async fn a_service_that_is_loaded_without_its_file_is_replaced() {
    let launchd = Launchd::new();
    let manager = launchd.patient("gui/501");
    manager.install(&launchd.sound()).await.unwrap();
    let first = running(&manager);
    fs::remove_file(&manager.file).unwrap();
    manager.install(&launchd.sound()).await.unwrap();
    assert_ne!(running(&manager), first);
    manager.uninstall().await.unwrap();
}

#[tokio::test]
async fn a_service_that_never_ends_is_reported_and_left_as_it_is() {
    let launchd = Launchd::new();
    let hasty = launchd.over_a_running_service("1000000 0\n").await;
    for done in [
        hasty.install(&launchd.sound()).await,
        hasty.uninstall().await,
    ] {
        let error = done.unwrap_err();
        assert!(
            error
                .message
                .starts_with("gui/501/dev.tierbar.serve has not ended"),
            "{error}"
        );
        assert!(hasty.file.exists());
    }
}

#[tokio::test]
async fn the_first_line_of_a_refusal_is_shown() {
    let launchd = Launchd::new();
    let hasty = launchd.over_a_running_service("0 1000000\n").await;
    let error = hasty.install(&launchd.sound()).await.unwrap_err();
    assert!(
        error
            .message
            .ends_with("failed: Bootstrap failed: 5: Input/output error"),
        "{error}"
    );
    let hint = error.hint.unwrap();
    assert!(
        hint.contains("next login") && !hint.contains("root"),
        "{hint}"
    );
}

#[tokio::test]
async fn a_disabled_service_is_named_without_waiting() {
    let launchd = Launchd::new();
    launchd.set("disabled", "gui/501 dev.tierbar.serve\n");
    let error = launchd
        .patient("gui/501")
        .install(&launchd.sound())
        .await
        .unwrap_err();
    let hint = error.hint.unwrap();
    assert!(
        hint.contains("launchctl enable gui/501/dev.tierbar.serve"),
        "{hint}"
    );
    assert_eq!(launchd.calls("bootstrap"), 1);
}

#[tokio::test]
async fn over_ssh_the_hint_is_a_login_or_the_start_of_the_computer() {
    let launchd = Launchd::new();
    launchd.set("domains", "system\n");
    let manager = launchd.patient("gui/501");
    let error = manager.install(&launchd.sound()).await.unwrap_err();
    assert!(
        error.message.contains("125: Domain does not support"),
        "{error}"
    );
    let hint = error.hint.unwrap();
    assert!(hint.contains("--before-login"), "{hint}");
    assert_eq!(launchd.calls("bootstrap"), 1);
    // It can be removed from there too.
    manager.uninstall().await.unwrap();
    assert!(!manager.file.exists());
}

#[tokio::test]
async fn a_service_that_crashes_is_counted_and_can_be_replaced() {
    let launchd = Launchd::new();
    let manager = launchd.patient("gui/501");
    manager.install(&launchd.crashing()).await.unwrap();
    // The player starts it again whenever it finds that it has ended.
    let mut states = (0..2000).map(|_| manager.state().unwrap());
    let state = states.find(|state| state.pid.is_none() && state.restarts >= Some(2));
    let state = state.unwrap();
    let lines = render_status(Some(&manager), state, None);
    assert_eq!(lines[1], "It does not run.");
    assert!(lines[2].starts_with("It was restarted "), "{lines:?}");
    manager.install(&launchd.sound()).await.unwrap();
    let (pid, again) = (running(&manager), running(&manager));
    assert_eq!(pid, again);
    manager.uninstall().await.unwrap();
}

#[tokio::test]
async fn each_user_has_a_service_of_their_own() {
    let launchd = Launchd::new();
    launchd.set("domains", "system\ngui/501\ngui/502\n");
    let (first, second) = (launchd.patient("gui/501"), launchd.patient("gui/502"));
    first.install(&launchd.sound()).await.unwrap();
    let pid = running(&first);
    launchd.set("drain", "2 2\n");
    second.install(&launchd.sound()).await.unwrap();
    second.install(&launchd.sound()).await.unwrap();
    second.uninstall().await.unwrap();
    assert_eq!(second.state().unwrap(), State::default());
    assert_eq!(running(&first), pid);
    first.uninstall().await.unwrap();
}

#[tokio::test]
async fn before_a_login_the_service_is_the_systems() {
    let launchd = Launchd::new();
    launchd.set("domains", "system\n");
    launchd.set("drain", "2 2\n");
    let manager = launchd.patient("system");
    for _ in 0..2 {
        manager.install(&launchd.sound()).await.unwrap();
    }
    let text = fs::read_to_string(&manager.file).unwrap();
    assert!(
        text.contains("<key>UserName</key>\n\t<string>ada</string>"),
        "{text}"
    );
    assert_ne!(running(&manager), process::id());
    manager.uninstall().await.unwrap();
}
