//! macOS: Application Support, `lsof`, which every Mac has, App Nap and idle sleep.

#![expect(
    unsafe_code,
    reason = "power assertions have no safe interface in our dependencies"
)]

use super::Listener;
use crate::examine::Finding;
use objc2_core_foundation::CFString;
use objc2_foundation::{
    NSActivityOptions, NSNumber, NSProcessInfo, NSString, NSURL, NSURLIsExcludedFromBackupKey,
};
use objc2_io_kit::{
    IOPMAssertionCreateWithName, IOPMAssertionID, IOPMAssertionRelease, kIOPMAssertionLevelOn,
};
use std::{
    mem,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};
use tierbar_core::config::Paging;

/// How a model larger than memory is paged. A cache of experts is to be chosen until it has been measured on a Mac.
pub(crate) const PAGING: Paging = Paging::Advise;

pub(crate) fn data_folder(home: &Path) -> PathBuf {
    home.join("Library/Application Support/Tierbar")
}

/// Looks at what macOS does to a program: translation, translocation and quarantine.
pub(crate) fn examine() -> Vec<Finding> {
    let Ok(program) = std::env::current_exe() else {
        return Vec::new();
    };
    let translated = output_of("/usr/sbin/sysctl", &["-n", "sysctl.proc_translated"]);
    let mut findings = Vec::new();
    if translated.trim() == "1" {
        findings.push(Finding::bad(
            "Tierbar runs under Rosetta, several times slower than it could",
            "install the version for Apple silicon",
        ));
    }
    if let Some(bundle) = bundle_of(&program) {
        let path = bundle.display();
        if bundle
            .components()
            .any(|part| part.as_os_str() == "AppTranslocation")
        {
            findings.push(Finding::bad(
                "macOS runs Tierbar from a temporary place",
                "move Tierbar to the Applications folder, and open it there",
            ));
        } else if is_unapproved(&output_of(
            "/usr/bin/xattr",
            &["-p", "com.apple.quarantine", &path.to_string()],
        )) {
            findings.push(Finding::bad(
                format!("{path} is quarantined, like everything that a browser downloads"),
                "open it once in the Finder and confirm that you trust it",
            ));
        }
    }
    if findings.is_empty() {
        findings.push(Finding::good(
            "macOS runs Tierbar as it is, from where it is",
        ));
    }
    findings
}

/// Whether an app with this quarantine, such as `0083;5f0c…;Safari;`, waits for the user's approval, which the bit 0x40 keeps.
fn is_unapproved(quarantine: &str) -> bool {
    let flags = quarantine.split(';').next().unwrap_or_default();
    u32::from_str_radix(flags.trim(), 16).is_ok_and(|flags| flags & 0x40 == 0)
}

/// The app that a program belongs to.
fn bundle_of(program: &Path) -> Option<&Path> {
    program
        .ancestors()
        .find(|folder| folder.extension().is_some_and(|ending| ending == "app"))
}

/// What a program of the system prints; nothing if it fails.
fn output_of(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output();
    output
        .map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        .unwrap_or_default()
}

/// Keeps App Nap away for the rest of the process's life: an app without windows counts as idle, and App Nap would slow
/// its timers and its network, so the gateway and the memory guard. The Mac may still sleep.
pub(crate) fn run_at_full_speed() {
    let reason = NSString::from_str("serving local models");
    let activity = NSProcessInfo::processInfo().beginActivityWithOptions_reason(
        NSActivityOptions::UserInitiatedAllowingIdleSystemSleep,
        &reason,
    );
    // It ends with its token.
    mem::forget(activity);
}

/// Keeps a folder out of Time Machine.
///
/// # Errors
/// The system's reason.
pub(crate) fn exclude_from_backups(folder: &Path) -> Result<(), String> {
    let path = NSString::from_str(&folder.to_string_lossy());
    let url = NSURL::fileURLWithPath_isDirectory(&path, true);
    let excluded = NSNumber::new_bool(true);
    // SAFETY: the key is one of the system's own, and its value is documented to be a Boolean number.
    unsafe { url.setResourceValue_forKey_error(Some(&excluded), NSURLIsExcludedFromBackupKey) }
        .map_err(|error| error.to_string())
}

/// Keeps the Mac from sleeping while idle, until dropped. Closing the lid still does.
#[derive(Debug)]
pub(crate) struct Awake(IOPMAssertionID);

impl Awake {
    /// # Errors
    /// The system's status.
    pub(crate) fn begin(reason: &'static str) -> Result<Self, String> {
        let kind = CFString::from_static_str("PreventUserIdleSystemSleep");
        let name = CFString::from_static_str(reason);
        let mut id: IOPMAssertionID = 0;
        // SAFETY: `id` outlives the call, which sets it if it succeeds.
        let status = unsafe {
            IOPMAssertionCreateWithName(
                Some(&kind),
                kIOPMAssertionLevelOn,
                Some(&name),
                &raw mut id,
            )
        };
        if status == 0 {
            Ok(Self(id))
        } else {
            Err(format!("IOPMAssertionCreateWithName returned {status:#x}"))
        }
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        IOPMAssertionRelease(self.0);
    }
}

/// Returns the program that listens on a port; `None` without one, or if it is another user's. Blocking.
pub(crate) fn listener(port: u16) -> Option<Listener> {
    let port = format!("-iTCP:{port}");
    let fields = output_of("/usr/sbin/lsof", &["-nP", &port, "-sTCP:LISTEN", "-Fpc"]);
    parse_listener(&fields)
}

/// With `-F`, each line is a field: `p` the process id, `c` its command.
fn parse_listener(fields: &str) -> Option<Listener> {
    let field = |name: char| fields.lines().find_map(|line| line.strip_prefix(name));
    Some(Listener {
        pid: field('p')?.parse().ok()?,
        command: field('c').unwrap_or_default().to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarantined_app_is_unapproved_until_its_user_confirms() {
        assert!(is_unapproved("0083;5f0c1234;Safari;"));
        assert!(!is_unapproved("00c3;5f0c1234;Safari;"));
        assert!(!is_unapproved(""));
    }

    #[test]
    fn the_first_process_that_listens_is_named() {
        let found = parse_listener("p501\ncollama\nf12\np502\ncother\n");
        assert_eq!(
            found,
            Some(Listener {
                pid: 501,
                command: "ollama".to_owned()
            })
        );
        assert_eq!(parse_listener(""), None);
    }

    #[test]
    fn a_listener_is_found_by_its_port() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        assert_eq!(listener(port).unwrap().pid, std::process::id());
    }
}
