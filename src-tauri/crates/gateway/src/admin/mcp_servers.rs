//! The MCP servers that the configuration has: trying one out, and keeping it.

use crate::admin::{Admin, AdminState, secrets};
use axum::{Json, body::Body, extract::State};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tierbar_core::{Code, Error, bad_request, config::McpServerConfig, nearest::suggest};
use tierbar_fetch::detached;
use tierbar_http::{Answer, path::Id};
use tierbar_inference::body;
use tierbar_jobs::mcp;
use tierbar_secrets::{Name, Secrets};
use utoipa::ToSchema;

/// An MCP server to add or change.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct McpServerChange {
    #[schema(value_type = McpServerConfig)]
    server: Map<String, Value>,
    /// Its key, which is stored as a secret. Without the field, the stored one stays.
    #[schema(value_type = Option<String>)]
    key: Option<SecretString>,
    /// Save it even if it cannot be started or reached.
    #[serde(default)]
    anyway: bool,
}

/// What an MCP server has.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct McpServerTest {
    name: String,
    /// In the server's order; last, those that no model can call.
    tools: Vec<McpTool>,
    /// Why agents are offered none of them; `null` if they are.
    problem: Option<String>,
}

/// A tool of an MCP server.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct McpTool {
    name: String,
    /// The server's words; of a tool that no model can call, why.
    description: String,
    /// Whether agents are offered it.
    offered: bool,
}

/// Tries an MCP server out, and adds it to the configuration or changes it there. If it cannot be started or reached, nothing is
/// saved, unless `anyway` is `true`.
#[utoipa::path(
    put,
    path = "/tierbar/v1/mcp-servers/{name}",
    operation_id = "putMcpServer",
    reach(Owner, Writes, Runs, Opens),
    params(("name" = String, Path, description = "The name of an MCP server")),
    request_body = McpServerChange,
    responses((status = 200, description = "The server is saved; its tools", body = McpServerTest)),
)]
pub(crate) async fn put(
    State(admin): AdminState,
    Id(name): Id,
    body: Body,
) -> Answer<McpServerTest> {
    let bytes = body::read(body, body::ADMIN_LIMIT).await?;
    // The parser's own message may quote the key.
    let change = body::parse(&bytes).map_err(|_| {
        let message = "the body is not {\"server\": {…}, \"key\": \"…\", \"anyway\": false}";
        bad_request(message).hint("`key` and `anyway` may be left out")
    });
    let McpServerChange {
        mut server,
        key,
        anyway,
    } = change?;
    if !admin.services.config().mcp.contains_key(&name) {
        leave_out_defaults(&mut server);
    }
    let patch = json!({"mcp": {&name: server}});
    let config = admin.services.preview_config(patch.clone()).await?;
    let server = config.mcp.get(&name).ok_or_else(|| {
        let message = "`server` has neither a `command` nor a `url`";
        bad_request(message)
    })?;
    let key = match (key, mcp::secret_of(&name, server)) {
        (None, _) => None,
        (Some(key), Some(secret)) => {
            let key = Secrets::check(&secret, &key).map_err(|error| error.param("key"))?;
            Some((secret, key))
        }
        (Some(_), None) => {
            let message = "`key` is of no use to a program without `key_variable`";
            let hint = "set the variable in which the program expects its key";
            return Err(bad_request(message).hint(hint).into());
        }
    };
    let tried = key.as_ref().map(|(_, key)| key);
    let tested = match try_out(&admin, &name, server, tried).await {
        Ok(tested) => tested,
        Err(error) if anyway => McpServerTest {
            name,
            tools: Vec::new(),
            problem: Some(error.to_text("; ")),
        },
        Err(error) => return Err(error.detail("saved", false).into()),
    };
    // A task of its own: otherwise, a client that leaves in between would leave the new key with the old server.
    let saving = async move { save(&admin, patch, key).await };
    detached("saving the MCP server", saving).await?;
    Ok(Json(tested))
}

/// Writes the configuration, and stores a key for it: both or neither.
async fn save(admin: &Admin, patch: Value, key: Option<(Name, SecretString)>) -> Result<(), Error> {
    let Some((secret, key)) = key else {
        return admin.services.patch_config(patch).await.map(drop);
    };
    let before = mcp::stored_secret(&admin.inference.secrets, secret.clone()).await?;
    // First, because agents use the server as soon as it is in the configuration.
    secrets::change(admin, secret.clone(), Some(key)).await?;
    let written = admin.services.patch_config(patch).await;
    if written.is_err()
        && let Err(error) = secrets::change(admin, secret, before).await
    {
        tracing::error!("the key that was replaced is lost: {error}");
    }
    written.map(drop)
}

/// Starts an MCP server's program or connects to its address, lists its tools, and ends it.
#[utoipa::path(
    post,
    path = "/tierbar/v1/mcp-servers/{name}/test",
    operation_id = "testMcpServer",
    reach(Owner, Reads, Runs),
    params(("name" = String, Path, description = "The name of an MCP server in the configuration")),
    responses((status = 200, description = "The server's tools", body = McpServerTest)),
)]
pub(crate) async fn test(State(admin): AdminState, Id(name): Id) -> Answer<McpServerTest> {
    let config = admin.services.config();
    let server = config.mcp.get(&name).ok_or_else(|| {
        let names = config.mcp.keys().map(String::as_str);
        let hint = suggest(&name, names, "`tierbar mcp-servers list` lists them");
        Error::new(Code::NotFound, format!("there is no MCP server \"{name}\"")).hint(hint)
    })?;
    Ok(Json(try_out(&admin, &name, server, None).await?))
}

async fn try_out(
    admin: &Admin,
    name: &str,
    server: &McpServerConfig,
    key: Option<&SecretString>,
) -> Result<McpServerTest, Error> {
    let (services, secrets) = (admin.services.as_ref(), &admin.inference.secrets);
    let (_session, listing) = mcp::open(name, server, key, services, secrets).await?;
    let (offered, problem) = match mcp::offered_tools(name, server, listing.tools.clone()) {
        Ok(offered) => (offered, None),
        Err(error) => (Vec::new(), Some(error.to_text("; "))),
    };
    let left_out = listing.left_out.into_iter().map(|(name, why)| McpTool {
        name,
        description: why.to_owned(),
        offered: false,
    });
    let tools = listing.tools.into_iter().map(|tool| McpTool {
        offered: offered.iter().any(|offered| offered.name == tool.name),
        name: tool.name,
        description: tool.description,
    });
    Ok(McpServerTest {
        name: name.to_owned(),
        tools: tools.chain(left_out).collect(),
        problem,
    })
}

/// The file of a new server has what is set, and not what is so by itself.
fn leave_out_defaults(server: &mut Map<String, Value>) {
    let by_itself = json!(McpServerConfig::default());
    server.retain(|key, value| *value != by_itself[key.as_str()]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_server_is_written_with_what_is_set_alone() {
        let set = json!({"command": ["a"], "network": true, "enabled": false, "unknown": 1});
        let mut server = json!(McpServerConfig::default());
        let server = server.as_object_mut().unwrap();
        server.extend(set.as_object().unwrap().clone());
        leave_out_defaults(server);
        assert_eq!(*server, *set.as_object().unwrap());
    }
}
