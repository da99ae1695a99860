//! MCP servers: programs and addresses whose tools an agent may use, each time with consent.

use super::{server_of, with_defaults};
use serde::{Deserialize, Serialize};

with_defaults! {
    /// `[mcp.NAME]`. It has either a command or an address.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
    pub struct McpServerConfig {
        /// The program and its arguments, such as `["npx", "-y", "@example/server"]`. It runs in the sandbox of an agent's commands.
        pub command: Vec<String>,
        /// The address of a server instead, with `https://`, or `http://` on this machine. It gets the key that is stored for its host.
        pub url: String,
        /// The folder that the program may read and write; empty: a temporary folder.
        pub folder: String,
        /// More folders that the program may read, such as the one that it is installed in.
        pub read: Vec<String>,
        /// Let the program connect to public servers on ports 80 and 443, by a proxy.
        pub network: bool,
        /// Variables of Tierbar's environment that the program sees.
        pub variables: Vec<String>,
        /// The environment variable for the program's key, stored as the secret `mcp-NAME`; empty: no key.
        pub key_variable: String,
        /// The tools to offer; empty: all that the server has.
        pub tools: Vec<String>,
        /// Offer its tools to agents.
        pub enabled: bool = true,
    }
}

impl McpServerConfig {
    /// The most servers.
    pub const MOST: usize = 32;
    /// The most tools of one server that are offered at once. Each takes room in the model's context.
    pub const MOST_TOOLS: usize = 64;
    const LONGEST: usize = 1024;

    /// Checks the server. Its folders are paths, which the host checks.
    ///
    /// # Errors
    /// The first invalid key, and why in a sentence.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let wrong = |key, what: &str| Err((key, what.to_owned()));
        match (self.command.first(), self.url.is_empty()) {
            (Some(_), false) => {
                return wrong("url", "is set, and `command` as well: keep one of them");
            }
            (None, true) => {
                return wrong("command", "is empty, and so is `url`: set one of them");
            }
            (None, false) => self.check_url().map_err(|what| ("url", what))?,
            (Some(program), true) if program.is_empty() => {
                return wrong("command", "begins with an empty program");
            }
            (Some(_), true) => {}
        }
        let is_odd = |word: &String| word.len() > Self::LONGEST || word.contains(char::is_control);
        if self.command.iter().any(is_odd) {
            let what = "has a word that is too long, or that contains control characters";
            return wrong("command", what);
        }
        for name in &self.variables {
            check_variable(name).map_err(|what| ("variables", what))?;
        }
        if !self.key_variable.is_empty() {
            check_variable(&self.key_variable).map_err(|what| ("key_variable", what))?;
        }
        if self.command.is_empty() {
            let of_programs = [
                ("folder", !self.folder.is_empty()),
                ("read", !self.read.is_empty()),
                ("network", self.network),
                ("variables", !self.variables.is_empty()),
                ("key_variable", !self.key_variable.is_empty()),
            ];
            if let Some((key, _)) = of_programs.iter().find(|(_, is_set)| *is_set) {
                return wrong(
                    key,
                    "is for a program: a server at a `url` does not run here",
                );
            }
        }
        let (tools, most) = (self.tools.len(), Self::MOST_TOOLS);
        if tools > most {
            let what = format!("names {tools} tools, and at most {most} can be offered at once");
            return Err(("tools", what));
        }
        Ok(())
    }

    fn check_url(&self) -> Result<(), String> {
        let url = &self.url;
        let plain = |byte: u8| byte.is_ascii_graphic();
        if url.len() > Self::LONGEST || !url.bytes().all(plain) {
            return Err("is too long, or contains spaces or other invalid characters".to_owned());
        }
        let Some((scheme, server)) = server_of(url).filter(|(_, server)| !server.is_empty()) else {
            return Err(format!("\"{url}\" is not a URL: start it with https://"));
        };
        if let Some((_, server)) = server.rsplit_once('@') {
            return Err(format!(
                "keys do not belong in the configuration: store this one with `tierbar secret set {server}`"
            ));
        }
        match scheme {
            "https" => Ok(()),
            "http" if is_this_machine(server) => Ok(()),
            _ => Err(format!(
                "\"{url}\" is neither https:// nor on this machine: what it gets could be read on the way"
            )),
        }
    }
}

/// Whether a server, with or without its port, is this machine by its name or address.
fn is_this_machine(server: &str) -> bool {
    let host = match server.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => server,
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || host
            .parse::<core::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// A name that is a program's own. Those that decide what runs, and where, are the sandbox's.
fn check_variable(name: &str) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if name.is_empty()
        || name.len() > 128
        || !name.bytes().all(plain)
        || name.starts_with(|letter: char| letter.is_ascii_digit())
    {
        return Err("names of variables have letters, digits and _ alone".to_owned());
    }
    let of_the_sandbox = ["PATH", "HOME", "TMPDIR"].contains(&name);
    let of_others = ["TIERBAR_", "LD_", "DYLD_"]
        .iter()
        .any(|start| name.starts_with(start));
    if of_the_sandbox || of_others {
        return Err(format!("{name} cannot be passed on"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wrong(server: serde_json::Value) -> Option<&'static str> {
        let server: McpServerConfig = serde_json::from_value(server).unwrap();
        server.check().err().map(|(key, _)| key)
    }

    #[test]
    fn a_server_has_a_command_or_an_address() {
        for right in [
            json!({"command": ["npx", "-y", "x"], "network": true, "variables": ["A_1"], "key_variable": "TOKEN"}),
            json!({"url": "https://mcp.example.com/mcp", "tools": ["a"]}),
            json!({"url": "http://127.0.0.1:8000/mcp"}),
            json!({"url": "http://localhost/mcp"}),
            json!({"url": "http://[::1]:80/mcp", "enabled": false}),
        ] {
            assert_eq!(wrong(right.clone()), None, "{right}");
        }
        for (server, key) in [
            (json!({}), "command"),
            (json!({"command": ["a"], "url": "https://a.example"}), "url"),
            (json!({"command": [""]}), "command"),
            (json!({"command": ["a", "b\n"]}), "command"),
            (json!({"url": "http://mcp.example.com"}), "url"),
            (json!({"url": "http://127.0.0.1.example.com"}), "url"),
            (json!({"url": "http://localhost@example.com"}), "url"),
            (json!({"url": "https://"}), "url"),
            (json!({"url": "mcp.example.com"}), "url"),
            (json!({"url": "https://key@mcp.example.com"}), "url"),
            (
                json!({"url": "https://a.example", "network": true}),
                "network",
            ),
            (
                json!({"url": "https://a.example", "folder": "/a"}),
                "folder",
            ),
            (
                json!({"command": ["a"], "variables": ["PATH"]}),
                "variables",
            ),
            (json!({"command": ["a"], "variables": ["A=B"]}), "variables"),
            (
                json!({"command": ["a"], "key_variable": "LD_PRELOAD"}),
                "key_variable",
            ),
            (json!({"command": ["a"], "tools": vec!["t"; 65]}), "tools"),
        ] {
            assert_eq!(wrong(server.clone()), Some(key), "{server}");
        }
    }
}
