//! systemd and launchd: what they are told, and what they say.

use super::{nonempty_variable, run_manager};
use std::path::{Path, PathBuf};
use tierbar_core::{Code, Error};

/// What runs services on a system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum System {
    Systemd,
    Launchd,
}

/// A program to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Service {
    pub(super) program: PathBuf,
    /// The data folder, if it is not the usual one.
    pub(super) home: Option<PathBuf>,
    /// Whose it is, where it starts before anyone logs in.
    pub(super) user: String,
}

impl Service {
    /// Refuses control characters: a line break would begin a setting of its own, and XML has no way to write most of them.
    ///
    /// # Errors
    /// `BadRequest`.
    pub(super) fn check(&self) -> Result<(), Error> {
        let program = Some(self.program.to_string_lossy());
        let home = self.home.as_ref().map(|home| home.to_string_lossy());
        let texts = [program, home, Some(self.user.as_str().into())];
        let mut texts = texts.into_iter().flatten();
        match texts.find(|text| text.contains(char::is_control)) {
            None => Ok(()),
            Some(text) => {
                let message =
                    format!("{text:?} has a control character, which no service can have");
                Err(Error::new(Code::BadRequest, message).hint("rename it"))
            }
        }
    }
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
    system: System,
    before_login: bool,
    file: PathBuf,
    /// launchd's domain of the user.
    domain: String,
}

const UNIT: &str = "tierbar.service";
const LABEL: &str = "dev.tierbar.serve";

impl Manager {
    /// # Errors
    /// If the user has no home folder.
    pub(super) fn of(system: System, before_login: bool) -> Result<Self, Error> {
        let home = nonempty_variable("HOME").ok_or_else(|| {
            Error::new(
                Code::NotFound,
                "HOME is not set, so there is no place for the service",
            )
        })?;
        let config = nonempty_variable("XDG_CONFIG_HOME")
            .map_or_else(|| Path::new(&home).join(".config"), PathBuf::from);
        let file = match (system, before_login) {
            (System::Systemd, false) => config.join("systemd/user").join(UNIT),
            (System::Systemd, true) => Path::new("/etc/systemd/system").join(UNIT),
            (System::Launchd, false) => Path::new(&home)
                .join("Library/LaunchAgents")
                .join(format!("{LABEL}.plist")),
            (System::Launchd, true) => {
                Path::new("/Library/LaunchDaemons").join(format!("{LABEL}.plist"))
            }
        };
        let domain = if before_login {
            "system".to_owned()
        } else {
            format!("gui/{}", rustix::process::getuid().as_raw())
        };
        Ok(Self {
            system,
            before_login,
            file,
            domain,
        })
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    pub(super) fn is_before_login(&self) -> bool {
        self.before_login
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
            System::Systemd => self.unit(service),
            System::Launchd => self.plist(service),
        }
    }

    /// Starts what the file says, now and from now on.
    pub(super) fn start(&self) -> Result<(), Error> {
        for command in self.starting() {
            run_manager(&command)?;
        }
        Ok(())
    }

    /// Stops it, and does not start it again. What does not run is no error.
    pub(super) fn stop(&self) -> Result<(), Error> {
        match (self.system, run_manager(&self.stopping())) {
            // It is not loaded.
            (System::Launchd, Err(error)) if error.message.contains("No such process") => Ok(()),
            (_, stopped) => stopped.map(|_| ()),
        }
    }

    /// Has the system notice that the file is gone.
    pub(super) fn forget(&self) -> Result<(), Error> {
        match self.system {
            System::Systemd => run_manager(&self.systemctl(&["daemon-reload"])).map(|_| ()),
            System::Launchd => Ok(()),
        }
    }

    pub(super) fn state(&self) -> Result<State, Error> {
        Ok(match self.system {
            System::Systemd => {
                let show = ["show", UNIT, "--property=MainPID,NRestarts"];
                shown_by_systemd(&run_manager(&self.systemctl(&show))?)
            }
            // What is not loaded is an error there.
            System::Launchd => run_manager(&to_strings(&["launchctl", "print", &self.target()]))
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

    fn target(&self) -> String {
        format!("{}/{LABEL}", self.domain)
    }

    fn systemctl(&self, arguments: &[&str]) -> Vec<String> {
        let user = (!self.before_login).then_some("--user");
        let all = ["systemctl"].into_iter().chain(user);
        all.chain(arguments.iter().copied())
            .map(str::to_owned)
            .collect()
    }

    /// `systemd.service(5)`. `OOMPolicy`: the kernel's end of a worker is no end of the host, which reports it.
    fn unit(&self, service: &Service) -> String {
        let program = quote_argument(&service.program.to_string_lossy(), true);
        let home = service.home.as_ref().map(|home| {
            let variable = format!("TIERBAR_HOME={}", home.display());
            format!("Environment={}\n", quote_argument(&variable, false))
        });
        let (user, target) = if self.before_login {
            (format!("User={}\n", service.user), "multi-user.target")
        } else {
            (String::new(), "default.target")
        };
        format!(
            "[Unit]\n\
             Description=Tierbar: private local models behind one API\n\
             StartLimitIntervalSec=300\n\
             StartLimitBurst=10\n\
             \n\
             [Service]\n\
             ExecStart={program} serve --wait\n\
             {}{user}\
             Restart=on-failure\n\
             RestartSec=2\n\
             OOMPolicy=continue\n\
             \n\
             [Install]\n\
             WantedBy={target}\n",
            home.unwrap_or_default()
        )
    }

    /// `launchd.plist(5)`. Without `ProcessType`, launchd slows it down.
    fn plist(&self, service: &Service) -> String {
        let program = escape_xml(&service.program.to_string_lossy());
        let home = service.home.as_ref().map(|home| {
            let home = escape_xml(&home.to_string_lossy());
            format!(
                "\t<key>EnvironmentVariables</key>\n\t<dict>\n\t\t<key>TIERBAR_HOME</key>\n\t\t<string>{home}</string>\n\t</dict>\n"
            )
        });
        let user = if self.before_login {
            let user = escape_xml(&service.user);
            format!("\t<key>UserName</key>\n\t<string>{user}</string>\n")
        } else {
            String::new()
        };
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
             <plist version=\"1.0\">\n<dict>\n\
             \t<key>Label</key>\n\t<string>{LABEL}</string>\n\
             \t<key>ProgramArguments</key>\n\t<array>\n\t\t<string>{program}</string>\n\t\t<string>serve</string>\n\t\t<string>--wait</string>\n\t</array>\n\
             {}{user}\
             \t<key>RunAtLoad</key>\n\t<true/>\n\
             \t<key>KeepAlive</key>\n\t<dict>\n\t\t<key>SuccessfulExit</key>\n\t\t<false/>\n\t</dict>\n\
             \t<key>ProcessType</key>\n\t<string>Interactive</string>\n\
             </dict>\n</plist>\n",
            home.unwrap_or_default()
        )
    }
}

fn to_strings(all: &[&str]) -> Vec<String> {
    all.iter().map(|word| (*word).to_owned()).collect()
}

/// A word of a unit: specifiers begin with `%`, and in a command variables with `$` (`systemd.syntax(7)`).
fn quote_argument(text: &str, command: bool) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '%' => quoted.push_str("%%"),
            '$' if command => quoted.push_str("$$"),
            character => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

/// A text in XML.
fn escape_xml(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
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
        let line = text
            .lines()
            .find_map(|line| line.trim().strip_prefix(name))?;
        line.trim().strip_prefix('=')?.trim().parse::<u32>().ok()
    };
    State {
        pid: value("pid"),
        // The first start is no restart.
        restarts: value("runs").map(|runs| runs.saturating_sub(1)),
    }
}
