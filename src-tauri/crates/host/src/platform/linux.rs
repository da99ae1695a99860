//! Linux: XDG's folders, and `/proc`.

use super::Listener;
use crate::examine::Finding;
use std::{
    fs,
    path::{Path, PathBuf},
};
use tierbar_core::config::Paging;

/// How a model larger than memory is paged.
pub(crate) const PAGING: Paging = Paging::Cache;

pub(crate) fn data_folder(home: &Path) -> PathBuf {
    let data = crate::folder::path_variable("XDG_DATA_HOME").filter(|path| path.is_absolute());
    data.unwrap_or_else(|| home.join(".local/share"))
        .join("tierbar")
}

/// Nothing about a Linux system itself is known to be in the way.
pub(crate) fn examine() -> Vec<Finding> {
    Vec::new()
}

/// Does nothing: Linux does not slow a program down because it has no window.
pub(crate) fn run_at_full_speed() {}

/// Does nothing: Linux has no mark that all backup programs know.
#[expect(clippy::unnecessary_wraps, reason = "its twin can fail")]
pub(crate) fn exclude_from_backups(_: &Path) -> Result<(), String> {
    Ok(())
}

/// Keeps nothing awake: a Linux desktop says by its own settings when it sleeps, and a server does not.
#[derive(Debug)]
pub(crate) struct Awake;

impl Awake {
    /// # Errors
    /// Never; its twin can fail.
    #[expect(clippy::unnecessary_wraps, reason = "its twin can fail")]
    pub(crate) fn begin(_reason: &'static str) -> Result<Self, String> {
        Ok(Self)
    }
}

/// Returns the program that listens on a port; `None` without one, or if it is another user's. Blocking.
pub(crate) fn listener(port: u16) -> Option<Listener> {
    let sockets: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| listening(&table, port))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    let is_one = |path: &Path| {
        fs::read_link(path).is_ok_and(|link| {
            sockets
                .iter()
                .any(|socket| link.as_os_str() == socket.as_str())
        })
    };
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let pid = pids.find(|pid| {
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd"))
            .into_iter()
            .flatten()
            .flatten();
        descriptors
            .into_iter()
            .any(|descriptor| is_one(&descriptor.path()))
    })?;
    let command = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    Some(Listener {
        pid,
        command: command.trim().to_owned(),
    })
}

/// Inodes of the sockets that listen on the port: `sl local_address rem_address st … uid timeout inode`, with
/// addresses as `ADDRESS:PORT` in hexadecimal and 0A for the state of listening.
fn listening(table: &str, port: u16) -> Vec<String> {
    let port = format!(":{port:04X}");
    let of_line = |line: &str| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let [_, local, _, "0A", _, _, _, _, _, inode, ..] = fields[..] else {
            return None;
        };
        local.ends_with(&port).then(|| inode.to_owned())
    };
    table.lines().skip(1).filter_map(of_line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_found_by_its_port() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        assert_eq!(listener(port).unwrap().pid, std::process::id());
        drop(socket);
        assert_eq!(listener(port), None);
    }

    #[test]
    fn a_connection_to_the_port_does_not_count_as_listener() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:2CAB 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 111 1 0 100 0\n\
             1: 0100007F:2CAB 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 222 1 0 100 0\n\
             2: 0100007F:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 333 1 0 100 0\n";
        assert_eq!(listening(table, 11435), ["111"]);
    }
}
