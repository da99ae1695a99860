//! Starting at login through the Service Management framework, which System Settings → General → Login Items shows.
//!
//! The app has no state of its own here: what System Settings says is true. Versions before this one kept a launch
//! agent, which [`renew`] replaces.

use smappservice_rs::{AppService, ServiceStatus, ServiceType};
use std::{
    env, fs,
    path::{Path, PathBuf},
};
use tauri::{AppHandle, Manager};

const SETTINGS: &str = "allow Tierbar in System Settings → General → Login Items, then try again";

fn service() -> AppService {
    AppService::new(ServiceType::MainApp)
}

/// # Errors
/// Never; its twin can fail.
#[expect(clippy::unnecessary_wraps, reason = "its twin can fail")]
pub(crate) fn is_on(_: &AppHandle) -> Result<bool, String> {
    Ok(service().status() == ServiceStatus::Enabled)
}

/// # Errors
/// The system's reason, with what to do.
pub(crate) fn set(_: &AppHandle, on: bool) -> Result<(), String> {
    if !on {
        return match service().status() {
            ServiceStatus::NotRegistered | ServiceStatus::NotFound => Ok(()),
            _ => service().unregister().map_err(|error| error.to_string()),
        };
    }
    let program = env::current_exe().map_err(|error| error.to_string())?;
    if is_temporary(&program) {
        return Err(
            "macOS runs Tierbar from a temporary place: move it to the Applications folder, open it there, then try again"
                .to_owned(),
        );
    }
    let registered = service().register();
    if service().status() == ServiceStatus::RequiresApproval {
        AppService::open_system_settings_login_items();
        return Err(SETTINGS.to_owned());
    }
    registered.map_err(|error| error.to_string())
}

/// Replaces the launch agent of earlier versions.
///
/// # Errors
/// The system's reason.
pub(crate) fn renew(app: &AppHandle) -> Result<(), String> {
    let home = app.path().home_dir().map_err(|error| error.to_string())?;
    let agent = launch_agent(&home);
    if !agent.is_file() {
        return Ok(());
    }
    // It goes once its successor is there.
    set(app, true)?;
    fs::remove_file(agent).map_err(|error| error.to_string())
}

fn launch_agent(home: &Path) -> PathBuf {
    home.join("Library/LaunchAgents/Tierbar.plist")
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
