//! A small MCP server for tests: it tells what it can reach.

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
        PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    serve_server,
    service::RequestContext,
    transport::stdio,
};
use serde_json::{Map, Value};
use std::{error::Error, fs, io::Write, net::TcpStream};

struct Server;

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = ["read", "variable", "connect", "end"].map(|name| {
            let mut schema = Map::new();
            schema.insert("type".to_owned(), "object".into());
            Tool::new(name, name, schema)
        });
        Ok(ListToolsResult::with_all_items(tools.into()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let text = |name: &str| arguments[name].as_str().unwrap_or_default();
        let done = match &*request.name {
            "read" => fs::read_to_string(text("path")).map_err(|error| error.to_string()),
            "variable" => Ok(std::env::var(text("name")).unwrap_or_default()),
            "connect" => TcpStream::connect(text("address"))
                .map(|_| "connected".to_owned())
                .map_err(|error| error.to_string()),
            _ => {
                // A failure cannot be reported anywhere.
                let _ = std::io::stderr().write_all(b"it is over\n");
                std::process::exit(7)
            }
        };
        Ok(CallToolResponse::Complete(match done {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Err(why) => CallToolResult::error(vec![ContentBlock::text(why)]),
        }))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let serving = serve_server(Server, stdio()).await?;
    serving.waiting().await?;
    Ok(())
}
