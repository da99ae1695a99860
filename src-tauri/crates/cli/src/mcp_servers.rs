//! `tierbar mcp-servers`: the servers whose tools agents may use.

use crate::{
    Group,
    client::{Client, admin_path, read_answer, with_host},
    output::{self, count},
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{collections::BTreeMap, path::PathBuf};
use tierbar_core::{Code, Error, config::McpServerConfig, nearest::suggest};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// List the MCP servers
    List,
    /// Test an MCP server, then add or change it
    Add(Add),
    /// Remove an MCP server
    #[command(visible_alias = "remove")]
    Rm {
        /// Name of the server
        name: String,
    },
    /// Start or connect to an MCP server and list its tools
    Test {
        /// Name of the server
        name: String,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct Add {
    /// Name of the server, and the prefix of its tools
    name: String,
    /// Address of the server, with https://, or http:// on this machine
    #[arg(long, value_name = "URL", required_unless_present = "command", conflicts_with_all = ["command", "folder", "read", "network", "variables", "key_variable"])]
    url: Option<String>,
    /// Folder that the program may read and write [default: a temporary folder]
    #[arg(long, value_name = "FOLDER")]
    folder: Option<String>,
    /// Folder that the program may read, such as the one that it is installed in
    #[arg(long, value_name = "FOLDER")]
    read: Vec<String>,
    /// Let the program connect to public servers on ports 80 and 443
    #[arg(long)]
    network: bool,
    /// Variables of Tierbar's environment that the program sees, such as EDITOR,LOGNAME
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    variables: Vec<String>,
    /// Variable in which the program gets its key, stored with `tierbar secret set mcp-NAME`
    #[arg(long, value_name = "NAME")]
    key_variable: Option<String>,
    /// Tools to offer, such as search,fetch [default: all]
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    tools: Vec<String>,
    /// Save it even if it cannot be started or reached
    #[arg(long)]
    anyway: bool,
    /// Program that serves tools, with its arguments, after --
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct ServerTest {
    tools: Vec<Tool>,
    problem: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Tool {
    name: String,
    description: String,
    offered: bool,
}

pub(crate) async fn run(home: Option<PathBuf>, args: Group<Command>) -> Result<(), Error> {
    with_host(home, async |client| match args.command {
        None | Some(Command::List) => list(client, args.json).await,
        Some(Command::Add(add)) => self::add(client, add, args.json).await,
        Some(Command::Rm { name }) => remove(client, &name, args.json).await,
        Some(Command::Test { name }) => {
            let path = admin_path(&["mcp-servers", &name, "test"], &[]);
            show(&name, client.post(&path, &json!({})).await?, args.json)
        }
    })
    .await
}

async fn fetch_servers(client: &Client) -> Result<BTreeMap<String, McpServerConfig>, Error> {
    let mut answer = client.get("/tierbar/v1/config").await?;
    match answer["config"]["mcp"].take() {
        Value::Null => Ok(BTreeMap::new()),
        servers => read_answer(servers),
    }
}

async fn list(client: &Client, as_json: bool) -> Result<(), Error> {
    let servers = fetch_servers(client).await?;
    if as_json {
        output::write_json(&json!({"servers": servers}));
        return Ok(());
    }
    let servers: Vec<_> = servers.iter().collect();
    let none = "There are no MCP servers. Add one with `tierbar mcp-servers add`.";
    output::write(&output::lines(&servers, none, |(name, server)| {
        describe(name, server)
    }));
    Ok(())
}

async fn add(client: &Client, add: Add, as_json: bool) -> Result<(), Error> {
    let name = add.name;
    let anyway = add.anyway;
    let server = McpServerConfig {
        command: add.command,
        url: add.url.unwrap_or_default(),
        folder: add.folder.unwrap_or_default(),
        read: add.read,
        network: add.network,
        variables: add.variables,
        key_variable: add.key_variable.unwrap_or_default(),
        tools: add.tools,
        enabled: true,
    };
    if !as_json {
        output::error_line(&format!("Testing {name}…"));
    }
    let path = admin_path(&["mcp-servers", &name], &[]);
    let body = json!({"server": server, "anyway": anyway});
    let answer = client.put(&path, &body).await.map_err(not_saved)?;
    if !as_json {
        output::error_line(&format!("Saved {name}."));
    }
    show(&name, answer, as_json)
}

/// Says how to save what could not be tried out.
fn not_saved(error: Error) -> Error {
    if error.details.get("saved") != Some(&json!(false)) {
        return error;
    }
    let way = "nothing was saved; to save it anyway, use --anyway";
    let hint = match &error.hint {
        Some(hint) => format!("{hint}; {way}"),
        None => way.to_owned(),
    };
    error.hint(hint)
}

async fn remove(client: &Client, name: &str, as_json: bool) -> Result<(), Error> {
    let servers = fetch_servers(client).await?;
    if !servers.contains_key(name) {
        let names = servers.keys().map(String::as_str);
        let hint = suggest(name, names, "`tierbar mcp-servers list` lists them");
        let message = format!("there is no MCP server \"{name}\"");
        return Err(Error::new(Code::NotFound, message).hint(hint));
    }
    let patch = json!({"mcp": {name: null}});
    client.patch("/tierbar/v1/config", &patch).await?;
    output::write_outcome(
        as_json,
        &json!({"removed": name}),
        &format!("Removed {name}."),
    );
    Ok(())
}

fn show(name: &str, answer: Value, as_json: bool) -> Result<(), Error> {
    if as_json {
        output::write_json(&answer);
        return Ok(());
    }
    let ServerTest { tools, problem } = read_answer(answer)?;
    match tools.len() {
        // It does not answer, or lacks a tool that is to be offered.
        0 if problem.is_some() => {}
        0 => output::write_line(&format!("{name} responds, but has no tools.")),
        tools => {
            let tools = count(tools as u64, "tool");
            output::write_line(&format!("{name} responds, and has {tools}:"));
        }
    }
    for tool in &tools {
        let first = tool.description.lines().next().unwrap_or_default();
        let off = if tool.offered || problem.is_some() {
            ""
        } else {
            " (not offered)"
        };
        output::write_line(&format!("  {}{off}  {first}", tool.name));
    }
    if let Some(problem) = problem {
        output::error_line(&format!("Agents cannot use its tools: {problem}"));
    }
    Ok(())
}

fn describe(name: &str, server: &McpServerConfig) -> String {
    let place = if server.url.is_empty() {
        server.command.join(" ")
    } else {
        server.url.clone()
    };
    let mut text = format!("{name}: {place}");
    if !server.folder.is_empty() {
        text += &format!(", in {}", server.folder);
    }
    if server.network {
        text += ", with the network";
    }
    if !server.enabled {
        text += ", turned off";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_was_not_saved_says_how_to_save_it() {
        let gone = Error::new(Code::Unreachable, "the MCP server a has ended");
        assert_eq!(not_saved(gone.clone()).hint, None);
        let hint = |error: Error| not_saved(error.detail("saved", false)).hint.unwrap();
        let way = "nothing was saved; to save it anyway, use --anyway";
        assert_eq!(hint(gone.clone()), way);
        assert_eq!(hint(gone.hint("start it")), format!("start it; {way}"));
    }

    #[test]
    fn a_server_is_described_in_one_line() {
        let server = McpServerConfig {
            command: vec!["npx".to_owned(), "-y".to_owned(), "notes".to_owned()],
            folder: "~/Notes".to_owned(),
            network: true,
            enabled: false,
            ..McpServerConfig::default()
        };
        assert_eq!(
            describe("notes", &server),
            "notes: npx -y notes, in ~/Notes, with the network, turned off"
        );
        let server = McpServerConfig {
            url: "https://mcp.example.com/mcp".to_owned(),
            ..McpServerConfig::default()
        };
        assert_eq!(
            describe("issues", &server),
            "issues: https://mcp.example.com/mcp"
        );
    }
}
