//! `tierbar service`: runs `tierbar serve` in the background, from login or from the start of the computer on, and again
//! after a crash. systemd does it on Linux, launchd on macOS.

mod definition;
mod manager;

pub(crate) use manager::System;

use crate::{confirm::confirm, output, platform};
use definition::Service;
use manager::{Manager, State};
use serde_json::json;
use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};
use tierbar_core::{Code, Error};
use tierbar_host::{RunningHost, find_running_host};
use tokio::time::sleep;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Start Tierbar in the background, now and at each login
    Install {
        /// Start with the computer, before anyone logs in (needs sudo)
        #[arg(long)]
        before_login: bool,
        /// Install without confirmation
        #[arg(short, long)]
        yes: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show whether the service is installed and running
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Stop the service and remove it; models and settings stay
    Uninstall {
        /// Remove without confirmation
        #[arg(short, long)]
        yes: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// How long a service that has just been started may take to answer.
const STARTING: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(200);

pub(crate) async fn run(home: Option<PathBuf>, command: Command) -> Result<(), Error> {
    match command {
        Command::Install {
            before_login,
            yes,
            json,
        } => install(home, before_login, yes, json).await,
        Command::Status { json } => status(home.as_deref(), json),
        Command::Uninstall { yes, json } => uninstall(yes, json).await,
    }
}

async fn install(
    home: Option<PathBuf>,
    before_login: bool,
    yes: bool,
    as_json: bool,
) -> Result<(), Error> {
    let manager = Manager::for_system(platform::SYSTEM, before_login)?;
    let other = Manager::for_system(platform::SYSTEM, !before_login)?;
    if other.file.exists() {
        let (when, install, sudo) = if before_login {
            ("at each login", "install", "")
        } else {
            ("with the computer", "install --before-login", "sudo ")
        };
        let message = format!(
            "a service that starts {when} is already installed: {}",
            other.file.display()
        );
        return Err(Error::new(Code::Conflict, message).hint(format!(
            "to restart it, run `{sudo}tierbar service {install}`; to remove it, `{sudo}tierbar service uninstall`"
        )));
    }
    let service = Service {
        program: program()?,
        home: home
            .clone()
            .or_else(|| nonempty_variable("TIERBAR_HOME").map(PathBuf::from)),
        user: nonempty_variable("SUDO_USER")
            .or_else(|| nonempty_variable("USER"))
            .unwrap_or_else(|| "root".to_owned()),
    };
    service.check()?;
    // Under sudo, the service's data folder is another user's.
    let other_user = nonempty_variable("SUDO_USER").filter(|_| before_login);
    let file = &manager.file;
    let starts = if before_login {
        "when the computer starts"
    } else {
        "at each login"
    };
    let (path, program) = (file.display(), service.program.display());
    explain(
        as_json,
        &format!(
            "This creates {path}, which starts\n  {program} serve\nnow, {starts}, and again after a crash."
        ),
    );
    if let (Some(user), None) = (&other_user, &service.home) {
        let usual =
            format!("It uses the usual data folder of {user}. For another one, add --home FOLDER.");
        explain(as_json, &usual);
    }
    for note in manager.notes() {
        explain(as_json, note);
    }
    confirm(yes, "Install the service?", "add --yes", as_json).await?;
    manager.install(&service).await?;
    let mut report = json!({
        "installed": true,
        "file": file,
        "before_login": before_login,
        "pid": null,
        "url": null,
    });
    if other_user.is_some() {
        output::write_outcome(
            as_json,
            &report,
            "The service is installed. To see it, run without sudo: tierbar service status",
        );
        return Ok(());
    }
    let log = manager.log_command();
    let (own, running) = wait_until_settled(&manager, home.as_deref()).await?;
    report["pid"] = json!(own);
    report["url"] = json!(running.as_ref().map(|running| &running.url));
    let sentence = match (own, running) {
        (Some(own), Some(RunningHost { pid, url, .. })) if own == pid => {
            format!("Tierbar is running at {url}")
        }
        (Some(_), Some(RunningHost { pid, .. })) => format!(
            "The service is installed. It waits: Tierbar already runs as process {pid}. \
             When that ends, the service takes its place."
        ),
        (Some(_), None) => {
            format!("The service is installed, but Tierbar does not answer yet. Run: {log}")
        }
        (None, _) => format!("The service is installed, but it does not run. Run: {log}"),
    };
    output::write_outcome(as_json, &report, &sentence);
    Ok(())
}

/// Says what is about to be done. A script reads only the object at the end.
fn explain(as_json: bool, text: &str) {
    if as_json {
        output::error_line(text);
    } else {
        output::write_line(text);
    }
}

async fn uninstall(yes: bool, as_json: bool) -> Result<(), Error> {
    let Some(manager) = installed_manager()? else {
        let report = json!({"installed": false, "file": null});
        output::write_outcome(as_json, &report, "No service is installed.");
        return Ok(());
    };
    let file = manager.file.display();
    explain(as_json, &format!("This stops Tierbar and deletes {file}."));
    confirm(yes, "Remove the service?", "add --yes", as_json).await?;
    manager.uninstall().await?;
    let report = json!({"installed": false, "file": manager.file});
    let sentence = "The service is removed. Models and settings stay.";
    output::write_outcome(as_json, &report, sentence);
    Ok(())
}

fn status(home: Option<&Path>, as_json: bool) -> Result<(), Error> {
    let installed = installed_manager()?;
    let state = match &installed {
        Some(manager) => manager.state()?,
        None => State::default(),
    };
    let running = find_running_host(home);
    let report = json!({
        "installed": installed.is_some(),
        "file": installed.as_ref().map(|manager| &manager.file),
        "before_login": installed.as_ref().is_some_and(|manager| manager.before_login),
        "pid": state.pid,
        "restarts": state.restarts,
        "url": running.as_ref().map(|running| &running.url),
    });
    let lines = render_status(installed.as_ref(), state, running.as_ref());
    output::write_outcome(as_json, &report, &lines.join("\n"));
    Ok(())
}

/// What is so, a sentence a line.
fn render_status(
    installed: Option<&Manager>,
    state: State,
    running: Option<&RunningHost>,
) -> Vec<String> {
    let mut lines = Vec::new();
    match installed {
        None => lines.push(
            "No service is installed. To install one, run: tierbar service install".to_owned(),
        ),
        Some(manager) => lines.push(format!(
            "The service is installed as {}.",
            manager.file.display()
        )),
    }
    match (state.pid, running) {
        (Some(pid), Some(running)) if running.pid == pid => {
            lines.push(format!("It runs as process {pid}, at {}.", running.url));
        }
        (Some(pid), Some(running)) => lines.push(format!(
            "It waits as process {pid}: Tierbar runs outside the service, as process {}, at {}. \
             When that ends, the service takes its place.",
            running.pid, running.url
        )),
        (Some(pid), None) => {
            lines.push(format!("It runs as process {pid} and does not answer yet."));
        }
        (None, Some(running)) => lines.push(format!(
            "Tierbar runs outside the service, as process {}, at {}.",
            running.pid, running.url
        )),
        (None, None) if installed.is_some() => lines.push("It does not run.".to_owned()),
        (None, None) => {}
    }
    match state.restarts {
        None | Some(0) => {}
        Some(1) => lines.push("It was restarted once after a crash.".to_owned()),
        Some(count) => lines.push(format!("It was restarted {count} times after a crash.")),
    }
    lines
}

/// The service that is installed: for the user's login, or for the computer.
fn installed_manager() -> Result<Option<Manager>, Error> {
    for before_login in [false, true] {
        let manager = Manager::for_system(platform::SYSTEM, before_login)?;
        if manager.file.exists() {
            return Ok(Some(manager));
        }
    }
    Ok(None)
}

/// The path of this program, as a service can keep it.
fn program() -> Result<PathBuf, Error> {
    let program = std::env::current_exe().map_err(|error| {
        let message = format!("the path of this program is unknown: {error}");
        Error::new(Code::Internal, message)
    })?;
    let mut parts = program.components();
    if parts.any(|part| part.as_os_str() == "AppTranslocation") {
        let message = "macOS runs Tierbar from a temporary copy, which does not last";
        return Err(Error::new(Code::Conflict, message)
            .hint("move Tierbar to the Applications folder, open it once, and try again"));
    }
    Ok(program)
}

/// Waits until the service's process is there and a host answers; returns both as they are.
async fn wait_until_settled(
    manager: &Manager,
    home: Option<&Path>,
) -> Result<(Option<u32>, Option<RunningHost>), Error> {
    let begun = Instant::now();
    loop {
        let now = (manager.state()?.pid, find_running_host(home));
        if matches!(now, (Some(_), Some(_))) || begun.elapsed() > STARTING {
            return Ok(now);
        }
        sleep(LOOK).await;
    }
}

fn nonempty_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests;
