//! What a command sees of the environment: a short list, because what is secret cannot be listed.

use crate::{platform::UTF_8, proxy::variables};
use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

/// Variables that a command may see as they are.
const KEPT: [&str; 4] = ["LANG", "LANGUAGE", "TERM", "TZ"];
/// Variables by which programs know the encoding of text.
const LANGUAGES: [&str; 3] = ["LANG", "LC_ALL", "LC_CTYPE"];

/// Where Apple's developer tools lie in their folder. Xcode has its compilers in the first, and other tools in the second; the Command
/// Line Tools have only the second.
const TOOLS: [&str; 2] = ["Toolchains/XcodeDefault.xctoolchain/usr/bin", "usr/bin"];
/// Where the SDK lies there: Xcode's, and that of the Command Line Tools.
const SDKS: [&str; 2] = [
    "Platforms/MacOSX.platform/Developer/SDKs/MacOSX.sdk",
    "SDKs/MacOSX.sdk",
];

/// Returns the environment of a command: what is kept of ours, and what is its own. `path`: its `PATH`. `home` is a folder for it alone.
/// `developer`: Apple's developer tools. `named`: variables that it sees as well. `proxy`: the port of its network.
pub(crate) fn kept_environment(
    ours: impl IntoIterator<Item = (OsString, OsString)>,
    path: OsString,
    home: &Path,
    developer: Option<&Path>,
    named: &[String],
    proxy: Option<u16>,
) -> Vec<(OsString, OsString)> {
    let mut kept = vec![(OsString::from("PATH"), path)];
    for (name, value) in ours {
        let Some(text) = name.to_str() else { continue };
        let is_named = || named.iter().any(|named| named == text);
        if text != "PATH" && (KEPT.contains(&text) || text.starts_with("LC_") || is_named()) {
            kept.push((name, value));
        }
    }
    // Apps and services have no language, and then many programs take text for ASCII.
    let has_language = |(name, _): &(OsString, OsString)| LANGUAGES.iter().any(|of| name == of);
    if !kept.iter().any(has_language) {
        kept.push(("LANG".into(), UTF_8.into()));
    }
    // Compilers look for it only if they are started by the system's stand-ins.
    let has_sdk = kept.iter().any(|(name, _)| name == "SDKROOT");
    let developer = developer.filter(|_| !has_sdk);
    let mut sdks = developer
        .into_iter()
        .flat_map(|developer| SDKS.map(|sdk| developer.join(sdk)));
    if let Some(sdk) = sdks.find(|sdk| sdk.is_dir()) {
        kept.push(("SDKROOT".into(), sdk.into()));
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

/// Returns the folders of a path that lie in what a command can read.
///
/// In `/usr/bin`, a Mac has stand-ins for the developer tools. They find the tools by `xcrun`, which wants to write a cache that a sandbox
/// refuses. So the tools come before them.
pub(crate) fn readable_path(
    path: &OsStr,
    readable: &[PathBuf],
    developer: Option<&Path>,
) -> OsString {
    let folders = std::env::split_paths(path).flat_map(|folder| {
        let developer = developer.filter(|_| folder == Path::new("/usr/bin"));
        let tools = developer
            .into_iter()
            .flat_map(|developer| TOOLS.map(|tools| developer.join(tools)));
        tools.chain([folder])
    });
    let folders = folders.filter(|folder| {
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
            ("PATH", "/root/bin"),
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
        let path = readable_path("/usr/bin:/root/bin:.:relative".as_ref(), &[usr], None);
        let named = ["HF_TOKEN".to_owned()];
        let kept = kept_environment(ours, path, Path::new("/private"), None, &named, None);
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
    fn a_command_without_a_language_has_unicode() {
        let language = |ours: &[(&str, &str)]| {
            let ours = ours.iter().map(|(name, value)| (name.into(), value.into()));
            let kept = kept_environment(ours, "".into(), Path::new("/private"), None, &[], None);
            let mut found = kept.into_iter().filter(|(name, _)| name == "LANG");
            found.next().map(|(_, value)| value.into_string().unwrap())
        };
        assert_eq!(language(&[]).as_deref(), Some(UTF_8));
        assert_eq!(language(&[("LANG", "de_DE")]).as_deref(), Some("de_DE"));
        assert_eq!(language(&[("LC_ALL", "C")]), None);
    }

    #[test]
    fn developer_tools_come_before_their_stand_ins() {
        for (tools, sdk) in [
            // The Command Line Tools, and Xcode.
            (&["usr/bin"][..], "SDKs/MacOSX.sdk"),
            (
                &["Toolchains/XcodeDefault.xctoolchain/usr/bin", "usr/bin"][..],
                "Platforms/MacOSX.platform/Developer/SDKs/MacOSX.sdk",
            ),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let developer = folder.path().canonicalize().unwrap();
            let tools: Vec<PathBuf> = tools.iter().map(|tools| developer.join(tools)).collect();
            let sdk = developer.join(sdk);
            for folder in tools.iter().chain([&sdk]) {
                std::fs::create_dir_all(folder).unwrap();
            }
            let usr = PathBuf::from("/usr");
            let path = |readable: &[PathBuf]| {
                readable_path("/usr/sbin:/usr/bin".as_ref(), readable, Some(&developer))
            };
            let all = [usr.join("sbin")].into_iter().chain(tools);
            let all = std::env::join_paths(all.chain([usr.join("bin")])).unwrap();
            assert_eq!(path(&[usr.clone(), developer.clone()]), all);
            // Those of another Xcode, which it may not read.
            assert_eq!(path(&[usr]), "/usr/sbin:/usr/bin");
            assert_eq!(sdk_roots(&developer, &[]), [sdk]);
        }
    }

    #[test]
    fn an_sdk_is_the_named_one_or_one_that_exists() {
        let developer = tempfile::tempdir().unwrap();
        let developer = developer.path();
        assert!(sdk_roots(developer, &[]).is_empty());
        std::fs::create_dir_all(developer.join("SDKs/MacOSX.sdk")).unwrap();
        let named = ["SDKROOT".to_owned()];
        assert_eq!(sdk_roots(developer, &named), [PathBuf::from("/mine")]);
    }

    /// What a command has as `SDKROOT`, where ours is `/mine`.
    fn sdk_roots(developer: &Path, named: &[String]) -> Vec<PathBuf> {
        let ours = [("SDKROOT".into(), "/mine".into())];
        let home = Path::new("/private");
        let kept = kept_environment(ours, "".into(), home, Some(developer), named, None);
        let kept = kept.into_iter().filter(|(name, _)| name == "SDKROOT");
        kept.map(|(_, value)| value.into()).collect()
    }

    #[test]
    fn a_command_with_the_network_finds_its_proxy() {
        let ours = [("HTTPS_PROXY".into(), "http://proxy.example:3128".into())];
        let named = ["HTTPS_PROXY".to_owned()];
        let home = Path::new("/private");
        let kept = kept_environment(ours, "/bin".into(), home, None, &named, Some(4321));
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
