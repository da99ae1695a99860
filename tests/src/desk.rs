//! A place to run the real app in: display, session bus, tray, home and data folder of its own. Tests run one at a time,
//! since each would otherwise affect the others' measurements.

use crate::{
    binaries::{self, STARTER, program},
    display::Display,
    notification_server::NotificationServer,
    session_bus::SessionBus,
    tray_host::{TrayHost, TrayIcon},
    wait::{until, within},
};
use std::{
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{ExitStatus, Output, Stdio},
};
use tempfile::TempDir;
use tierbar_core::status::Status;
use tokio::{
    process::{Child, Command},
    sync::{Mutex, MutexGuard},
};

static TURN: Mutex<()> = Mutex::const_new(());

/// The tiers of a desk's configuration: one with the starter model and one without a model. The context ends an answer that
/// the model does not end.
const CONFIG: &str = "listen = \"127.0.0.1:0\"\n\
    [tiers.fast]\nmodel = \"SmolLM2-135M-Instruct.Q4_1.gguf\"\ncontext = 1024\n\
    sampling = { temperature = 0.0 }\n\
    [tiers.heavy]\n";

#[derive(Debug)]
pub struct Desk {
    // In the order of their end.
    folder: TempDir,
    pub tray: TrayHost,
    pub display: Display,
    bus: SessionBus,
    environment: Vec<(&'static str, String)>,
    _turn: MutexGuard<'static, ()>,
}

impl Desk {
    /// # Panics
    /// If a part of it is missing on this machine.
    pub async fn new() -> Self {
        let turn = TURN.lock().await;
        let folder = tempfile::Builder::new()
            .prefix("tierbar-")
            .tempdir()
            .expect("a folder");
        for name in ["home", "run", "data/models", "bin"] {
            std::fs::create_dir_all(folder.path().join(name)).expect("a folder");
        }
        for private in ["run", "data"] {
            let mode = std::fs::Permissions::from_mode(0o700);
            std::fs::set_permissions(folder.path().join(private), mode).expect("the folder's mode");
        }
        let bus = SessionBus::start(folder.path());
        let desk = Self {
            tray: TrayHost::start(&bus.address).await,
            display: Display::start(),
            bus,
            folder,
            environment: Vec::new(),
            _turn: turn,
        };
        symlink(
            binaries::model(STARTER),
            desk.data().join("models").join(STARTER),
        )
        .expect("the starter model");
        desk.configure(CONFIG);
        desk.record_browser();
        desk
    }

    /// Sets a variable for programs that are started from here on.
    pub fn set(&mut self, name: &'static str, value: impl Into<String>) {
        self.environment.push((name, value.into()));
    }

    #[must_use]
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// The app's data folder.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Replaces the configuration as a whole, so that a watcher never reads half of it.
    ///
    /// # Panics
    /// If that fails.
    pub fn configure(&self, config: &str) {
        let (beside, path) = (
            self.data().join("config.toml.new"),
            self.data().join("config.toml"),
        );
        std::fs::write(&beside, config).expect("config.toml.new");
        std::fs::rename(beside, path).expect("config.toml");
    }

    /// Keeps the notifications of programs from here on.
    ///
    /// # Panics
    /// If the bus has gone.
    pub async fn notifications(&self) -> NotificationServer {
        NotificationServer::start(&self.bus.address).await
    }

    /// Stands in for the desktop's browser: records what it is asked to open.
    fn record_browser(&self) {
        let script = self.folder.path().join("bin/xdg-open");
        let text = format!(
            "#!/bin/sh\nprintf '%s\\n' \"$1\" >> '{}'\n",
            self.opened_file().display()
        );
        std::fs::write(&script, text).expect("a script");
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755))
            .expect("its mode");
    }

    fn opened_file(&self) -> PathBuf {
        self.folder.path().join("opened")
    }

    /// What the desktop was asked to open, in order: addresses and folders.
    #[must_use]
    pub fn opened(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.opened_file()).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// A program on this desk.
    #[must_use]
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(program.as_ref());
        command
            .env_clear()
            .env(
                "PATH",
                format!("{}:{path}", self.folder.path().join("bin").display()),
            )
            .env("LANG", "C.UTF-8")
            .env("HOME", self.home())
            .env("XDG_RUNTIME_DIR", self.folder.path().join("run"))
            .env("TIERBAR_HOME", self.data())
            .env("DISPLAY", &self.display.name)
            .env("DBUS_SESSION_BUS_ADDRESS", &self.bus.address)
            .env("NO_AT_BRIDGE", "1")
            .env("TIERBAR_SECRETS", "file")
            // No program listens on the discard port.
            .env("HF_ENDPOINT", "http://127.0.0.1:9")
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    /// Starts the app and returns once its menu shows a server, or why there is none.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start_app(&self) -> App {
        let child = self
            .command(program("tierbar-app"))
            .spawn()
            .expect("the app");
        App {
            child,
            icon: self.tray.icon().await,
        }
    }

    /// Runs the app to its end: for launches that are not to become a second app.
    ///
    /// # Panics
    /// If it hangs.
    pub async fn launch_app(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(program("tierbar-app"));
        let output = command
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .output();
        within("a launch of the app", output)
            .await
            .expect("the app")
    }

    /// The status of the host that runs on this desk's data folder.
    ///
    /// # Panics
    /// If none runs.
    pub async fn status(&self) -> Status {
        let host = tierbar_host::find_running_host(Some(&self.data())).expect("a running host");
        let client = tierbar_fetch::loopback().build().expect("an HTTP client");
        let request = client
            .get(format!("{}/tierbar/v1/status", host.url))
            .bearer_auth(&host.token);
        let response = within("the status", request.send())
            .await
            .expect("the host");
        response
            .error_for_status()
            .expect("a status")
            .json()
            .await
            .expect("a status")
    }

    /// Sends a request to the admin API.
    ///
    /// # Panics
    /// If it refuses.
    pub async fn ask(&self, path: &str, body: &serde_json::Value) -> serde_json::Value {
        let host = tierbar_host::find_running_host(Some(&self.data())).expect("a running host");
        let client = tierbar_fetch::loopback().build().expect("an HTTP client");
        let request = client
            .post(format!("{}{path}", host.url))
            .bearer_auth(&host.token)
            .json(body);
        let response = within("an answer", request.send()).await.expect("the host");
        let response = response.error_for_status().expect("a success");
        response.json().await.expect("JSON")
    }

    /// Sends a request to the host's API like any client.
    ///
    /// # Panics
    /// If it does not start to answer.
    pub async fn complete(&self, request: &serde_json::Value) -> reqwest::Response {
        let host = tierbar_host::find_running_host(Some(&self.data())).expect("a running host");
        let client = tierbar_fetch::loopback().build().expect("an HTTP client");
        let request = client
            .post(format!("{}/v1/chat/completions", host.url))
            .json(request);
        let response = within("the answer's begin", request.send())
            .await
            .expect("the host");
        response.error_for_status().expect("an answer")
    }

    /// Processes of this desk, by the data folder in their environment: programs' names and process ids.
    #[must_use]
    pub fn processes(&self) -> Vec<(String, u32)> {
        let mark = format!("TIERBAR_HOME={}", self.data().display());
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        entries
            .filter_map(|entry| {
                let pid = entry.file_name().to_str()?.parse().ok()?;
                // Gone or a zombie: not readable, or empty.
                let environment = std::fs::read(entry.path().join("environ")).ok()?;
                let ours = environment
                    .split(|byte| *byte == 0)
                    .any(|variable| variable == mark.as_bytes());
                let program = std::fs::read_link(entry.path().join("exe")).ok()?;
                let name = program.file_name()?.to_str()?.to_owned();
                ours.then_some((name, pid))
            })
            .collect()
    }

    /// How many processes of this desk run the program.
    #[must_use]
    pub fn count(&self, program: &str) -> usize {
        self.processes()
            .iter()
            .filter(|(name, _)| name == program)
            .count()
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        for (_, pid) in self.processes() {
            let _ = std::process::Command::new("kill")
                .args(["-9", &pid.to_string()])
                .status();
        }
    }
}

/// The app with its icon in the tray.
#[derive(Debug)]
pub struct App {
    child: Child,
    pub icon: TrayIcon,
}

impl App {
    /// # Panics
    /// If it has ended.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id().expect("the app runs")
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// If it does not end.
    pub async fn ended(&mut self) -> ExitStatus {
        within("the app's end", self.child.wait())
            .await
            .expect("the app's status")
    }

    #[must_use]
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("the app's status").is_some()
    }
}

/// Whether the process is there.
#[must_use]
pub fn is_alive(pid: u32) -> bool {
    // The name in brackets may contain spaces; the state follows it.
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        stat.rsplit(") ")
            .next()
            .is_some_and(|rest| !rest.starts_with('Z'))
    })
}

/// Waits until the process has gone.
pub async fn gone(pid: u32) {
    until("a process's end", async || (!is_alive(pid)).then_some(())).await;
}
