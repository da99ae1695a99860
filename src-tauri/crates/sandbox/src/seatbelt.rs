//! The macOS profile of a policy, in the language of `sandbox-exec`. A pure function, so that it is tested everywhere.
//!
//! Each line is argued in `docs/agent.md`. Paths are parameters, never text of the profile, so that no name of a folder can add a rule.

use super::Policy;
use std::{fmt::Write, path::Path};

/// Where macOS keeps programs and libraries.
pub(crate) const PROGRAMS: &[&str] = &[
    "/bin",
    "/sbin",
    "/usr/bin",
    "/usr/lib",
    "/usr/libexec",
    "/usr/local",
    "/usr/sbin",
    "/usr/share",
    "/opt/homebrew",
    "/opt/local",
    "/System/Library",
    "/System/Cryptexes",
    "/System/Volumes/Preboot/Cryptexes",
    "/Library/Apple",
    "/Library/Developer",
    "/Library/Frameworks",
    "/Library/Java",
    "/Applications/Xcode.app",
];
/// Folders in those that hold user data, of Homebrew and MacPorts: databases, logs and mail.
const DATA: &[&str] = &["/usr/local/var", "/opt/homebrew/var", "/opt/local/var"];
/// Single files and folders that programs read.
const READ: &[&str] = &[
    "/private/etc/group",
    "/private/etc/hosts",
    "/private/etc/localtime",
    "/private/etc/passwd",
    "/private/etc/protocols",
    "/private/etc/services",
    "/private/etc/ssl",
    "/private/var/db/dyld",
    "/private/var/db/timezone",
    "/private/var/db/xcode_select_link",
    // What /etc/resolv.conf leads to.
    "/private/var/run/resolv.conf",
    "/private/var/select",
    "/Library/Preferences/.GlobalPreferences.plist",
    // Whether Xcode's license was agreed to, without which its tools do not run.
    "/Library/Preferences/com.apple.dt.Xcode.plist",
];

/// A profile and its parameters.
#[derive(Debug, PartialEq, Eq)]
pub struct Profile {
    pub text: String,
    pub parameters: Vec<String>,
}

const START: &str = r#"(version 1)
(deny default)
(allow process-fork)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow sysctl-read)
(allow mach-host*)
(allow ipc-posix-sem (ipc-posix-name-prefix "/mp-"))
(allow file-read-metadata file-test-existence)
(allow file-read-data file-write-data file-ioctl (literal "/dev/null") (literal "/dev/zero"))
(allow file-read-data (literal "/dev/random") (literal "/dev/urandom"))
(allow file-read-data file-write-data (subpath "/dev/fd"))
(allow file-read-data (literal "/"))
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))
"#;

/// Returns the Xcode that has the developer tools of this folder, as `xcode-select` chose it. Any other folder may hold more than tools.
pub(crate) fn xcode_of(developer: &Path) -> Option<&Path> {
    let app = developer.ancestors().nth(2)?;
    let is_xcode = developer.ends_with("Contents/Developer") && app.extension()? == "app";
    is_xcode.then_some(app)
}

/// Renders the profile. `home` is the command's own folder, `developer` the real path of Apple's developer tools, and `proxy` the port of
/// the command's network.
pub fn profile(
    policy: &Policy,
    home: &Path,
    developer: Option<&Path>,
    proxy: Option<u16>,
) -> Result<Profile, String> {
    let mut text = START.to_owned();
    let mut parameters = Vec::new();
    let mut parameter = |name: &str, path: &Path| {
        let path = path
            .to_str()
            .ok_or_else(|| format!("{} has a name that is not valid UTF-8", path.display()))?;
        let name = format!("{name}_{}", parameters.len());
        parameters.push(format!("{name}={path}"));
        Ok::<_, String>(format!("(subpath (param \"{name}\"))"))
    };
    let mut line = |rule: &str, place: &str| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "({rule} {place})");
    };
    const RUN: &str = "allow file-read* file-map-executable process-exec*";
    for place in PROGRAMS {
        line(RUN, &format!("(subpath \"{place}\")"));
    }
    // Before what is granted, because one of these folders can be.
    for place in DATA {
        let rule = "deny file-read-data file-read-xattr process-exec*";
        line(rule, &format!("(subpath \"{place}\")"));
    }
    for place in READ {
        line("allow file-read*", &format!("(subpath \"{place}\")"));
    }
    let xcode = developer.and_then(xcode_of);
    for path in policy.read.iter().map(|path| path.as_path()).chain(xcode) {
        line(RUN, &parameter("READ", path)?);
    }
    for path in policy.write.iter().map(|path| path.as_path()).chain([home]) {
        let rule = format!("{RUN} file-write*");
        line(&rule, &parameter("WRITE", path)?);
    }
    if let Some(port) = proxy {
        let place = format!("(remote tcp \"localhost:{port}\")");
        line("allow network-outbound", &place);
        line(
            "allow mach-lookup",
            "(global-name \"com.apple.trustd.agent\")",
        );
    }
    // The last rule that matches holds.
    let mut denied = String::new();
    for path in &policy.protected {
        let place = parameter("PROTECTED", path)?;
        let _ = writeln!(
            denied,
            "(deny file-read* file-test-existence file-write* process-exec* {place})"
        );
    }
    // Programs that run with another user's rights, and devices.
    denied.push_str("(deny file-write-setugid)\n(deny file-write-create (vnode-type BLOCK-DEVICE) (vnode-type CHARACTER-DEVICE))\n");
    text.push_str(&denied);
    Ok(Profile { text, parameters })
}

#[cfg(test)]
mod tests;
