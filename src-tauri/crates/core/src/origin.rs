//! Origins of pages that call the API: what each is, and which may call without being allowed.

use crate::{
    address::{is_near, is_shared},
    status::RefusedOrigin,
};
use core::net::IpAddr;

/// The schemes of an installed program's own windows: apps of Electron, of Tauri and of VS Code's family.
pub const PROGRAM_SCHEMES: [&str; 3] = ["app", "tauri", "vscode-file"];

/// The scheme of the views of VS Code's extensions. They show what others wrote, such as a notebook's output or a preview,
/// which could not call by itself. Each kind of view keeps a host of its own.
const VIEW_SCHEME: &str = "vscode-webview";

const EXTENSION_SCHEMES: [&str; 3] = ["chrome-extension", "moz-extension", "safari-web-extension"];

/// Names that no public name server answers (RFC 6761, RFC 6762, RFC 8375, and ICANN's `.internal`).
const LOCAL_NAMES: [&str; 4] = ["localhost", "local", "home.arpa", "internal"];

/// The longest origin that is allowed or remembered, in bytes.
const LONGEST: usize = 255;

/// What shows a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OriginKind {
    /// A program that is installed here, and could call without naming an origin.
    Program,
    /// A server on this machine or its network, a browser extension, or an editor's view. A website cannot choose such an origin.
    Local,
    /// Any other site.
    Public,
    /// A file, a sandboxed frame, or what is no origin: nothing that can be told from other pages.
    Opaque,
}

/// Returns what shows the pages of an origin, as a browser writes it.
pub fn kind(origin: &str) -> OriginKind {
    if check(origin).is_err() {
        return OriginKind::Opaque;
    }
    match origin.split_once("://") {
        Some((scheme, _)) if PROGRAM_SCHEMES.contains(&scheme) => OriginKind::Program,
        Some((VIEW_SCHEME, _)) => OriginKind::Local,
        Some((scheme, _)) if EXTENSION_SCHEMES.contains(&scheme) => OriginKind::Local,
        Some(("http" | "https", authority)) if is_local(authority) => OriginKind::Local,
        Some(("file", _)) | None => OriginKind::Opaque,
        Some(_) => OriginKind::Public,
    }
}

/// # Errors
/// Why it is not an origin as browsers write it.
pub fn check(origin: &str) -> Result<(), String> {
    let plain = |text: &str, more: &[u8]| {
        let allowed =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || more.contains(&byte);
        !text.is_empty() && text.bytes().all(allowed)
    };
    let is_origin = origin
        .split_once("://")
        .is_some_and(|(scheme, host)| plain(scheme, b"+-.") && plain(host, b"-.:[]"));
    if is_origin && origin.len() <= LONGEST {
        return Ok(());
    }
    let shown: String = origin.chars().take(LONGEST).collect();
    Err(format!(
        "\"{shown}\" is not an origin: use scheme, host and port without a path, such as \"http://localhost:3000\""
    ))
}

/// Returns an origin as browsers write it: in lower case, without the slash at its end and the scheme's usual port.
///
/// # Errors
/// Those of [`check`].
pub fn normalize(typed: &str) -> Result<String, String> {
    let lower = typed.trim().to_ascii_lowercase();
    let origin = lower.strip_suffix('/').unwrap_or(&lower);
    let usual = match origin.split_once("://") {
        Some(("http", _)) => ":80",
        Some(("https", _)) => ":443",
        _ => "",
    };
    let origin = origin.strip_suffix(usual).unwrap_or(origin);
    check(origin)?;
    Ok(origin.to_owned())
}

/// The origins that were refused and may be allowed with a click, oldest first. Few are kept, since any page can add one.
#[derive(Debug, Clone, Default)]
pub struct RefusedOrigins(Vec<RefusedOrigin>);

impl RefusedOrigins {
    pub const MOST: usize = 16;

    /// Remembers an origin that is [`OriginKind::Local`]; returns whether it is new. The oldest gives way to a new one.
    pub fn note(&mut self, origin: &str, now_ms: u64) -> bool {
        let is_known = self.0.iter().any(|refused| refused.origin == origin);
        if is_known || kind(origin) != OriginKind::Local {
            return false;
        }
        if self.0.len() == Self::MOST {
            self.0.remove(0);
        }
        self.0.push(RefusedOrigin {
            origin: origin.to_owned(),
            since_ms: now_ms,
        });
        true
    }

    /// Forgets the origins that are among these.
    pub fn forget(&mut self, origins: &[String]) {
        self.0.retain(|refused| !origins.contains(&refused.origin));
    }

    pub fn list(&self) -> &[RefusedOrigin] {
        &self.0
    }
}

fn is_local(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    match host.parse().map(|address: IpAddr| address.to_canonical()) {
        Ok(IpAddr::V4(address)) => is_near(address.into()) || is_shared(address),
        Ok(address) => is_near(address),
        Err(_) => LOCAL_NAMES.iter().any(|name| {
            let before = host.strip_suffix(name);
            before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::{OriginKind::*, *};

    #[test]
    fn each_origin_has_its_kind() {
        for (kind_of_it, origins) in [
            (
                Program,
                &[
                    "app://obsidian.md",
                    "tauri://localhost",
                    "vscode-file://vscode-app",
                ][..],
            ),
            (
                Local,
                &[
                    "http://localhost",
                    "http://localhost:3000",
                    "https://app.localhost:5173",
                    "http://127.0.0.1:8080",
                    "http://127.9.9.9",
                    "http://[::1]:3000",
                    "http://[fd00::7]",
                    "http://[fe80::1]:1",
                    "http://[::ffff:192.168.1.5]",
                    "http://10.0.0.7",
                    "http://172.16.0.1",
                    "http://192.168.178.20:8123",
                    "http://100.64.0.9",
                    "http://homeassistant.local:8123",
                    "http://nas.home.arpa",
                    "chrome-extension://abcdefghijklmnop",
                    "vscode-webview://1a2b3c4d",
                ],
            ),
            (
                Public,
                &[
                    "https://evil.example",
                    "http://localhost.evil.example",
                    "http://evillocalhost",
                    "http://127.0.0.1.evil.example",
                    "http://8.8.8.8",
                    "http://172.32.0.1",
                    "http://100.128.0.1",
                    "http://[2001:db8::1]",
                    "ftp://localhost",
                    "appx://obsidian.md",
                    "http://192.168.1",
                ],
            ),
            (
                Opaque,
                &[
                    "null",
                    "file://",
                    "file://localhost",
                    "",
                    "app://",
                    "http://localhost:3000/path",
                    "http://LOCALHOST",
                    "http://localhost' ; rm -rf ~",
                    "about:blank",
                ],
            ),
        ] {
            for origin in origins {
                assert_eq!(kind(origin), kind_of_it, "{origin}");
            }
        }
        assert_eq!(kind(&format!("http://{}.local", "a".repeat(300))), Opaque);
    }

    #[test]
    fn only_local_origins_are_remembered_and_only_some() {
        let mut refused = RefusedOrigins::default();
        assert!(refused.note("http://localhost:3000", 7));
        assert!(!refused.note("http://localhost:3000", 8));
        for never in [
            "https://evil.example",
            "null",
            "file://",
            "app://obsidian.md",
        ] {
            assert!(!refused.note(never, 9), "{never}");
        }
        assert_eq!(refused.list().len(), 1);
        assert_eq!(refused.list()[0].since_ms, 7);
        for port in 1..=100 {
            assert!(refused.note(&format!("http://localhost:{port}"), 10));
        }
        assert_eq!(refused.list().len(), RefusedOrigins::MOST);
        assert_eq!(refused.list()[15].origin, "http://localhost:100");
        refused.forget(&["http://localhost:100".to_owned()]);
        assert_eq!(refused.list()[14].origin, "http://localhost:99");
    }

    #[test]
    fn an_origin_may_be_typed_as_an_address() {
        for (typed, origin) in [
            ("http://localhost:3000", "http://localhost:3000"),
            (" HTTP://Localhost:3000/ ", "http://localhost:3000"),
            ("http://localhost:80", "http://localhost"),
            ("https://a.example:443/", "https://a.example"),
            ("app://obsidian.md", "app://obsidian.md"),
        ] {
            assert_eq!(normalize(typed).as_deref(), Ok(origin), "{typed}");
        }
        for wrong in ["localhost:3000", "http://a/b", "null", "", "http://", "*"] {
            assert!(normalize(wrong).is_err(), "{wrong}");
        }
    }
}
