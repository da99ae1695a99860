//! What systemd and launchd are told, and what their answers mean.

use super::{manager::*, *};

mod launchd;

fn service(program: &str, home: Option<&str>) -> Service {
    Service {
        program: program.into(),
        home: home.map(PathBuf::from),
        user: "ada".to_owned(),
    }
}

fn manager(system: System, before_login: bool) -> Manager {
    Manager::for_system(system, before_login).unwrap()
}

#[test]
fn a_unit_restarts_after_a_crash_and_survives_a_workers_end() {
    let text = manager(System::Systemd, false).text(&service("/opt/tierbar", None));
    assert!(
        text.contains("\nExecStart=\"/opt/tierbar\" serve --wait\n"),
        "{text}"
    );
    for line in [
        "Restart=on-failure",
        "OOMPolicy=continue",
        "WantedBy=default.target",
    ] {
        assert!(text.lines().any(|each| each == line), "{line} in {text}");
    }
    assert!(!text.contains("User="), "{text}");
    let text = manager(System::Systemd, true).text(&service("/opt/tierbar", None));
    assert!(
        text.contains("\nUser=ada\n") && text.contains("WantedBy=multi-user.target"),
        "{text}"
    );
}

#[test]
fn a_units_paths_are_quoted() {
    let odd = service("/a b/50% \"x\" $HOME\\t", Some("/data $1 100%"));
    let text = manager(System::Systemd, false).text(&odd);
    assert!(
        text.contains(r#"ExecStart="/a b/50%% \"x\" $$HOME\\t" serve --wait"#),
        "{text}"
    );
    assert!(
        text.contains(r#"Environment="TIERBAR_HOME=/data $1 100%%""#),
        "{text}"
    );
}

#[test]
fn nothing_begins_a_line_of_its_own() {
    assert!(service("/a b/%\"\\", Some("/dätä")).check().is_ok());
    for odd in [
        "a\rExecStartPre=x",
        "a\nb",
        "a\u{b}b",
        "a\u{85}b",
        "a\u{1b}b",
    ] {
        let mut user = service("/opt/tierbar", None);
        user.user = odd.to_owned();
        for service in [service(odd, None), service("/t", Some(odd)), user] {
            let error = service.check().unwrap_err();
            assert_eq!(error.code, Code::BadRequest, "{odd:?}");
            assert!(!error.message.contains(char::is_control), "{error}");
        }
    }
}

#[test]
fn a_property_list_says_what_launchd_has_to_run_unthrottled() {
    let odd = service("/A & B/<Tierbar>.app/tierbar", Some("/Volumes/R&D"));
    let text = manager(System::Launchd, true).text(&odd);
    let read =
        "import json, plistlib, sys; print(json.dumps(plistlib.loads(sys.argv[1].encode())))";
    let mut python = std::process::Command::new("python3");
    let made = python.args(["-c", read, &text]).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    assert_eq!(
        serde_json::from_slice::<serde_json::Value>(&made.stdout).unwrap(),
        json!({
            "Label": "dev.tierbar.serve",
            "ProgramArguments": ["/A & B/<Tierbar>.app/tierbar", "serve", "--wait"],
            "EnvironmentVariables": {"TIERBAR_HOME": "/Volumes/R&D"},
            "UserName": "ada",
            "RunAtLoad": true,
            "KeepAlive": {"SuccessfulExit": false},
            "ProcessType": "Interactive",
        })
    );
}

#[test]
fn the_system_is_told_to_start_and_stop_it() {
    let joined = |commands: Vec<Vec<String>>| -> Vec<String> {
        commands.iter().map(|command| command.join(" ")).collect()
    };
    let systemd = manager(System::Systemd, false);
    assert_eq!(
        joined(systemd.starting()),
        [
            "systemctl --user daemon-reload",
            "systemctl --user enable --now tierbar.service"
        ]
    );
    assert_eq!(
        systemd.stopping().join(" "),
        "systemctl --user disable --now tierbar.service"
    );
    let launchd = manager(System::Launchd, true);
    assert_eq!(
        joined(launchd.starting()),
        ["launchctl bootstrap system /Library/LaunchDaemons/dev.tierbar.serve.plist"]
    );
    assert_eq!(
        launchd.stopping().join(" "),
        "launchctl bootout system/dev.tierbar.serve"
    );
}

#[test]
fn answers_of_both_systems_are_understood() {
    let state = |pid, restarts| State { pid, restarts };
    assert_eq!(
        shown_by_systemd("MainPID=812\nNRestarts=2\n"),
        state(Some(812), Some(2))
    );
    assert_eq!(
        shown_by_systemd("MainPID=0\nNRestarts=0\n"),
        state(None, Some(0))
    );
    let print = "gui/501/dev.tierbar.serve = {\n\tactive count = 1\n\tstate = running\n\tpid = 812\n\truns = 3\n}";
    assert_eq!(shown_by_launchd(print), state(Some(812), Some(2)));
    assert_eq!(shown_by_launchd(""), State::default());
}

#[test]
fn each_state_is_said_in_a_sentence() {
    let systemd = manager(System::Systemd, true);
    let running = RunningHost {
        pid: 7,
        version: "0.1.0".to_owned(),
        url: "http://127.0.0.1:11435".to_owned(),
        token: String::new(),
        kind: tierbar_host::HostKind::Serve,
    };
    let file = "The service is installed as /etc/systemd/system/tierbar.service.";
    let state = |pid, restarts| State { pid, restarts };
    assert_eq!(
        render_status(Some(&systemd), state(Some(7), Some(1)), Some(&running)),
        [
            file,
            "It runs as process 7, at http://127.0.0.1:11435.",
            "It was restarted once after a crash."
        ]
    );
    assert_eq!(
        render_status(Some(&systemd), State::default(), None),
        [file, "It does not run."]
    );
    assert_eq!(
        render_status(None, State::default(), Some(&running)),
        [
            "No service is installed. To install one, run: tierbar service install",
            "Tierbar runs outside the service, as process 7, at http://127.0.0.1:11435."
        ]
    );
    assert_eq!(
        render_status(Some(&systemd), state(Some(8), Some(3)), Some(&running))[1..],
        [
            "It waits as process 8: Tierbar runs outside the service, as process 7, at http://127.0.0.1:11435. \
             When that ends, the service takes its place.",
            "It was restarted 3 times after a crash."
        ]
    );
}
