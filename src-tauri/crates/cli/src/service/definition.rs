//! What a service is, and its file for systemd and for launchd.

use std::path::PathBuf;
use tierbar_core::{Error, bad_request};

/// launchd's name of the service.
pub(super) const LABEL: &str = "dev.tierbar.serve";

/// A program to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Service {
    pub(super) program: PathBuf,
    /// The data folder, if it is not the usual one.
    pub(super) home: Option<PathBuf>,
    /// Whose it is, where it starts before anyone logs in.
    pub(super) user: String,
}

impl Service {
    /// Refuses control characters: a line break would begin a setting of its own, and XML has no way to write most of them.
    pub(super) fn check(&self) -> Result<(), Error> {
        let program = Some(self.program.to_string_lossy());
        let home = self.home.as_ref().map(|home| home.to_string_lossy());
        let texts = [program, home, Some(self.user.as_str().into())];
        let mut texts = texts.into_iter().flatten();
        match texts.find(|text| text.contains(char::is_control)) {
            None => Ok(()),
            Some(text) => {
                let message =
                    format!("{text:?} has a control character, which no service can have");
                Err(bad_request(message).hint("rename it"))
            }
        }
    }

    /// `systemd.service(5)`. `OOMPolicy`: the kernel's end of a worker is no end of the host, which reports it.
    pub(super) fn unit(&self, before_login: bool) -> String {
        let program = quote_argument(&self.program.to_string_lossy(), true);
        let home = self.home.as_ref().map(|home| {
            let variable = format!("TIERBAR_HOME={}", home.display());
            format!("Environment={}\n", quote_argument(&variable, false))
        });
        let (user, target) = if before_login {
            (format!("User={}\n", self.user), "multi-user.target")
        } else {
            (String::new(), "default.target")
        };
        format!(
            "[Unit]\n\
             Description=Tierbar: private local models behind one API\n\
             StartLimitIntervalSec=300\n\
             StartLimitBurst=10\n\
             \n\
             [Service]\n\
             ExecStart={program} serve --wait\n\
             {}{user}\
             Restart=on-failure\n\
             RestartSec=2\n\
             OOMPolicy=continue\n\
             \n\
             [Install]\n\
             WantedBy={target}\n",
            home.unwrap_or_default()
        )
    }

    /// `launchd.plist(5)`. Without `ProcessType`, launchd slows it down.
    pub(super) fn plist(&self, before_login: bool) -> String {
        let program = escape_xml(&self.program.to_string_lossy());
        let home = self.home.as_ref().map(|home| {
            let home = escape_xml(&home.to_string_lossy());
            format!(
                "\t<key>EnvironmentVariables</key>\n\t<dict>\n\t\t<key>TIERBAR_HOME</key>\n\t\t<string>{home}</string>\n\t</dict>\n"
            )
        });
        let user = if before_login {
            let user = escape_xml(&self.user);
            format!("\t<key>UserName</key>\n\t<string>{user}</string>\n")
        } else {
            String::new()
        };
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
             <plist version=\"1.0\">\n<dict>\n\
             \t<key>Label</key>\n\t<string>{LABEL}</string>\n\
             \t<key>ProgramArguments</key>\n\t<array>\n\t\t<string>{program}</string>\n\t\t<string>serve</string>\n\t\t<string>--wait</string>\n\t</array>\n\
             {}{user}\
             \t<key>RunAtLoad</key>\n\t<true/>\n\
             \t<key>KeepAlive</key>\n\t<dict>\n\t\t<key>SuccessfulExit</key>\n\t\t<false/>\n\t</dict>\n\
             \t<key>ProcessType</key>\n\t<string>Interactive</string>\n\
             </dict>\n</plist>\n",
            home.unwrap_or_default()
        )
    }
}

/// A word of a unit: specifiers begin with `%`, and in a command variables with `$` (`systemd.syntax(7)`).
fn quote_argument(text: &str, command: bool) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '%' => quoted.push_str("%%"),
            '$' if command => quoted.push_str("$$"),
            character => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

/// A text in XML.
fn escape_xml(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
