//! Starting at login: through the Service Management framework, which System Settings → General → Login Items shows, or where that
//! refuses, such as an app that is signed ad hoc, through a launch agent.

use crate::{
    login_item::{Place, Refusal},
    platform::registration::{APPROVAL, Registration, RegistrationError, agent_starts, judge},
};
use smappservice_rs::{AppService, ServiceManagementError, ServiceStatus, ServiceType};
use std::{env, path::Path, process::Command};
use tauri::{AppHandle, Wry, plugin::TauriPlugin};
use tauri_plugin_autostart::ManagerExt;
use tierbar_host::launchd;

/// The launch agent's label, and its file's name.
const AGENT: &str = "Tierbar";
const MOVE: &str = "macOS runs Tierbar from a temporary place: move it to the Applications folder, open it there, then try again";

/// The framework first.
pub(crate) fn places(app: &AppHandle) -> [Box<dyn Place>; 2] {
    [Box::new(Service), Box::new(Agent(app.clone()))]
}

/// What writes the launch agent, `~/Library/LaunchAgents/Tierbar.plist`.
pub(super) fn agents() -> TauriPlugin<Wry> {
    let builder = tauri_plugin_autostart::Builder::new();
    builder.app_name(AGENT).arg("--login").build()
}

struct Service;

fn service() -> AppService {
    AppService::new(ServiceType::MainApp)
}

fn registration() -> Registration {
    match service().status() {
        ServiceStatus::Enabled => Registration::Enabled,
        ServiceStatus::RequiresApproval => Registration::RequiresApproval,
        ServiceStatus::NotRegistered | ServiceStatus::NotFound => Registration::Missing,
    }
}

impl Place for Service {
    fn is_on(&self) -> Result<bool, String> {
        Ok(registration() == Registration::Enabled)
    }

    fn add(&self) -> Result<(), Refusal> {
        lasting_program()?;
        if registration() == Registration::Enabled {
            return Ok(());
        }
        let error = service().register().err().map(|error| match error {
            ServiceManagementError::LaunchDeniedByUser => RegistrationError::DeniedByUser,
            error => RegistrationError::Other(error.to_string()),
        });
        let now = registration();
        if now == Registration::RequiresApproval {
            AppService::open_system_settings_login_items();
        }
        judge(now, error)
    }

    fn remove(&self) -> Result<(), String> {
        match registration() {
            Registration::Missing => Ok(()),
            _ => service().unregister().map_err(|error| error.to_string()),
        }
    }
}

struct Agent(AppHandle);

/// Whether the user has turned off the agent in System Settings: its file stays.
fn is_agent_disabled() -> bool {
    let mut launchctl = Command::new("launchctl");
    launchctl.args(["print-disabled", &launchd::user_domain()]);
    launchctl
        .output()
        .is_ok_and(|listed| launchd::is_disabled(&String::from_utf8_lossy(&listed.stdout), AGENT))
}

impl Place for Agent {
    fn is_on(&self) -> Result<bool, String> {
        let has_file = self.0.autolaunch().is_enabled();
        let has_file = has_file.map_err(|error| error.to_string())?;
        Ok(agent_starts(has_file, is_agent_disabled))
    }

    fn add(&self) -> Result<(), Refusal> {
        let program = lasting_program()?;
        // The plugin writes them into its XML as they are.
        if program.contains(['&', '<', '>']) {
            let reason = format!("{program} has \"&\", \"<\" or \">\" in it: rename that folder");
            return Err(Refusal::Everywhere(reason));
        }
        let enabled = self.0.autolaunch().enable();
        enabled.map_err(|error| Refusal::Here(error.to_string()))?;
        if is_agent_disabled() {
            AppService::open_system_settings_login_items();
            return Err(Refusal::Everywhere(APPROVAL.to_owned()));
        }
        Ok(())
    }

    fn remove(&self) -> Result<(), String> {
        let agents = self.0.autolaunch();
        agents.disable().map_err(|error| error.to_string())
    }
}

/// Returns the path of this program, which is there after the next restart, too.
fn lasting_program() -> Result<String, Refusal> {
    let program = env::current_exe().map_err(|error| Refusal::Everywhere(error.to_string()))?;
    if is_temporary(&program) {
        return Err(Refusal::Everywhere(MOVE.to_owned()));
    }
    Ok(program.to_string_lossy().into_owned())
}

/// Whether Gatekeeper runs a copy of a quarantined app: its path is gone after the next restart.
pub(crate) fn is_temporary(program: &Path) -> bool {
    program
        .components()
        .any(|part| part.as_os_str() == "AppTranslocation")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_app_in_a_temporary_place_is_recognized() {
        let temporary = "/private/var/folders/ab/T/AppTranslocation/1F/d/Tierbar.app/Contents/MacOS/tierbar-app";
        assert!(is_temporary(Path::new(temporary)));
        for lasting in [
            "/Applications/Tierbar.app/Contents/MacOS/tierbar-app",
            "/Users/a & b/Applications/Tierbar.app/Contents/MacOS/tierbar-app",
        ] {
            assert!(!is_temporary(Path::new(lasting)), "{lasting}");
        }
    }
}
