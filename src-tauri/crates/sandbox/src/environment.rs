//! What a command sees of the environment: a short list, because what is secret cannot be listed.

use crate::proxy::variables;
use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

/// Variables that a command may see as they are.
const KEPT: [&str; 4] = ["LANG", "LANGUAGE", "TERM", "TZ"];

/// Returns the environment of a command: what is kept of ours, and what is its own. `home` is a folder for it alone. Of `PATH`, the
/// folders stay that lie in what the command can read. `named`: variables that it sees as well. `proxy`: the port of its network.
pub(crate) fn kept_environment(
    ours: impl IntoIterator<Item = (OsString, OsString)>,
    home: &Path,
    readable: &[PathBuf],
    named: &[String],
    proxy: Option<u16>,
) -> Vec<(OsString, OsString)> {
    let mut kept: Vec<(OsString, OsString)> = Vec::new();
    for (name, value) in ours {
        let Some(text) = name.to_str() else { continue };
        if text == "PATH" {
            kept.push((name, readable_path(&value, readable)));
        } else if KEPT.contains(&text)
            || text.starts_with("LC_")
            || named.iter().any(|named| named == text)
        {
            kept.push((name, value));
        }
    }
    if !kept.iter().any(|(name, _)| name == "PATH") {
        kept.push(("PATH".into(), "/usr/bin:/bin".into()));
    }
    for name in ["HOME", "TMPDIR"] {
        kept.push((name.into(), home.into()));
    }
    // A pager or a question would wait forever.
    for (name, value) in [("PAGER", "cat"), ("GIT_TERMINAL_PROMPT", "0"), ("CI", "1")] {
        kept.push((name.into(), value.into()));
    }
    // What comes last holds, if one of these was named.
    for (name, value) in proxy.into_iter().flat_map(variables) {
        kept.push((name.into(), value.into()));
    }
    kept
}

fn readable_path(path: &OsStr, readable: &[PathBuf]) -> OsString {
    let folders = std::env::split_paths(path).filter(|folder| {
        let real = folder.canonicalize();
        folder.is_absolute()
            && real.is_ok_and(|real| readable.iter().any(|place| real.starts_with(place)))
    });
    // Parts of a path have no separators.
    std::env::join_paths(folders).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_reach_a_command() {
        let ours = [
            ("PATH", "/usr/bin:/root/bin:.:relative"),
            ("LANG", "C.UTF-8"),
            ("LC_ALL", "C"),
            ("TIERBAR_TOKEN", "secret"),
            ("TIERBAR_HOME", "/data"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("HF_TOKEN", "secret"),
            ("OPENAI_API_KEY", "secret"),
            ("SSH_AUTH_SOCK", "/run/agent"),
            ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/run/bus"),
            ("LD_PRELOAD", "/tmp/evil.so"),
            ("BASH_ENV", "/tmp/evil.sh"),
            ("HOME", "/root"),
            ("LCX", "no"),
        ];
        let ours = ours.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let usr = Path::new("/usr/bin").canonicalize().unwrap();
        let named = ["HF_TOKEN".to_owned()];
        let kept = kept_environment(ours, Path::new("/private"), &[usr], &named, None);
        let names: Vec<_> = kept
            .iter()
            .map(|(name, _)| name.to_str().unwrap())
            .collect();
        assert_eq!(
            names,
            [
                "PATH",
                "LANG",
                "LC_ALL",
                // It was named.
                "HF_TOKEN",
                "HOME",
                "TMPDIR",
                "PAGER",
                "GIT_TERMINAL_PROMPT",
                "CI"
            ]
        );
        assert_eq!(kept[0].1, "/usr/bin");
        assert_eq!(kept[4].1, "/private");
    }

    #[test]
    fn a_command_has_a_path_without_ours() {
        let kept = kept_environment([], Path::new("/private"), &[], &[], None);
        assert_eq!(kept[0], ("PATH".into(), "/usr/bin:/bin".into()));
    }

    #[test]
    fn a_command_with_the_network_finds_its_proxy() {
        let ours = [("HTTPS_PROXY".into(), "http://proxy.example:3128".into())];
        let named = ["HTTPS_PROXY".to_owned()];
        let kept = kept_environment(ours, Path::new("/private"), &[], &named, Some(4321));
        let last = |wanted: &str| {
            let mut found = kept.iter().rev().filter(|(name, _)| name == wanted);
            found.next().map(|(_, value)| value.to_str().unwrap())
        };
        for name in ["http_proxy", "HTTPS_PROXY", "ALL_PROXY"] {
            assert_eq!(last(name), Some("http://127.0.0.1:4321"), "{name}");
        }
        assert_eq!(last("NO_PROXY"), Some(""));
    }
}
