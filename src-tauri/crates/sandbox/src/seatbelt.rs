//! The macOS profile of a policy, in the language of `sandbox-exec`. A pure function, so that it is tested everywhere.
//!
//! Each line is argued in `docs/agent.md`. Paths are parameters, never text of the profile, so that no name of a folder can add a rule.

use super::Policy;
use std::{fmt::Write, path::Path};

/// Where the system keeps what programs need.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// Folders with programs and libraries.
    pub programs: &'a [&'a str],
    /// Folders in those that hold user data.
    pub data: &'a [&'a str],
    /// Single files and folders to read.
    pub read: &'a [&'a str],
}

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
(allow file-read-metadata)
(allow file-read-data file-write-data file-ioctl (literal "/dev/null") (literal "/dev/zero"))
(allow file-read-data (literal "/dev/random") (literal "/dev/urandom"))
(allow file-read-data file-write-data (subpath "/dev/fd"))
(allow file-read-data (literal "/"))
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))
"#;

/// Renders the profile. `home` is the command's own folder, and `proxy` the port of its network.
pub fn profile(
    policy: &Policy,
    home: &Path,
    places: &Places<'_>,
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
    const RUN: &str = "allow file-read* file-map-executable process-exec";
    for place in places.programs {
        line(RUN, &format!("(subpath \"{place}\")"));
    }
    // Before what is granted, because one of these folders can be.
    for place in places.data {
        let rule = "deny file-read-data file-read-xattr process-exec";
        line(rule, &format!("(subpath \"{place}\")"));
    }
    for place in places.read {
        line("allow file-read*", &format!("(subpath \"{place}\")"));
    }
    for path in &policy.read {
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
        let _ = writeln!(denied, "(deny file-read* file-write* process-exec {place})");
    }
    // Programs that run with another user's rights, and devices.
    denied.push_str("(deny file-write-setugid)\n(deny file-write-create (vnode-type BLOCK-DEVICE) (vnode-type CHARACTER-DEVICE))\n");
    text.push_str(&denied);
    Ok(Profile { text, parameters })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    const PLACES: Places<'static> = Places {
        programs: &["/usr/bin", "/opt/homebrew"],
        data: &["/opt/homebrew/var"],
        read: &["/private/etc/hosts"],
    };

    fn rendered(policy: &Policy) -> Profile {
        with_proxy(policy, None)
    }

    fn with_proxy(policy: &Policy, proxy: Option<u16>) -> Profile {
        profile(policy, Path::new("/private/tmp/home"), &PLACES, proxy).unwrap()
    }

    #[test]
    fn a_profile_allows_what_its_policy_does() {
        let policy = Policy {
            read: vec!["/Users/a/notes".into()],
            write: vec!["/Users/a/work".into()],
            protected: vec!["/Users/a/Library/Application Support/Tierbar".into()],
            ..Policy::default()
        };
        let Profile { text, parameters } = rendered(&policy);
        assert_eq!(
            parameters,
            [
                "READ_0=/Users/a/notes",
                "WRITE_1=/Users/a/work",
                "WRITE_2=/private/tmp/home",
                "PROTECTED_3=/Users/a/Library/Application Support/Tierbar"
            ]
        );
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[..2], ["(version 1)", "(deny default)"]);
        let run = "(allow file-read* file-map-executable process-exec";
        for wanted in [
            format!("{run} (subpath \"/usr/bin\"))"),
            format!("{run} (subpath (param \"READ_0\")))"),
            format!("{run} file-write* (subpath (param \"WRITE_1\")))"),
            "(allow file-read* (subpath \"/private/etc/hosts\"))".into(),
        ] {
            assert!(lines.contains(&wanted.as_str()), "{wanted}\n{text}");
        }
        // After all that allows.
        let denied = "(deny file-read* file-write* process-exec (subpath (param \"PROTECTED_3\")))";
        let denied = lines.iter().position(|line| *line == denied).unwrap();
        let last = lines.iter().rposition(|line| line.starts_with("(allow"));
        assert!(last.unwrap() < denied, "{text}");
        assert!(!text.contains("network"), "{text}");
    }

    #[test]
    fn each_line_is_argued_in_the_documentation() {
        let argued = include_str!("../../../../docs/agent.md");
        let policy = Policy {
            read: vec!["/a".into()],
            write: vec!["/b".into()],
            protected: vec!["/c".into()],
            ..Policy::default()
        };
        let is_argued = |line: &str| argued.contains(&format!("| `{line}` |"));
        // Each command has another port.
        let text = with_proxy(&policy, Some(4321))
            .text
            .replace(":4321", ":PORT");
        for line in text.lines() {
            // One row for all folders of a kind.
            let kind = line.split_once("(subpath ");
            let kind = kind.map(|(rule, _)| format!("{rule}(subpath …))"));
            assert!(
                is_argued(line) || kind.is_some_and(|kind| is_argued(&kind)),
                "{line}"
            );
        }
    }

    #[test]
    fn data_among_programs_is_not_read_unless_it_is_granted() {
        let policy = Policy {
            read: vec!["/opt/homebrew/var/www".into()],
            ..Policy::default()
        };
        let text = rendered(&policy).text;
        let at = |wanted: &str| text.lines().position(|line| line.contains(wanted));
        let (programs, data) = (at("\"/opt/homebrew\""), at("\"/opt/homebrew/var\""));
        let granted = at("READ_0");
        assert!(
            programs.is_some() && programs < data && data < granted,
            "{text}"
        );
        let line = text.lines().nth(data.unwrap()).unwrap();
        assert!(line.starts_with("(deny file-read-data "), "{line}");
    }

    #[test]
    fn nothing_is_written_but_what_was_granted() {
        let text = rendered(&Policy::default()).text;
        let writes = text.lines().filter(|line| line.contains("file-write*"));
        let writes: Vec<_> = writes.collect();
        assert_eq!(writes.len(), 1, "{writes:?}");
        assert!(writes[0].contains("WRITE_0"), "{writes:?}");
    }

    #[test]
    fn the_network_is_the_launchers_proxy() {
        let text = with_proxy(&Policy::default(), Some(4321)).text;
        let outbound = text.lines().filter(|line| line.contains("network"));
        assert_eq!(
            outbound.collect::<Vec<_>>(),
            ["(allow network-outbound (remote tcp \"localhost:4321\"))"]
        );
    }

    #[test]
    fn a_folders_name_cannot_add_a_rule() {
        let evil = "/tmp/x\"))\n(allow default)\n(\"";
        let policy = Policy {
            write: vec![PathBuf::from(evil)],
            ..Policy::default()
        };
        let Profile { text, parameters } = rendered(&policy);
        assert!(!text.contains("allow default"), "{text}");
        assert_eq!(parameters[0], format!("WRITE_0={evil}"));
    }

    #[test]
    fn parentheses_are_balanced() {
        let policy = Policy {
            read: vec!["/a".into()],
            protected: vec!["/b".into()],
            ..Policy::default()
        };
        for line in with_proxy(&policy, Some(4321)).text.lines() {
            let count = |letter| line.matches(letter).count();
            assert_eq!(count('('), count(')'), "{line}");
            assert_eq!(count('"') % 2, 0, "{line}");
        }
    }
}
