//! systemd and launchd: what they are told, and what they say.

use super::{
    definition::{LABEL, Service},
    nonempty_variable,
};
use std::{
    fs::{self, Permissions},
    io::{self, ErrorKind},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};
use tierbar_core::{Code, Error};
use tierbar_host::launchd;
use tokio::time::sleep;

/// What runs services on a system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum System {
    Systemd,
    Launchd,
}

/// Whether it runs, as far as the system says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) pid: Option<u32>,
    pub(super) restarts: Option<u32>,
}

/// The place of Tierbar's service in a system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Manager {
    pub(super) system: System,
    pub(super) before_login: bool,
    pub(super) file: PathBuf,
    /// launchd's domain of the user.
    pub(super) domain: String,
    /// Whose commands these are.
    pub(super) program: PathBuf,
    /// How long launchd may take to end a service and to accept the next.
    pub(super) patience: Duration,
}

/// A command that has failed.
struct Failure {
    code: Option<i32>,
    error: Error,
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        failure.error
    }
}

const UNIT: &str = "tierbar.service";

/// launchd ends a process that ignores SIGTERM after 20 s, and refuses its label for about 5 s more.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(250);

// Exit codes of `launchctl`; `launchctl error CODE` explains them.
/// "No such process", and "Could not find specified service".
const NOT_LOADED: [i32; 2] = [3, 113];
/// "Operation now in progress": the service is still ending.
const ENDING: i32 = 36;
/// "Input/output error", which a label gets whose last service is still ending, and "Operation already in progress".
const BUSY: [i32; 3] = [5, ENDING, 37];
/// "Could not find specified domain", and "Domain does not support specified action": the user is not logged in on the screen.
const NO_LOGIN: [i32; 2] = [112, 125];

impl Manager {
    pub(super) fn for_system(system: System, before_login: bool) -> Result<Self, Error> {
        let homeless = "HOME is not set, so there is no place for the service";
        let home = nonempty_variable("HOME");
        let home = home.ok_or_else(|| Error::new(Code::NotFound, homeless))?;
        let config = nonempty_variable("XDG_CONFIG_HOME")
            .map_or_else(|| Path::new(&home).join(".config"), PathBuf::from);
        let (home, agent) = (Path::new(&home), format!("{LABEL}.plist"));
        let file = match (system, before_login) {
            (System::Systemd, false) => config.join("systemd/user").join(UNIT),
            (System::Systemd, true) => Path::new("/etc/systemd/system").join(UNIT),
            (System::Launchd, false) => home.join("Library/LaunchAgents").join(agent),
            (System::Launchd, true) => Path::new("/Library/LaunchDaemons").join(agent),
        };
        let domain = if before_login {
            "system".to_owned()
        } else {
            launchd::user_domain()
        };
        let program = match system {
            System::Systemd => "systemctl",
            System::Launchd => "launchctl",
        };
        Ok(Self {
            system,
            before_login,
            file,
            domain,
            program: program.into(),
            patience: PATIENCE,
        })
    }

    /// What to know before it is installed.
    pub(super) fn notes(&self) -> &'static [&'static str] {
        match (self.system, self.before_login) {
            (System::Systemd, false) => {
                &["Without a login, it stops. To keep it running then, run: loginctl enable-linger"]
            }
            (System::Launchd, true) => {
                &["Before a login, the Keychain is locked: keys of cloud services cannot be read."]
            }
            _ => &[],
        }
    }

    pub(super) fn log_command(&self) -> &'static str {
        match (self.system, self.before_login) {
            (System::Systemd, false) => "journalctl --user -u tierbar",
            (System::Systemd, true) => "journalctl -u tierbar",
            (System::Launchd, _) => "tierbar log",
        }
    }

    pub(super) fn text(&self, service: &Service) -> String {
        match self.system {
            System::Systemd => service.unit(self.before_login),
            System::Launchd => service.plist(self.before_login),
        }
    }

    /// Writes the service's file, and starts it now and from now on, in place of an older one.
    pub(super) async fn install(&self, service: &Service) -> Result<(), Error> {
        self.stop().await?;
        let folder = self.file.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&self.file, self.text(service)))
            // launchd refuses a file that a group may write, which some umasks allow.
            .and_then(|()| fs::set_permissions(&self.file, Permissions::from_mode(0o644)))
            .map_err(|error| self.denied(&error))?;
        for command in self.starting() {
            match self.system {
                System::Systemd => drop(self.run(&command)?),
                System::Launchd => self.bootstrap(&command).await?,
            }
        }
        Ok(())
    }

    /// Ends the service, and removes its file.
    pub(super) async fn uninstall(&self) -> Result<(), Error> {
        self.stop().await?;
        fs::remove_file(&self.file).map_err(|error| self.denied(&error))?;
        if self.system == System::Systemd {
            self.run(&self.systemctl(&["daemon-reload"]))?;
        }
        Ok(())
    }

    fn denied(&self, error: &io::Error) -> Error {
        let message = format!("{}: {error}", self.file.display());
        let failed = Error::new(Code::Storage, message);
        if error.kind() == ErrorKind::PermissionDenied {
            failed.hint("run it with sudo")
        } else {
            failed
        }
    }

    /// Ends it, and does not start it again. What does not run is no error.
    async fn stop(&self) -> Result<(), Error> {
        if self.system == System::Systemd {
            if self.file.exists() {
                self.run(&self.stopping())?;
            }
            return Ok(());
        }
        // Without its file, a service may still be loaded.
        if let Err(failure) = self.run(&self.stopping()) {
            match failure.code {
                Some(ENDING) => {}
                Some(code) if NOT_LOADED.contains(&code) || NO_LOGIN.contains(&code) => {
                    return Ok(());
                }
                _ => return Err(failure.into()),
            }
        }
        // launchd answers before the service has ended.
        let begun = Instant::now();
        while self.run(&self.printing()).is_ok() {
            if begun.elapsed() >= self.patience {
                let seconds = self.patience.as_secs();
                let message = format!("{} has not ended within {seconds} s", self.target());
                let hint = "wait a minute, and run the command again";
                return Err(Error::new(Code::Internal, message).hint(hint));
            }
            sleep(LOOK).await;
        }
        Ok(())
    }

    /// Loads the service, once launchd has forgotten an older one.
    async fn bootstrap(&self, command: &[String]) -> Result<(), Error> {
        let begun = Instant::now();
        loop {
            let Err(failure) = self.run(command) else {
                return Ok(());
            };
            let is_busy = failure.code.is_some_and(|code| BUSY.contains(&code));
            let hint = if failure.code.is_some_and(|code| NO_LOGIN.contains(&code)) {
                "log in on this Mac's screen, and it starts; for a start before a login, run \
                 `tierbar service uninstall`, then `sudo tierbar service install --before-login`"
                    .to_owned()
            } else if self.is_disabled() {
                format!(
                    "the service was disabled: run `launchctl enable {}`",
                    self.target()
                )
            } else if is_busy && begun.elapsed() >= self.patience {
                "run the command again; otherwise it starts at the next login".to_owned()
            } else if is_busy {
                sleep(LOOK).await;
                continue;
            } else {
                return Err(failure.into());
            };
            return Err(failure.error.hint(hint));
        }
    }

    /// Whether `launchctl disable` keeps the service from being loaded, which launchd reports as an input/output error.
    fn is_disabled(&self) -> bool {
        let command = to_strings(&["launchctl", "print-disabled", &self.domain]);
        self.run(&command)
            .is_ok_and(|listed| launchd::is_disabled(&listed, LABEL))
    }

    /// Runs a command of the system, and returns what it prints.
    fn run(&self, command: &[String]) -> Result<String, Failure> {
        let shown = command.join(" ");
        let arguments = command.iter().skip(1);
        let done = Command::new(&self.program).args(arguments).output();
        let done = done.map_err(|error| {
            let failed = Error::new(Code::NotFound, format!("`{shown}` cannot be run: {error}"));
            let hint = "without a service manager, run `tierbar serve` from your startup scripts";
            Failure {
                code: None,
                error: failed.hint(hint),
            }
        })?;
        if done.status.success() {
            return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
        }
        let text = String::from_utf8_lossy(&done.stderr);
        // launchctl's second line suggests root, which does not help.
        let why = text.trim().lines().next().unwrap_or("it gives no reason");
        let failed = Error::new(Code::Internal, format!("`{shown}` failed: {why}"));
        let says = |words: [&str; 2]| words.iter().any(|word| why.contains(word));
        let error = if says(["not been booted with systemd", "Failed to connect to bus"]) {
            failed
                .hint("systemd is not running here: run `tierbar serve` from your startup scripts")
        } else if says(["ermission", "not permitted"]) || why.contains("authentication") {
            failed.hint("run it with sudo")
        } else {
            failed
        };
        Err(Failure {
            code: done.status.code(),
            error,
        })
    }

    pub(super) fn state(&self) -> Result<State, Error> {
        Ok(match self.system {
            System::Systemd => {
                let show = ["show", UNIT, "--property=MainPID,NRestarts"];
                shown_by_systemd(&self.run(&self.systemctl(&show))?)
            }
            // What is not loaded is an error there.
            System::Launchd => self
                .run(&self.printing())
                .map(|text| shown_by_launchd(&text))
                .unwrap_or_default(),
        })
    }

    pub(super) fn starting(&self) -> Vec<Vec<String>> {
        match self.system {
            System::Systemd => vec![
                self.systemctl(&["daemon-reload"]),
                self.systemctl(&["enable", "--now", UNIT]),
            ],
            System::Launchd => {
                let file = self.file.to_string_lossy();
                vec![to_strings(&["launchctl", "bootstrap", &self.domain, &file])]
            }
        }
    }

    pub(super) fn stopping(&self) -> Vec<String> {
        match self.system {
            System::Systemd => self.systemctl(&["disable", "--now", UNIT]),
            System::Launchd => to_strings(&["launchctl", "bootout", &self.target()]),
        }
    }

    fn printing(&self) -> Vec<String> {
        to_strings(&["launchctl", "print", &self.target()])
    }

    fn target(&self) -> String {
        format!("{}/{LABEL}", self.domain)
    }

    fn systemctl(&self, arguments: &[&str]) -> Vec<String> {
        let mut all = to_strings(&["systemctl"]);
        all.extend((!self.before_login).then(|| "--user".to_owned()));
        all.extend(to_strings(arguments));
        all
    }
}

fn to_strings(all: &[&str]) -> Vec<String> {
    all.iter().copied().map(str::to_owned).collect()
}

pub(super) fn shown_by_systemd(text: &str) -> State {
    let property = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.strip_prefix('=')?.trim().parse().ok()
    };
    State {
        pid: property("MainPID").filter(|pid| *pid > 0),
        restarts: property("NRestarts"),
    }
}

pub(super) fn shown_by_launchd(text: &str) -> State {
    let value = |name: &str| {
        let mut values = text
            .lines()
            .filter_map(|line| line.trim().split_once(" = "));
        let (_, value) = values.find(|(key, _)| *key == name)?;
        value.parse::<u32>().ok()
    };
    State {
        pid: value("pid"),
        // The first start is no restart.
        restarts: value("runs").map(|runs| runs.saturating_sub(1)),
    }
}
