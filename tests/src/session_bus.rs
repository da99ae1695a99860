//! A session bus of its own, on which nothing is started by name: what is there was put there.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

const CONFIG: &str = r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:dir=FOLDER</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow send_destination="*"/>
    <allow receive_sender="*"/>
    <allow own="*"/>
  </policy>
</busconfig>
"#;

#[derive(Debug)]
pub struct SessionBus {
    daemon: Child,
    pub address: String,
}

impl SessionBus {
    /// # Panics
    /// If dbus-daemon is missing or does not start.
    #[must_use]
    pub fn start(folder: &Path) -> Self {
        let config = folder.join("bus.conf");
        std::fs::write(
            &config,
            CONFIG.replace("FOLDER", &folder.display().to_string()),
        )
        .expect("the bus's file");
        let mut daemon = Command::new("dbus-daemon")
            .args(["--nofork", "--nopidfile", "--print-address=1"])
            .arg(format!("--config-file={}", config.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("dbus-daemon: `make setup` installs it");
        let mut address = String::new();
        let stdout = daemon.stdout.take().expect("a pipe");
        BufReader::new(stdout)
            .read_line(&mut address)
            .expect("the bus's address");
        assert!(!address.trim().is_empty(), "dbus-daemon did not start");
        Self {
            daemon,
            address: address.trim().to_owned(),
        }
    }
}

impl Drop for SessionBus {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}
