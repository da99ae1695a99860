//! The MCP servers that the configuration has: trying one out.

use crate::{
    admin::Admin,
    http::{error::Failure, path::Id, schema::Errors},
    jobs::mcp,
};
use axum::{Json, extract::State};
use serde::Serialize;
use std::sync::Arc;
use tierbar_core::{Code, Error, nearest::suggest};
use utoipa::ToSchema;

/// What an MCP server has.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct McpServerTest {
    name: String,
    /// In the server's order and words.
    tools: Vec<McpTool>,
    /// Why agents are offered none of them; `null` if they are.
    #[schema(required = true)]
    problem: Option<String>,
}

/// A tool of an MCP server.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct McpTool {
    name: String,
    description: String,
    /// Whether agents are offered it.
    offered: bool,
}

/// Starts an MCP server's program or connects to its address, lists its tools, and ends it.
#[utoipa::path(
    post,
    path = "/tierbar/v1/mcp-servers/{name}/test",
    tag = "owner",
    operation_id = "testMcpServer",
    security(("token" = [])),
    params(("name" = String, Path, description = "The name of an MCP server in the configuration")),
    responses((status = 200, description = "The server's tools", body = McpServerTest), Errors),
)]
pub(crate) async fn test(
    State(admin): State<Arc<Admin>>,
    Id(name): Id,
) -> Result<Json<McpServerTest>, Failure> {
    let config = admin.services.config();
    let server = config.mcp.get(&name).ok_or_else(|| {
        let names = config.mcp.keys().map(String::as_str);
        let hint = suggest(&name, names, "`tierbar mcp-servers list` lists them");
        Error::new(Code::NotFound, format!("there is no MCP server \"{name}\"")).hint(hint)
    })?;
    let secrets = &admin.inference.secrets;
    let (_session, tools) = mcp::open(&name, server, admin.services.as_ref(), secrets).await?;
    let (offered, problem) = match mcp::offered(&name, server, tools.clone()) {
        Ok(offered) => (offered, None),
        Err(error) => {
            let hint = error.hint.map(|hint| format!("; {hint}"));
            (Vec::new(), Some(error.message + &hint.unwrap_or_default()))
        }
    };
    let tools = tools.into_iter().map(|tool| McpTool {
        offered: offered.iter().any(|offered| offered.name == tool.name),
        name: tool.name,
        description: tool.description,
    });
    Ok(Json(McpServerTest {
        name,
        tools: tools.collect(),
        problem,
    }))
}
