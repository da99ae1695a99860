//! The MCP servers of the configuration: how each is reached, and its tools for an agent.

use futures_util::future::join_all;
use secrecy::SecretString;
use serde_json::Value;
use tierbar_agent::{
    calls::ExternalTool,
    mcp::{Failure, Listing, Place, Program, Session, Tool},
};
use tierbar_core::{
    Code, Error, bad_request,
    config::{McpServerConfig, server_of},
    home::from_home,
};
use tierbar_fetch::blocking;
use tierbar_inference::services::{SandboxPlace, Services};
use tierbar_sandbox::Network;
use tierbar_secrets::{Name, Secrets};

/// The most tools of all servers that a model is offered at once.
const MOST_TOOLS: usize = 128;

/// A server that was opened, with the tools that its configuration offers.
#[derive(Debug)]
struct OpenServer {
    name: String,
    session: Session,
    tools: Vec<Tool>,
}

/// The servers that a turn acts with.
#[derive(Debug, Default)]
pub struct Servers(Vec<OpenServer>);

impl Servers {
    /// Opens servers, all at once. Those that fail are returned with the reason: the turn goes on without them.
    pub async fn open(
        servers: &[(String, McpServerConfig)],
        services: &dyn Services,
        secrets: &Secrets,
    ) -> (Self, Vec<(String, Error)>) {
        let opening = servers.iter();
        let opening = opening.map(|(name, config)| open_one(name, config, services, secrets));
        let opened = join_all(opening).await;
        let (mut open, mut failed, mut tools) = (Vec::new(), Vec::new(), 0);
        for ((name, _), opened) in servers.iter().zip(opened) {
            let name = name.clone();
            match opened {
                Ok(server) if tools + server.tools.len() > MOST_TOOLS => {
                    let message = format!(
                        "the MCP server {name} is left out: with it, there would be more than {MOST_TOOLS} tools"
                    );
                    let hint = format!("name those you need in mcp.{name}.tools");
                    failed.push((name, bad_request(message).hint(hint)));
                }
                Ok(server) => {
                    tools += server.tools.len();
                    open.push(server);
                }
                Err(error) => failed.push((name, error)),
            }
        }
        (Self(open), failed)
    }

    /// The tools as an agent takes them.
    pub fn tools(&self) -> Vec<ExternalTool> {
        let tools = self.0.iter().flat_map(|server| {
            server.tools.iter().map(|tool| ExternalTool {
                server: server.name.clone(),
                name: tool.name.clone(),
                description: tool.description.clone(),
                parameters: tool.parameters.clone(),
                definition: tool.definition.clone(),
            })
        });
        tools.collect()
    }

    /// Uses a tool. Returns what a model reads.
    ///
    /// # Errors
    /// Why it failed, which is data as well.
    pub async fn call(
        &self,
        server: &str,
        name: &str,
        definition: &str,
        arguments: &Value,
    ) -> Result<String, String> {
        let open = self.0.iter().find(|open| open.name == server);
        let open = open.ok_or_else(|| format!("the MCP server {server} is not connected"))?;
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let called = open.session.call(name, definition, arguments).await;
        called.map_err(|failure| format!("{server} {failure}"))
    }
}

async fn open_one(
    name: &str,
    config: &McpServerConfig,
    services: &dyn Services,
    secrets: &Secrets,
) -> Result<OpenServer, Error> {
    let (session, listing) = open(name, config, None, services, secrets).await?;
    for (tool, why) in &listing.left_out {
        tracing::warn!("the tool \"{tool}\" of the MCP server {name} is left out: {why}");
    }
    Ok(OpenServer {
        name: name.to_owned(),
        session,
        tools: offered_tools(name, config, listing.tools)?,
    })
}

/// Starts a server's program or connects to its address, and lists its tools. `key`: instead of the one that is stored.
///
/// # Errors
/// `AccessDenied` without the key that it needs; `Internal` if there is no sandbox; `Unreachable` for all that a server can do wrong.
pub async fn open(
    name: &str,
    config: &McpServerConfig,
    key: Option<&SecretString>,
    services: &dyn Services,
    secrets: &Secrets,
) -> Result<(Session, Listing), Error> {
    let place = place_of_server(name, config, key, services, secrets).await?;
    let failed = |failure: Failure| server_error(name, config, &failure);
    let session = Session::open(place).await.map_err(failed)?;
    let listing = session.tools().await.map_err(failed)?;
    Ok((session, listing))
}

/// Of a server's tools, those that agents are offered.
///
/// # Errors
/// `BadRequest` if there are too many, or one that the configuration names is not there.
pub fn offered_tools(
    name: &str,
    config: &McpServerConfig,
    mut tools: Vec<Tool>,
) -> Result<Vec<Tool>, Error> {
    let wanted = &config.tools;
    if let Some(missing) = wanted
        .iter()
        .find(|wanted| !tools.iter().any(|tool| tool.name == **wanted))
    {
        let message = format!("the MCP server {name} has no tool {missing}");
        let hint = format!("`tierbar mcp-servers test {name}` lists its tools");
        return Err(bad_request(message).hint(hint));
    }
    tools.retain(|tool| wanted.is_empty() || wanted.contains(&tool.name));
    let most = McpServerConfig::MOST_TOOLS;
    if tools.len() > most {
        let message = format!(
            "the MCP server {name} has {} tools, and at most {most} are offered at once",
            tools.len()
        );
        let hint = format!("name those you need in mcp.{name}.tools");
        return Err(bad_request(message).hint(hint));
    }
    Ok(tools)
}

/// Returns the secret that a server's key is stored as; `None` for a program that gets no key.
pub fn secret_of(name: &str, config: &McpServerConfig) -> Option<Name> {
    if !config.url.is_empty() {
        return Some(Name::of_server(&config.url));
    }
    (!config.key_variable.is_empty()).then(|| Name::of_mcp_server(name))
}

async fn place_of_server(
    name: &str,
    config: &McpServerConfig,
    key: Option<&SecretString>,
    services: &dyn Services,
    secrets: &Secrets,
) -> Result<Place, Error> {
    let secret = secret_of(name, config);
    let key = match (key, &secret) {
        (_, None) => None,
        (Some(key), Some(_)) => Some(key.clone()),
        (None, Some(secret)) => stored_secret(secrets, secret.clone()).await?,
    };
    if !config.url.is_empty() {
        let url = config.url.clone();
        return Ok(Place::Address { url, key });
    }
    if let (Some(secret), None) = (secret, &key) {
        let message = format!("no key is stored for the MCP server {name}");
        let hint = format!("store it with `tierbar secret set {secret}`");
        return Err(Error::new(Code::AccessDenied, message).hint(hint));
    }
    let SandboxPlace {
        launcher,
        protected,
    } = services.sandbox()?;
    let full = |folder: &String| from_home(folder, tierbar_nofollow::home());
    Ok(Place::Program(Program {
        launcher,
        command: config.command.clone(),
        folder: (!config.folder.is_empty()).then(|| full(&config.folder)),
        read: config.read.iter().map(full).collect(),
        network: if config.network {
            Network::Web
        } else {
            Network::None
        },
        protected,
        variables: config.variables.clone(),
        key: key.map(|key| (config.key_variable.clone(), key)),
    }))
}

/// Returns a secret, if it is stored.
///
/// # Errors
/// Those of [`Secrets::get`].
pub async fn stored_secret(secrets: &Secrets, name: Name) -> Result<Option<SecretString>, Error> {
    let secrets = secrets.clone();
    blocking("the secrets", move || secrets.get(&name)).await
}

fn server_error(name: &str, config: &McpServerConfig, failure: &Failure) -> Error {
    let is_program = !config.command.is_empty();
    let message = format!("the MCP server {name} {failure}");
    let hint = match failure {
        Failure::KeyWanted => {
            let server = server_of(&config.url).map_or("", |(_, server)| server);
            format!("store its key with `tierbar secret set {server}`")
        }
        Failure::NotFound(_) => {
            format!("install it, or give its full path in `command` of mcp.{name}")
        }
        Failure::NotRun(_) | Failure::Ended(_) if is_program => format!(
            "a program reads only the system's folders, and those in `folder` and `read` of mcp.{name}"
        ),
        Failure::Silent(_) | Failure::Unread { .. } if is_program && !config.network => {
            format!("a program that downloads something, such as npx, needs mcp.{name}.network")
        }
        Failure::Lack(lack) => {
            return Error {
                message,
                ..lack.clone()
            };
        }
        _ => return Error::new(Code::Unreachable, message),
    };
    let code = match failure {
        Failure::KeyWanted => Code::AccessDenied,
        _ => Code::Unreachable,
    };
    Error::new(code, message).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str) -> Tool {
        Tool {
            name: name.to_owned(),
            description: String::new(),
            parameters: Value::Null,
            definition: String::new(),
        }
    }

    #[test]
    fn the_configuration_chooses_among_many_tools() {
        let tools: Vec<_> = (0..500).map(|at| tool(&format!("t{at}"))).collect();
        let mut config = McpServerConfig::default();
        let many = offered_tools("a", &config, tools.clone()).unwrap_err();
        assert!(many.message.contains("500 tools"), "{many}");
        assert!(many.hint.unwrap().contains("mcp.a.tools"));
        config.tools = vec!["t499".into(), "t1".into()];
        let names = |tools: Vec<Tool>| tools.into_iter().map(|tool| tool.name);
        let chosen = offered_tools("a", &config, tools.clone()).unwrap();
        assert!(names(chosen).eq(["t1", "t499"]));
        config.tools.push("none".into());
        let missing = offered_tools("a", &config, tools).unwrap_err();
        assert!(missing.message.contains("no tool none"), "{missing}");
    }

    #[test]
    fn a_failure_says_what_to_do() {
        let address = McpServerConfig {
            url: "https://mcp.example.com/mcp".into(),
            ..McpServerConfig::default()
        };
        let denied = server_error("a", &address, &Failure::KeyWanted);
        assert_eq!(denied.code, Code::AccessDenied);
        assert!(denied.hint.unwrap().ends_with("set mcp.example.com`"));
        let program = McpServerConfig {
            command: vec!["npx".into()],
            ..McpServerConfig::default()
        };
        let silent = server_error("a", &program, &Failure::Silent(60));
        assert_eq!(
            silent.message,
            "the MCP server a has not answered within 60 s"
        );
        assert!(silent.hint.unwrap().contains("mcp.a.network"));
        let full = Error::new(Code::Storage, "a disk is full").hint("free up space");
        let lack = server_error("a", &program, &Failure::Lack(full.clone()));
        assert_eq!((lack.code, &lack.hint), (full.code, &full.hint));
        assert_eq!(
            lack.message,
            "the MCP server a cannot be used now: a disk is full"
        );
        let ended = Failure::Ended(" with code 126".to_owned());
        let denied = server_error("a", &program, &ended).hint.unwrap();
        assert!(denied.contains("folders"), "{denied}");
        let missing = Failure::NotFound(" with code 127".to_owned());
        let missing = server_error("a", &program, &missing).hint.unwrap();
        assert!(
            !missing.contains("folder") && missing.contains("mcp.a"),
            "{missing}"
        );
    }
}
