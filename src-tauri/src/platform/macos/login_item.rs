//! Starting at login: through the Service Management framework, which System Settings → General → Login Items shows, or where that
//! refuses, such as an app that is signed ad hoc, through a launch agent.

use crate::login_item::{Place, Refusal};
use smappservice_rs::{AppService, ServiceStatus, ServiceType};
use std::{env, path::Path};
use tauri::{AppHandle, Wry, plugin::TauriPlugin};
use tauri_plugin_autostart::ManagerExt;

const SETTINGS: &str = "allow Tierbar in System Settings → General → Login Items, then try again";
const MOVE: &str = "macOS runs Tierbar from a temporary place: move it to the Applications folder, open it there, then try again";

/// The framework first.
pub(crate) fn places(app: &AppHandle) -> [Box<dyn Place>; 2] {
    [Box::new(Service), Box::new(Agent(app.clone()))]
}

/// What writes the launch agent, `~/Library/LaunchAgents/Tierbar.plist`.
pub(super) fn agents() -> TauriPlugin<Wry> {
    let builder = tauri_plugin_autostart::Builder::new();
    builder.app_name("Tierbar").arg("--login").build()
}

struct Service;

fn service() -> AppService {
    AppService::new(ServiceType::MainApp)
}

impl Place for Service {
    fn is_on(&self) -> Result<bool, String> {
        Ok(service().status() == ServiceStatus::Enabled)
    }

    fn add(&self) -> Result<(), Refusal> {
        lasting_program()?;
        if service().status() == ServiceStatus::Enabled {
            return Ok(());
        }
        let registered = service().register();
        match service().status() {
            ServiceStatus::Enabled => Ok(()),
            ServiceStatus::RequiresApproval => {
                AppService::open_system_settings_login_items();
                Err(Refusal::Everywhere(SETTINGS.to_owned()))
            }
            ServiceStatus::NotRegistered | ServiceStatus::NotFound => {
                let reason = registered.err().map(|error| error.to_string());
                let reason = reason.unwrap_or_else(|| "macOS did not keep it".to_owned());
                Err(Refusal::Here(reason))
            }
        }
    }

    fn remove(&self) -> Result<(), String> {
        match service().status() {
            ServiceStatus::NotRegistered | ServiceStatus::NotFound => Ok(()),
            _ => service().unregister().map_err(|error| error.to_string()),
        }
    }
}

struct Agent(AppHandle);

impl Place for Agent {
    fn is_on(&self) -> Result<bool, String> {
        let agents = self.0.autolaunch();
        agents.is_enabled().map_err(|error| error.to_string())
    }

    fn add(&self) -> Result<(), Refusal> {
        let program = lasting_program()?;
        // The plugin writes them into its XML as they are.
        if program.contains(['&', '<', '>']) {
            let reason = format!("{program} has \"&\", \"<\" or \">\" in it: rename that folder");
            return Err(Refusal::Everywhere(reason));
        }
        let enabled = self.0.autolaunch().enable();
        enabled.map_err(|error| Refusal::Here(error.to_string()))
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
