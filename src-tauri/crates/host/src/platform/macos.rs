//! macOS: Application Support, and `lsof`, which every Mac has.

use super::Listener;
use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

pub(crate) fn data_folder(home: &Path) -> PathBuf {
    home.join("Library/Application Support/Tierbar")
}

/// Returns the program that listens on a port; `None` without one, or if it is another user's. Blocking.
pub(crate) fn listener(port: u16) -> Option<Listener> {
    let output = Command::new("/usr/sbin/lsof")
        .args(["-nP", &format!("-iTCP:{port}"), "-sTCP:LISTEN", "-Fpc"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    first(&String::from_utf8_lossy(&output.stdout))
}

/// With `-F`, each line is a field: `p` the process id, `c` its command.
fn first(fields: &str) -> Option<Listener> {
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
    fn the_first_process_that_listens_is_named() {
        let found = first("p501\ncollama\nf12\np502\ncother\n");
        assert_eq!(
            found,
            Some(Listener {
                pid: 501,
                command: "ollama".to_owned()
            })
        );
        assert_eq!(first(""), None);
    }

    #[test]
    fn a_listener_is_found_by_its_port() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        assert_eq!(listener(port).unwrap().pid, std::process::id());
    }
}
